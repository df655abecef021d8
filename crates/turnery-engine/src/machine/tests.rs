//! Tests that look into the state of the machine.

mod explorer;
