//! Matrices that the lanes of a warp hold together, apart from any text: where their elements lie ([`fragment`]), how
//! they are multiplied ([`multiply`], [`tensor`]) and exchanged with memory ([`exchange`]).

pub mod exchange;
pub mod fragment;
pub mod multiply;
pub mod tensor;
#[cfg(test)]
mod tests;
