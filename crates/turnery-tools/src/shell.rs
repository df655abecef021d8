//! The shell tool, which runs command lines locally or in a terminal of the client.

mod client_terminal;
mod command_preview;
mod environment;
mod exit_status;
mod live_output;
mod local_process;
mod output_buffer;
mod run_plan;
mod strip_ansi;
mod tool;

#[cfg(test)]
mod client_terminal_tests;
#[cfg(test)]
mod local_process_tests;
#[cfg(test)]
mod sandbox_tests;
#[cfg(test)]
mod stop_tests;
#[cfg(test)]
mod test_support;

pub use environment::{HIDDEN_ENV, leave_out_written};
pub(crate) use environment::{inherited, leave_out_relative};
pub(crate) use strip_ansi::Plain;
pub use tool::Shell;
