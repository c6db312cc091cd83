//! `memcpy`, `memmove` and `memset`: straight accesses for short constant lengths, loops otherwise.
//!
//! Accesses are as wide as the stated alignments allow, up to 128 bits. `memmove` loads everything before it stores when it
//! is straight, and chooses the direction by the addresses when it loops.

use ptxc_ir::builder::Cursor;
use ptxc_ir::{Extra, Inst, IntCC, MemAttrs, Opcode, Space, Type, Value};
use smallvec::SmallVec;

use super::context::Context;
use super::memory::{Piece, plan};
use crate::rules::Pattern;

/// Most accesses that a copy of constant length is unrolled to.
const MOST_PIECES: usize = 16;
/// Pieces in flight of a straight `memcpy`.
const BATCH: usize = 4;

/// What a copy or fill works on.
struct Job {
    dst: Value,
    /// Source address; for `memset` the byte in every position of an `i64`.
    src: Value,
    is_set: bool,
    dst_align: u64,
    src_align: u64,
    volatile: bool,
}

impl Job {
    fn align(&self) -> u64 {
        if self.is_set { self.dst_align } else { self.dst_align.min(self.src_align) }
    }
}

fn access_type(piece: Piece) -> Type {
    let unit = Type::int(piece.unit as u32 * 8);
    if piece.count == 1 { unit } else { unit.with_lanes(piece.count) }
}

impl Context<'_> {
    /// `memcpy` and `memmove`.
    pub fn expand_copy(&mut self, inst: Inst) {
        let Extra::Copy { dst_align, src_align, volatile } = self.func.dfg.insts[inst].extra else { return };
        let args = self.args(inst);
        let job = Job {
            dst: args[0],
            src: args[1],
            is_set: false,
            dst_align: dst_align.max(1).into(),
            src_align: src_align.max(1).into(),
            volatile,
        };
        let overlaps = self.func.dfg.insts[inst].op == Opcode::Memmove && self.may_overlap(args[0], args[1]);
        self.expand_job(inst, &job, args[2], overlaps);
    }

    /// `memset`.
    pub fn expand_set(&mut self, inst: Inst) {
        let Extra::Copy { dst_align, volatile, .. } = self.func.dfg.insts[inst].extra else { return };
        let args = self.args(inst);
        let byte = self.conv(Opcode::Zext, args[1], Type::I64);
        let src = self.bin_imm(Opcode::Mul, byte, 0x0101_0101_0101_0101);
        let job = Job { dst: args[0], src, is_set: true, dst_align: dst_align.max(1).into(), src_align: 1, volatile };
        self.expand_job(inst, &job, args[2], false);
    }

    /// Objects in different spaces do not overlap, unless one of them may be the other.
    fn may_overlap(&self, a: Value, b: Value) -> bool {
        let shared = |s: Space| matches!(s, Space::Shared | Space::SharedCluster);
        match (self.ty(a).space(), self.ty(b).space()) {
            (Some(a), Some(b)) => a == b || a == Space::Generic || b == Space::Generic || (shared(a) && shared(b)),
            _ => true,
        }
    }

    fn expand_job(&mut self, inst: Inst, job: &Job, length: Value, overlaps: bool) {
        let constant = self.func.dfg.as_bits(length).and_then(|n| u64::try_from(n).ok());
        if let Some(length) = constant {
            let pieces =
                if length > 16 * MOST_PIECES as u64 { SmallVec::new() } else { plan(length, job.align(), 8, 16) };
            if length == 0 || (!pieces.is_empty() && pieces.len() <= MOST_PIECES) {
                self.straight(job, &pieces, if overlaps { pieces.len().max(1) } else { BATCH });
                self.func.layout.remove_inst(inst);
                return;
            }
        }
        self.looped(inst, job, length, constant, overlaps);
    }

    fn straight(&mut self, job: &Job, pieces: &[Piece], batch: usize) {
        self.note(Pattern::LegalCopyStraight);
        for pieces in pieces.chunks(batch) {
            let values: SmallVec<[Value; 16]> = pieces.iter().map(|p| self.job_load(job, *p, None)).collect();
            for (piece, value) in pieces.iter().zip(values) {
                self.job_store(job, *piece, None, value);
            }
        }
    }

    fn address(&mut self, base: Value, piece: Piece, index: Option<Value>) -> Value {
        match index {
            Some(index) => self.builder().gep(Type::I8.into(), base, &[index]),
            None => self.offset(base, piece.offset as i64),
        }
    }

    fn attrs(&self, job: &Job, align: u64, piece: Piece, looped: bool) -> MemAttrs {
        let width = piece.unit * u64::from(piece.count);
        let offset = if piece.offset == 0 { u64::MAX } else { 1 << piece.offset.trailing_zeros() };
        let align = align.min(offset).min(if looped { width } else { u64::MAX });
        MemAttrs { volatile: job.volatile, ..MemAttrs::aligned(align) }
    }

    fn job_load(&mut self, job: &Job, piece: Piece, index: Option<Value>) -> Value {
        let ty = access_type(piece);
        if job.is_set {
            let scalar = self.resize(job.src, ty.scalar());
            let lanes = vec![scalar; piece.count as usize];
            return if piece.count == 1 { scalar } else { self.vector(ty, &lanes) };
        }
        let address = self.address(job.src, piece, index);
        let attrs = self.attrs(job, job.src_align, piece, index.is_some());
        self.load(ty, address, None, attrs)
    }

    fn job_store(&mut self, job: &Job, piece: Piece, index: Option<Value>, value: Value) {
        let address = self.address(job.dst, piece, index);
        let attrs = self.attrs(job, job.dst_align, piece, index.is_some());
        self.store(value, address, None, attrs);
    }

    fn copy_at(&mut self, job: &Job, piece: Piece, index: Value) {
        let value = self.job_load(job, piece, Some(index));
        self.job_store(job, piece, Some(index), value);
    }

    fn looped(&mut self, inst: Inst, job: &Job, length: Value, constant: Option<u64>, overlaps: bool) {
        self.note(Pattern::LegalCopyLoop);
        let Some(tail) = self.split_before(inst) else { return };
        let length = self.conv(Opcode::Zext, length, Type::I64);
        let wide = plan(16, job.align(), 8, 16)[0];
        let width = wide.unit * u64::from(wide.count);
        let whole = self.bin_imm(Opcode::And, length, -(width as i64));
        let byte = Piece { offset: 0, unit: 1, count: 1 };
        let rest = constant.map(|n| n % width);
        let zero = self.imm(Type::I64, 0);
        let needs_bytes = width > 1 && rest != Some(0);
        if overlaps {
            let (backward, _) = self.block_before(tail, &[]);
            let (forward, _) = self.block_before(tail, &[]);
            let (dst, src) = (self.generic_address(job.dst), self.generic_address(job.src));
            let ahead = self.icmp(IntCC::Ugt, dst, src);
            self.branch(ahead, (backward, &[]), (forward, &[]));
            self.cursor = Cursor::End(backward);
            if needs_bytes {
                self.count_down(forward, (length, whole), 1, |this, index| this.copy_at(job, byte, index));
            }
            self.count_down(forward, (whole, zero), width, |this, index| this.copy_at(job, wide, index));
            self.jump(tail, &[]);
            self.cursor = Cursor::End(forward);
        }
        self.count_up(tail, (zero, whole), width, |this, index| this.copy_at(job, wide, index));
        if needs_bytes {
            self.count_up(tail, (whole, length), 1, |this, index| this.copy_at(job, byte, index));
        }
        self.jump(tail, &[]);
        self.func.layout.remove_inst(inst);
    }

    fn generic_address(&mut self, ptr: Value) -> Value {
        let generic = if self.ty(ptr) == Type::PTR { ptr } else { self.conv(Opcode::Addrspacecast, ptr, Type::PTR) };
        self.conv(Opcode::Ptrtoint, generic, Type::I64)
    }
}
