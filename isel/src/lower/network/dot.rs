//! Sums of products of bytes and of bytes as `dp4a`, of halves and bytes as `dp2a` (PTX ISA 9.7.1), and of absolute differences of bytes
//! as `vabsdiff4` (9.7.20), in whatever order they are added.

use ptxc_ir::{Inst, Opcode, Type, Value};
use smallvec::SmallVec;

use super::bytes::{Byte, Bytes, Word, WordPlan};
use super::cuts::INSTRUCTION;
use super::{Plans, byte_count};
use crate::lower::{Lower, Uses};

/// Most terms of a sum that are looked at together; the sum of further ones is a term.
const MAX_TERMS: usize = 32;

/// What a group adds up.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(in crate::lower) enum Kind {
    /// Products of bytes, by `dp4a`.
    Products,
    /// Products of a half and a byte, by `dp2a`.
    Halves,
    /// Absolute differences, by `vabsdiff4`.
    Differences,
}

/// A sum with products of bytes in it.
#[derive(Clone)]
pub(in crate::lower) struct Dot {
    /// Each one instruction, added to what is before.
    pub groups: SmallVec<[Group; 2]>,
    /// The other terms.
    pub rest: SmallVec<[Term; 4]>,
}

/// Up to four products or differences, up to two of halves.
#[derive(Clone)]
pub(in crate::lower) struct Group {
    /// What it adds up.
    pub kind: Kind,
    /// Whether the bytes of each side are signed.
    pub signed: [bool; 2],
    /// The words of both sides.
    pub words: [WordPlan; 2],
    /// The upper bytes of the second word are meant, by `dp2a.hi`.
    pub high: bool,
}

/// A term of a sum.
#[derive(Clone, Copy)]
pub(in crate::lower) enum Term {
    Value(Value),
    /// A product that only the sum wants.
    Product(Value, Value),
}

/// A factor that is a byte or a half.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Factor {
    /// The word and the place of its lowest byte.
    word: Word,
    at: u8,
    /// Its second byte, where it is a half.
    upper: Option<Byte>,
    signed: bool,
    /// It is as good as one of the other sign.
    either: bool,
}

#[derive(Clone, Copy)]
struct Product {
    kind: Kind,
    factors: [Factor; 2],
    term: Term,
}

impl Lower<'_> {
    /// The sum that an addition is, when products or differences of bytes in it become one instruction; with its cost, and
    /// what taking the bytes out of words costs without, where the network does not count that.
    pub(super) fn dot(&self, inst: Inst, plans: &Plans) -> Option<(Dot, u32, u32)> {
        let data = &self.ir.dfg.insts[inst];
        if data.op != Opcode::Add || data.ty != Type::I32 || self.env.target.sm() < 61 {
            return None;
        }
        let mut products: SmallVec<[Product; 8]> = SmallVec::new();
        let mut rest: SmallVec<[Term; 4]> = SmallVec::new();
        for value in self.terms(inst, plans) {
            match self.product(value, plans).or_else(|| self.byte_difference(value, plans)) {
                Some(product) => products.push(product),
                None => rest.push(self.other_term(value, plans)),
            }
        }
        // Plain bytes are worth it where they are in one word already.
        let plain = products.is_empty();
        if plain {
            rest.retain(|term| match *term {
                Term::Value(value) => match self.byte_term(value, plans) {
                    Some(product) => {
                        products.push(product);
                        false
                    }
                    None => true,
                },
                Term::Product(..) => true,
            });
        }
        if products.len() < 2 {
            return None;
        }
        products
            .sort_by_key(|p| (p.kind, p.factors.map(|f| f.signed), p.factors.map(|f| order(f.word)), p.factors[0].at));
        let mut groups: SmallVec<[Group; 2]> = SmallVec::new();
        let mut at = 0;
        while at < products.len() {
            let len = group_length(&products[at..]);
            let members = &products[at..at + len];
            at += len;
            match members {
                [single] => rest.push(single.term),
                _ => {
                    let group = self.group(members);
                    if plain && group.words.iter().any(|word| word.instructions() > 0) {
                        rest.extend(members.iter().map(|member| member.term));
                    } else {
                        groups.push(group);
                    }
                }
            }
        }
        if groups.is_empty() {
            return None;
        }
        let cost = self.dot_cost(&groups, &rest, plans);
        let differences = products.iter().filter(|p| p.kind == Kind::Differences).count() as u32;
        Some((Dot { groups, rest }, cost, 2 * differences * INSTRUCTION))
    }

    /// The terms of a sum: what is added, through additions that only this sum wants.
    fn terms(&self, inst: Inst, plans: &Plans) -> SmallVec<[Value; 16]> {
        let mut terms: SmallVec<[Value; 16]> = SmallVec::new();
        terms.push(self.arg(inst, 0));
        terms.push(self.arg(inst, 1));
        let mut next = 0;
        while next < terms.len() {
            match self.inner(terms[next], Opcode::Add, plans) {
                Some(inner) if terms.len() < MAX_TERMS => {
                    terms[next] = self.arg(inner, 0);
                    terms.push(self.arg(inner, 1));
                }
                _ => next += 1,
            }
        }
        terms
    }

    /// The operation of the block behind a value that nothing else wants.
    fn inner(&self, value: Value, op: Opcode, plans: &Plans) -> Option<Inst> {
        plans.node(value)?;
        let inst = self.ir.dfg.def_inst(value)?;
        (self.ir.dfg.insts[inst].op == op && self.uses[value] == Uses::ONCE && !self.is_assigned(value)).then_some(inst)
    }

    fn other_term(&self, value: Value, plans: &Plans) -> Term {
        match self.inner(value, Opcode::Mul, plans) {
            Some(inst) => Term::Product(self.arg(inst, 0), self.arg(inst, 1)),
            None => Term::Value(value),
        }
    }

    fn product(&self, value: Value, plans: &Plans) -> Option<Product> {
        let inst = self.inner(value, Opcode::Mul, plans)?;
        let (a, b) = (self.arg(inst, 0), self.arg(inst, 1));
        let (mut x, mut y) = (self.factor(a, plans)?, self.factor(b, plans)?);
        // A factor that fits both kinds takes the other one's.
        if x.either {
            x.signed = y.signed && !y.either;
        }
        if y.either {
            y.signed = x.signed && !x.either;
        }
        let kind = match (x.upper, y.upper) {
            (None, None) => Kind::Products,
            (Some(_), Some(_)) => return None,
            _ => Kind::Halves,
        };
        let swap = match kind {
            Kind::Halves => y.upper.is_some(),
            _ => (!x.signed, order(x.word)) > (!y.signed, order(y.word)),
        };
        let factors = if swap { [y, x] } else { [x, y] };
        Some(Product { kind, factors, term: Term::Product(a, b) })
    }

    /// A byte of a word as the product with one.
    fn byte_term(&self, value: Value, plans: &Plans) -> Option<Product> {
        let byte = self.factor(value, plans).filter(|factor| factor.upper.is_none())?;
        let computed = matches!(byte.word, Word::Of(..));
        let one = Factor { word: Word::Constant(1), at: 0, upper: None, signed: byte.signed, either: true };
        computed.then_some(Product { kind: Kind::Products, factors: [byte, one], term: Term::Value(value) })
    }

    /// `|a - b|` of two bytes that are extended alike, which only the sum wants. The difference of bytes has no overflow.
    fn byte_difference(&self, value: Value, plans: &Plans) -> Option<Product> {
        let (signed, a, b) = self.absolute_operands(value)?;
        let (mut x, mut y) = (self.factor(a, plans)?, self.factor(b, plans)?);
        if x.either {
            x.signed = y.signed;
        }
        if y.either {
            y.signed = x.signed;
        }
        // The larger of two signed bytes is not the larger of two unsigned words. Constants alone are nothing to look at.
        let computed = matches!(x.word, Word::Of(..)) || matches!(y.word, Word::Of(..));
        if x.upper.or(y.upper).is_some() || x.signed != y.signed || (x.signed && !signed) || !computed {
            return None;
        }
        let factors = if order(x.word) > order(y.word) { [y, x] } else { [x, y] };
        Some(Product { kind: Kind::Differences, factors, term: Term::Value(value) })
    }

    /// The operands of an absolute difference that is computed for one use in this block, and whether of signed numbers.
    fn absolute_operands(&self, value: Value) -> Option<(bool, Value, Value)> {
        let inst = self.single_use(value)?;
        if self.ir.dfg.insts[inst].op != Opcode::Abs {
            return self.absolute_difference(inst);
        }
        let sub = self.single_use(self.arg(inst, 0))?;
        (self.ir.dfg.insts[sub].op == Opcode::Sub).then(|| (true, self.arg(sub, 0), self.arg(sub, 1)))
    }

    /// A value that is a byte or a half, extended.
    fn factor(&self, value: Value, plans: &Plans) -> Option<Factor> {
        if let Some(number) = self.const_i64(value) {
            let word = Word::Constant(number as u32);
            let is_byte = (-128..256).contains(&number);
            if !is_byte && !(-0x8000..0x1_0000).contains(&number) {
                return None;
            }
            let upper = (!is_byte).then_some(Byte::Of(word, 1));
            let either = if is_byte { (0..128).contains(&number) } else { (0..0x8000).contains(&number) };
            return Some(Factor { word, at: 0, upper, signed: number < 0, either });
        }
        let bytes = self.operand_bytes(value, plans)?;
        let &[Byte::Of(word, at), second, ref above @ ..] = bytes.as_slice() else { return None };
        let (zero, sign) = (|b: &Byte| *b == Byte::Zero, Byte::Sign(word, at));
        let byte = |signed: bool| Some(Factor { word, at, upper: None, signed, either: false });
        let half = |signed: bool| Some(Factor { word, at, upper: Some(second), signed, either: false });
        let extended_from = |ty: Type| {
            let inst = self.ir.dfg.def_inst(value);
            inst.is_some_and(|inst| self.ir.dfg.insts[inst].op == Opcode::Sext && self.arg_type(inst, 0) == ty)
        };
        if zero(&second) && above.iter().all(zero) {
            return byte(false);
        }
        if (second == sign && above.iter().all(|b| *b == sign)) || extended_from(Type::I8) {
            return byte(true);
        }
        let Byte::Of(other, place) = second else { return None };
        if above.iter().all(zero) {
            return half(false);
        }
        let signs = above.iter().all(|b| *b == Byte::Sign(other, place));
        if signs || extended_from(Type::I16) { half(true) } else { None }
    }

    /// One `dp4a` of the products. Where a side's bytes are of one word in different places, each product goes where that
    /// side's byte is, and the word is taken as it stands.
    fn group(&self, members: &[Product]) -> Group {
        if members[0].kind == Kind::Halves {
            return self.group_of_halves(members);
        }
        let ways = [None, Some(0), Some(1)].into_iter().filter_map(|side| self.words(members, side));
        let cost = |words: &[WordPlan; 2]| words[0].instructions() + words[1].instructions();
        let words = ways.min_by_key(cost).unwrap_or_else(|| [0, 1].map(|_| WordPlan::Ready(Word::Constant(0))));
        Group { kind: members[0].kind, signed: members[0].factors.map(|f| f.signed), words, high: false }
    }

    /// One `dp2a` of two products, in the order and with the half of the second word that take the least.
    fn group_of_halves(&self, members: &[Product]) -> Group {
        let (first, last) = (&members[0], &members[members.len() - 1]);
        let mut best: Option<(u32, [WordPlan; 2], bool)> = None;
        for pair in [[first, last], [last, first]] {
            for high in [false, true] {
                let Some(words) = self.words_of_halves(pair, high) else { continue };
                let cost = words[0].instructions() + words[1].instructions();
                if best.as_ref().is_none_or(|(least, ..)| cost < *least) {
                    best = Some((cost, words, high));
                }
            }
        }
        let signed = first.factors.map(|f| f.signed);
        let nothing = || ([0, 1].map(|_| WordPlan::Ready(Word::Constant(0))), false);
        let (words, high) = best.map_or_else(nothing, |(_, words, high)| (words, high));
        Group { kind: Kind::Halves, signed, words, high }
    }

    fn words_of_halves(&self, pair: [&Product; 2], high: bool) -> Option<[WordPlan; 2]> {
        let low = |factor: &Factor| Byte::Of(factor.word, factor.at);
        let halves = pair.map(|p| (low(&p.factors[0]), p.factors[0].upper));
        let [(a, Some(b)), (c, Some(d))] = halves else { return None };
        let [x, y] = pair.map(|p| p.factors[1]);
        let base = if high { 2 } else { 0 };
        // What stands in the other places does not count: there it stays as it is, if the word can.
        let as_is = x.word == y.word && (x.at, y.at) == (base, base + 1);
        let bytes = [0, 1, 2, 3].map(|place| match place {
            _ if as_is => Byte::Of(x.word, place),
            _ if place == base + 1 => low(&y),
            _ => low(&x),
        });
        let plan = |side: [Byte; 4]| Bytes::of(&side).plans(|word| self.known_zeros(word)).into_iter().next();
        Some([plan([a, b, c, d])?, plan(bytes)?])
    }

    fn words(&self, members: &[Product], kept: Option<usize>) -> Option<[WordPlan; 2]> {
        let mut sides = [[Byte::Zero; 4]; 2];
        let mut taken = 0u8;
        for (index, product) in members.iter().enumerate() {
            let place = kept.map_or(index, |side| usize::from(product.factors[side].at));
            // What stands in the other places is multiplied by zero; of differences there may be no others.
            let spoils = members[0].kind == Kind::Differences && kept.is_some() && members.len() < 4;
            if spoils
                || taken >> place & 1 == 1
                || kept.is_some_and(|s| product.factors[s].word != members[0].factors[s].word)
            {
                return None;
            }
            taken |= 1 << place;
            for (side, bytes) in sides.iter_mut().enumerate() {
                bytes[place] = Byte::Of(product.factors[side].word, product.factors[side].at);
            }
        }
        if let Some(side) = kept {
            let word = members[0].factors[side].word;
            sides[side] = [0, 1, 2, 3].map(|at| Byte::Of(word, at));
        }
        let plan = |side: [Byte; 4]| Bytes::of(&side).plans(|word| self.known_zeros(word)).into_iter().next();
        let [a, b] = sides.map(plan);
        Some([a?, b?])
    }

    fn dot_cost(&self, groups: &[Group], rest: &[Term], plans: &Plans) -> u32 {
        let steps = groups.iter().map(|g| 1 + g.words[0].instructions() + g.words[1].instructions()).sum::<u32>();
        let mut cost = (steps + (rest.len() as u32).saturating_sub(1)) * INSTRUCTION;
        let mut paid: SmallVec<[Value; 16]> = SmallVec::new();
        let mut pay = |value: Value| {
            if !paid.contains(&value) {
                paid.push(value);
                cost = cost.saturating_add(plans.node(value).map_or(0, |n| n.share));
            }
        };
        for word in groups.iter().flat_map(|g| &g.words).flat_map(WordPlan::words) {
            if let Word::Of(number, _) = word {
                pay(Value::from_u32(number));
            }
        }
        for term in rest {
            match *term {
                Term::Value(value) => pay(value),
                Term::Product(a, b) => [a, b].into_iter().for_each(&mut pay),
            }
        }
        cost
    }

    /// Bytes of a word that are known to be zero.
    pub(super) fn known_zeros(&self, word: Word) -> u8 {
        match word {
            Word::Constant(bits) => (0..4).fold(0, |z, i| z | u8::from(bits >> (8 * i) & 0xff == 0) << i),
            Word::Of(number, half) => {
                let value = Value::from_u32(number);
                let len = byte_count(self.ty(value)).unwrap_or(0);
                let zero = self.ir.dfg.def_inst(value).map_or(0, |inst| self.zero_bytes(inst, len));
                zero >> (4 * half) & 15
            }
        }
    }
}

/// An order of words that does not depend on anything but the function.
fn order(word: Word) -> (u32, u32) {
    match word {
        Word::Of(number, half) => (number, u32::from(half)),
        Word::Constant(bits) => (u32::MAX, bits),
    }
}

/// How many of the first products go into one group: those of the same words together, as far as there are.
fn group_length(products: &[Product]) -> usize {
    let kind = products[0].kind;
    let signs = products[0].factors.map(|f| f.signed);
    let words = products[0].factors.map(|f| f.word);
    let alike = |p: &&Product| p.kind == kind && p.factors.map(|f| f.signed) == signs;
    let most = if kind == Kind::Halves { 2 } else { 4 };
    let kin = products.iter().take_while(alike).take_while(|p| p.factors.map(|f| f.word) == words).take(most).count();
    if kin > 1 { kin } else { products.iter().take_while(alike).take(most).count() }
}
