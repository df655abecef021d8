//! Projects engine events into the activities that an application sees of a running prompt.

use crate::code_mode::{CODE_TOOL, LANGUAGE};
use serde::{Serialize, Serializer, ser::SerializeStruct as _};
use serde_json::Value;
use std::{collections::HashMap, fmt, sync::Arc};
use turnery_engine::{
    Artifact, CallId, Content, Disposition, Event, EventKind, LoopId, MessageId, ModelDelta,
    PlanEntry, SessionId, ToolCall, ToolEnvelope, ToolErrorKind, Usage,
};

/// One item of the activity stream (LASH-50). Cheap to clone: large parts are shared.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PromptActivity {
    /// Identity of this item, unique within the session (LASH-44).
    pub id: ActivityId,
    /// Logical row that this item belongs to (LASH-76).
    pub correlation_id: CorrelationId,
    /// What happened.
    pub event: ActivityEvent,
}

/// Identity of an activity: its loop and the position of its event there. Displayed as `{loop_id}#{seq}`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ActivityId {
    /// The loop.
    pub loop_id: LoopId,
    /// Position of the event in the loop; gaps are events that produce no activity.
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

/// Identity of a logical row (R8): the call id for everything a call does, one id per block of text or
/// reasoning, one for the plan of a loop; otherwise the activity's own id.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(transparent)]
pub struct CorrelationId(pub Arc<str>);

impl fmt::Display for CorrelationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Payload of an activity. The set may grow: sinks must ignore variants that they do not know (LASH-67).
///
/// Settled messages have no variant: text is streamed, and the final message is read from the session
/// (LASH-9, LASH-48, LASH-51, LASH-78). Absent fields are omitted, never null (LASH-73).
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum ActivityEvent {
    /// Fragment of the response text (LASH-56).
    AssistantProseDelta {
        /// The fragment.
        text: Arc<str>,
    },
    /// Fragment of reasoning (LASH-57).
    ReasoningDelta {
        /// The fragment.
        text: Arc<str>,
    },
    /// A tool call starts. Emitted exactly once per call, whatever its result (LASH-58, R2).
    ToolCallStarted {
        /// The call.
        #[serde(skip_serializing_if = "Option::is_none")]
        call_id: Option<CallId>,
        /// The tool.
        name: Arc<str>,
        /// Its arguments.
        args: Arc<Value>,
        /// Block of code whose call this is (LASH-69, LASH-70).
        #[serde(skip_serializing_if = "Option::is_none")]
        graph_key: Option<CallId>,
        /// Call that requested this one; absent if the model did (LASH-71).
        #[serde(skip_serializing_if = "Option::is_none")]
        parent_call_id: Option<CallId>,
    },
    /// A block of code starts (LASH-60).
    CodeBlockStarted {
        /// Language of the code.
        language: &'static str,
        /// The code.
        code: Arc<str>,
        /// Key of the block: the id of its call.
        graph_key: CallId,
    },
    /// A block of code ends. Carries enough to render the row without earlier activities (LASH-61, LASH-62).
    CodeBlockCompleted {
        /// Language of the code.
        language: &'static str,
        /// Output of a block that succeeded: printed text, and the value of the last expression.
        output: Arc<str>,
        /// Text printed before a failure, and its reason; absent if the block succeeded (LASH-74).
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<Arc<str>>,
        /// True if the block succeeded.
        success: bool,
        /// Key of the block.
        graph_key: CallId,
    },
    /// A running call produced output.
    ToolCallOutput {
        /// The call.
        call_id: CallId,
        /// Text since the previous output activity.
        text: Arc<str>,
    },
    /// A running call reported progress.
    ToolCallProgress {
        /// The call.
        call_id: CallId,
        /// Progress message.
        text: Arc<str>,
    },
    /// A tool call ends. Carries enough to render the row without earlier activities (LASH-59, LASH-62).
    ToolCallCompleted {
        /// The call.
        #[serde(skip_serializing_if = "Option::is_none")]
        call_id: Option<CallId>,
        /// The tool.
        name: Arc<str>,
        /// Result of the call.
        output: Arc<ToolOutput>,
        /// Block of code whose call this is (LASH-69, LASH-70).
        #[serde(skip_serializing_if = "Option::is_none")]
        graph_key: Option<CallId>,
        /// Call that requested this one; absent if the model did (LASH-71).
        #[serde(skip_serializing_if = "Option::is_none")]
        parent_call_id: Option<CallId>,
        /// Loop that the call ran in a child session.
        #[serde(skip_serializing_if = "Option::is_none")]
        child_loop_id: Option<LoopId>,
    },
    /// The model submitted the final value of the loop (LASH-63, LASH-77).
    FinalValue {
        /// The value; rendered as text by [`render_value`](turnery_engine::render_value) (LASH-68).
        value: Arc<Value>,
    },
    /// A tool declared a value final (LASH-64, LASH-77).
    ToolValue {
        /// The tool.
        tool_name: Arc<str>,
        /// The value; rendered as text by [`render_value`](turnery_engine::render_value) (LASH-68).
        value: Arc<Value>,
    },
    /// Token usage, once per model call (LASH-65, LASH-100).
    Usage {
        /// Usage of this call; absent if the provider did not report it.
        #[serde(
            skip_serializing_if = "Option::is_none",
            serialize_with = "serialize_optional_usage"
        )]
        usage: Option<Usage>,
        /// Usage of the loop so far.
        #[serde(serialize_with = "serialize_usage")]
        cumulative: Usage,
    },
    /// Token usage of a child session, once per model call (LASH-66, LASH-101).
    ChildUsage {
        /// The child session.
        session_id: SessionId,
        /// Purpose of the call: see [`usage::source`](crate::usage::source).
        source: Arc<str>,
        /// `provider/model`.
        model: Arc<str>,
        /// Turn of the child session, counted from 0 across its loops.
        iteration: u32,
        /// Usage of that turn; absent if the provider did not report it.
        #[serde(
            skip_serializing_if = "Option::is_none",
            serialize_with = "serialize_optional_usage"
        )]
        usage: Option<Usage>,
        /// Usage of the child session so far, for this source and model.
        #[serde(serialize_with = "serialize_usage")]
        cumulative: Usage,
    },
    /// The plan changed. Carries the complete plan.
    PlanUpdated {
        /// All entries.
        entries: Arc<[PlanEntry]>,
    },
    /// A model call failed before any of its output was shown, and will be retried.
    ModelRetried {
        /// Number of the failed attempt, from 1.
        attempt: u32,
        /// Reason, for the user.
        reason: Arc<str>,
        /// Delay before the next attempt. Unit: milliseconds.
        wait_ms: u64,
    },
    /// The model has sent no content for a while; the call continues.
    ModelSilent {
        /// Length of the silence. Unit: milliseconds.
        silent_ms: u64,
        /// True if the connection is alive, for example if pings arrive.
        is_connected: bool,
    },
    /// A problem to report to the user that does not end the prompt by itself: rejected input, a failed hook
    /// or sink (LASH-84).
    Error {
        /// Message.
        text: Arc<str>,
    },
}

/// Result of a tool call.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ToolOutput {
    /// How the call ended.
    pub disposition: Disposition,
    /// Content sent to the model: the result, or the error message.
    pub content: Vec<Content>,
    /// True if the call failed, was rejected or was interrupted.
    pub is_error: bool,
    /// Kind of error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<ToolErrorKind>,
    /// Structured result for hosts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    /// Artifacts for the user, for example a diff; if empty, show `content`.
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

    /// Returns the text blocks of the content, joined by newlines.
    #[must_use]
    pub fn text(&self) -> String {
        let texts: Vec<&str> = self.content.iter().filter_map(Content::as_text).collect();
        texts.join("\n")
    }
}

/// Place of a nested call.
#[derive(Clone, Debug, Default)]
struct NestedPlace {
    graph_key: Option<CallId>,
    parent_call_id: Option<CallId>,
}

/// Folds events into activities; deterministic, so equal events give equal activities.
#[derive(Clone, Debug, Default)]
pub struct Projection {
    /// Arguments of calls that were announced and have not started.
    pending_args: HashMap<CallId, Arc<Value>>,
    /// Nested calls that have not ended, with their place.
    nested_calls: HashMap<CallId, NestedPlace>,
    /// Block of the last delta, cached so that its id is built once.
    last_block: Option<(MessageId, u32, CorrelationId)>,
}

impl Projection {
    /// Returns the activity for an event; `None` for most kinds.
    pub fn project(&mut self, event: &Event) -> Option<PromptActivity> {
        let shown = self.project_kind(&event.kind)?;
        let id = ActivityId {
            loop_id: event.loop_id.clone(),
            seq: event.seq,
        };
        Some(PromptActivity {
            correlation_id: self.correlation_id(event, &id),
            id,
            event: shown,
        })
    }

    /// Records the state that later events need, without producing an activity.
    pub(crate) fn project_unobserved(&mut self, event: &Event) {
        match &event.kind {
            EventKind::ToolCallRequested { .. }
            | EventKind::ToolExecutionStart { .. }
            | EventKind::ToolExecutionEnd { .. } => {
                self.project_kind(&event.kind);
            }
            _ => {}
        }
    }

    fn project_kind(&mut self, kind: &EventKind) -> Option<ActivityEvent> {
        Some(match kind {
            EventKind::Delta { delta, .. } => match delta {
                ModelDelta::Text { text, .. } => ActivityEvent::AssistantProseDelta {
                    text: text.as_str().into(),
                },
                ModelDelta::Thinking { text, .. } => ActivityEvent::ReasoningDelta {
                    text: text.as_str().into(),
                },
                ModelDelta::ToolCallArgs { .. } => return None,
            },
            EventKind::ToolCallRequested { call, .. } => {
                self.pending_args
                    .insert(call.call_id.clone(), Arc::clone(&call.args));
                if call.name == CODE_TOOL || call.parent_call_id.is_some() {
                    let place = self.place_of(call);
                    self.nested_calls.insert(call.call_id.clone(), place);
                }
                return None;
            }
            EventKind::ToolExecutionStart {
                call_id, tool_name, ..
            } => {
                let args = self.pending_args.remove(call_id).unwrap_or_default();
                if tool_name == CODE_TOOL {
                    return Some(ActivityEvent::CodeBlockStarted {
                        language: LANGUAGE,
                        code: args["code"].as_str().unwrap_or_default().into(),
                        graph_key: call_id.clone(),
                    });
                }
                let place = self.nested_calls.get(call_id).cloned().unwrap_or_default();
                ActivityEvent::ToolCallStarted {
                    args,
                    call_id: Some(call_id.clone()),
                    name: tool_name.as_str().into(),
                    graph_key: place.graph_key,
                    parent_call_id: place.parent_call_id,
                }
            }
            EventKind::ToolExecutionOutput { call_id, text } => ActivityEvent::ToolCallOutput {
                call_id: call_id.clone(),
                text: text.as_str().into(),
            },
            EventKind::ToolProgress { call_id, text } => ActivityEvent::ToolCallProgress {
                call_id: call_id.clone(),
                text: text.as_str().into(),
            },
            EventKind::ToolExecutionEnd {
                call_id,
                tool_name,
                envelope,
                disposition,
                child_loop_id,
            } => {
                let place = self.nested_calls.remove(call_id).unwrap_or_default();
                let output = ToolOutput::new(envelope, *disposition);
                if tool_name == CODE_TOOL {
                    let error = envelope.result.as_ref().err();
                    let printed = error.is_none().then(|| output.text());
                    return Some(ActivityEvent::CodeBlockCompleted {
                        language: LANGUAGE,
                        output: printed.unwrap_or_default().into(),
                        error: error.map(|error| error.message.as_str().into()),
                        success: error.is_none(),
                        graph_key: call_id.clone(),
                    });
                }
                ActivityEvent::ToolCallCompleted {
                    call_id: Some(call_id.clone()),
                    name: tool_name.as_str().into(),
                    output: Arc::new(output),
                    graph_key: place.graph_key,
                    parent_call_id: place.parent_call_id,
                    child_loop_id: child_loop_id.clone(),
                }
            }
            EventKind::FinalValue { value } => ActivityEvent::FinalValue {
                value: Arc::new(value.clone()),
            },
            EventKind::ToolValue { tool_name, value } => ActivityEvent::ToolValue {
                tool_name: tool_name.as_str().into(),
                value: Arc::new(value.clone()),
            },
            EventKind::UsageReported { usage, cumulative } => ActivityEvent::Usage {
                usage: *usage,
                cumulative: *cumulative,
            },
            EventKind::ChildUsageReported { child, .. } => ActivityEvent::ChildUsage {
                session_id: child.session_id.clone(),
                source: child.source.as_str().into(),
                model: child.model.as_str().into(),
                iteration: child.iteration,
                usage: child.usage,
                cumulative: child.cumulative,
            },
            EventKind::PlanUpdated { entries } => ActivityEvent::PlanUpdated {
                entries: entries.as_slice().into(),
            },
            EventKind::ModelRetried {
                attempt,
                error,
                wait_ms,
            } => ActivityEvent::ModelRetried {
                attempt: *attempt,
                reason: error.message.as_str().into(),
                wait_ms: *wait_ms,
            },
            EventKind::ModelSilent {
                silent_ms,
                is_connected,
            } => ActivityEvent::ModelSilent {
                silent_ms: *silent_ms,
                is_connected: *is_connected,
            },
            EventKind::InputRejected { reason: text } | EventKind::Issue { text } => {
                ActivityEvent::Error {
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

    /// Returns the place of a call: in the block of code that is its parent, or in that of its parent.
    fn place_of(&self, call: &ToolCall) -> NestedPlace {
        let around = call.parent_call_id.as_ref();
        let around = around.and_then(|parent| self.nested_calls.get(parent));
        let graph_key = match call.name == CODE_TOOL {
            true => Some(call.call_id.clone()),
            false => around.and_then(|place| place.graph_key.clone()),
        };
        NestedPlace {
            graph_key,
            parent_call_id: call.parent_call_id.clone(),
        }
    }

    fn correlation_id(&mut self, event: &Event, id: &ActivityId) -> CorrelationId {
        if let EventKind::Delta { message_id, delta } = &event.kind {
            let block = delta.block();
            if let Some((message, number, known)) = &self.last_block
                && message == message_id
                && *number == block
            {
                return known.clone();
            }
            let made = to_correlation_id(format!("{message_id}.{block}"));
            self.last_block = Some((message_id.clone(), block, made.clone()));
            return made;
        }
        match &event.kind {
            EventKind::PlanUpdated { .. } => to_correlation_id(format!("{}.plan", event.loop_id)),
            _ => to_correlation_id(event.correlation_id().unwrap_or_else(|| id.to_string())),
        }
    }
}

fn to_correlation_id(id: String) -> CorrelationId {
    CorrelationId(id.into())
}

/// Serializes the five token counts under the names shared by all application interfaces (LASH-106 to 111).
pub(crate) fn serialize_usage<S: Serializer>(
    usage: &Usage,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let mut fields = serializer.serialize_struct("Usage", 5)?;
    fields.serialize_field("input_tokens", &usage.input)?;
    fields.serialize_field("output_tokens", &usage.output)?;
    fields.serialize_field("cache_read_input_tokens", &usage.cache_read)?;
    fields.serialize_field("cache_write_input_tokens", &usage.cache_write)?;
    fields.serialize_field("reasoning_output_tokens", &usage.reasoning)?;
    fields.end()
}

#[expect(clippy::ref_option, reason = "serde gives a reference to the field")]
pub(crate) fn serialize_optional_usage<S: Serializer>(
    usage: &Option<Usage>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match usage {
        Some(usage) => serialize_usage(usage, serializer),
        None => serializer.serialize_none(),
    }
}
