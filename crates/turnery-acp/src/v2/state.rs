//! State: whether a session is idle, at work, or waits for the person (V2-8).
//!
//! Owned by the session's outbox, which the session task owns: what is sent follows the events in
//! their order. Background work is not reported, on no update (V2-9).

use crate::update::UpdateWriter;
use agent_client_protocol_schema::v2::{
    IdleStateUpdate, RequiresActionStateUpdate, RunningStateUpdate, SessionUpdate, StateUpdate,
};

/// What a session is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Activity {
    #[default]
    Idle,
    Running,
    RequiresAction,
}

/// The state of one session, as the client knows it.
#[derive(Debug, Default)]
pub(super) struct State {
    known: Activity,
    /// Calls that are at work.
    at_work: usize,
    /// Whether a question waits for its answer.
    asked: bool,
}

impl State {
    /// Work has begun, or goes on in another loop.
    pub(super) fn begins(&mut self, to: &mut UpdateWriter) {
        self.at_work = 0;
        self.asked = false;
        self.tell(to);
    }

    /// A call begins to run.
    pub(super) fn call_runs(&mut self, to: &mut UpdateWriter) {
        self.at_work += 1;
        self.tell(to);
    }

    /// A call that ran has ended.
    pub(super) fn call_ended(&mut self, to: &mut UpdateWriter) {
        self.at_work = self.at_work.saturating_sub(1);
        self.tell(to);
    }

    /// The person is asked.
    pub(super) fn asks(&mut self, to: &mut UpdateWriter) {
        self.asked = true;
        self.tell(to);
    }

    /// The question is settled.
    pub(super) fn answered(&mut self, to: &mut UpdateWriter) {
        self.asked = false;
        self.tell(to);
    }

    /// Nothing is left to do; false if nothing was being done.
    pub(super) fn rests(&mut self, last: IdleStateUpdate, to: &mut UpdateWriter) -> bool {
        if self.known == Activity::Idle {
            return false;
        }
        *self = Self::default();
        say(StateUpdate::Idle(last), to);
        true
    }

    /// Only what is news: waiting for the person is all that it does, or something is at work.
    fn tell(&mut self, to: &mut UpdateWriter) {
        let now = match self.asked && self.at_work == 0 {
            true => Activity::RequiresAction,
            false => Activity::Running,
        };
        if std::mem::replace(&mut self.known, now) != now {
            say(now.to_wire(), to);
        }
    }
}

impl Activity {
    fn to_wire(self) -> StateUpdate {
        match self {
            Self::Idle => StateUpdate::Idle(IdleStateUpdate::new()),
            Self::Running => StateUpdate::Running(RunningStateUpdate::new()),
            Self::RequiresAction => StateUpdate::RequiresAction(RequiresActionStateUpdate::new()),
        }
    }
}

fn say(state: StateUpdate, to: &mut UpdateWriter) {
    to.update(&SessionUpdate::StateUpdate(state));
}

/// The state of a session that was opened just now (V2-10).
pub(super) fn at_rest(to: &mut UpdateWriter) {
    say(Activity::Idle.to_wire(), to);
}

/// A command was done that needed no work of the session: at work, and at rest again.
pub(super) fn at_once(between: impl FnOnce(&mut UpdateWriter), to: &mut UpdateWriter) {
    say(Activity::Running.to_wire(), to);
    between(to);
    say(StateUpdate::Idle(super::stop::command_done()), to);
}
