//! The offline model, driven with tool results written by hand.

mod changes;
mod driver;
mod laws;
mod pasted;
mod phrases;
mod reading;
mod running;
