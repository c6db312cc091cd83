use super::*;
use crate::launch::{Argument, Buffer, Launch, Options};

const COPY: &str = ".version 8.0\n.target sm_90\n.address_size 64\n
.visible .entry copy(.param .u64 copy_param_0, .param .u32 copy_param_1)
{
	.reg .pred %p<2>;
	.reg .b32 %r<4>;
	.reg .b64 %rd<4>;
	ld.param.u64 %rd1, [copy_param_0];
	ld.param.u32 %r2, [copy_param_1];
	mov.u32 %r1, %tid.x;
	mov.b64 %rd2, {%r1, %r2};
	st.global.b64 [%rd1], %rd2;
	ret;
}
";

#[test]
fn a_kernel_is_read_and_run() {
    let program = Program::read(COPY).unwrap();
    assert_eq!(program.kernels().collect::<Vec<_>>(), ["copy"]);
    let mut buffers = [Buffer::output("out", 8)];
    let launch = Launch::linear("copy", 1, 1, vec![Argument::buffer(0), Argument::i32(7)]);
    let outcome = run(&program, &launch, &mut buffers, &Options::default()).unwrap();
    assert_eq!(outcome.steps, 6);
    assert_eq!(buffers[0].to_words(), [0, 7]);
}

#[test]
fn lanes_that_call_one_after_the_other_meet_in_the_callee() {
    // The call stands before the block that half of the lanes come from.
    let text = ".version 8.0\n.target sm_90\n.address_size 64\n
.func wait()
{
	bar.sync 0;
	ret;
}
.visible .entry k(.param .u64 k_param_0)
{
	.reg .pred %p<2>;
	.reg .b32 %r<4>;
	.reg .b64 %rd<4>;
	mov.u32 %r1, %tid.x;
	setp.lt.u32 %p1, %r1, 7;
	@%p1 bra $other;
$join:
	call wait, ();
	ld.param.u64 %rd1, [k_param_0];
	mad.wide.u32 %rd2, %r1, 4, %rd1;
	st.global.b32 [%rd2], %r1;
	ret;
$other:
	add.u32 %r1, %r1, 0;
	bra $join;
}
";
    let program = Program::read(text).unwrap();
    let mut buffers = [Buffer::output("out", 256)];
    let launch = Launch::linear("k", 1, 64, vec![Argument::buffer(0)]);
    run(&program, &launch, &mut buffers, &Options::default()).unwrap();
    assert_eq!(buffers[0].to_words(), (0..64).collect::<Vec<u32>>());
}
