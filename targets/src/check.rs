//! Checks statements against the tables, for one target and version.

use crate::declarations::{Declarations, Symbol};
use crate::form::{Form, FormError, Problem, Shape, accept, refusal};
use crate::matching::{self, Candidate};
use crate::operands::{self, Arguments};
use crate::statement::{Node, NodeKind, Span, Statement};
use crate::{PtxVersion, RegType, SpecialReg, Target, Tok, explain};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// What is wrong with a statement.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Diagnostic {
    /// One line.
    pub message: String,
    /// Where in the text that the statement was read from.
    pub span: Span,
}

/// Checks statements, remembering every mnemonic it has seen.
pub struct Checker {
    target: Target,
    version: PtxVersion,
    known: FxHashMap<Box<str>, u32>,
    mnemonics: Vec<Mnemonic>,
}

struct Mnemonic {
    toks: SmallVec<[Tok; 24]>,
    candidates: Vec<Candidate>,
    /// Why there is no candidate.
    error: Option<FormError>,
}

type Shapes = SmallVec<[Shape; 32]>;

impl Checker {
    /// A checker for code of that `.target` and `.version`.
    pub fn new(target: Target, version: PtxVersion) -> Checker {
        Checker { target, version, known: FxHashMap::default(), mnemonics: Vec::new() }
    }

    /// Checks one statement.
    ///
    /// # Errors
    /// The first thing that is wrong with it.
    pub fn check(&mut self, statement: &Statement, declarations: &Declarations) -> Result<(), Diagnostic> {
        let mut needs = Needs::default();
        let shapes = shapes(statement, declarations, &mut needs)?;
        match needs.version(self.target) {
            Ok(version) if version <= self.version => {}
            Ok(version) => {
                let message = format!("an operand needs .version {version}, the file has {}", self.version);
                return Err(at_mnemonic(statement, message));
            }
            Err(message) => return Err(at_mnemonic(statement, message)),
        }
        let mnemonic = self.mnemonic(statement);
        let mnemonic = &self.mnemonics[mnemonic];
        let Some(arguments) = Arguments::new(&shapes) else {
            return Err(at_mnemonic(statement, "the operands are no whole trees".to_owned()));
        };
        let (target, version) = (self.target.index(), self.version.number());
        for candidate in &mnemonic.candidates {
            if candidate.forbidden.is_some() || candidate.versions[target] > version {
                continue;
            }
            if let Ok(places) = operands::fit(candidate, &arguments) {
                let answer = |question, operand| operands::answer(&arguments, &places, question, operand);
                if candidate.version_with(target, &answer) <= version {
                    return Ok(());
                }
            }
        }
        Err(explain(mnemonic, statement, &arguments, self.target, self.version))
    }

    /// The lowest version of every target that takes the statement, by [`Target::index`].
    ///
    /// # Errors
    /// No target takes it.
    pub fn versions(
        &mut self,
        statement: &Statement,
        declarations: &Declarations,
    ) -> Result<[Option<PtxVersion>; Target::ALL.len()], Diagnostic> {
        let mut needs = Needs::default();
        let shapes = shapes(statement, declarations, &mut needs)?;
        let mnemonic = self.mnemonic(statement);
        let mnemonic = &self.mnemonics[mnemonic];
        let mut versions = [None; Target::ALL.len()];
        let Some(arguments) = Arguments::new(&shapes) else {
            return Err(at_mnemonic(statement, "the operands are no whole trees".to_owned()));
        };
        let mut any = false;
        for candidate in &mnemonic.candidates {
            let Ok((candidate, _)) = accept(candidate, &arguments) else {
                continue;
            };
            for (target, number) in Target::ALL.iter().zip(candidate.versions) {
                let slot = &mut versions[target.index()];
                if let Ok(needed) = needs.version(*target)
                    && number != u8::MAX
                {
                    let version = PtxVersion::from_row(number).max(needed);
                    *slot = Some(slot.map_or(version, |other: PtxVersion| other.min(version)));
                    any = true;
                }
            }
        }
        match any {
            true => Ok(versions),
            false => Err(explain(mnemonic, statement, &arguments, self.target, self.version)),
        }
    }

    /// The form of a statement, whatever the target: the first whose operands fit.
    ///
    /// # Errors
    /// No form fits.
    pub fn form(&mut self, statement: &Statement, declarations: &Declarations) -> Result<Form, Diagnostic> {
        let shapes = shapes(statement, declarations, &mut Needs::default())?;
        let mnemonic = self.mnemonic(statement);
        let mnemonic = &self.mnemonics[mnemonic];
        let Some(arguments) = Arguments::new(&shapes) else {
            return Err(at_mnemonic(statement, "the operands are no whole trees".to_owned()));
        };
        let fitting = mnemonic.candidates.iter().find_map(|candidate| accept(candidate, &arguments).ok());
        match fitting {
            Some((candidate, places)) => Ok(Form::new(candidate, &places)),
            None => Err(explain(mnemonic, statement, &arguments, self.target, self.version)),
        }
    }

    fn mnemonic(&mut self, statement: &Statement) -> usize {
        if !statement.unified
            && let Some(&index) = self.known.get(statement.mnemonic)
        {
            return index as usize;
        }
        let mnemonic = match statement.toks() {
            Ok(mut toks) => {
                if statement.unified {
                    toks.extend(Tok::from_text("unified"));
                }
                let candidates = matching::candidates(&toks);
                let error = candidates.is_empty().then(|| explain::unmatched(&toks));
                Mnemonic { toks, candidates, error }
            }
            Err(piece) => Mnemonic {
                toks: SmallVec::new(),
                candidates: Vec::new(),
                error: Some(crate::form::unknown_piece(
                    &statement.mnemonic.split('.').map_while(Tok::from_text).collect::<Vec<_>>(),
                    piece,
                )),
            },
        };
        let index = self.mnemonics.len();
        self.mnemonics.push(mnemonic);
        if !statement.unified {
            self.known.insert(statement.mnemonic.into(), index as u32);
        }
        index
    }
}

fn at_mnemonic(statement: &Statement, message: String) -> Diagnostic {
    Diagnostic { message, span: statement.mnemonic_span }
}

fn explain(
    mnemonic: &Mnemonic,
    statement: &Statement,
    arguments: &Arguments,
    target: Target,
    version: PtxVersion,
) -> Diagnostic {
    if let Some(error) = &mnemonic.error {
        return at_mnemonic(statement, error.to_string());
    }
    let mut best: Option<(usize, Diagnostic)> = None;
    for candidate in &mnemonic.candidates {
        let (rank, diagnostic) = match accept(candidate, arguments) {
            Ok((candidate, _)) => (usize::MAX, at_mnemonic(statement, too_new(&candidate, target, version))),
            Err(problem @ Problem::Forbidden(_)) => {
                (usize::MAX - 1, at_mnemonic(statement, problem.error(candidate, &mnemonic.toks).to_string()))
            }
            Err(Problem::Operands(mismatch)) => {
                let message = Problem::Operands(mismatch).error(candidate, &mnemonic.toks).to_string();
                let span = statement.nodes.get(mismatch.argument).map_or(statement.mnemonic_span, |node| node.span);
                (mismatch.argument, Diagnostic { message, span })
            }
        };
        if best.as_ref().is_none_or(|(other, _)| rank > *other) {
            best = Some((rank, diagnostic));
        }
    }
    best.map_or_else(|| at_mnemonic(statement, String::new()), |(_, diagnostic)| diagnostic)
}

fn too_new(candidate: &Candidate, target: Target, version: PtxVersion) -> String {
    match refusal(candidate, target) {
        Err(refusal) => refusal.to_string(),
        Ok(needed) => {
            let what = crate::form::mnemonic(candidate.binding.pieces());
            format!("`{what}` needs .version {needed} on {target}, the file has {version}")
        }
    }
}

/// Operands that need a target or a version by themselves: special registers, `.b128`.
#[derive(Default)]
struct Needs(SmallVec<[Need; 2]>);

#[derive(Clone, Copy, PartialEq)]
enum Need {
    Special(SpecialReg),
    Wide,
}

impl Needs {
    /// The lowest version on `target`, or the refusal in words.
    fn version(&self, target: Target) -> Result<PtxVersion, String> {
        let mut version = target.min_ptx();
        for need in &self.0 {
            version = version.max(match need {
                Need::Special(register) => register.requirement(target).map_err(|refusal| refusal.to_string())?,
                Need::Wide if target.sm() < 70 => {
                    return Err(format!("`.b128` needs sm_70 or higher, target is {target}"));
                }
                Need::Wide => PtxVersion::from_row(83),
            });
        }
        Ok(version)
    }
}

/// The shapes of a statement's operands, with every name looked up.
fn shapes(statement: &Statement, declarations: &Declarations, needs: &mut Needs) -> Result<Shapes, Diagnostic> {
    if let Some(guard) = statement.guard
        && declarations.lookup(guard.register) != Some(Symbol::Register(RegType::Pred))
    {
        let message = format!("`{}` is no predicate register", guard.register);
        return Err(at_mnemonic(statement, message));
    }
    let mut shapes = Shapes::new();
    let mut address = 0;
    for node in &statement.nodes {
        let shape = match node.kind {
            NodeKind::Name => name(node, declarations, address > 0, needs)?,
            NodeKind::Integer(value) => Shape::Integer(value),
            NodeKind::Float(double) => Shape::Float(double),
            NodeKind::Sink => Shape::Sink,
            NodeKind::Vector(count) => Shape::Vector(count),
            NodeKind::Group(count) => Shape::Group(count),
            NodeKind::Pair => Shape::Pair,
            NodeKind::Address(count) => Shape::Address(count),
        };
        address = match node.kind {
            NodeKind::Address(_) => 2,
            _ => i32::max(address - 1, 0),
        };
        shapes.push(shape);
    }
    Ok(shapes)
}

fn refuse(node: &Node, message: String) -> Diagnostic {
    Diagnostic { message, span: node.span }
}

fn name(node: &Node, declarations: &Declarations, base: bool, needs: &mut Needs) -> Result<Shape, Diagnostic> {
    let text = node.text;
    let symbol = match declarations.lookup(text) {
        Some(symbol) => symbol,
        None => return component(node, declarations, needs),
    };
    if node.minus {
        return match symbol {
            Symbol::Register(ty) => Ok(Shape::Minus(ty, None)),
            _ => Err(refuse(node, format!("`-{text}` is no operand"))),
        };
    }
    if node.not {
        return match symbol {
            Symbol::Register(RegType::Pred) => Ok(Shape::NegatedPredicate),
            _ => Err(refuse(node, format!("`{text}` is no predicate register"))),
        };
    }
    Ok(match symbol {
        Symbol::Register(ty) => {
            if ty == RegType::B128 && !needs.0.contains(&Need::Wide) {
                needs.0.push(Need::Wide);
            }
            Shape::Register(ty)
        }
        Symbol::Vector(ty, lanes) => Shape::WideRegister(ty, lanes),
        Symbol::Variable(space) if node.index && !base => Shape::Element(space),
        Symbol::Variable(space) => Shape::Variable(space),
        Symbol::Opaque(ty) => Shape::Opaque(ty),
        Symbol::Function => Shape::Symbol,
        Symbol::Label => Shape::Label,
    })
}

/// `%tid.x`, `%v.x`, `%r1.b0`, or an unknown name.
fn component(node: &Node, declarations: &Declarations, needs: &mut Needs) -> Result<Shape, Diagnostic> {
    if let Some(register) = SpecialReg::from_name(node.text).filter(|_| node.text.starts_with('%')) {
        needs.0.push(Need::Special(register));
        return Ok(match register.lanes() {
            1 => Shape::SpecialOf(register.ty()),
            lanes => Shape::WideRegister(register.ty(), lanes),
        });
    }
    if node.not {
        return Err(refuse(node, format!("`{}` is no predicate register", node.text)));
    }
    if let Some((base, part)) = node.text.split_once('.') {
        match declarations.lookup(base) {
            Some(Symbol::Register(ty)) => {
                if let Some(selector) = node.selector {
                    return Ok(match node.minus {
                        true => Shape::Minus(ty, Some(selector)),
                        false => Shape::Selected(ty, selector),
                    });
                }
            }
            Some(Symbol::Vector(ty, lanes)) => {
                let lane = part.bytes().next().and_then(|first| match first {
                    b'x' | b'r' => Some(0),
                    b'y' | b'g' => Some(1),
                    b'z' | b'b' => Some(2),
                    b'w' | b'a' => Some(3),
                    _ => None,
                });
                if part.len() == 1 && lane.is_some_and(|lane| lane < lanes) {
                    return Ok(Shape::Register(ty));
                }
            }
            _ => {}
        }
        return Err(refuse(node, format!("`{base}` has no component `.{part}`")));
    }
    Err(refuse(node, format!("`{}` is not declared", node.text)))
}
