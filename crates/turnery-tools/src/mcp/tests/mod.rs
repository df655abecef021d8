//! Tests: servers made with the library's own server side, over pipes; and processes.

mod calls;
mod dying;
mod fake;
mod lists;
mod processes;
