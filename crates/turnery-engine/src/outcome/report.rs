//! Words, classes and exit codes of outcomes: the only table of its kind (ACP-41 to ACP-46).

use super::{
    LimitKind, Outcome, ProviderFailure, ReachedLimit, StopClass, TurnFinish, TurnStop,
    render_value,
};
use crate::ModelErrorKind;
use std::borrow::Cow;

/// Kind of end of a prompt; turnery-acp maps it to a stop reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndKind {
    /// The loop finished without reaching a limit, or stopped with an error value of the model or a tool.
    EndTurn,
    /// The output or the context reached a limit on tokens.
    MaxTokens,
    /// Another limit was reached.
    MaxTurnRequests,
    /// The model or a hook refused.
    Refusal,
    /// The user cancelled.
    Cancelled,
    /// A failure, for which the protocol has no stop reason.
    Error,
}

impl EndKind {
    /// Returns the exit code of a process that ran the prompt. A cancel is reported as shells report Ctrl-C.
    #[must_use]
    pub const fn exit_code(self) -> u8 {
        match self {
            Self::EndTurn => 0,
            Self::Error => 1,
            Self::Refusal => 3,
            Self::MaxTokens | Self::MaxTurnRequests => 4,
            Self::Cancelled => 130,
        }
    }

    fn of_limit(kind: LimitKind) -> Self {
        match kind {
            LimitKind::Tokens | LimitKind::Answer => Self::MaxTokens,
            LimitKind::Turns | LimitKind::Duration | LimitKind::Cost => Self::MaxTurnRequests,
        }
    }

    fn of_model_error(kind: ModelErrorKind) -> Self {
        match kind {
            ModelErrorKind::ContextOverflow | ModelErrorKind::AnswerLimit => Self::MaxTokens,
            ModelErrorKind::Network
            | ModelErrorKind::Protocol
            | ModelErrorKind::Unfinished
            | ModelErrorKind::RateLimit
            | ModelErrorKind::Overloaded
            | ModelErrorKind::Auth
            | ModelErrorKind::BadRequest
            | ModelErrorKind::Timeout => Self::Error,
        }
    }
}

/// How an outcome is reported: one row of the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutcomeReport<'a> {
    /// Exact outcome, for example `stopped.provider_error`.
    pub exact: &'static str,
    /// Name in results and lists, for example `refusal`.
    pub name: &'static str,
    /// Kind of end.
    pub end: EndKind,
    /// Class of a stop.
    pub class: Option<StopClass>,
    /// Message for the user; `None` if the loop finished normally. A lower-case fragment, except for texts
    /// from providers, hooks and tools.
    pub message: Option<Cow<'a, str>>,
}

impl Outcome {
    /// Returns how the outcome is reported.
    #[must_use]
    pub fn report(&self) -> OutcomeReport<'_> {
        match self {
            Self::Finished(finish, limit) => finish.report(limit.as_ref()),
            Self::FrameSwitch { .. } => OutcomeReport {
                exact: "frame_switch",
                name: "frame_switch",
                end: EndKind::Error,
                class: None,
                message: Some("the prompt ended early (frame switch)".into()),
            },
            Self::Stopped(stop) => stop.report(),
        }
    }
}

impl TurnFinish {
    fn report<'a>(&self, limit: Option<&'a ReachedLimit>) -> OutcomeReport<'a> {
        // A final answer after a limit ends with the stop reason of that limit (C-4).
        let (name, end) = match limit {
            Some(limit) => ("limit", EndKind::of_limit(limit.kind)),
            None => ("finished", EndKind::EndTurn),
        };
        OutcomeReport {
            exact: match self {
                Self::AssistantMessage { .. } => "finished.assistant_message",
                Self::FinalValue { .. } => "finished.final_value",
                Self::ToolValue { .. } => "finished.tool_value",
            },
            name,
            end,
            class: None,
            message: limit.map(|limit| limit.text.as_str().into()),
        }
    }
}

impl TurnStop {
    /// Returns how the stop is reported.
    #[must_use]
    pub fn report(&self) -> OutcomeReport<'_> {
        let (exact, name, end, class, message) = self.row();
        OutcomeReport {
            exact,
            name,
            end,
            class: Some(class),
            message: Some(message),
        }
    }

    /// Returns the class of the stop.
    #[must_use]
    pub fn class(&self) -> StopClass {
        self.row().3
    }

    /// Describes the stop for the user: a lower-case fragment, except for texts from providers, hooks and
    /// tools.
    #[must_use]
    pub fn describe(&self) -> Cow<'_, str> {
        self.row().4
    }

    /// Returns the exact outcome, the name, the kind of end, the class, and the message for the user.
    #[rustfmt::skip]
    fn row(&self) -> (&'static str, &'static str, EndKind, StopClass, Cow<'_, str>) {
        use EndKind::{Cancelled, EndTurn, Error, MaxTokens, Refusal};
        use StopClass::{Fatal, Host, Provider, Rlm, Runtime};
        match self {
            Self::Cancelled =>
                ("stopped.cancelled", "cancelled", Cancelled, Host, "cancelled".into()),
            Self::InvalidInput { reason } =>
                ("stopped.invalid_input", "rejected", Refusal, Host, reason.into()),
            Self::Incomplete =>
                ("stopped.incomplete", "incomplete", MaxTokens, Provider,
                 "the answer was cut off at the model's output limit".into()),
            Self::ProviderError(ProviderFailure::Failed { kind, message }) =>
                ("stopped.provider_error", "provider_error", EndKind::of_model_error(*kind), Provider,
                 message.into()),
            Self::ProviderError(ProviderFailure::Refused) =>
                ("stopped.provider_error", "refusal", Refusal, Provider, REFUSED.into()),
            Self::MaxTurns(ReachedLimit { kind, text }) =>
                ("stopped.max_turns", "limit", EndKind::of_limit(*kind), Runtime, text.into()),
            Self::ToolFailure { message } =>
                ("stopped.tool_failure", "tool_failure", Error, Runtime, message.into()),
            Self::PluginAbort { reason } =>
                ("stopped.plugin_abort", "plugin_abort", Refusal, Runtime, reason.into()),
            Self::RuntimeError { message } =>
                ("stopped.runtime_error", "runtime_error", Error, Fatal, message.into()),
            Self::SubmittedError { value } =>
                ("stopped.submitted_error", "submitted_error", EndTurn, Rlm, render_value(value).into()),
            Self::ToolError { value, .. } =>
                ("stopped.tool_error", "tool_error", EndTurn, Rlm, render_value(value).into()),
        }
    }
}

/// Message of a refusal.
pub(super) const REFUSED: &str = "the model refused to answer";
