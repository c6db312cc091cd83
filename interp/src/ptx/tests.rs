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
