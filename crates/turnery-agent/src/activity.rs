//! Activity: what an application is shown of a running prompt. A projection of the engine's events and
//! never a second place where something happens (engine.md, section 6.2).

use serde::{Serialize, Serializer, ser::SerializeStruct as _};
use serde_json::Value;
use std::{collections::HashMap, fmt, sync::Arc};
use turnery_engine::{
    Artifact, CallId, Content, Disposition, Event, EventKind, FailureKind, LoopId, MessageId,
    PlanEntry, SessionId, StreamDelta, ToolEnvelope, Usage,
};

/// One item of the activity stream (LASH-50). Cheap to clone: what is long in it is shared.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TurnActivity {
    /// Its own identity: no two items of a session have the same (LASH-44).
    pub id: ActivityId,
    /// Items with the same one belong to the same logical row (LASH-76).
    pub correlation_id: CorrelationId,
    /// What happened.
    pub event: TurnEvent,
}

/// The identity of an item: its loop, and its event's place in it. Written `{loop_id}#{seq}`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ActivityId {
    /// The loop.
    pub loop_id: LoopId,
    /// The event's place in the loop; a gap is an event that applications are not shown.
    pub seq: u64,
}

impl fmt::Display for ActivityId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}#{}", self.loop_id, self.seq)
    }
}

impl Serialize for ActivityId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Which logical row an item belongs to (R8): a call's id for all that the call does, one id for each
/// block of prose or reasoning, one for the plan of a loop; the item's own id for all else.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(transparent)]
pub struct CorrelationId(pub Arc<str>);

impl fmt::Display for CorrelationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What an application is shown. The set may grow: a sink passes over what it does not know (LASH-67).
///
/// There is no item for a settled message: prose has been streamed, and the message as it was kept is
/// read from the session (LASH-9, LASH-48, LASH-51, LASH-78). What is absent is left out, never null
/// (LASH-73).
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum TurnEvent {
    /// A fragment of the answer (LASH-56).
    AssistantProseDelta {
        /// The fragment.
        text: Arc<str>,
    },
    /// A fragment of reasoning (LASH-57).
    ReasoningDelta {
        /// The fragment.
        text: Arc<str>,
    },
    /// A call's bracket opens: once per call, whatever becomes of it (LASH-58, R2).
    ToolCallStarted {
        /// The call.
        #[serde(skip_serializing_if = "Option::is_none")]
        call_id: Option<CallId>,
        /// The tool.
        name: Arc<str>,
        /// Its arguments.
        args: Arc<Value>,
        /// The batch call that this one is part of (LASH-71).
        #[serde(skip_serializing_if = "Option::is_none")]
        parent_call_id: Option<CallId>,
    },
    /// A running call printed something.
    ToolCallOutput {
        /// The call.
        call_id: CallId,
        /// The text since the last one.
        text: Arc<str>,
    },
    /// A running call says how far it is.
    ToolCallProgress {
        /// The call.
        call_id: CallId,
        /// The sentence.
        text: Arc<str>,
    },
    /// A call's bracket closes. Enough to draw its row alone (LASH-59, LASH-62).
    ToolCallCompleted {
        /// The call.
        #[serde(skip_serializing_if = "Option::is_none")]
        call_id: Option<CallId>,
        /// The tool.
        name: Arc<str>,
        /// What came of it.
        output: Arc<ToolOutput>,
        /// The batch call that this one was part of (LASH-71).
        #[serde(skip_serializing_if = "Option::is_none")]
        parent_call_id: Option<CallId>,
        /// The loop that it ran in a child session.
        #[serde(skip_serializing_if = "Option::is_none")]
        child_loop_id: Option<LoopId>,
    },
    /// The model submitted the value that ends the loop (LASH-63, LASH-77).
    FinalValue {
        /// The value; [`render`](turnery_engine::render) makes text of it (LASH-68).
        value: Arc<Value>,
    },
    /// A tool declared a value final (LASH-64, LASH-77).
    ToolValue {
        /// The tool.
        tool_name: Arc<str>,
        /// The value; [`render`](turnery_engine::render) makes text of it (LASH-68).
        value: Arc<Value>,
    },
    /// One per call of the model (LASH-65, LASH-100).
    Usage {
        /// Of this call; absent when the provider did not say.
        #[serde(skip_serializing_if = "Option::is_none", serialize_with = "maybe")]
        usage: Option<Usage>,
        /// Of the loop so far.
        #[serde(serialize_with = "buckets")]
        cumulative: Usage,
    },
    /// One per call of a model in a child session (LASH-66, LASH-101).
    ChildUsage {
        /// The child session.
        session_id: SessionId,
        /// For what: see [`usage::source`](crate::usage::source).
        source: Arc<str>,
        /// `provider/model`.
        model: Arc<str>,
        /// The child's turn, from 0 over all its loops.
        iteration: u32,
        /// Of that turn; absent when the provider did not say.
        #[serde(skip_serializing_if = "Option::is_none", serialize_with = "maybe")]
        usage: Option<Usage>,
        /// Of the child session with this source and model so far.
        #[serde(serialize_with = "buckets")]
        cumulative: Usage,
    },
    /// The plan changed: all of it.
    PlanUpdated {
        /// All entries.
        entries: Arc<[PlanEntry]>,
    },
    /// A call of the model failed before anything of it was shown, and is made again.
    ModelRetried {
        /// The attempt that failed, from 1.
        attempt: u32,
        /// Why, for a person.
        reason: Arc<str>,
        /// How long until the next one. Unit: milliseconds.
        wait_ms: u64,
    },
    /// The model has sent no content for a while; the call goes on.
    ModelSilent {
        /// Length of the silence. Unit: milliseconds.
        silent_ms: u64,
        /// True when the connection shows signs of life, such as pings.
        is_connected: bool,
    },
    /// Something that a person should know and that stops nothing by itself: input that was refused, a
    /// hook or a sink that broke (LASH-84).
    Error {
        /// The sentence.
        text: Arc<str>,
    },
}

/// What came of a call.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ToolOutput {
    /// How the call ended.
    pub disposition: Disposition,
    /// What the model was given: the result, or the failure's message.
    pub content: Vec<Content>,
    /// True when it failed, was refused, or was cut short.
    pub is_error: bool,
    /// The sort of failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<FailureKind>,
    /// Structured result for hosts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    /// What to show a person, for example a diff; empty means: show the content.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub artifacts: Vec<Artifact>,
}

impl ToolOutput {
    fn new(envelope: &ToolEnvelope, disposition: Disposition) -> Self {
        let (content, failure) = match &envelope.result {
            Ok(content) => (content.clone(), None),
            Err(failure) => (vec![Content::text(&*failure.message)], Some(failure.kind)),
        };
        Self {
            disposition,
            content,
            is_error: failure.is_some(),
            failure,
            value: envelope.value.clone(),
            artifacts: envelope.artifacts.clone(),
        }
    }

    /// The text of it, blocks joined by newlines.
    #[must_use]
    pub fn text(&self) -> String {
        let texts: Vec<&str> = self.content.iter().filter_map(Content::as_text).collect();
        texts.join("\n")
    }
}

/// Makes activities of events: a fold, so that the same events always give the same activities.
#[derive(Clone, Debug, Default)]
pub struct Projection {
    /// Arguments of calls that were announced and have not begun.
    args: HashMap<CallId, Arc<Value>>,
    /// The block that was written to last, so that its id is made once.
    block: Option<(MessageId, u32, CorrelationId)>,
}

impl Projection {
    /// What an application is shown of an event; nothing of most.
    pub fn on(&mut self, event: &Event) -> Option<TurnActivity> {
        let shown = self.shown(&event.kind)?;
        let id = ActivityId {
            loop_id: event.loop_id.clone(),
            seq: event.seq,
        };
        Some(TurnActivity {
            correlation_id: self.correlation(event, &id),
            id,
            event: shown,
        })
    }

    /// Remember what later events need of one that nobody is shown.
    pub(crate) fn pass_over(&mut self, event: &Event) {
        match &event.kind {
            EventKind::ToolCallRequested { .. } | EventKind::ToolExecutionStart { .. } => {
                self.shown(&event.kind);
            }
            _ => {}
        }
    }

    fn shown(&mut self, kind: &EventKind) -> Option<TurnEvent> {
        Some(match kind {
            EventKind::Delta { delta, .. } => match delta {
                StreamDelta::Text { text, .. } => TurnEvent::AssistantProseDelta {
                    text: text.as_str().into(),
                },
                StreamDelta::Thinking { text, .. } => TurnEvent::ReasoningDelta {
                    text: text.as_str().into(),
                },
                StreamDelta::ToolCallArgs { .. } => return None,
            },
            EventKind::ToolCallRequested { call, .. } => {
                self.args
                    .insert(call.call_id.clone(), Arc::clone(&call.args));
                return None;
            }
            EventKind::ToolExecutionStart {
                call_id, tool_name, ..
            } => TurnEvent::ToolCallStarted {
                args: self.args.remove(call_id).unwrap_or_default(),
                call_id: Some(call_id.clone()),
                name: tool_name.as_str().into(),
                parent_call_id: None,
            },
            EventKind::ToolExecutionOutput { call_id, text } => TurnEvent::ToolCallOutput {
                call_id: call_id.clone(),
                text: text.as_str().into(),
            },
            EventKind::ToolProgress { call_id, text } => TurnEvent::ToolCallProgress {
                call_id: call_id.clone(),
                text: text.as_str().into(),
            },
            EventKind::ToolExecutionEnd {
                call_id,
                tool_name,
                envelope,
                disposition,
                child_loop_id,
            } => TurnEvent::ToolCallCompleted {
                call_id: Some(call_id.clone()),
                name: tool_name.as_str().into(),
                output: Arc::new(ToolOutput::new(envelope, *disposition)),
                parent_call_id: None,
                child_loop_id: child_loop_id.clone(),
            },
            EventKind::FinalValue { value } => TurnEvent::FinalValue {
                value: Arc::new(value.clone()),
            },
            EventKind::ToolValue { tool_name, value } => TurnEvent::ToolValue {
                tool_name: tool_name.as_str().into(),
                value: Arc::new(value.clone()),
            },
            EventKind::UsageReported { usage, cumulative } => TurnEvent::Usage {
                usage: *usage,
                cumulative: *cumulative,
            },
            EventKind::ChildUsageReported { child, .. } => TurnEvent::ChildUsage {
                session_id: child.session_id.clone(),
                source: child.source.as_str().into(),
                model: child.model.as_str().into(),
                iteration: child.iteration,
                usage: child.usage,
                cumulative: child.cumulative,
            },
            EventKind::PlanUpdated { entries } => TurnEvent::PlanUpdated {
                entries: entries.as_slice().into(),
            },
            EventKind::ModelRetried {
                attempt,
                fault,
                wait_ms,
            } => TurnEvent::ModelRetried {
                attempt: *attempt,
                reason: fault.message.as_str().into(),
                wait_ms: *wait_ms,
            },
            EventKind::ModelSilent {
                silent_ms,
                is_connected,
            } => TurnEvent::ModelSilent {
                silent_ms: *silent_ms,
                is_connected: *is_connected,
            },
            EventKind::InputRejected { reason: text } | EventKind::Issue { text } => {
                TurnEvent::Error {
                    text: text.as_str().into(),
                }
            }
            EventKind::ParallelStart { .. }
            | EventKind::ParallelEnd { .. }
            | EventKind::LoopStart { .. }
            | EventKind::TurnStart { .. }
            | EventKind::CompactionStarted { .. }
            | EventKind::CompactionEnded { .. }
            | EventKind::MessageStart { .. }
            | EventKind::MessageEnd { .. }
            | EventKind::PermissionRequested { .. }
            | EventKind::PermissionResolved { .. }
            | EventKind::ToolExecutionUpdate { .. }
            | EventKind::TurnEnd { .. }
            | EventKind::LoopEnd { .. } => return None,
        })
    }

    fn correlation(&mut self, event: &Event, id: &ActivityId) -> CorrelationId {
        if let EventKind::Delta { message_id, delta } = &event.kind {
            let block = delta.block();
            if let Some((message, number, known)) = &self.block
                && message == message_id
                && *number == block
            {
                return known.clone();
            }
            let made = row(format!("{message_id}.{block}"));
            self.block = Some((message_id.clone(), block, made.clone()));
            return made;
        }
        match &event.kind {
            EventKind::PlanUpdated { .. } => row(format!("{}.plan", event.loop_id)),
            _ => row(event.correlation_id().unwrap_or_else(|| id.to_string())),
        }
    }
}

fn row(id: String) -> CorrelationId {
    CorrelationId(id.into())
}

/// The five buckets under the names that all surfaces for applications have (LASH-106 to 111).
pub(crate) fn buckets<S: Serializer>(usage: &Usage, serializer: S) -> Result<S::Ok, S::Error> {
    let mut fields = serializer.serialize_struct("Usage", 5)?;
    fields.serialize_field("input_tokens", &usage.input)?;
    fields.serialize_field("output_tokens", &usage.output)?;
    fields.serialize_field("cache_read_input_tokens", &usage.cache_read)?;
    fields.serialize_field("cache_write_input_tokens", &usage.cache_write)?;
    fields.serialize_field("reasoning_output_tokens", &usage.reasoning)?;
    fields.end()
}

#[expect(clippy::ref_option, reason = "serde gives a reference to the field")]
pub(crate) fn maybe<S: Serializer>(
    usage: &Option<Usage>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match usage {
        Some(usage) => buckets(usage, serializer),
        None => serializer.serialize_none(),
    }
}
