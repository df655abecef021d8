//! Tests of the fake model as an agent sees it: over a socket, with a hand-written reader for each API.

mod anthropic;
mod chat;
mod gemini;
mod responses;
mod server;
mod wire;
