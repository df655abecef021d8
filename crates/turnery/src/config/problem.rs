//! Errors in a configuration file, with their lines.

use std::{
    fmt,
    path::{Path, PathBuf},
};

/// All errors of one file, in the order of its lines.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", .problems.iter().map(Problem::to_string).collect::<Vec<_>>().join("\n"))]
pub(crate) struct ConfigError {
    /// The errors; never empty.
    pub(crate) problems: Vec<Problem>,
}

/// An error in a configuration file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    /// Path of the file.
    pub(crate) file: PathBuf,
    /// Line of the error, from 1; `None` if it concerns the whole file.
    pub(crate) line: Option<usize>,
    /// Message that says what is wrong and what to write instead.
    pub(crate) text: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.file.display())?;
        if let Some(line) = self.line {
            write!(f, "{line}:")?;
        }
        write!(f, " {}", self.text)
    }
}

impl ConfigError {
    /// Returns an error that concerns the whole file.
    pub(crate) fn of_file(file: &Path, text: String) -> Self {
        Self {
            problems: vec![Problem {
                file: file.to_owned(),
                line: None,
                text,
            }],
        }
    }
}
