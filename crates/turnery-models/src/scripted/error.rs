//! Errors of scenario files, with file, line and suggestion.

use super::Scenario;
use std::path::{Path, PathBuf};

/// Error of loading a scenario.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScenarioError {
    /// The file cannot be read.
    #[error("cannot read the scenario {}: {reason}", path.display())]
    Unreadable {
        /// Path of the file.
        path: PathBuf,
        /// Error of the operating system.
        reason: String,
    },
    /// The text is not a valid scenario.
    #[error("{}:{line}:{column}: {reason}", path.display())]
    Invalid {
        /// Path of the file.
        path: PathBuf,
        /// Line, from 1.
        line: usize,
        /// Column, from 1.
        column: usize,
        /// Description of the error, with a suggestion.
        reason: String,
    },
}

impl Scenario {
    /// Reads a scenario from a file.
    ///
    /// # Errors
    /// The error names the file, the line and, for a mistyped key, the nearest valid one.
    pub fn read(path: &Path) -> Result<Self, ScenarioError> {
        let text = std::fs::read_to_string(path).map_err(|error| ScenarioError::Unreadable {
            path: path.to_owned(),
            reason: error.to_string(),
        })?;
        Self::parse(&text, path)
    }

    /// Parses a scenario; `path` is only used in errors.
    ///
    /// # Errors
    /// See [`Scenario::read`].
    pub fn parse(text: &str, path: &Path) -> Result<Self, ScenarioError> {
        serde_json::from_str(text).map_err(|error| ScenarioError::Invalid {
            path: path.to_owned(),
            line: error.line(),
            column: error.column(),
            reason: explain(&error),
        })
    }
}

/// Returns the reason without its position, with a suggestion for a mistyped word.
fn explain(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let position = format!(" at line {} column {}", error.line(), error.column());
    let reason = text.strip_suffix(&position).unwrap_or(&text);
    let mut quoted = reason.split('`').skip(1).step_by(2);
    let is_word = reason.starts_with("unknown field") || reason.starts_with("unknown variant");
    let nearest = quoted
        .next()
        .filter(|_| is_word)
        .and_then(|wrong| nearest(wrong, quoted));
    match nearest {
        Some(right) => format!("{reason}; did you mean `{right}`?"),
        None => reason.to_owned(),
    }
}

fn nearest<'a>(wrong: &str, valid: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    valid
        .map(|word| (strsim::damerau_levenshtein(wrong, word), word))
        .min_by_key(|(distance, _)| *distance)
        .filter(|(distance, word)| *distance <= word.len().div_ceil(2))
        .map(|(_, word)| word)
}
