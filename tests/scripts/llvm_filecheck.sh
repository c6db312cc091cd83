#!/bin/sh
# Runs LLVM 19's own FileCheck tests against our filecheck: with lit, and with our runtests if it is beside it.
#
#   tests/scripts/llvm_filecheck.sh [path of filecheck]
#
# Needs: apt-get with a deb-src line for llvm-toolchain-19 (or a checkout of llvm/test/FileCheck in
# $LLVM_FILECHECK_TESTS), tar with xz, Python 3. lit comes from PyPI into target/tools/lit.
# The tests stay under target/: they are not ours.
set -eu

root=$(cd "$(dirname "$0")/../.." && pwd)
work=$root/target/tools/llvm-filecheck
mkdir -p "$work"

if [ $# -ge 1 ]; then
    filecheck=$(realpath "$1")
else
    (cd "$root" && cargo build --quiet --release -p filecheck)
    filecheck=${CARGO_TARGET_DIR:-$root/target}/release/filecheck
fi

tests=${LLVM_FILECHECK_TESTS:-$work/tests}
if [ ! -d "$tests" ]; then
    archive=$(ls "$work"/llvm-toolchain-19_*.orig.tar.xz 2>/dev/null || true)
    if [ -z "$archive" ]; then
        (cd "$work" && apt-get source --download-only llvm-toolchain-19)
        archive=$(ls "$work"/llvm-toolchain-19_*.orig.tar.xz)
    fi
    mkdir -p "$work/unpacked"
    tar -xf "$archive" -C "$work/unpacked" --strip-components=1 --wildcards '*/llvm/test/FileCheck'
    mv "$work/unpacked/llvm/test/FileCheck" "$tests"
    rm -rf "$work/unpacked"
fi

if [ ! -d "$work/lit" ]; then
    python3 -m pip install --quiet --target "$work/lit" lit
fi

# What these tests expect around them: FileCheck and not on PATH, and a suite that loads their
# local configuration.
suite=$work/suite
rm -rf "$suite"
mkdir -p "$suite/bin" "$suite/out"
cp -r "$tests" "$suite/FileCheck"
ln -s "$filecheck" "$suite/bin/FileCheck"
cat > "$suite/bin/not" <<'EOF'
#!/bin/sh
"$@"
code=$?
[ $code -ne 0 ] && [ $code -lt 128 ]
EOF
chmod +x "$suite/bin/not"
cat > "$suite/lit.cfg" <<EOF
import os, lit.formats
config.name = "FileCheck"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".txt"]
config.excludes = ["Inputs"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.path.join(config.test_source_root, "out")
config.environment["PATH"] = os.path.join(config.test_source_root, "bin") + os.pathsep + os.environ["PATH"]
config.environment.pop("FILECHECK_OPTS", None)
EOF

PYTHONPATH=$work/lit python3 -c "from lit.main import main; main()" "${LIT_OPTS:--s}" "$suite"

runtests=$(dirname "$filecheck")/runtests
if [ -x "$runtests" ]; then
    cat > "$suite/FileCheck/runtests.cfg" <<'EOF'
suffixes = .txt
excludes = Inputs
substitute %ProtectFileCheckOutput = env -u FILECHECK_OPTS
EOF
    "$runtests" --output "$suite/out" "$suite/FileCheck"
fi
