//! Errors of a scenario file: which file, which line, and what was meant.

use super::Scenario;
use std::path::{Path, PathBuf};

/// Why a scenario cannot be played.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScenarioError {
    /// The file cannot be read.
    #[error("cannot read the scenario {}: {reason}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system says.
        reason: String,
    },
    /// The text is no scenario.
    #[error("{}:{line}:{column}: {reason}", path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
        /// 1-based.
        line: usize,
        /// 1-based.
        column: usize,
        /// What is wrong and what was probably meant.
        reason: String,
    },
}

impl Scenario {
    /// Read a scenario from a file.
    ///
    /// # Errors
    /// Names the file, the line and, for a mistyped key, the nearest valid one.
    pub fn read(path: &Path) -> Result<Self, ScenarioError> {
        let text = std::fs::read_to_string(path).map_err(|error| ScenarioError::Unreadable {
            path: path.to_owned(),
            reason: error.to_string(),
        })?;
        Self::parse(&text, path)
    }

    /// Read a scenario from its text; `path` is for the error alone.
    ///
    /// # Errors
    /// As [`Scenario::read`].
    pub fn parse(text: &str, path: &Path) -> Result<Self, ScenarioError> {
        serde_json::from_str(text).map_err(|error| ScenarioError::Invalid {
            path: path.to_owned(),
            line: error.line(),
            column: error.column(),
            reason: explain(&error),
        })
    }
}

/// The reason without its position, and the nearest valid word when one was mistyped.
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
