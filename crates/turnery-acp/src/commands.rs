//! Slash commands: the command table, and how a prompt that contains a command is answered.
//!
//! A command arrives as an ordinary prompt and is answered like one (CMD-2). Unknown names are passed to the
//! model, since the text may be a path.

mod branch;
mod compact;
mod cost;
mod export;
mod help;
mod mode;
mod model;
mod rerun;
mod transcript;
mod try_models;

use crate::{
    server::{
        connection::{Connection, RequestScope},
        rpc_error::RpcError,
        serve::send_line,
    },
    transport::update_writer::{self, ChunkAuthor, UpdateWriter},
    view::stop_reason,
};
use agent_client_protocol_schema::v1::{
    AvailableCommand, AvailableCommandInput, AvailableCommandsUpdate, PromptResponse,
    SessionUpdate, StopReason, UnstructuredCommandInput,
};
use futures_util::future::BoxFuture;
use std::{borrow::Cow, sync::Arc};
pub(crate) use transcript::{CommandTranscript, new_message_id};
use turnery_agent::{PromptError, PromptHandle, PromptResult, Session, SessionOptions};
use turnery_engine::Content;
use turnery_tools::{mcp::McpPrompt, visible_line};

/// Slash command.
pub(crate) struct SlashCommand {
    pub(crate) name: &'static str,
    pub(crate) description: &'static str,
    /// Hint for the arguments.
    pub(crate) hint: Option<&'static str>,
    /// True if the command runs a prompt of its own, so it is rejected while a prompt is running.
    pub(crate) needs_idle: bool,
    run: fn(CommandCall) -> BoxFuture<'static, Result<CommandOutcome, RpcError>>,
}

/// All commands, in the order in which they are offered. Names contain no slash and no space (CMD-3).
pub(crate) static COMMANDS: [SlashCommand; 9] = [
    help::COMMAND,
    model::COMMAND,
    mode::COMMAND,
    compact::COMMAND,
    branch::COMMAND,
    rerun::COMMAND,
    try_models::COMMAND,
    cost::COMMAND,
    export::COMMAND,
];

/// Invocation of a command.
pub(crate) struct CommandCall {
    /// Text after the name, trimmed.
    pub(crate) args: String,
    /// Other content of the same prompt.
    pub(crate) attachments: Vec<Content>,
    /// Content of the whole prompt.
    pub(crate) prompt: Vec<Content>,
    pub(crate) session: Session,
    pub(crate) connection: Arc<Connection>,
    pub(crate) scope: RequestScope,
}

/// Outcome of a command.
pub(crate) enum CommandOutcome {
    /// Markdown for the user.
    Text(String),
    /// Prompt started by the command, and a function that returns text to show after it has ended.
    Prompt(PromptHandle, fn(&PromptResult) -> Option<String>),
}

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
pub(crate) fn find_command(input: &[Content], is_text: &[bool]) -> Option<CommandMatch> {
    let ((command, args), rest) = find_in_blocks(input, is_text, parse_command)?;
    Some(CommandMatch {
        command,
        args: args.to_owned(),
        attachments: rest,
    })
}

/// Returns what `split` recognises at the start of a text block, and the blocks that came with it. `is_text`
/// tells text blocks from text made of other blocks, such as files.
///
/// The last match counts. Resource blocks may stand before it and between texts, as editors split them. Of
/// adjacent text blocks only the last is searched: one editor prepends the text of the previous, cancelled
/// prompt.
pub(crate) fn find_in_blocks<'i, T>(
    input: &'i [Content],
    is_text: &[bool],
    split: impl Fn(&'i str) -> Option<T>,
) -> Option<(T, Vec<Content>)> {
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
    input: Vec<Content>,
    is_text: &[bool],
    options: &SessionOptions,
) -> Vec<Content> {
    match find_in_blocks(&input, is_text, |text| options.expand_command(text)) {
        Some((text, rest)) => [Content::text(text)].into_iter().chain(rest).collect(),
        None => input,
    }
}

impl SlashCommand {
    /// Runs the command, or starts its prompt.
    pub(crate) async fn run(&self, call: CommandCall) -> Result<CommandOutcome, RpcError> {
        if self.needs_idle && call.session.is_busy() {
            return Err(RpcError::internal(
                "session_busy",
                "A prompt is running",
                format!(
                    "/{} needs an idle session: wait for the prompt to end, or cancel it.",
                    self.name
                ),
                true,
            ));
        }
        (self.run)(call).await
    }

    /// Runs the command and returns the response to the prompt it came in.
    pub(crate) async fn run_as_prompt(
        &self,
        call: CommandCall,
    ) -> Result<PromptResponse, RpcError> {
        let session = call.session.clone();
        let connection = Arc::clone(&call.connection);
        let transcript = CommandTranscript::new(&new_message_id(&session), call.prompt.clone());
        let known = connection.client_features().prompt_usage;
        let (text, answer) = match self.run(call).await? {
            CommandOutcome::Text(text) => (Some(text), end_turn_response()),
            CommandOutcome::Prompt(ticket, closing) => match ticket.result().await {
                Ok(result) => {
                    let (text, answer) = (
                        closing(&result),
                        stop_reason::to_prompt_response(&result, known),
                    );
                    match text.is_some() {
                        // The text already explains the error.
                        true => (text, answer.or_else(|_| end_turn_response())),
                        false => (text, answer),
                    }
                }
                Err(error @ (PromptError::Continue(_) | PromptError::Model(_))) => {
                    (Some(format!("{error}.")), end_turn_response())
                }
                Err(error) => return Err(stop_reason::prompt_error(&error)),
            },
        };
        if let Some(text) = text {
            let id = new_message_id(&session);
            transcript.record_answer(&id, &text, &session).await;
            let mut writer = UpdateWriter::new(session.id().as_str());
            writer.write_text(ChunkAuthor::Agent, &id, &text);
            send_line(connection.peer.out(), writer.lines).await;
        }
        answer
    }
}

fn end_turn_response() -> Result<PromptResponse, RpcError> {
    Ok(PromptResponse::new(StopReason::EndTurn))
}

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
    let texts = options.slashes.iter();
    let texts = texts.map(|it| (it.name.as_str(), it.about.as_str(), it.hint.as_deref()));
    let of_servers = mcp_prompts.iter();
    let of_servers =
        of_servers.map(|it| (it.command.as_str(), it.about.as_str(), it.hint.as_deref()));
    let mut all: Vec<CommandInfo<'_>> = Vec::new();
    for (name, about, hint) in ours.chain(texts).chain(of_servers) {
        if all.iter().all(|known| known.name != name) {
            all.push(CommandInfo {
                name,
                description: visible_line(about),
                hint: hint.map(visible_line),
            });
        }
    }
    all
}

/// Encodes the update that lists all commands, including prompts of MCP servers (CMD-1).
pub(crate) fn encode_available_commands(session: &Session, mcp_prompts: &[McpPrompt]) -> Vec<u8> {
    let input = |hint: Cow<'_, str>| {
        AvailableCommandInput::Unstructured(UnstructuredCommandInput::new(hint))
    };
    let options = session.options();
    let all = list_commands(&options, mcp_prompts).into_iter();
    let all =
        all.map(|it| AvailableCommand::new(it.name, it.description).input(it.hint.map(input)));
    let update = AvailableCommandsUpdate::new(all.collect());
    let id = session.id().as_str();
    update_writer::update_line(id, &SessionUpdate::AvailableCommandsUpdate(update))
}
