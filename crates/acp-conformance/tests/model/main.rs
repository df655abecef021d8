//! The fake model as an agent sees it: over a socket, each API read back by hand.

mod anthropic;
mod chat;
mod gemini;
mod responses;
mod server;
mod wire;
