//! Operands: what the kinds of rows hold, and which combinations of them are computed.
//!
//! Few enough are enumerated: one operand of up to 16 bits, several that together have that many. Else come all pairs or
//! triples of values at which instructions tend to be wrong, then random ones: uniform bits, floats near each other so
//! that sums cancel, an edge beside a random number. The same kinds always give the same operands.

/// Threads of a block; the number of items is a multiple.
pub const BLOCK: usize = 128;
/// Results of each variant that are recorded as they are.
const SHOWN: usize = 6;

/// The same for approximations, twice: among the edges and among all.
const POINTS: usize = 32;

/// What the bits of a kind are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Form {
    /// Bits without a fixed meaning, or integers.
    Integer,
    /// Widths of exponent and fraction.
    Float(u32, u32),
    /// Floats that are small multiples of a half: only random ones.
    Small(u32, u32),
    /// Floats about one: only random ones.
    Moderate(u32, u32),
    /// A floating-point format of few bits: all patterns are edges.
    Narrow,
    /// Integers without zero.
    Nonzero,
    /// Numbers below this.
    Below(u64),
    /// Numbers of smaller magnitude than this, negative ones too, in 32 bits.
    Around(u64),
    /// Words whose combinations hold every row of a truth table, in 32 bits.
    Truth,
    /// Shift amounts beyond the width, in 32 bits.
    Shift,
    /// All numbers of 16 bits; the other operands are random.
    All,
}

/// A row of the table of kinds: name, bits of one element, elements, what they are.
type Row = (&'static str, u32, u32, Form);

const KINDS: &[Row] = &[
    ("pred", 1, 1, Form::Integer),
    ("u8", 8, 1, Form::Integer),
    ("s8", 8, 1, Form::Integer),
    ("b8", 8, 1, Form::Integer),
    ("u16", 16, 1, Form::Integer),
    ("s16", 16, 1, Form::Integer),
    ("b16", 16, 1, Form::Integer),
    ("u32", 32, 1, Form::Integer),
    ("s32", 32, 1, Form::Integer),
    ("b32", 32, 1, Form::Integer),
    ("u64", 64, 1, Form::Integer),
    ("s64", 64, 1, Form::Integer),
    ("b64", 64, 1, Form::Integer),
    ("u16nz", 16, 1, Form::Nonzero),
    ("u32nz", 32, 1, Form::Nonzero),
    ("u64nz", 64, 1, Form::Nonzero),
    ("shift", 32, 1, Form::Shift),
    ("byte", 32, 1, Form::Below(256)),
    ("lane", 32, 1, Form::Below(32)),
    ("segment", 32, 1, Form::Below(0x2000)),
    ("fnsoffset", 32, 1, Form::Around(40)),
    ("f16all", 16, 1, Form::All),
    ("bf16all", 16, 1, Form::All),
    ("b32t", 32, 1, Form::Truth),
    ("selectors", 32, 1, Form::All),
    ("f16", 16, 1, Form::Float(5, 10)),
    ("bf16", 16, 1, Form::Float(8, 7)),
    ("f32", 32, 1, Form::Float(8, 23)),
    ("tf32", 32, 1, Form::Float(8, 23)),
    ("f64", 64, 1, Form::Float(11, 52)),
    ("e4m3", 8, 1, Form::Narrow),
    ("e5m2", 8, 1, Form::Narrow),
    ("f16x2", 16, 2, Form::Float(5, 10)),
    ("bf16x2", 16, 2, Form::Float(8, 7)),
    ("e4m3x2", 8, 2, Form::Narrow),
    ("e5m2x2", 8, 2, Form::Narrow),
    ("u16x2", 16, 2, Form::Integer),
    ("s16x2", 16, 2, Form::Integer),
    ("b8x4", 8, 4, Form::Integer),
    ("f16x2s", 16, 2, Form::Small(5, 10)),
    ("bf16x2s", 16, 2, Form::Small(8, 7)),
    ("e4m3x4s", 8, 4, Form::Small(4, 3)),
    ("e5m2x4s", 8, 4, Form::Small(5, 2)),
    ("f32s", 32, 1, Form::Small(8, 23)),
    ("f64s", 64, 1, Form::Small(11, 52)),
    ("f16x2m", 16, 2, Form::Moderate(5, 10)),
    ("bf16x2m", 16, 2, Form::Moderate(8, 7)),
    ("e4m3x4m", 8, 4, Form::Moderate(4, 3)),
    ("e5m2x4m", 8, 4, Form::Moderate(5, 2)),
    ("f32m", 32, 1, Form::Moderate(8, 23)),
    ("f64m", 64, 1, Form::Moderate(11, 52)),
    ("i1", 1, 1, Form::Integer),
    ("i5", 5, 1, Form::Integer),
    ("i7", 7, 1, Form::Integer),
    ("i8", 8, 1, Form::Integer),
    ("i16", 16, 1, Form::Integer),
    ("i24", 24, 1, Form::Integer),
    ("i32", 32, 1, Form::Integer),
    ("i64", 64, 1, Form::Integer),
    ("i7nz", 7, 1, Form::Nonzero),
    ("i8nz", 8, 1, Form::Nonzero),
    ("i16nz", 16, 1, Form::Nonzero),
    ("i24nz", 24, 1, Form::Nonzero),
    ("i32nz", 32, 1, Form::Nonzero),
    ("i64nz", 64, 1, Form::Nonzero),
    ("i7amount", 7, 1, Form::Below(7)),
    ("i8amount", 8, 1, Form::Below(8)),
    ("i16amount", 16, 1, Form::Below(16)),
    ("i24amount", 24, 1, Form::Below(24)),
    ("i32amount", 32, 1, Form::Below(32)),
    ("i64amount", 64, 1, Form::Below(64)),
];

/// The kind of an operand.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Kind(usize);

impl Kind {
    /// The kind of this name.
    pub fn named(name: &str) -> Option<Kind> {
        KINDS.iter().position(|k| k.0 == name).map(Kind)
    }

    fn row(self) -> Row {
        KINDS.get(self.0).copied().unwrap_or(KINDS[0])
    }

    /// Name, as rows spell it.
    pub fn name(self) -> &'static str {
        self.row().0
    }

    /// Bits of the whole.
    pub fn bits(self) -> u32 {
        self.row().1 * self.row().2
    }

    /// Bytes in memory.
    pub fn bytes(self) -> usize {
        self.bits().next_power_of_two().max(8) as usize / 8
    }

    /// The type in the IR: the name up to what limits the values.
    pub fn ir_type(self) -> &'static str {
        self.name().trim_end_matches("amount").trim_end_matches("nz")
    }

    fn mask(self) -> u64 {
        u64::MAX >> (64 - self.bits())
    }

    /// Makes a NaN, whichever it is, the one whose bits but the sign are all set. Keeps anything else.
    pub fn settle_nan(self, bits: u64) -> u64 {
        let infinity = match self.row() {
            ("e4m3", ..) => 0x7e,
            ("e5m2", ..) => 0x7c,
            (_, _, 1, Form::Float(exponent, fraction)) => ((1 << exponent) - 1) << fraction,
            _ => return bits,
        };
        let magnitude = self.mask() >> 1;
        if bits & magnitude > infinity { magnitude } else { bits }
    }
}

/// A small generator of random numbers (splitmix64).
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// A generator whose numbers depend on a text.
    pub fn of(text: &str) -> Random {
        Random(text.bytes().fold(0x243f_6a88_85a3_08d3, |h, b| (h ^ u64::from(b)).wrapping_mul(0x100_0000_01b3)))
    }

    /// The next number.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.bits() % limit.max(1) as u64) as usize
    }

    fn pick(&mut self, list: &[u64]) -> u64 {
        list.get(self.below(list.len())).copied().unwrap_or(0)
    }
}

/// The operands of a case.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Inputs {
    /// For each source its value in each item.
    pub columns: Vec<Vec<u64>>,
    /// Items whose results are recorded as they are.
    pub shown: Vec<usize>,
    /// The same for approximations: more of them.
    pub points: Vec<usize>,
}

impl Inputs {
    /// Number of items.
    pub fn len(&self) -> usize {
        self.columns.first().map_or(0, Vec::len)
    }

    /// True without items.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The operands of one item.
    pub fn item(&self, index: usize) -> Vec<u64> {
        self.columns.iter().map(|c| c.get(index).copied().unwrap_or(0)).collect()
    }

    /// The operands for these kinds.
    pub fn of(kinds: &[Kind]) -> Inputs {
        let names: Vec<&str> = kinds.iter().map(|k| k.name()).collect();
        let mut random = Random::of(&names.join(","));
        let items = match kinds {
            [kind] => one(*kind, &mut random),
            _ => several(kinds, &mut random),
        };
        let shown = spread(SHOWN, items.edges);
        let mut rows = items.rows;
        let mut points = spread(POINTS, rows.len());
        points.extend(spread(POINTS, items.edges));
        points.sort_unstable();
        points.dedup();
        while rows.len() % BLOCK != 0 {
            rows.push(random_row(kinds, &mut random));
        }
        let columns = (0..kinds.len()).map(|c| rows.iter().map(|r| r.get(c).copied().unwrap_or(0)).collect()).collect();
        Inputs { columns, shown, points }
    }
}

/// Rows of operands before they are turned.
struct Items {
    rows: Vec<Vec<u64>>,
    /// So many at the start are edges, among them those that are shown; all when they are enumerated.
    edges: usize,
}

/// Some of so many, by steps of the golden ratio.
fn spread(count: usize, of: usize) -> Vec<usize> {
    let step = |i: usize| (i as f64 * 0.618_033_988_749_895).fract();
    let mut list: Vec<usize> = (0..count.min(of)).map(|i| (step(i) * of as f64) as usize).collect();
    list.sort_unstable();
    list.dedup();
    list
}

fn one(kind: Kind, random: &mut Random) -> Items {
    let (_, bits, elements, form) = kind.row();
    let values: Vec<u64> = match (bits * elements, form) {
        (..=16, _) => all(kind),
        // Each half takes every value, not the same as the other.
        (32, Form::Float(..)) if elements == 2 => {
            (0..=0xffff).map(|x| (((x * 0x9e37 + 0x79b9) % 0x1_0000) << 16) | x).collect()
        }
        _ => {
            let mut values = edges(kind, random);
            let first = values.len();
            values.extend(unary(kind, random));
            if form == Form::Nonzero {
                values.retain(|v| *v != 0);
            }
            return Items { rows: values.into_iter().map(|v| vec![v]).collect(), edges: first };
        }
    };
    let rows: Vec<Vec<u64>> = values.into_iter().map(|v| vec![v]).collect();
    Items { edges: rows.len(), rows }
}

/// Every value of a kind of few bits.
fn all(kind: Kind) -> Vec<u64> {
    match kind.row().3 {
        Form::Nonzero => (1..=kind.mask()).collect(),
        Form::Below(limit) => (0..limit).collect(),
        _ => (0..=kind.mask()).collect(),
    }
}

fn several(kinds: &[Kind], random: &mut Random) -> Items {
    let exhaustive = kinds.iter().map(|k| k.bits()).sum::<u32>() <= 16;
    if let Some(all) = kinds.iter().position(|k| k.row().3 == Form::All) {
        let rows = (0..0x1_0000u64).map(|value| {
            let mut row = random_row(kinds, random);
            // What lies above the 16 bits is not looked at.
            row[all] = value | if value & 0x111 == 0 { random.bits() << 16 & kinds[all].mask() } else { 0 };
            row
        });
        return Items { rows: rows.collect(), edges: 0x1_0000 };
    }
    if kinds.len() > 4 || kinds.iter().any(|k| matches!(k.row().3, Form::Small(..) | Form::Moderate(..))) {
        let rows: Vec<Vec<u64>> = (0..2048).map(|_| random_row(kinds, random)).collect();
        return Items { edges: rows.len(), rows };
    }
    let most = match kinds.len() {
        2 => 48,
        3 => 14,
        _ => 7,
    };
    let lists: Vec<Vec<u64>> = kinds
        .iter()
        .map(|kind| {
            if exhaustive {
                return all(*kind);
            }
            let all = edges(*kind, random);
            let step = all.len().div_ceil(most).max(1);
            // Every third or so: the list alternates signs, so steps are odd.
            all.iter().copied().step_by(step | 1).collect()
        })
        .collect();
    let mut rows = vec![vec![]];
    for list in &lists {
        rows = rows.iter().flat_map(|row| list.iter().map(move |v| [row.as_slice(), &[*v]].concat())).collect();
    }
    let edges = rows.len();
    if kinds.iter().any(|k| k.row().3 == Form::Truth) {
        rows.truncate(edges);
    } else if !exhaustive {
        let total = (edges + 1500).next_multiple_of(1024);
        while rows.len() < total {
            rows.push(random_row(kinds, random));
        }
    }
    Items { rows, edges }
}

/// Values at which instructions tend to be wrong.
fn edges(kind: Kind, random: &mut Random) -> Vec<u64> {
    let (_, bits, elements, form) = kind.row();
    let mask = u64::MAX >> (64 - bits);
    let mut list = match form {
        Form::Integer | Form::Nonzero => integer_edges(bits, random),
        Form::Float(exponent, fraction) => float_edges(exponent, fraction),
        Form::Narrow => (0..=mask).collect(),
        Form::Small(..) | Form::Moderate(..) => (0..64).map(|_| random_element(bits, form, None, 0, random)).collect(),
        Form::Below(limit) => (0..limit).collect(),
        Form::Shift => [(0..=66).collect(), vec![95, 127, 128, 255, 256, 257, 1 << 16, 1 << 31, 0xffff_ffff]].concat(),
        Form::Around(limit) => (0..2 * limit - 1).map(|v| v.wrapping_sub(limit - 1) & mask).collect(),
        Form::Truth => vec![0xff00_f0f0, 0xcccc_0000, 0xaaaa_5555],
        Form::All => vec![0, 0x3210, 0x7654, 0xffff],
    };
    if form == Form::Nonzero {
        list.retain(|v| *v != 0);
    }
    if elements == 1 {
        return list;
    }
    // Packed: each element an edge, each beside another.
    let count = list.len();
    let of = |index: usize| list.get(index % count.max(1)).copied().unwrap_or(0);
    (0..count)
        .map(|i| (0..elements).fold(0, |word, e| word << bits | of(i * (2 * e as usize + 1) + 5 * e as usize)))
        .collect()
}

fn integer_edges(bits: u32, random: &mut Random) -> Vec<u64> {
    let mask = u64::MAX >> (64 - bits);
    let top = 1u64 << (bits - 1);
    let w = u64::from(bits);
    let half = 1u64 << (bits / 2);
    let pattern = u64::MAX / 3;
    let mut list = vec![0, mask, 1, top, top - 1, 2, mask - 1, 3, top + 1, pattern, !pattern, half, half - 1, half + 1];
    list.extend([7, 8, w - 1, w, w + 1, 0xff, 0x80, 0x7f, !0xff, !half, top >> 1, top | 1, 5, 10, 100]);
    list.extend((0..12).map(|i| random.bits() >> (i * bits / 14)));
    let mut seen = Vec::with_capacity(list.len());
    for value in list.into_iter().map(|v| v & mask) {
        if !seen.contains(&value) {
            seen.push(value);
        }
    }
    seen
}

fn float_edges(exponent: u32, fraction: u32) -> Vec<u64> {
    let unit = 1u64 << fraction;
    let sign = 1u64 << (exponent + fraction);
    let one = ((1u64 << (exponent - 1)) - 1) << fraction;
    let infinity = ((1u64 << exponent) - 1) << fraction;
    let positive = [
        0,
        infinity,
        1,
        one,
        unit,
        infinity | unit >> 1,
        infinity - 1,
        unit - 1,
        one + 1,
        one - 1,
        infinity | 1,
        one + unit,
        one - unit,
        one + (unit >> 1),
        2 * unit + 1,
        one + unit + (unit >> 2),
        sign - 1,
        one + unit * u64::from(fraction),
        one + unit * u64::from(fraction) + unit - 1,
        (one >> 1) + (unit >> 2) + 3,
        one + (one >> 1),
        infinity - unit / 2 - 1,
        one + unit * u64::from(fraction + 1) + 1,
    ];
    positive.iter().flat_map(|v| [*v, *v | sign]).collect()
}

/// The list for one operand of more than 16 bits: every size of number, with what is halfway for shorter formats.
fn unary(kind: Kind, random: &mut Random) -> Vec<u64> {
    let (_, bits, elements, form) = kind.row();
    let mut list = Vec::new();
    match form {
        Form::Float(exponent, fraction) if elements == 1 => {
            let top = (1u64 << exponent) - 1;
            // All exponents that shorter formats have; for f64 these, the integers', and both ends.
            let near = |e: &u64| exponent < 11 || *e < 3 || *e > top - 3 || (1023 - 155..1023 + 135).contains(e);
            let unit = 1u64 << fraction;
            for e in (0..=top).filter(near) {
                for (lost, offset) in HALFWAY {
                    let lost = if *lost > 23 { 0 } else { fraction.saturating_sub(*lost) };
                    let kept = ((random.bits() % unit) >> lost) << lost;
                    let half = if lost == 0 { 0 } else { 1u64 << (lost - 1) };
                    let mantissa = (kept | half).wrapping_add_signed(*offset) % unit;
                    list.push(e << fraction | mantissa | (random.bits() & 1) << (bits - 1));
                }
            }
        }
        Form::Integer | Form::Nonzero => {
            for length in 0..bits {
                for kept in [8, 11, 24, 53] {
                    for offset in [-1, 0, 1] {
                        let value = (1u64 << length) | (random.bits() % (1u64 << length).max(1));
                        let lost = (length + 1).saturating_sub(kept);
                        let half = if lost == 0 { 0 } else { 1u64 << (lost - 1) };
                        let value = ((value >> lost << lost) | half).wrapping_add_signed(offset);
                        list.extend([value & kind.mask(), value.wrapping_neg() & kind.mask()]);
                    }
                }
            }
        }
        _ => return list,
    }
    list.extend((0..1024).map(|_| random.bits() & kind.mask()));
    list
}

/// Bits of fraction that are kept, and how far from halfway beyond them; 99 stands for all bits.
const HALFWAY: &[(u32, i64)] = &[
    (10, 0),
    (10, 1),
    (10, -1),
    (7, 0),
    (7, 1),
    (7, -1),
    (3, 0),
    (3, 1),
    (3, -1),
    (2, 0),
    (2, 1),
    (2, -1),
    (1, 0),
    (0, 0),
    (0, 1),
    (0, -1),
    (23, 0),
    (23, 1),
    (23, -1),
    (99, 0),
    (99, 1),
    (99, -1),
];

fn random_row(kinds: &[Kind], random: &mut Random) -> Vec<u64> {
    let style = random.below(5);
    let mut row: Vec<u64> = Vec::with_capacity(kinds.len());
    for (index, kind) in kinds.iter().enumerate() {
        let (_, bits, elements, form) = kind.row();
        let mut value = 0;
        for element in 0..elements {
            let before = row.first().map(|v| v >> (bits * element) & (u64::MAX >> (64 - bits)));
            let part = match form {
                Form::Float(exponent, fraction) if style == 4 => {
                    beside_limit(exponent, fraction, index, before, random)
                }
                _ => random_element(bits, form, before, style, random),
            };
            value |= part << (bits * element);
        }
        row.push(value);
    }
    row
}

/// Operands whose product or quotient is about the smallest normal number, or one or the largest number, with an addend
/// that hardly counts; `before` is the first operand's element.
fn beside_limit(exponent: u32, fraction: u32, index: usize, before: Option<u64>, random: &mut Random) -> u64 {
    let sign = (random.bits() & 1) << (exponent + fraction);
    let bias = (1i64 << (exponent - 1)) - 1;
    let mantissa = |random: &mut Random| random.bits() & ((1 << fraction) - 1);
    let Some(before) = before else {
        let away = random.below(bias as usize) as i64 - bias / 2;
        return sign | ((bias + away) as u64) << fraction | mantissa(random);
    };
    if index > 1 {
        return sign | (random.bits() % 3);
    }
    // In double precision with the exponents taken apart, so that f64 fits too.
    let of = |bits: u64| 1.0 + (bits & ((1 << fraction) - 1)) as f64 / (1u64 << fraction) as f64;
    let (first, power) = (of(before), (before >> fraction & ((1 << exponent) - 1)) as i64 - bias);
    let target = [1 - bias, 1 - bias, 0, bias + 1][random.below(4)];
    // The significand of the target is nearly one.
    let (quotient, mut power) =
        if random.below(2) == 0 { (1.0 / first, target - power) } else { (first, power - target) };
    let quotient = if quotient < 1.0 {
        power -= 1;
        quotient * 2.0
    } else {
        quotient
    };
    let near = ((quotient - 1.0) * (1u64 << fraction) as f64) as i64 + random.below(4) as i64 - 1;
    let near = near.clamp(0, (1 << fraction) - 1) as u64;
    sign | ((power + bias).clamp(1, 2 * bias) as u64) << fraction | near
}

/// A random number; `before` is the first operand's.
fn random_element(bits: u32, form: Form, before: Option<u64>, style: usize, random: &mut Random) -> u64 {
    let mask = u64::MAX >> (64 - bits);
    match (form, style, before) {
        (Form::Below(limit), ..) => random.bits() % limit,
        (Form::Small(exponent, fraction), ..) => {
            // One, one and a half, two, three; halves and quarters only where the format has no other.
            let one = ((1u64 << (exponent - 1)) - 1) << fraction;
            let half = 1u64 << (fraction - 1);
            let magnitude = [0, one, one + half, one + 2 * half, one + 3 * half, one - 2 * half][random.below(6)];
            magnitude | (random.bits() & 1) << (bits - 1)
        }
        (Form::Moderate(exponent, fraction), ..) => {
            let bias = (1u64 << (exponent - 1)) - 1;
            let power = (bias + random.bits() % 13).saturating_sub(6).clamp(0, 2 * bias - 1);
            let number = power << fraction | random.bits() & ((1 << fraction) - 1);
            (if random.below(16) == 0 { 0 } else { number }) | (random.bits() & 1) << (bits - 1)
        }
        (Form::Around(limit), ..) => (random.bits() % (2 * limit - 1)).wrapping_sub(limit - 1) & mask,
        (Form::Shift, ..) => random.bits() % 70,
        // A number of a near exponent, perhaps the same but for the last bits, of either sign.
        (Form::Float(_, fraction), 1, Some(before)) => {
            let away = (random.below(9) as i64 - 4) << fraction;
            let value = before.wrapping_add_signed(away) ^ (random.bits() & ((1 << fraction) - 1));
            (value & mask >> 1) | (random.bits() & 1) << (bits - 1)
        }
        (Form::Float(..), 2, Some(before)) => {
            (before.wrapping_add_signed(random.below(7) as i64 - 3) & mask) ^ (random.bits() & 1) << (bits - 1)
        }
        // Numbers of moderate size.
        (Form::Float(exponent, fraction), 1 | 2, None) => {
            let one = ((1u64 << (exponent - 1)) - 1) << fraction;
            let away = (random.below(2 * fraction as usize) as i64 - i64::from(fraction)) << fraction;
            one.wrapping_add_signed(away) & mask >> 1
                | (random.bits() & ((1 << fraction) - 1))
                | (random.bits() & 1) << (bits - 1)
        }
        (Form::Integer, 1, _) => random.bits() >> random.below(64) & mask,
        (Form::Integer, 2, _) => !(random.bits() >> random.below(64)) & mask,
        (Form::Integer | Form::Float(..), 3 | 4, _) => {
            let list = match form {
                Form::Float(exponent, fraction) => float_edges(exponent, fraction),
                _ => return [0, 1, mask, mask >> 1, random.bits() & mask][random.below(5)],
            };
            if random.below(3) == 0 { random.pick(&list) } else { random.bits() & mask }
        }
        (Form::Nonzero, ..) => (random.bits() >> random.below(bits as usize) & mask).max(1),
        _ => random.bits() & mask,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(names: &[&str]) -> Vec<Kind> {
        names.iter().map(|n| Kind::named(n).unwrap()).collect()
    }

    #[test]
    fn small_spaces_are_enumerated() {
        assert_eq!(Inputs::of(&kinds(&["f16"])).columns[0], (0..0x1_0000).collect::<Vec<u64>>());
        let pairs = Inputs::of(&kinds(&["i8", "i8"]));
        assert_eq!(pairs.len(), 0x1_0000);
        assert_eq!(pairs.item(0x1234), [0x12, 0x34]);
        let halves = Inputs::of(&kinds(&["f16x2"]));
        let mut upper: Vec<u64> = halves.columns[0].iter().map(|v| v >> 16).collect();
        upper.sort_unstable();
        assert_eq!(upper, (0..0x1_0000).collect::<Vec<u64>>());
    }

    #[test]
    fn inputs_keep_to_their_kinds() {
        for row in KINDS {
            for count in 1..=4 {
                let kind = Kind::named(row.0).unwrap();
                let inputs = Inputs::of(&vec![kind; count]);
                assert_eq!(inputs.len() % BLOCK, 0, "{}", row.0);
                assert!(inputs.len() <= 0x1_0000, "{} {count}: {}", row.0, inputs.len());
                for value in inputs.columns.iter().flatten() {
                    assert_eq!(value & !kind.mask(), 0, "{}", row.0);
                    let allowed = match row.3 {
                        Form::Nonzero => *value != 0,
                        Form::Below(limit) => *value < limit,
                        _ => true,
                    };
                    assert!(allowed, "{}: {value}", row.0);
                }
            }
        }
    }
}
