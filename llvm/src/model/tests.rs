use super::*;

#[test]
fn equal_content_has_equal_ids() {
    let mut module = Module::new();
    let int = module.types.integer(32);
    assert_eq!(int, module.types.integer(32));
    let pair = module.types.structure(false, &[int, int]);
    assert_eq!(pair, module.types.structure(false, &[int, int]));
    assert_ne!(pair, module.types.structure(true, &[int, int]));
    let one = module.constants.wide_integer(&module.types, int, &[1]);
    let parts = module.constants.aggregate(&module.types, pair, &[one, one]);
    assert_eq!(parts, module.constants.aggregate(&module.types, pair, &[one, one]));
    let name = module.names.intern(b"f");
    assert_eq!(Some(name), module.names.find(b"f"));
}

#[test]
fn aggregates_have_one_form() {
    let mut module = Module::new();
    let int = module.types.integer(16);
    let array = module.types.intern(Type::Array { len: 2, element: int });
    let [zero, high] = [0, 0xfffe].map(|bits| module.constants.wide_integer(&module.types, int, &[bits]));
    let zeros = module.constants.aggregate(&module.types, array, &[zero, zero]);
    assert_eq!(zeros, module.constants.zero(&module.types, array));
    let mixed = module.constants.aggregate(&module.types, array, &[zero, high]);
    assert_eq!(mixed, module.constants.data(array, &[0, 0, 0xfe, 0xff]));
    let Constant::Data(data) = module.constants.get(mixed) else { panic!("not data") };
    assert_eq!(module.constants.data_element(data, Type::Integer(16), 1), Some(0xfffe));
    assert_eq!(module.constants.data_element(data, Type::Integer(16), 2), None);
}

#[test]
fn wide_integers_keep_their_width() {
    let mut module = Module::new();
    let wide = module.types.integer(70);
    let all = module.constants.wide_integer(&module.types, wide, &[u64::MAX, u64::MAX]);
    let Constant::WideInteger(words) = module.constants.get(all) else { panic!("not wide") };
    assert_eq!(module.constants.words(words), [u64::MAX, 0x3f]);
}

#[test]
fn bodies_take_forward_references() {
    let mut module = Module::new();
    let int = module.types.integer(32);
    let mut body = Body::default();
    let argument = body.add_argument(0, int);
    let entry = body.add_block(None);
    let next = body.add_block(None);
    let later = body.add_value(int);
    body.start_block(entry);
    body.push(Instruction::Jump(next), None, 0);
    body.start_block(next);
    let incoming = body.add_operands(&[argument.into(), entry.into(), later.into(), next.into()]);
    let result = body.add_value(int);
    body.push(Instruction::Phi { flags: Flags::NONE, incoming }, Some(result), 1);
    let sum = Instruction::Binary { op: BinaryOp::Add, flags: Flags::NSW, left: result.into(), right: result.into() };
    let inst = body.push(sum, Some(later), 2);
    assert_eq!(body.values[later].definition, Definition::Instruction(inst));
    assert_eq!(body.block(next).len(), 2);
    assert_eq!(module.type_of(&body, later.into()), Some(int));
}

#[test]
fn flags_of_the_module_are_found() {
    let mut module = Module::new();
    let int = module.types.integer(32);
    let one = module.constants.wide_integer(&module.types, int, &[1]);
    let key = module.names.intern(b"nvvm-reflect-ftz");
    let (key, one) = (module.metadata.text(key), module.metadata.value(one));
    let node = module.metadata.add_node(false, &[one.into(), key.into(), one.into()]);
    let name = module.names.intern(b"llvm.module.flags");
    module.named_metadata.push((name, vec![node]));
    assert_eq!(module.flag_number("nvvm-reflect-ftz"), Some(1));
    assert_eq!(module.flag_number("other"), None);
}

#[test]
fn an_instruction_stays_small() {
    assert!(size_of::<Instruction>() <= 24, "{}", size_of::<Instruction>());
    assert!(size_of::<InstructionData>() <= 36, "{}", size_of::<InstructionData>());
}
