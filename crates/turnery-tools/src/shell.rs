//! Runs command lines locally or in a terminal of the client, for the shell tool.

pub(crate) mod client_terminal;
pub(crate) mod command_preview;
mod environment;
mod exit_status;
mod live_output;
pub(crate) mod local_process;
mod output_buffer;
pub(crate) mod run_plan;
mod strip_ansi;
mod user_command;

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

pub use environment::{HIDDEN_ENV, strip_writable_paths};
pub(crate) use environment::{
    hidden_variables, inherited_env, strip_project_code, strip_relative_paths,
};
pub(crate) use strip_ansi::AnsiStripper;
pub use user_command::{UserCommandOutput, run_user_command};
