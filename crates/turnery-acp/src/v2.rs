//! v2: the draft of the protocol's second version, switched on by `turnery acp --acp-v2` for clients that
//! ask for it.
//!
//! A prompt is answered as soon as its message is part of the conversation; what comes of it is told by
//! updates, of which `state_update` says when it is over. Rules `V2-n` are those of section D.3 of the
//! protocol's digest.

mod calls;
mod command;
mod content;
mod diff;
pub(crate) mod methods;
mod news;
mod options;
mod permission;
mod servers;
mod shown;
mod state;
mod stop;
mod terminal;
mod translate;

pub(crate) use news::{info, warning};
pub(crate) use options::{changed as options_changed, offer};
pub(crate) use permission::Person;
pub(crate) use translate::Translator;

#[cfg(test)]
mod tests;
