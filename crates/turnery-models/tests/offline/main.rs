//! Tests the offline model with handwritten tool results. Its answers on a real repository are tested in
//! `turnery-agent`, with the real tools.

mod driver;
mod outputs;
mod phrasings;
mod property_tests;
#[path = "../server/mod.rs"]
mod server;
