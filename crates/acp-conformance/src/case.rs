//! Case: a text file of steps, and how it is read.
//!
#![doc = include_str!("../../../conformance/GRAMMAR.md")]

mod cursor;
mod slips;
mod step;
mod word;

pub use step::{
    Content, Elicitation, Expect, Guard, How, Line, Need, Permission, Pipe, Range, Start, Step,
    Tool, Voice,
};

use crate::model;
use std::path::Path;

/// A case.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// The name of its file, without `.case`.
    pub name: String,
    /// What it shows.
    pub purpose: String,
    /// What the agent must have for it to be played.
    pub needs: Vec<Need>,
    /// Its steps.
    pub lines: Vec<Line>,
}

/// A line that is no step.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}: {reason}", place(.case, *.line))]
pub struct CaseError {
    /// The case.
    pub case: String,
    /// 1-based; 0 if it is about the file.
    pub line: usize,
    /// What is wrong.
    pub reason: String,
}

fn place(case: &str, line: usize) -> String {
    match line {
        0 => case.to_owned(),
        line => format!("{case}, line {line}"),
    }
}

impl Case {
    /// Read a case from its text.
    ///
    /// # Errors
    /// Names the line that is no step.
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
        let mut variables = slips::Variables::given();
        // Some editors put a mark of its encoding before a text.
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
            let mut line = word::line(number, line).map_err(|reason| error(number, reason))?;
            if let Step::Model { answers, .. } = &mut line.step {
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
                *answers = model::answers(&script)
                    .map_err(|fault| error(number + fault.line, fault.reason))?;
            }
            variables
                .check(&line)
                .map_err(|reason| error(number, reason))?;
            case.lines.push(line);
        }
        if case.purpose.is_empty() {
            let reason = "a case begins with `# what it shows`";
            return Err(error(1, reason.to_owned()));
        }
        Ok(case)
    }

    /// Read a case from its file.
    ///
    /// # Errors
    /// The file cannot be read, or has a line that is no step.
    pub fn read(path: &Path) -> Result<Self, CaseError> {
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        let text = std::fs::read_to_string(path).map_err(|error| CaseError {
            case: path.display().to_string(),
            line: 0,
            reason: error.to_string(),
        })?;
        Self::parse(&name, &text)
    }

    /// The rules that its checks cite, each once, in order.
    #[must_use]
    pub fn rules(&self) -> Vec<&str> {
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
