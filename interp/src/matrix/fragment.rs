//! Where the elements of a matrix lie in the registers of a warp (PTX ISA 9.7.16.5.1 to 9.7.16.5.13).
//!
//! All shapes but one follow one rule. A register holds `e` elements that are neighbours along k: `e` is 32 divided by
//! their bits, or 1 for elements that fill a register. Lane `4 g + t` holds, in each register of A and B, row `g` (of A)
//! or column `g` (of B), at k from `t * e` on. Further registers of A are 8 rows further down first, then `4 e` further
//! along k; those of B only the latter. The accumulators are pairs of neighbouring columns `2 t`, `2 t + 1` of row `g`,
//! then of row `g + 8`.
//!
//! `m8n8k4` with halves is four multiplications by four groups of eight lanes, with layouts of their own.

/// Lanes of a warp.
pub const LANES: usize = 32;

/// One register of a warp.
pub type Lanes = [u64; LANES];

/// Rows and columns of the matrices: A has `m` rows and `k` columns, B `k` rows and `n` columns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shape {
    /// Rows of the result.
    pub m: usize,
    /// Columns of the result.
    pub n: usize,
    /// Length of the sums.
    pub k: usize,
}

impl Shape {
    /// Reads `m16n8k16`.
    pub fn parse(text: &str) -> Option<Shape> {
        let (m, rest) = text.strip_prefix('m')?.split_once('n')?;
        let (n, k) = rest.split_once('k')?;
        Some(Shape { m: m.parse().ok()?, n: n.parse().ok()?, k: k.parse().ok()? })
    }
}

/// Which matrix of a multiplication.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// The left factor.
    A,
    /// The right factor.
    B,
    /// The accumulator and the result.
    Accumulator,
}

/// How the elements are laid out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Arrangement {
    /// The rule of this module's head.
    Grouped,
    /// Four matrices, by quad pairs (PTX ISA 9.7.16.5.1): of the factors, whether a lane holds neighbours of one row.
    QuadPairs {
        /// Row-major; for the accumulator, of 16-bit elements.
        row: bool,
    },
}

/// A matrix in registers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fragment {
    /// Which.
    pub role: Role,
    /// Of which multiplication.
    pub shape: Shape,
    /// Bits of an element as it lies in a register: 1, 4, 8, 16, 32 or 64.
    pub bits: u32,
    /// How.
    pub arrangement: Arrangement,
}

impl Fragment {
    /// A matrix laid out by the common rule.
    pub fn grouped(role: Role, shape: Shape, bits: u32) -> Fragment {
        Fragment { role, shape, bits, arrangement: Arrangement::Grouped }
    }

    /// Rows of the matrix.
    pub fn rows(&self) -> usize {
        if self.role == Role::B { self.shape.k } else { self.shape.m }
    }

    /// Columns of the matrix.
    pub fn columns(&self) -> usize {
        if self.role == Role::A { self.shape.k } else { self.shape.n }
    }

    /// How many matrices the warp holds.
    pub fn matrices(&self) -> usize {
        if self.arrangement == Arrangement::Grouped { 1 } else { 4 }
    }

    /// Elements of one register of one lane.
    pub fn per_register(&self) -> usize {
        (32 / self.bits.min(32)) as usize
    }

    /// Elements that a lane holds.
    pub fn per_lane(&self) -> usize {
        let all = self.matrices() * self.rows() * self.columns();
        // The factors of quad pairs are held by half of the lanes of a pair each; all lanes hold as many.
        all / LANES
    }

    /// Registers that a lane holds.
    pub fn registers(&self) -> usize {
        self.per_lane() / self.per_register()
    }

    /// Matrix, row and column of a lane's element; elements are counted from the low bits of the first register on.
    pub fn position(&self, lane: usize, index: usize) -> (usize, usize, usize) {
        match self.arrangement {
            Arrangement::Grouped => {
                let (row, column) = self.grouped_position(lane, index);
                (0, row, column)
            }
            Arrangement::QuadPairs { row } => {
                let (r, c) = quad_pair_position(self.role, row, lane, index);
                (lane % 16 / 4, r, c)
            }
        }
    }

    fn grouped_position(&self, lane: usize, index: usize) -> (usize, usize) {
        let (group, thread) = (lane / 4, lane % 4);
        if self.role == Role::Accumulator {
            return (group + index / 2 * 8, thread * 2 + index % 2);
        }
        let e = self.per_register();
        let (register, inside) = (index / e, index % e);
        let down = if self.role == Role::A { self.shape.m / 8 } else { 1 };
        let along = thread * e + inside + register / down * 4 * e;
        let across = group + register % down * 8;
        if self.role == Role::A { (across, along) } else { (along, across) }
    }

    /// The matrices, row by row, one after another, as raw elements. Missing registers are zero.
    pub fn gather(&self, registers: &[Lanes]) -> Vec<u64> {
        let (rows, columns) = (self.rows(), self.columns());
        let mut matrix = vec![0; self.matrices() * rows * columns];
        let (e, mask) = (self.per_register(), self.mask());
        for index in 0..self.per_lane() {
            let Some(register) = registers.get(index / e) else { continue };
            let shift = (index % e) as u32 * self.bits;
            for (lane, value) in register.iter().enumerate() {
                let (which, row, column) = self.position(lane, index);
                if let Some(to) = matrix.get_mut((which * rows + row) * columns + column) {
                    *to = value >> shift & mask;
                }
            }
        }
        matrix
    }

    /// The registers that hold matrices given as [`Fragment::gather`] gives them.
    pub fn scatter(&self, matrix: &[u64]) -> Vec<Lanes> {
        let (rows, columns) = (self.rows(), self.columns());
        let mut registers = vec![[0; LANES]; self.registers()];
        let (e, mask) = (self.per_register(), self.mask());
        for index in 0..self.per_lane() {
            let Some(register) = registers.get_mut(index / e) else { continue };
            let shift = (index % e) as u32 * self.bits;
            for (lane, value) in register.iter_mut().enumerate() {
                let (which, row, column) = self.position(lane, index);
                let element = matrix.get((which * rows + row) * columns + column).copied().unwrap_or(0);
                *value |= (element & mask) << shift;
            }
        }
        registers
    }

    fn mask(&self) -> u64 {
        if self.bits >= 64 { u64::MAX } else { (1 << self.bits) - 1 }
    }
}

/// PTX ISA 9.7.16.5.1.
fn quad_pair_position(role: Role, row: bool, lane: usize, index: usize) -> (usize, usize) {
    let high = lane / 16 * 4;
    let thread = lane % 4;
    match (role, row) {
        (Role::A, true) => (thread + high, index),
        (Role::A, false) => (index + high, thread),
        (Role::B, true) => (thread, index + high),
        (Role::B, false) => (index, thread + high),
        (Role::Accumulator, true) => (thread + high, index),
        (Role::Accumulator, false) => ((lane & 1) + (index & 2) + high, (index & 4) + (lane & 2) + (index & 1)),
    }
}
