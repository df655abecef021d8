//! Scenarios: small loops, each with one hostile part of the host. Together they cover the machine; combined
//! they would have too many states.

use super::inputs::{self, ToolBehavior};
use crate::{
    CallAnnouncement, ContextBudget, ContextSize, ContinuationKind, HookSet, Input, Limits,
    LoopSpec, ModelErrorKind, ModelStop, Response, ResponseLimits, ResponseSize, Termination,
    ToolControl,
    tests::{fixtures, harness::model_failed},
};

/// Scenario of an exploration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scenario {
    /// Calls that need permission, are denied, unknown, or hang; responses of all kinds.
    Calls,
    /// Steering, follow-ups, input filters and checkpoints.
    Steering,
    /// Parallel calls, tool hooks, child sessions that spend tokens, and a frame switch.
    ParallelCalls,
    /// Full context, and a provider that reports an overflow.
    FullContext,
    /// Standalone compaction.
    StandaloneCompaction,
    /// Oversized responses, and a silent model.
    OversizedResponses,
    /// Prose, submitted values and steering where a loop must finish with a value.
    FinishRequired,
    /// A call that requests nested calls, one of which requests another.
    NestedCalls,
    /// Candidate of a parallel group, the one at this place.
    Candidate { place: usize },
}

/// Loops of the group that [`Scenario::Candidate`] belongs to.
pub(super) const CANDIDATES: [&str; 2] = ["s.cfg.1", "s.other.2"];

impl Scenario {
    pub(super) fn spec(self) -> LoopSpec {
        let limits = Limits {
            turns: 3,
            ..Limits::default()
        };
        let spec = fixtures::spec_with_limits(limits);
        let none = HookSet::default();
        let full = ContextBudget {
            size: ContextSize {
                tokens: 950,
                messages: 9,
            },
            window: Some(1_000),
            compact_at: 90,
        };
        match self {
            Self::Calls => spec,
            Self::Steering => LoopSpec {
                hooks: HookSet {
                    input: true,
                    checkpoint: true,
                    ..none
                },
                ..spec
            },
            Self::ParallelCalls => LoopSpec {
                hooks: HookSet {
                    before_tool: true,
                    after_tool: true,
                    ..none
                },
                ..spec
            },
            Self::FullContext => LoopSpec {
                hooks: HookSet {
                    before_turn: true,
                    after_turn: true,
                    compaction: true,
                    on_error: true,
                    ..none
                },
                context: full,
                ..spec
            },
            Self::OversizedResponses => LoopSpec {
                limits: Limits {
                    // One fragment fits, and so does "done"; two fragments do not.
                    response: ResponseLimits {
                        bytes: ResponseSize::BLOCK_OVERHEAD_BYTES as u64 + 4,
                        calls: 1,
                    },
                    ..limits
                },
                hooks: HookSet {
                    after_turn: true,
                    on_error: true,
                    ..none
                },
                ..spec
            },
            Self::FinishRequired => LoopSpec {
                hooks: HookSet {
                    checkpoint: true,
                    ..none
                },
                termination: Termination::FinishRequired,
                forced_reply: true,
                ..spec
            },
            Self::NestedCalls => LoopSpec {
                hooks: HookSet {
                    before_tool: true,
                    ..none
                },
                ..spec
            },
            Self::Candidate { place } => LoopSpec {
                loop_id: CANDIDATES[place].into(),
                parallel_group: CANDIDATES.map(Into::into).to_vec(),
                ..spec
            },
            Self::StandaloneCompaction => LoopSpec {
                hooks: HookSet {
                    compaction: true,
                    on_error: true,
                    ..none
                },
                continuation_kind: ContinuationKind::Compaction,
                input: Vec::new(),
                context: full,
                ..spec
            },
        }
    }

    /// Returns true if the user sends messages while the loop runs.
    pub(super) fn has_user_input(self) -> bool {
        matches!(self, Self::Steering | Self::FinishRequired)
    }

    /// Returns true if the rest of the prompt spends tokens.
    pub(super) fn has_shared_budget(self) -> bool {
        matches!(self, Self::Steering | Self::FullContext)
    }

    /// Returns the behavior of a call.
    pub(super) fn tool_behavior(self, id: &str) -> ToolBehavior {
        let runs = ToolBehavior::default();
        match (self, id) {
            (Self::Calls, "c0") => ToolBehavior {
                is_asked: true,
                max_updates: 3,
                can_fail: true,
                ..runs
            },
            (Self::Calls, "c1") => ToolBehavior {
                never_runs: true,
                ..runs
            },
            (Self::Calls, "c2") => ToolBehavior {
                runs_forever: true,
                max_updates: 1,
                ..runs
            },
            (Self::ParallelCalls, "c0") => ToolBehavior {
                has_child: true,
                control: Some(ToolControl::SwitchFrame {
                    task: "tests".to_owned(),
                }),
                ..runs
            },
            (Self::ParallelCalls, "c1") => ToolBehavior {
                is_asked: true,
                control: Some(ToolControl::Submit(1.into())),
                ..runs
            },
            (Self::FinishRequired, _) => ToolBehavior {
                can_fail: true,
                control: Some(ToolControl::Submit(1.into())),
                ..runs
            },
            (Self::NestedCalls, "c0") => ToolBehavior {
                max_updates: 1,
                ..runs
            },
            (Self::NestedCalls, "c0.0") => ToolBehavior {
                is_asked: true,
                control: Some(ToolControl::Submit(1.into())),
                ..runs
            },
            (Self::NestedCalls, "c0.1") => ToolBehavior {
                runs_forever: true,
                can_fail: true,
                ..runs
            },
            (Self::Calls, _) => ToolBehavior {
                can_fail: true,
                ..runs
            },
            _ => runs,
        }
    }

    /// Returns the nested calls that a running call may request.
    pub(super) fn nested_calls(self, id: &str) -> &'static [&'static str] {
        match (self, id) {
            (Self::NestedCalls, "c0") => &["c0.0", "c0.1", "c0.2"],
            (Self::NestedCalls, "c0.2") => &["c0.2.0"],
            _ => &[],
        }
    }

    /// Returns true if a call may run in parallel.
    pub(super) fn is_parallel(self, id: &str) -> bool {
        match self {
            Self::ParallelCalls => id != "c2",
            Self::NestedCalls => matches!(id, "c0.0" | "c0.1"),
            _ => false,
        }
    }

    /// Returns the possible responses of the model in a turn.
    pub(super) fn possible_responses(self, turn: u32) -> Vec<Input> {
        let later = format!("d{turn}");
        let later = later.as_str();
        let with = |ids: &[&str]| {
            let known = ids.iter().map(|id| CallAnnouncement {
                is_parallel: self.is_parallel(id),
                ..CallAnnouncement::default()
            });
            inputs::model_answered(ids, "", ModelStop::ToolUse, None, known.collect())
        };
        let prose =
            |cost| inputs::model_answered(&[], "done", ModelStop::EndTurn, cost, Vec::new());
        let cost = Some(12);
        match (self, turn) {
            (Self::Calls, 0) => vec![with(&["c0", "c1", "c2"]), with(&["c0", "c1"])],
            (Self::Calls, _) => vec![
                prose(cost),
                inputs::model_answered(&[], "", ModelStop::EndTurn, None, Vec::new()),
                inputs::model_answered(&[later], "", ModelStop::Length, cost, Vec::new()),
                inputs::model_answered(&[later], "", ModelStop::Refusal, None, Vec::new()),
                inputs::model_answered(&[later], "", ModelStop::ToolUse, cost, Vec::new()),
            ],
            (Self::Steering, 0) => vec![with(&["c0", "c1"])],
            (Self::ParallelCalls, 0) => vec![with(&["c0", "c1", "c2"])],
            (Self::NestedCalls, 0) => vec![with(&["c0", "c1"])],
            (Self::OversizedResponses, 0) => vec![with(&["c0", "c1"]), with(&["c0"]), prose(cost)],
            (Self::FullContext, 0) => vec![with(&["c0"]), prose(None)],
            (Self::Candidate { .. }, 0) => vec![with(&["c0"]), prose(cost), prose(None)],
            (Self::FinishRequired, 0) => vec![prose(None), with(&["c0"])],
            (Self::FinishRequired, _) => vec![
                prose(None),
                inputs::model_answered(&[later], "", ModelStop::ToolUse, None, Vec::new()),
            ],
            _ => vec![prose(cost)],
        }
    }

    /// Returns the possible errors of the model.
    pub(super) fn possible_model_errors(self) -> Vec<Input> {
        let kinds: &[ModelErrorKind] = match self {
            Self::Calls | Self::Candidate { .. } => &[ModelErrorKind::Network],
            Self::FullContext => &[ModelErrorKind::Network, ModelErrorKind::ContextOverflow],
            Self::OversizedResponses => &[ModelErrorKind::AnswerLimit],
            Self::Steering
            | Self::ParallelCalls
            | Self::StandaloneCompaction
            | Self::FinishRequired
            | Self::NestedCalls => &[],
        };
        kinds.iter().map(|kind| model_failed(*kind)).collect()
    }

    /// Returns the maximum number of fragments of a response.
    pub(super) fn max_fragments(self) -> u8 {
        match self {
            Self::OversizedResponses => 2,
            _ => 1,
        }
    }

    /// Returns true if a response exceeds a limit, by its fragments so far or by its calls.
    pub(super) fn is_oversized(self, input: &Input, fragments: u8) -> bool {
        let calls = |response: &Response| response.calls().count();
        self == Self::OversizedResponses
            && match input {
                Input::ModelDelta(_) => fragments > 1,
                Input::ModelAnswered { response, .. } => calls(response) > 1,
                Input::ModelFailed(_) => true,
                _ => false,
            }
    }

    /// Returns the expected endings.
    pub(super) fn expected_endings(self) -> &'static [&'static str] {
        match self {
            Self::Calls => &[
                "Stopped(Cancelled)",
                "Stopped(Incomplete)",
                "finished",
                "limit Duration",
                "limit Turns",
                "lost HeadConflict",
                "lost LaneLost",
                "provider Network",
                "refusal",
            ],
            Self::Steering => &[
                "Stopped(Cancelled)",
                "finished",
                "hook no",
                "limit Duration",
                "limit Tokens",
                "limit Turns",
                "lost HeadConflict",
                "lost LaneLost",
                "rejected no",
            ],
            Self::ParallelCalls => &[
                "FrameSwitch { frame_id: \"s.cfg.1.f\", task: \"tests\" }",
                "Stopped(Cancelled)",
                "finished",
                "limit Duration",
                "lost HeadConflict",
                "lost LaneLost",
            ],
            Self::FullContext => &[
                "Stopped(Cancelled)",
                "finished",
                "hook no",
                "limit Duration",
                "limit Tokens",
                // An overflow within a response is followed by another turn.
                "limit Turns",
                "lost HeadConflict",
                "lost LaneLost",
                "provider ContextOverflow",
                "provider Network",
            ],
            Self::FinishRequired => &[
                "Stopped(Cancelled)",
                "finished",
                "hook the model answered with text 3 times, although the task ends only with a value that it submits \
                 by calling `finish`; its last answer: \"done\"; try another model, or the other protocol (tools or \
                 code)",
                "limit Duration",
                "limit Turns",
                "lost HeadConflict",
                "lost LaneLost",
            ],
            Self::NestedCalls => &[
                "Stopped(Cancelled)",
                "finished",
                "limit Duration",
                "lost HeadConflict",
                "lost LaneLost",
            ],
            Self::Candidate { .. } => &[
                "Stopped(Cancelled)",
                "finished",
                "limit Duration",
                "lost HeadConflict",
                "lost LaneLost",
                "provider Network",
            ],
            Self::OversizedResponses => &[
                "Stopped(Cancelled)",
                "finished",
                "limit Answer",
                "limit Duration",
                "lost HeadConflict",
                "lost LaneLost",
            ],
            Self::StandaloneCompaction => &[
                "Stopped(Cancelled)",
                "finished",
                "hook no",
                "hook no model",
                "limit Duration",
                "lost HeadConflict",
                "lost LaneLost",
            ],
        }
    }
}
