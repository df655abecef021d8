//! Handwritten sessions, events and records for all store tests.

use std::{
    sync::{Arc, LazyLock},
    time::Duration,
};
use turnery_engine::{
    CallDetail, CallId, CallKind, ConfigSnapshot, Content, ContinuationKind, Disposition, Event,
    EventKind, LlmMessage, LoopId, LoopRecord, LoopStatus, Message, MessageId, MessageStop,
    Outcome, PromptId, SessionId, Timestamp, ToolCall, ToolEnvelope, TurnFinish, TurnId,
    TurnRecord, TurnTrigger, Usage,
};
use turnery_store::{Commit, Lane, NewSession, Owner};

/// Returns a time this many seconds after the start of the tests.
pub(crate) fn at(seconds: u64) -> Timestamp {
    static START: LazyLock<Timestamp> =
        LazyLock::new(|| "2026-11-21T05:00:00.000000001Z".parse().expect("a time"));
    *START + Duration::from_secs(seconds)
}

pub(crate) fn new_session(id: &str) -> NewSession {
    NewSession {
        id: id.into(),
        cwd: "/home/ann/project".into(),
        folder: None,
        roots: vec!["/home/ann/library".into()],
        model: "offline/echo".into(),
        mode: "ask".into(),
        at: at(0),
        spawned_by: None,
    }
}

/// Returns an owner in this process.
pub(crate) fn owner(id: &str) -> Owner {
    Owner {
        id: id.into(),
        ..Owner::for_this_process()
    }
}

pub(crate) fn commit_of(lane: &Lane, expected_head: u64, record: &Arc<LoopRecord>) -> Commit {
    Commit {
        lane: lane.clone(),
        expected_head,
        records: vec![record.clone()],
        tip: 0,
        title: None,
        release: false,
        effects: Vec::new(),
    }
}

pub(crate) fn loop_id(session: &str, number: u32) -> LoopId {
    format!("{session}.cfg.{number}").into()
}

pub(crate) fn usage(input: u64, output: u64) -> Usage {
    Usage {
        input,
        output,
        ..Usage::default()
    }
}

pub(crate) fn config() -> ConfigSnapshot {
    ConfigSnapshot {
        model: "echo".into(),
        provider: "offline".into(),
        config_id: Some("cfg".into()),
        reasoning: Some(false),
        context_window: Some(200_000),
        temperature: Some(0.7),
        ..ConfigSnapshot::default()
    }
}

/// Returns a pending tool call.
pub(crate) fn call(id: &str) -> ToolCall {
    ToolCall::new(
        id,
        "read",
        serde_json::json!({"path": "/home/ann/project/a.txt"}),
    )
}

/// Returns the events of a loop with one turn, one question and one response.
pub(crate) fn events(session: &str, number: u32, question: &str) -> Vec<Event> {
    let id = loop_id(session, number);
    let ask = message(&id, "ask", user(question));
    let answer = message(&id, "answer", assistant("All is well."));
    let kinds = [
        EventKind::LoopStart {
            agent_id: "turnery".into(),
            prompt_id: PromptId::from(format!("prompt-{number}")),
            parent_loop_id: (number > 1).then(|| loop_id(session, number - 1)),
            continuation_kind: ContinuationKind::Initial,
            config: Some(Box::new(config())),
            tag: None,
            metadata: None,
            frame_id: None,
            frame: None,
        },
        EventKind::TurnStart {
            trigger: TurnTrigger::User,
        },
        EventKind::MessageStart {
            message_id: ask.message_id.clone(),
        },
        EventKind::MessageEnd { message: ask },
        EventKind::MessageStart {
            message_id: answer.message_id.clone(),
        },
        EventKind::MessageEnd { message: answer },
        EventKind::UsageReported {
            usage: Some(usage(10, 5)),
            cumulative: usage(10, 5),
        },
        EventKind::TurnEnd {
            usage: Some(usage(10, 5)),
            tool_results: Vec::new(),
        },
        EventKind::LoopEnd {
            outcome: Outcome::Finished(
                TurnFinish::AssistantMessage {
                    text: "All is well.".into(),
                },
                None,
            ),
            usage: usage(10, 5),
            rejection: None,
        },
    ];
    let within = |place: usize| (1..=7).contains(&place).then_some(0);
    let kinds = kinds.into_iter().enumerate();
    kinds
        .map(|(place, kind)| event(session, number, place as u64, within(place), kind))
        .collect()
}

pub(crate) fn event(
    session: &str,
    number: u32,
    seq: u64,
    turn_index: Option<u32>,
    kind: EventKind,
) -> Event {
    Event {
        session_id: session.into(),
        loop_id: loop_id(session, number),
        seq,
        turn_index,
        at: at(u64::from(number) * 100 + seq),
        kind,
    }
}

/// Returns the record of [`events`].
pub(crate) fn record(session: &str, number: u32, question: &str) -> LoopRecord {
    let id = loop_id(session, number);
    let events = events(session, number, question);
    let messages = events.iter().filter_map(|event| match &event.kind {
        EventKind::MessageEnd { message } => Some(message.clone()),
        _ => None,
    });
    let start = u64::from(number) * 100;
    let begun = LoopRecord::new_running(
        SessionId::from(session),
        id.clone(),
        "turnery".into(),
        at(start),
    );
    LoopRecord {
        prompt_id: Some(PromptId::from(format!("prompt-{number}"))),
        status: LoopStatus::Completed,
        outcome: Some(Outcome::Finished(
            TurnFinish::AssistantMessage {
                text: "All is well.".into(),
            },
            None,
        )),
        parent_loop_id: (number > 1).then(|| loop_id(session, number - 1)),
        ended_at: Some(at(start + 8)),
        config: Some(config()),
        usage: usage(10, 5),
        turns: vec![TurnRecord {
            turn_id: TurnId {
                loop_id: id.clone(),
                turn_index: 0,
            },
            triggered_by: TurnTrigger::User,
            usage: Some(usage(10, 5)),
            input_messages: vec![MessageId::from(format!("{id}.ask"))],
            output_message: Some(MessageId::from(format!("{id}.answer"))),
            tool_results: Vec::new(),
            started_at: at(start + 1),
            ended_at: Some(at(start + 7)),
        }],
        messages: messages.collect(),
        events,
        on_chain: true,
        ..begun
    }
}

/// Adds this many calls of three events each after the record's response.
pub(crate) fn with_calls(mut record: LoopRecord, calls: usize, output: &str) -> LoopRecord {
    let name = |number: usize| CallId::from(format!("{}.call-{number}", record.loop_id));
    let kinds = (0..calls).flat_map(|number| {
        [
            EventKind::ToolCallRequested {
                call: ToolCall {
                    call_id: name(number),
                    ..call("")
                },
                detail: detail("Read a.txt"),
            },
            EventKind::ToolExecutionStart {
                call_id: name(number),
                tool_name: "read".into(),
                runs: true,
            },
            EventKind::ToolExecutionEnd {
                call_id: name(number),
                tool_name: "read".into(),
                envelope: ToolEnvelope::text(output),
                disposition: Disposition::Executed,
                child_loop_id: None,
            },
        ]
    });
    let before = record.events[5].clone();
    let added: Vec<Event> = kinds
        .map(|kind| Event {
            kind,
            ..before.clone()
        })
        .collect();
    record.events.splice(6..6, added);
    for (seq, event) in (0..).zip(&mut record.events) {
        event.seq = seq;
    }
    record
}

pub(crate) fn message(of: &LoopId, name: &str, message: Message) -> Arc<LlmMessage> {
    Arc::new(LlmMessage {
        message_id: MessageId::from(format!("{of}.{name}")),
        turn_id: Some(TurnId {
            loop_id: of.clone(),
            turn_index: 0,
        }),
        message,
    })
}

pub(crate) fn user(text: &str) -> Message {
    Message::user(text)
}

pub(crate) fn assistant(text: &str) -> Message {
    Message::Assistant {
        content: vec![Content::text(text)],
        stop: MessageStop::Stop,
        model: "echo".into(),
        provider: "offline".into(),
        usage: Some(usage(10, 5)),
        error: None,
        request: None,
    }
}

pub(crate) fn detail(title: &str) -> CallDetail {
    CallDetail {
        title: title.into(),
        kind: CallKind::Read,
        ..CallDetail::default()
    }
}
