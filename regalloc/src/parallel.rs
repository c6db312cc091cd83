//! Puts moves that happen at once into a sequence.

use ptxc_mir::VReg;
use smallvec::SmallVec;

/// Moves that read all sources before they write any destination.
pub(crate) type Moves = SmallVec<[(VReg, VReg); 4]>;

/// A sequence of (destination, source) with the effect of all `moves` at once. Destinations are distinct. A cycle takes
/// one extra move through a register that `temporary` makes for its source; returns how many there were.
pub(crate) fn sequence(
    moves: &[(VReg, VReg)],
    mut temporary: impl FnMut(VReg) -> VReg,
    out: &mut Vec<(VReg, VReg)>,
) -> u32 {
    // Sorted by destination, so that the move which writes a register is found by search.
    let mut pending: Moves = moves.iter().copied().filter(|(to, from)| to != from).collect();
    pending.sort_unstable();
    let writer = |pending: &Moves, v: VReg| pending.binary_search_by_key(&v, |&(to, _)| to).ok();
    // How many moves still read each destination.
    let mut readers: SmallVec<[u32; 8]> = SmallVec::from_elem(0, pending.len());
    for i in 0..pending.len() {
        if let Some(j) = writer(&pending, pending[i].1) {
            readers[j] += 1;
        }
    }
    let mut done: SmallVec<[bool; 8]> = SmallVec::from_elem(false, pending.len());
    let mut ready: SmallVec<[usize; 8]> = (0..pending.len()).rev().filter(|&i| readers[i] == 0).collect();
    let mut cycles = 0;
    let mut rest = 0;
    loop {
        while let Some(i) = ready.pop() {
            out.push(pending[i]);
            done[i] = true;
            if let Some(j) = writer(&pending, pending[i].1)
                && !done[j]
            {
                readers[j] -= 1;
                if readers[j] == 0 {
                    ready.push(j);
                }
            }
        }
        // What is left are cycles: save one destination, whose reader then takes the saved value.
        while rest < pending.len() && done[rest] {
            rest += 1;
        }
        if rest == pending.len() {
            return cycles;
        }
        let (to, _) = pending[rest];
        let saved = temporary(to);
        out.push((saved, to));
        cycles += 1;
        for (i, (_, from)) in pending.iter_mut().enumerate() {
            if *from == to && !done[i] {
                *from = saved;
            }
        }
        readers[rest] = 0;
        ready.push(rest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn v(n: u32) -> VReg {
        VReg::from_u32(n)
    }

    /// Runs the moves at once and in sequence on registers that hold their own number.
    fn check(moves: &[(u32, u32)], registers: u32) -> (usize, u32) {
        let moves: Vec<(VReg, VReg)> = moves.iter().map(|&(to, from)| (v(to), v(from))).collect();
        let mut expected: Vec<u32> = (0..registers).collect();
        for &(to, from) in &moves {
            expected[to.as_u32() as usize] = from.as_u32();
        }
        let mut next = registers;
        let mut out = Vec::new();
        let cycles = sequence(
            &moves,
            |_| {
                next += 1;
                v(next - 1)
            },
            &mut out,
        );
        let mut found: Vec<u32> = (0..next).collect();
        for &(to, from) in &out {
            found[to.as_u32() as usize] = found[from.as_u32() as usize];
        }
        assert_eq!(found[..registers as usize], expected[..], "{moves:?} became {out:?}");
        (out.len(), cycles)
    }

    #[test]
    fn chains_swaps_and_rotations() {
        assert_eq!(check(&[(0, 0)], 1), (0, 0));
        assert_eq!(check(&[(0, 1), (1, 2), (2, 3)], 4), (3, 0));
        assert_eq!(check(&[(0, 1), (1, 0)], 2), (3, 1));
        assert_eq!(check(&[(0, 1), (1, 2), (2, 0)], 3), (4, 1));
        assert_eq!(check(&[(0, 1), (1, 0), (2, 3), (3, 2)], 4), (6, 2));
        // A cycle whose value is also copied elsewhere needs no register of its own, if only one knew; one is used.
        assert_eq!(check(&[(0, 1), (1, 0), (2, 0)], 3), (4, 1));
    }

    #[test]
    fn every_parallel_copy_of_up_to_six_registers() {
        for registers in 1..=6u32 {
            for code in 0..registers.pow(registers) {
                let mut code = code;
                let moves: Vec<(u32, u32)> = (0..registers)
                    .map(|to| {
                        let from = code % registers;
                        code /= registers;
                        (to, from)
                    })
                    .collect();
                check(&moves, registers);
            }
        }
    }
}
