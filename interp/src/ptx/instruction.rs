//! An instruction as the families decode it.

use std::collections::HashMap;

use ptxc_ir::Space;
use ptxc_targets::RegType;

use super::operand::{Base, FRAME, Operand, Register, Slot, Symbol};
use super::program::Constant;
use super::types::{Class, Type, low_bits};

/// The constants of a function: their slots come after those of the registers.
#[derive(Debug)]
pub struct Constants {
    first: Slot,
    list: Vec<Constant>,
    known: HashMap<Constant, Slot>,
}

impl Constants {
    /// None yet; `registers` are the slots of registers.
    pub fn new(registers: u32) -> Constants {
        Constants { first: registers, list: Vec::new(), known: HashMap::new() }
    }

    /// The slot of a constant.
    pub fn slot(&mut self, constant: Constant) -> Slot {
        let next = self.first + self.list.len() as u32;
        let slot = *self.known.entry(constant).or_insert(next);
        if slot == next {
            self.list.push(constant);
        }
        slot
    }

    /// The values, by slot.
    pub fn into_list(self) -> Vec<Constant> {
        self.list
    }
}

/// An instruction with its operands.
pub struct Instruction<'a> {
    /// Pieces of the mnemonic in the specification's order.
    pub pieces: &'a [&'static str],
    /// Operands.
    pub operands: &'a [Operand],
    /// Where constants are put.
    pub constants: &'a mut Constants,
    /// It stands in a kernel: its `.param` space is the kernel's.
    pub kernel: bool,
    /// Positions of labels, and of the lists and prototypes that have a name.
    pub labels: &'a dyn Fn(&str) -> Option<Target>,
}

/// What a label names.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Target {
    /// A position.
    Position(u32),
    /// `.branchtargets`
    List(Vec<u32>),
    /// `.callprototype` or `.calltargets`
    Prototype,
}

/// The base register, or constant, of an address with what is added to it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Address {
    /// Slot of the base.
    pub slot: Slot,
    /// Bytes.
    pub offset: i64,
    /// The space of the variable, if it is one.
    pub space: Option<Space>,
}

impl Instruction<'_> {
    /// First piece of the mnemonic.
    pub fn head(&self) -> &'static str {
        self.pieces.first().copied().unwrap_or("")
    }

    /// The mnemonic has this piece.
    pub fn has(&self, piece: &str) -> bool {
        self.pieces.iter().skip(1).any(|p| *p == piece)
    }

    /// The first of these pieces that the mnemonic has.
    pub fn any<'p>(&self, pieces: &[&'p str]) -> Option<&'p str> {
        pieces.iter().find(|p| self.has(p)).copied()
    }

    /// The mnemonic.
    pub fn mnemonic(&self) -> String {
        self.pieces.join(".")
    }

    /// The types that the mnemonic names, in order.
    pub fn types(&self) -> Vec<Type> {
        self.pieces.iter().skip(1).filter_map(|p| Type::parse(p)).collect()
    }

    /// The last type that the mnemonic names.
    ///
    /// # Errors
    /// It names none.
    pub fn ty(&self) -> Result<Type, String> {
        self.pieces.iter().skip(1).rev().find_map(|p| Type::parse(p)).ok_or_else(|| "no type is named".to_string())
    }

    /// An operand.
    ///
    /// # Errors
    /// It is missing.
    pub fn operand(&self, index: usize) -> Result<&Operand, String> {
        self.operands.get(index).ok_or_else(|| "an operand is missing".to_string())
    }

    /// The slot of a constant.
    pub fn constant(&mut self, bits: u64) -> Slot {
        self.constants.slot(Constant::Bits(bits))
    }

    /// The first slot of an operand that is read, a constant being of a type. Registers of other sizes are taken as they
    /// are: what reads them looks only at its own bits.
    ///
    /// # Errors
    /// It is nothing that has a value.
    pub fn value(&mut self, operand: &Operand, ty: Type) -> Result<Slot, String> {
        let bits = match operand {
            Operand::Register(register) => return Ok(register.slot),
            Operand::Integer(value) if ty.class == Class::Predicate => u64::from(*value != 0),
            Operand::Integer(value) => {
                if ty.width() > 64 {
                    let (low, high) = (*value as u64, (*value >> 63) as u64);
                    return self.pair(low, high);
                }
                *value as u64 & low_bits(ty.width())
            }
            Operand::Single(bits) if ty.width() == 64 => f64::from(f32::from_bits(*bits)).to_bits(),
            Operand::Single(bits) => (*bits).into(),
            Operand::Double(bits) if ty.width() == 32 => (f64::from_bits(*bits) as f32).to_bits().into(),
            Operand::Double(bits) => *bits,
            Operand::Decimal(value) if ty.width() == 32 => (*value as f32).to_bits().into(),
            Operand::Decimal(value) => value.to_bits(),
            Operand::Address(symbol, offset) => return self.symbol(*symbol, *offset, false),
            _ => return Err("the operand has no value".to_string()),
        };
        Ok(self.constant(bits))
    }

    /// Two constants in neighbouring slots.
    fn pair(&mut self, low: u64, high: u64) -> Result<Slot, String> {
        let slot = self.constants.first + self.constants.list.len() as u32;
        self.constants.list.extend([Constant::Bits(low), Constant::Bits(high)]);
        Ok(slot)
    }

    /// The slot of the address of a variable of the module, a parameter of the kernel or a function.
    ///
    /// # Errors
    /// A variable on the stack has no constant address, unless it is where the frame begins.
    pub fn symbol(&mut self, symbol: Symbol, offset: i64, generic: bool) -> Result<Slot, String> {
        Ok(match symbol {
            Symbol::Variable(variable, _) => self.constants.slot(Constant::Address { variable, offset, generic }),
            Symbol::Parameter(at) => {
                self.constants.slot(Constant::Parameter { offset: at.wrapping_add_signed(offset), generic })
            }
            Symbol::Function(function) => self.constants.slot(Constant::Function(function)),
            Symbol::Frame(at) if at.wrapping_add_signed(offset) == 0 && !generic => FRAME,
            Symbol::Frame(_) => return Err("the address of a variable on the stack is no operand here".to_string()),
        })
    }

    /// [`Instruction::value`] of operand `index`.
    ///
    /// # Errors
    /// As there, or it is missing.
    pub fn source(&mut self, index: usize, ty: Type) -> Result<Slot, String> {
        let operand = self.operand(index)?.clone();
        self.value(&operand, ty)
    }

    /// The register that operand `index` is written to.
    ///
    /// # Errors
    /// It is no register.
    pub fn dest(&self, index: usize) -> Result<Register, String> {
        self.dest_or_sink(index)?.ok_or_else(|| "the result is not used".to_string())
    }

    /// The register that operand `index` is written to; `None` for `_`.
    ///
    /// # Errors
    /// It is no register.
    pub fn dest_or_sink(&self, index: usize) -> Result<Option<Register>, String> {
        written(self.operand(index)?)
    }

    /// Both halves of `a|b`, or only the first.
    ///
    /// # Errors
    /// They are no registers.
    pub fn dest_pair(&self, index: usize) -> Result<[Option<Register>; 2], String> {
        match self.operand(index)? {
            Operand::Pair(both) => Ok([written(&both[0])?, written(&both[1])?]),
            one => Ok([written(one)?, None]),
        }
    }

    /// The registers of a vector that is written, or of one register; `None` for `_`.
    ///
    /// # Errors
    /// They are no registers.
    pub fn dest_vector(&self, index: usize) -> Result<Vec<Option<Register>>, String> {
        match self.operand(index)? {
            Operand::Vector(elements) => elements.iter().map(written).collect(),
            one => Ok(vec![written(one)?]),
        }
    }

    /// The slots of a vector that is read, or of one register.
    ///
    /// # Errors
    /// They have no value.
    pub fn source_vector(&mut self, index: usize, ty: Type) -> Result<Vec<Slot>, String> {
        match self.operand(index)?.clone() {
            Operand::Vector(elements) => elements.iter().map(|e| self.value(e, ty)).collect(),
            one => Ok(vec![self.value(&one, ty)?]),
        }
    }

    /// A predicate that is read: its slot and whether it is negated.
    ///
    /// # Errors
    /// It is none.
    pub fn predicate(&mut self, index: usize) -> Result<(Slot, bool), String> {
        match self.operand(index)? {
            Operand::Register(register) if register.ty == RegType::Pred => Ok((register.slot, false)),
            Operand::Not(register) => Ok((register.slot, true)),
            Operand::Integer(value) => {
                let value = u64::from(*value != 0);
                Ok((self.constant(value), false))
            }
            _ => Err("the operand is no predicate".to_string()),
        }
    }

    /// An integer that is written out.
    ///
    /// # Errors
    /// It is none.
    pub fn immediate(&self, index: usize) -> Result<i64, String> {
        match self.operand(index)? {
            Operand::Integer(value) => Ok(*value),
            _ => Err("the operand is no constant".to_string()),
        }
    }

    /// The address in operand `index`.
    ///
    /// # Errors
    /// It is none.
    pub fn address(&mut self, index: usize) -> Result<Address, String> {
        match self.operand(index)?.clone() {
            Operand::Memory(base, offset, _) => self.base(base, offset),
            Operand::Address(symbol, offset) => self.base(Base::Symbol(symbol), offset),
            _ => Err("the operand is no address".to_string()),
        }
    }

    fn base(&mut self, base: Base, offset: i64) -> Result<Address, String> {
        Ok(match base {
            Base::Register(register) => Address { slot: register.slot, offset, space: None },
            Base::Absolute => Address { slot: self.constant(offset as u64), offset: 0, space: None },
            Base::Symbol(Symbol::Frame(at)) => {
                Address { slot: FRAME, offset: offset.wrapping_add(at as i64), space: Some(Space::Local) }
            }
            Base::Symbol(symbol) => {
                Address { slot: self.symbol(symbol, offset, false)?, offset: 0, space: Some(symbol.space()) }
            }
        })
    }

    /// The parts of an address after its base: coordinates and the like.
    ///
    /// # Errors
    /// It is no address.
    pub fn address_parts(&self, index: usize) -> Result<&[Operand], String> {
        match self.operand(index)? {
            Operand::Memory(_, _, parts) => Ok(parts),
            _ => Err("the operand is no address".to_string()),
        }
    }

    /// The space that the mnemonic names, or `otherwise`.
    pub fn space(&self, otherwise: Space) -> Space {
        for piece in self.pieces.iter().skip(1) {
            return match *piece {
                "global" => Space::Global,
                "shared" | "shared::cta" => Space::Shared,
                "shared::cluster" => Space::SharedCluster,
                "local" => Space::Local,
                "const" => Space::Const,
                "param" | "param::entry" | "param::func" if self.kernel || *piece == "param::entry" => Space::Param,
                "param" | "param::func" => Space::Local,
                _ => continue,
            };
        }
        otherwise
    }

    /// The position of a label.
    ///
    /// # Errors
    /// There is none.
    pub fn label(&self, index: usize) -> Result<Target, String> {
        match self.operand(index)? {
            Operand::Label(name) => (self.labels)(name).ok_or_else(|| format!("there is no label `{name}`")),
            _ => Err("the operand is no label".to_string()),
        }
    }
}

fn written(operand: &Operand) -> Result<Option<Register>, String> {
    match operand {
        Operand::Register(register) => Ok(Some(*register)),
        Operand::Sink => Ok(None),
        _ => Err("the result is no register".to_string()),
    }
}
