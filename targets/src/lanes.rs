//! The lanes of a register that a video instruction takes (PTX ISA 9.7.20), by number.

use crate::form::Selector;
use crate::statement::selector;
use std::fmt;

/// `b0`, `h1`, `b3210` and their like: bytes or halves of a register, in the order written.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Lanes {
    /// The letter, then the digits; zero where there are fewer than four.
    text: [u8; 5],
}

impl Lanes {
    /// The lanes spelled `text`, without a dot; `None` where no instruction has such a selector.
    pub fn from_text(text: &str) -> Option<Lanes> {
        selector(text)?;
        let mut lanes = Lanes { text: [0; 5] };
        lanes.text.get_mut(..text.len())?.copy_from_slice(text.as_bytes());
        Some(lanes)
    }

    /// The selector as PTX spells it, without a dot.
    pub fn text(&self) -> &str {
        let end = self.text.iter().position(|byte| *byte == 0).unwrap_or(self.text.len());
        self.text.get(..end).and_then(|bytes| std::str::from_utf8(bytes).ok()).unwrap_or("")
    }

    /// What operand checks ask of it.
    pub fn selector(&self) -> Selector {
        selector(self.text()).unwrap_or(Selector::Byte(0))
    }
}

impl fmt::Display for Lanes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors_print_back() {
        for text in ["b0", "b3", "h1", "h10", "h32", "b3210", "b7654"] {
            assert_eq!(Lanes::from_text(text).unwrap().text(), text);
        }
        for text in ["", "b", "b9", "h4", "c1", "b32109", "bx"] {
            assert_eq!(Lanes::from_text(text), None, "{text}");
        }
    }
}
