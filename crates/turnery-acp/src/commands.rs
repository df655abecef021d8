//! The table of slash commands. One file per command.
//!
//! A command arrives as an ordinary prompt and is answered like one (CMD-2). Unknown names are passed to the
//! model, since the text may be a path.

mod branch;
mod compact;
mod cost;
mod export;
pub(crate) mod find_command;
mod go_on;
mod help;
pub(crate) mod mcp_prompt;
mod mode;
mod model;
mod rerun;
pub(crate) mod slash_command;
pub(crate) mod transcript;
mod try_models;

use slash_command::SlashCommand;
use std::borrow::Cow;
use turnery_agent::SessionOptions;
use turnery_tools::{escape_invisible_line, mcp::McpPrompt};

/// All commands, in the order in which they are offered. Names contain no slash and no space (CMD-3).
pub(crate) static COMMANDS: [SlashCommand; 10] = [
    help::COMMAND,
    model::COMMAND,
    mode::COMMAND,
    compact::COMMAND,
    branch::COMMAND,
    go_on::COMMAND,
    rerun::COMMAND,
    try_models::COMMAND,
    cost::COMMAND,
    export::COMMAND,
];

/// Command as offered to the client. Hidden characters are made visible, since projects and MCP servers supply
/// the texts.
pub(crate) struct CommandInfo<'o> {
    pub(crate) name: &'o str,
    pub(crate) description: Cow<'o, str>,
    /// Hint for the arguments.
    pub(crate) hint: Option<Cow<'o, str>>,
}

/// Returns all commands: built-in ones, those of the user and the project, then prompts of MCP servers. The
/// first of several with the same name wins.
pub(crate) fn list_commands<'o>(
    options: &'o SessionOptions,
    mcp_prompts: &'o [McpPrompt],
) -> Vec<CommandInfo<'o>> {
    let ours = COMMANDS.iter().map(|it| (it.name, it.description, it.hint));
    let texts = options.custom_commands.iter();
    let texts = texts.map(|it| {
        (
            it.name.as_str(),
            it.description.as_str(),
            it.argument_hint.as_deref(),
        )
    });
    let of_servers = mcp_prompts.iter();
    let of_servers = of_servers.map(|it| {
        (
            it.command.as_str(),
            it.description.as_str(),
            it.argument_hint.as_deref(),
        )
    });
    let mut all: Vec<CommandInfo<'_>> = Vec::new();
    for (name, about, hint) in ours.chain(texts).chain(of_servers) {
        if all.iter().all(|known| known.name != name) {
            all.push(CommandInfo {
                name,
                description: escape_invisible_line(about),
                hint: hint.map(escape_invisible_line),
            });
        }
    }
    all
}
