//! The stack (PTX ISA 9.7.19).

use crate::machine::Stop;
use crate::ptx::instruction::Instruction;
use crate::ptx::program::Operation;
use crate::ptx::types::low_bits;

/// Most bytes of one allocation.
const MOST: u64 = 1 << 24;

/// Decodes the family.
pub fn decode(i: &mut Instruction<'_>) -> Result<Option<Operation>, String> {
    let ty = i.ty()?;
    let all = low_bits(ty.width());
    Ok(Some(match i.head() {
        "alloca" => {
            let (d, size) = (i.dest(0)?.slot, i.source(1, ty)?);
            let align = if i.operands.len() > 2 { i.immediate(2)? as u64 } else { 8 };
            Operation::then(move |at| {
                for lane in at.lanes() {
                    let size = at.lane(size, lane) & all;
                    if size > MOST {
                        return Err(Stop::lane(format!("{size} bytes do not fit the stack"), lane));
                    }
                    let thread = at.who.first_thread as usize + lane;
                    let address = at.world.memory.push_local(at.world.team.slot, thread, size, align);
                    let address = address.ok_or_else(|| Stop::lane("there is no such thread", lane))?;
                    at.put(d, lane, address & all);
                }
                Ok(())
            })
        }
        "stacksave" => {
            let d = i.dest(0)?.slot;
            Operation::compute(move |at| {
                for lane in at.lanes() {
                    let thread = at.who.first_thread as usize + lane;
                    let height = at.world.memory.local_mark(at.world.team.slot, thread);
                    at.put(d, lane, height & all);
                }
            })
        }
        "stackrestore" => {
            let from = i.source(0, ty)?;
            Operation::compute(move |at| {
                for lane in at.lanes() {
                    let thread = at.who.first_thread as usize + lane;
                    let height = at.lane(from, lane) & all;
                    at.world.memory.pop_local(at.world.team.slot, thread, height);
                }
            })
        }
        _ => return Ok(None),
    }))
}
