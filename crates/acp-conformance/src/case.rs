//! Parses cases: text files with one step per line.
//!
#![doc = include_str!("../../../conformance/GRAMMAR.md")]

mod cursor;
mod parse;
mod step;
mod validate;

pub use step::{
    CaseLine, CaseStep, ChunkAuthor, CountRange, ElicitationAnswer, ExpectedResponse,
    LineCondition, Need, OutputPipe, PermissionAnswer, PromptContent, ResponseMode, StartOptions,
    ToolKind,
};

use crate::model;
use std::path::Path;

/// Parsed case.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// File name without `.case`.
    pub name: String,
    /// Purpose, taken from the first comment line.
    pub purpose: String,
    /// Needs that the agent must meet for the case to be played.
    pub needs: Vec<Need>,
    /// Steps, in order.
    pub lines: Vec<CaseLine>,
}

/// Error in a case file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}: {reason}", place(.case, *.line))]
pub struct CaseError {
    /// Name or path of the case.
    pub case: String,
    /// 1-based line number; 0 if the error is about the file.
    pub line: usize,
    /// Description of the problem.
    pub reason: String,
}

fn place(case: &str, line: usize) -> String {
    match line {
        0 => case.to_owned(),
        line => format!("{case}, line {line}"),
    }
}

impl Case {
    /// Parses a case from its text.
    ///
    /// # Errors
    /// If a line is not a valid step; the error names the line.
    pub fn parse(name: &str, text: &str) -> Result<Self, CaseError> {
        let error = |line: usize, reason: String| CaseError {
            case: name.to_owned(),
            line,
            reason,
        };
        let mut case = Self {
            name: name.to_owned(),
            purpose: String::new(),
            needs: Vec::new(),
            lines: Vec::new(),
        };
        let mut variables = validate::KnownVariables::predefined();
        // Some editors write a byte order mark.
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let mut lines = text.lines().enumerate();
        while let Some((index, line)) = lines.next() {
            let number = index + 1;
            let line = line.trim();
            if let Some(comment) = line.strip_prefix('#') {
                if case.purpose.is_empty() {
                    comment.trim().clone_into(&mut case.purpose);
                }
                continue;
            }
            if line.is_empty() {
                continue;
            }
            if case.purpose.is_empty() {
                let reason = "a case begins with `# what it shows`";
                return Err(error(1, reason.to_owned()));
            }
            if let Some(path) = line.strip_prefix("needs ") {
                let need = Need::parse(path).map_err(|reason| error(number, reason))?;
                if matches!(need, Need::Captured(_)) {
                    return Err(error(
                        number,
                        "nothing is captured before a case".to_owned(),
                    ));
                }
                case.needs.push(need);
                continue;
            }
            let mut line =
                parse::parse_line(number, line).map_err(|reason| error(number, reason))?;
            if let CaseStep::Model { answers, .. } = &mut line.step {
                let mut script = String::new();
                loop {
                    let Some((_, text)) = lines.next() else {
                        return Err(error(number, "`model` without `end`".to_owned()));
                    };
                    if text.trim() == "end" {
                        break;
                    }
                    script.push_str(text);
                    script.push('\n');
                }
                *answers = model::parse_script(&script)
                    .map_err(|fault| error(number + fault.line, fault.reason))?;
            }
            variables
                .check_line(&line)
                .map_err(|reason| error(number, reason))?;
            case.lines.push(line);
        }
        if case.purpose.is_empty() {
            let reason = "a case begins with `# what it shows`";
            return Err(error(1, reason.to_owned()));
        }
        Ok(case)
    }

    /// Reads a case from its file.
    ///
    /// # Errors
    /// If the file cannot be read, or a line is not a valid step.
    pub fn read(path: &Path) -> Result<Self, CaseError> {
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        let text = std::fs::read_to_string(path).map_err(|error| CaseError {
            case: path.display().to_string(),
            line: 0,
            reason: error.to_string(),
        })?;
        Self::parse(&name, &text)
    }

    /// Returns the rules that the checks cite, each once, in order.
    #[must_use]
    pub fn cited_rules(&self) -> Vec<&str> {
        let mut rules: Vec<&str> = Vec::new();
        for rule in self.lines.iter().flat_map(|line| &line.rules) {
            if !rules.contains(&rule.as_str()) {
                rules.push(rule);
            }
        }
        rules
    }
}

#[cfg(test)]
mod tests;
