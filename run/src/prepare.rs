//! Makes buffers and launches of a case's directives.

use std::ops::Range;
use std::path::{Path, PathBuf};

use ptxc_interp::launch::{Argument, Buffer, Launch};
use ptxc_ir::{FuncKind, MemType, Module, Symbol, Type};

use crate::error::Error;
use crate::evaluate::{Array, Evaluator, State};
use crate::expression::Closed;
use crate::file::{ArrayStep, Bounds, Case, Fill, LaunchStep, Operand, Part, RunFile, Step};
use crate::value::Element;

/// Most bytes of an array.
const MOST_BYTES: i128 = 1 << 30;

/// A case that is ready to run.
#[derive(Debug)]
pub struct Prepared<'a> {
    /// The file.
    pub(crate) file: &'a RunFile,
    /// The case.
    pub(crate) case: &'a Case,
    /// Launches in order.
    pub launches: Vec<Launch>,
    /// Buffers that the launches' arguments point into.
    pub buffers: Vec<Buffer>,
    /// Values of names and contents of arrays.
    pub(crate) state: State,
    /// Array of each buffer.
    pub(crate) array_of: Vec<usize>,
}

/// Evaluates a case's directives up to its launches. `folder` is where files lie.
///
/// # Errors
/// An expression has no value, or an argument or size does not fit its kernel.
pub fn prepare<'a>(file: &'a RunFile, case: &'a Case, module: &Module, folder: &Path) -> Result<Prepared<'a>, Error> {
    let state = State { named: Vec::new(), arrays: (0..file.arrays.len()).map(|_| None).collect() };
    let (launches, buffers, array_of) = (Vec::new(), Vec::new(), Vec::new());
    let mut prepared = Prepared { file, case, launches, buffers, state, array_of };
    for step in &case.steps {
        match step {
            Step::Let(index, value) => {
                let value = prepared.evaluator().value(value, 0)?;
                prepared.state.named.resize(*index, crate::value::Value::Bool(false));
                prepared.state.named.push(value);
            }
            Step::Array(step) => prepared.make_array(step, folder)?,
            Step::Launch(step) => {
                let launch = prepared.launch(step, module)?;
                prepared.launches.push(launch);
            }
            _ => {}
        }
    }
    Ok(prepared)
}

impl<'a> Prepared<'a> {
    pub(crate) fn evaluator(&self) -> Evaluator<'_> {
        Evaluator::new(&self.state, &self.file.functions)
    }

    /// Name and type of an array.
    pub(crate) fn name(&self, array: usize) -> &str {
        self.file.arrays.get(array).map_or("", |array| array.name.as_str())
    }

    fn make_array(&mut self, step: &ArrayStep, folder: &Path) -> Result<(), Error> {
        let Some(name) = self.file.arrays.get(step.array) else { return Ok(()) };
        let element = name.element;
        let length = self.evaluator().whole(&step.length)?;
        if length < 0 || length > MOST_BYTES / element.size() as i128 {
            return Err(Error::new(format!("{length} elements"), step.length.body.span.clone()));
        }
        let length = length as usize;
        let mut array = Array { element, bytes: Vec::new(), uninitialized: step.fill.is_none(), after: None };
        match &step.fill {
            None => array.bytes = vec![0; length * element.size()],
            Some(Fill::Each(value)) => {
                // Computed one after the other, so that each may use those before it.
                array.bytes.reserve(length * element.size());
                self.put(step.array, array);
                self.fill_each(step.array, value, 0..length, element)?;
                return self.make_buffer(step);
            }
            Some(fill) => array.bytes = contents(&self.evaluator_of(), fill, element, 0..length, folder)?,
        }
        self.put(step.array, array);
        self.make_buffer(step)
    }

    fn evaluator_of(&self) -> impl Fn(&Closed, usize, Element) -> Result<u128, Error> + '_ {
        move |closed, index, element| Evaluator::new(&self.state, &self.file.functions).element(closed, index, element)
    }

    fn fill_each(&mut self, array: usize, value: &Closed, range: Range<usize>, element: Element) -> Result<(), Error> {
        for index in range {
            let bits = self.evaluator().element(value, index, element)?;
            if let Some(Some(array)) = self.state.arrays.get_mut(array) {
                array.bytes.extend(bits.to_le_bytes().iter().take(element.size()));
            }
        }
        Ok(())
    }

    fn put(&mut self, index: usize, array: Array) {
        if let Some(place) = self.state.arrays.get_mut(index) {
            *place = Some(array);
        }
    }

    fn make_buffer(&mut self, step: &ArrayStep) -> Result<(), Error> {
        if !step.buffer {
            return Ok(());
        }
        let Some(Some(array)) = self.state.arrays.get(step.array) else { return Ok(()) };
        let name = self.name(step.array).to_owned();
        let buffer = Buffer { name, bytes: array.bytes.clone(), uninitialized: array.uninitialized };
        self.buffers.push(buffer);
        self.array_of.push(step.array);
        Ok(())
    }

    fn sizes(&self, sizes: &Option<Vec<Closed>>) -> Result<Option<[u32; 3]>, Error> {
        let Some(sizes) = sizes else { return Ok(None) };
        let mut out = [1; 3];
        for (size, closed) in out.iter_mut().zip(sizes) {
            *size = self.size(closed)?;
        }
        Ok(Some(out))
    }

    fn size(&self, closed: &Closed) -> Result<u32, Error> {
        let size = self.evaluator().whole(closed)?;
        u32::try_from(size).map_err(|_| Error::new(format!("{size} is no size"), closed.body.span.clone()))
    }

    fn launch(&self, step: &LaunchStep, module: &Module) -> Result<Launch, Error> {
        let refuse = |message: String| Error::new(message, step.span.clone());
        let kernel = &step.kernel;
        let Some(Symbol::Func(id)) = module.symbol(kernel) else {
            return Err(refuse(format!("there is no kernel @{kernel}")));
        };
        let func = &module.funcs[id];
        if func.kind != FuncKind::Kernel || func.is_declaration() {
            return Err(refuse(format!("@{kernel} is no kernel with a body")));
        }
        if func.sig.params.len() != step.arguments.len() {
            let (takes, given) = (func.sig.params.len(), step.arguments.len());
            return Err(refuse(format!("@{kernel} takes {takes} arguments, not {given}")));
        }
        let mut arguments = Vec::new();
        for (param, operand) in func.sig.params.iter().zip(&step.arguments) {
            let ty = param.attrs.byval.unwrap_or(param.ty);
            let size = module.param_layout(param).size;
            arguments.push(self.argument(module, ty, size, operand)?);
        }
        let block = self.sizes(&step.block)?.or(func.attrs.reqntid).unwrap_or([1; 3]);
        let cluster = self.sizes(&step.cluster)?.or(func.attrs.reqnctapercluster).unwrap_or([1; 3]);
        let grid = self.sizes(&step.grid)?.unwrap_or(cluster);
        let dynamic_shared = step.shared.as_ref().map_or(Ok(0), |size| self.size(size))?;
        let launch = Launch { kernel: kernel.clone(), grid, block, cluster, dynamic_shared, arguments };
        launch.check().map_err(refuse)?;
        Ok(launch)
    }

    /// The argument for a parameter of this type that is passed in so many bytes.
    fn argument(&self, module: &Module, ty: MemType, size: u64, operand: &Operand) -> Result<Argument, Error> {
        if let Operand::Buffer(array, offset, span) = operand {
            let is_pointer = matches!(ty, MemType::Value(ty) if ty.is_ptr());
            if !is_pointer {
                return Err(Error::new("the kernel takes no pointer here", span.clone()));
            }
            let Some(index) = self.array_of.iter().position(|known| known == array) else {
                return Err(Error::new(format!("`{}` is no buffer", self.name(*array)), span.clone()));
            };
            let size = self.file.arrays.get(*array).map_or(1, |array| array.element.size());
            let elements = offset.as_ref().map_or(Ok(0), |offset| self.evaluator().whole(offset))?;
            let offset = (elements * size as i128) as u64;
            return Ok(Argument::Buffer { index, offset });
        }
        let mut bytes = vec![0u8; size as usize];
        let mut leaves = Vec::new();
        module.for_each_leaf(ty, 0, &mut |leaf, offset| {
            let size = leaf.scalar().size();
            leaves.extend((0..u64::from(leaf.lanes())).map(|lane| (leaf.scalar(), offset + lane * size)));
        });
        let mut operands = Vec::new();
        flatten(operand, &mut operands);
        if operands.len() != leaves.len() {
            let message = format!("{} numbers for a parameter of {}", operands.len(), leaves.len());
            return Err(Error::new(message, span_of(operand)));
        }
        for (operand, (leaf, offset)) in operands.into_iter().zip(leaves) {
            let Operand::Value(closed) = operand else {
                return Err(Error::new("a number is wanted inside a list", span_of(operand)));
            };
            let element = element_of(leaf);
            let bits = self.evaluator().element(closed, 0, element)?;
            let range = offset as usize..offset as usize + leaf.size() as usize;
            if let Some(place) = bytes.get_mut(range) {
                place.iter_mut().zip(bits.to_le_bytes()).for_each(|(to, from)| *to = from);
            }
        }
        Ok(Argument::Bytes(bytes))
    }

    /// Indices of the elements of a part.
    pub(crate) fn range(&self, part: &Part) -> Result<Range<usize>, Error> {
        let length = self.state.arrays.get(part.array).and_then(Option::as_ref).map_or(0, Array::len);
        let (from, to) = match &part.bounds {
            Bounds::All => return Ok(0..length),
            Bounds::One(index) => {
                let index = self.evaluator().whole(index)?;
                (index, index + 1)
            }
            Bounds::Range(from, to) => (self.evaluator().whole(from)?, self.evaluator().whole(to)?),
        };
        if from < 0 || to < from || to > length as i128 {
            let message = format!("{from}..{to} of an array of {length} elements");
            return Err(Error::new(message, part.span.clone()));
        }
        Ok(from as usize..to as usize)
    }
}

/// The bytes of elements that are listed or given as bytes.
pub(crate) fn contents(
    element_bits: &dyn Fn(&Closed, usize, Element) -> Result<u128, Error>,
    fill: &Fill,
    element: Element,
    range: Range<usize>,
    folder: &Path,
) -> Result<Vec<u8>, Error> {
    let wanted = range.len() * element.size();
    let check = |bytes: Vec<u8>, span: &Range<usize>| {
        if bytes.len() == wanted {
            return Ok(bytes);
        }
        Err(Error::new(format!("{} bytes for {} of {element}", bytes.len(), range.len()), span.clone()))
    };
    match fill {
        Fill::Bytes(bytes, span) => check(bytes.clone(), span),
        Fill::File(path, span) => {
            let path: PathBuf = folder.join(path);
            let bytes = std::fs::read(&path);
            check(bytes.map_err(|error| Error::new(format!("{}: {error}", path.display()), span.clone()))?, span)
        }
        Fill::List(list, span) if list.len() != range.len() => {
            Err(Error::new(format!("{} values for {} elements", list.len(), range.len()), span.clone()))
        }
        Fill::List(list, _) => {
            let mut bytes = Vec::with_capacity(wanted);
            for (value, index) in list.iter().zip(range) {
                bytes.extend(element_bits(value, index, element)?.to_le_bytes().iter().take(element.size()));
            }
            Ok(bytes)
        }
        Fill::Each(value) => {
            let mut bytes = Vec::with_capacity(wanted);
            for index in range {
                bytes.extend(element_bits(value, index, element)?.to_le_bytes().iter().take(element.size()));
            }
            Ok(bytes)
        }
    }
}

/// The type of reference values for a scalar of the IR: integers of any width are stored like the next larger ones.
fn element_of(leaf: Type) -> Element {
    match leaf.float_kind() {
        Some(kind) => Element::Float(kind),
        None => Element::Int { signed: false, bits: leaf.size() as u32 * 8 },
    }
}

/// The scalars of nested lists.
fn flatten<'a>(operand: &'a Operand, out: &mut Vec<&'a Operand>) {
    match operand {
        Operand::List(list, _) => list.iter().for_each(|inner| flatten(inner, out)),
        _ => out.push(operand),
    }
}

fn span_of(operand: &Operand) -> Range<usize> {
    match operand {
        Operand::Value(closed) => closed.body.span.clone(),
        Operand::Buffer(_, _, span) | Operand::List(_, span) => span.clone(),
    }
}
