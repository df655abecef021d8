//! `cargo xtask`: the repository's own commands.
fn main() {}
