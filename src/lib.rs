//! ptxc.
