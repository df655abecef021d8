//! Scene: a small loop and the part of the world that is hostile in it. Together they cover the machine;
//! all at once would be too many states to try.

use super::moves::{self, Tool};
use crate::{
    Announced, AnswerLimits, AnswerSize, Context, ContextSize, ContinuationKind, HookSet, Input,
    Limits, LoopSpec, ModelStop, Response, ToolControl, tests::fixture,
};

/// What a world may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scene {
    /// Calls that are asked about, refused, unknown, or hang; answers of all sorts.
    Calls,
    /// People who steer, follow up, and filters and checkpoints that judge.
    People,
    /// Calls beside each other, hooks around them, children that spend, a frame to switch to.
    Beside,
    /// A context that is full, and a provider that says so.
    Room,
    /// A compaction of its own.
    Pass,
    /// Answers that exceed their bounds, and a model that is silent.
    Long,
}

impl Scene {
    pub(super) fn spec(self) -> LoopSpec {
        let limits = Limits {
            turns: 3,
            ..Limits::default()
        };
        let spec = fixture::spec(limits);
        let none = HookSet::default();
        let full = Context {
            size: ContextSize {
                tokens: 950,
                messages: 9,
            },
            window: Some(1_000),
            compact_at: 90,
        };
        match self {
            Self::Calls => spec,
            Self::People => LoopSpec {
                hooks: HookSet {
                    input: true,
                    checkpoint: true,
                    ..none
                },
                ..spec
            },
            Self::Beside => LoopSpec {
                hooks: HookSet {
                    before_tool: true,
                    after_tool: true,
                    ..none
                },
                ..spec
            },
            Self::Room => LoopSpec {
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
            Self::Long => LoopSpec {
                limits: Limits {
                    // One fragment fits, and so does "done"; two fragments do not.
                    answer: AnswerLimits {
                        bytes: AnswerSize::BLOCK as u64 + 4,
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
            Self::Pass => LoopSpec {
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

    /// Whether people say something while it runs.
    pub(super) fn has_people(self) -> bool {
        self == Self::People
    }

    /// Whether others spend what the loop is limited to.
    pub(super) fn is_shared(self) -> bool {
        matches!(self, Self::People | Self::Room)
    }

    /// What a call is like.
    pub(super) fn tool(self, id: &str) -> Tool {
        let runs = Tool::default();
        match (self, id) {
            (Self::Calls, "c0") => Tool {
                is_asked: true,
                words: 3,
                fails: true,
                ..runs
            },
            (Self::Calls, "c1") => Tool {
                never_runs: true,
                ..runs
            },
            (Self::Calls, "c2") => Tool {
                hangs: true,
                words: 1,
                ..runs
            },
            (Self::Beside, "c0") => Tool {
                spends: true,
                control: Some(ToolControl::SwitchFrame {
                    task: "tests".to_owned(),
                }),
                ..runs
            },
            (Self::Beside, "c1") => Tool {
                is_asked: true,
                control: Some(ToolControl::Submit(1.into())),
                ..runs
            },
            (Self::Calls, _) => Tool {
                fails: true,
                ..runs
            },
            (Self::People | Self::Beside | Self::Room | Self::Pass | Self::Long, _) => runs,
        }
    }

    /// Whether a call may run beside others.
    pub(super) fn is_parallel(self, id: &str) -> bool {
        self == Self::Beside && id != "c2"
    }

    /// What the model may say in its turn.
    pub(super) fn answers(self, turn: u32) -> Vec<Input> {
        let later = format!("d{turn}");
        let later = later.as_str();
        let with = |ids: &[&str]| {
            let known = ids.iter().map(|id| Announced {
                parallel: self.is_parallel(id),
                ..Announced::default()
            });
            moves::answer(ids, "", ModelStop::ToolUse, None, known.collect())
        };
        let prose = |cost| moves::answer(&[], "done", ModelStop::EndTurn, cost, Vec::new());
        let cost = Some(12);
        match (self, turn) {
            (Self::Calls, 0) => vec![with(&["c0", "c1", "c2"]), with(&["c0", "c1"])],
            (Self::Calls, _) => vec![
                prose(cost),
                moves::answer(&[], "", ModelStop::EndTurn, None, Vec::new()),
                moves::answer(&[later], "", ModelStop::Length, cost, Vec::new()),
                moves::answer(&[later], "", ModelStop::Refusal, None, Vec::new()),
                moves::answer(&[later], "", ModelStop::ToolUse, cost, Vec::new()),
            ],
            (Self::People, 0) => vec![with(&["c0", "c1"])],
            (Self::Beside, 0) => vec![with(&["c0", "c1", "c2"])],
            (Self::Long, 0) => vec![with(&["c0", "c1"]), with(&["c0"]), prose(cost)],
            (Self::Room, 0) => vec![with(&["c0"]), prose(None)],
            (Self::People | Self::Beside | Self::Room | Self::Pass | Self::Long, _) => {
                vec![prose(cost)]
            }
        }
    }

    /// Whether the model may fail, and how.
    pub(super) fn faults(self) -> Vec<Input> {
        match self {
            Self::Calls => vec![moves::failed(crate::FaultKind::Network)],
            Self::Room => vec![
                moves::failed(crate::FaultKind::Network),
                moves::failed(crate::FaultKind::ContextOverflow),
            ],
            Self::Long => vec![moves::failed(crate::FaultKind::AnswerLimit)],
            Self::People | Self::Beside | Self::Pass => Vec::new(),
        }
    }

    /// How many fragments an answer may come in.
    pub(super) fn fragments(self) -> u8 {
        match self {
            Self::Long => 2,
            Self::Calls | Self::People | Self::Beside | Self::Room | Self::Pass => 1,
        }
    }

    /// Whether an answer is beyond the bounds: by its fragments so far, or by its calls.
    pub(super) fn is_overrun(self, input: &Input, fragments: u8) -> bool {
        let calls = |response: &Response| response.calls().count();
        self == Self::Long
            && match input {
                Input::Delta(_) => fragments > 1,
                Input::Answered { response, .. } => calls(response) > 1,
                Input::ModelFailed(_) => true,
                _ => false,
            }
    }

    /// How it can end.
    pub(super) fn endings(self) -> &'static [&'static str] {
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
            Self::People => &[
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
            Self::Beside => &[
                "FrameSwitch { frame_id: \"s.cfg.1.f\", task: \"tests\" }",
                "Stopped(Cancelled)",
                "finished",
                "limit Duration",
                "lost HeadConflict",
                "lost LaneLost",
            ],
            Self::Room => &[
                "Stopped(Cancelled)",
                "finished",
                "hook no",
                "limit Duration",
                "limit Tokens",
                "lost HeadConflict",
                "lost LaneLost",
                "provider ContextOverflow",
                "provider Network",
            ],
            Self::Long => &[
                "Stopped(Cancelled)",
                "finished",
                "limit Answer",
                "limit Duration",
                "lost HeadConflict",
                "lost LaneLost",
            ],
            Self::Pass => &[
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
