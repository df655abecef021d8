//! Finds the slash command in a prompt.

use super::COMMANDS;
use crate::{commands::slash_command::SlashCommand, server::prompt_content::PromptContent};
use turnery_agent::SessionOptions;
use turnery_engine::Content;

/// Parses a command at the start of `text`; returns the command and its trimmed arguments.
pub(crate) fn parse_command(text: &str) -> Option<(&'static SlashCommand, &str)> {
    let rest = text.strip_prefix('/')?;
    let (name, args) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    let command = COMMANDS.iter().find(|command| command.name == name)?;
    Some((command, args.trim()))
}

/// Command found in a prompt.
pub(crate) struct CommandMatch {
    pub(crate) command: &'static SlashCommand,
    pub(crate) args: String,
    /// Blocks that came with the command. Excludes the command itself and the text blocks before it.
    pub(crate) attachments: Vec<Content>,
}

/// Finds the command in a prompt (CMD-2).
pub(crate) fn find_command(prompt: &PromptContent) -> Option<CommandMatch> {
    let ((command, args), rest) = find_in_blocks(prompt, parse_command)?;
    Some(CommandMatch {
        command,
        args: args.to_owned(),
        attachments: rest,
    })
}

/// Returns what `split` recognises at the start of a text block, and the blocks that came with it.
///
/// The last match counts. Resource blocks may stand before it and between texts, as editors split them. Of
/// adjacent text blocks only the last is searched: one editor prepends the text of the previous, cancelled
/// prompt.
pub(crate) fn find_in_blocks<'i, T>(
    prompt: &'i PromptContent,
    split: impl Fn(&'i str) -> Option<T>,
) -> Option<(T, Vec<Content>)> {
    let (input, is_text) = (&prompt.content, &prompt.is_text);
    let repeated = is_text.windows(2).rposition(|pair| pair == [true, true]);
    let first = repeated.map_or(0, |at| at + 1);
    let (place, found) = (first..input.len()).rev().find_map(|at| {
        let Content::Text { text } = &input[at] else {
            return None;
        };
        Some((at, is_text[at].then(|| split(text)).flatten()?))
    })?;
    let comes_along = |at: &usize| *at > place || (*at >= first && !is_text[*at]);
    let rest = (0..input.len()).filter(comes_along);
    Some((found, rest.map(|at| input[at].clone()).collect()))
}

/// Replaces a custom command of the user or the project by its expanded text. Other prompts are returned
/// unchanged.
pub(crate) fn expand_custom_command(
    prompt: PromptContent,
    options: &SessionOptions,
) -> Vec<Content> {
    match find_in_blocks(&prompt, |text| options.expand_command(text)) {
        Some((text, rest)) => [Content::text(text)].into_iter().chain(rest).collect(),
        None => prompt.content,
    }
}
