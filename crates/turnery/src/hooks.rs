//! Runs the user's hook commands, which observe a prompt and may stop it.
//!
//! A command reads one JSON object on stdin and answers with one on stdout; see [`wire`] and `schemas/hooks.json`.
//! Empty stdout means go. A command that fails, times out or prints invalid output stops what it was asked about
//! beforehand; a failure afterwards is only reported.

pub(crate) mod wire;

use crate::{
    config::{HookEntry, HookPoint},
    user_command::CommandPlace,
};
use futures_util::future::BoxFuture;
use std::{sync::Arc, time::Duration};
use turnery_agent::{DEFAULT_HOOK_TIMEOUT, HookCx, Hooks};
use turnery_engine::{Content, HookRequest, HookSet, HookVerdict, LoopRecord};
use wire::{HookAction, HookEvent, HookInput, HookResponse};

/// Time beyond a command's own timeout in which it is killed and reaped.
const KILL_GRACE: Duration = Duration::from_secs(5);

/// A hook command for the sessions of one folder.
#[derive(Debug)]
struct HookCommand {
    entry: HookEntry,
    name: String,
    place: CommandPlace,
}

/// Returns the hooks of `entries`, in order.
pub(crate) fn hook_commands(entries: &[HookEntry], place: &CommandPlace) -> Vec<Arc<dyn Hooks>> {
    let command = |entry: &HookEntry| {
        Arc::new(HookCommand {
            entry: entry.clone(),
            name: entry.to_string(),
            place: place.clone(),
        }) as Arc<dyn Hooks>
    };
    entries.iter().map(command).collect()
}

/// Returns how long the agent must wait for the slowest hook. Each command is held to its own timeout here.
pub(crate) fn slowest_timeout(entries: &[HookEntry]) -> Duration {
    let slowest = entries
        .iter()
        .map(|entry| entry.timeout() + KILL_GRACE)
        .max();
    slowest.unwrap_or(DEFAULT_HOOK_TIMEOUT)
}

impl HookCommand {
    /// Runs the command. The error names the command and the failure.
    async fn invoke(&self, cx: &HookCx, event: HookEvent<'_>) -> Result<HookResponse, String> {
        let input = HookInput {
            session_id: &cx.session_id,
            loop_id: &cx.loop_id,
            cwd: self.place.cwd(),
            event,
        };
        let ended = match serde_json::to_vec(&input) {
            Ok(json) => {
                let timeout = self.entry.timeout();
                self.place.run(&self.entry.command, json, timeout).await
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
    fn reason_or_name(&self, text: Option<String>) -> String {
        text.unwrap_or_else(|| format!("the hook {} said no", self.name))
    }
}

impl Hooks for HookCommand {
    fn name(&self) -> &str {
        &self.name
    }

    fn hook_set(&self) -> HookSet {
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

    fn ask_hook<'a>(&'a self, cx: &'a HookCx, hook: &'a HookRequest) -> BoxFuture<'a, HookVerdict> {
        Box::pin(async move {
            let (on, event) = wire::hook_event(hook, &cx.messages);
            if on != self.entry.on || !event.tool_name().is_none_or(|tool| self.matches_tool(tool))
            {
                return HookVerdict::Continue;
            }
            match HookCommand::invoke(self, cx, event).await {
                Ok(response) => match response.verdict {
                    HookAction::Go => HookVerdict::Continue,
                    HookAction::Warn => HookVerdict::Warn(self.reason_or_name(response.text)),
                    HookAction::Stop => HookVerdict::Stop(self.reason_or_name(response.text)),
                    HookAction::Inject => {
                        HookVerdict::Inject(response.text.map(Content::text).into_iter().collect())
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
            let text = wire::content_text(input);
            let response = HookCommand::invoke(self, cx, HookEvent::BeforeLoop { text }).await?;
            match response.verdict {
                HookAction::Stop => Err(self.reason_or_name(response.text)),
                HookAction::Go | HookAction::Warn | HookAction::Inject => Ok(()),
            }
        })
    }

    fn after_loop<'a>(&'a self, cx: &'a HookCx, record: &'a LoopRecord) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            if self.entry.on != HookPoint::AfterLoop {
                return;
            }
            match HookCommand::invoke(self, cx, wire::after_loop_event(record)).await {
                Ok(response) => match (response.verdict, response.text) {
                    (HookAction::Warn | HookAction::Stop, text) => {
                        tracing::warn!("{}", self.reason_or_name(text))
                    }
                    (HookAction::Go | HookAction::Inject, _) => {}
                },
                Err(failed) => tracing::warn!("{failed}"),
            }
        })
    }
}
