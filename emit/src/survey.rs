//! One pass over all instructions before printing: which `.version` they need, and which symbols are used where.

use crate::EmitOptions;
use crate::error::EmitError;
use cranelift_entity::SecondaryMap;
use ptxc_mir::{
    Callee, Function, FunctionAttrs, GlobalId, GroupKind, LocId, Module, Op, OpaqueKind, Operand, ParamType, RegClass,
    Signature, SymId,
};
use ptxc_targets::{FormError, PtxVersion, RegType, Shape, Space, SpecialReg, resolve};
use rustc_hash::FxHashSet;
use smallvec::SmallVec;

/// What a symbol stands for. Numbers are indices into the module's lists.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Meaning {
    #[default]
    Nothing,
    Global(GlobalId),
    Opaque(OpaqueKind),
    Function(usize),
    Declaration(usize),
}

/// What the survey found.
#[derive(Debug)]
pub(crate) struct Survey {
    /// The lowest version that works, or the one asked for.
    pub version: PtxVersion,
    pub meaning: SecondaryMap<SymId, Meaning>,
    /// Functions that are used before their definition, by index.
    pub forward: Vec<bool>,
    /// Declarations that are used, by index.
    pub declared: Vec<bool>,
}

/// The requirement of a feature of declarations: what PTX ISA version, from which sm on.
pub(crate) struct Feature {
    name: &'static str,
    version: (u8, u8),
    sm: u16,
}

/// Features of directives and types whose floor is above what every target has (PTX ISA, chapters 5 and 11, "PTX ISA
/// notes" and "target ISA notes").
pub(crate) mod feature {
    use super::Feature;
    pub const NORETURN: Feature = Feature { name: "`.noreturn`", version: (6, 4), sm: 30 };
    pub const CLUSTER: Feature = Feature { name: "a cluster directive", version: (7, 8), sm: 90 };
    pub const BLOCKS_ARE_CLUSTERS: Feature = Feature { name: "`.blocksareclusters`", version: (9, 0), sm: 90 };
    pub const B128: Feature = Feature { name: "type `.b128`", version: (8, 3), sm: 70 };
    pub const MASK: Feature =
        Feature { name: "an address that is not aligned to its size in an initializer", version: (7, 1), sm: 50 };
    pub const LARGE_PARAMS: Feature =
        Feature { name: "more than 4352 bytes of kernel parameters", version: (8, 1), sm: 70 };
}

/// Bytes of kernel parameters that every version takes (PTX ISA, 7.1.1).
const SMALL_PARAMS: u64 = 4352;

/// Surveys a module.
pub(crate) fn survey(module: &Module, options: EmitOptions) -> Result<Survey, EmitError> {
    let mut surveyor = Surveyor {
        module,
        options,
        needed: module.target.min_ptx(),
        survey: Survey {
            version: module.target.min_ptx(),
            meaning: meanings(module)?,
            forward: vec![false; module.functions.len()],
            declared: vec![false; module.declarations.len()],
        },
        forms: vec![SmallVec::new(); module.opcodes.len()],
        special: FxHashSet::default(),
        shapes: Vec::new(),
    };
    if let Some(asked) = module.ptx_version {
        surveyor.need(|| "the target".to_owned(), module.target.min_ptx(), &String::new)?;
        surveyor.survey.version = asked;
    }
    surveyor.globals()?;
    for (index, func) in module.functions.iter().enumerate() {
        surveyor.function(index, func)?;
    }
    for (declaration, &used) in module.declarations.iter().zip(&surveyor.survey.declared.clone()) {
        if used {
            surveyor.attributes(declaration.name, &declaration.attrs, &declaration.signature)?;
        }
    }
    if module.ptx_version.is_none() {
        surveyor.survey.version = surveyor.needed;
    }
    Ok(surveyor.survey)
}

fn meanings(module: &Module) -> Result<SecondaryMap<SymId, Meaning>, EmitError> {
    let mut meaning: SecondaryMap<SymId, Meaning> = SecondaryMap::with_capacity(module.symbols.len());
    let mut define = |symbol: SymId, what: Meaning| {
        if meaning[symbol] != Meaning::Nothing {
            return Err(EmitError::DefinedTwice(module.symbols.name(symbol).to_owned()));
        }
        meaning[symbol] = what;
        Ok(())
    };
    for (id, global) in module.globals.iter() {
        define(global.symbol, Meaning::Global(id))?;
    }
    for opaque in &module.opaques {
        define(opaque.symbol, Meaning::Opaque(opaque.kind))?;
    }
    for (i, func) in module.functions.iter().enumerate() {
        define(func.name, Meaning::Function(i))?;
    }
    for (i, declaration) in module.declarations.iter().enumerate() {
        define(declaration.name, Meaning::Declaration(i))?;
    }
    Ok(meaning)
}

struct Surveyor<'a> {
    module: &'a Module,
    options: EmitOptions,
    needed: PtxVersion,
    survey: Survey,
    /// Shape hashes already looked up, for each opcode.
    forms: Vec<SmallVec<[u64; 2]>>,
    special: FxHashSet<SpecialReg>,
    shapes: Vec<Shape>,
}

impl Surveyor<'_> {
    /// Notes that something needs `version`.
    fn need(
        &mut self,
        feature: impl FnOnce() -> String,
        version: PtxVersion,
        place: &dyn Fn() -> String,
    ) -> Result<(), EmitError> {
        if let Some(asked) = self.module.ptx_version
            && asked < version
        {
            return Err(EmitError::Version { place: place(), feature: feature(), needed: version, asked });
        }
        self.needed = self.needed.max(version);
        Ok(())
    }

    fn feature(&mut self, symbol: SymId, feature: &Feature) -> Result<(), EmitError> {
        let target = self.module.target;
        let name = self.module.symbols.name(symbol);
        if target.sm() < feature.sm {
            return Err(EmitError::Feature {
                name: name.to_owned(),
                feature: feature.name,
                needs: format!("sm_{} or later", feature.sm),
                target,
            });
        }
        match PtxVersion::new(feature.version.0, feature.version.1) {
            Some(version) => self.need(|| feature.name.to_owned(), version, &|| format!("`{name}`: ")),
            None => Ok(()),
        }
    }

    fn globals(&mut self) -> Result<(), EmitError> {
        for global in self.module.globals.values() {
            let Some(init) = &global.init else { continue };
            for relocation in &init.relocations {
                let name = || format!("initializer of `{}`: ", self.module.symbols.name(global.symbol));
                match self.meaning(relocation.symbol, &name)? {
                    Meaning::Function(i) => self.survey.forward[i] = true,
                    Meaning::Declaration(i) => self.survey.declared[i] = true,
                    _ => {}
                }
            }
            if crate::globals::needs_masks(global) {
                self.feature(global.symbol, &feature::MASK)?;
            }
        }
        Ok(())
    }

    fn meaning(&self, symbol: SymId, place: &dyn Fn() -> String) -> Result<Meaning, EmitError> {
        match self.survey.meaning[symbol] {
            Meaning::Nothing => {
                Err(EmitError::Undefined { place: place(), name: self.module.symbols.name(symbol).to_owned() })
            }
            meaning => Ok(meaning),
        }
    }

    fn attributes(&mut self, name: SymId, attrs: &FunctionAttrs, signature: &Signature) -> Result<(), EmitError> {
        if attrs.noreturn {
            self.feature(name, &feature::NORETURN)?;
        }
        if attrs.reqnctapercluster.is_some() || attrs.maxclusterrank.is_some() {
            self.feature(name, &feature::CLUSTER)?;
        }
        if attrs.blocksareclusters {
            self.feature(name, &feature::BLOCKS_ARE_CLUSTERS)?;
        }
        let mut lists = signature.params.iter().chain(&signature.returns);
        if lists.any(|p| p.ty == ParamType::Scalar(RegType::B128)) {
            self.feature(name, &feature::B128)?;
        }
        Ok(())
    }

    fn function(&mut self, index: usize, func: &Function) -> Result<(), EmitError> {
        self.attributes(func.name, &func.attrs, &func.signature)?;
        let bounds = FunctionAttrs { noreturn: func.attrs.noreturn, ..FunctionAttrs::default() } != func.attrs;
        if func.kind == ptxc_mir::FuncKind::Func && bounds {
            return Err(EmitError::LaunchBounds(self.module.symbols.name(func.name).to_owned()));
        }
        if func.kind == ptxc_mir::FuncKind::Kernel && params_size(&func.signature) > SMALL_PARAMS {
            self.feature(func.name, &feature::LARGE_PARAMS)?;
        }
        if func.vregs.values().any(|&class| class == RegClass::B128) {
            self.feature(func.name, &feature::B128)?;
        }
        for &block in &func.layout {
            for &inst in &func.blocks[block].insts {
                let data = &func.insts[inst];
                let operands = func.inst_operands(inst);
                let place = || place(self.module, func, data.loc);
                match data.op {
                    Op::Ptx(opcode) => {
                        let hash = Shapes { func, module: self.module, meaning: &self.survey.meaning }.hash(operands);
                        let seen = self.forms.get(opcode.index()).is_some_and(|f| f.contains(&hash));
                        if !seen {
                            self.form(func, opcode, operands, hash, &place)?;
                        }
                    }
                    Op::Call(id) => {
                        if let Callee::Symbol(symbol) = func.calls[id].callee {
                            self.uses(index, symbol, &place)?;
                        }
                    }
                    Op::Copy(_) | Op::Asm(_) => {}
                }
                for &operand in operands {
                    match operand {
                        Operand::Sym(symbol, _) => self.uses(index, symbol, &place)?,
                        Operand::SReg(register) if self.special.insert(register) => {
                            let version = register
                                .requirement(self.module.target)
                                .map_err(|r| EmitError::Refused { place: place(), refusal: r.to_string() })?;
                            self.need(|| register.name().to_owned(), version, &place)?;
                        }
                        _ => {}
                    }
                }
            }
        }
        Ok(())
    }

    /// Function `index` uses a symbol.
    fn uses(&mut self, index: usize, symbol: SymId, place: &dyn Fn() -> String) -> Result<(), EmitError> {
        match self.meaning(symbol, place)? {
            Meaning::Function(used) if used > index => self.survey.forward[used] = true,
            Meaning::Declaration(used) => self.survey.declared[used] = true,
            _ => {}
        }
        Ok(())
    }

    /// Looks up the requirement of an opcode with operands of a shape not seen before.
    #[cold]
    fn form(
        &mut self,
        func: &Function,
        opcode: ptxc_targets::Opcode,
        operands: &[Operand],
        hash: u64,
        place: &dyn Fn() -> String,
    ) -> Result<(), EmitError> {
        let shapes = Shapes { func, module: self.module, meaning: &self.survey.meaning };
        self.shapes.clear();
        self.shapes.extend((0..operands.len()).filter_map(|at| shapes.of(operands, at)));
        match resolve(self.module.opcodes.toks(opcode), &self.shapes) {
            Ok(form) => {
                let version = form
                    .requirement(self.module.target)
                    .map_err(|r| EmitError::Refused { place: place(), refusal: r.to_string() })?;
                let text = || format!("`{}`", self.module.opcodes.text(opcode));
                self.need(text, version, place)?;
            }
            Err(error) if self.options.strict => return Err(form_error(error, place)),
            Err(_) => {}
        }
        if let Some(seen) = self.forms.get_mut(opcode.index()) {
            seen.push(hash);
        }
        Ok(())
    }
}

fn form_error(error: FormError, place: &dyn Fn() -> String) -> EmitError {
    EmitError::Form { place: place(), message: error.to_string() }
}

/// `file.cu:12:3: in `f`: `, without the parts that are unknown.
pub(crate) fn place(module: &Module, func: &Function, loc: LocId) -> String {
    let loc = func.locs[loc];
    let name = module.symbols.name(func.name);
    match module.files.iter().find(|f| f.number == loc.file) {
        Some(file) if loc.line > 0 => format!("{}:{}:{}: in `{name}`: ", file.path, loc.line, loc.column.max(1)),
        _ => format!("in `{name}`: "),
    }
}

fn params_size(signature: &Signature) -> u64 {
    let mut size = 0u64;
    for param in &signature.params {
        let (bytes, align) = match param.ty {
            ParamType::Scalar(ty) => (u64::from(ty.bits() / 8), u64::from(ty.bits() / 8)),
            ParamType::Bytes(n) => (u64::from(n), u64::from(param.align)),
            ParamType::Opaque(OpaqueKind::Texture | OpaqueKind::Surface | OpaqueKind::Sampler) => (8, 8),
        };
        size = size.next_multiple_of(align.max(1)) + bytes;
    }
    size
}

/// What an operand's shape depends on.
struct Shapes<'a> {
    func: &'a Function,
    module: &'a Module,
    meaning: &'a SecondaryMap<SymId, Meaning>,
}

impl Shapes<'_> {
    /// The shape of one slot; groups are counted in `operands` after slot `at`. Offsets have none.
    fn of(&self, operands: &[Operand], at: usize) -> Option<Shape> {
        Some(match operands[at] {
            Operand::Def(v) | Operand::Use(v) | Operand::DefUse { def: v, .. } => {
                let ty = self.func.vregs[v].ptx_type();
                match operands.get(at + 1) {
                    Some(Operand::Lanes(lanes)) => Shape::Selected(ty, lanes.selector()),
                    _ => Shape::Register(ty),
                }
            }
            Operand::UseMinus(v) => {
                let lanes = match operands.get(at + 1) {
                    Some(Operand::Lanes(lanes)) => Some(lanes.selector()),
                    _ => None,
                };
                Shape::Minus(self.func.vregs[v].ptx_type(), lanes)
            }
            Operand::UseNot(_) => Shape::NegatedPredicate,
            Operand::Imm(_) => Shape::Immediate,
            Operand::F32(_) => Shape::Float(Some(false)),
            Operand::F64(_) => Shape::Float(Some(true)),
            Operand::Sink => Shape::Sink,
            Operand::Sym(symbol, _) => self.symbol(symbol),
            Operand::Param(i, _) => match self.func.signature.params.get(i as usize).map(|p| p.ty) {
                Some(ParamType::Opaque(kind)) => Shape::Opaque(opaque_type(kind)),
                _ => Shape::Variable(Space::Param),
            },
            Operand::RetParam(..) => Shape::Variable(Space::Param),
            Operand::Depot(_) => Shape::Variable(Space::Local),
            Operand::SReg(register) => special_shape(register),
            Operand::Label(_) => Shape::Label,
            Operand::Offset(_) | Operand::Lanes(_) => return None,
            Operand::Open(kind, n) => {
                let inside = operands.get(at + 1..at + 1 + usize::from(n)).unwrap_or_default();
                let elements = ptxc_mir::operand::top_level(inside).count();
                match kind {
                    GroupKind::Vector => Shape::Vector(elements as u16),
                    GroupKind::Paren => Shape::Group(elements as u16),
                    GroupKind::Address => Shape::Address(elements as u8),
                    GroupKind::Pair => Shape::Pair,
                }
            }
        })
    }

    fn symbol(&self, symbol: SymId) -> Shape {
        match self.meaning[symbol] {
            Meaning::Global(id) => Shape::Variable(match self.module.globals[id].space {
                ptxc_mir::Space::Global => Space::Global,
                ptxc_mir::Space::Const => Space::Const,
                ptxc_mir::Space::Shared => Space::Shared,
                ptxc_mir::Space::Local => Space::Local,
            }),
            Meaning::Opaque(kind) => Shape::Opaque(opaque_type(kind)),
            _ => Shape::Symbol,
        }
    }

    /// A number that is equal for operand lists of equal shape, without making the shapes.
    fn hash(&self, operands: &[Operand]) -> u64 {
        let mut hash = operands.len() as u64;
        for (i, &operand) in operands.iter().enumerate() {
            let code = match operand {
                Operand::Def(v) | Operand::Use(v) | Operand::DefUse { def: v, .. } => self.func.vregs[v] as u64,
                Operand::UseNot(_) => 5,
                Operand::Imm(_) => 6,
                Operand::UseMinus(v) => 128 + self.func.vregs[v] as u64,
                Operand::Lanes(lanes) => lanes.text().bytes().fold(160, |code, byte| code << 8 | u64::from(byte)),
                Operand::Offset(_) => continue,
                Operand::Open(kind, n) => 16 + (kind as u64) + (u64::from(n) << 8),
                _ => match self.of(operands, i) {
                    Some(Shape::Variable(space)) => 32 + space as u64,
                    Some(Shape::Opaque(ty)) => 64 + ty as u64,
                    Some(Shape::SpecialOf(ty)) => 96 + ty as u64,
                    Some(Shape::WideRegister(ty, lanes)) => 96 + ty as u64 + (u64::from(lanes) << 8),
                    Some(Shape::Float(double)) => 7 + u64::from(double == Some(true)),
                    Some(Shape::Sink) => 9,
                    Some(Shape::Label) => 10,
                    _ => 11,
                },
            };
            hash = (hash.rotate_left(5) ^ code).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        }
        hash
    }
}

/// A special register of several lanes is a vector register (PTX ISA 10).
fn special_shape(register: ptxc_targets::SpecialReg) -> Shape {
    match register.lanes() {
        1 => Shape::SpecialOf(register.ty()),
        lanes => Shape::WideRegister(register.ty(), lanes),
    }
}

fn opaque_type(kind: OpaqueKind) -> RegType {
    match kind {
        OpaqueKind::Texture => RegType::Texref,
        OpaqueKind::Surface => RegType::Surfref,
        OpaqueKind::Sampler => RegType::Samplerref,
    }
}
