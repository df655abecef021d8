//! `turnery completions`: prints completion scripts for shells.

use crate::args::{Args, whole_command};
use std::{io::Write as _, process::ExitCode};

/// Prints the completion script for `shell`.
pub(crate) fn print_script(shell: clap_complete::Shell) -> anyhow::Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut whole_command::<Args>(), "turnery", &mut script);
    std::io::stdout().lock().write_all(&script)?;
    Ok(ExitCode::SUCCESS)
}
