//! PTX text of the tables, with places for results, arguments and choices by constant arguments.

use std::fmt::Write as _;

/// A text with places.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(in crate::translate) struct Template(Vec<Part>);

#[derive(Clone, PartialEq, Eq, Debug)]
enum Part {
    Text(String),
    /// `$r`, `$r4`: the next results; a number puts them in braces.
    Results(Option<usize>),
    /// `$r*`
    AllResults,
    /// `$a`, `$a4`
    Arguments(Option<usize>),
    /// `$a*`
    RestOfArguments,
    /// `$p`
    Again,
    /// `$3`
    Argument(usize),
    /// `$v3`
    Vector(usize),
    /// `$i3`, `$i`
    Immediate(Option<usize>),
    /// `<?3:text>`, `<!3:text>`
    If(usize, bool, Template),
    /// `<=3:a|b>`
    Pick(usize, Vec<Template>),
    /// `<@3>`, `<@cta3>`
    Space(usize, bool),
}

/// What a template is filled with.
pub(in crate::translate) trait Operands {
    /// Number of registers of the result.
    fn results(&self) -> usize;
    /// Number of arguments.
    fn arguments(&self) -> usize;
    /// Number of registers of an argument.
    fn lanes(&self, argument: usize) -> usize;
    /// The integer that an argument is.
    fn constant(&self, argument: usize) -> Option<i128>;
    /// The state space of an argument with its dot, empty for generic addresses; `cta` asks for `.shared::cta`.
    fn space(&self, argument: usize, cta: bool) -> &'static str;
}

/// A filled template.
#[derive(Default, Debug)]
pub(in crate::translate) struct Filled {
    /// Text with `$n` for results, then for `registers`.
    pub text: String,
    /// The registers of arguments that the text reads: argument and lane.
    pub registers: Vec<(usize, usize)>,
}

impl Template {
    /// Reads a text.
    pub fn parse(text: &str) -> Result<Template, String> {
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some(at) = rest.find(['$', '<']) {
            if at > 0 {
                parts.push(Part::Text(rest[..at].to_owned()));
            }
            let after = &rest[at + 1..];
            let (part, len) = if rest[at..].starts_with('$') { place(after)? } else { choice(after)? };
            parts.push(part);
            rest = &after[len..];
        }
        if !rest.is_empty() {
            parts.push(Part::Text(rest.to_owned()));
        }
        Ok(Template(parts))
    }

    /// Fills the places.
    pub fn fill(&self, operands: &dyn Operands) -> Result<Filled, String> {
        let mut state = State { operands, out: Filled::default(), result: 0, argument: (0, 0), last: None };
        state.parts(&self.0)?;
        Ok(state.out)
    }
}

fn number(text: &str) -> (Option<usize>, usize) {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    (text[..digits].parse().ok(), digits)
}

/// A place after `$`.
fn place(text: &str) -> Result<(Part, usize), String> {
    let letter = text.bytes().next().unwrap_or(b' ');
    if letter.is_ascii_digit() {
        let (index, len) = number(text);
        return Ok((Part::Argument(index.ok_or("a number is too large")?), len));
    }
    let (count, digits) = number(text.get(1..).unwrap_or(""));
    let star = text[1..].starts_with('*');
    Ok(match letter {
        b'r' if star => (Part::AllResults, 2),
        b'r' => (Part::Results(count), 1 + digits),
        b'a' if star => (Part::RestOfArguments, 2),
        b'a' => (Part::Arguments(count), 1 + digits),
        b'p' => (Part::Again, 1),
        b'v' => (Part::Vector(count.ok_or("`$v` needs a number")?), 1 + digits),
        b'i' => (Part::Immediate(count), 1 + digits),
        _ => return Err(format!("`${text}` is no place")),
    })
}

/// A choice after `<`.
fn choice(text: &str) -> Result<(Part, usize), String> {
    let end = text.find('>').ok_or("`>` is missing")?;
    let inside = &text[1..end];
    let with_text = || {
        let (index, body) = inside.split_once(':').ok_or("`:` is missing")?;
        Ok::<_, String>((index.parse().map_err(|_| format!("`{index}` is no number"))?, body))
    };
    let part = match text.as_bytes()[0] {
        kind @ (b'?' | b'!') => {
            let (index, body) = with_text()?;
            Part::If(index, kind == b'?', Template::parse(body)?)
        }
        b'=' => {
            let (index, body) = with_text()?;
            Part::Pick(index, body.split('|').map(Template::parse).collect::<Result<_, _>>()?)
        }
        b'@' => {
            let index = inside.strip_prefix("cta");
            let parsed = index.unwrap_or(inside).parse().map_err(|_| format!("`{inside}` is no number"))?;
            Part::Space(parsed, index.is_some())
        }
        _ => return Err(format!("`<{text}` is no choice")),
    };
    Ok((part, end + 1))
}

struct State<'o> {
    operands: &'o dyn Operands,
    out: Filled,
    /// The next result.
    result: usize,
    /// The next argument and its next lane.
    argument: (usize, usize),
    last: Option<(usize, usize)>,
}

impl State<'_> {
    fn parts(&mut self, parts: &[Part]) -> Result<(), String> {
        parts.iter().try_for_each(|part| self.part(part))
    }

    fn part(&mut self, part: &Part) -> Result<(), String> {
        match part {
            Part::Text(text) => self.out.text.push_str(text),
            Part::Results(None) => self.result()?,
            Part::Results(Some(count)) => self.list(*count, State::result)?,
            Part::AllResults => self.list(self.operands.results(), State::result)?,
            Part::Arguments(None) => self.argument()?,
            Part::Arguments(Some(count)) => self.list(*count, State::argument)?,
            Part::RestOfArguments => self.list(self.registers_left(), State::argument)?,
            Part::Again => {
                let last = self.last.ok_or("there is no argument before `$p`")?;
                self.register(last);
            }
            Part::Argument(index) => self.register((*index, 0)),
            Part::Vector(index) => {
                let lanes: Vec<_> = (0..self.operands.lanes(*index)).map(|lane| (*index, lane)).collect();
                let mut lanes = lanes.into_iter();
                self.list(lanes.len(), |state| {
                    lanes.next().into_iter().for_each(|lane| state.register(lane));
                    Ok(())
                })?;
            }
            Part::Immediate(index) => {
                let at = index.unwrap_or(self.argument.0);
                if index.is_none() {
                    self.argument = (at + 1, 0);
                }
                let value = self.operands.constant(at).ok_or_else(|| format!("argument {} is no constant", at + 1))?;
                let _ = write!(self.out.text, "{value}");
            }
            Part::If(index, wanted, body) => {
                if (self.flag(*index)? != 0) == *wanted {
                    self.parts(&body.0)?;
                }
            }
            Part::Pick(index, bodies) => {
                let value = self.flag(*index)?;
                let body = usize::try_from(value).ok().and_then(|at| bodies.get(at));
                let body = body.ok_or_else(|| format!("argument {} is {value}, which means nothing", index + 1))?;
                self.parts(&body.0)?;
            }
            Part::Space(index, cta) => self.out.text.push_str(self.operands.space(*index, *cta)),
        }
        Ok(())
    }

    /// A constant argument that chooses; those that older LLVM does not have are 0.
    fn flag(&self, index: usize) -> Result<i128, String> {
        if index >= self.operands.arguments() {
            return Ok(0);
        }
        self.operands.constant(index).ok_or_else(|| format!("argument {} is no constant", index + 1))
    }

    fn list(&mut self, count: usize, mut item: impl FnMut(&mut Self) -> Result<(), String>) -> Result<(), String> {
        self.out.text.push('{');
        for index in 0..count {
            if index > 0 {
                self.out.text.push_str(", ");
            }
            item(self)?;
        }
        self.out.text.push('}');
        Ok(())
    }

    fn result(&mut self) -> Result<(), String> {
        if self.result >= self.operands.results() {
            return Err(format!("it has {} results only", self.operands.results()));
        }
        let _ = write!(self.out.text, "${}", self.result);
        self.result += 1;
        Ok(())
    }

    fn argument(&mut self) -> Result<(), String> {
        let (argument, lane) = self.argument;
        if argument >= self.operands.arguments() {
            return Err(format!("it has {} arguments only", self.operands.arguments()));
        }
        self.register((argument, lane));
        let more = lane + 1 < self.operands.lanes(argument);
        self.argument = if more { (argument, lane + 1) } else { (argument + 1, 0) };
        Ok(())
    }

    fn registers_left(&self) -> usize {
        let (argument, lane) = self.argument;
        let all: usize = (argument..self.operands.arguments()).map(|at| self.operands.lanes(at)).sum();
        all.saturating_sub(lane)
    }

    fn register(&mut self, register: (usize, usize)) {
        let known = self.out.registers.iter().position(|other| *other == register);
        let index = known.unwrap_or_else(|| {
            self.out.registers.push(register);
            self.out.registers.len() - 1
        });
        let _ = write!(self.out.text, "${}", self.operands.results() + index);
        self.last = Some(register);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two results; arguments of one register each but the third, of four; argument `n` is the constant `n`.
    struct Sample;

    impl Operands for Sample {
        fn results(&self) -> usize {
            2
        }
        fn arguments(&self) -> usize {
            4
        }
        fn lanes(&self, argument: usize) -> usize {
            if argument == 2 { 4 } else { 1 }
        }
        fn constant(&self, argument: usize) -> Option<i128> {
            Some(argument as i128)
        }
        fn space(&self, _: usize, cta: bool) -> &'static str {
            if cta { ".shared::cta" } else { ".shared" }
        }
    }

    fn filled(text: &str) -> String {
        Template::parse(text).and_then(|t| t.fill(&Sample)).map_or_else(|e| e, |filled| filled.text)
    }

    #[test]
    fn places_are_numbered_results_first() {
        assert_eq!(filled("op $r*, $a, $a, $a*;"), "op {$0, $1}, $2, $3, {$4, $5, $6, $7, $8};");
        assert_eq!(filled("op $r, [$a, {$a, $p}], $v2;"), "op $0, [$2, {$3, $3}], {$4, $5, $6, $7};");
        assert_eq!(filled("op $1, $i3, $0;"), "op $2, 3, $3;");
        assert_eq!(filled("op $r1;"), "op {$0};");
    }

    #[test]
    fn constants_choose() {
        assert_eq!(filled("op<?1:.yes><!1:.no><?9:.late><=2:a|b|c><@0><@cta0>;"), "op.yesc.shared.shared::cta;");
        assert_eq!(filled("<=3:a|b>"), "argument 4 is 3, which means nothing");
        assert_eq!(filled("$r $r $r"), "it has 2 results only");
    }
}
