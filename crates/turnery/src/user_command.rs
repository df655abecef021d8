//! Runs a command of the user's configuration with limits on time and output.
//!
//! Invariant: no process that the command started is left when [`CommandPlace::run`] returns or its future is dropped.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};
use turnery_tools::{
    SandboxSettings,
    processes::{FinishedTree, ProgramSpec, StopReport, run_piped},
    strip_writable_paths,
};

/// Output limit; a command that prints more is stopped. Unit: bytes, for stdout and stderr each.
const MAX_OUTPUT_BYTES: u64 = 1 << 20;

/// Longest quote of a command's output in messages. Unit: characters.
pub(crate) const MAX_QUOTED_CHARS: usize = 400;

/// Output and exit code of a command that exited by itself.
#[derive(Debug)]
pub(crate) struct CommandOutput {
    /// Exit code; `None` if a signal ended the command.
    pub(crate) code: Option<i32>,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
}

/// Session for which commands run: in its first root, outside the sandbox, and without search paths (such as `PATH`)
/// that the project or the session's commands can write.
#[derive(Clone, Debug)]
pub(crate) struct CommandPlace {
    roots: Vec<PathBuf>,
    sandbox: SandboxSettings,
}

impl CommandPlace {
    pub(crate) fn new(roots: &[PathBuf], sandbox: &SandboxSettings) -> Self {
        Self {
            roots: roots.to_vec(),
            sandbox: sandbox.clone(),
        }
    }

    /// Returns the working folder of the commands.
    pub(crate) fn cwd(&self) -> &Path {
        self.roots.first().map_or(Path::new("."), PathBuf::as_path)
    }

    /// Runs `words` with `stdin` as input and a line break after it.
    pub(crate) async fn run(
        &self,
        words: &[String],
        mut stdin: Vec<u8>,
        limit: Duration,
    ) -> Result<CommandOutput, String> {
        let (program, args) = words.split_first().ok_or("there is no command")?;
        let mut environment = std::env::vars_os().collect();
        strip_writable_paths(&mut environment, &self.roots, &self.sandbox);
        let program = ProgramSpec {
            program: program.into(),
            args: args.iter().map(Into::into).collect(),
            working_directory: self.cwd().to_owned(),
            environment,
            confinement: None,
        };
        stdin.push(b'\n');
        let ended = run_piped(program, &stdin, limit, MAX_OUTPUT_BYTES).await?;
        warn_of_remaining(words, &ended.finished);
        Ok(CommandOutput {
            code: ended.finished.status.and_then(|status| status.code()),
            stdout: ended.stdout,
            stderr: ended.stderr,
        })
    }
}

impl CommandOutput {
    /// Returns why a command that exited with another code than 0 failed, with the reason that it printed to stderr.
    pub(crate) fn failure(&self) -> Option<String> {
        let what = match self.code {
            Some(0) => return None,
            Some(code) => format!("exit code {code}"),
            None => "it was killed by a signal".to_owned(),
        };
        Some(match self.reason() {
            Some(reason) => {
                let quoted: String = reason.chars().take(MAX_QUOTED_CHARS).collect();
                format!("{what}: {quoted}")
            }
            None => what,
        })
    }

    /// Returns what the command printed to stderr, if it printed anything.
    pub(crate) fn reason(&self) -> Option<String> {
        let stderr = String::from_utf8_lossy(&self.stderr);
        Some(stderr.trim().to_owned()).filter(|text| !text.is_empty())
    }
}

/// Logs the processes of the command that could not be stopped.
fn warn_of_remaining(words: &[String], finished: &FinishedTree) {
    if let StopReport::Remaining(processes) = &finished.stopped {
        for process in processes {
            tracing::warn!(
                "process {process}, started by the command {words:?}, has not ended yet"
            );
        }
    }
}
