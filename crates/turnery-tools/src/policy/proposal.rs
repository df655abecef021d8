//! Proposal: the rule that "always allow" adds. As narrow as is still of use: a program with further options that
//! are known to be as harmless ([`offered`]), any other command exactly as it is.

use super::{Rule, line::Command, offered, rule::SHELL, word};
use crate::Workspace;
use std::path::PathBuf;

/// The rule that would allow this command and its like; `None` when its words are not certain.
pub(crate) fn for_command(
    command: &Command,
    bases: &[PathBuf],
    workspace: &Workspace,
) -> Option<Rule> {
    if command.opaque || command.name.is_empty() {
        return None;
    }
    let words = command.literal()?;
    let wide = offered::lead(&words).map(|lead| format!("{SHELL}({}:+)", word::quote(lead)));
    let exact = format!("{SHELL}({})", word::quote(&words));
    wide.into_iter()
        .chain([exact])
        .filter_map(|text| text.parse::<Rule>().ok())
        .find(|rule| rule.allows(command, bases, workspace))
}
