//! Runs the user's hook commands, which observe a prompt and may stop it.
//!
//! A command reads one JSON object on stdin and answers with one on stdout; see [`wire`] and `schemas/hooks.json`.
//! Empty stdout means go. A command that fails, times out or prints invalid output stops what it was asked about
//! beforehand; a failure afterwards is only reported.

mod process;
pub(crate) mod wire;

use crate::config::{HookEntry, HookPoint};
use futures_util::future::BoxFuture;
use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};
use turnery_agent::{HOOK_TIME, HookCx, Hooks};
use turnery_engine::{Content, HookRequest, HookSet, HookVerdict, LoopRecord};
use turnery_tools::{SandboxSettings, leave_out_written};
use wire::{Answer, Asked, Moment, Word};

/// Time beyond a command's own timeout in which it is killed and reaped.
const KILL_GRACE: Duration = Duration::from_secs(5);

/// A hook command for the sessions of one folder.
#[derive(Debug)]
struct Command {
    entry: HookEntry,
    name: String,
    cwd: PathBuf,
    roots: Vec<PathBuf>,
    sandbox: SandboxSettings,
}

/// Returns the hooks of `entries`, in order, for sessions in `roots`. The commands run in the first root with this
/// sandbox.
pub(crate) fn all(
    entries: &[HookEntry],
    roots: &[PathBuf],
    sandbox: &SandboxSettings,
) -> Vec<Arc<dyn Hooks>> {
    let cwd = roots.first().map_or(Path::new("."), PathBuf::as_path);
    let command = |entry: &HookEntry| {
        Arc::new(Command {
            entry: entry.clone(),
            name: entry.to_string(),
            cwd: cwd.to_owned(),
            roots: roots.to_vec(),
            sandbox: sandbox.clone(),
        }) as Arc<dyn Hooks>
    };
    entries.iter().map(command).collect()
}

/// Returns how long the agent must wait for the slowest hook. Each command is held to its own timeout here.
pub(crate) fn time(entries: &[HookEntry]) -> Duration {
    let slowest = entries
        .iter()
        .map(|entry| entry.timeout() + KILL_GRACE)
        .max();
    slowest.unwrap_or(HOOK_TIME)
}

impl Command {
    /// Runs the command. The error names the command and the failure.
    async fn ask(&self, cx: &HookCx, moment: Moment<'_>) -> Result<Answer, String> {
        let asked = Asked {
            session_id: &cx.session_id,
            loop_id: &cx.loop_id,
            cwd: &self.cwd,
            moment,
        };
        let ended = match serde_json::to_vec(&asked) {
            Ok(json) => {
                let mut environment = std::env::vars_os().collect();
                leave_out_written(&mut environment, &self.roots, &self.sandbox);
                let place = (self.cwd.as_path(), environment);
                process::run(&self.entry.command, place, json, self.entry.timeout()).await
            }
            Err(error) => Err(error.to_string()),
        };
        ended
            .and_then(|ended| wire::parse_response(&ended))
            .map_err(|why| format!("the hook {} failed: {why}", self.name))
    }

    /// Returns true if the hook applies to calls of this tool.
    fn matches_tool(&self, tool: &str) -> bool {
        self.entry.tools.is_empty() || self.entry.tools.iter().any(|name| name == tool)
    }

    /// Returns the reason for a stop: the command's text, or its name.
    fn reason(&self, text: Option<String>) -> String {
        text.unwrap_or_else(|| format!("the hook {} said no", self.name))
    }
}

impl Hooks for Command {
    fn name(&self) -> &str {
        &self.name
    }

    fn set(&self) -> HookSet {
        let on = self.entry.on;
        HookSet {
            input: on == HookPoint::Input,
            before_turn: on == HookPoint::BeforeTurn,
            after_turn: on == HookPoint::AfterTurn,
            before_tool: on == HookPoint::BeforeTool,
            after_tool: on == HookPoint::AfterTool,
            compaction: matches!(on, HookPoint::BeforeCompaction | HookPoint::AfterCompaction),
            on_error: on == HookPoint::OnError,
            checkpoint: on == HookPoint::Checkpoint,
        }
    }

    fn ask<'a>(&'a self, cx: &'a HookCx, hook: &'a HookRequest) -> BoxFuture<'a, HookVerdict> {
        Box::pin(async move {
            let (on, moment) = wire::moment(hook, &cx.messages);
            if on != self.entry.on || !moment.tool().is_none_or(|tool| self.matches_tool(tool)) {
                return HookVerdict::Continue;
            }
            match Command::ask(self, cx, moment).await {
                Ok(answer) => match answer.verdict {
                    Word::Go => HookVerdict::Continue,
                    Word::Warn => HookVerdict::Warn(self.reason(answer.text)),
                    Word::Stop => HookVerdict::Stop(self.reason(answer.text)),
                    Word::Inject => {
                        HookVerdict::Inject(answer.text.map(Content::text).into_iter().collect())
                    }
                },
                Err(failed) => HookVerdict::Stop(failed),
            }
        })
    }

    fn before_loop<'a>(
        &'a self,
        cx: &'a HookCx,
        input: &'a [Content],
    ) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(async move {
            if self.entry.on != HookPoint::BeforeLoop {
                return Ok(());
            }
            let text = wire::text(input);
            let answer = Command::ask(self, cx, Moment::BeforeLoop { text }).await?;
            match answer.verdict {
                Word::Stop => Err(self.reason(answer.text)),
                Word::Go | Word::Warn | Word::Inject => Ok(()),
            }
        })
    }

    fn after_loop<'a>(&'a self, cx: &'a HookCx, record: &'a LoopRecord) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            if self.entry.on != HookPoint::AfterLoop {
                return;
            }
            match Command::ask(self, cx, wire::after_loop_event(record)).await {
                Ok(answer) => match (answer.verdict, answer.text) {
                    (Word::Warn | Word::Stop, text) => tracing::warn!("{}", self.reason(text)),
                    (Word::Go | Word::Inject, _) => {}
                },
                Err(failed) => tracing::warn!("{failed}"),
            }
        })
    }
}
