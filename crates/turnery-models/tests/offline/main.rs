//! The offline model, driven with tool results written by hand. What it says on a real repository is
//! tested in `turnery-agent`, with the real tools.

mod driver;
mod laws;
mod outputs;
mod phrasings;
