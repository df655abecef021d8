//! Hooks: others are asked, one at a time, and the loop waits for their answer (section 6.3).
//!
//! What comes before something may say no; what comes after it is only told, and its answer is no more
//! than the sign to go on. Once halted, nobody is asked for leave any more, and those that are told
//! have the grace to be done; so a turn that began always gets its `AfterTurn` (R1).

use super::compacting::Reason;
use super::opening::{Hearing, Next, Opening};
use super::{Effect, Loop, Stage};
use crate::{AnswerText, Content, Detail, Hook, HookVerdict, MessageId, Outcome, TurnStop, Usage};
use std::mem;

/// A question under way, with what is to be done with the answer. Those about calls are in their batch.
#[derive(Clone, Debug)]
pub(super) enum Question {
    /// May the prompt be said?
    Prompt(Vec<Content>),
    /// May this steering or follow-up be said?
    Words(Vec<Content>, Hearing),
    BeforeTurn(Opening),
    AfterTurn(Next),
    /// The loop has failed; its turn, if there is one, is still open.
    OnError(Failed),
    BeforeCompaction(Reason),
    AfterCompaction(Reason),
    /// The model has said this: is the work done?
    Checkpoint(AnswerText),
}

/// How a loop ends that failed.
#[derive(Clone, Debug)]
pub(super) struct Failed {
    pub(super) usage: Option<Usage>,
    /// What the model was told of the calls of its turn.
    pub(super) tool_results: Vec<MessageId>,
    pub(super) outcome: Outcome,
    pub(super) detail: Detail,
}

impl Loop {
    /// Whether a hook is told of something.
    pub(super) fn asks_after(&self, wanted: bool) -> bool {
        wanted && !self.killed
    }

    pub(super) fn ask(&mut self, hook: Hook, question: Question) {
        self.give(Effect::Hook(hook));
        self.stage = Stage::Asking(Box::new(question));
        if self.halt.is_some() {
            self.start_grace();
        }
    }

    /// A hook's answer.
    pub(super) fn hooked(&mut self, verdict: HookVerdict) {
        match mem::replace(&mut self.stage, Stage::Over) {
            Stage::Asking(question) => self.answer(*question, verdict),
            Stage::Calling(batch) => self.hooked_call(batch, verdict),
            other => self.stage = other,
        }
    }

    fn answer(&mut self, question: Question, verdict: HookVerdict) {
        match (question, verdict) {
            (Question::Prompt(prompt), verdict) => self.prompt_judged(prompt, verdict),
            (Question::Words(words, hearing), verdict) => {
                self.words_judged(words, verdict, hearing);
            }
            (Question::BeforeTurn(opening), HookVerdict::Stop(reason)) => {
                self.abandon(opening);
                self.plugin_abort(reason);
            }
            (
                Question::BeforeTurn(opening),
                HookVerdict::Go | HookVerdict::Warn(_) | HookVerdict::Inject(_),
            ) => self.begin_turn(opening),
            (Question::AfterTurn(next), _) => self.go_on(next),
            (Question::OnError(failed), _) => self.failed(failed),
            (Question::BeforeCompaction(Reason::Standalone), HookVerdict::Stop(why)) => {
                self.plugin_abort(why);
            }
            (Question::BeforeCompaction(reason), HookVerdict::Stop(why)) => {
                self.not_compacted(reason, why);
            }
            (
                Question::BeforeCompaction(reason),
                HookVerdict::Go | HookVerdict::Warn(_) | HookVerdict::Inject(_),
            ) => self.start_compaction(reason),
            (Question::AfterCompaction(reason), _) => self.compaction_done(reason),
            (Question::Checkpoint(_), HookVerdict::Stop(reason)) => self.plugin_abort(reason),
            (Question::Checkpoint(_), HookVerdict::Inject(content)) if !content.is_empty() => {
                self.go_on(Next::Turn(Opening::continuation(Some(content.into()))));
            }
            (
                Question::Checkpoint(text),
                HookVerdict::Go | HookVerdict::Warn(_) | HookVerdict::Inject(_),
            ) => self.go_on(Next::Rest {
                text,
                checked: true,
            }),
        }
    }

    /// A hook said no to the loop itself (C-26).
    fn plugin_abort(&mut self, reason: String) {
        let outcome = Outcome::Stopped(TurnStop::PluginAbort);
        self.commit(outcome, Some(Detail::Runtime { message: reason }));
    }

    /// Tell whoever wants to know that the loop failed, then end (C-28).
    pub(super) fn fail(&mut self, failed: Failed, message: String) {
        if faulty!(self, TellErrorTwice) {
            let message = message.clone();
            self.give(Effect::Hook(Hook::OnError { message }));
            self.give(Effect::StopHook);
        }
        if self.asks_after(self.spec.hooks.on_error) && !faulty!(self, ForgetOnError) {
            self.ask(Hook::OnError { message }, Question::OnError(failed));
        } else {
            self.failed(failed);
        }
    }

    fn failed(&mut self, failed: Failed) {
        let next = Next::End(failed.outcome, Some(failed.detail));
        if self.mint.turn_index.is_some() {
            self.close_turn(failed.usage, failed.tool_results, next);
        } else {
            self.go_on(next);
        }
    }

    /// Go on without an answer: the loop is halted.
    pub(super) fn unasked(&mut self, question: Question) {
        match question {
            Question::Prompt(_) | Question::Checkpoint(_) => self.go_on_halted(),
            Question::Words(words, hearing) => {
                self.abandon_hearing(words, hearing);
                self.go_on_halted();
            }
            Question::BeforeTurn(opening) => {
                self.abandon(opening);
                self.go_on_halted();
            }
            Question::AfterTurn(next) => self.go_on(next),
            Question::OnError(failed) => self.failed(failed),
            Question::BeforeCompaction(_) | Question::AfterCompaction(_) => self.cut_short(),
        }
    }

    /// Nothing is under way any more.
    pub(super) fn go_on_halted(&mut self) {
        self.go_on(Next::Turn(Opening::continuation(None)));
    }
}
