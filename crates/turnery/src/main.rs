//! The `turnery` binary.
fn main() {}
