//! Control flow (PTX ISA 9.7.14) and what does nothing here (9.7.21).

use crate::machine::{Flow, Stop, call_through};
use crate::ptx::instruction::{Instruction, Target};
use crate::ptx::operand::{Operand, Symbol};
use crate::ptx::program::{CallSite, Operation, Passed};
use crate::ptx::types::Type;

/// Decodes the family.
pub fn decode(i: &mut Instruction<'_>) -> Result<Option<Operation>, String> {
    Ok(Some(match i.head() {
        "bra" => match i.label(0)? {
            Target::Position(to) => Operation::new(move |_| Ok(Flow::Goto(to))),
            _ => return Err("the target is no label".to_string()),
        },
        "brx" => {
            let index = i.source(0, Type::bits_of(32))?;
            let Target::List(list) = i.label(1)? else { return Err("the targets are no list".to_string()) };
            Operation::new(move |at| {
                let numbers = at.get(index);
                Flow::each(at.mask, |lane| {
                    let to = list.get(numbers[lane] as usize).copied();
                    to.ok_or_else(|| Stop::lane("the index is beyond the list of targets", lane))
                })
            })
        }
        "call" => call(i)?,
        "ret" => Operation::new(|_| Ok(Flow::Return)),
        "exit" => Operation::new(|_| Ok(Flow::Exit)),
        "trap" => Operation::new(|_| Err(Stop::new("trap"))),
        _ => Operation::compute(|_| {}),
    }))
}

/// `call (results), function, (arguments), prototype`: only the function must be there.
fn call(i: &mut Instruction<'_>) -> Result<Operation, String> {
    let operands = i.operands;
    let (results, rest) = match operands {
        [Operand::Group(results), rest @ ..] => (&results[..], rest),
        rest => (&[][..], rest),
    };
    let Some((callee, rest)) = rest.split_first() else { return Err("no function is called".to_string()) };
    let arguments = match rest {
        [Operand::Group(arguments), ..] => &arguments[..],
        _ => &[],
    };
    let list = |i: &mut Instruction<'_>, list: &[Operand]| -> Result<Vec<Passed>, String> {
        list.iter().map(|operand| passed(i, operand)).collect()
    };
    let site = CallSite { arguments: list(i, arguments)?, results: list(i, results)? };
    let mut operation = match callee {
        Operand::Address(Symbol::Function(index), _) => {
            let index = *index;
            Operation::new(move |at| Ok(Flow::Call(index, at.mask)))
        }
        Operand::Register(register) => {
            let slot = register.slot;
            Operation::new(move |at| {
                let (callee, same) = call_through(at.get(slot), at.mask)?;
                Ok(Flow::Call(callee, same))
            })
        }
        _ => return Err("what is called is no function".to_string()),
    };
    operation.call = Some(Box::new(site));
    Ok(operation)
}

fn passed(i: &mut Instruction<'_>, operand: &Operand) -> Result<Passed, String> {
    Ok(match operand {
        // Its size is that of the parameter it is passed to.
        Operand::Address(Symbol::Frame(at), offset) => Passed::Bytes(at.wrapping_add_signed(*offset), u64::MAX),
        Operand::Register(register) => Passed::Slot(register.slot, register.bits()),
        Operand::Single(_) => Passed::Slot(i.value(operand, Type::bits_of(32))?, 32),
        other => Passed::Slot(i.value(other, Type::bits_of(64))?, 64),
    })
}
