//! Commands: what a person types behind a slash. A table, one file per command.
//!
//! A command arrives as an ordinary prompt and is answered like one (CMD-2). A word that is not in the
//! table is nobody's command: the model gets it, since a person may write a path.

mod aside;
mod branch;
mod compact;
mod cost;
mod export;
mod help;
mod mode;
mod model;
mod rerun;
mod tries;

use crate::{
    connection::{Connection, RequestScope},
    fault::Fault,
    serve::send,
    stop,
    update::{self, UpdateWriter, Voice},
};
use agent_client_protocol_schema::v1::{
    AvailableCommand, AvailableCommandInput, AvailableCommandsUpdate, PromptResponse,
    SessionUpdate, StopReason, UnstructuredCommandInput,
};
pub(crate) use aside::{Aside, message_id};
use futures_util::future::BoxFuture;
use std::{borrow::Cow, sync::Arc};
use turnery_agent::{PromptError, PromptResult, Session, SessionOptions, Ticket};
use turnery_engine::Content;
use turnery_tools::{mcp::McpPrompt, visible_line};

/// A command.
pub(crate) struct Command {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    /// What may follow it.
    pub(crate) hint: Option<&'static str>,
    /// It runs a loop of its own, so it is refused while another one runs.
    pub(crate) needs_idle: bool,
    run: fn(Typed) -> BoxFuture<'static, Result<Reply, Fault>>,
}

/// All of them, in the order in which they are offered. Names without slash or space (CMD-3).
pub(crate) static TABLE: [Command; 9] = [
    help::COMMAND,
    model::COMMAND,
    mode::COMMAND,
    compact::COMMAND,
    branch::COMMAND,
    rerun::COMMAND,
    tries::COMMAND,
    cost::COMMAND,
    export::COMMAND,
];

/// A command as it was typed.
pub(crate) struct Typed {
    /// What follows the name, without the spaces around it.
    pub(crate) args: String,
    /// What came with it in the same prompt.
    pub(crate) rest: Vec<Content>,
    /// The whole prompt.
    pub(crate) whole: Vec<Content>,
    pub(crate) session: Session,
    pub(crate) connection: Arc<Connection>,
    pub(crate) scope: RequestScope,
}

/// What a command comes to.
pub(crate) enum Reply {
    /// Markdown for the person.
    Said(String),
    /// A loop of its own. When it has ended, this may be said of it.
    Runs(Ticket, fn(&PromptResult) -> Option<String>),
}

/// The command that a text begins with, and what follows its name.
pub(crate) fn split(text: &str) -> Option<(&'static Command, &str)> {
    let rest = text.strip_prefix('/')?;
    let (name, args) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    let command = TABLE.iter().find(|command| command.name == name)?;
    Some((command, args.trim()))
}

/// A command in a prompt.
pub(crate) struct Found {
    pub(crate) command: &'static Command,
    pub(crate) args: String,
    /// What came with it: all blocks but the command's own, and the texts before that one.
    pub(crate) rest: Vec<Content>,
}

/// The command that a prompt is, if it is one (CMD-2).
pub(crate) fn find(input: &[Content], is_text: &[bool]) -> Option<Found> {
    let ((command, args), rest) = among(input, is_text, split)?;
    Some(Found {
        command,
        args: args.to_owned(),
        rest,
    })
}

/// What `split` finds at the beginning of a text block, and what came with it. `is_text` says which blocks
/// are texts, as opposed to what was made of a file.
///
/// The last such block counts. Mentions may stand before it and between texts, as editors split them. Of
/// texts side by side only the last is looked at: one editor repeats what it sent before a cancel in
/// front, and nobody typed that now.
pub(crate) fn among<'i, T>(
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

/// The prompt that is meant by one that may hold a command of the person's or the project's: text for a
/// prompt, in the place of what was typed, and nothing more.
pub(crate) fn fill(
    input: Vec<Content>,
    is_text: &[bool],
    options: &SessionOptions,
) -> Vec<Content> {
    match among(&input, is_text, |text| options.filled(text)) {
        Some((text, rest)) => [Content::text(text)].into_iter().chain(rest).collect(),
        None => input,
    }
}

impl Command {
    /// Run it, as far as that can be done at once.
    pub(crate) async fn run(&self, typed: Typed) -> Result<Reply, Fault> {
        if self.needs_idle && typed.session.is_busy() {
            return Err(Fault::internal(
                "session_busy",
                "A prompt is running",
                format!(
                    "/{} works between prompts: wait, or cancel the prompt.",
                    self.name
                ),
                true,
            ));
        }
        (self.run)(typed).await
    }

    /// Run it, and answer the prompt that it came in.
    pub(crate) async fn answer(&self, typed: Typed) -> Result<PromptResponse, Fault> {
        let session = typed.session.clone();
        let connection = Arc::clone(&typed.connection);
        let aside = Aside::typed(&message_id(&session), typed.whole.clone());
        let known = connection.abilities().prompt_usage;
        let (text, answer) = match self.run(typed).await? {
            Reply::Said(text) => (Some(text), end_turn()),
            Reply::Runs(ticket, closing) => match ticket.result().await {
                Ok(result) => {
                    let (text, answer) = (closing(&result), stop::to_wire(&result, known));
                    match text.is_some() {
                        // What is explained in words is no error as well.
                        true => (text, answer.or_else(|_| end_turn())),
                        false => (text, answer),
                    }
                }
                Err(error @ (PromptError::Continue(_) | PromptError::Model(_))) => {
                    (Some(format!("{error}.")), end_turn())
                }
                Err(error) => return Err(stop::not_stored(&error)),
            },
        };
        if let Some(text) = text {
            let id = message_id(&session);
            aside.answered(&id, &text, &session).await;
            let mut writer = UpdateWriter::new(session.id().as_str());
            writer.text(Voice::Agent, &id, &text);
            send(connection.peer.out(), writer.lines).await;
        }
        answer
    }
}

fn end_turn() -> Result<PromptResponse, Fault> {
    Ok(PromptResponse::new(StopReason::EndTurn))
}

/// A command as it is offered. Its texts are made visible: projects and servers are others' work.
pub(crate) struct Offered<'o> {
    pub(crate) name: &'o str,
    pub(crate) about: Cow<'o, str>,
    /// What may follow.
    pub(crate) hint: Option<Cow<'o, str>>,
}

/// All commands. Of two with one name the first counts: ours, then those of the person and the project, then those of
/// MCP servers.
pub(crate) fn all<'o>(
    options: &'o SessionOptions,
    of_servers: &'o [McpPrompt],
) -> Vec<Offered<'o>> {
    let ours = TABLE.iter().map(|it| (it.name, it.about, it.hint));
    let texts = options.slashes.iter();
    let texts = texts.map(|it| (it.name.as_str(), it.about.as_str(), it.hint.as_deref()));
    let of_servers = of_servers.iter();
    let of_servers =
        of_servers.map(|it| (it.command.as_str(), it.about.as_str(), it.hint.as_deref()));
    let mut all: Vec<Offered<'_>> = Vec::new();
    for (name, about, hint) in ours.chain(texts).chain(of_servers) {
        if all.iter().all(|known| known.name != name) {
            all.push(Offered {
                name,
                about: visible_line(about),
                hint: hint.map(visible_line),
            });
        }
    }
    all
}

/// All commands, for the client to offer (CMD-1), those of MCP servers among them.
pub(crate) fn offer(session: &Session, of_servers: &[McpPrompt]) -> Vec<u8> {
    let input = |hint: Cow<'_, str>| {
        AvailableCommandInput::Unstructured(UnstructuredCommandInput::new(hint))
    };
    let options = session.options();
    let all = all(&options, of_servers).into_iter();
    let all = all.map(|it| AvailableCommand::new(it.name, it.about).input(it.hint.map(input)));
    let update = AvailableCommandsUpdate::new(all.collect());
    let id = session.id().as_str();
    update::line(id, &SessionUpdate::AvailableCommandsUpdate(update))
}
