//! Test harness: feeds a loop, checks its events, and formats its effects as lines.

use crate::{
    CallAnnouncement, CallDetail, ChildUsage, CompactionBlock, Content, ContextSize, Effect, Event,
    EventKind, HookRequest, HookVerdict, Input, LimitKind, LlmMessage, Loop, LoopFinish, LoopSpec,
    Message, ModelDelta, ModelError, ModelErrorKind, ModelStop, Outcome, ReachedLimit, Recorder,
    Response, TextValue, Timestamp, ToolCall, ToolControl, ToolEnvelope, Usage, Verdict,
    message::join_text,
    oracle::{Oracle, check_record},
};
use std::{sync::Arc, time::Duration};

/// Loop under test.
#[derive(Debug)]
pub(crate) struct LoopHarness {
    pub(crate) machine: Loop,
    pub(crate) now: Timestamp,
    /// Events published to the client.
    pub(crate) published_events: Vec<Event>,
    pub(crate) recorder: Recorder,
    pub(crate) finish: Option<LoopFinish>,
    lines: Vec<String>,
    oracle: Oracle,
}

impl LoopHarness {
    pub(crate) fn start(spec: LoopSpec) -> Self {
        let now = Timestamp::default();
        let mut out = Vec::new();
        let machine = Loop::start(spec, now, &mut out);
        let mut this = Self {
            machine,
            now,
            published_events: Vec::new(),
            recorder: Recorder::new(),
            finish: None,
            lines: Vec::new(),
            oracle: Oracle::for_live_stream(),
        };
        this.apply_effects(out);
        this
    }

    /// Feeds one input, one second after the last.
    pub(crate) fn feed(&mut self, input: Input) -> &mut Self {
        self.now += Duration::from_secs(1);
        let mut out = Vec::new();
        self.machine.handle_input(self.now, input, &mut out);
        self.apply_effects(out);
        self
    }

    pub(crate) fn feed_all(&mut self, inputs: impl IntoIterator<Item = Input>) -> &mut Self {
        for input in inputs {
            self.feed(input);
        }
        self
    }

    /// Returns the lines since the last call.
    pub(crate) fn lines(&mut self) -> Vec<String> {
        std::mem::take(&mut self.lines)
    }

    /// Returns the outcome of a committed loop.
    pub(crate) fn outcome(&self) -> Outcome {
        match &self.finish {
            Some(LoopFinish::Committed { outcome, .. }) => outcome.clone(),
            other => panic!("not committed: {other:?}"),
        }
    }

    pub(crate) fn messages(&self) -> Vec<Arc<LlmMessage>> {
        self.recorder.record().expect("begun").messages.clone()
    }

    fn apply_effects(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            self.lines.push(describe_effect(&effect));
            match effect {
                Effect::Emit(event) => {
                    self.recorder.fold(&event);
                    self.publish(event);
                }
                Effect::Publish(event) => self.publish(event),
                Effect::Commit(event) => self.recorder.fold(&event),
                Effect::Finish(finish) => self.finish_loop(finish),
                _ => {}
            }
        }
    }

    /// Checks every event of every test against the grammar.
    fn publish(&mut self, event: Event) {
        self.oracle.observe(&event).expect("the grammar holds");
        self.published_events.push(event);
    }

    fn finish_loop(&mut self, finish: LoopFinish) {
        self.oracle.check_closed().expect("nothing is left open");
        if matches!(finish, LoopFinish::Committed { .. }) {
            let record = self.recorder.record().expect("begun");
            check_record(record).expect("the record holds");
        }
        self.finish = Some(finish);
    }
}

fn describe_effect(effect: &Effect) -> String {
    match effect {
        Effect::Emit(event) => describe_event(&event.kind),
        Effect::Publish(event) => format!("publish {}", describe_event(&event.kind)),
        Effect::CallModel { turn_index, .. } => format!("> call model {turn_index}"),
        Effect::StopModel => "> stop model".to_owned(),
        Effect::Gate(call) => format!("> gate {}", call.call_id),
        Effect::CancelGate(id) => format!("> cancel gate {id}"),
        Effect::RunTool(call) => format!("> run {}", call.call_id),
        Effect::ReturnResults { parent, results } => {
            let texts = results.iter().map(|result| match &result.result {
                Ok(content) => join_text(content),
                Err(error) => format!("{:?}", error.kind),
            });
            format!(
                "> results {parent} {}",
                texts.collect::<Vec<_>>().join(", ")
            )
        }
        Effect::StopTool(id) => format!("> stop {id}"),
        Effect::AbortTool(id) => format!("> abort {id}"),
        Effect::StartGrace => "> grace".to_owned(),
        Effect::RunHook(hook) => format!("> hook {}", describe_hook_request(hook)),
        Effect::CancelHook => "> stop hook".to_owned(),
        Effect::Compact { before, .. } => format!("> compact {}", before.messages),
        Effect::ReturnUndelivered(content) => {
            format!("> return undelivered {}", join_text(content))
        }
        Effect::StopCompaction => "> stop compaction".to_owned(),
        Effect::Commit(event) => format!("> commit {}", describe_event(&event.kind)),
        Effect::Finish(LoopFinish::Committed { .. }) => "> done".to_owned(),
        Effect::Finish(LoopFinish::CommitFailed(error)) => format!("> lost {error:?}"),
    }
}

fn describe_hook_request(hook: &HookRequest) -> String {
    match hook {
        HookRequest::Input { text } => format!("input {text}"),
        HookRequest::BeforeTurn { turn_index } => format!("before turn {turn_index}"),
        HookRequest::AfterTurn { turn_index, usage } => {
            format!("after turn {turn_index}, {:?}", usage.map(|it| it.total()))
        }
        HookRequest::BeforeTool(call) => format!("before tool {}", call.call_id),
        HookRequest::AfterTool { call_id, .. } => format!("after tool {call_id}"),
        HookRequest::BeforeCompaction(size) => format!("before compaction of {}", size.tokens),
        HookRequest::AfterCompaction { before, after } => {
            format!("after compaction of {} to {}", before.tokens, after.tokens)
        }
        HookRequest::OnError { message } => format!("error {message}"),
        HookRequest::Checkpoint => "checkpoint".to_owned(),
    }
}

fn describe_event(kind: &EventKind) -> String {
    match kind {
        EventKind::LoopStart { .. } => "loop begins".to_owned(),
        EventKind::InputRejected { reason } => format!("rejected {reason}"),
        EventKind::TurnStart { trigger } => format!("turn begins {trigger:?}"),
        EventKind::MessageStart { message_id } => format!("{message_id} begins"),
        EventKind::Delta { delta, .. } => format!("delta {}", delta.block()),
        EventKind::MessageEnd { message } => {
            format!("{} {}", message.message_id, describe_message(message))
        }
        EventKind::UsageReported { usage, cumulative } => format!(
            "usage {:?} of {}",
            usage.map(|usage| usage.total()),
            cumulative.total()
        ),
        EventKind::ToolCallRequested { call, detail } => {
            format!("{} requested: {}", call.call_id, detail.title)
        }
        EventKind::PermissionRequested { call_id, .. } => format!("{call_id} asked"),
        EventKind::PermissionResolved { call_id, verdict } => format!("{call_id} {verdict:?}"),
        EventKind::ToolExecutionStart { call_id, runs, .. } => {
            format!("{call_id} begins, runs {runs}")
        }
        EventKind::ToolExecutionUpdate { call_id, .. } => format!("{call_id} shows"),
        EventKind::ToolExecutionOutput { call_id, text } => format!("{call_id} prints {text}"),
        EventKind::ToolExecutionEnd {
            call_id,
            disposition,
            ..
        } => format!("{call_id} ends {disposition:?}"),
        EventKind::CompactionStarted { before } => format!("compacts {}", before.messages),
        EventKind::CompactionEnded { block, after, .. } => {
            format!("compacted {} to {}", block.is_some(), after.messages)
        }
        EventKind::ModelRetried { attempt, .. } => format!("attempt {attempt} failed"),
        EventKind::ModelSilent { silent_ms, .. } => format!("silent for {silent_ms}"),
        EventKind::Issue { text } => format!("issue {text}"),
        EventKind::ToolProgress { call_id, text } => format!("{call_id} says {text}"),
        EventKind::ChildUsageReported { call_id, child } => {
            format!("{call_id} spent {}", child.cumulative.total())
        }
        EventKind::FinalValue { value } => format!("value {value}"),
        EventKind::ToolValue { tool_name, value } => format!("{tool_name} has {value}"),
        EventKind::PlanUpdated { entries } => format!("plan of {}", entries.len()),
        EventKind::TurnEnd { tool_results, .. } => format!("turn ends {tool_results:?}"),
        EventKind::ParallelStart { loop_ids, .. } => format!("group of {loop_ids:?}"),
        EventKind::ParallelEnd { winner, .. } => format!("group ends, {winner:?} won"),
        EventKind::LoopEnd { outcome, .. } => format!("loop ends {}", outcome.brief()),
    }
}

fn describe_message(message: &LlmMessage) -> String {
    let text = message.message.text();
    match &message.message {
        Message::System { .. } => format!("system: {text}"),
        Message::User { .. } => format!("user: {text}"),
        Message::Assistant { stop, .. } => format!("assistant {stop:?}: {text}"),
        Message::ToolResult {
            call_id, is_error, ..
        } => format!("result {call_id} error {is_error}: {text}"),
    }
}

pub(crate) fn fold_events<'a>(events: impl IntoIterator<Item = &'a Event>) -> Recorder {
    let mut recorder = Recorder::new();
    for event in events {
        recorder.fold(event);
    }
    recorder
}

pub(crate) fn text_delta(block: u32, text: &str) -> Input {
    Input::ModelDelta(ModelDelta::Text {
        block,
        text: text.to_owned(),
    })
}

pub(crate) fn tool_call(id: &str) -> Content {
    Content::ToolCall(ToolCall::new(
        id,
        format!("tool-{id}"),
        serde_json::json!({"n": 1}),
    ))
}

fn announcements(
    content: &[Content],
    parallel: impl Fn(&ToolCall) -> bool,
) -> Vec<CallAnnouncement> {
    let calls = content.iter().filter_map(Content::as_tool_call);
    calls
        .map(|call| CallAnnouncement {
            detail: CallDetail::with_title(format!("Use {}", call.name)),
            is_parallel: parallel(call),
        })
        .collect()
}

/// Builds a response with this content; `cost` is input and output tokens, or unknown.
pub(crate) fn model_answered(
    content: Vec<Content>,
    stop: ModelStop,
    cost: Option<(u64, u64)>,
) -> Input {
    let calls = announcements(&content, |_| false);
    let response = Response {
        content,
        stop,
        raw_stop: None,
        usage: cost.map(|(input, output)| Usage {
            input,
            output,
            ..Usage::default()
        }),
        model: "real-model".to_owned(),
        provider: "real-provider".to_owned(),
        tool_results: Vec::new(),
        request: None,
    };
    Input::ModelAnswered {
        response,
        calls,
        value: TextValue::Absent,
    }
}

pub(crate) fn text_answer(text: &str) -> Input {
    model_answered(vec![Content::text(text)], ModelStop::EndTurn, Some((5, 2)))
}

pub(crate) fn calls_answer(ids: &[&str]) -> Input {
    let content = ids.iter().map(|id| tool_call(id)).collect();
    model_answered(content, ModelStop::ToolUse, Some((10, 3)))
}

pub(crate) fn permission_requested(id: &str) -> Input {
    Input::PermissionRequested {
        call_id: id.into(),
        detail: CallDetail::default(),
    }
}

pub(crate) fn allow(id: &str) -> Input {
    verdict(id, Verdict::Allow)
}

pub(crate) fn verdict(id: &str, verdict: Verdict) -> Input {
    Input::Verdict {
        call_id: id.into(),
        verdict,
    }
}

pub(crate) fn tool_ended(id: &str, envelope: ToolEnvelope) -> Input {
    Input::ToolEnded {
        call_id: id.into(),
        envelope,
    }
}

pub(crate) fn model_failed(kind: ModelErrorKind) -> Input {
    Input::ModelFailed(model_error(kind))
}

pub(crate) fn model_retried() -> Input {
    Input::ModelRetried {
        attempt: 1,
        error: model_error(ModelErrorKind::Network),
        wait_ms: 1_000,
    }
}

fn model_error(kind: ModelErrorKind) -> ModelError {
    ModelError::new(kind, "it broke")
}

pub(crate) fn limit(kind: LimitKind, text: &str) -> ReachedLimit {
    ReachedLimit {
        kind,
        text: text.to_owned(),
    }
}

/// Builds the report of a sub-agent of this call about its last turn and all of its turns.
pub(crate) fn child_usage(
    call_id: &str,
    session: &str,
    usage: Option<Usage>,
    cumulative: Usage,
) -> Input {
    Input::ChildUsageReported {
        call_id: call_id.into(),
        child: ChildUsage {
            session_id: session.into(),
            source: crate::usage::source::SUBAGENT.to_owned(),
            model: "p/m".to_owned(),
            iteration: 0,
            usage,
            cumulative,
        },
    }
}

/// Builds a block without messages.
pub(crate) fn compaction_block() -> CompactionBlock {
    CompactionBlock {
        keep_first: Vec::new(),
        keep_compacted: Vec::new(),
        keep_recent: Vec::new(),
        through: "s.cfg.0.m0".into(),
        created_at: Timestamp::default(),
    }
}

/// Builds the result of a compaction: a block without messages, or a failure.
pub(crate) fn compaction_result(succeeds: bool, after: ContextSize, usage: Option<Usage>) -> Input {
    let block = succeeds.then(compaction_block);
    Input::Compacted {
        block: block.ok_or_else(|| "no model".to_owned()),
        after,
        usage,
    }
}

/// Builds a response with these calls; those in `beside` may run in parallel.
pub(crate) fn parallel_calls(ids: &[&str], beside: &[&str]) -> Input {
    let Input::ModelAnswered { response, .. } = calls_answer(ids) else {
        unreachable!("an answer");
    };
    let calls = announcements(&response.content, |call| {
        beside.contains(&call.call_id.as_str())
    });
    Input::ModelAnswered {
        response,
        calls,
        value: TextValue::Absent,
    }
}

/// Builds the result of a call that decides about its loop.
pub(crate) fn control_envelope(text: &str, control: ToolControl) -> ToolEnvelope {
    ToolEnvelope {
        control: Some(Box::new(control)),
        ..ToolEnvelope::text(text)
    }
}

pub(crate) fn tool_output(id: &str, text: &str) -> Input {
    Input::ToolOutput {
        call_id: id.into(),
        text: text.to_owned(),
    }
}

pub(crate) fn steer(text: &str) -> Input {
    Input::Steer(vec![Content::text(text)])
}

pub(crate) fn follow_up(text: &str) -> Input {
    Input::FollowUp(vec![Content::text(text)])
}

pub(crate) fn hook_continue() -> Input {
    Input::HookAnswered(HookVerdict::Continue)
}

pub(crate) fn hook_stop(reason: &str) -> Input {
    Input::HookAnswered(HookVerdict::Stop(reason.to_owned()))
}
