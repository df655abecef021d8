//! Opening: what a turn begins with, and whether it may begin (TURN-26, TURN-31, TURN-68, UP-7).

use super::Loop;
use super::hooks::Question;
use crate::{
    AnswerText, Content, ContinuationKind, Detail, EventKind, Hook, HookVerdict, Outcome,
    TurnFinish, TurnStop, TurnTrigger, message::joined_text,
};
use std::collections::VecDeque;

/// What a turn begins with.
#[derive(Clone, Debug)]
pub(super) struct Opening {
    pub(super) trigger: TurnTrigger,
    /// The prompt, or what a checkpoint wants done.
    pub(super) given: Option<Words>,
    /// Steering or follow-ups.
    pub(super) heard: Vec<Words>,
}

impl Opening {
    /// After a tool round trip, or because somebody has more to say.
    pub(super) fn continuation(given: Option<Words>) -> Self {
        Self {
            trigger: TurnTrigger::Continuation,
            given,
            heard: Vec::new(),
        }
    }
}

/// What one message of a person is made of.
#[derive(Clone, Debug)]
pub(super) struct Words {
    pub(super) content: Vec<Content>,
    /// What an input filter wants the model to know of it.
    warning: Option<String>,
}

impl From<Vec<Content>> for Words {
    fn from(content: Vec<Content>) -> Self {
        Self {
            content,
            warning: None,
        }
    }
}

impl Words {
    /// The words as the model reads them.
    pub(super) fn into_content(self) -> Vec<Content> {
        let mut content = self.content;
        if let Some(warning) = self.warning {
            content.push(Content::text(format!("[Warning: {warning}]")));
        }
        content
    }
}

/// What comes after a turn, or before the first.
#[derive(Clone, Debug)]
pub(super) enum Next {
    /// A turn.
    Turn(Opening),
    /// The model has said all: the end, unless somebody has more to say.
    Rest {
        /// Its last words.
        text: AnswerText,
        /// The checkpoint has agreed.
        checked: bool,
    },
    /// The end, since an answer exceeds a bound on its size: the sentence that says which.
    Overrun(String),
    /// The end.
    End(Outcome, Option<Detail>),
}

/// Words on their way through the input filters.
#[derive(Clone, Debug)]
pub(super) struct Hearing {
    /// What comes next if none gets through.
    next: Next,
    passed: Vec<Words>,
    waiting: VecDeque<Vec<Content>>,
}

impl Loop {
    /// Begin with the prompt. The filters hear it first.
    pub(super) fn take_prompt(&mut self) {
        let prompt = std::mem::take(&mut self.spec.input);
        if prompt.is_empty() {
            self.first_turn(None);
        } else if self.spec.hooks.input {
            let hook = filter(&prompt);
            self.ask(hook, Question::Prompt(prompt));
        } else {
            self.first_turn(Some(prompt.into()));
        }
    }

    /// TURN-16 to TURN-22: what the first turn is caused by.
    fn first_turn(&mut self, given: Option<Words>) {
        let trigger = match self.spec.continuation_kind {
            ContinuationKind::Initial => self.spec.trigger,
            ContinuationKind::Branch => TurnTrigger::Branch,
            ContinuationKind::Default | ContinuationKind::Rerun | ContinuationKind::Compaction => {
                TurnTrigger::Continuation
            }
        };
        self.go_on(Next::Turn(Opening {
            trigger,
            given,
            heard: Vec::new(),
        }));
    }

    /// The filters' word on the prompt: without it there is no loop to speak of (C-7).
    pub(super) fn prompt_judged(&mut self, prompt: Vec<Content>, verdict: HookVerdict) {
        match judged(prompt, verdict) {
            Ok(words) => self.first_turn(Some(words)),
            Err(reason) => {
                self.mint.emit(EventKind::InputRejected {
                    reason: reason.clone(),
                });
                let outcome = Outcome::Stopped(TurnStop::InvalidInput);
                self.commit(outcome, Some(Detail::Rejection { reason }));
            }
        }
    }

    /// What comes next, unless the loop is halted. Time that runs out when nothing is left to do
    /// changes nothing (C-4).
    pub(super) fn go_on(&mut self, next: Next) {
        match (self.halt, next) {
            (Some(halt), Next::Turn(_)) => self.conclude(halt),
            (Some(halt), Next::Rest { checked: false, .. }) if self.spec.hooks.checkpoint => {
                self.conclude(halt);
            }
            (Some(halt), next) if !halt.is_time_up() => {
                drop(next);
                self.conclude(halt);
            }
            (_, Next::End(outcome, detail)) => self.commit(outcome, detail),
            (_, Next::Overrun(text)) => self.stop_at_answer_limit(text),
            (None, Next::Turn(opening)) => {
                if let Some(limit) = self.limit_reached() {
                    return self.stop_at_limit(limit, opening);
                }
                let mut waiting = self.queues.take_steering(self.spec.steering);
                if faulty!(self, HearFollowUpsEarly) {
                    waiting.extend(self.queues.take_follow_ups(self.spec.follow_ups));
                }
                self.hear(Hearing {
                    next: Next::Turn(opening),
                    passed: Vec::new(),
                    waiting,
                });
            }
            (halt, Next::Rest { text, checked }) => {
                self.rest(text, checked, halt.is_none());
            }
        }
    }

    /// The model has said all. Has anybody else? Steering first, then the checkpoint, then follow-ups.
    fn rest(&mut self, text: AnswerText, checked: bool, may_go_on: bool) {
        let hears = may_go_on && self.limit_reached().is_none();
        let mut waiting = VecDeque::new();
        if hears {
            waiting = self.queues.take_steering(self.spec.steering);
        }
        if waiting.is_empty() && !checked && self.spec.hooks.checkpoint {
            return self.ask(Hook::Checkpoint, Question::Checkpoint(text));
        }
        if waiting.is_empty() && hears {
            waiting = self.queues.take_follow_ups(self.spec.follow_ups);
        }
        if waiting.is_empty() {
            let finish = TurnFinish::AssistantMessage { text };
            return self.commit(Outcome::Finished(finish), None);
        }
        self.hear(Hearing {
            next: Next::Rest { text, checked },
            passed: Vec::new(),
            waiting,
        });
    }

    /// Let the filters hear what waits, one after the other, then begin the turn.
    fn hear(&mut self, mut hearing: Hearing) {
        while let Some(content) = hearing.waiting.pop_front() {
            if self.spec.hooks.input {
                let hook = filter(&content);
                return self.ask(hook, Question::Words(content, hearing));
            }
            hearing.passed.push(content.into());
        }
        match hearing.next {
            Next::Turn(mut opening) => {
                opening.heard = hearing.passed;
                self.before_turn(opening);
            }
            next => {
                // The model has said all: a limit that is reached by now ends nothing (C-4).
                if self.limit_reached().is_some() {
                    self.give_back(std::mem::take(&mut hearing.passed));
                }
                if hearing.passed.is_empty() {
                    return self.go_on(next);
                }
                let mut opening = Opening::continuation(None);
                opening.heard = hearing.passed;
                self.before_turn(opening);
            }
        }
    }

    /// The filters' word on steering or a follow-up: only these words are dropped (C-7, D-7).
    pub(super) fn words_judged(
        &mut self,
        content: Vec<Content>,
        verdict: HookVerdict,
        mut hearing: Hearing,
    ) {
        match judged(content, verdict) {
            Ok(words) => hearing.passed.push(words),
            Err(reason) => self.mint.emit(EventKind::InputRejected { reason }),
        }
        self.hear(hearing);
    }

    /// Takes a turn from the prompt's limits. While filters were asked, others may have taken the last.
    fn before_turn(&mut self, mut opening: Opening) {
        if let Some(limit) = self.limit_reached() {
            self.give_back(std::mem::take(&mut opening.heard));
            return self.stop_at_limit(limit, opening);
        }
        self.own.turns += 1;
        self.ask_before_turn(opening);
    }

    pub(super) fn ask_before_turn(&mut self, opening: Opening) {
        if self.spec.hooks.before_turn {
            let turn_index = self.turns;
            self.ask(
                Hook::BeforeTurn { turn_index },
                Question::BeforeTurn(opening),
            );
        } else {
            self.begin_turn(opening);
        }
    }

    /// A turn that was not begun: it is not counted, and what people said for it has not been heard.
    pub(super) fn abandon(&mut self, opening: Opening) {
        let is_counted = self.last_reply.is_none() || self.spec.own_turns.is_some();
        self.own.turns = self.own.turns.saturating_sub(is_counted.into());
        self.give_back(opening.heard);
    }

    fn give_back(&mut self, heard: Vec<Words>) {
        for words in heard {
            self.unheard(words.content);
        }
    }

    /// The same while the filters were at work.
    pub(super) fn abandon_hearing(&mut self, content: Vec<Content>, hearing: Hearing) {
        self.give_back(hearing.passed);
        self.unheard(content);
        for content in hearing.waiting {
            self.unheard(content);
        }
    }
}

fn filter(content: &[Content]) -> Hook {
    Hook::Input {
        text: joined_text(content),
    }
}

fn judged(content: Vec<Content>, verdict: HookVerdict) -> Result<Words, String> {
    match verdict {
        HookVerdict::Go | HookVerdict::Inject(_) => Ok(content.into()),
        HookVerdict::Warn(warning) => Ok(Words {
            content,
            warning: Some(warning),
        }),
        HookVerdict::Stop(reason) => Err(reason),
    }
}
