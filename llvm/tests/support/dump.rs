//! A module as text in one form, whatever the order in which it was read: two modules say the same exactly when their
//! texts are equal. Values and blocks are numbered in the order of the body, constants are written out, attributes are
//! sorted. Debug information without a form of its own in the model is left out.

use std::collections::HashMap;
use std::fmt::Write as _;

use ptxc_llvm::model::*;

/// The text of a module.
pub fn dump(module: &Module) -> String {
    let mut dumper = Dumper { module, out: String::new() };
    dumper.module();
    dumper.out
}

struct Dumper<'m> {
    module: &'m Module,
    out: String,
}

/// Numbers of the values and blocks of a body.
struct Numbers {
    values: HashMap<ValueId, usize>,
    blocks: HashMap<BlockId, usize>,
}

impl Dumper<'_> {
    fn module(&mut self) {
        let m = self.module;
        for (what, name) in [("layout", m.data_layout), ("triple", m.triple)] {
            let text = name.map_or_else(String::new, |name| m.names.text(name).into_owned());
            let _ = writeln!(self.out, "{what} {text:?}");
        }
        for line in &m.assembly {
            let _ = writeln!(self.out, "asm {:?}", m.names.text(*line));
        }
        // The order of variables, functions and aliases among each other is not kept by bitcode.
        for kind in 0..3 {
            for id in &m.order {
                let global = &m.globals[*id];
                let this = match &global.kind {
                    GlobalKind::Variable(_) => 0,
                    GlobalKind::Function(_) => 1,
                    _ => 2,
                };
                if this == kind {
                    self.global(*id);
                }
            }
        }
        let mut named: Vec<String> = Vec::new();
        for (name, nodes) in &m.named_metadata {
            let nodes: Vec<String> = nodes.iter().map(|node| self.metadata((*node).into(), 4)).collect();
            named.push(format!("!{} = {}", m.names.text(*name), nodes.join(", ")));
        }
        named.sort();
        let _ = writeln!(self.out, "{}", named.join("\n"));
    }

    fn name_of(&self, id: GlobalId) -> String {
        match self.module.globals[id].name {
            Some(name) => format!("@{}", self.module.names.text(name)),
            None => format!("@#{}", self.module.order.iter().position(|global| *global == id).unwrap_or(0)),
        }
    }

    fn global(&mut self, id: GlobalId) {
        let m = self.module;
        let g = &m.globals[id];
        let ty = g.ty.expand().map_or_else(String::new, |ty| self.ty(ty));
        let section = g.section.map(|name| m.names.text(name).into_owned());
        let comdat = g.comdat.expand().map(|comdat| m.names.text(m.comdats[comdat].name).into_owned());
        let _ = writeln!(
            self.out,
            "{} {ty} space {} {} {} {} align {} {section:?} {comdat:?} local {}",
            self.name_of(id),
            g.space,
            g.linkage.word(),
            g.visibility.word(),
            g.unnamed_address.word(),
            g.align,
            // These are local without saying so.
            g.dso_local || g.linkage.is_local() || g.visibility != Visibility::Default,
        );
        for (kind, node) in &g.attachments {
            let _ = writeln!(self.out, "  !{} {}", m.names.text(*kind), self.metadata((*node).into(), 2));
        }
        match &g.kind {
            GlobalKind::Unknown => self.out.push_str("  unknown\n"),
            GlobalKind::Variable(v) => {
                let init = v.initializer.expand().map(|init| self.constant(init));
                let attributes = self.attributes(v.attributes, 0);
                let _ = writeln!(
                    self.out,
                    "  variable {} {} {} {init:?} {attributes}",
                    v.constant, v.thread_local, v.externally_initialized
                );
            }
            GlobalKind::Alias(of) => {
                let _ = writeln!(self.out, "  alias {}", self.constant(*of));
            }
            GlobalKind::IFunc(of) => {
                let _ = writeln!(self.out, "  ifunc {}", self.constant(*of));
            }
            GlobalKind::Function(f) => self.function(g, f),
        }
    }

    fn function(&mut self, global: &Global, f: &Function) {
        let params = global.ty.expand().and_then(|ty| self.module.types.signature(ty)).map_or(0, |s| s.1.len());
        let attributes = self.attributes(f.attributes, params);
        let _ = writeln!(self.out, "  cc {} {attributes}", f.convention.0);
        for (what, constant) in [("prefix", f.prefix), ("prologue", f.prologue), ("personality", f.personality)] {
            if let Some(constant) = constant.expand() {
                let _ = writeln!(self.out, "  {what} {}", self.constant(constant));
            }
        }
        let Some(body) = &f.body else { return };
        let mut numbers = Numbers { values: HashMap::new(), blocks: HashMap::new() };
        for (value, data) in body.values.iter() {
            if let Definition::Argument(index) = data.definition {
                numbers.values.insert(value, index as usize);
            }
        }
        for (index, block) in body.order.iter().enumerate() {
            numbers.blocks.insert(*block, index);
            for inst in body.block(*block) {
                if let Some(result) = body.instructions[inst].result.expand() {
                    let number = numbers.values.len();
                    numbers.values.insert(result, number);
                }
            }
        }
        let mut names: Vec<String> = Vec::new();
        for (value, name) in &body.names {
            names.push(format!("%{}={}", numbers.values[value], self.module.names.text(*name)));
        }
        names.sort();
        let _ = writeln!(self.out, "  names {}", names.join(" "));
        for (index, block) in body.order.iter().enumerate() {
            let name = body.blocks[*block].name.map(|name| self.module.names.text(name).into_owned());
            let _ = writeln!(self.out, "  block {index} {}", name.unwrap_or_default());
            for inst in body.block(*block) {
                self.instruction(body, &numbers, inst);
            }
        }
    }

    fn instruction(&mut self, body: &Body, numbers: &Numbers, inst: InstId) {
        for record in body.records.iter().filter(|record| record.before == inst) {
            let arguments = self.operands(body, numbers, record.arguments);
            let location = self.metadata(record.location, 3);
            let _ = writeln!(self.out, "    #{} {arguments} {location}", record.kind.word());
        }
        let data = &body.instructions[inst];
        let text = self.instruction_text(body, numbers, &data.instruction);
        let result = data.result.expand().map_or_else(String::new, |value| {
            format!("%{}: {} = ", numbers.values[&value], self.ty(body.values[value].ty))
        });
        let location = data.location.expand().map_or_else(String::new, |at| self.metadata(at.into(), 3));
        let _ = writeln!(self.out, "    {result}{text} {location}");
        let mut attached: Vec<String> = Vec::new();
        for (_, kind, node) in body.attachments(inst) {
            attached.push(format!("!{} {}", self.module.names.text(*kind), self.metadata((*node).into(), 3)));
        }
        attached.sort();
        for line in attached {
            let _ = writeln!(self.out, "      {line}");
        }
    }

    fn operand(&self, body: &Body, numbers: &Numbers, operand: Operand) -> String {
        match operand.kind() {
            OperandKind::Value(value) => {
                let number = numbers.values.get(&value).map_or("?".to_owned(), ToString::to_string);
                format!("{} %{number}", self.ty(body.values[value].ty))
            }
            OperandKind::Constant(constant) => self.constant(constant),
            OperandKind::Block(block) => format!("block {}", numbers.blocks.get(&block).map_or(9999, |n| *n)),
            OperandKind::Metadata(metadata) => match body.metadata[metadata] {
                LocalMetadata::Value(operand) => format!("metadata {}", self.operand(body, numbers, operand)),
                LocalMetadata::Arguments(list) => format!("arguments {}", self.operands(body, numbers, list)),
            },
        }
    }

    fn operands(&self, body: &Body, numbers: &Numbers, list: List) -> String {
        let all: Vec<String> = body.operands(list).iter().map(|op| self.operand(body, numbers, *op)).collect();
        all.join(", ")
    }

    fn instruction_text(&self, body: &Body, n: &Numbers, instruction: &Instruction) -> String {
        let op = |operand: &Operand| self.operand(body, n, *operand);
        let block = |block: &BlockId| format!("block {}", n.blocks.get(block).map_or(9999, |n| *n));
        match instruction {
            Instruction::Phi { flags, incoming } => format!("phi {flags:?} {}", self.operands(body, n, *incoming)),
            Instruction::ElementPointer { flags, element, operands } => {
                format!("gep {flags:?} {} {}", self.ty(*element), self.operands(body, n, *operands))
            }
            Instruction::Alloca { ty, count, align } => format!("alloca {} {} {align:?}", self.ty(*ty), op(count)),
            Instruction::Load { address, access } => format!("load {} {}", op(address), self.access(access)),
            Instruction::Store { value, address, access } => {
                format!("store {} {} {}", op(value), op(address), self.access(access))
            }
            Instruction::Rmw { op: which, address, value, access } => {
                format!("rmw {} {} {} {}", which.word(), op(address), op(value), self.access(access))
            }
            Instruction::CompareExchange { weak, failure, address, expected, new, access } => format!(
                "cmpxchg {weak} {} {} {} {} {}",
                failure.word(),
                op(address),
                op(expected),
                op(new),
                self.access(access)
            ),
            Instruction::Fence { ordering, scope } => {
                format!("fence {} {:?}", ordering.word(), self.module.names.text(*scope))
            }
            Instruction::Shuffle { left, right, mask } => {
                format!("shuffle {} {} {:?}", op(left), op(right), body.words(*mask))
            }
            Instruction::ExtractValue { aggregate, path } => format!("part {} {:?}", op(aggregate), body.words(*path)),
            Instruction::InsertValue { aggregate, value, path } => {
                format!("with {} {} {:?}", op(aggregate), op(value), body.words(*path))
            }
            Instruction::Call(call) => self.call(body, n, *call),
            Instruction::Invoke { call, normal, unwind } => {
                format!("invoke {} {} {}", self.call(body, n, *call), block(normal), block(unwind))
            }
            Instruction::Return(list) => format!("ret {}", self.operands(body, n, *list)),
            Instruction::Jump(to) => format!("jump {}", block(to)),
            Instruction::Branch { condition, yes, no } => format!("br {} {} {}", op(condition), block(yes), block(no)),
            Instruction::Switch { value, default, cases } => {
                format!("switch {} {} {}", op(value), block(default), self.operands(body, n, *cases))
            }
            Instruction::IndirectBranch { address, targets } => {
                format!("indirectbr {} {}", op(address), self.operands(body, n, *targets))
            }
            Instruction::Binary { op: which, flags, left, right } => {
                format!("{} {flags:?} {} {}", which.word(), op(left), op(right))
            }
            Instruction::Negate { flags, value } => format!("fneg {flags:?} {}", op(value)),
            Instruction::Cast { op: which, flags, value } => format!("{} {flags:?} {}", which.word(), op(value)),
            Instruction::CompareInt { predicate, flags, left, right } => {
                format!("icmp {} {flags:?} {} {}", predicate.word(), op(left), op(right))
            }
            Instruction::CompareFloat { predicate, flags, left, right } => {
                format!("fcmp {} {flags:?} {} {}", predicate.word(), op(left), op(right))
            }
            Instruction::Select { flags, condition, yes, no } => {
                format!("select {flags:?} {} {} {}", op(condition), op(yes), op(no))
            }
            Instruction::Freeze(value) => format!("freeze {}", op(value)),
            Instruction::ExtractElement { vector, index } => format!("lane {} {}", op(vector), op(index)),
            Instruction::InsertElement { vector, element, index } => {
                format!("insert {} {} {}", op(vector), op(element), op(index))
            }
            Instruction::VariadicArgument(list) => format!("va_arg {}", op(list)),
            Instruction::CallBranch { call, targets } => {
                format!("callbr {} {}", self.call(body, n, *call), self.operands(body, n, *targets))
            }
            Instruction::Unreachable => "unreachable".to_owned(),
            Instruction::Exception { op, .. } => op.word().to_owned(),
        }
    }

    fn access(&self, access: &Access) -> String {
        let scope = self.module.names.text(access.scope);
        format!("{:?} {} {} {scope:?}", access.align, access.volatile, access.ordering.word())
    }

    fn call(&self, body: &Body, n: &Numbers, call: CallId) -> String {
        let call = &body.calls[call];
        let arguments = body.operands(call.arguments);
        let bundles: Vec<String> = body
            .bundles(call.bundles)
            .iter()
            .map(|bundle| {
                format!("{}({})", self.module.names.text(bundle.tag), self.operands(body, n, bundle.operands))
            })
            .collect();
        format!(
            "call {} cc {} {:?} {} {} ({}) {} [{}]",
            call.tail.word(),
            call.convention.0,
            call.flags,
            self.ty(call.ty),
            self.operand(body, n, call.callee),
            self.operands(body, n, call.arguments),
            self.attributes(call.attributes, arguments.len()),
            bundles.join(" "),
        )
    }

    fn attributes(&self, id: cranelift_entity::packed_option::PackedOption<AttributesId>, params: usize) -> String {
        let table = &self.module.attributes;
        let sorted = |attributes: &mut dyn Iterator<Item = Attribute>| {
            let mut all: Vec<String> = attributes.map(|attribute| self.attribute(attribute)).collect();
            all.sort();
            all.dedup();
            all.join(" ")
        };
        let mut text = format!("fn[{}]", sorted(&mut table.function(id)));
        let result = sorted(&mut table.result(id).iter().copied());
        if !result.is_empty() {
            let _ = write!(text, " result[{result}]");
        }
        for index in 0..params {
            let param = sorted(&mut table.param(id, index).iter().copied());
            if !param.is_empty() {
                let _ = write!(text, " {index}[{param}]");
            }
        }
        text
    }

    fn attribute(&self, attribute: Attribute) -> String {
        let name = self.module.names.text(attribute.name).into_owned();
        match attribute.value {
            AttributeValue::Word => name,
            AttributeValue::Text(text) => format!("{name:?}={:?}", self.module.names.text(text)),
            AttributeValue::Number(number) => format!("{name}({number})"),
            AttributeValue::Type(ty) => format!("{name}({})", self.ty(ty)),
            AttributeValue::Range { bits, words } => {
                format!("{name}(i{bits} {:?})", self.module.attributes.words(words))
            }
            AttributeValue::Numbers(words) => format!("{name}({:?})", self.module.attributes.words(words)),
        }
    }

    fn ty(&self, ty: TypeId) -> String {
        let types = &self.module.types;
        let list = |list: List| types.list(list).iter().map(|ty| self.ty(*ty)).collect::<Vec<_>>().join(", ");
        match types.get(ty) {
            Type::Array { len, element } => format!("[{len} x {}]", self.ty(element)),
            Type::Vector { len, scalable, element } => {
                format!("<{}{len} x {}>", if scalable { "vscale x " } else { "" }, self.ty(element))
            }
            Type::Struct { packed, fields } => format!("{}{{{}}}", if packed { "packed" } else { "" }, list(fields)),
            Type::Named(id) => match types.structs[id].name {
                Some(name) => format!("%{}", self.module.names.text(name)),
                None => format!("%({:?})", types.structs[id].body.map(|body| body.fields.len)),
            },
            Type::Function { result, params, variadic } => {
                format!("{} ({}{})", self.ty(result), list(params), if variadic { ", ..." } else { "" })
            }
            Type::Target { name, types: list_of, words } => {
                format!("target({}, {}, {:?})", self.module.names.text(name), list(list_of), types.words(words))
            }
            Type::Integer(bits) => format!("i{bits}"),
            Type::Pointer(0) => "ptr".to_owned(),
            Type::Pointer(space) => format!("ptr<{space}>"),
            other => format!("{other:?}"),
        }
    }

    fn constant(&self, id: ConstId) -> String {
        let c = &self.module.constants;
        let list = |list: List| c.list(list).iter().map(|part| self.constant(*part)).collect::<Vec<_>>().join(", ");
        let text = match c.get(id) {
            Constant::Integer(bits) => bits.to_string(),
            Constant::Float(bits) => format!("{bits:#x}"),
            Constant::WideInteger(words) | Constant::WideFloat(words) => format!("{:x?}", c.words(words)),
            Constant::Aggregate(parts) => format!("{{{}}}", list(parts)),
            Constant::Data(bytes) => format!("{:x?}", c.bytes(bytes)),
            Constant::Global(global) => self.name_of(global),
            Constant::BlockAddress(address) => {
                let address = c.block_addresses[address];
                let body = self.module.globals[address.function].function().and_then(|f| f.body.as_ref());
                let index = body.zip(address.block).and_then(|(b, block)| b.order.iter().position(|o| *o == block));
                format!("blockaddress {} {index:?}", self.name_of(address.function))
            }
            Constant::DsoLocalEquivalent(global) => format!("dso_local_equivalent {}", self.name_of(global)),
            Constant::NoCfi(global) => format!("no_cfi {}", self.name_of(global)),
            Constant::PointerAuth(parts) => format!("ptrauth {}", list(parts)),
            Constant::Assembly(assembly) => {
                let a = &c.assembly[assembly];
                let (text, constraints) = (self.module.names.text(a.text), self.module.names.text(a.constraints));
                format!("asm {text:?} {constraints:?} {} {} {} {}", a.side_effect, a.align_stack, a.intel, a.unwind)
            }
            Constant::Metadata(node) => self.metadata(node.into(), 3),
            Constant::Negate(value) => format!("fneg {}", self.constant(value)),
            Constant::Cast { op, value } => format!("{} {}", op.word(), self.constant(value)),
            Constant::Binary { op, flags, left, right } => {
                format!("{} {flags:?} {} {}", op.word(), self.constant(left), self.constant(right))
            }
            Constant::CompareInt { predicate, left, right } => {
                format!("icmp {} {} {}", predicate.word(), self.constant(left), self.constant(right))
            }
            Constant::CompareFloat { predicate, left, right } => {
                format!("fcmp {} {} {}", predicate.word(), self.constant(left), self.constant(right))
            }
            Constant::Select { condition, yes, no } => {
                format!("select {} {} {}", self.constant(condition), self.constant(yes), self.constant(no))
            }
            Constant::ElementPointer { flags, element, operands } => {
                format!("gep {flags:?} {} {}", self.ty(element), list(operands))
            }
            Constant::ExtractElement { vector, index } => {
                format!("lane {} {}", self.constant(vector), self.constant(index))
            }
            Constant::InsertElement { vector, element, index } => {
                format!("insert {} {} {}", self.constant(vector), self.constant(element), self.constant(index))
            }
            Constant::Shuffle { left, right, mask } => {
                format!("shuffle {} {} {:?}", self.constant(left), self.constant(right), c.mask(mask))
            }
            Constant::Zero => "zero".to_owned(),
            Constant::Undef => "undef".to_owned(),
            Constant::Poison => "poison".to_owned(),
            Constant::NoToken => "none".to_owned(),
        };
        format!("{} ({text})", self.ty(c.ty(id)))
    }

    /// Metadata as far as `depth` nodes deep.
    fn metadata(&self, id: MetadataRef, depth: u32) -> String {
        let Some(id) = id.expand() else { return "null".to_owned() };
        if depth == 0 {
            return "…".to_owned();
        }
        let table = &self.module.metadata;
        let text = |name: Option<Name>| name.map(|name| self.module.names.text(name).into_owned());
        let deeper = |id: MetadataRef| self.metadata(id, depth - 1);
        let list = |list: List| table.operands(list).iter().map(|part| deeper(*part)).collect::<Vec<_>>().join(", ");
        match table.get(id) {
            Metadata::Unknown => "unknown".to_owned(),
            Metadata::Text(name) => format!("{:?}", self.module.names.text(name)),
            Metadata::Value(value) => self.constant(value),
            // Bitcode does not say of a node that names itself whether it was written as distinct.
            Metadata::Node { operands, .. } => format!("{{{}}}", list(operands)),
            Metadata::Location(l) => {
                format!("{}:{} {} at {}", l.line, l.column, deeper(l.scope), deeper(l.inlined_at))
            }
            Metadata::File(f) => format!("file {:?} {:?}", text(f.filename), text(f.directory)),
            Metadata::Subprogram(s) => format!(
                "subprogram {} {:?} {:?} {} {} {} {} {}",
                s.distinct,
                text(s.name),
                text(s.linkage_name),
                deeper(s.scope),
                deeper(s.file),
                s.line,
                s.scope_line,
                deeper(s.unit)
            ),
            Metadata::Block(b) => {
                format!("block {} {} {} {}:{}", b.distinct, deeper(b.scope), deeper(b.file), b.line, b.column)
            }
            Metadata::Unit(u) => {
                format!("unit {} {:?} {} {:?}", deeper(u.file), text(u.producer), u.optimized, u.emission)
            }
            Metadata::Expression(words) => format!("expression {:?}", table.words(words)),
            Metadata::Arguments(operands) => format!("arguments {}", list(operands)),
            Metadata::Other { kind, .. } => self.module.names.text(kind).into_owned(),
        }
    }
}
