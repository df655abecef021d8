//! Hooks: commands of the user's configuration that look into a prompt and may say no.
//!
//! A command is told of the moment in one JSON object on stdin and answers with one on stdout; see
//! [`wire`] and `schemas/hooks.json`. Nothing on stdout means go. One that fails, hangs or talks
//! nonsense has said no where it was asked before something, and is reported where it was told
//! afterwards.

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
use turnery_engine::{Content, Hook, HookSet, HookVerdict, LoopRecord};
use turnery_tools::{SandboxSettings, leave_out_written};
use wire::{Answer, Asked, Moment, Word};

/// What a command may take longer than its own time, until it is killed and buried.
const BURIAL: Duration = Duration::from_secs(5);

/// One command, for the sessions of one folder.
#[derive(Debug)]
struct Command {
    entry: HookEntry,
    name: String,
    cwd: PathBuf,
    roots: Vec<PathBuf>,
    sandbox: SandboxSettings,
}

/// The commands of `entries`, in order, for sessions in `roots`, whose commands are confined like this. They run in the
/// first root.
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

/// How long the agent is to wait for the slowest of them. Each is held to its own time here.
pub(crate) fn time(entries: &[HookEntry]) -> Duration {
    let slowest = entries.iter().map(|entry| entry.timeout + BURIAL).max();
    slowest.unwrap_or(HOOK_TIME)
}

impl Command {
    /// Run it. The error says which one failed, and how.
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
                process::run(&self.entry.command, place, json, self.entry.timeout).await
            }
            Err(error) => Err(error.to_string()),
        };
        ended
            .and_then(|ended| wire::answer(&ended))
            .map_err(|why| format!("the hook {} failed: {why}", self.name))
    }

    /// Whether it wants to be told of calls of this tool.
    fn is_for(&self, tool: &str) -> bool {
        self.entry.tools.is_empty() || self.entry.tools.iter().any(|name| name == tool)
    }

    /// What it says no with: its own words, or its name.
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

    fn ask<'a>(&'a self, cx: &'a HookCx, hook: &'a Hook) -> BoxFuture<'a, HookVerdict> {
        Box::pin(async move {
            let (on, moment) = wire::moment(hook, &cx.messages);
            if on != self.entry.on || !moment.tool().is_none_or(|tool| self.is_for(tool)) {
                return HookVerdict::Go;
            }
            match Command::ask(self, cx, moment).await {
                Ok(answer) => match answer.verdict {
                    Word::Go => HookVerdict::Go,
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
            match Command::ask(self, cx, wire::after_loop(record)).await {
                Ok(answer) => match (answer.verdict, answer.text) {
                    (Word::Warn | Word::Stop, text) => tracing::warn!("{}", self.reason(text)),
                    (Word::Go | Word::Inject, _) => {}
                },
                Err(failed) => tracing::warn!("{failed}"),
            }
        })
    }
}
