//! Defines `turnery sessions` and its subcommands.

use super::RunOptions;
use crate::config::values;
use clap::{ArgGroup, Args as Group, Subcommand, ValueEnum};
use std::path::PathBuf;
use turnery_store::FollowCursor;

/// `turnery sessions`.
#[derive(Debug, Group)]
#[command(after_help = "\
A session is named by its id, by the start of it (4 characters or more), by `latest` for the one that was \
active last in this folder, or by its number in `turnery sessions list`: 1 is the newest of this folder.

Examples:
  turnery sessions list --all
  turnery sessions show latest | less
  turnery sessions show 0198f3a2
  turnery sessions branch ID 2 \"try it without the cache\"
  turnery sessions rerun ID --model anthropic/claude-opus-4-8
  turnery sessions list --json | jq -r '.[].id'
  turnery sessions check                   look for damage
  turnery sessions repair ID               mend it, with a copy kept")]
pub(crate) struct SessionsArgs {
    #[command(subcommand)]
    pub(crate) command: SessionsCommand,
}

/// Subcommands of `turnery sessions`.
#[derive(Debug, Subcommand)]
pub(crate) enum SessionsCommand {
    #[command(flatten)]
    Store(StoreCommand),
    #[command(flatten)]
    RunAgain(RunAgainCommand),
}

/// Subcommands that call a model in a stored session.
#[derive(Debug, Subcommand)]
pub(crate) enum RunAgainCommand {
    /// Let the model continue where it stopped, without a new prompt.
    Continue {
        /// The session: an id, the start of one, `latest` or a number.
        #[arg(value_name = "SESSION")]
        id: String,
        #[command(flatten)]
        how: Box<RunOptions>,
    },
    /// Run a loop again with the same prompt. Replaces the loop and everything after it.
    Rerun {
        /// The session: an id, the start of one, `latest` or a number.
        #[arg(value_name = "SESSION")]
        id: String,
        /// The loop, by its number in `sessions show` or its id; the last one unless given.
        #[arg(value_name = "LOOP")]
        which: Option<String>,
        #[command(flatten)]
        how: Box<RunOptions>,
    },
    /// Continue from an earlier loop with another prompt. Later loops are set aside.
    Branch {
        /// The session: an id, the start of one, `latest` or a number.
        #[arg(value_name = "SESSION")]
        id: String,
        /// The loop, by its number in `sessions show` or its id.
        #[arg(value_name = "LOOP")]
        from: String,
        /// The prompt. Text piped to stdin is appended; without this argument, or with `-`, stdin is the whole
        /// prompt.
        #[arg(value_name = "PROMPT")]
        prompt: Option<String>,
        #[command(flatten)]
        how: Box<RunOptions>,
    },
    /// Summarise the older messages of a session.
    Compact {
        /// The session: an id, the start of one, `latest` or a number.
        #[arg(value_name = "SESSION")]
        id: String,
        #[command(flatten)]
        how: Box<RunOptions>,
    },
}

/// Format of an exported session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportFormat {
    /// Everything, to be imported again.
    #[default]
    Json,
    /// The conversation with its tool calls, to be read.
    Markdown,
}

/// `turnery sessions prune`.
#[derive(Debug, Group)]
#[command(
    group(ArgGroup::new("which").required(true).multiple(true).args(["older_than", "keep"])),
    after_help = "\
Lists what it deletes, says how much space that frees, and asks first. A session in which a prompt is \
running is kept. With both --older-than and --keep, a session is deleted if both say so.

Examples:
  turnery sessions prune --older-than 90d --dry-run
  turnery sessions prune --keep 50 --all --yes"
)]
pub(crate) struct PruneArgs {
    /// Delete sessions in which no prompt has run for this long: 30d, 12h or 45m.
    #[arg(long, value_name = "AGE", value_parser = values::age)]
    pub(crate) older_than: Option<values::Age>,
    /// Keep the N newest sessions of each folder.
    #[arg(long, value_name = "N")]
    pub(crate) keep: Option<usize>,
    /// Delete sessions of all folders.
    #[arg(long)]
    pub(crate) all: bool,
    /// Delete archived sessions too.
    #[arg(long)]
    pub(crate) archived: bool,
    /// Only show what would be deleted.
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Do not ask.
    #[arg(long)]
    pub(crate) yes: bool,
}

/// Subcommands that need no model.
#[derive(Debug, Subcommand)]
pub(crate) enum StoreCommand {
    /// List the sessions of this folder, the newest first.
    #[command(after_help = "\
A word of a search also finds longer words that start with it, from three characters on; case is ignored. \
Words in quotes must follow each other, as those of read_file do.

Examples:
  turnery sessions list --search 'cache invalidation'
  turnery sessions list --all --search '\"borrow checker\" lifetime'")]
    List {
        /// Include sessions of all folders, and archived ones.
        #[arg(long)]
        all: bool,
        /// Show only sessions with all these words in their title, prompts or answers.
        #[arg(long, value_name = "TEXT")]
        search: Option<String>,
        /// Print a JSON array.
        #[arg(long)]
        json: bool,
    },
    /// Print the loops and messages of a session.
    Show {
        /// The session: an id, the start of one, `latest` or a number.
        #[arg(value_name = "SESSION")]
        id: String,
        /// Print whole arguments and results of tools, and the changes to files.
        #[arg(long, conflicts_with_all = ["json", "tools"])]
        full: bool,
        /// List the tool calls instead, each with its status, its time in seconds and the size of its result.
        #[arg(long)]
        tools: bool,
        /// Print its records as a JSON array; with --tools, its tool calls.
        #[arg(long)]
        json: bool,
    },
    /// Print a session like `show`, then what happens in it, until Ctrl-C. It may run in any process.
    #[command(after_help = "\
Shows whole messages and tool calls as soon as they are stored, not the words of an answer while it is \
written. The session is not disturbed. With --json, each line has a cursor: with --from, a later run, \
also on another machine with the same store, goes on behind that line.

Exit codes: 0 nothing is running any more (--until-idle), 1 the session cannot be read or was deleted, \
130 stopped by Ctrl-C.

Examples:
  turnery sessions follow latest
  turnery sessions follow latest --now --until-idle
  turnery sessions follow 0198f3a2 --json | jq -r .cursor")]
    Follow {
        /// The session: an id, the start of one, `latest` or a number.
        #[arg(value_name = "SESSION")]
        id: String,
        /// Begin with the running prompt, or with the next one.
        #[arg(long)]
        now: bool,
        /// Begin behind this cursor.
        #[arg(long, value_name = "CURSOR", conflicts_with = "now")]
        from: Option<FollowCursor>,
        /// Stop as soon as no prompt is running.
        #[arg(long)]
        until_idle: bool,
        /// Print one JSON object per line: each event and its cursor.
        #[arg(long)]
        json: bool,
    },
    /// Export a session to a file, for backup, for another machine or for reading.
    Export {
        /// The session: an id, the start of one, `latest` or a number.
        #[arg(value_name = "SESSION")]
        id: String,
        /// The file, which must not exist yet; standard output unless given.
        file: Option<PathBuf>,
        /// Format of the file. Only JSON can be imported.
        #[arg(long, value_enum, default_value_t)]
        format: ExportFormat,
    },
    /// Import a session from an exported file.
    Import {
        /// The file; `-` for standard input.
        file: PathBuf,
        /// Use a new id, so that the original session is kept.
        #[arg(long)]
        new: bool,
    },
    /// Print the tokens that a session has used, by purpose and model.
    Usage {
        /// The session: an id, the start of one, `latest` or a number.
        #[arg(value_name = "SESSION")]
        id: String,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Print the tokens, cost, sessions and turns of all sessions, by model and by day.
    #[command(after_help = "\
Days are those of UTC. The cost is that of the prices without their surcharge for long requests; \
`turnery sessions usage` has it. A loop counts for the model that it was started with.

Examples:
  turnery sessions stats --since 7d
  turnery sessions stats --since 2026-11-01 --json | jq .cost")]
    Stats {
        /// Count only what was used since then: a day such as 2026-11-21, or an age such as 7d, 12h or 30m.
        #[arg(long, value_name = "TIME", value_parser = values::since)]
        since: Option<values::Since>,
        /// Print a JSON object.
        #[arg(long)]
        json: bool,
    },
    /// Delete old sessions of this folder, including the sessions of their sub-agents.
    Prune(PruneArgs),
    /// Delete sessions permanently, including the sessions of their sub-agents.
    #[command(after_help = "\
A session in which a prompt is running is not deleted: stop the prompt first, or use --force.

Copies of the database that `repair` has made stay, with all that was stored then. They are named here; \
delete them by hand.

Exit codes: 0 all were deleted, 1 one of them was not.")]
    Delete {
        /// The sessions: ids, starts of ids, `latest` or numbers.
        #[arg(required = true, value_name = "SESSION")]
        id: Vec<String>,
        /// Delete a session even while a prompt is running in it. The prompt fails, and its answer is lost.
        #[arg(long)]
        force: bool,
    },
    /// Check stored sessions for damage. Changes nothing.
    #[command(after_help = "\
Checks the checksum of every loop, note and journal entry, and the chain of loops that leads to the last \
one. Without an ID it also checks the pages and indexes of the database, and rows of no session.

Exit codes: 0 no damage, 1 damage was found or the sessions cannot be read.")]
    Check {
        /// The session; all sessions unless given.
        #[arg(value_name = "SESSION")]
        id: Option<String>,
        /// Print a JSON array with one object per problem.
        #[arg(long)]
        json: bool,
        /// Repair the damage, as `repair` does.
        #[arg(long)]
        repair: bool,
    },
    /// Repair damaged sessions. Deletes nothing, and copies the database first.
    #[command(after_help = "\
A loop that cannot be read is set aside: it stays in the database, and the conversation goes on without \
it. A loop that has lost its predecessor follows the last whole loop before it. What is overwritten is \
kept in the table `repairs`, and a copy of the whole database is made beside it first. Delete that copy \
when you are content with the result: it holds everything that the sessions hold.

Exit codes: 0 no damage is left, 1 some is, or nothing could be done.")]
    Repair {
        /// The sessions: ids, starts of ids, `latest` or numbers.
        #[arg(required = true, value_name = "SESSION")]
        id: Vec<String>,
        /// Print a JSON array with one object per session.
        #[arg(long)]
        json: bool,
    },
}
