//! Values as arrangements of the bytes of others, and arrangements as `prmt` (PTX ISA 9.7.8, prmt).
//!
//! Masks of whole bytes, shifts by whole bytes, extensions, truncations, byte swaps and sums of disjoint parts only move
//! bytes. What they make of the words they start from is one `prmt` for two words, whatever the operations in between.

use smallvec::SmallVec;

/// A word that bytes come from: 32 bits of a value, or a constant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Word {
    /// The low (0) or high (1) word of the value of that number.
    Of(u32, u8),
    /// A constant.
    Constant(u32),
}

/// Where a byte comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Byte {
    /// It is zero.
    Zero,
    /// A byte of a word.
    Of(Word, u8),
    /// Eight copies of the sign of a byte of a word.
    Sign(Word, u8),
}

impl Byte {
    /// The word it comes from.
    pub fn word(self) -> Option<Word> {
        match self {
            Byte::Zero => None,
            Byte::Of(word, _) | Byte::Sign(word, _) => Some(word),
        }
    }

    /// Eight copies of its sign.
    fn sign(self) -> Byte {
        match self {
            Byte::Of(word, at) => Byte::Sign(word, at),
            other => other,
        }
    }
}

/// The bytes of a value, low first; one of up to 64 bits has as many as it is wide.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Bytes {
    bytes: [Byte; 8],
    len: u8,
}

impl Bytes {
    /// The value's own bytes; those that `zeros` names are known to be zero.
    pub fn own(number: u32, len: usize, zeros: u8) -> Bytes {
        Bytes::from_fn(len, |i| match zeros >> i & 1 {
            1 => Byte::Zero,
            _ => Byte::Of(Word::Of(number, (i / 4) as u8), (i % 4) as u8),
        })
    }

    /// A constant's bytes.
    pub fn constant(bits: u64, len: usize) -> Bytes {
        Bytes::from_fn(len, |i| match bits >> (8 * i) & 0xff {
            0 => Byte::Zero,
            _ => Byte::Of(Word::Constant((bits >> (32 * (i / 4))) as u32), (i % 4) as u8),
        })
    }

    /// The bytes of a word.
    pub fn of(bytes: &[Byte; 4]) -> Bytes {
        Bytes::from_fn(4, |i| bytes[i])
    }

    fn from_fn(len: usize, f: impl Fn(usize) -> Byte) -> Bytes {
        let mut bytes = [Byte::Zero; 8];
        for (i, byte) in bytes.iter_mut().enumerate().take(len) {
            *byte = f(i);
        }
        Bytes { bytes, len: len as u8 }
    }

    /// How many.
    pub fn len(&self) -> usize {
        usize::from(self.len)
    }

    /// The bytes.
    pub fn as_slice(&self) -> &[Byte] {
        &self.bytes[..self.len()]
    }

    /// Whether any is a byte of the value of that number; so is a value of no known bytes.
    pub fn is_made_of(&self, number: u32) -> bool {
        let own = |byte: &Byte| matches!(byte.word(), Some(Word::Of(n, _)) if n == number);
        self.len == 0 || self.as_slice().iter().any(own)
    }

    /// The bytes of a mask of whole bytes; `None` for other masks.
    pub fn masked(&self, mask: u64) -> Option<Bytes> {
        let whole = (0..self.len()).all(|i| matches!(mask >> (8 * i) & 0xff, 0 | 0xff));
        whole.then(|| Bytes::from_fn(self.len(), |i| if mask >> (8 * i) & 1 == 1 { self.bytes[i] } else { Byte::Zero }))
    }

    /// Two values put together, when no byte of both can be other than zero.
    pub fn joined(&self, other: &Bytes) -> Option<Bytes> {
        let disjoint = self.as_slice().iter().zip(other.as_slice()).all(|(a, b)| *a == Byte::Zero || *b == Byte::Zero);
        disjoint.then(|| {
            Bytes::from_fn(self.len(), |i| if self.bytes[i] == Byte::Zero { other.bytes[i] } else { self.bytes[i] })
        })
    }

    /// Moved up by whole bytes.
    pub fn up(&self, by: usize) -> Bytes {
        Bytes::from_fn(self.len(), |i| if i < by { Byte::Zero } else { self.bytes[i - by] })
    }

    /// Moved down by whole bytes, what comes in being zero, or the sign.
    pub fn down(&self, by: usize, signed: bool) -> Bytes {
        let top = if signed { self.sign() } else { Byte::Zero };
        Bytes::from_fn(self.len(), |i| if i + by < self.len() { self.bytes[i + by] } else { top })
    }

    /// The sign of the whole.
    fn sign(&self) -> Byte {
        self.as_slice().last().map_or(Byte::Zero, |top| top.sign())
    }

    /// What `prmt` makes of two words.
    pub fn permuted(a: &Bytes, b: &Bytes, selector: u16) -> Bytes {
        Bytes::from_fn(4, |i| {
            let nibble = usize::from(selector >> (4 * i) & 15);
            let from = if nibble & 4 == 0 { a } else { b };
            let byte = from.bytes[nibble & 3];
            // The upper bit asks for copies of the sign.
            if nibble & 8 == 0 { byte } else { byte.sign() }
        })
    }

    /// The lower bytes.
    pub fn truncated(&self, len: usize) -> Bytes {
        Bytes::from_fn(len, |i| self.bytes[i])
    }

    /// More bytes, the new ones being zero, or the sign.
    pub fn extended(&self, len: usize, signed: bool) -> Bytes {
        let top = if signed { self.sign() } else { Byte::Zero };
        Bytes::from_fn(len, |i| if i < self.len() { self.bytes[i] } else { top })
    }

    /// In the opposite order.
    pub fn swapped(&self) -> Bytes {
        Bytes::from_fn(self.len(), |i| self.bytes[self.len() - 1 - i])
    }

    /// The low byte in every place, which is what a product with 0x0101… is of a value that has no others.
    pub fn repeated(&self) -> Option<Bytes> {
        let low = self.bytes[0];
        self.as_slice()[1..].iter().all(|b| *b == Byte::Zero).then(|| Bytes::from_fn(self.len(), |_| low))
    }

    /// The upper word of this above the lower word of `low` moved left, as a funnel shift does.
    pub fn funnel(high: &Bytes, low: &Bytes, by: usize) -> Bytes {
        let len = high.len();
        Bytes::from_fn(len, |i| if i < by { low.bytes[len + i - by] } else { high.bytes[i - by] })
    }

    /// How each of its words is made.
    pub fn plans(&self, zeros: impl Fn(Word) -> u8) -> SmallVec<[WordPlan; 2]> {
        self.as_slice().chunks(4).map(|word| WordPlan::new(word, &zeros)).collect()
    }
}

/// A source of `prmt`: a word, or the result of an earlier one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Source {
    Word(Word),
    /// Result of the step of that number.
    Step(u8),
}

/// One `prmt`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Permute {
    pub a: Source,
    pub b: Source,
    pub selector: u16,
}

/// How a word is made.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum WordPlan {
    /// It is there.
    Ready(Word),
    /// The last of these steps.
    Steps(SmallVec<[Permute; 2]>),
}

impl WordPlan {
    /// Instructions it takes.
    pub fn instructions(&self) -> u32 {
        match self {
            WordPlan::Ready(_) => 0,
            WordPlan::Steps(steps) => steps.len() as u32,
        }
    }

    /// Words it reads.
    pub fn words(&self) -> impl Iterator<Item = Word> + '_ {
        let (ready, steps): (Option<Word>, &[Permute]) = match self {
            WordPlan::Ready(word) => (Some(*word), &[]),
            WordPlan::Steps(steps) => (None, steps),
        };
        let read = steps.iter().flat_map(|s| [s.a, s.b]).filter_map(|s| match s {
            Source::Word(word) => Some(word),
            Source::Step(_) => None,
        });
        ready.into_iter().chain(read)
    }

    /// `zeros` tells which bytes of a word are known to be zero.
    fn new(bytes: &[Byte], zeros: impl Fn(Word) -> u8) -> WordPlan {
        let bytes = &gather_constants(bytes)[..];
        let mut words: SmallVec<[Word; 5]> = SmallVec::new();
        for byte in bytes {
            if let Byte::Of(word, _) | Byte::Sign(word, _) = byte
                && !words.contains(word)
            {
                words.push(*word);
            }
        }
        let Some(&first) = words.first() else { return WordPlan::Ready(Word::Constant(0)) };
        let known = zeros(first);
        let own = |(i, byte): (usize, &Byte)| match byte {
            Byte::Zero => known >> i & 1 == 1,
            byte => *byte == Byte::Of(first, i as u8),
        };
        if bytes.len() == 4 && bytes.iter().enumerate().all(own) {
            return WordPlan::Ready(first);
        }
        if let ([only], Word::Constant(bits)) = (&words[..], first) {
            debug_assert_eq!(*only, first);
            return WordPlan::Ready(Word::Constant(bits));
        }
        // A zero comes out of a word that has one, else from a word of zeros.
        let needs_zero = bytes.contains(&Byte::Zero);
        let zero = needs_zero.then(|| words.iter().find_map(|w| Some((*w, first_of(zeros(*w))?)))).flatten();
        let zero = zero.unwrap_or_else(|| {
            if needs_zero {
                words.push(Word::Constant(0));
            }
            (Word::Constant(0), 0)
        });
        let places: SmallVec<[(Word, u8); 4]> = bytes
            .iter()
            .map(|byte| match *byte {
                Byte::Zero => zero,
                Byte::Of(word, at) => (word, at),
                Byte::Sign(word, at) => (word, at | 8),
            })
            .collect();
        WordPlan::Steps(steps(&places, &words))
    }
}

/// Bytes with those that are constant out of one word, in which each stands in its place and the others are zero.
fn gather_constants(bytes: &[Byte]) -> SmallVec<[Byte; 4]> {
    let value = |byte: Byte| match byte {
        Byte::Of(Word::Constant(bits), at) => Some((bits >> (8 * at)) as u8),
        Byte::Sign(Word::Constant(bits), at) => Some(((bits >> (8 * at)) as i8 >> 7) as u8),
        _ => None,
    };
    let word = bytes.iter().enumerate().fold(0, |w, (i, byte)| w | u32::from(value(*byte).unwrap_or(0)) << (8 * i));
    let gathered = |(i, byte): (usize, &Byte)| match value(*byte) {
        Some(0) => Byte::Zero,
        Some(_) => Byte::Of(Word::Constant(word), i as u8),
        None => *byte,
    };
    bytes.iter().enumerate().map(gathered).collect()
}

/// The lowest byte of a set.
fn first_of(set: u8) -> Option<u8> {
    (set & 15 != 0).then_some(set.trailing_zeros() as u8)
}

/// Brings the bytes of two words together where they belong, until all are: pairs first, so that four words take two
/// levels. A byte once in place keeps its place.
fn steps(places: &[(Word, u8)], words: &[Word]) -> SmallVec<[Permute; 2]> {
    let mut steps: SmallVec<[Permute; 2]> = SmallVec::new();
    let mut pending: SmallVec<[(Source, SmallVec<[Word; 5]>); 5]> =
        words.iter().map(|w| (Source::Word(*w), SmallVec::from_slice(&[*w]))).collect();
    if let [(only, _)] = pending[..] {
        pending.push((only, SmallVec::new()));
    }
    while pending.len() > 1 {
        let (a, mut from_a) = pending.remove(0);
        let (b, from_b) = pending.remove(0);
        let mut selector = 0u16;
        for (i, (word, at)) in places.iter().enumerate() {
            let nibble = |source: Source, high: u16| match source {
                Source::Word(_) => u16::from(*at) | high,
                // Signs are spread where the byte is placed first.
                Source::Step(_) => i as u16 | high,
            };
            let chosen = if from_a.contains(word) {
                nibble(a, 0)
            } else if from_b.contains(word) {
                nibble(b, 4)
            } else {
                0
            };
            selector |= chosen << (4 * i);
        }
        from_a.extend(from_b);
        pending.push((Source::Step(steps.len() as u8), from_a));
        steps.push(Permute { a, b, selector });
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What `prmt.b32` does in its default mode (PTX ISA 9.7.8).
    fn permute(a: u32, b: u32, selector: u16) -> u32 {
        let all = u64::from(b) << 32 | u64::from(a);
        (0..4).fold(0, |out, i| {
            let nibble = selector >> (4 * i) & 15;
            let byte = (all >> (8 * (nibble & 7))) as u8;
            let byte = if nibble & 8 == 0 { byte } else { ((byte as i8) >> 7) as u8 };
            out | u32::from(byte) << (8 * i)
        })
    }

    const WORDS: [u32; 4] = [0x8182_8384, 0x1112_1314, 0xa0b0_c0d0, 0x00e1_71f2];

    fn value(word: Word) -> u32 {
        match word {
            Word::Of(number, _) => WORDS[number as usize],
            Word::Constant(bits) => bits,
        }
    }

    fn wanted(bytes: &[Byte]) -> u32 {
        bytes.iter().enumerate().fold(0, |out, (i, byte)| {
            let byte = match *byte {
                Byte::Zero => 0,
                Byte::Of(w, at) => value(w) >> (8 * at) & 0xff,
                Byte::Sign(w, at) => ((value(w) >> (8 * at)) as u8 as i8 >> 7) as u8 as u32,
            };
            out | byte << (8 * i)
        })
    }

    fn run(plan: &WordPlan) -> u32 {
        match plan {
            WordPlan::Ready(word) => value(*word),
            WordPlan::Steps(steps) => {
                let mut results: Vec<u32> = Vec::new();
                for step in steps {
                    let of = |s: Source| match s {
                        Source::Word(w) => value(w),
                        Source::Step(n) => results[n as usize],
                    };
                    let next = permute(of(step.a), of(step.b), step.selector);
                    results.push(next);
                }
                results[results.len() - 1]
            }
        }
    }

    /// Every arrangement of four bytes out of two words, their signs and zero; and samples out of four words.
    #[test]
    fn plans_make_every_arrangement() {
        let choices = |words: u32| -> Vec<Byte> {
            let of = (0..words).flat_map(|w| (0..4).map(move |at| (Word::Of(w, 0), at)));
            let mut all: Vec<Byte> = of.flat_map(|(w, at)| [Byte::Of(w, at), Byte::Sign(w, at)]).collect();
            all.push(Byte::Zero);
            all
        };
        // The fourth word has a byte of zero.
        let zeros = |word: Word| if word == Word::Of(3, 0) { 8 } else { 0 };
        let two = choices(2);
        for index in 0..two.len().pow(4) {
            let pick = |k: u32| two[index / two.len().pow(k) % two.len()];
            let bytes = [pick(0), pick(1), pick(2), pick(3)];
            let plan = WordPlan::new(&bytes, zeros);
            assert_eq!(run(&plan), wanted(&bytes), "{bytes:?} {plan:?}");
            let needs = if bytes.contains(&Byte::Zero) { 2 } else { 1 };
            assert!(plan.instructions() <= needs, "{bytes:?} {plan:?}");
        }
        let four = choices(4);
        for index in (0..four.len().pow(4)).step_by(37) {
            let pick = |k: u32| four[index / four.len().pow(k) % four.len()];
            let bytes = [pick(0), pick(1), pick(2), pick(3)];
            let plan = WordPlan::new(&bytes, zeros);
            assert_eq!(run(&plan), wanted(&bytes), "{bytes:?} {plan:?}");
            assert!(plan.instructions() <= 3);
        }
    }

    #[test]
    fn a_word_with_its_known_zeros_is_ready() {
        let a = Word::Of(3, 0);
        let bytes = [Byte::Of(a, 0), Byte::Of(a, 1), Byte::Of(a, 2), Byte::Zero];
        assert_eq!(WordPlan::new(&bytes, |_| 8), WordPlan::Ready(a));
    }

    #[test]
    fn constants_are_one_word() {
        let of = |bits, at| Byte::Of(Word::Constant(bits), at);
        let all = [of(77, 0), of(151, 0), Byte::Sign(Word::Constant(0x80), 0), Byte::Zero];
        assert_eq!(WordPlan::new(&all, |_| 0), WordPlan::Ready(Word::Constant(0x00ff_974d)));
        let some = [of(77, 0), Byte::Of(Word::Of(0, 0), 3), of(0x1200, 1), Byte::Zero];
        let zeros = |word: Word| match word {
            Word::Constant(bits) => (0..4).fold(0, |z, i| z | u8::from(bits >> (8 * i) & 0xff == 0) << i),
            Word::Of(..) => 0,
        };
        let plan = WordPlan::new(&some, zeros);
        assert_eq!((plan.instructions(), run(&plan)), (1, wanted(&some)));
    }

    #[test]
    fn a_known_zero_byte_saves_the_word_of_zeros() {
        let (a, b) = (Word::Of(0, 0), Word::Of(3, 0));
        let bytes = [Byte::Of(a, 0), Byte::Of(b, 1), Byte::Zero, Byte::Zero];
        assert_eq!(WordPlan::new(&bytes, |w| if w == b { 8 } else { 0 }).instructions(), 1);
        assert_eq!(WordPlan::new(&bytes, |_| 0).instructions(), 2);
    }
}
