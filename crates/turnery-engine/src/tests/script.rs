//! Script: feeds a loop, keeps what it said, and writes it down one line each.

use crate::{
    Announced, CallDetail, Content, Effect, Event, EventKind, FaultKind, Finish, Hook, HookVerdict,
    Input, LlmMessage, Loop, LoopSpec, Message, ModelDelta, ModelFault, ModelStop, Recorder,
    Response, Timestamp, ToolCall, ToolControl, ToolEnvelope, Usage, Verdict,
    message::joined_text,
    oracle::{Oracle, check_record},
};
use std::{sync::Arc, time::Duration};

/// A loop under test.
#[derive(Debug)]
pub(crate) struct Script {
    pub(crate) machine: Loop,
    pub(crate) now: Timestamp,
    /// What the client has seen.
    pub(crate) shown: Vec<Event>,
    pub(crate) recorder: Recorder,
    pub(crate) finish: Option<Finish>,
    lines: Vec<String>,
    oracle: Oracle,
}

impl Script {
    pub(crate) fn start(spec: LoopSpec) -> Self {
        let now = Timestamp::default();
        let mut out = Vec::new();
        let machine = Loop::start(spec, now, &mut out);
        let mut this = Self {
            machine,
            now,
            shown: Vec::new(),
            recorder: Recorder::new(),
            finish: None,
            lines: Vec::new(),
            oracle: Oracle::live(),
        };
        this.carry_out(out);
        this
    }

    /// Feed one input, a second after the last.
    pub(crate) fn feed(&mut self, input: Input) -> &mut Self {
        self.now += Duration::from_secs(1);
        let mut out = Vec::new();
        self.machine.on(self.now, input, &mut out);
        self.carry_out(out);
        self
    }

    pub(crate) fn feed_all(&mut self, inputs: impl IntoIterator<Item = Input>) -> &mut Self {
        for input in inputs {
            self.feed(input);
        }
        self
    }

    /// What was said since the last time.
    pub(crate) fn lines(&mut self) -> Vec<String> {
        std::mem::take(&mut self.lines)
    }

    pub(crate) fn messages(&self) -> Vec<Arc<LlmMessage>> {
        self.recorder.record().expect("begun").messages.clone()
    }

    fn carry_out(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            self.lines.push(line(&effect));
            match effect {
                Effect::Emit(event) => {
                    self.recorder.fold(&event);
                    self.show(event);
                }
                Effect::Publish(event) => self.show(event),
                Effect::Commit(event) => self.recorder.fold(&event),
                Effect::Finish(finish) => self.end(finish),
                Effect::CallModel { .. }
                | Effect::StopModel
                | Effect::Gate(_)
                | Effect::Withdraw(_)
                | Effect::Run(_)
                | Effect::StopTool(_)
                | Effect::AbortTool(_)
                | Effect::Hook(_)
                | Effect::StopHook
                | Effect::Compact(_)
                | Effect::StopCompaction
                | Effect::Unheard(_)
                | Effect::StartGrace => {}
            }
        }
    }

    /// No event of any test is taken without a look at the grammar.
    fn show(&mut self, event: Event) {
        self.oracle.see(&event).expect("the grammar holds");
        self.shown.push(event);
    }

    fn end(&mut self, finish: Finish) {
        self.oracle.closed().expect("nothing is left open");
        if matches!(finish, Finish::Done { .. }) {
            let record = self.recorder.record().expect("begun");
            check_record(record).expect("the record holds");
        }
        self.finish = Some(finish);
    }
}

fn line(effect: &Effect) -> String {
    match effect {
        Effect::Emit(event) => word(&event.kind),
        Effect::Publish(event) => format!("publish {}", word(&event.kind)),
        Effect::CallModel { turn_index, .. } => format!("> call model {turn_index}"),
        Effect::StopModel => "> stop model".to_owned(),
        Effect::Gate(call) => format!("> gate {}", call.call_id),
        Effect::Withdraw(id) => format!("> withdraw {id}"),
        Effect::Run(call) => format!("> run {}", call.call_id),
        Effect::StopTool(id) => format!("> stop {id}"),
        Effect::AbortTool(id) => format!("> abort {id}"),
        Effect::StartGrace => "> grace".to_owned(),
        Effect::Hook(hook) => format!("> hook {}", asked(hook)),
        Effect::StopHook => "> stop hook".to_owned(),
        Effect::Compact(size) => format!("> compact {}", size.messages),
        Effect::Unheard(content) => format!("> unheard {}", joined_text(content)),
        Effect::StopCompaction => "> stop compaction".to_owned(),
        Effect::Commit(event) => format!("> commit {}", word(&event.kind)),
        Effect::Finish(Finish::Done { .. }) => "> done".to_owned(),
        Effect::Finish(Finish::Lost(fault)) => format!("> lost {fault:?}"),
    }
}

fn asked(hook: &Hook) -> String {
    match hook {
        Hook::Input { text } => format!("input {text}"),
        Hook::BeforeTurn { turn_index } => format!("before turn {turn_index}"),
        Hook::AfterTurn { turn_index, usage } => {
            format!("after turn {turn_index}, {:?}", usage.map(|it| it.total()))
        }
        Hook::BeforeTool(call) => format!("before tool {}", call.call_id),
        Hook::AfterTool { call_id, .. } => format!("after tool {call_id}"),
        Hook::BeforeCompaction(size) => format!("before compaction of {}", size.tokens),
        Hook::AfterCompaction { before, after } => {
            format!("after compaction of {} to {}", before.tokens, after.tokens)
        }
        Hook::OnError { message } => format!("error {message}"),
        Hook::Checkpoint => "checkpoint".to_owned(),
    }
}

fn word(kind: &EventKind) -> String {
    match kind {
        EventKind::LoopStart { .. } => "loop begins".to_owned(),
        EventKind::InputRejected { reason } => format!("rejected {reason}"),
        EventKind::TurnStart { trigger } => format!("turn begins {trigger:?}"),
        EventKind::MessageStart { message_id } => format!("{message_id} begins"),
        EventKind::Delta { delta, .. } => format!("delta {}", delta.block()),
        EventKind::MessageEnd { message } => format!("{} {}", message.message_id, said(message)),
        EventKind::UsageReported { usage, cumulative } => format!(
            "usage {:?} of {}",
            usage.map(|usage| usage.total()),
            cumulative.total()
        ),
        EventKind::ToolCallRequested { call, detail } => {
            format!("{} wanted: {}", call.call_id, detail.title)
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
        EventKind::LoopEnd { outcome, .. } => format!("loop ends {outcome:?}"),
    }
}

fn said(message: &LlmMessage) -> String {
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

pub(crate) fn text(block: u32, text: &str) -> Input {
    Input::Delta(ModelDelta::Text {
        block,
        text: text.to_owned(),
    })
}

pub(crate) fn call(id: &str) -> Content {
    Content::ToolCall(ToolCall {
        call_id: id.into(),
        name: format!("tool-{id}"),
        args: Arc::new(serde_json::json!({"n": 1})),
    })
}

fn announced(content: &[Content], parallel: impl Fn(&ToolCall) -> bool) -> Vec<Announced> {
    let calls = content.iter().filter_map(|item| match item {
        Content::ToolCall(call) => Some(Announced {
            detail: CallDetail {
                title: format!("Use {}", call.name),
                ..CallDetail::default()
            },
            parallel: parallel(call),
        }),
        Content::Text { .. }
        | Content::Image(_)
        | Content::Audio(_)
        | Content::Thinking { .. }
        | Content::Opaque { .. } => None,
    });
    calls.collect()
}

/// An answer that says `content`; it costs `input` and `output` tokens, or nobody knows.
pub(crate) fn answer(content: Vec<Content>, stop: ModelStop, cost: Option<(u64, u64)>) -> Input {
    let calls = announced(&content, |_| false);
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
    };
    Input::Answered { response, calls }
}

pub(crate) fn prose(text: &str) -> Input {
    answer(vec![Content::text(text)], ModelStop::EndTurn, Some((5, 2)))
}

pub(crate) fn calls(ids: &[&str]) -> Input {
    let content = ids.iter().map(|id| call(id)).collect();
    answer(content, ModelStop::ToolUse, Some((10, 3)))
}

pub(crate) fn asking(id: &str) -> Input {
    Input::Asking {
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

pub(crate) fn ended(id: &str, envelope: ToolEnvelope) -> Input {
    Input::Ended {
        call_id: id.into(),
        envelope,
    }
}

pub(crate) fn failed(kind: FaultKind) -> Input {
    Input::ModelFailed(ModelFault {
        kind,
        message: "it broke".to_owned(),
        status: None,
        retry_after: None,
    })
}

/// An answer with these calls; those in `beside` may run at the same time.
pub(crate) fn parallel_calls(ids: &[&str], beside: &[&str]) -> Input {
    let Input::Answered { response, .. } = calls(ids) else {
        unreachable!("an answer");
    };
    let calls = announced(&response.content, |call| {
        beside.contains(&call.call_id.as_str())
    });
    Input::Answered { response, calls }
}

/// What a call comes to that decides about its loop.
pub(crate) fn deciding(text: &str, control: ToolControl) -> ToolEnvelope {
    ToolEnvelope {
        control: Some(Box::new(control)),
        ..ToolEnvelope::text(text)
    }
}

pub(crate) fn printed(id: &str, text: &str) -> Input {
    Input::Printed {
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

pub(crate) fn go() -> Input {
    Input::Hooked(HookVerdict::Go)
}

pub(crate) fn no(reason: &str) -> Input {
    Input::Hooked(HookVerdict::Stop(reason.to_owned()))
}
