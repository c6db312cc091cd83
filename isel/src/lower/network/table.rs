//! Truth tables of up to five inputs, and how they split into tables of three.
//!
//! Bit `i` of a table is the result where input `k` has the value of bit `k` of `i`. A table that does not depend on an
//! input holds the same bits for both its values, so tables of fewer inputs are tables of five.

/// Most inputs of a table.
pub(super) const MAX_INPUTS: usize = 5;

/// The table that is the input itself.
pub(super) const INPUT: [u32; MAX_INPUTS] = [0xaaaa_aaaa, 0xcccc_cccc, 0xf0f0_f0f0, 0xff00_ff00, 0xffff_0000];

/// Moves input `from` to the place `to` of a higher number that the table does not depend on.
pub(super) fn move_up(table: u32, from: usize, to: usize) -> u32 {
    if from == to {
        return table;
    }
    let shift = (1u32 << to) - (1 << from);
    let moved = table & INPUT[from] & !INPUT[to];
    let stays = table & !INPUT[from] & !INPUT[to];
    // Where `to` is 1 now stands what stood where `from` was 1; `from` no longer matters.
    let low = stays | stays << (1 << from);
    let high = moved << shift;
    low | high | high << (1 << from)
}

/// Whether the table depends on an input.
pub(super) fn depends_on(table: u32, input: usize) -> bool {
    (table ^ (table >> (1 << input))) & !INPUT[input] != 0
}

/// The table with the inputs in another order: input `k` of the result is input `order[k]` of the table; inputs that
/// `order` does not name have to be without influence.
pub(super) fn reorder(table: u32, order: &[u8]) -> u32 {
    let mut out = 0u32;
    for index in 0..32u32 {
        let source = order.iter().enumerate().fold(0, |at, (k, input)| at | (index >> k & 1) << input);
        out |= (table >> source & 1) << index;
    }
    out
}

/// A table of four or five inputs as `outer(inner(a, b, c), p, q)`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Split {
    /// Inputs of the inner table.
    pub inner_inputs: [u8; 3],
    /// Its table, over those.
    pub inner: u8,
    /// Inputs `p` and `q` of the outer table; the same one twice where one is enough.
    pub outer_inputs: [u8; 2],
    /// Its table: input 0 is the inner result, 1 is `p`, 2 is `q`.
    pub outer: u8,
}

/// Splits a table of `inputs` (4 or 5) inputs into two of three inputs, if that is possible (Ashenhurst's
/// decomposition, with one input allowed to go into both when there are four).
pub(super) fn split(table: u32, inputs: usize) -> Option<Split> {
    for a in 0..inputs as u8 {
        for b in a + 1..inputs as u8 {
            for c in b + 1..inputs as u8 {
                let mut rest = (0..inputs as u8).filter(|i| ![a, b, c].contains(i));
                let p = rest.next()?;
                let q = rest.next();
                let order = [a, b, c, p, q.unwrap_or(p)];
                let order = if q.is_some() { &order[..] } else { &order[..4] };
                let rows = reorder(table, order).to_le_bytes();
                let found = match q {
                    Some(q) => split_rows(rows, &[0xff]).map(|inner| (inner, q, false)),
                    None => split_rows(rows, &[0xff]).map(|inner| (inner, p, false)).or_else(|| {
                        [(a, 0xaa), (b, 0xcc), (c, 0xf0)]
                            .into_iter()
                            .find_map(|(q, high)| Some((split_rows(rows, &[high, !high])?, q, true)))
                    }),
                };
                if let Some((inner, q, shared)) = found {
                    let outer = outer_table(rows, inner, [a, b, c].iter().position(|i| *i == q).filter(|_| shared));
                    return Some(Split { inner_inputs: [a, b, c], inner, outer_inputs: [p, q], outer });
                }
            }
        }
    }
    None
}

/// The inner table when every row (one per value of the outer inputs), looked at in each of the parts alone, is constant,
/// one function or its complement.
fn split_rows(rows: [u8; 4], parts: &[u8]) -> Option<u8> {
    let mut inner = 0u8;
    for &part in parts {
        let mut function = None;
        for row in rows {
            let row = row & part;
            if row == 0 || row == part {
                continue;
            }
            match function {
                None => function = Some(row),
                Some(f) if row == f || row == f ^ part => {}
                Some(_) => return None,
            }
        }
        inner |= function.unwrap_or(0);
    }
    Some(inner)
}

/// The outer table for an inner one. `shared` is the inner input that is the outer input `q` too.
fn outer_table(rows: [u8; 4], inner: u8, shared: Option<usize>) -> u8 {
    let mut outer = 0u8;
    for index in 0..8u8 {
        let (h, p, q) = (index & 1, index >> 1 & 1, index >> 2 & 1);
        let mut reach = if h == 1 { inner } else { !inner };
        let row = match shared {
            Some(input) => {
                let ones = INPUT[input] as u8;
                reach &= if q == 1 { ones } else { !ones };
                p
            }
            None => p | q << 1,
        };
        // Unreachable combinations may be anything.
        if rows[usize::from(row)] & reach != 0 {
            outer |= 1 << index;
        }
    }
    outer
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(split: Split, index: u32) -> bool {
        let bit = |input: u8| index >> input & 1;
        let inner = split.inner_inputs.iter().enumerate().fold(0, |at, (k, input)| at | bit(*input) << k);
        let h = u32::from(split.inner) >> inner & 1;
        let at = h | bit(split.outer_inputs[0]) << 1 | bit(split.outer_inputs[1]) << 2;
        u32::from(split.outer) >> at & 1 == 1
    }

    #[test]
    fn inputs_move_up() {
        for (from, input) in INPUT.into_iter().enumerate() {
            for (to, place) in INPUT.into_iter().enumerate().skip(from) {
                assert_eq!(move_up(input, from, to), place, "{from} to {to}");
                assert_eq!(move_up(!input, from, to), !place);
            }
        }
        let table = INPUT[0] & INPUT[1];
        assert_eq!(move_up(table, 1, 4), INPUT[0] & INPUT[4]);
        assert_eq!(move_up(move_up(table, 1, 4), 0, 2), INPUT[2] & INPUT[4]);
    }

    #[test]
    fn a_split_computes_the_table() {
        // A walk over many tables; every split found must be right.
        let mut state = 0x1234_5678u32;
        let mut found = 0;
        for _ in 0..200_000 {
            state = state.wrapping_mul(0x0019_660d).wrapping_add(0x3c6e_f35f);
            // Tables of one inner function, so that splits exist, and plain ones, where they are rare.
            let table = if state & 1 == 0 { (state >> 16) * 0x0001_0001 } else { state };
            let inputs = if state & 1 == 0 { 4 } else { 5 };
            if let Some(s) = split(table, inputs) {
                found += 1;
                for index in 0..32 {
                    assert_eq!(value(s, index), table >> index & 1 == 1, "{table:#x} {s:?}");
                }
            }
        }
        assert!(found > 1000, "{found}");
    }

    /// Searches all inner tables, instead of looking at rows.
    fn splits_exhaustively(table: u32, inputs: u8) -> bool {
        let bit = |index: u32, input: u8| index >> input & 1;
        let triples = (0..inputs).flat_map(|a| (a + 1..inputs).map(move |b| (a, b)));
        for (a, b) in triples {
            for c in b + 1..inputs {
                for q in 0..inputs {
                    let p = (0..inputs).find(|i| ![a, b, c, q].contains(i)).unwrap_or(q);
                    if (0..inputs).any(|i| ![a, b, c, p, q].contains(&i)) {
                        continue;
                    }
                    'inner: for inner in 0..=255u32 {
                        let mut outer = [None; 8];
                        for index in 0..1u32 << inputs {
                            let h = inner >> (bit(index, a) | bit(index, b) << 1 | bit(index, c) << 2) & 1;
                            let at = (h | bit(index, p) << 1 | bit(index, q) << 2) as usize;
                            let wanted = table >> index & 1;
                            if *outer[at].get_or_insert(wanted) != wanted {
                                continue 'inner;
                            }
                        }
                        return true;
                    }
                }
            }
        }
        false
    }

    #[test]
    fn a_split_is_found_where_there_is_one() {
        let mut state = 7u32;
        for round in 0..600 {
            state = state.wrapping_mul(0x0019_660d).wrapping_add(0x3c6e_f35f);
            let four = (state >> 16) * 0x0001_0001;
            // Sums of two random products of literals split about as often as not.
            let pick =
                |n: u32| INPUT[(state >> n & 7) as usize % 5] ^ if state >> (n + 3) & 1 == 1 { u32::MAX } else { 0 };
            let five = (pick(3) & pick(8) & pick(13)) ^ (pick(17) & pick(22) | pick(26));
            for (table, inputs) in [(four, 4), (five, 5)] {
                let essential = (0..inputs as usize).all(|i| depends_on(table, i));
                if essential {
                    let ours = split(table, inputs as usize).is_some();
                    assert_eq!(ours, splits_exhaustively(table, inputs), "round {round}: {table:#x} of {inputs}");
                }
            }
        }
    }
}
