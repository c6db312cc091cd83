//! Parts of vectors, structs and arrays.

use ptxc_ir::{Extra, Flags, Opcode, Type as IrType, Value};

use super::body::Writer;
use super::{Fault, Result};
use crate::model::{Instruction, Operand, ValueId};

impl Writer<'_, '_> {
    /// `extractelement`, `insertelement`, `shufflevector`, `extractvalue`, `insertvalue`.
    pub fn take_apart(&mut self, instruction: &Instruction, result: Option<ValueId>) -> Result<()> {
        let part = match *instruction {
            Instruction::ExtractElement { vector, index } => self.extract_element(vector, index)?,
            Instruction::InsertElement { vector, element, index } => self.insert_element(vector, element, index)?,
            Instruction::Shuffle { left, right, mask } => {
                let mask: Vec<i32> = self.body.words(mask).iter().map(|lane| *lane as i32).collect();
                self.shuffle(left, right, &mask)?
            }
            Instruction::ExtractValue { aggregate, path } => {
                let ty = self.type_of(aggregate)?;
                let (first, ty) = self.cx.path(ty, self.body.words(path))?;
                let len = self.cx.shape(ty)?.parts.len();
                let run = self.raw_parts(aggregate)?;
                let parts = run.range();
                let Some(parts) = self.parts.get(parts.start + first..parts.start + first + len) else {
                    return Err(Fault::new("an aggregate has fewer parts than its type"));
                };
                return self.finish(result, parts.to_vec());
            }
            Instruction::InsertValue { aggregate, value, path } => {
                let ty = self.type_of(aggregate)?;
                let (first, _) = self.cx.path(ty, self.body.words(path))?;
                let (whole, new) = (self.exact_parts(aggregate)?, self.exact_parts(value)?);
                let mut parts = self.parts[whole.range()].to_vec();
                let len = new.range().len();
                match parts.get_mut(first..first + len) {
                    Some(place) => place.copy_from_slice(&self.parts[new.range()]),
                    None => return Err(Fault::new("an aggregate has fewer parts than its type")),
                }
                return self.finish(result, parts);
            }
            _ => return Err(Fault::new("this instruction takes nothing apart")),
        };
        self.finish(result, vec![part])
    }

    /// An index of a vector as the IR wants it; `None` when it is a constant out of range.
    fn lane(&mut self, index: Operand, lanes: u32) -> Result<Option<Value>> {
        if let Some(number) = self.number(index) {
            let bits = match self.cx.source.types.get(self.type_of(index)?) {
                crate::model::Type::Integer(bits) => bits,
                _ => 64,
            };
            let lane = super::constants::unsigned(number, bits);
            let inside = u32::try_from(lane).ok().filter(|lane| *lane < lanes);
            return Ok(inside.map(|lane| self.b.iconst(IrType::I32, i64::from(lane))));
        }
        let index = self.value(index)?;
        Ok(Some(self.resize(index, IrType::I32, false)))
    }

    /// One lane.
    pub fn extract_element(&mut self, vector: Operand, index: Operand) -> Result<Value> {
        let vector = self.value(vector)?;
        let ty = self.b.ty(vector);
        let Some(lane) = self.lane(index, ty.lanes())? else { return Ok(self.b.func.dfg.poison(ty.scalar())) };
        Ok(self.op(Opcode::Extract, Flags::EMPTY, ty, &[vector, lane]))
    }

    /// A vector with one lane changed.
    pub fn insert_element(&mut self, vector: Operand, element: Operand, index: Operand) -> Result<Value> {
        let (vector, element) = (self.value(vector)?, self.value(element)?);
        let ty = self.b.ty(vector);
        let Some(lane) = self.lane(index, ty.lanes())? else { return Ok(self.b.func.dfg.poison(ty)) };
        Ok(self.op(Opcode::Insert, Flags::EMPTY, ty, &[vector, element, lane]))
    }

    /// Lanes of two vectors; negative lanes are poison.
    pub fn shuffle(&mut self, left: Operand, right: Operand, mask: &[i32]) -> Result<Value> {
        let (left, right) = (self.value(left)?, self.value(right)?);
        self.permute(left, right, mask)
    }

    /// Lanes of two vectors of values.
    pub fn permute(&mut self, left: Value, right: Value, mask: &[i32]) -> Result<Value> {
        let ty = self.b.ty(left);
        let lanes = 2 * ty.lanes() as i32;
        let mask: Vec<i32> = mask.iter().map(|lane| if (0..lanes).contains(lane) { *lane } else { -1 }).collect();
        let count = u32::try_from(mask.len()).ok().filter(|n| (1..=ptxc_ir::types::MAX_LANES).contains(n));
        let Some(count) = count else { return Err(Fault::new(format!("a shuffle of {} lanes", mask.len()))) };
        let result = ty.scalar().with_lanes(count);
        let mask = self.b.func.dfg.masks.push(mask);
        let inst =
            self.b.inst_with_results(Opcode::Shuffle, Flags::EMPTY, ty, &[left, right], Extra::Mask(mask), &[result]);
        Ok(self.b.func.dfg.result(inst, 0))
    }

    /// The lanes of a vector, or the scalar itself.
    pub fn lanes(&mut self, value: Value) -> Vec<Value> {
        let ty = self.b.ty(value);
        if !ty.is_vector() {
            return vec![value];
        }
        (0..ty.lanes()).map(|lane| self.b.extract(value, lane)).collect()
    }
}
