//! Args: the command line.

use crate::{
    config::{self, Choice},
    login::{LoginArgs, LogoutArgs},
    run::tries::TryArgs,
};
use clap::{
    Args as Group, Parser, Subcommand, ValueEnum,
    error::{ContextKind, ContextValue, ErrorKind},
};
use std::path::PathBuf;
use turnery_models::{ModelName, Thinking};
use turnery_tools::{Mode, Rule, SandboxMode};

/// A prompt to begin with, which the offline model answers too.
pub(crate) const FIRST_PROMPT: &str = "what changed?";

/// For somebody who typed `turnery` and nothing else.
pub(crate) fn welcome() -> String {
    format!(
        "\
turnery is a coding agent. It works in the folder that you are in.

  turnery run \"{FIRST_PROMPT}\"             one prompt, from here; this one needs no model
  turnery login                           give it the key of a provider such as Anthropic or OpenAI
  turnery models                          which models can be used, and what the others need
  turnery acp                             what an editor starts (Agent Client Protocol)
  turnery --help                          everything else
"
    )
}

const EXAMPLES: &str = "\
Examples:
  turnery run \"why does the build fail?\"
  git diff | turnery run \"review this\"
  turnery run --mode edit --allow 'shell(cargo test:*)' \"fix the failing test\"
  turnery run --continue \"now add a test for it\"
  turnery acp                  speak ACP on stdin and stdout, for an editor

Configuration is read from config.toml in turnery's folder, then from .turnery/config.toml of the \
project (which may only narrow), then from TURNERY_MODEL, TURNERY_MODE, TURNERY_THINKING and \
TURNERY_MAX_TURNS, then from flags. TURNERY_HOME moves turnery's folder; \
TURNERY_LOCAL_SERVERS=off looks for no model server on this machine.";

/// A coding agent for your editor and your shell.
#[derive(Debug, Parser)]
#[command(name = "turnery", version, after_help = EXAMPLES, subcommand_value_name = "COMMAND")]
pub(crate) struct Args {
    /// What to do; without one, an editor is expected on stdin.
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
    /// The same as `turnery acp`.
    #[arg(long, hide = true)]
    pub(crate) acp: bool,
    /// Read this configuration file instead of your config.toml.
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Write more to stderr about what happens; twice for everything.
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,
    #[command(flatten)]
    pub(crate) choice: Choices,
}

/// What holds for every command.
#[derive(Clone, Debug, Default)]
pub(crate) struct Global {
    /// The configuration file to read.
    pub(crate) config: Option<PathBuf>,
}

impl Args {
    /// Reads the command line. Ends the process if it makes no sense, or asks for help.
    pub(crate) fn read() -> Self {
        Self::try_parse().unwrap_or_else(|error| with_quotes(error).exit())
    }

    pub(crate) fn global(&self) -> Global {
        Global {
            config: self.config.clone(),
        }
    }
}

/// Of a word too many, the error says how to write a prompt of several words.
fn with_quotes(mut error: clap::Error) -> clap::Error {
    let is_word = matches!(
        error.get(ContextKind::InvalidArg),
        Some(ContextValue::String(word)) if !word.starts_with('-')
    );
    let takes_prompt = matches!(
        error.get(ContextKind::Usage),
        Some(ContextValue::StyledStr(usage)) if usage.to_string().contains("PROMPT")
    );
    if error.kind() == ErrorKind::UnknownArgument && is_word && takes_prompt {
        let tip = "put a prompt of several words in quotes".into();
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip]));
    }
    error
}

/// What can be done.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Serve an editor: Agent Client Protocol on stdin and stdout.
    Acp(AcpArgs),
    /// Carry out one prompt and print the answer.
    Run(Box<RunArgs>),
    /// Look at stored sessions, go on with one, or delete them.
    Sessions(SessionsArgs),
    /// Show which models can be used now, and what the others need.
    Models(ModelsArgs),
    /// Give turnery the key of a provider, and check it.
    Login(LoginArgs),
    /// Forget the key of a provider, or all keys.
    Logout(LogoutArgs),
    /// Show the MCP servers of your configuration, and whether they work.
    Mcp(McpArgs),
    /// Use a tool directly, without a model.
    Tool(ToolArgs),
    /// Print a script that completes turnery's commands in your shell.
    Completions(CompletionsArgs),
    /// Print the JSON Schema of config.toml.
    #[command(hide = true)]
    Schema,
}

/// Settings that `acp` and `run` have in common.
#[derive(Clone, Debug, Default, Group)]
pub(crate) struct Choices {
    /// The model to use, for example anthropic/claude-sonnet-4-5 or offline.
    #[arg(long, value_name = "PROVIDER/MODEL", value_parser = config::choice::model)]
    model: Option<ModelName>,
    /// How freely to act: ask, edit, plan or auto.
    #[arg(long, value_name = "MODE", value_parser = config::choice::mode)]
    mode: Option<Mode>,
    /// How far to confine commands: off, workspace or read-only. Set, it also holds for editors' terminals.
    #[arg(long, value_name = "MODE", value_parser = config::choice::sandbox)]
    sandbox: Option<SandboxMode>,
    /// How much the model is to think: default, off, low, medium or high.
    #[arg(long, value_name = "LEVEL", value_parser = config::choice::thinking)]
    thinking: Option<Thinking>,
    /// Allow what matches this rule without asking, for example 'shell(cargo test:*)'. Repeatable.
    #[arg(long, value_name = "RULE", value_parser = config::rules::rule)]
    allow: Vec<Rule>,
    /// Never allow what matches this rule, for example 'edit(secrets/**)'. Repeatable; wins over --allow.
    #[arg(long, value_name = "RULE", value_parser = config::rules::rule)]
    deny: Vec<Rule>,
    /// Stop a prompt after so many turns with the model, those of sub-agents, of tried models and of
    /// their judge among them. Unless forced_reply is off, one answer without tools comes on top.
    #[arg(long, value_name = "N", value_parser = config::choice::count::<u32>, allow_negative_numbers = true)]
    max_turns: Option<u32>,
    /// Stop a prompt once it has taken so many tokens, in and out, over all models that work for it. Answers
    /// under way are not cut off: the sum may exceed this by those.
    #[arg(long, value_name = "N", value_parser = config::choice::count::<u64>, allow_negative_numbers = true)]
    max_tokens: Option<u64>,
    /// Stop a prompt after so many seconds. Waiting for your answer to a question does not count.
    #[arg(long, value_name = "N", value_parser = config::choice::count::<u64>, allow_negative_numbers = true)]
    max_seconds: Option<u64>,
    /// Stop a prompt once it has cost so many US dollars, over all models that work for it. Their prices must
    /// be in config.toml. Answers under way are not cut off: the sum may exceed this by those.
    #[arg(long, value_name = "MONEY", value_parser = config::choice::cost, allow_negative_numbers = true)]
    max_cost: Option<u64>,
    /// Run none of the hooks of config.toml.
    #[arg(long)]
    no_hooks: bool,
}

impl Choices {
    /// These, and where they say nothing those that stood before the command.
    pub(crate) fn or(mut self, before: Self) -> Self {
        self.allow.extend(before.allow);
        self.deny.extend(before.deny);
        Self {
            model: self.model.or(before.model),
            mode: self.mode.or(before.mode),
            sandbox: self.sandbox.or(before.sandbox),
            thinking: self.thinking.or(before.thinking),
            max_turns: self.max_turns.or(before.max_turns),
            max_tokens: self.max_tokens.or(before.max_tokens),
            max_seconds: self.max_seconds.or(before.max_seconds),
            max_cost: self.max_cost.or(before.max_cost),
            no_hooks: self.no_hooks || before.no_hooks,
            allow: self.allow,
            deny: self.deny,
        }
    }
}

impl From<Choices> for Choice {
    fn from(flags: Choices) -> Self {
        Self {
            model: flags.model,
            mode: flags.mode,
            sandbox: flags.sandbox,
            thinking: flags.thinking,
            allow: flags.allow,
            deny: flags.deny,
            turns: flags.max_turns,
            tokens: flags.max_tokens,
            seconds: flags.max_seconds,
            cost: flags.max_cost,
            hooks: flags.no_hooks.then(Vec::new),
            ..Self::default()
        }
    }
}

/// `turnery acp`.
#[derive(Debug, Group)]
#[command(after_help = "\
Point your editor at this command; it needs no arguments. Everything that is not protocol goes to stderr.

Examples:
  turnery acp
  turnery acp --model anthropic/claude-sonnet-4-5 --mode edit
  turnery acp --drain < requests.jsonl > answers.jsonl")]
pub(crate) struct AcpArgs {
    /// When the input ends, let the prompts that were accepted come to their end instead of cancelling them.
    #[arg(long)]
    pub(crate) drain: bool,
    /// Experimental: speak the draft of ACP version 2 with editors that ask for it. All others get version 1.
    #[arg(long)]
    pub(crate) acp_v2: bool,
    #[command(flatten)]
    pub(crate) choice: Choices,
    /// What an editor puts behind its own arguments to log in at a terminal (AUTH-9).
    #[command(subcommand)]
    pub(crate) instead: Option<Instead>,
}

/// What is done instead of serving an editor.
#[derive(Debug, Subcommand)]
pub(crate) enum Instead {
    /// The same as `turnery login`.
    #[command(hide = true)]
    Login(LoginArgs),
}

impl AcpArgs {
    /// The command without flags of its own.
    pub(crate) fn with(choice: Choices) -> Self {
        Self {
            drain: false,
            acp_v2: false,
            choice,
            instead: None,
        }
    }
}

/// `turnery run`.
#[derive(Debug, Group)]
#[command(after_help = "\
The answer goes to stdout; progress and questions go to stderr. Without a terminal nobody can be \
asked: what the mode and the rules do not allow is then denied, and stderr says which --allow would \
allow it. A stdin that is open but silent for 3 seconds is left out when there is no terminal, and \
waited for when there is one or when stdin is the prompt. Ctrl-C asks the agent to stop, a second one forces it.

Exit codes: 0 done, 1 error, 2 usage, 3 refused by the model or a hook, 4 a limit was reached, 75 told to leave while it was stuck, 130 cancelled.

Examples:
  turnery run \"explain src/main.rs in five lines\"
  git diff | turnery run \"write a commit message for this\"
  turnery run --mode edit --allow 'shell(cargo:*)' \"make clippy happy\"
  turnery run --continue \"and now the docs\"
  turnery run --try openai/gpt-5,offline --pick judge \"what is wrong here?\"
  turnery run --image screen.png \"what is wrong with this page?\"
  turnery run --format json \"how many tests are there?\" | jq -r .text")]
pub(crate) struct RunArgs {
    /// What you want. Text piped to stdin is added after it; without it, or as `-`, stdin is the prompt.
    #[arg(value_name = "PROMPT")]
    pub(crate) prompt: Option<String>,
    /// Work in this folder instead of the current one.
    #[arg(long, value_name = "FOLDER")]
    pub(crate) cwd: Option<PathBuf>,
    /// Go on with this session.
    #[arg(long, value_name = "ID", conflicts_with = "continue_newest")]
    pub(crate) session: Option<String>,
    /// Go on with the newest session of this folder.
    #[arg(long = "continue")]
    pub(crate) continue_newest: bool,
    /// Show the model this picture (PNG, JPEG, GIF or WebP). Repeatable.
    #[arg(long, value_name = "FILE")]
    pub(crate) image: Vec<PathBuf>,
    /// Let the model hear this recording (WAV or MP3). Repeatable.
    #[arg(long, value_name = "FILE")]
    pub(crate) audio: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) tries: TryArgs,
    #[command(flatten)]
    pub(crate) how: How,
}

/// How a prompt is carried out and shown.
#[derive(Clone, Debug, Default, Group)]
pub(crate) struct How {
    /// How to print: text for people, one JSON object at the end, or one JSON object a line as it goes.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
    #[command(flatten)]
    pub(crate) choice: Choices,
}

/// How `run` prints.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// The model's text.
    #[default]
    Text,
    /// One JSON object at the end.
    Json,
    /// One JSON object a line: every event, then the result.
    StreamJson,
}

/// `turnery sessions`.
#[derive(Debug, Group)]
#[command(after_help = "\
Examples:
  turnery sessions list --all
  turnery sessions show ID | less
  turnery sessions branch ID 2 \"try it without the cache\"
  turnery sessions rerun ID --model anthropic/claude-opus-4-8
  turnery sessions list --json | jq -r '.[].id'
  turnery sessions check                   look for damage
  turnery sessions repair ID               mend it, with a copy kept")]
pub(crate) struct SessionsArgs {
    #[command(subcommand)]
    pub(crate) what: Sessions,
}

/// What can be done with sessions.
#[derive(Debug, Subcommand)]
pub(crate) enum Sessions {
    #[command(flatten)]
    Kept(Kept),
    #[command(flatten)]
    Again(Again),
}

/// What can be done with a session that has run already, on the same engine as `run`.
#[derive(Debug, Subcommand)]
pub(crate) enum Again {
    /// Let the model go on where it stopped, with nothing new said to it.
    Continue {
        /// The session.
        id: String,
        #[command(flatten)]
        how: Box<How>,
    },
    /// Run a loop again with the same prompt; it takes the place of the old one and of what came after.
    Rerun {
        /// The session.
        id: String,
        /// The loop, by its number in `sessions show` or its id; the last one unless given.
        #[arg(value_name = "LOOP")]
        which: Option<String>,
        #[command(flatten)]
        how: Box<How>,
    },
    /// Go on from the end of an earlier loop with another prompt; what came after it is left aside.
    Branch {
        /// The session.
        id: String,
        /// The loop, by its number in `sessions show` or its id.
        #[arg(value_name = "LOOP")]
        from: String,
        /// What you want. Text piped to stdin is added after it; without it, or as `-`, stdin is the prompt.
        #[arg(value_name = "PROMPT")]
        prompt: Option<String>,
        #[command(flatten)]
        how: Box<How>,
    },
    /// Summarise the older messages of a session.
    Compact {
        /// The session.
        id: String,
        #[command(flatten)]
        how: Box<How>,
    },
}

/// What can be done with sessions as they are kept.
#[derive(Debug, Subcommand)]
pub(crate) enum Kept {
    /// List the sessions of this folder, the newest first.
    List {
        /// Those of all folders, and those that were archived.
        #[arg(long)]
        all: bool,
        /// As a JSON array.
        #[arg(long)]
        json: bool,
    },
    /// Print the loops of a session, and what was said and done in it.
    Show {
        /// The session.
        id: String,
        /// As a JSON array of its records.
        #[arg(long)]
        json: bool,
    },
    /// Write a whole session to a file, for keeping or for another machine.
    Export {
        /// The session.
        id: String,
        /// The file, which must not be there yet; standard output unless given.
        file: Option<PathBuf>,
    },
    /// Make a session from an exported file.
    Import {
        /// The file; `-` for standard input.
        file: PathBuf,
        /// Under a new id, and so beside the session that it was made from.
        #[arg(long)]
        new: bool,
    },
    /// Print what a session has spent, for what and with which model.
    Usage {
        /// The session.
        id: String,
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
    /// Delete sessions for good, with the sessions of their sub-agents.
    #[command(after_help = "\
A session in which a prompt is running is not deleted: stop the prompt first, or use --force.

Copies of the database that `repair` has made stay, with all that was stored then. They are named here; \
delete them by hand.

Exit codes: 0 all were deleted, 1 one of them was not.")]
    Delete {
        /// The sessions.
        #[arg(required = true)]
        id: Vec<String>,
        /// Delete a session even while a prompt is running in it. The prompt fails, and its answer is lost.
        #[arg(long)]
        force: bool,
    },
    /// Look for damage in stored sessions. Changes nothing.
    #[command(after_help = "\
Checks the checksum of every loop, note and journal entry, and the chain of loops that leads to the last \
one. Without an ID it also checks the pages and indexes of the database, and rows of no session.

Exit codes: 0 no damage, 1 damage was found or the sessions cannot be read.")]
    Check {
        /// The session; all sessions unless given.
        id: Option<String>,
        /// As a JSON array with one object for each problem.
        #[arg(long)]
        json: bool,
        /// Mend what is damaged, as `repair` does.
        #[arg(long)]
        repair: bool,
    },
    /// Mend damaged sessions. Deletes nothing, and makes a copy of the database first.
    #[command(after_help = "\
A loop that cannot be read is set aside: it stays in the database, and the conversation goes on without \
it. A loop that has lost its predecessor follows the last whole loop before it. What is overwritten is \
kept in the table `repairs`, and a copy of the whole database is made beside it first. Delete that copy \
when you are content with the result: it holds everything that the sessions hold.

Exit codes: 0 no damage is left, 1 some is, or nothing could be done.")]
    Repair {
        /// The sessions.
        #[arg(required = true)]
        id: Vec<String>,
        /// As a JSON array with one object for each session.
        #[arg(long)]
        json: bool,
    },
}

/// `turnery models`.
#[derive(Debug, Group)]
pub(crate) struct ModelsArgs {
    /// As a JSON array.
    #[arg(long)]
    pub(crate) json: bool,
}

/// `turnery mcp`.
#[derive(Debug, Group)]
pub(crate) struct McpArgs {
    #[command(subcommand)]
    pub(crate) what: Mcp,
}

/// What can be done with MCP servers.
#[derive(Debug, Subcommand)]
pub(crate) enum Mcp {
    /// Start each server of config.toml, list its tools, and end it again.
    List {
        /// As a JSON array.
        #[arg(long)]
        json: bool,
    },
}

/// `turnery tool`.
#[derive(Debug, Group)]
#[command(after_help = "\
A tool called this way runs at once: you asked for it, so no rule is looked at.

Examples:
  turnery tool list
  turnery tool call read_file '{\"path\": \"Cargo.toml\"}'
  echo '{\"command\": \"ls\"}' | turnery tool call shell -")]
pub(crate) struct ToolArgs {
    #[command(subcommand)]
    pub(crate) what: Tool,
}

/// What can be done with tools.
#[derive(Debug, Subcommand)]
pub(crate) enum Tool {
    /// List the tools.
    List {
        /// As a JSON array, with the schema of the arguments.
        #[arg(long)]
        json: bool,
    },
    /// Call a tool and print what it gives back.
    Call {
        /// Its name.
        name: String,
        /// Its arguments as a JSON object; `-` reads them from stdin.
        #[arg(value_name = "JSON")]
        args: String,
        /// Work in this folder instead of the current one.
        #[arg(long, value_name = "FOLDER")]
        cwd: Option<PathBuf>,
        /// Print all that came of it as JSON.
        #[arg(long)]
        json: bool,
    },
}

/// `turnery completions`.
#[derive(Debug, Group)]
#[command(after_help = "\
Examples:
  turnery completions bash > ~/.local/share/bash-completion/completions/turnery
  turnery completions zsh > ~/.zfunc/_turnery
  turnery completions fish > ~/.config/fish/completions/turnery.fish")]
pub(crate) struct CompletionsArgs {
    /// The shell.
    pub(crate) shell: clap_complete::Shell,
}

#[cfg(test)]
mod tests;
