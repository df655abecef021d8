//! World: all that can happen to a loop at this moment, told from the effects it gave so far.
//!
//! Three tools: `c0` asks a person, who may allow, deny, cancel, or never answer; `c1` is refused or
//! unknown; `c2` hangs until it is stopped or killed. The second answer may be anything.

use crate::{
    CallDetail, CallId, Content, FailureKind, FaultKind, Input, ModelDelta, ModelFault, ModelStop,
    Response, ToolCall, ToolEnvelope, Usage, Verdict,
};
use std::{collections::BTreeMap, sync::Arc};

/// What the world is busy with for the loop.
#[derive(Clone, Debug, Default)]
pub(super) struct World {
    /// The turn that the model answers for.
    pub(super) model: Option<u32>,
    pub(super) deltas: u8,
    pub(super) calls: BTreeMap<String, CallState>,
    pub(super) grace: bool,
    pub(super) commit: bool,
    pub(super) sealed: bool,
    pub(super) over: bool,
    /// How it was over, for the list of what was reached.
    pub(super) ending: String,
    pub(super) cancelled: bool,
    pub(super) time_up: bool,
    pub(super) lane_lost: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallState {
    Gated,
    Asked,
    Allowed,
    Running { stopped: bool, words: u8 },
    Over,
}

pub(super) const CALLS: [&str; 5] = ["c0", "c1", "c2", "d1", "d2"];

impl World {
    /// What may happen next.
    pub(super) fn moves(&self) -> Vec<Input> {
        let mut moves = Vec::new();
        if self.over {
            return moves;
        }
        if let Some(turn) = self.model {
            if self.deltas < 1 {
                moves.push(delta());
            }
            moves.extend(answers(turn));
            moves.push(Input::ModelFailed(fault()));
        }
        for (id, state) in &self.calls {
            call_moves(id, *state, &mut moves);
        }
        if self.grace {
            moves.push(Input::GraceOver);
        }
        if self.commit {
            moves.push(Input::Committed);
            moves.push(Input::CommitFailed(crate::CommitFault::HeadConflict));
        }
        if !self.sealed {
            if !self.cancelled && !self.lane_lost {
                moves.push(Input::Cancel);
            }
            if !self.time_up && !self.cancelled && !self.lane_lost {
                moves.push(Input::TimeUp);
            }
            if !self.lane_lost {
                moves.push(Input::LaneLost);
            }
        }
        moves
    }

    /// Words that come too late, too early, or twice. None of them may change anything (R5).
    pub(super) fn misfits(&self) -> Vec<Input> {
        let mut misfits = Vec::new();
        if self.model.is_none() {
            misfits.extend([delta(), Input::ModelFailed(fault())]);
            misfits.extend(answers(0));
        }
        for id in CALLS.into_iter().chain(["unknown"]) {
            let state = self.calls.get(id).copied().unwrap_or(CallState::Over);
            let call_id = CallId::from(id);
            let (gated, running) = match state {
                CallState::Gated | CallState::Asked => (true, false),
                CallState::Allowed | CallState::Running { .. } => (false, true),
                CallState::Over => (false, false),
            };
            if state != CallState::Gated {
                misfits.push(asking(id));
            }
            if !gated {
                misfits.push(verdict(id, Verdict::Allow));
                misfits.push(verdict(id, Verdict::Cancelled));
            }
            if !running {
                misfits.extend(words(id));
            }
            if !gated && !running {
                let envelope = ToolEnvelope::text("late");
                misfits.push(Input::Ended { call_id, envelope });
            }
        }
        if !self.commit {
            misfits.push(Input::Committed);
            misfits.push(Input::CommitFailed(crate::CommitFault::HeadConflict));
        }
        if !(self.cancelled || self.time_up || self.lane_lost) || self.sealed {
            misfits.push(Input::GraceOver);
        }
        if self.sealed || self.cancelled {
            misfits.extend([Input::Cancel, Input::TimeUp]);
        }
        if self.sealed {
            misfits.push(Input::LaneLost);
        }
        misfits
    }

    /// What a kind world would do next; it never leaves anything unanswered.
    pub(super) fn kindest(&self) -> Option<Input> {
        if let Some(turn) = self.model {
            return answers(turn.max(1)).into_iter().next();
        }
        if self.commit {
            return Some(Input::Committed);
        }
        self.calls.iter().find_map(|(id, state)| match state {
            CallState::Gated | CallState::Asked => Some(verdict(id, Verdict::Allow)),
            CallState::Allowed | CallState::Running { .. } => {
                Some(ended(id, ToolEnvelope::text("done")))
            }
            CallState::Over => None,
        })
    }

    /// Take note of what the world is about to say.
    pub(super) fn say(&mut self, input: &Input) {
        match input {
            Input::Delta(_) => self.deltas += 1,
            Input::Answered { .. } | Input::ModelFailed(_) => self.model = None,
            Input::Asking { call_id, .. } => self.set(call_id, CallState::Asked),
            Input::Verdict { call_id, verdict } => {
                let state = match verdict {
                    Verdict::Allow => CallState::Allowed,
                    Verdict::Deny(_) => CallState::Over,
                    Verdict::Cancelled => {
                        self.cancelled = true;
                        CallState::Over
                    }
                };
                self.set(call_id, state);
            }
            Input::Shows { call_id, .. }
            | Input::Printed { call_id, .. }
            | Input::Progressed { call_id, .. }
            | Input::ChildSpent { call_id, .. }
            | Input::Planned { call_id, .. } => {
                if let Some(CallState::Running { words, .. }) = self.calls.get_mut(call_id.as_str())
                {
                    *words += 1;
                }
            }
            Input::Ended { call_id, .. } => self.set(call_id, CallState::Over),
            Input::Cancel => self.cancelled = true,
            Input::GraceOver => self.grace = false,
            Input::TimeUp => self.time_up = true,
            Input::Committed | Input::CommitFailed(_) => self.commit = false,
            Input::LaneLost => self.lane_lost = true,
            Input::Retried { .. }
            | Input::Steer(_)
            | Input::FollowUp(_)
            | Input::Hooked(_)
            | Input::Compacted { .. }
            | Input::Noticed(_) => {}
        }
    }

    pub(super) fn set(&mut self, call_id: &CallId, state: CallState) {
        self.calls.insert(call_id.to_string(), state);
    }

    /// The calls in one of these states.
    pub(super) fn busy(&self, is: impl Fn(CallState) -> bool) -> Vec<&str> {
        let busy = self.calls.iter().filter(|(_, state)| is(**state));
        busy.map(|(id, _)| id.as_str()).collect()
    }
}

fn call_moves(id: &str, state: CallState, moves: &mut Vec<Input>) {
    match (id, state) {
        (_, CallState::Over | CallState::Allowed) => {}
        ("c0", CallState::Gated) => moves.push(asking(id)),
        ("c0", CallState::Asked) => moves.extend([
            verdict(id, Verdict::Allow),
            verdict(id, Verdict::Deny("not this".to_owned())),
            verdict(id, Verdict::Cancelled),
        ]),
        ("c1", _) => {
            if state == CallState::Gated {
                moves.push(asking(id));
            }
            moves.extend([
                verdict(id, Verdict::Deny("the policy forbids it".to_owned())),
                ended(
                    id,
                    ToolEnvelope::failed(FailureKind::NotFound, "no such tool"),
                ),
            ])
        }
        (_, CallState::Gated | CallState::Asked) => moves.push(verdict(id, Verdict::Allow)),
        (
            _,
            CallState::Running {
                stopped,
                words: said,
            },
        ) => {
            let most = match id {
                "c0" => 3,
                "c2" => 1,
                _ => 0,
            };
            if said < most {
                moves.push(words(id).swap_remove(usize::from(said)));
            }
            if stopped {
                let envelope = ToolEnvelope::failed(FailureKind::Cancelled, "stopped");
                moves.push(ended(id, envelope));
            }
            if id != "c2" {
                let failure = ToolEnvelope::failed(FailureKind::ExecutionError, "exit code 1");
                moves.extend([ended(id, ToolEnvelope::text("done")), ended(id, failure)]);
            }
        }
    }
}

fn answers(turn: u32) -> Vec<Input> {
    let calls = |ids: &[&str]| ids.iter().map(|id| call(id)).collect();
    let later = format!("d{turn}");
    if turn == 0 {
        let hanging = answer(calls(&CALLS[..3]), ModelStop::ToolUse, None);
        let ending = answer(calls(&CALLS[..2]), ModelStop::ToolUse, None);
        return vec![hanging, ending];
    }
    let prose = || vec![Content::text("done")];
    let usage = Some(Usage {
        input: 10,
        output: 2,
        ..Usage::default()
    });
    vec![
        answer(prose(), ModelStop::EndTurn, usage),
        answer(Vec::new(), ModelStop::EndTurn, None),
        answer(calls(&[&later]), ModelStop::Length, usage),
        answer(calls(&[&later]), ModelStop::Refusal, None),
        answer(calls(&[&later]), ModelStop::ToolUse, usage),
    ]
}

fn answer(content: Vec<Content>, stop: ModelStop, usage: Option<Usage>) -> Input {
    let response = Response {
        content,
        stop,
        raw_stop: None,
        usage,
        model: "m".to_owned(),
        provider: "p".to_owned(),
        tool_results: Vec::new(),
    };
    Input::Answered {
        response,
        calls: Vec::new(),
    }
}

fn call(id: &str) -> Content {
    Content::ToolCall(ToolCall {
        call_id: id.into(),
        name: "tool".to_owned(),
        args: Arc::new(serde_json::Value::Null),
    })
}

fn delta() -> Input {
    Input::Delta(ModelDelta::Text {
        block: 0,
        text: "a".to_owned(),
    })
}

fn fault() -> ModelFault {
    ModelFault {
        kind: FaultKind::Network,
        message: "the connection broke".to_owned(),
        status: None,
        retry_after: None,
    }
}

fn asking(id: &str) -> Input {
    Input::Asking {
        call_id: id.into(),
        detail: CallDetail::default(),
    }
}

fn verdict(id: &str, verdict: Verdict) -> Input {
    Input::Verdict {
        call_id: id.into(),
        verdict,
    }
}

fn ended(id: &str, envelope: ToolEnvelope) -> Input {
    Input::Ended {
        call_id: id.into(),
        envelope,
    }
}

fn words(id: &str) -> Vec<Input> {
    vec![
        Input::Printed {
            call_id: id.into(),
            text: "out".to_owned(),
        },
        Input::Shows {
            call_id: id.into(),
            detail: CallDetail::default(),
        },
        Input::Planned {
            call_id: id.into(),
            entries: Vec::new(),
        },
    ]
}
