//! Suggests the rule that "always allow" adds.
//!
//! The suggestion is as narrow as is still useful: further options that are known to be equally harmless for
//! a listed program ([`known_commands`]), the exact command for any other.

use super::{Rule, command_line::SimpleCommand, known_commands, rule::SHELL_GROUP, shell_word};
use crate::Workspace;
use std::path::PathBuf;

/// Returns the rule that "always allow" offers for this command: with `:+` for a known command, otherwise for
/// exactly these words; `None` if the words are not certain or no rule can allow them.
pub(crate) fn suggest_rule(
    command: &SimpleCommand,
    bases: &[PathBuf],
    workspace: &Workspace,
) -> Option<Rule> {
    if command.is_opaque || command.name.is_empty() {
        return None;
    }
    let words = command.literal_words()?;
    let wide = known_commands::known_prefix(&words)
        .map(|lead| format!("{SHELL_GROUP}({}:+)", shell_word::quote_words(lead)));
    let exact = format!("{SHELL_GROUP}({})", shell_word::quote_words(&words));
    wide.into_iter()
        .chain([exact])
        .filter_map(|text| text.parse::<Rule>().ok())
        .find(|rule| rule.allows_command(command, bases, workspace))
}
