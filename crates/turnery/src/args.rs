//! Defines the command line.

mod deferred;
mod sessions;
mod store;

pub(crate) use deferred::{Deferred, whole_command};
pub(crate) use sessions::{
    ExportFormat, PruneArgs, RunAgainCommand, SessionsArgs, SessionsCommand, StoreCommand,
};
pub(crate) use store::{StoreArgs, StoreSubcommand};

use crate::{
    config::{
        self, Config, LimitConfig,
        store_location::{self, StoreSetting},
        values,
    },
    login::login_args::{LoginArgs, LogoutArgs},
    run::try_models::TryArgs,
};
use clap::{
    Args as Group, Parser, Subcommand, ValueEnum,
    error::{ContextKind, ContextValue, ErrorKind},
};
use std::{
    num::{NonZeroU32, NonZeroU64},
    path::PathBuf,
};
use turnery_agent::Protocol;
use turnery_models::{ModelName, Thinking};
use turnery_tools::{Mode, Rule, SandboxMode};

/// Prompt for a first try; the offline model can answer it.
pub(crate) const FIRST_PROMPT: &str = "what changed?";

/// Returns the introduction that a bare `turnery` prints.
pub(crate) fn welcome_text() -> String {
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
project (which may only narrow), then from TURNERY_MODEL, TURNERY_MODE, TURNERY_THINKING, \
TURNERY_MAX_TURNS and TURNERY_STORE, then from flags. TURNERY_HOME moves turnery's folder; \
TURNERY_LOCAL_SERVERS=off asks for lists of models only at addresses that you have configured.";

/// A coding agent for your editor and your shell.
#[derive(Debug, Parser)]
#[command(name = "turnery", version, after_help = EXAMPLES, subcommand_value_name = "COMMAND")]
pub(crate) struct Args {
    /// Command to run; without one, turnery serves an editor on stdin.
    #[command(subcommand)]
    pub(crate) command: Option<CliCommand>,
    /// Same as `turnery acp`.
    #[arg(long, hide = true)]
    pub(crate) acp: bool,
    /// Read this configuration file instead of your config.toml.
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Store sessions here: a path, sqlite:PATH, memory:, or postgres://USER@HOST:PORT/DATABASE?schema=NAME. Give a
    /// password in TURNERY_STORE, PGPASSWORD or a password file, since other users can see command lines.
    #[arg(long, global = true, value_name = "STORE", value_parser = store_location::unchecked_store)]
    store: Option<StoreSetting>,
    /// Log more to stderr; give it twice to log what libraries do, too.
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,
    #[command(flatten)]
    pub(crate) choice: SettingsFlags,
}

/// Options of every command.
#[derive(Clone, Debug, Default)]
pub(crate) struct GlobalOptions {
    /// Configuration file to read.
    pub(crate) config: Option<PathBuf>,
    /// Where sessions are stored.
    pub(crate) store: Option<StoreSetting>,
}

impl Args {
    /// Parses the command line. Exits with a message if it is invalid or asks for help.
    pub(crate) fn read() -> Self {
        Self::try_parse().unwrap_or_else(|error| suggest_quotes(error).exit())
    }

    pub(crate) fn global(&self) -> GlobalOptions {
        GlobalOptions {
            config: self.config.clone(),
            store: self.store.clone(),
        }
    }
}

/// Adds a tip to the error for an unexpected word: prompts of several words need quotes.
fn suggest_quotes(mut error: clap::Error) -> clap::Error {
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

/// Subcommands of `turnery`.
#[derive(Debug, Subcommand)]
pub(crate) enum CliCommand {
    /// Serve an editor: Agent Client Protocol on stdin and stdout.
    Acp(Deferred<AcpArgs>),
    /// Run one prompt and print the answer.
    Run(Deferred<Box<RunArgs>>),
    /// Show, continue or delete stored sessions.
    Sessions(Deferred<SessionsArgs>),
    /// Describe, check, copy or shrink the store of the sessions.
    Store(Deferred<StoreArgs>),
    /// Show which models can be used now, and what the others need.
    Models(Deferred<ModelsArgs>),
    /// Store the key of a provider, and check it.
    Login(Deferred<LoginArgs>),
    /// Delete the stored key of a provider, or all keys.
    Logout(Deferred<LogoutArgs>),
    /// List the configured MCP servers, and check that they work.
    Mcp(Deferred<McpArgs>),
    /// Call a tool directly, without a model.
    Tool(Deferred<ToolArgs>),
    /// Print a completion script for your shell.
    Completions(Deferred<CompletionsArgs>),
    /// Print the JSON Schema of config.toml.
    #[command(hide = true)]
    Schema,
}

/// Options shared by `acp` and `run`.
#[derive(Clone, Debug, Default, Group)]
pub(crate) struct SettingsFlags {
    /// The model to use, for example anthropic/claude-sonnet-4-5 or offline.
    #[arg(long, value_name = "PROVIDER/MODEL", value_parser = values::model)]
    model: Option<ModelName>,
    /// How freely to act: ask, edit, plan or auto.
    #[arg(long, value_name = "MODE", value_parser = values::mode)]
    mode: Option<Mode>,
    /// How to sandbox commands: off, workspace or read-only. If set, also applies to editors' terminals.
    #[arg(long, value_name = "MODE", value_parser = values::sandbox)]
    sandbox: Option<SandboxMode>,
    /// How much the model thinks: default, off, low, medium or high.
    #[arg(long, value_name = "LEVEL", value_parser = values::thinking)]
    thinking: Option<Thinking>,
    /// How the model acts: by tools, or by code, one block of Python a turn that calls the tools.
    #[arg(long, value_name = "PROTOCOL", value_parser = values::protocol)]
    protocol: Option<Protocol>,
    /// Allow what matches this rule without asking, for example 'shell(cargo test:*)'. Repeatable.
    #[arg(long, value_name = "RULE", value_parser = config::rules::parse_rule)]
    allow: Vec<Rule>,
    /// Never allow what matches this rule, for example 'edit(secrets/**)'. Repeatable; wins over --allow.
    #[arg(long, value_name = "RULE", value_parser = config::rules::parse_rule)]
    deny: Vec<Rule>,
    /// Stop a prompt after N turns with the model, including those of sub-agents, tried models and their judge.
    /// Unless forced_reply is off, one final answer without tools follows.
    #[arg(long, value_name = "N", value_parser = values::parse_positive::<NonZeroU32>, allow_negative_numbers = true)]
    max_turns: Option<NonZeroU32>,
    /// Stop a prompt once it has used N tokens, input and output, over all models that work for it. Responses in
    /// progress are not cut off and may exceed the limit.
    #[arg(long, value_name = "N", value_parser = values::parse_positive::<NonZeroU64>, allow_negative_numbers = true)]
    max_tokens: Option<NonZeroU64>,
    /// Stop a prompt after N seconds. Time spent waiting for your answers does not count.
    #[arg(long, value_name = "N", value_parser = values::parse_positive::<NonZeroU64>, allow_negative_numbers = true)]
    max_seconds: Option<NonZeroU64>,
    /// Stop a prompt once it has cost this many US dollars, over all models that work for it. A model
    /// whose price is not known (`turnery models` shows it) needs one in config.toml. Responses in progress are not cut off and may exceed the limit.
    #[arg(long, value_name = "MONEY", value_parser = values::cost, allow_negative_numbers = true)]
    max_cost: Option<values::Money>,
    /// Do not run the hooks of config.toml.
    #[arg(long)]
    no_hooks: bool,
}

impl From<SettingsFlags> for Config {
    fn from(flags: SettingsFlags) -> Self {
        Self {
            model: flags.model,
            mode: flags.mode,
            sandbox: flags.sandbox,
            thinking: flags.thinking,
            protocol: flags.protocol,
            allow: flags.allow,
            deny: flags.deny,
            limits: LimitConfig {
                turns: flags.max_turns,
                tokens: flags.max_tokens,
                seconds: flags.max_seconds,
                cost: flags.max_cost,
                ..LimitConfig::default()
            },
            hooks: flags.no_hooks.then(Vec::new),
            ..Self::default()
        }
    }
}

/// `turnery acp`.
#[derive(Debug, Default, Group)]
#[command(after_help = "\
Point your editor at this command; it needs no arguments. Everything that is not protocol goes to stderr.

Examples:
  turnery acp
  turnery acp --model anthropic/claude-sonnet-4-5 --mode edit
  turnery acp --drain < requests.jsonl > answers.jsonl")]
pub(crate) struct AcpArgs {
    /// When the input ends, finish accepted prompts instead of cancelling them.
    #[arg(long)]
    pub(crate) drain: bool,
    /// Keep sessions in memory only: nothing of them is written to disk. The editor can list and load those of this
    /// process, and they are gone when it ends.
    #[arg(long)]
    pub(crate) no_store: bool,
    /// Experimental: speak the draft of ACP version 2 with editors that ask for it. All others get version 1.
    #[arg(long)]
    pub(crate) acp_v2: bool,
    #[command(flatten)]
    pub(crate) choice: SettingsFlags,
    /// Subcommand that an editor appends to its arguments to log in at a terminal (AUTH-9).
    #[command(subcommand)]
    pub(crate) subcommand: Option<AcpCommand>,
}

/// Commands that run instead of serving an editor.
#[derive(Debug, Subcommand)]
pub(crate) enum AcpCommand {
    /// Same as `turnery login`.
    #[command(hide = true)]
    Login(Deferred<LoginArgs>),
}

/// `turnery run`.
#[derive(Debug, Group)]
#[command(after_help = "\
The answer goes to stdout; progress and questions go to stderr. Without a terminal nobody can be \
asked: what the mode and the rules do not allow is then denied, and stderr says which --allow would \
allow it. A stdin that is open but silent for 3 seconds is left out when there is no terminal, and \
waited for when there is one or when stdin is the prompt. Ctrl-C asks the agent to stop, a second one forces it.

Exit codes: 0 done, 1 error, 2 usage, 3 refused by the model or a hook, 4 a limit was reached, 75 stuck during shutdown, 130 cancelled.

Examples:
  turnery run \"explain src/main.rs in five lines\"
  git diff | turnery run \"write a commit message for this\"
  turnery run --mode edit --allow 'shell(cargo:*)' \"make clippy happy\"
  turnery run --continue \"and now the docs\"
  turnery run --try openai/gpt-5,offline --pick judge \"what is wrong here?\"
  turnery run --image screen.png \"what is wrong with this page?\"
  turnery run --output-schema risk.json \"how risky is this change?\" | jq -r .rating
  turnery run --format json \"how many tests are there?\" | jq -r .text")]
pub(crate) struct RunArgs {
    /// The prompt. Text piped to stdin is appended; without this argument, or with `-`, stdin is the whole prompt. With
    /// `--continue` or `--session` it may be left out: then the model goes on where the last prompt stopped.
    #[arg(value_name = "PROMPT")]
    pub(crate) prompt: Option<String>,
    /// Work in this folder instead of the current one.
    #[arg(long, value_name = "FOLDER")]
    pub(crate) cwd: Option<PathBuf>,
    /// Continue this session: its id or the start of it, `latest`, or its number in `turnery sessions list`.
    #[arg(long, value_name = "SESSION", conflicts_with = "continue_newest")]
    pub(crate) session: Option<String>,
    /// Continue the newest session of this folder.
    #[arg(long = "continue")]
    pub(crate) continue_newest: bool,
    /// If another process is using the session, queue the prompt until that process is done, and print the response.
    /// Needs `--session` or `--continue`. Ctrl-C withdraws a prompt that waits.
    #[arg(long, conflicts_with_all = ["no_store", "output_schema"])]
    pub(crate) queue: bool,
    /// Keep the session in memory only: nothing of it is written to disk, and it cannot be continued.
    #[arg(long, conflicts_with_all = ["session", "continue_newest"])]
    pub(crate) no_store: bool,
    #[command(flatten)]
    pub(crate) attached: AttachedFiles,
    /// Print one JSON value that fits the JSON Schema in this file, and nothing else, on stdout.
    #[arg(long, value_name = "FILE")]
    pub(crate) output_schema: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) try_args: TryArgs,
    #[command(flatten)]
    pub(crate) options: RunOptions,
}

/// Files that are sent with the prompt.
#[derive(Debug, Default, Group)]
pub(crate) struct AttachedFiles {
    /// Send this image to the model (PNG, JPEG, GIF or WebP). Repeatable.
    #[arg(long, value_name = "FILE")]
    pub(crate) image: Vec<PathBuf>,
    /// Send this recording to the model (WAV or MP3). Repeatable.
    #[arg(long, value_name = "FILE")]
    pub(crate) audio: Vec<PathBuf>,
    /// Send this document to the model (PDF). Repeatable.
    #[arg(long, value_name = "FILE")]
    pub(crate) document: Vec<PathBuf>,
}

/// Options for running a prompt and printing its output.
#[derive(Clone, Debug, Default, Group)]
pub(crate) struct RunOptions {
    /// Output format.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: OutputFormat,
    #[command(flatten)]
    pub(crate) choice: SettingsFlags,
}

/// Output format of `run`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutputFormat {
    /// The model's text.
    #[default]
    Text,
    /// One JSON object at the end.
    Json,
    /// One JSON object per line: every event, then the result.
    StreamJson,
}

/// `turnery models`.
#[derive(Debug, Group)]
pub(crate) struct ModelsArgs {
    /// Print a JSON array.
    #[arg(long)]
    pub(crate) json: bool,
}

/// `turnery mcp`.
#[derive(Debug, Group)]
pub(crate) struct McpArgs {
    #[command(subcommand)]
    pub(crate) command: McpCommand,
}

/// Subcommands of `turnery mcp`.
#[derive(Debug, Subcommand)]
pub(crate) enum McpCommand {
    /// Start each server of config.toml, list its tools, and stop it.
    List {
        /// Print a JSON array.
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
    pub(crate) command: ToolCommand,
}

/// Subcommands of `turnery tool`.
#[derive(Debug, Subcommand)]
pub(crate) enum ToolCommand {
    /// List the tools.
    List {
        /// Print a JSON array, including the schemas of the arguments.
        #[arg(long)]
        json: bool,
    },
    /// Call a tool and print its result.
    Call {
        /// Name of the tool.
        name: String,
        /// Arguments as a JSON object; `-` reads them from stdin.
        #[arg(value_name = "JSON")]
        args: String,
        /// Work in this folder instead of the current one.
        #[arg(long, value_name = "FOLDER")]
        cwd: Option<PathBuf>,
        /// Print the whole result as JSON.
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
