//! Suggests the rule that "always allow" adds.
//!
//! The suggestion is as narrow as is still useful: further options that are known to be equally harmless for
//! a listed program ([`known_commands`]), the exact command for any other.

use super::{Rule, command_line::Command, known_commands, rule::SHELL_GROUP, shell_word};
use crate::Workspace;
use std::path::PathBuf;

/// Returns a rule that allows this command and similar ones; `None` if its words are not certain.
pub(crate) fn suggest_rule(
    command: &Command,
    bases: &[PathBuf],
    workspace: &Workspace,
) -> Option<Rule> {
    if command.opaque || command.name.is_empty() {
        return None;
    }
    let words = command.literal()?;
    let wide = known_commands::lead(&words)
        .map(|lead| format!("{SHELL_GROUP}({}:+)", shell_word::quote(lead)));
    let exact = format!("{SHELL_GROUP}({})", shell_word::quote(&words));
    wide.into_iter()
        .chain([exact])
        .filter_map(|text| text.parse::<Rule>().ok())
        .find(|rule| rule.allows(command, bases, workspace))
}
