//! What can be said about all matches of an expression without matching it.

use super::syntax::{ByteSet, Node};

/// Facts about every match.
pub struct Requirements {
    /// Text that it contains; empty if none is known.
    pub literal: Vec<u8>,
    /// The bytes it can begin with; `None` if it can be empty.
    pub first: Option<ByteSet>,
    /// Whether it cannot contain a newline.
    pub within_line: bool,
}

impl Requirements {
    /// Derives the facts.
    pub fn of(root: &Node) -> Self {
        let mut runs = Runs::default();
        runs.walk(root);
        runs.end();
        let mut first = ByteSet::default();
        let can_be_empty = first_bytes(root, &mut first);
        Self { literal: runs.longest, first: (!can_be_empty).then_some(first), within_line: !may_contain_newline(root) }
    }
}

/// Finds the longest run of fixed bytes.
#[derive(Default)]
struct Runs {
    current: Vec<u8>,
    longest: Vec<u8>,
}

impl Runs {
    fn end(&mut self) {
        if self.current.len() > self.longest.len() {
            std::mem::swap(&mut self.current, &mut self.longest);
        }
        self.current.clear();
    }

    fn walk(&mut self, node: &Node) {
        match node {
            Node::Byte(byte) => self.current.push(*byte),
            Node::Group(_, inner) => self.walk(inner),
            Node::Concat(parts) => parts.iter().for_each(|part| self.walk(part)),
            // These take no room, so what is around them is still together.
            Node::Empty | Node::LineStart | Node::LineEnd | Node::WordStart | Node::WordEnd => {}
            Node::Set(_) | Node::Alternate(_) | Node::Repeat(..) | Node::BackReference(_) => self.end(),
        }
    }
}

/// Adds the bytes a match can begin with; returns whether it can be empty.
fn first_bytes(node: &Node, first: &mut ByteSet) -> bool {
    match node {
        Node::Byte(byte) => {
            first.insert(*byte);
            false
        }
        Node::Set(set) => {
            first.extend(set);
            false
        }
        Node::Group(_, inner) => first_bytes(inner, first),
        Node::Concat(parts) => parts.iter().all(|part| first_bytes(part, first)),
        // Each branch has to be walked.
        Node::Alternate(branches) => branches.iter().fold(false, |empty, branch| first_bytes(branch, first) | empty),
        Node::Repeat(inner, min, _) => first_bytes(inner, first) | (*min == 0),
        Node::Empty | Node::LineStart | Node::LineEnd | Node::WordStart | Node::WordEnd => true,
        // It may be empty; what it begins with is not known before it matches.
        Node::BackReference(_) => {
            *first = ByteSet::default().complement();
            true
        }
    }
}

fn may_contain_newline(node: &Node) -> bool {
    match node {
        Node::Byte(byte) => *byte == b'\n',
        Node::Set(set) => set.contains(b'\n'),
        Node::Group(_, inner) | Node::Repeat(inner, ..) => may_contain_newline(inner),
        Node::Concat(parts) | Node::Alternate(parts) => parts.iter().any(may_contain_newline),
        // What it repeats is in the expression as well.
        Node::BackReference(_) => false,
        Node::Empty | Node::LineStart | Node::LineEnd | Node::WordStart | Node::WordEnd => false,
    }
}

#[cfg(test)]
mod tests {
    use super::super::syntax::parse;
    use super::*;

    fn of(text: &str) -> Requirements {
        Requirements::of(&parse(text.as_bytes(), false).unwrap().root)
    }

    fn begins_with(text: &str) -> Option<Vec<(u8, u8)>> {
        of(text).first.map(|set| set.ranges().collect())
    }

    #[test]
    fn the_longest_fixed_run_is_required() {
        assert_eq!(of("a[0-9]+bc(de)f.g").literal, b"bcdef");
        assert_eq!(of("^abc$").literal, b"abc");
        assert_eq!(of("abc|abd").literal, b"");
        assert_eq!(of("x(abc)*y").literal, b"x");
    }

    #[test]
    fn first_bytes_look_through_what_may_be_empty() {
        assert_eq!(begins_with("a?bc"), Some(vec![(b'a', b'b')]));
        assert_eq!(begins_with("(x|yz)"), Some(vec![(b'x', b'y')]));
        assert_eq!(begins_with("a*"), None);
        assert_eq!(begins_with("(a|b*)c"), Some(vec![(b'a', b'c')]));
    }

    #[test]
    fn newlines_come_only_from_what_names_them() {
        assert!(of("a.*[^x]b").within_line);
        assert!(!of("a[[:space:]]b").within_line);
    }
}
