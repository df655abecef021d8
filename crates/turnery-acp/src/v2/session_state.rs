//! Reports whether a session is idle, running or waiting for the user (V2-8).
//!
//! The session's outbox, owned by the session task, holds the state, so updates follow the order of events.
//! Background work is not reported in any update (V2-9).

use crate::transport::update_writer::UpdateWriter;
use agent_client_protocol_schema::v2::{
    IdleStateUpdate, RequiresActionStateUpdate, RunningStateUpdate, SessionUpdate, StateUpdate,
};

/// State of a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum SessionState {
    #[default]
    Idle,
    Running,
    RequiresAction,
}

/// Reporter of one session's state; remembers what the client was sent.
#[derive(Debug, Default)]
pub(super) struct StateReporter {
    reported: SessionState,
    /// Number of running calls.
    running_calls: usize,
    /// True while the user is asked something.
    awaits_user: bool,
}

impl StateReporter {
    /// Returns true if the last reported state is idle.
    pub(super) fn is_idle(&self) -> bool {
        self.reported == SessionState::Idle
    }

    /// Starts a loop, the first of a prompt or a later one.
    pub(super) fn begin_loop(&mut self, to: &mut UpdateWriter) {
        self.running_calls = 0;
        self.awaits_user = false;
        self.report_change(to);
    }

    /// Starts a call.
    pub(super) fn begin_call(&mut self, to: &mut UpdateWriter) {
        self.running_calls += 1;
        self.report_change(to);
    }

    /// Ends a call that ran.
    pub(super) fn end_call(&mut self, to: &mut UpdateWriter) {
        self.running_calls = self.running_calls.saturating_sub(1);
        self.report_change(to);
    }

    /// Starts waiting for the user.
    pub(super) fn begin_question(&mut self, to: &mut UpdateWriter) {
        self.awaits_user = true;
        self.report_change(to);
    }

    /// Ends waiting for the user.
    pub(super) fn end_question(&mut self, to: &mut UpdateWriter) {
        self.awaits_user = false;
        self.report_change(to);
    }

    /// Reports the idle state; returns false if the session was already idle.
    pub(super) fn become_idle(&mut self, last: IdleStateUpdate, to: &mut UpdateWriter) -> bool {
        if self.is_idle() {
            return false;
        }
        *self = Self::default();
        write_state(StateUpdate::Idle(last), to);
        true
    }

    /// Reports the state if it changed. The session waits for the user only if no call is running.
    fn report_change(&mut self, to: &mut UpdateWriter) {
        let now = match self.awaits_user && self.running_calls == 0 {
            true => SessionState::RequiresAction,
            false => SessionState::Running,
        };
        if std::mem::replace(&mut self.reported, now) != now {
            write_state(now.to_update(), to);
        }
    }
}

impl SessionState {
    fn to_update(self) -> StateUpdate {
        match self {
            Self::Idle => StateUpdate::Idle(IdleStateUpdate::new()),
            Self::Running => StateUpdate::Running(RunningStateUpdate::new()),
            Self::RequiresAction => StateUpdate::RequiresAction(RequiresActionStateUpdate::new()),
        }
    }
}

fn write_state(state: StateUpdate, to: &mut UpdateWriter) {
    to.write_update(&SessionUpdate::StateUpdate(state));
}

/// Writes the state of a session that was just opened (V2-10).
pub(super) fn write_idle(to: &mut UpdateWriter) {
    write_state(SessionState::Idle.to_update(), to);
}

/// Writes a running and an idle state around the answer of a command that needed no prompt.
pub(super) fn write_running_then_idle(
    between: impl FnOnce(&mut UpdateWriter),
    to: &mut UpdateWriter,
) {
    write_state(SessionState::Running.to_update(), to);
    between(to);
    write_state(
        StateUpdate::Idle(super::stop_reason::idle_after_command()),
        to,
    );
}
