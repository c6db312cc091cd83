//! What an input is: the IR's own text, or LLVM IR as text or bitcode.

use std::path::Path;

/// A language that modules are read from.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Format {
    /// The IR's own text (`ir/LANGUAGE.md`).
    Ir,
    /// LLVM IR as text.
    LlvmText,
    /// LLVM bitcode.
    LlvmBitcode,
}

impl Format {
    /// The format of an input: by what its content begins with, then by the suffix of its name, then by its first lines.
    pub fn of(name: &str, bytes: &[u8]) -> Format {
        if bytes.starts_with(b"BC\xc0\xde") || bytes.starts_with(&[0xde, 0xc0, 0x17, 0x0b]) {
            return Format::LlvmBitcode;
        }
        match Path::new(name).extension().and_then(|extension| extension.to_str()) {
            Some("ll") => Format::LlvmText,
            Some("bc") => Format::LlvmBitcode,
            Some("ir") => Format::Ir,
            _ if looks_like_llvm(bytes) => Format::LlvmText,
            _ => Format::Ir,
        }
    }

    /// The suffix of files of this format.
    pub fn suffix(self) -> &'static str {
        match self {
            Format::Ir => ".ir",
            Format::LlvmText => ".ll",
            Format::LlvmBitcode => ".bc",
        }
    }
}

/// Whether a line starts as only LLVM's do.
fn looks_like_llvm(bytes: &[u8]) -> bool {
    const STARTS: &[&[u8]] = &[
        b"define ",
        b"target triple",
        b"target datalayout",
        b"source_filename",
        b"; ModuleID",
        b"attributes #",
        b"!llvm.",
        b"!nvvm.",
    ];
    // A declaration of the IR's own says `declare func`.
    let declares = |line: &[u8]| line.starts_with(b"declare ") && !line.starts_with(b"declare func ");
    // `@x = global …`; names stand after the keyword in the IR's own text.
    let defines = |line: &[u8]| {
        let assigned = || line.windows(3).take(256).any(|three| three == b" = ");
        line.first().is_some_and(|byte| matches!(byte, b'@' | b'%' | b'$')) && assigned()
    };
    let mut lines = bytes.split(|byte| *byte == b'\n');
    lines.any(|line| STARTS.iter().any(|start| line.starts_with(start)) || declares(line) || defines(line))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_goes_before_suffix_and_suffix_before_lines() {
        assert_eq!(Format::of("x.ll", b"BC\xc0\xde\x35"), Format::LlvmBitcode);
        assert_eq!(Format::of("x.ir", b"define void @f() {"), Format::Ir);
        assert_eq!(Format::of("<stdin>", b"; note\ndefine void @f() {"), Format::LlvmText);
        assert_eq!(Format::of("-", b"declare i32 @f()\n"), Format::LlvmText);
        assert_eq!(Format::of("-", b"declare func @f() -> i32\n"), Format::Ir);
        assert_eq!(Format::of("-", b"@g = global i32 0\n"), Format::LlvmText);
        assert_eq!(Format::of("-", b"kernel @k() {\nentry:\n  %x = sreg.tid.x\n  ret\n}\n"), Format::Ir);
    }
}
