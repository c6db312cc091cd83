//! The shell language of RUN lines: words, quotes, pipes, redirections, `&&`, `||` and `;`.
//!
//! It is a subset of POSIX sh without expansion of variables or commands; what is outside of it is an
//! error rather than a surprise.

/// A piece of a word: text, and whether quotes protected it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word {
    /// The text without quotes.
    pub text: String,
    /// Whether an unquoted `*` or `?` makes it a pattern for file names.
    pub is_glob: bool,
}

/// When a pipeline runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// After the one before, whatever came of it.
    Always,
    /// If the one before succeeded.
    Success,
    /// If the one before failed.
    Failure,
}

/// Where a stream goes or comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Redirection {
    /// `< file`
    Input(Word),
    /// `> file`, `2> file`: stream, file, whether to append.
    Output(Stream, Word, bool),
    /// `&> file`: both streams, whether to append.
    Both(Word, bool),
    /// `2>&1`, `1>&2`: the first goes where the second goes.
    Duplicate(Stream, Stream),
}

/// An output stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// Standard output.
    Out,
    /// Standard error.
    Err,
}

/// One program with its arguments.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stage {
    /// The program and its arguments, possibly with `NAME=value` before them.
    pub words: Vec<Word>,
    /// In order.
    pub redirections: Vec<Redirection>,
}

/// Stages joined by `|`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pipeline {
    /// When to run it.
    pub when: When,
    /// Whether `!` stands before it.
    pub negated: bool,
    /// At least one.
    pub stages: Vec<Stage>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    Word(Word),
    Pipe,
    /// `|&`
    PipeBoth,
    And,
    Or,
    Semicolon,
    Less,
    /// `>`, `>>` with the stream before it.
    Greater(Stream, bool),
    /// `2>&1`
    Duplicate(Stream, Stream),
    /// `&>`
    Both(bool),
}

/// Parses a command line.
///
/// # Errors
/// What is wrong with it or not supported.
pub fn parse(text: &str) -> Result<Vec<Pipeline>, String> {
    let tokens = Lexer { chars: text.chars().peekable() }.tokens()?;
    let mut parser = Parser { tokens: tokens.into_iter().peekable() };
    parser.script()
}

struct Lexer<'a> {
    chars: std::iter::Peekable<std::str::Chars<'a>>,
}

impl Lexer<'_> {
    fn tokens(mut self) -> Result<Vec<Token>, String> {
        let mut tokens = Vec::new();
        while let Some(&c) = self.chars.peek() {
            if c.is_ascii_whitespace() {
                self.chars.next();
                continue;
            }
            tokens.push(match self.operator()? {
                Some(token) => token,
                None => self.word_or_stream()?,
            });
        }
        Ok(tokens)
    }

    fn eat(&mut self, c: char) -> bool {
        self.chars.next_if_eq(&c).is_some()
    }

    fn operator(&mut self) -> Result<Option<Token>, String> {
        let unsupported = |what: &str| Err(format!("'{what}' is not supported in RUN lines"));
        let Some(&c) = self.chars.peek() else {
            return Ok(None);
        };
        match c {
            '|' | '&' | ';' | '<' | '>' => _ = self.chars.next(),
            '(' | ')' => return unsupported(&c.to_string()),
            _ => return Ok(None),
        }
        Ok(Some(match c {
            '|' if self.eat('|') => Token::Or,
            '|' if self.eat('&') => Token::PipeBoth,
            '|' => Token::Pipe,
            '&' if self.eat('&') => Token::And,
            '&' if self.eat('>') => Token::Both(self.eat('>')),
            '&' => return unsupported("&"),
            ';' => Token::Semicolon,
            '<' if self.eat('<') => return unsupported("<<"),
            '<' => Token::Less,
            _ => self.greater(Stream::Out)?,
        }))
    }

    /// After a `>`.
    fn greater(&mut self, stream: Stream) -> Result<Token, String> {
        if self.eat('>') {
            return Ok(Token::Greater(stream, true));
        }
        if !self.eat('&') {
            return Ok(Token::Greater(stream, false));
        }
        match self.chars.peek() {
            Some('1') => _ = self.chars.next(),
            Some('2') => {
                self.chars.next();
                return Ok(Token::Duplicate(stream, Stream::Err));
            }
            // `>& file` is an old way to write `&> file`.
            _ if stream == Stream::Out => return Ok(Token::Both(false)),
            _ => return Err("'2>&' needs '1'".to_string()),
        }
        Ok(Token::Duplicate(stream, Stream::Out))
    }

    fn word_or_stream(&mut self) -> Result<Token, String> {
        let mut word = Word { text: String::new(), is_glob: false };
        let mut is_plain = true;
        while let Some(&c) = self.chars.peek() {
            if c.is_ascii_whitespace() || "|&;<()".contains(c) {
                break;
            }
            if c == '>' {
                let stream = match word.text.as_str() {
                    "1" if is_plain => Stream::Out,
                    "2" if is_plain => Stream::Err,
                    _ => break,
                };
                self.chars.next();
                return self.greater(stream);
            }
            self.chars.next();
            is_plain &= !matches!(c, '\'' | '"' | '\\');
            match c {
                '\'' => self.quoted(&mut word, '\'')?,
                '"' => self.quoted(&mut word, '"')?,
                '\\' => word.text.extend(self.chars.next()),
                '*' | '?' => {
                    word.is_glob = true;
                    word.text.push(c);
                }
                _ => word.text.push(c),
            }
        }
        Ok(Token::Word(word))
    }

    fn quoted(&mut self, word: &mut Word, quote: char) -> Result<(), String> {
        loop {
            let c = self.chars.next().ok_or_else(|| format!("no closing {quote}"))?;
            if c == quote {
                return Ok(());
            }
            if quote == '"' && c == '\\' {
                // Within double quotes a backslash only protects these.
                match self.chars.next_if(|next| "\"\\$`".contains(*next)) {
                    Some(protected) => word.text.push(protected),
                    None => word.text.push('\\'),
                }
                continue;
            }
            word.text.push(c);
        }
    }
}

struct Parser {
    tokens: std::iter::Peekable<std::vec::IntoIter<Token>>,
}

impl Parser {
    fn script(&mut self) -> Result<Vec<Pipeline>, String> {
        let mut pipelines = Vec::new();
        let mut when = When::Always;
        while self.tokens.peek().is_some() {
            pipelines.push(self.pipeline(when)?);
            when = match self.tokens.next() {
                None => return Ok(pipelines),
                Some(Token::And) => When::Success,
                Some(Token::Or) => When::Failure,
                Some(_) => When::Always,
            };
        }
        match when {
            When::Always => Ok(pipelines),
            _ => Err("a command is missing at the end".to_string()),
        }
    }

    fn pipeline(&mut self, when: When) -> Result<Pipeline, String> {
        let is_not = |token: &Token| matches!(token, Token::Word(word) if word.text == "!");
        let mut negated = false;
        while self.tokens.next_if(is_not).is_some() {
            negated = !negated;
        }
        let mut stages = vec![self.stage()?];
        loop {
            match self.tokens.peek() {
                Some(Token::Pipe) => {}
                Some(Token::PipeBoth) => {
                    let both = Redirection::Duplicate(Stream::Err, Stream::Out);
                    if let Some(stage) = stages.last_mut() {
                        stage.redirections.push(both);
                    }
                }
                _ => {
                    return Ok(Pipeline { when, negated, stages });
                }
            }
            self.tokens.next();
            stages.push(self.stage()?);
        }
    }

    fn stage(&mut self) -> Result<Stage, String> {
        let mut stage = Stage::default();
        loop {
            let redirection = match self.tokens.peek() {
                Some(Token::Word(_)) => {
                    stage.words.push(self.word()?);
                    continue;
                }
                Some(Token::Less) => {
                    self.tokens.next();
                    Redirection::Input(self.word()?)
                }
                Some(&Token::Greater(stream, append)) => {
                    self.tokens.next();
                    Redirection::Output(stream, self.word()?, append)
                }
                Some(&Token::Both(append)) => {
                    self.tokens.next();
                    Redirection::Both(self.word()?, append)
                }
                Some(&Token::Duplicate(from, to)) => {
                    self.tokens.next();
                    Redirection::Duplicate(from, to)
                }
                _ if stage.words.is_empty() => return Err("a command is missing".to_string()),
                _ => return Ok(stage),
            };
            stage.redirections.push(redirection);
        }
    }

    fn word(&mut self) -> Result<Word, String> {
        match self.tokens.next() {
            Some(Token::Word(word)) => Ok(word),
            _ => Err("a file name is missing after a redirection".to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(stage: &Stage) -> Vec<&str> {
        stage.words.iter().map(|word| word.text.as_str()).collect()
    }

    #[test]
    fn pipes_redirections_and_lists() {
        let script = parse("a 'b c' < in 2>&1 | d \"e\\\"f\" > out 2>> log && g || h; i").unwrap();
        assert_eq!(script.len(), 4);
        assert_eq!(words(&script[0].stages[0]), ["a", "b c"]);
        assert_eq!(words(&script[0].stages[1]), ["d", "e\"f"]);
        assert_eq!(script[0].stages[0].redirections.len(), 2);
        assert_eq!(script[1].when, When::Success);
        assert_eq!(script[2].when, When::Failure);
        assert_eq!(script[3].when, When::Always);
    }

    #[test]
    fn digits_are_streams_only_before_redirections() {
        let script = parse("echo 2 x2>f 2>g").unwrap();
        assert_eq!(words(&script[0].stages[0]), ["echo", "2", "x2"]);
        assert_eq!(script[0].stages[0].redirections.len(), 2);
    }

    #[test]
    fn quotes_protect_patterns() {
        let script = parse("ls '*.x' *.y").unwrap();
        assert!(!script[0].stages[0].words[1].is_glob);
        assert!(script[0].stages[0].words[2].is_glob);
    }

    #[test]
    fn what_is_not_supported_is_said() {
        assert!(parse("(a)").unwrap_err().contains("not supported"));
        assert!(parse("a &").unwrap_err().contains("not supported"));
        assert!(parse("a |").unwrap_err().contains("missing"));
        assert!(parse("a &&").unwrap_err().contains("missing"));
        assert!(parse("a 'b").unwrap_err().contains("closing"));
        assert!(parse("a >").unwrap_err().contains("file name"));
    }
}
