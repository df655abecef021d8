//! Compacting: history is summarised when the next request would fill the model's context (UP-10, TURN-58).

use super::hooks::{Failed, Question};
use super::{Context, Effect, Loop, Stage};
use crate::{
    CompactionBlock, ContextSize, Detail, EventKind, Hook, Message, ModelFault, Outcome,
    TurnFinish, TurnStop, Usage,
};
use std::mem;

/// How far the context has to grow before another attempt. Unit: percent.
const GROWTH: u64 = 10;

/// How full the context is.
#[derive(Clone, Debug)]
pub(super) struct Gauge {
    size: ContextSize,
    /// Not compacted again below this, whatever came of the last attempt.
    not_below: u64,
    /// Compacted in this turn, or tried to.
    tried: bool,
}

impl Gauge {
    pub(super) fn new(context: &Context) -> Self {
        Self {
            size: context.size,
            not_below: 0,
            tried: false,
        }
    }

    pub(super) fn begin_turn(&mut self) {
        self.tried = false;
    }

    /// A message came to history.
    pub(super) fn add(&mut self, message: &Message) {
        self.size += ContextSize::of(message);
    }

    /// The provider has counted what it was sent, and what it said.
    pub(super) fn measured(&mut self, usage: &Usage) {
        self.size.tokens = usage.context();
    }

    fn settle(&mut self, after: ContextSize) {
        self.size = after;
        self.not_below = after.tokens.saturating_add(after.tokens / (100 / GROWTH));
    }

    /// The next request is as full as the context may get.
    fn is_full(&self, context: &Context) -> bool {
        let full = |window: u64| {
            let tokens = u128::from(self.size.tokens) * 100;
            tokens >= u128::from(window) * u128::from(context.compact_at)
        };
        context.compact_at > 0
            && self.size.tokens >= self.not_below
            && context.window.is_some_and(full)
    }
}

/// Why history is compacted, and so what comes after.
#[derive(Clone, Debug)]
pub(super) enum Reason {
    /// The next request would fill the context: the model is called in any case.
    Full,
    /// The provider said that the request does not fit: it is called again if there is a summary.
    Overflow(ModelFault),
    /// It is all that this loop is for (UP-13).
    Standalone,
}

impl Loop {
    /// The inputs have been said: make room if there is need, then call the model (TURN-57).
    pub(super) fn make_room(&mut self) {
        if self.gauge.is_full(&self.spec.context) {
            self.compact(Reason::Full);
        } else {
            self.call_model();
        }
    }

    /// The request does not fit, and nothing of the answer was shown: once in a turn, room is made.
    pub(super) fn overflowed(&mut self, fault: ModelFault) {
        if self.spec.context.compact_at == 0 || self.gauge.tried {
            return self.answer_failed(fault);
        }
        self.compact(Reason::Overflow(fault));
    }

    pub(super) fn compact(&mut self, reason: Reason) {
        if self.spec.hooks.compaction {
            let hook = Hook::BeforeCompaction(self.gauge.size);
            self.ask(hook, Question::BeforeCompaction(reason));
        } else {
            self.start_compaction(reason);
        }
    }

    pub(super) fn start_compaction(&mut self, reason: Reason) {
        if self.is_spent() {
            return self.cut_short();
        }
        let before = self.gauge.size;
        self.gauge.tried = true;
        self.mint.emit(EventKind::CompactionStarted { before });
        self.give(Effect::Compact(before));
        self.stage = Stage::Compacting(Box::new(reason));
    }

    /// The summary, or why there is none. Without one all stays as it was.
    pub(super) fn compacted(
        &mut self,
        block: Result<CompactionBlock, String>,
        after: ContextSize,
        usage: Option<Usage>,
    ) {
        let Some(reason) = self.take_compaction() else {
            return;
        };
        let before = self.gauge.size;
        match block {
            Ok(block) => {
                self.end_compaction(Ok(block), after, usage);
                if self.asks_after(self.spec.hooks.compaction) {
                    let hook = Hook::AfterCompaction { before, after };
                    self.ask(hook, Question::AfterCompaction(reason));
                } else {
                    self.compaction_done(reason);
                }
            }
            Err(why) => {
                self.end_compaction(Err(why.clone()), before, usage);
                self.not_compacted(reason, why);
            }
        }
    }

    /// The only place where a compaction ends.
    fn end_compaction(
        &mut self,
        block: Result<CompactionBlock, String>,
        after: ContextSize,
        usage: Option<Usage>,
    ) {
        self.gauge.settle(after);
        if let Some(usage) = usage {
            self.own.add_answer(&usage, self.spec.price);
        }
        let (block, failure) = match block {
            Ok(block) => (Some(block), None),
            Err(why) => (None, Some(why)),
        };
        if faulty!(self, NoEndOfCompaction) {
            return;
        }
        self.mint.emit(EventKind::CompactionEnded {
            block,
            after,
            failure,
            usage,
        });
    }

    pub(super) fn compaction_done(&mut self, reason: Reason) {
        match reason {
            Reason::Full => self.call_model(),
            Reason::Overflow(fault) => {
                self.attempts += 1;
                self.mint.emit(EventKind::ModelRetried {
                    attempt: self.attempts,
                    fault,
                    wait_ms: 0,
                });
                self.call_model();
            }
            Reason::Standalone => {
                let ContextSize { tokens, messages } = self.gauge.size;
                let text = format!(
                    "History was summarised: about {tokens} tokens in {messages} messages are left."
                );
                let finish = TurnFinish::AssistantMessage { text: text.into() };
                self.commit(Outcome::Finished(finish), None);
            }
        }
    }

    /// A hook said no, or the summary failed.
    pub(super) fn not_compacted(&mut self, reason: Reason, why: String) {
        match reason {
            Reason::Full => self.call_model(),
            Reason::Overflow(fault) => self.answer_failed(fault),
            Reason::Standalone => {
                let failed = Failed {
                    usage: None,
                    tool_results: Vec::new(),
                    outcome: Outcome::Stopped(TurnStop::RuntimeError),
                    detail: Detail::Runtime {
                        message: why.clone(),
                    },
                };
                self.fail(failed, why);
            }
        }
    }

    /// Drop the summary in the making. The caller goes on.
    pub(super) fn stop_compaction(&mut self, why: String) {
        if !faulty!(self, ForgetStopCompaction) {
            self.give(Effect::StopCompaction);
        }
        self.end_compaction(Err(why), self.gauge.size, None);
    }

    fn take_compaction(&mut self) -> Option<Reason> {
        match mem::replace(&mut self.stage, Stage::Over) {
            Stage::Compacting(reason) => Some(*reason),
            other => {
                self.stage = other;
                None
            }
        }
    }
}
