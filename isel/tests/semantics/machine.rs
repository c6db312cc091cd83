//! A small evaluator of the IR for one thread: enough to run a function before and after legalization and compare.

use std::collections::HashMap;

use ptxc_ir::{
    AtomicOp, Block, BlockCall, ConstData, Extra, Flags, FuncId, Function, Inst, Module, Opcode, Scalar, Shape,
    TargetOp, TargetOperand, Type, Value,
};

use super::{floats, integers};

/// Lanes of a value; `None` is poison.
pub type Lanes = Vec<Option<u128>>;

/// Where memory begins.
pub const BASE: u64 = 0x1000;

pub struct Machine<'m> {
    pub module: &'m Module,
    pub memory: Vec<u8>,
    carry: bool,
    steps: u32,
    /// Poison is some number, as it is in a machine, instead of spreading.
    numbers_only: bool,
}

struct Frame<'f> {
    func: &'f Function,
    values: HashMap<Value, Lanes>,
}

enum Next {
    Go(Block, Vec<Lanes>),
    Return(Vec<Lanes>),
}

impl<'m> Machine<'m> {
    pub fn new(module: &'m Module, memory: Vec<u8>, numbers_only: bool) -> Machine<'m> {
        Machine { module, memory, carry: false, steps: 0, numbers_only }
    }

    pub fn call(&mut self, id: FuncId, args: Vec<Lanes>) -> Result<Vec<Lanes>, String> {
        let func = &self.module.funcs[id];
        let mut frame = Frame { func, values: HashMap::new() };
        let mut block = func.layout.entry().ok_or("no body")?;
        let mut incoming = args;
        loop {
            for (param, value) in func.dfg.block_params(block).iter().zip(&incoming) {
                frame.values.insert(*param, value.clone());
            }
            match self.block(&mut frame, block)? {
                Next::Go(to, args) => (block, incoming) = (to, args),
                Next::Return(values) => return Ok(values),
            }
        }
    }

    fn block(&mut self, frame: &mut Frame, block: Block) -> Result<Next, String> {
        for inst in frame.func.layout.insts(block) {
            self.steps += 1;
            if self.steps > 2_000_000 {
                return Err("too many steps".into());
            }
            let data = &frame.func.dfg.insts[inst];
            let args: Vec<Lanes> = frame.func.dfg.args(inst).iter().map(|v| frame.get(*v)).collect();
            let go = |frame: &Frame, t: &BlockCall| {
                let args = t.args.as_slice(&frame.func.dfg.pool).iter().map(|v| frame.get(*v)).collect();
                Next::Go(t.block, args)
            };
            match (&data.extra, data.op) {
                (Extra::Jump(target), _) => return Ok(go(frame, target)),
                (Extra::Branch { then, other, .. }, _) => {
                    let taken = args[0][0].ok_or("branch on poison")? != 0;
                    return Ok(go(frame, if taken { then } else { other }));
                }
                (Extra::Switch(id), _) => {
                    let table = &frame.func.dfg.switches[*id];
                    let key = args[0][0].ok_or("switch on poison")?;
                    let target = table.cases.iter().find(|c| c.0 == key).map_or(&table.default, |c| &c.1);
                    return Ok(go(frame, target));
                }
                (_, Opcode::Ret) => return Ok(Next::Return(args)),
                _ => {}
            }
            let args = if self.numbers_only { args.into_iter().map(known).collect() } else { args };
            let results = self.inst(frame, inst, &args)?;
            for (value, mut lanes) in frame.func.dfg.results(inst).zip(results) {
                if self.numbers_only {
                    let mask = integers::mask(frame.func.dfg.ty(value).scalar_bits());
                    lanes.iter_mut().for_each(|l| *l = l.or(Some(0x5bd1_e995_9d1c_37f5_a5a5_c3c3_9669_7e81 & mask)));
                }
                frame.values.insert(value, lanes);
            }
        }
        Err("block without end".into())
    }

    fn inst(&mut self, frame: &Frame, inst: Inst, args: &[Lanes]) -> Result<Vec<Lanes>, String> {
        let data = &frame.func.dfg.insts[inst];
        let ty = data.ty;
        let from = frame.func.dfg.args(inst).first().map_or(ty, |v| frame.func.dfg.ty(*v));
        Ok(match (data.op.shape(), &data.extra) {
            (Shape::Unary, _) if data.op == Opcode::Freeze => {
                vec![args[0].iter().map(|l| Some(l.unwrap_or(0))).collect()]
            }
            (Shape::Unary | Shape::Binary | Shape::Ternary, _) => {
                vec![each(args, |lane| arithmetic(data.op, data.flags, ty, lane))]
            }
            (Shape::BinaryOverflow, _) => {
                let pairs: Vec<Option<(u128, bool)>> = (0..args[0].len())
                    .map(|i| Some(integers::overflow(data.op, ty.scalar_bits(), args[0][i]?, args[1][i]?)))
                    .collect();
                vec![
                    pairs.iter().map(|p| p.map(|p| p.0)).collect(),
                    pairs.iter().map(|p| p.map(|p| u128::from(p.1))).collect(),
                ]
            }
            (Shape::FloatClass, Extra::Imm(mask)) => {
                let kind = ty.float_kind().ok_or("class of no float")?;
                vec![each(args, |lane| Some((*mask as u128 >> floats::class(kind, lane[0])) & 1))]
            }
            (Shape::IntCompare, Extra::IntCC(cc)) => {
                vec![each(args, |lane| Some(integers::compare(*cc, ty.scalar_bits(), lane[0], lane[1]).into()))]
            }
            (Shape::FloatCompare, Extra::FloatCC(cc)) => {
                let kind = ty.float_kind().ok_or("comparison of no float")?;
                vec![each(args, |lane| Some(floats::compare(*cc, kind, lane[0], lane[1]).into()))]
            }
            (Shape::Convert, _) if data.op == Opcode::Bitcast => vec![bitcast(from, ty, &args[0])],
            (Shape::Convert, _) => vec![each(args, |lane| convert(data.op, data.flags, from, ty, lane[0]))],
            (Shape::Select, _) => {
                let cond = |i: usize| args[0][if args[0].len() == 1 { 0 } else { i }];
                vec![(0..args[1].len()).map(|i| if cond(i)? != 0 { args[1][i] } else { args[2][i] }).collect()]
            }
            (Shape::BuildVector, _) => vec![args.iter().map(|l| l[0]).collect()],
            (Shape::Splat, _) => vec![vec![args[0][0]; ty.lanes() as usize]],
            (Shape::Extract, _) => vec![vec![args[1][0].and_then(|i| args[0].get(i as usize).copied().flatten())]],
            (Shape::Insert, _) => {
                let mut lanes = args[0].clone();
                match args[2][0].and_then(|i| lanes.get_mut(i as usize)) {
                    Some(lane) => *lane = args[1][0],
                    None => lanes.iter_mut().for_each(|l| *l = None),
                }
                vec![lanes]
            }
            (Shape::Shuffle, Extra::Mask(mask)) => {
                let all: Lanes = args[0].iter().chain(&args[1]).copied().collect();
                vec![frame.func.dfg.masks[*mask].iter().map(|i| all.get(*i as usize).copied().flatten()).collect()]
            }
            (Shape::Reduce, _) => vec![vec![reduce(data.op, data.flags, ty, &args[0])]],
            (Shape::Load, _) => vec![self.load(ty, args[0][0].ok_or("load from poison")?)?],
            (Shape::Store, _) => {
                self.store(ty, args[1][0].ok_or("store to poison")?, &args[0])?;
                vec![]
            }
            (Shape::AtomicRmw, Extra::Rmw(op, _)) => {
                let at = args[0][0].ok_or("atomic on poison")?;
                let old = self.load(ty, at)?;
                let new = (0..old.len()).map(|i| atomic(*op, ty, old[i]?, args[1][i]?)).collect::<Lanes>();
                self.store(ty, at, &new)?;
                vec![old]
            }
            (Shape::Cmpxchg, _) => {
                let at = args[0][0].ok_or("atomic on poison")?;
                let old = self.load(ty, at)?;
                let same = old == args[1];
                if same {
                    self.store(ty, at, &args[2])?;
                }
                vec![old, vec![Some(same.into())]]
            }
            (Shape::Gep, Extra::Gep(over)) => {
                let stride = u128::from(self.module.layout_of(*over).size);
                let index_ty = frame.func.dfg.ty(frame.func.dfg.args(inst)[1]);
                let index = args[1][0].map(|i| integers::signed(i, index_ty.scalar_bits()) as u128);
                let to = |base: u128| Some(base.wrapping_add(index?.wrapping_mul(stride)) & integers::mask(64));
                vec![vec![args[0][0].and_then(to)]]
            }
            (Shape::Call, Extra::Call(callee)) => self.call(*callee, args.to_vec())?,
            (Shape::MemCopy, _) => {
                let (dst, src, n) = (args[0][0], args[1][0], args[2][0]);
                let (dst, src, n) = (dst.ok_or("poison")?, src.ok_or("poison")?, n.ok_or("poison")? as usize);
                let (dst, src) = (self.at(dst, n)?, self.at(src, n)?);
                self.memory.copy_within(src..src + n, dst);
                vec![]
            }
            (Shape::MemSet, _) => {
                let (dst, byte, n) = (args[0][0], args[1][0], args[2][0]);
                let (byte, n) = (byte.ok_or("poison")? as u8, n.ok_or("poison")? as usize);
                let dst = self.at(dst.ok_or("poison")?, n)?;
                self.memory[dst..dst + n].fill(byte);
                vec![]
            }
            (Shape::Target, Extra::Target(id)) => vec![vec![self.target(&frame.func.dfg.target_ops[*id], args)?]],
            _ => return Err(format!("cannot evaluate {}", data.op.text())),
        })
    }

    fn at(&self, address: u128, size: usize) -> Result<usize, String> {
        let offset = (address as u64).wrapping_sub(BASE) as usize;
        let fits = offset.checked_add(size).is_some_and(|end| end <= self.memory.len());
        if fits { Ok(offset) } else { Err(format!("access of {size} bytes at {address:#x}")) }
    }

    fn load(&self, ty: Type, address: u128) -> Result<Lanes, String> {
        let at = self.at(address, ty.size() as usize)?;
        let bytes = &self.memory[at..at + ty.size() as usize];
        let number = |bytes: &[u8]| bytes.iter().rev().fold(0u128, |acc, b| acc << 8 | u128::from(*b));
        if ty.is_vector() && ty.scalar() == Type::I1 {
            return Ok((0..ty.lanes() as usize).map(|i| Some(u128::from(bytes[i / 8] >> (i % 8) & 1))).collect());
        }
        let size = ty.scalar().size() as usize;
        Ok(bytes.chunks(size).map(|lane| Some(number(lane) & integers::mask(ty.scalar_bits()))).collect())
    }

    fn store(&mut self, ty: Type, address: u128, lanes: &Lanes) -> Result<(), String> {
        let at = self.at(address, ty.size() as usize)?;
        if ty.is_vector() && ty.scalar() == Type::I1 {
            self.memory[at..at + ty.size() as usize].fill(0);
            for (i, lane) in lanes.iter().enumerate() {
                self.memory[at + i / 8] |= (lane.unwrap_or(0) as u8) << (i % 8);
            }
            return Ok(());
        }
        let size = ty.scalar().size() as usize;
        for (i, lane) in lanes.iter().enumerate() {
            let bytes = lane.unwrap_or(0).to_le_bytes();
            self.memory[at + i * size..at + (i + 1) * size].copy_from_slice(&bytes[..size]);
        }
        Ok(())
    }

    /// The target operations that legalization writes.
    fn target(&mut self, op: &TargetOp, args: &[Lanes]) -> Result<Option<u128>, String> {
        let TargetOp::Known { toks, operands, .. } = op else { return Err("opaque".into()) };
        let text: Vec<&str> = toks.iter().map(|t| t.text()).collect();
        let read = operands.iter().filter_map(|operand| match operand {
            TargetOperand::Arg(index) => Some(args[*index as usize][0]),
            TargetOperand::Imm(number) => Some(Some(*number as u128)),
            _ => None,
        });
        let Some(values) = read.collect::<Option<Vec<u128>>>() else { return Ok(None) };
        let sum = |a: u128, b: u128, c: bool| a + b + u128::from(c);
        let flipped = |b: u128| !b & integers::mask(64);
        Ok(Some(match text[..] {
            ["add", "cc", "u64"] => self.with_carry(sum(values[0], values[1], false)),
            ["addc", "u64"] => sum(values[0], values[1], self.carry) & integers::mask(64),
            ["sub", "cc", "u64"] => self.with_carry(sum(values[0], flipped(values[1]), true)),
            ["subc", "u64"] => sum(values[0], flipped(values[1]), self.carry) & integers::mask(64),
            ["prmt", "b32"] => {
                let source = values[0] | values[1] << 32;
                (0..4).fold(0, |acc, i| acc | (source >> (8 * (values[2] >> (4 * i) & 7)) & 0xff) << (8 * i))
            }
            ["prmt", "b32", "f4e"] => {
                let source = values[0] | values[1] << 32;
                source >> (8 * (values[2] & 3)) & integers::mask(32)
            }
            ["cvt", "pack", "sat", to, "s32"] | ["cvt", "pack", "sat", to, "s32", "b32"] => {
                let width = to[1..].parse::<u32>().map_err(|e| e.to_string())?;
                let (least, most) = match to.starts_with('s') {
                    true => (-(1i64 << (width - 1)), (1i64 << (width - 1)) - 1),
                    false => (0, (1i64 << width) - 1),
                };
                let part = |value: u128| i64::from(value as i32).clamp(least, most) as u128 & integers::mask(width);
                let above = values.get(2).map_or(0, |third| third << (2 * width)) & integers::mask(32);
                above | part(values[0]) << width | part(values[1])
            }
            ["cvt", round, int, float] => {
                let flags = match round {
                    "rni" => Flags::RN,
                    "rmi" => Flags::RM,
                    "rpi" => Flags::RP,
                    _ => Flags::RZ,
                };
                let kind = ptxc_ir::FloatKind::ALL.into_iter().find(|k| k.name() == float).ok_or("format")?;
                let width = int[1..].parse::<u32>().map_err(|e| e.to_string())?;
                return Ok(floats::to_int(flags, kind, values[0], width, int.starts_with('s'), true));
            }
            _ => return Err(format!("cannot evaluate ptx.{}", text.join("."))),
        }))
    }

    fn with_carry(&mut self, sum: u128) -> u128 {
        self.carry = sum >> 64 != 0;
        sum & integers::mask(64)
    }
}

impl Frame<'_> {
    fn get(&self, value: Value) -> Lanes {
        let value = self.func.dfg.resolve(value);
        let ty = self.func.dfg.ty(value);
        match self.func.dfg.as_const(value) {
            Some(ConstData::Bits(bits)) => vec![Some(*bits)],
            Some(ConstData::Poison) => vec![None; ty.lanes() as usize],
            Some(ConstData::Vector(lanes)) => lanes.iter().map(|l| self.get(*l)[0]).collect(),
            Some(_) => panic!("address of a symbol"),
            None => self.values.get(&value).unwrap_or_else(|| panic!("{value} has no value")).clone(),
        }
    }
}

fn known(lanes: Lanes) -> Lanes {
    lanes.into_iter().map(|l| l.or(Some(0))).collect()
}

/// Applies `f` to every lane whose operands are all defined.
fn each(args: &[Lanes], f: impl Fn(&[u128]) -> Option<u128>) -> Lanes {
    (0..args[0].len())
        .map(|i| {
            let lane: Option<Vec<u128>> = args.iter().map(|lanes| lanes[i]).collect();
            f(&lane?)
        })
        .collect()
}

fn arithmetic(op: Opcode, flags: Flags, ty: Type, lane: &[u128]) -> Option<u128> {
    match (ty.float_kind(), lane) {
        (Some(kind), [a]) => Some(floats::unary(op, flags, kind, *a)),
        (Some(kind), [a, b]) => Some(floats::binary(op, flags, kind, *a, *b)),
        (Some(kind), [a, b, c]) => Some(floats::fma(flags, kind, *a, *b, *c)),
        (None, [a]) => Some(integers::unary(op, ty.scalar_bits(), *a)),
        (None, [a, b]) => integers::binary(op, ty.scalar_bits(), *a, *b),
        (None, [a, b, c]) => Some(integers::funnel(op, ty.scalar_bits(), *a, *b, *c)),
        _ => None,
    }
}

fn convert(op: Opcode, flags: Flags, from: Type, to: Type, a: u128) -> Option<u128> {
    let (n, m) = (from.scalar_bits(), to.scalar_bits());
    let (f, t) = (from.float_kind(), to.float_kind());
    match op {
        Opcode::Trunc | Opcode::Zext | Opcode::Ptrtoint | Opcode::Inttoptr => Some(a & integers::mask(m)),
        Opcode::Sext => Some(integers::signed(a, n) as u128 & integers::mask(m)),
        Opcode::Fptrunc | Opcode::Fpext => Some(floats::convert(flags, f?, t?, a)),
        Opcode::Fptosi => floats::to_int(flags, f?, a, m, true, false),
        Opcode::Fptoui => floats::to_int(flags, f?, a, m, false, false),
        Opcode::FptosiSat => floats::to_int(flags, f?, a, m, true, true),
        Opcode::FptouiSat => floats::to_int(flags, f?, a, m, false, true),
        Opcode::Sitofp => Some(floats::from_int(flags, t?, a, n, true)),
        Opcode::Uitofp => Some(floats::from_int(flags, t?, a, n, false)),
        _ => Some(a),
    }
}

fn bitcast(from: Type, to: Type, lanes: &Lanes) -> Lanes {
    let (n, m) = (from.scalar_bits() as usize, to.scalar_bits() as usize);
    let bits: Vec<Option<bool>> =
        lanes.iter().flat_map(|lane| (0..n).map(move |i| lane.map(|l| l >> i & 1 == 1))).collect();
    bits.chunks(m)
        .map(|lane| lane.iter().enumerate().try_fold(0u128, |acc, (i, bit)| Some(acc | u128::from((*bit)?) << i)))
        .collect()
}

fn reduce(op: Opcode, flags: Flags, ty: Type, lanes: &Lanes) -> Option<u128> {
    use Opcode::*;
    let binary = match op {
        ReduceAdd => Add,
        ReduceMul => Mul,
        ReduceAnd => And,
        ReduceOr => Or,
        ReduceXor => Xor,
        ReduceSmin => Smin,
        ReduceSmax => Smax,
        ReduceUmin => Umin,
        ReduceUmax => Umax,
        ReduceFadd => Fadd,
        ReduceFmul => Fmul,
        ReduceFmin => Fmin,
        ReduceFmax => Fmax,
        ReduceFminimum => Fminimum,
        _ => Fmaximum,
    };
    let mut acc = lanes[0]?;
    for lane in &lanes[1..] {
        acc = arithmetic(binary, flags, ty.scalar(), &[acc, (*lane)?])?;
    }
    Some(acc)
}

fn atomic(op: AtomicOp, ty: Type, old: u128, value: u128) -> Option<u128> {
    let w = ty.scalar_bits();
    let plain = match op {
        AtomicOp::Xchg => return Some(value),
        AtomicOp::Nand => return Some(!(old & value) & integers::mask(w)),
        AtomicOp::UincWrap => return Some(if old >= value { 0 } else { old + 1 }),
        AtomicOp::UdecWrap => return Some(if old == 0 || old > value { value } else { old - 1 }),
        AtomicOp::Add => Opcode::Add,
        AtomicOp::Sub => Opcode::Sub,
        AtomicOp::And => Opcode::And,
        AtomicOp::Or => Opcode::Or,
        AtomicOp::Xor => Opcode::Xor,
        AtomicOp::Smax => Opcode::Smax,
        AtomicOp::Smin => Opcode::Smin,
        AtomicOp::Umax => Opcode::Umax,
        AtomicOp::Umin => Opcode::Umin,
        AtomicOp::Fadd => Opcode::Fadd,
        AtomicOp::Fsub => Opcode::Fsub,
        AtomicOp::Fmax => Opcode::Fmax,
        AtomicOp::Fmin => Opcode::Fmin,
    };
    arithmetic(plain, Flags::EMPTY, ty.scalar(), &[old, value])
}

/// True when the scalar of a type is a NaN pattern that any NaN may replace.
pub fn is_nan(ty: Type, bits: u128) -> bool {
    match ty.kind() {
        Some(Scalar::Float(kind)) if !matches!(kind, ptxc_ir::FloatKind::Tf32) => floats::is_nan(kind, bits),
        _ => false,
    }
}
