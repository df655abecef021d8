//! `/help`: all commands, each on a line.

use super::{Command, Reply, all};
use turnery_agent::SessionOptions;
use turnery_tools::mcp::McpPrompt;

pub(super) const COMMAND: Command = Command {
    name: "help",
    about: "Show the commands",
    hint: None,
    needs_idle: false,
    run: |typed| {
        let session = typed.session;
        let prompts = session.servers().map(|servers| servers.prompts());
        let text = text(&session.options(), &prompts.unwrap_or_default());
        Box::pin(async { Ok(Reply::Said(text)) })
    },
};

fn text(options: &SessionOptions, of_servers: &[McpPrompt]) -> String {
    let lines = all(options, of_servers).into_iter().map(|it| {
        let hint = it.hint.map(|hint| format!(" {hint}")).unwrap_or_default();
        format!("- `/{}{hint}`: {}\n", it.name, it.about)
    });
    lines.collect()
}
