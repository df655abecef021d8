//! `/help`: all commands, each on a line.

use super::{Command, Reply, TABLE};

pub(super) const COMMAND: Command = Command {
    name: "help",
    about: "Show the commands",
    hint: None,
    needs_idle: false,
    run: |_| Box::pin(async { Ok(Reply::Said(text())) }),
};

fn text() -> String {
    let lines = TABLE.iter().map(|command| {
        let hint = command.hint.map(|hint| format!(" {hint}"));
        let hint = hint.unwrap_or_default();
        format!("- `/{}{hint}`: {}\n", command.name, command.about)
    });
    lines.collect()
}
