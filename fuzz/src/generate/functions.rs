//! The module around the bodies: globals, functions to call, the kernel, and what it is launched with.

use cranelift_entity::EntitySet;
use ptxc_interp::launch::{Argument, Buffer, Launch};
use ptxc_ir::testing::Rng;
use ptxc_ir::{
    AggDef, AggId, Extra, Flags, FuncKind, Function, FunctionBuilder, Global, GlobalId, GlobalKind, Init, IntCC,
    Linkage, MemAttrs, MemType, Module, Opcode, Param, ParamAttrs, Signature, Space, Type, Value,
};
use ptxc_targets::SpecialReg;

use super::body::{Area, Body, Control};
use super::facts::{Callee, Facts, LENT, Passed, Returned};
use super::statements::RESULTS;
use super::{shapes, threads};
use crate::features::Features;
use crate::program::{Program, TARGETS};

/// Bytes of a thread's own besides the results.
const SCRATCH: u64 = 128;
/// Bytes of the buffer that all read.
const INPUT: u64 = 1024;
/// Bytes of the cells that all change.
const CELLS: usize = 512;
/// Bytes of a thread's own shared memory.
const OWN_SHARED: u64 = 64;
/// Statements of a kernel and of a function, at most.
const KERNEL: usize = 40;
const FUNCTION: usize = 10;

/// The program of a seed.
pub fn generate(seed: u64, features: &Features) -> Program {
    let mut rng = Rng::new(seed);
    let mut module = Module::new();
    let exchanges = features.warps || features.shared_memory;
    let shapes: &[[u32; 3]] = if exchanges {
        &[[32, 1, 1], [32, 1, 1], [64, 1, 1], [16, 4, 1], [8, 2, 2]]
    } else {
        &[[32, 1, 1], [1, 1, 1], [7, 1, 1], [40, 1, 1], [4, 3, 2]]
    };
    let block = rng.pick(shapes).copied().unwrap_or([32, 1, 1]);
    let mut facts = globals(&mut module, &mut rng, features, block.iter().product());
    facts.blocks = 1 + u32::from(rng.once_in(3));
    let target = rng.pick(TARGETS).copied().unwrap_or("sm_90");
    // 128-bit atomics need sm_90.
    facts.wide_atomics = features.wide_ints && !target.starts_with("sm_7") && !target.starts_with("sm_8");
    rule_shapes(&mut module, &mut rng, features, &mut facts);
    functions(&mut module, &mut rng, features, &mut facts);
    let scalars = kernel(&mut module, &mut rng, features, &facts, block);
    let (launch, buffers) = launch(&mut rng, &facts, block, scalars);
    Program { seed, features: *features, module, launch, buffers, target }
}

fn global(
    module: &mut Module,
    name: &str,
    space: Space,
    ty: MemType,
    init: Option<Init>,
    linkage: Linkage,
) -> GlobalId {
    let kind = GlobalKind::Variable(space);
    let global = Global { name: name.to_string(), kind, ty, linkage, align: 16, init, managed: false };
    // Names are different.
    module.add_global(global).unwrap_or(GlobalId::from_u32(0))
}

fn array(module: &mut Module, elem: MemType, len: u64) -> MemType {
    module.aggregate(AggDef::Array { elem, len }).map_or(elem, MemType::Agg)
}

/// A word that is often special as an integer or as a float.
fn word(rng: &mut Rng) -> u32 {
    match rng.below(4) {
        0 => rng.below(9) as u32,
        1 => [0, 0x8000_0000, 0x7fff_ffff, u32::MAX, 0x3f80_0000, 0xbf80_0000, 0x7f80_0000, 0x3c00_4000][rng.below(8)],
        _ => rng.bits() as u32,
    }
}

fn globals(module: &mut Module, rng: &mut Rng, features: &Features, threads: u32) -> Facts {
    let mut facts = Facts { threads, ..Facts::default() };
    let words = array(module, MemType::Value(Type::I32), 32);
    let words_of = |rng: &mut Rng| Some(Init::List((0..32).map(|_| Init::Bits(word(rng).into())).collect()));
    let i32_ = MemType::Value(Type::I32);
    let four = array(module, i32_, 4);
    let fields = vec![MemType::Value(Type::I64), i32_, i32_, four];
    facts.record = module.aggregate(AggDef::Struct { fields, packed: false });
    if features.memory {
        let init = words_of(rng);
        facts.constants = Some(global(module, "constants", Space::Const, words, init, Linkage::Visible));
        let init = words_of(rng);
        facts.data = Some(global(module, "data", Space::Global, words, init, Linkage::Internal));
    }
    if features.shared_memory {
        let bytes = array(module, MemType::Value(Type::I8), u64::from(threads) * threads::SLOT);
        facts.tile = Some(global(module, "tile", Space::Shared, bytes, None, Linkage::Internal));
        let bytes = array(module, MemType::Value(Type::I8), u64::from(threads) * OWN_SHARED);
        facts.own = Some(global(module, "own", Space::Shared, bytes, None, Linkage::Visible));
    }
    facts
}

/// Types that the features allow.
fn types(features: &Features) -> (Vec<Type>, Vec<Type>) {
    let mut ints: Vec<Type> = [1, 8, 16, 32, 32, 32, 64, 64].into_iter().map(Type::int).collect();
    if features.odd_ints {
        ints.extend([3, 7, 17, 24, 33, 48, 63].into_iter().map(Type::int));
    }
    if features.wide_ints {
        ints.extend([128, 128].into_iter().map(Type::int));
    }
    if features.odd_ints && features.wide_ints {
        ints.extend([65, 96].into_iter().map(Type::int));
    }
    let mut floats = Vec::new();
    if features.floats {
        floats.extend([Type::F32, Type::F32, Type::F64]);
    }
    if features.half_floats {
        floats.extend([Type::F16, Type::BF16]);
    }
    (ints, floats)
}

fn start<'g>(
    rng: &'g mut Rng,
    features: &'g Features,
    module: &'g Module,
    facts: &'g Facts,
    func: &'g mut Function,
) -> Body<'g> {
    let (ints, floats) = types(features);
    let b = FunctionBuilder::new(func);
    let control = Control { uniform: false, lanes: None, depth: 0, loops: 0 };
    let (scope, areas, uniform) = (Vec::new(), Vec::new(), EntitySet::new());
    Body {
        rng,
        features,
        module,
        facts,
        b,
        scope,
        uniform,
        loaded: EntitySet::new(),
        control,
        left: false,
        outer_loops: 0,
        fuel: 0,
        areas,
        ints,
        floats,
        exchange: None,
        cells: None,
        spare: Vec::new(),
        returned: None,
    }
}

impl Body<'_> {
    /// A special register's value, in scope.
    fn register(&mut self, name: &str, uniform: bool) -> Value {
        let Some(register) = SpecialReg::from_name(name) else { return self.int(Type::I32, 0) };
        let value = self.b.sreg(register, ptxc_ir::sreg_type(register));
        if uniform {
            self.uniform.insert(value);
        }
        self.keep(value);
        value
    }

    /// The number of the thread in its block.
    fn thread_number(&mut self) -> Value {
        let [x, y, z] = ["%tid.x", "%tid.y", "%tid.z"].map(|name| self.register(name, false));
        let [nx, ny] = ["%ntid.x", "%ntid.y"].map(|name| self.register(name, true));
        let rows = self.op(Opcode::Mul, &[z, ny]);
        let row = self.op(Opcode::Add, &[rows, y]);
        let before = self.op(Opcode::Mul, &[row, nx]);
        let number = self.op(Opcode::Add, &[before, x]);
        self.keep(number);
        number
    }

    /// `base` plus `stride` bytes an index.
    fn element(&mut self, base: Value, index: Value, stride: u64) -> Value {
        let stride = self.int(Type::I32, stride as i64);
        let bytes = self.op(Opcode::Mul, &[index, stride]);
        let over = Extra::Gep(MemType::Value(Type::I8));
        self.emit(Opcode::Gep, Flags::EMPTY, Type::INVALID, &[base, bytes], over)
    }

    /// Writes all of an area, so that it is initialized.
    fn fill(&mut self, area: &Area) {
        for at in 0..area.size / 16 {
            let value = self.operand(Type::I32.with_lanes(4));
            let at = self.offset(area.base, 16 * at);
            self.b.store(value, at, MemAttrs::aligned(16));
        }
    }

    /// Stack objects, in the entry block.
    fn stack(&mut self) {
        if !self.features.allocas {
            return;
        }
        for _ in 0..1 + self.rng.below(2) {
            let size = self.pick(&[32u64, 64, 64], 64);
            let base = self.b.alloca(MemType::Value(Type::I32), (size / 4) as u32, 16);
            let area = Area { base, align: 16, space: Space::Local, home: Space::Local, size, private: true };
            self.fill(&area);
            self.areas.push(area);
        }
        if self.features.compared_objects {
            self.spare = (0..self.rng.below(4)).map(|_| self.b.alloca(MemType::Value(Type::I32), 4, 16)).collect();
        }
    }

    /// Variables that nobody writes.
    fn read_only(&mut self) {
        for (global, space) in [(self.facts.constants, Space::Const), (self.facts.data, Space::Global)] {
            if let Some(global) = global {
                let base = self.b.global(global, 0, Type::ptr(space));
                self.areas.push(Area { base, align: 16, space, home: space, size: 128, private: false });
            }
        }
    }

    /// All threads of the block start here.
    fn all_here(&mut self) {
        self.control.uniform = true;
        if self.features.warps && self.facts.threads.is_multiple_of(32) {
            self.control.lanes = Some(self.int(Type::I32, -1));
        }
    }

    fn tile(&mut self, thread: Value) {
        if let Some(tile) = self.facts.tile {
            let base = self.b.global(tile, 0, Type::ptr(Space::Shared));
            self.exchange = Some((base, thread));
        }
    }
}

/// What a function takes and gives.
#[derive(Clone)]
struct Shape {
    sig: Signature,
    passed: Vec<Passed>,
    returned: Option<Returned>,
}

/// A random signature: parameters, what they take, and the result.
fn signature(module: &mut Module, rng: &mut Rng, features: &Features, record: Option<AggId>) -> Shape {
    let (ints, floats) = types(features);
    let value = |rng: &mut Rng| {
        let from = if rng.once_in(3) && !floats.is_empty() { &floats } else { &ints };
        let ty = rng.pick(from).copied().unwrap_or(Type::I32);
        let vector = features.vectors && rng.once_in(5) && ty.scalar_bits() <= 64;
        if vector { ty.with_lanes([2, 3, 4][rng.below(3)]) } else { ty }
    };
    let mut sig = Signature::default();
    let mut passed = Vec::new();
    let plain = |ty| Param { ty: MemType::Value(ty), attrs: ParamAttrs::default() };
    for _ in 0..1 + rng.below(3) {
        if features.aggregates && rng.once_in(5) {
            let fields: Vec<Type> = (0..2).map(|_| value(rng)).collect();
            let def = AggDef::Struct { fields: fields.iter().map(|ty| MemType::Value(*ty)).collect(), packed: false };
            if let Some(id) = module.aggregate(def) {
                sig.params.push(Param { ty: MemType::Agg(id), attrs: ParamAttrs::default() });
                passed.extend(fields.into_iter().map(Passed::Value));
            }
            continue;
        }
        let ty = value(rng);
        sig.params.push(plain(ty));
        passed.push(Passed::Value(ty));
    }
    if let Some(record) = record.filter(|_| features.aggregates && features.allocas && rng.once_in(4)) {
        let attrs = ParamAttrs { byval: Some(MemType::Agg(record)), align: 16, ..ParamAttrs::default() };
        sig.params.push(Param { ty: MemType::Value(Type::PTR), attrs });
        passed.push(Passed::Copy(record));
    }
    if features.memory && rng.once_in(3) {
        let ty = if features.generic_addresses { Type::PTR } else { Type::ptr(Space::Global) };
        sig.params.push(plain(ty));
        passed.push(Passed::Pointer(ty));
    }
    sig.ret = Some(MemType::Value(value(rng)));
    if features.aggregates && rng.once_in(3) {
        let fields = (0..2 + rng.below(2)).map(|_| MemType::Value(value(rng))).collect();
        sig.ret = module.aggregate(AggDef::Struct { fields, packed: false }).map(MemType::Agg).or(sig.ret);
    }
    let mut returned = None;
    if features.pointer_results && features.memory && rng.once_in(2) {
        let generic = features.generic_addresses && rng.once_in(2);
        let ty = if generic { Type::PTR } else { Type::ptr(Space::Global) };
        sig.params.push(plain(ty));
        passed.push(Passed::Pointer(ty));
        let result = rng.below(3);
        let mut fields: Vec<MemType> = (0..result.max(1)).map(|_| MemType::Value(value(rng))).collect();
        fields.insert(result, MemType::Value(ty));
        sig.ret = module.aggregate(AggDef::Struct { fields, packed: false }).map(MemType::Agg);
        let offset = [0, 4, 8, 16, 32][rng.below(5)];
        returned = Some(Returned { result, param: passed.len() - 1, offset });
    }
    Shape { sig, passed, returned }
}

/// Functions in which rules are applied, mostly to be inlined.
fn rule_shapes(module: &mut Module, rng: &mut Rng, features: &Features, facts: &mut Facts) {
    if !features.rule_shapes {
        return;
    }
    let warps = features.warps && facts.threads.is_multiple_of(32);
    for _ in 0..2 + rng.below(5) {
        let Some((mut func, shape)) = shapes::choose(rng, warps) else { continue };
        // No other name begins so.
        func.name = format!("shape_{}", func.name);
        func.linkage = Linkage::Internal;
        func.attrs.noinline = rng.once_in(8);
        func.attrs.alwaysinline = !func.attrs.noinline && rng.once_in(2);
        // The same one again.
        let Ok(id) = module.add_func(func) else { continue };
        facts.shapes.push((id, shape));
    }
}

/// Functions to call, each of which calls earlier ones.
fn functions(module: &mut Module, rng: &mut Rng, features: &Features, facts: &mut Facts) {
    if !features.calls {
        return;
    }
    let record = facts.record;
    let shape = signature(module, rng, features, record);
    for name in ["first", "second"] {
        // Neither calls the other: what is reached through the table has no further calls.
        let alone = Facts { callees: Vec::new(), table: None, ..facts.clone() };
        function(module, rng, features, &alone, facts, name, shape.clone(), false);
    }
    if features.indirect_calls && facts.callees.len() == 2 {
        let addresses = facts.callees.iter().map(|c| Init::Func(c.func)).collect();
        let ty = array(module, MemType::Value(Type::PTR), 2);
        let table = global(module, "table", Space::Global, ty, Some(Init::List(addresses)), Linkage::Internal);
        facts.table = Some((table, 2));
    }
    for name in ["third", "fourth"].into_iter().take(rng.below(3)) {
        let shape = signature(module, rng, features, record);
        let known = facts.clone();
        function(module, rng, features, &known, facts, name, shape, false);
    }
    if features.recursion {
        let mut shape = signature(module, rng, features, None);
        shape.sig.params.insert(0, Param { ty: MemType::Value(Type::I32), attrs: ParamAttrs::default() });
        shape.passed.insert(0, Passed::Value(Type::I32));
        shape.returned = shape.returned.map(|returned| Returned { param: returned.param + 1, ..returned });
        let known = facts.clone();
        function(module, rng, features, &known, facts, "recursive", shape, true);
    }
}

#[allow(clippy::too_many_arguments, reason = "what a function is made from has no name as a whole")]
fn function(
    module: &mut Module,
    rng: &mut Rng,
    features: &Features,
    known: &Facts,
    facts: &mut Facts,
    name: &str,
    Shape { sig, passed, returned }: Shape,
    recursive: bool,
) {
    let together = !recursive && name != "first" && name != "second" && rng.once_in(3);
    let id = module.funcs.next_key();
    let params = module.sig_params(&sig);
    let results = module.sig_results(&sig);
    let callee = Callee { func: id, params: passed, results, together, recursive, returned };
    let mut func = Function::new(name, FuncKind::Func, sig);
    func.linkage = if rng.once_in(3) { Linkage::Visible } else { Linkage::Internal };
    func.attrs.noinline = rng.once_in(if returned.is_some() { 2 } else { 6 });
    let mut body = start(rng, features, module, known, &mut func);
    let entry = body.b.entry_block(&params);
    body.b.switch_to(entry);
    let values = body.b.func.dfg.block_params(entry).to_vec();
    for (value, passed) in values.iter().zip(&callee.params) {
        let area = |private| Area {
            base: *value,
            align: 16,
            space: Space::Generic,
            home: Space::Generic,
            size: LENT,
            private,
        };
        match passed {
            Passed::Value(_) => body.keep(*value),
            Passed::Pointer(ty) => {
                let space = ty.space().unwrap_or(Space::Generic);
                body.areas.push(Area { space, ..area(true) });
            }
            Passed::Copy(_) => body.areas.push(Area { home: Space::Local, ..area(true) }),
        }
    }
    if let Some(returned) = callee.returned {
        body.returned = values.get(returned.param).map(|pointer| body.b.byte_offset(*pointer, returned.offset as i64));
    }
    body.read_only();
    body.stack();
    if together {
        body.all_here();
        let thread = body.thread_number();
        body.tile(thread);
    }
    // Calls inside loops would multiply.
    body.control.loops = 1;
    body.outer_loops = 1;
    body.fuel = 2 + body.rng.below(FUNCTION) as u32;
    if recursive {
        recurse(&mut body, &callee, values.first().copied());
    }
    body.statements();
    body.leave();
    // Names are different.
    if module.add_func(func).is_ok() {
        facts.callees.push(callee);
    }
}

/// Returns at depth 0, else calls itself with less.
fn recurse(body: &mut Body<'_>, callee: &Callee, depth: Option<Value>) {
    let Some(depth) = depth else { return };
    let zero = body.int(Type::I32, 0);
    let done = body.icmp(IntCC::Sle, depth, zero);
    let (base, more) = (body.b.append_block(), body.b.append_block());
    body.b.br(done, (base, &[]), (more, &[]));
    body.b.switch_to(base);
    body.leave();
    body.b.switch_to(more);
    body.integer();
    let one = body.int(Type::I32, 1);
    let less = body.op(Opcode::Sub, &[depth, one]);
    let mut args = vec![less];
    for passed in callee.params.iter().skip(1) {
        args.push(match *passed {
            Passed::Value(ty) => body.operand(ty),
            // The same memory.
            Passed::Pointer(_) | Passed::Copy(_) => {
                let ty = if let Passed::Pointer(ty) = *passed { ty } else { Type::PTR };
                match body.areas.iter().find(|area| body.b.ty(area.base) == ty) {
                    Some(area) => area.base,
                    None => return,
                }
            }
        });
    }
    let inst = body.b.call(callee.func, &args, &callee.results);
    body.keep_results(inst);
}

/// The kernel; gives the types of its parameters after the buffers.
fn kernel(module: &mut Module, rng: &mut Rng, features: &Features, facts: &Facts, block: [u32; 3]) -> Vec<Passed> {
    let (ints, floats) = types(features);
    let plain = |ty| Param { ty: MemType::Value(ty), attrs: ParamAttrs { align: 16, ..ParamAttrs::default() } };
    let mut sig = Signature { params: vec![plain(Type::ptr(Space::Global)); 3], ret: None };
    if let Some(input) = sig.params.first_mut()
        && rng.once_in(2)
    {
        input.attrs.noalias = true;
        input.attrs.readonly = true;
    }
    if features.noalias {
        for buffer in sig.params.iter_mut().filter(|_| rng.once_in(2)) {
            buffer.attrs.noalias = true;
        }
    }
    let mut passed = Vec::new();
    for _ in 0..2 + rng.below(3) {
        let from = if rng.once_in(3) && !floats.is_empty() { &floats } else { &ints };
        let ty = rng.pick(from).copied().unwrap_or(Type::I32);
        sig.params.push(Param { ty: MemType::Value(ty), attrs: ParamAttrs::default() });
        passed.push(Passed::Value(ty));
    }
    if let Some(record) = facts.record.filter(|_| features.aggregates && features.memory) {
        let attrs = ParamAttrs { byval: Some(MemType::Agg(record)), align: 16, ..ParamAttrs::default() };
        sig.params.push(Param { ty: MemType::Value(Type::ptr(Space::Param)), attrs });
        passed.push(Passed::Copy(record));
    }
    let params = module.sig_params(&sig);
    let mut func = Function::new("main", FuncKind::Kernel, sig);
    if rng.once_in(2) {
        func.attrs.reqntid = Some(block);
    }
    let mut body = start(rng, features, module, facts, &mut func);
    let entry = body.b.entry_block(&params);
    body.b.switch_to(entry);
    let values = body.b.func.dfg.block_params(entry).to_vec();
    for value in &values {
        body.uniform.insert(*value);
    }
    let [input, output, cells, rest @ ..] = &values[..] else { return passed };
    for (value, passed) in rest.iter().zip(&passed) {
        if matches!(passed, Passed::Value(_)) {
            body.keep(*value);
        }
    }
    prologue(&mut body, [*input, *output, *cells]);
    if let Some((base, Passed::Copy(_))) = rest.last().copied().zip(passed.last().copied()) {
        body.areas.push(Area { base, align: 16, space: Space::Param, home: Space::Param, size: 32, private: false });
    }
    body.all_here();
    body.fuel = 6 + body.rng.below(KERNEL) as u32;
    body.statements();
    body.leave();
    // The name is new.
    let _ = module.add_func(func);
    passed
}

/// The kernel's memory and the first values in scope.
fn prologue(body: &mut Body<'_>, [input, output, cells]: [Value; 3]) {
    let thread = body.thread_number();
    let block = body.register("%ctaid.x", true);
    let threads = body.int(Type::I32, body.facts.threads.into());
    let before = body.op(Opcode::Mul, &[block, threads]);
    let number = body.op(Opcode::Add, &[before, thread]);
    body.keep(number);
    let results = body.element(output, number, RESULTS + SCRATCH);
    let own = |base, size| Area { base, align: 32, space: Space::Global, home: Space::Global, size, private: true };
    body.areas.push(own(results, RESULTS));
    let at = body.offset(results, RESULTS);
    if body.features.memory {
        body.areas.push(own(at, SCRATCH));
    }
    let read = Area { private: false, ..own(input, INPUT) };
    body.areas.push(read);
    body.read_only();
    body.cells = body.features.atomics.then_some(cells);
    // Something to start from.
    for ty in [Type::I32, Type::I32, Type::I64] {
        let at = body.element(input, thread, 8);
        let offset = body.rng.below(8) as u64 * 8;
        let at = body.offset(at, offset);
        let value = body.b.load(ty, at, MemAttrs::aligned(ty.size()));
        body.keep(value);
    }
    body.stack();
    body.tile(thread);
    if let Some(own) = body.facts.own {
        let base = body.b.global(own, 0, Type::ptr(Space::Shared));
        let base = body.element(base, thread, OWN_SHARED);
        let area = Area { base, align: 16, space: Space::Shared, home: Space::Shared, size: OWN_SHARED, private: true };
        body.fill(&area);
        body.areas.push(area);
    }
}

fn launch(rng: &mut Rng, facts: &Facts, block: [u32; 3], scalars: Vec<Passed>) -> (Launch, Vec<Buffer>) {
    let mut arguments: Vec<Argument> = (0..3).map(Argument::buffer).collect();
    for passed in scalars {
        let size = match passed {
            // As `Module::layout_as_passed` has it.
            Passed::Value(ty) if ty.is_vector() => ty.size().next_power_of_two(),
            Passed::Value(ty) => ty.size(),
            _ => 32,
        };
        let mut bytes: Vec<u8> = (0..size.div_ceil(4)).flat_map(|_| word(rng).to_le_bytes()).collect();
        bytes.truncate(size as usize);
        if let Passed::Value(ty) = passed {
            // Nothing stands above an integer's bits.
            let mut unused = ty.scalar_bits() as usize;
            for byte in &mut bytes {
                if unused < 8 {
                    *byte &= (1u8 << unused).wrapping_sub(1);
                }
                unused = unused.saturating_sub(8);
            }
        }
        arguments.push(Argument::Bytes(bytes));
    }
    let threads = (facts.threads * facts.blocks) as usize;
    let words = |rng: &mut Rng, bytes: usize| (0..bytes / 4).map(|_| word(rng)).collect::<Vec<u32>>();
    let buffers = vec![
        Buffer::words("input", words(rng, INPUT as usize)),
        Buffer::words("output", words(rng, threads * (RESULTS + SCRATCH) as usize)),
        Buffer::words("cells", words(rng, CELLS)),
    ];
    let launch = Launch { block, ..Launch::linear("main", facts.blocks, 1, arguments) };
    (launch, buffers)
}
