//! `turnery run --queue`: a prompt for a session that another process holds waits there until somebody has run it.

use super::output_thread::OutputSender;
use crate::logs::print_message;
use anyhow::Context as _;
use std::{sync::Arc, time::Duration};
use tokio::time::{Instant, timeout_at};
use turnery_agent::{PromptError, PromptOptions, PromptResult, QueuedReceipt, Session};
use turnery_engine::{Content, LoopRecord, Outcome, TurnStop, Usage};
use turnery_store::{PromptRemoval, QueuedPrompt, Store, StoreError};

/// Time that a process that holds the session has to run the first waiting prompt itself.
const PATIENCE: Duration = Duration::from_secs(2);

/// The user no longer waits for the prompt.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct WaitCancelledError(String);

/// Prompt that has ended.
pub(super) struct RanPrompt {
    pub(super) result: PromptResult,
    /// True if another process has run it, with its own settings.
    pub(super) is_elsewhere: bool,
}

impl RanPrompt {
    /// Wraps the result of a prompt that this process has run.
    pub(super) fn here(result: PromptResult) -> Self {
        Self {
            result,
            is_elsewhere: false,
        }
    }
}

/// Prompt of a session that another process may hold.
pub(super) struct QueuedRun<'a> {
    pub(super) session: &'a Session,
    pub(super) store: &'a dyn Store,
    pub(super) output: OutputSender,
    pub(super) options: PromptOptions,
}

impl QueuedRun<'_> {
    /// Runs the prompt, or waits until another process has run it. Fails with [`WaitCancelledError`] if it is cancelled
    /// while it waits.
    pub(super) async fn run(self, content: Vec<Content>) -> anyhow::Result<RanPrompt> {
        let id = self.session.id();
        let first = self.session.prompt(content.clone(), self.options.clone())?;
        let holder = match first.result().await {
            Err(PromptError::Busy { holder }) => holder,
            result => return Ok(RanPrompt::here(result?)),
        };
        let QueuedReceipt { prompt, .. } = self.session.queue_prompt(content).await?;
        print_message(&format!(
            "session {id} is in use by {holder}; the prompt waits there, Ctrl-C withdraws it"
        ));
        let end = match self.wait_for_end(&prompt).await {
            Err(error) if !error.is::<WaitCancelledError>() => {
                self.give_up(&prompt).await;
                return Err(error);
            }
            end => end?,
        };
        end.with_context(|| {
            format!(
                "the prompt was not run: a hook of {holder} has refused it, or it was withdrawn"
            )
        })
    }

    /// Waits until the prompt has left the queue, and runs it here if nobody else does. Returns `None` if it was removed
    /// and not run.
    async fn wait_for_end(&self, prompt: &QueuedPrompt) -> anyhow::Result<Option<RanPrompt>> {
        let (store, id) = (self.store, self.session.id());
        let cancel = &self.options.cancel;
        let mut mark = store.wait_for_change(id, None).await?;
        let mut last_try = Instant::now();
        let mut seen = None;
        loop {
            // Before the loops: a prompt is removed once its last loop is stored.
            let waiting = store.queued_prompts(id).await?;
            let place = waiting.iter().position(|it| it.id == prompt.id);
            let Some(place) = place else {
                let mut loops = store.loops(id, prompt.head_version).await?;
                loops.retain(|record| prompt.was_run_by(record));
                if loops.is_empty() {
                    return Ok(None);
                }
                return Ok(Some(RanPrompt {
                    result: self.show(loops).await,
                    is_elsewhere: true,
                }));
            };
            // While prompts are run there, the process that does so looks for the next one itself.
            let progress = Some((place, store.info(id).await?.head_version));
            if progress != seen {
                seen = progress;
                last_try = Instant::now();
            }
            // Earlier prompts get their time first.
            let turn = u32::try_from(place).unwrap_or(u32::MAX).saturating_add(1);
            let next_try = last_try + PATIENCE.saturating_mul(turn);
            if next_try <= Instant::now() {
                match self.run_here(prompt).await {
                    Err(PromptError::Busy { .. } | PromptError::AlreadyRun) => {}
                    // It was cancelled before it had the session.
                    Ok(result) if result.loops.is_empty() && cancel.is_cancelled() => {}
                    Err(_) if cancel.is_cancelled() => {}
                    result => return Ok(Some(RanPrompt::here(result?))),
                }
                last_try = Instant::now();
                continue;
            }
            tokio::select! {
                changed = timeout_at(next_try, store.wait_for_change(id, Some(mark))) => {
                    if let Ok(changed) = changed {
                        mark = changed?;
                    }
                }
                () = cancel.cancelled() => return Err(self.withdraw(prompt).await?.into()),
            }
        }
    }

    /// Runs the prompt in this process, unless somebody has the session or has run the prompt.
    async fn run_here(&self, prompt: &QueuedPrompt) -> Result<PromptResult, PromptError> {
        let options = PromptOptions {
            queued: Some(Arc::new(prompt.clone())),
            ..self.options.clone()
        };
        let started = self.session.prompt(prompt.content.clone(), options);
        let handle = started.map_err(|_| PromptError::Withdrawn)?;
        handle.result().await
    }

    async fn withdraw(&self, prompt: &QueuedPrompt) -> Result<WaitCancelledError, StoreError> {
        let (store, id) = (self.store, self.session.id());
        let removal = store.remove_queued_prompt(id, &prompt.id, PromptRemoval::Withdrawn);
        let withdrawn = || "the prompt is withdrawn; it was not run".to_owned();
        if removal.await? {
            return Ok(WaitCancelledError(withdrawn()));
        }
        let waiting = store.queued_prompts(id).await?;
        let loops = store.loops(id, prompt.head_version).await?;
        let was_run = loops.iter().any(|record| prompt.was_run_by(record));
        let is_begun = waiting.iter().any(|it| it.id == prompt.id);
        Ok(WaitCancelledError(if was_run {
            format!("the prompt was run already; `turnery sessions show {id}` shows its result")
        } else if is_begun {
            format!(
                "the prompt was begun already; `turnery sessions show {id}` will show its result"
            )
        } else {
            // The answer to an earlier attempt was lost.
            withdrawn()
        }))
    }

    /// Withdraws the prompt after an error, and tells the user what has become of it.
    async fn give_up(&self, prompt: &QueuedPrompt) {
        let id = self.session.id();
        print_message(&match self.withdraw(prompt).await {
            Ok(WaitCancelledError(text)) => text,
            Err(_) => format!(
                "the prompt may still wait in session {id}; an editor that opens the session runs it then"
            ),
        });
    }

    /// Shows loops that another process has run, and returns their result.
    async fn show(&self, loops: Vec<Arc<LoopRecord>>) -> PromptResult {
        for event in loops.iter().flat_map(|record| &record.events) {
            self.output.show_event(event.clone()).await;
        }
        let outcome = loops.last().and_then(|record| record.outcome.clone());
        let turns = loops.iter().map(|record| record.turns.len()).sum::<usize>();
        let mut usage = Usage::default();
        for record in &loops {
            usage += record.usage;
        }
        PromptResult {
            usage,
            turns: u32::try_from(turns).unwrap_or(u32::MAX),
            loops,
            ..PromptResult::new(outcome.unwrap_or_else(interrupted))
        }
    }
}

/// Returns the outcome of a prompt whose process has died.
fn interrupted() -> Outcome {
    let message = "the process that ran the prompt has ended before it was done".to_owned();
    Outcome::Stopped(TurnStop::RuntimeError { message })
}
