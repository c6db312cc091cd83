//! Instructions that reach memory.

use super::constants::Class;
use super::instructions::Read;
use super::lexer::Token;
use super::parser::{Parser, Result};
use crate::model::{Access, Alignment, Instruction, Name, Operand, Ordering, RmwOp, Type, TypeId};

impl Parser<'_> {
    /// `, align N` if it is next; leaves a comma before metadata taken.
    fn align_behind(&mut self) -> Result<Alignment> {
        let mut align = Alignment::NONE;
        while self.at_more() {
            self.bump();
            self.expect_word("align")?;
            align = Alignment::from_bytes(self.alignment()?).unwrap_or_default();
        }
        Ok(align)
    }

    /// `syncscope("name")` or `singlethread` if it is next.
    fn scope(&mut self) -> Result<Name> {
        if self.eat_word(b"singlethread") {
            return Ok(self.module.names.intern(b"singlethread"));
        }
        if !self.eat_word(b"syncscope") {
            return Ok(self.common.no_name);
        }
        self.expect(b'(')?;
        let name = self.string("a scope")?;
        self.expect(b')')?;
        Ok(name)
    }

    fn ordering(&mut self) -> Result<Ordering> {
        self.word_of("an ordering", |word| {
            Ordering::from_word(word).filter(|ordering| *ordering != Ordering::NotAtomic)
        })
    }

    fn pointer(&mut self, mnemonic: Token) -> Result<Operand> {
        let (ty, address) = self.typed_operand()?;
        self.check_pointer(ty, mnemonic)?;
        Ok(address)
    }

    fn check_pointer(&self, ty: TypeId, mnemonic: Token) -> Result<()> {
        if matches!(self.module.types.get(ty), Type::Pointer(_)) {
            return Ok(());
        }
        let message = format!("`{}` takes an address, not {}", self.shown(mnemonic), self.type_name(ty));
        Err(self.error_at(mnemonic, message))
    }

    pub(super) fn load(&mut self, mnemonic: Token) -> Result<Read> {
        let atomic = self.eat_word(b"atomic");
        let volatile = self.eat_word(b"volatile");
        let ty = self.value_type()?;
        self.expect(b',')?;
        let address = self.pointer(mnemonic)?;
        let access = self.access(atomic, volatile)?;
        Ok((Instruction::Load { address, access }, ty))
    }

    /// Scope, ordering and alignment behind the operands of a load or store.
    fn access(&mut self, atomic: bool, volatile: bool) -> Result<Access> {
        let (scope, ordering) = if atomic {
            let scope = self.scope()?;
            (scope, self.ordering()?)
        } else {
            (self.common.no_name, Ordering::NotAtomic)
        };
        Ok(Access { align: self.align_behind()?, volatile, ordering, scope })
    }

    pub(super) fn store(&mut self, mnemonic: Token) -> Result<Read> {
        let atomic = self.eat_word(b"atomic");
        let volatile = self.eat_word(b"volatile");
        let (_, value) = self.typed_operand()?;
        self.expect(b',')?;
        let address = self.pointer(mnemonic)?;
        let access = self.access(atomic, volatile)?;
        Ok((Instruction::Store { value, address, access }, self.common.void))
    }

    pub(super) fn rmw(&mut self, mnemonic: Token) -> Result<Read> {
        let volatile = self.eat_word(b"volatile");
        let op = self.word_of("an atomic operation", RmwOp::from_word)?;
        let address = self.pointer(mnemonic)?;
        let (ty, value) = self.next_operand()?;
        let access = self.access(true, volatile)?;
        Ok((Instruction::Rmw { op, address, value, access }, ty))
    }

    pub(super) fn compare_exchange(&mut self, mnemonic: Token) -> Result<Read> {
        let weak = self.eat_word(b"weak");
        let volatile = self.eat_word(b"volatile");
        let address = self.pointer(mnemonic)?;
        let (ty, expected) = self.next_operand()?;
        let (other, new) = self.next_operand()?;
        self.check_type(other, ty, mnemonic)?;
        self.check_class(ty, Class::IntegerOrPointer, mnemonic)?;
        let scope = self.scope()?;
        let ordering = self.ordering()?;
        let failure = self.ordering()?;
        let access = Access { align: self.align_behind()?, volatile, ordering, scope };
        let result = self.module.types.structure(false, &[ty, self.common.i1]);
        Ok((Instruction::CompareExchange { weak, failure, address, expected, new, access }, result))
    }

    pub(super) fn fence(&mut self) -> Result<Read> {
        let scope = self.scope()?;
        let ordering = self.ordering()?;
        Ok((Instruction::Fence { ordering, scope }, self.common.void))
    }

    pub(super) fn alloca(&mut self, mnemonic: Token) -> Result<Read> {
        self.eat_word(b"inalloca");
        self.eat_word(b"swifterror");
        let ty = self.value_type()?;
        let one = self.recent_integer(self.common.i32, 1);
        let (mut count, mut align, mut space) = (Operand::from(one), Alignment::NONE, 0);
        while self.at_more() {
            self.bump();
            if self.eat_word(b"align") {
                align = Alignment::from_bytes(self.alignment()?).unwrap_or_default();
            } else if let Some(found) = self.address_space()? {
                space = found;
            } else {
                let (count_type, operand) = self.typed_operand()?;
                self.check_class(count_type, Class::Integer, mnemonic)?;
                count = operand;
            }
        }
        Ok((Instruction::Alloca { ty, count, align }, self.pointer_type(space)))
    }

    pub(super) fn element_pointer(&mut self, mnemonic: Token) -> Result<Read> {
        let flags = self.flags();
        let element = self.value_type()?;
        let (mut result, base) = self.next_operand()?;
        self.check_class(result, Class::Pointer, mnemonic)?;
        let mut operands = self.take_scratch();
        operands.push(base);
        while self.at_more() {
            let (ty, index) = self.next_operand()?;
            self.check_class(ty, Class::Integer, mnemonic)?;
            // A vector of indices gives a vector of addresses.
            if let Type::Vector { len, scalable, .. } = self.module.types.get(ty)
                && !matches!(self.module.types.get(result), Type::Vector { .. })
            {
                result = self.module.types.intern(Type::Vector { len, scalable, element: result });
            }
            operands.push(index);
        }
        let list = self.locals.body.add_operands(&operands);
        self.give_scratch(operands);
        Ok((Instruction::ElementPointer { flags, element, operands: list }, result))
    }
}
