//! Matrices that the lanes of a warp hold together, apart from any text: where their elements lie ([`fragment`]), how
//! they are multiplied ([`multiply`]) and exchanged with memory ([`exchange`]).

pub mod exchange;
pub mod fragment;
pub mod multiply;
#[cfg(test)]
mod tests;
