//! Moves: all that can happen to a loop at this moment, what cannot, and what would be kind.

use super::scene::Scene;
use super::world::{CallState, World};
use crate::{
    Announced, CallDetail, CallId, ChildUsage, CompactionBlock, Content, ContextSize, FailureKind,
    FaultKind, Hook, HookVerdict, Input, Limits, ModelDelta, ModelFault, ModelStop, Response,
    Spending, Timestamp, ToolCall, ToolControl, ToolEnvelope, Usage, Verdict,
};
use std::sync::Arc;

/// What a call may do.
#[derive(Clone, Debug, Default)]
pub(super) struct Tool {
    /// A person is asked, who may allow, deny, cancel, or never answer.
    pub(super) is_asked: bool,
    /// It is refused or unknown.
    pub(super) never_runs: bool,
    /// It runs until it is stopped or killed.
    pub(super) hangs: bool,
    /// It may fail.
    pub(super) fails: bool,
    /// How much it may say.
    pub(super) words: u8,
    /// It has a child that spends.
    pub(super) spends: bool,
    /// It may decide about the loop.
    pub(super) control: Option<ToolControl>,
}

/// Fragment that the model repeats.
pub(super) const FRAGMENT: &str = "aaa";

const CALLS: [&str; 5] = ["c0", "c1", "c2", "d1", "d2"];

impl World {
    /// What may happen next.
    pub(super) fn moves(&self) -> Vec<Input> {
        let mut moves = Vec::new();
        if self.over {
            return moves;
        }
        if let Some(turn) = self.model {
            if self.deltas < self.scene.fragments() {
                moves.push(delta());
            }
            if self.scene == Scene::Long && !self.silent {
                moves.push(silent());
            }
            moves.extend(self.scene.answers(turn));
            moves.extend(self.scene.faults());
        }
        for (id, state) in &self.calls {
            call_moves(id, *state, &self.scene.tool(id), &mut moves);
        }
        if let Some(hook) = &self.hook {
            moves.extend(self.verdicts(hook));
        }
        if self.compacting {
            moves.extend([compacted(), not_compacted()]);
        }
        if self.scene.has_people() {
            for (word, input) in [
                ("steer", Input::Steer as fn(_) -> _),
                ("follow", Input::FollowUp),
            ] {
                if !self.words.contains_key(word) {
                    moves.push(input(vec![Content::text(word)]));
                }
            }
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
            if !self.halted() {
                moves.push(Input::TimeUp);
            }
            if !self.lane_lost {
                moves.push(Input::LaneLost);
            }
            if self.scene.is_shared() && !self.spent {
                moves.push(spent_elsewhere());
            }
        }
        moves
    }

    fn verdicts(&self, hook: &Hook) -> Vec<Input> {
        let no = || HookVerdict::Stop("no".to_owned());
        let verdicts = match hook {
            Hook::Input { .. }
            | Hook::BeforeTurn { .. }
            | Hook::BeforeTool(_)
            | Hook::BeforeCompaction(_) => {
                vec![HookVerdict::Go, no()]
            }
            Hook::AfterTurn { .. }
            | Hook::AfterTool { .. }
            | Hook::AfterCompaction { .. }
            | Hook::OnError { .. } => vec![HookVerdict::Go],
            Hook::Checkpoint => {
                let more = HookVerdict::Inject(vec![Content::text("more")]);
                let mut verdicts = vec![HookVerdict::Go, no()];
                verdicts.extend((!self.injected).then_some(more));
                verdicts
            }
        };
        verdicts.into_iter().map(Input::Hooked).collect()
    }

    /// Words that come too late, too early, or twice. None of them may change anything (R5).
    pub(super) fn misfits(&self) -> Vec<Input> {
        let mut misfits = vec![Input::Steer(Vec::new()), Input::FollowUp(Vec::new())];
        if self.model.is_none() {
            misfits.extend([delta(), silent(), failed(FaultKind::Network)]);
            misfits.push(answer(&["c0"], "", ModelStop::ToolUse, None, Vec::new()));
        }
        for id in CALLS.into_iter().chain(["unknown"]) {
            let state = self.calls.get(id).copied().unwrap_or(CallState::Over);
            let call_id = CallId::from(id);
            let (gated, running) = match state {
                CallState::Gated | CallState::Asked => (true, false),
                CallState::Running { .. } => (false, true),
                CallState::Allowed | CallState::Over => (false, false),
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
                misfits.push(spent(id));
            }
            if !gated && !running {
                let envelope = ToolEnvelope::text("late");
                misfits.push(Input::Ended { call_id, envelope });
            }
        }
        if self.hook.is_none() {
            misfits.push(Input::Hooked(HookVerdict::Stop("late".to_owned())));
        }
        if !self.compacting {
            misfits.push(compacted());
        }
        if !self.commit {
            misfits.push(Input::Committed);
            misfits.push(Input::CommitFailed(crate::CommitFault::HeadConflict));
        }
        if !self.halted() || self.sealed {
            misfits.push(Input::GraceOver);
        }
        if self.sealed || self.cancelled {
            misfits.extend([Input::Cancel, Input::TimeUp]);
        }
        if self.sealed {
            misfits.extend([Input::LaneLost, Input::Noticed("late".to_owned())]);
        }
        misfits
    }

    /// What a kind world would do next; it never leaves anything unanswered.
    pub(super) fn kindest(&self) -> Option<Input> {
        if self.hook.is_some() {
            return Some(Input::Hooked(HookVerdict::Go));
        }
        if self.compacting {
            return Some(not_compacted());
        }
        if let Some(turn) = self.model {
            return self.scene.answers(turn.max(1)).into_iter().next();
        }
        if self.commit {
            return Some(Input::Committed);
        }
        self.calls.iter().find_map(|(id, state)| match state {
            CallState::Gated | CallState::Asked => Some(verdict(id, Verdict::Allow)),
            CallState::Running { .. } => Some(ended(id, ToolEnvelope::text("done"))),
            CallState::Allowed | CallState::Over => None,
        })
    }
}

fn call_moves(id: &str, state: CallState, tool: &Tool, moves: &mut Vec<Input>) {
    let failed = |kind, why| ended(id, ToolEnvelope::failed(kind, why));
    match state {
        CallState::Over | CallState::Allowed => {}
        CallState::Gated | CallState::Asked if tool.never_runs => {
            if state == CallState::Gated {
                moves.push(asking(id));
            }
            let denied = Verdict::Deny("the policy forbids it".to_owned());
            let unknown = failed(FailureKind::NotFound, "no such tool");
            moves.extend([verdict(id, denied), unknown]);
        }
        CallState::Gated if tool.is_asked => moves.push(asking(id)),
        CallState::Asked if tool.is_asked => moves.extend([
            verdict(id, Verdict::Allow),
            verdict(id, Verdict::Deny("not this".to_owned())),
            verdict(id, Verdict::Cancelled),
        ]),
        CallState::Gated | CallState::Asked => moves.push(verdict(id, Verdict::Allow)),
        CallState::Running {
            stopped,
            words: said,
        } => {
            if said < tool.words {
                moves.push(words(id).swap_remove(usize::from(said)));
            }
            if tool.spends && said == 0 {
                moves.push(spent(id));
            }
            if stopped {
                moves.push(failed(FailureKind::Cancelled, "stopped"));
            }
            if !tool.hangs {
                moves.push(ended(id, ToolEnvelope::text("done")));
            }
            if tool.fails {
                moves.push(failed(FailureKind::ExecutionError, "exit code 1"));
            }
            if let Some(control) = &tool.control {
                let envelope = ToolEnvelope {
                    control: Some(Box::new(control.clone())),
                    ..ToolEnvelope::text("decided")
                };
                moves.push(ended(id, envelope));
            }
        }
    }
}

/// An answer that asks for these calls, or says `text`; with its cost, if that is known.
pub(super) fn answer(
    ids: &[&str],
    text: &str,
    stop: ModelStop,
    input: Option<u64>,
    calls: Vec<Announced>,
) -> Input {
    let mut content: Vec<Content> = ids.iter().map(|id| call(id)).collect();
    if !text.is_empty() {
        content.push(Content::text(text));
    }
    let response = Response {
        content,
        stop,
        raw_stop: None,
        usage: input.map(|input| Usage {
            input,
            ..Usage::default()
        }),
        model: "m".to_owned(),
        provider: "p".to_owned(),
        tool_results: Vec::new(),
    };
    Input::Answered { response, calls }
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
        text: FRAGMENT.to_owned(),
    })
}

fn silent() -> Input {
    Input::Silent {
        silent_ms: 30_000,
        is_connected: true,
    }
}

pub(super) fn failed(kind: FaultKind) -> Input {
    Input::ModelFailed(ModelFault {
        kind,
        message: "the call failed".to_owned(),
        status: None,
        retry_after: None,
    })
}

fn compacted() -> Input {
    let block = CompactionBlock {
        keep_first: Vec::new(),
        keep_compacted: Vec::new(),
        keep_recent: Vec::new(),
        through: "s.cfg.0.m0".into(),
        created_at: Timestamp::default(),
    };
    Input::Compacted {
        block: Ok(block),
        after: ContextSize {
            tokens: 10,
            messages: 1,
        },
        usage: None,
    }
}

fn not_compacted() -> Input {
    Input::Compacted {
        block: Err("no model".to_owned()),
        after: ContextSize::default(),
        usage: None,
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

fn spent(id: &str) -> Input {
    let usage = Usage {
        input: 3,
        ..Usage::default()
    };
    Input::ChildSpent {
        call_id: id.into(),
        child: ChildUsage {
            session_id: "child".into(),
            source: crate::usage::source::SUBAGENT.to_owned(),
            model: "p/m".to_owned(),
            iteration: 0,
            usage: Some(usage),
            cumulative: usage,
        },
    }
}

/// Others have spent all of the prompt's tokens.
fn spent_elsewhere() -> Input {
    Input::OtherSpending(Spending {
        tokens: Limits::default().tokens,
        ..Spending::default()
    })
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
