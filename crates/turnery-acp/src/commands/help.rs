//! `/help`: lists all commands.

use super::list_commands;
use crate::commands::slash_command::{CommandOutcome, SlashCommand};
use turnery_agent::SessionOptions;
use turnery_tools::mcp::McpPrompt;

pub(super) const COMMAND: SlashCommand = SlashCommand {
    name: "help",
    description: "Show the commands",
    hint: None,
    needs_idle: false,
    run: |call| {
        let session = call.session;
        let prompts = session.servers().map(|servers| servers.prompts());
        let text = render_help(&session.options(), &prompts.unwrap_or_default());
        Box::pin(async { Ok(CommandOutcome::Text(text)) })
    },
};

fn render_help(options: &SessionOptions, of_servers: &[McpPrompt]) -> String {
    let lines = list_commands(options, of_servers).into_iter().map(|it| {
        let hint = it.hint.map(|hint| format!(" {hint}")).unwrap_or_default();
        format!("- `/{}{hint}`: {}\n", it.name, it.description)
    });
    lines.collect()
}
