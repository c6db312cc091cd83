//! What a check is asked to do.

/// How many input lines the dump shows, and when there is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DumpInput {
    /// No dump.
    Never,
    /// When the check fails.
    Fail,
    /// On success too.
    Always,
    /// Explain the dump and do nothing else.
    Help,
}

/// Which input lines the dump shows, besides their context.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DumpFilter {
    /// Where an error is marked first.
    Error,
    /// Where any mark begins.
    Annotation,
    /// Any line with a mark.
    AnnotationFull,
    /// All lines.
    All,
}

/// A variable defined before the check begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Definition {
    /// `NAME=VALUE`, or `#FORMAT,NAME=EXPRESSION` for a numeric one.
    pub text: String,
}

/// The options of FileCheck, by the names of its command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// `--check-prefix`, `--check-prefixes`; none given means `CHECK`.
    pub check_prefixes: Vec<String>,
    /// `--comment-prefixes`; none given means `COM` and `RUN`.
    pub comment_prefixes: Option<Vec<String>>,
    /// `--implicit-check-not`: patterns that may not occur between matches.
    pub implicit_check_not: Vec<String>,
    /// `-D`, in order.
    pub definitions: Vec<Definition>,
    /// `--match-full-lines`: a match covers whole lines.
    pub match_full_lines: bool,
    /// `--strict-whitespace`: blanks are matched as they are.
    pub strict_whitespace: bool,
    /// `--ignore-case`.
    pub ignore_case: bool,
    /// `--allow-empty`: empty input is not an error.
    pub allow_empty: bool,
    /// `--allow-unused-prefixes`.
    pub allow_unused_prefixes: bool,
    /// `--enable-var-scope`: variables without `$` end at each LABEL.
    pub enable_var_scope: bool,
    /// `--allow-deprecated-dag-overlap`: DAG matches may overlap.
    pub allow_dag_overlap: bool,
    /// `-v`: tell good matches too.
    pub verbose: bool,
    /// `-vv`: and everything else.
    pub very_verbose: bool,
    /// `--dump-input`.
    pub dump_input: DumpInput,
    /// `--dump-input-filter`; `None` chooses by `dump_input`.
    pub dump_filter: Option<DumpFilter>,
    /// `--dump-input-context`: lines around those that the filter selects.
    pub dump_context: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            check_prefixes: Vec::new(),
            comment_prefixes: None,
            implicit_check_not: Vec::new(),
            definitions: Vec::new(),
            match_full_lines: false,
            strict_whitespace: false,
            ignore_case: false,
            allow_empty: false,
            allow_unused_prefixes: false,
            enable_var_scope: false,
            allow_dag_overlap: false,
            verbose: false,
            very_verbose: false,
            dump_input: DumpInput::Fail,
            dump_filter: None,
            dump_context: 5,
        }
    }
}

/// The check prefixes when none are given.
pub(crate) const DEFAULT_CHECK_PREFIXES: &[&str] = &["CHECK"];
/// The comment prefixes when none are given.
pub(crate) const DEFAULT_COMMENT_PREFIXES: &[&str] = &["COM", "RUN"];

impl Options {
    pub(crate) fn is_default_check_prefix(&self) -> bool {
        self.check_prefixes.is_empty()
    }

    pub(crate) fn effective_check_prefixes(&self) -> Vec<&str> {
        match self.check_prefixes.is_empty() {
            true => DEFAULT_CHECK_PREFIXES.to_vec(),
            false => self.check_prefixes.iter().map(String::as_str).collect(),
        }
    }

    pub(crate) fn effective_comment_prefixes(&self) -> Vec<&str> {
        match &self.comment_prefixes {
            None => DEFAULT_COMMENT_PREFIXES.to_vec(),
            Some(prefixes) => prefixes.iter().map(String::as_str).collect(),
        }
    }

    /// Says what is wrong with the prefixes, if anything.
    pub(crate) fn validate_prefixes(&self) -> Result<(), String> {
        let mut seen: Vec<&str> = Vec::new();
        // Defaults only collide with what is given; they are known to be well formed.
        if self.check_prefixes.is_empty() {
            seen.extend(DEFAULT_CHECK_PREFIXES);
        }
        if self.comment_prefixes.is_none() {
            seen.extend(DEFAULT_COMMENT_PREFIXES);
        }
        let given = [
            ("check", self.check_prefixes.as_slice()),
            ("comment", self.comment_prefixes.as_deref().unwrap_or_default()),
        ];
        for (kind, prefixes) in given {
            for prefix in prefixes {
                if prefix.is_empty() {
                    return Err(format!("supplied {kind} prefix must not be the empty string"));
                }
                if !is_well_formed(prefix) {
                    return Err(format!(
                        "supplied {kind} prefix must start with a letter and contain only \
                         alphanumeric characters, hyphens, and underscores: '{prefix}'"
                    ));
                }
                if seen.contains(&prefix.as_str()) {
                    return Err(format!(
                        "supplied {kind} prefix must be unique among check and comment prefixes: \
                         '{prefix}'"
                    ));
                }
                seen.push(prefix);
            }
        }
        Ok(())
    }
}

fn is_well_formed(prefix: &str) -> bool {
    prefix.starts_with(|first: char| first.is_ascii_alphabetic())
        && prefix.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
}
