//! Tests of sessions with the real model adapters over real HTTP: what each request contains, given the ones before.

mod dialect;
mod prefix_law;
mod requests;
mod server;
mod switching;
mod world;
