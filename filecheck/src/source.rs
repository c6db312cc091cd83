//! Texts with names, places in them, and messages about those places.

use memchr::{memchr_iter, memchr2, memrchr2};
use std::cell::OnceCell;
use std::fmt::Write as _;
use std::ops::Range;

/// Which text of [`Sources`] a place is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SourceId(u32);

impl SourceId {
    /// Position among the texts, in the order they were added.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A place: a byte offset into a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Location {
    /// The text.
    pub source: SourceId,
    /// Bytes from its start.
    pub offset: usize,
}

/// Part of a text that remembers where it came from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slice<'a> {
    pub bytes: &'a [u8],
    pub source: SourceId,
    pub offset: usize,
}

impl<'a> Slice<'a> {
    pub fn location(self) -> Location {
        Location { source: self.source, offset: self.offset }
    }

    pub fn is_empty(self) -> bool {
        self.bytes.is_empty()
    }

    /// Without its first `count` bytes, or without any when there are fewer.
    pub fn skip(self, count: usize) -> Self {
        let count = count.min(self.bytes.len());
        Self { bytes: &self.bytes[count..], offset: self.offset + count, ..self }
    }

    /// Its first `count` bytes, or all when there are fewer.
    pub fn take(self, count: usize) -> Self {
        Self { bytes: &self.bytes[..count.min(self.bytes.len())], ..self }
    }

    /// Takes `prefix` off, saying whether it was there.
    pub fn eat(&mut self, prefix: &[u8]) -> bool {
        let found = self.bytes.starts_with(prefix);
        if found {
            *self = self.skip(prefix.len());
        }
        found
    }

    pub fn find(self, needle: &[u8]) -> Option<usize> {
        memchr::memmem::find(self.bytes, needle)
    }

    pub fn trim_start(self) -> Self {
        let blanks = self.bytes.iter().take_while(|byte| is_blank(**byte)).count();
        self.skip(blanks)
    }

    pub fn trim_end(self) -> Self {
        let blanks = self.bytes.iter().rev().take_while(|byte| is_blank(**byte)).count();
        self.take(self.bytes.len() - blanks)
    }

    /// As text, for messages.
    pub fn text(self) -> String {
        String::from_utf8_lossy(self.bytes).into_owned()
    }
}

pub(crate) fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

/// How grave a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// Something is wrong.
    Error,
    /// Something worth knowing, asked for with `-v`.
    Remark,
    /// More about the message before.
    Note,
}

/// Something to tell, possibly about a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// How grave it is.
    pub severity: Severity,
    /// Where; `None` for what concerns the command as a whole.
    pub location: Option<Location>,
    /// Length of the marked text in bytes, 0 for just the place.
    pub length: usize,
    /// What.
    pub text: String,
}

impl Message {
    pub(crate) fn error(location: Location, text: impl Into<String>) -> Self {
        Self { severity: Severity::Error, location: Some(location), length: 0, text: text.into() }
    }

    pub(crate) fn note(location: Location, length: usize, text: impl Into<String>) -> Self {
        Self { severity: Severity::Note, location: Some(location), length, text: text.into() }
    }

    pub(crate) fn general(text: impl Into<String>) -> Self {
        Self { severity: Severity::Error, location: None, length: 0, text: text.into() }
    }
}

/// Texts by [`SourceId`].
#[derive(Clone, Debug, Default)]
pub struct Sources {
    texts: Vec<Source>,
}

/// A named text.
#[derive(Clone, Debug)]
struct Source {
    name: String,
    text: Vec<u8>,
    /// Where its lines begin; found when first asked for.
    line_starts: OnceCell<Vec<usize>>,
}

impl Sources {
    /// Adds a text.
    pub fn add(&mut self, name: impl Into<String>, text: impl Into<Vec<u8>>) -> SourceId {
        let line_starts = OnceCell::new();
        self.texts.push(Source { name: name.into(), text: text.into(), line_starts });
        SourceId(self.texts.len() as u32 - 1)
    }

    /// The bytes of a text.
    pub fn text(&self, id: SourceId) -> &[u8] {
        self.texts.get(id.index()).map_or(&[], |source| &source.text)
    }

    /// The name of a text.
    pub fn name(&self, id: SourceId) -> &str {
        self.texts.get(id.index()).map_or("", |source| &source.name)
    }

    pub(crate) fn slice(&self, id: SourceId) -> Slice<'_> {
        Slice { bytes: self.text(id), source: id, offset: 0 }
    }

    /// Where the lines of a text begin; the last of them is empty if the text ends in a newline.
    pub(crate) fn line_starts(&self, id: SourceId) -> &[usize] {
        self.texts.get(id.index()).map_or(&[0], |source| {
            source.line_starts.get_or_init(|| {
                let after_newlines = memchr_iter(b'\n', &source.text).map(|at| at + 1);
                std::iter::once(0).chain(after_newlines).collect()
            })
        })
    }

    /// Line and column of a place, both from 1; columns count bytes.
    pub fn line_and_column(&self, location: Location) -> (usize, usize) {
        let starts = self.line_starts(location.source);
        let offset = location.offset.min(self.text(location.source).len());
        let line = starts.partition_point(|start| *start <= offset);
        let start = starts.get(line.saturating_sub(1)).copied().unwrap_or(0);
        (line, offset - start + 1)
    }

    /// The line around a place, without its end.
    fn line_around(&self, location: Location) -> Range<usize> {
        let text = self.text(location.source);
        let at = location.offset.min(text.len());
        let start = memrchr2(b'\n', b'\r', &text[..at]).map_or(0, |found| found + 1);
        let end = memchr2(b'\n', b'\r', &text[at..]).map_or(text.len(), |found| at + found);
        start..end
    }

    /// A message as people read it: `file:line:column: severity: text`, the line, and a mark under it.
    pub fn render(&self, message: &Message, color: bool) -> Vec<u8> {
        let style = Style { enabled: color };
        let mut out = Vec::new();
        if let Some(location) = message.location {
            let (line, column) = self.line_and_column(location);
            let name = self.name(location.source);
            out.extend_from_slice(style.bold(&format!("{name}:{line}:{column}: ")).as_bytes());
        }
        let (word, code) = match message.severity {
            Severity::Error => ("error: ", "0;1;31"),
            Severity::Remark => ("remark: ", "0;1;34"),
            Severity::Note => ("note: ", "0;1;30"),
        };
        out.extend_from_slice(style.paint(code, word).as_bytes());
        out.extend_from_slice(style.bold(&message.text).as_bytes());
        out.push(b'\n');
        if let Some(location) = message.location {
            self.render_line(&mut out, location, message.length, style);
        }
        out
    }

    fn render_line(&self, out: &mut Vec<u8>, location: Location, length: usize, style: Style) {
        let range = self.line_around(location);
        let line = &self.text(location.source)[range.clone()];
        expand_tabs(out, line);
        out.push(b'\n');
        // The width of other characters is anybody's guess, and a wrong mark is worse than none.
        if !line.is_ascii() {
            return;
        }
        let caret = location.offset - range.start;
        let end = (caret + length).min(line.len());
        let mut marks = vec![b' '; caret];
        marks.push(b'^');
        marks.resize(end.max(caret + 1), b'~');
        let mut expanded = String::new();
        let mut width = 0;
        for (index, mark) in marks.iter().enumerate() {
            let next = match line.get(index) {
                Some(b'\t') => (width / TAB_STOP + 1) * TAB_STOP,
                _ => width + 1,
            };
            expanded.extend(std::iter::repeat_n(char::from(*mark), next - width));
            width = next;
        }
        out.extend_from_slice(style.paint("0;1;32", expanded.trim_end()).as_bytes());
        out.push(b'\n');
    }
}

const TAB_STOP: usize = 8;

fn expand_tabs(out: &mut Vec<u8>, line: &[u8]) {
    let mut width = 0;
    for &byte in line {
        if byte == b'\t' {
            let next = (width / TAB_STOP + 1) * TAB_STOP;
            out.resize(out.len() + next - width, b' ');
            width = next;
        } else {
            out.push(byte);
            width += 1;
        }
    }
}

/// Writes ANSI colors, or does not.
#[derive(Clone, Copy)]
pub(crate) struct Style {
    pub enabled: bool,
}

impl Style {
    pub fn paint(self, code: &str, text: &str) -> String {
        match self.enabled {
            true => format!("\x1b[{code}m{text}\x1b[0m"),
            false => text.to_string(),
        }
    }

    pub fn bold(self, text: &str) -> String {
        self.paint("1", text)
    }
}

/// Makes control characters, quotes and backslashes visible.
pub(crate) fn escaped(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    for &byte in bytes {
        match byte {
            b'\\' => out.push_str("\\\\"),
            b'\t' => out.push_str("\\t"),
            b'\n' => out.push_str("\\n"),
            b'"' => out.push_str("\\\""),
            b' '..=b'~' => out.push(char::from(byte)),
            _ => _ = write!(out, "\\{byte:03o}"),
        }
    }
    out
}

/// Makes every run of spaces and tabs one space and every CR LF one LF, in place.
pub(crate) fn canonicalize(text: &mut Vec<u8>, keep_blanks: bool) {
    let Some(first) = first_to_change(text, keep_blanks) else {
        return;
    };
    let mut write = first;
    let mut read = first;
    while let Some(&byte) = text.get(read) {
        read += 1;
        if byte == b'\r' && text.get(read) == Some(&b'\n') {
            continue;
        }
        let byte = if is_blank(byte) && !keep_blanks {
            while text.get(read).is_some_and(|next| is_blank(*next)) {
                read += 1;
            }
            b' '
        } else {
            byte
        };
        text[write] = byte;
        write += 1;
    }
    text.truncate(write);
}

/// Where canonical text ends, so that text that is canonical already is only looked at.
fn first_to_change(text: &[u8], keep_blanks: bool) -> Option<usize> {
    let carriage_return = memchr::memmem::find(text, b"\r\n");
    if keep_blanks {
        return carriage_return;
    }
    let tab = memchr::memchr(b'\t', text);
    let double = memchr::memmem::find(text, b"  ");
    // A tab may follow a space that starts the run.
    [carriage_return, tab.map(|at| at.saturating_sub(1)), double].into_iter().flatten().min()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn canonical(text: &str, keep_blanks: bool) -> String {
        let mut text = text.as_bytes().to_vec();
        canonicalize(&mut text, keep_blanks);
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn blanks_and_line_ends_become_canonical() {
        assert_eq!(canonical("a  b\t c\r\nd \t", false), "a b c\nd ");
        assert_eq!(canonical(" \tx", false), " x");
        assert_eq!(canonical("a  b\r\n\r", true), "a  b\n\r");
        assert_eq!(canonical("plain text\n", false), "plain text\n");
    }

    #[test]
    fn marks_line_up_under_tabs() {
        let mut sources = Sources::default();
        let id = sources.add("f", "a\tbcd\n");
        let message = Message::note(Location { source: id, offset: 2 }, 2, "here");
        let text = String::from_utf8(sources.render(&message, false)).unwrap();
        assert_eq!(text, "f:1:3: note: here\na       bcd\n        ^~\n");
    }

    #[test]
    fn lines_beyond_ascii_get_no_mark() {
        let mut sources = Sources::default();
        let id = sources.add("f", "é b\n");
        let message = Message::error(Location { source: id, offset: 3 }, "bad");
        let text = String::from_utf8(sources.render(&message, false)).unwrap();
        assert_eq!(text, "f:1:4: error: bad\né b\n");
    }
}
