//! Checks that every kind of event and message is read back unchanged.

use crate::{World, battery, samples::*};
use serde_json::json;
use std::sync::Arc;
use turnery_engine::{
    Artifact, AudioData, CallDetail, CallId, Content, Disposition, EventKind, ImageData, LimitKind,
    LlmMessage, LoopRecord, Message, MessageStop, ModelDelta, ModelErrorKind, Outcome, PlanEntry,
    PlanPriority, PlanStatus, ProviderFailure, ReachedLimit, ToolEnvelope, ToolErrorKind, TurnId,
    TurnStop, Usage, Verdict,
};

battery!(
    every_variant_is_read_back_unchanged,
    every_outcome_is_read_back_unchanged
);

fn contents() -> Vec<Content> {
    vec![
        Content::text("naïve \u{0} \u{1F980}\n\"quoted\""),
        Content::Image(ImageData {
            mime_type: "image/png".into(),
            base64: "aGk=".into(),
        }),
        Content::Audio(AudioData {
            mime_type: "audio/wav".into(),
            base64: "UklGRg==".into(),
        }),
        Content::Thinking {
            text: "hm".into(),
            signature: Some("sig".into()),
        },
        Content::ToolCall(call("c1")),
        Content::Opaque {
            provider: "p".into(),
            value: json!({"deep": [1, 2.5, null, {"type": "x"}], "big": u64::MAX}),
        },
    ]
}

fn call_detail() -> CallDetail {
    let mut artifacts: Vec<Artifact> = contents().into_iter().map(Artifact::Content).collect();
    artifacts.push(Artifact::Diff {
        path: "/a".into(),
        old: None,
        new: "x".into(),
        from_line: None,
    });
    artifacts.push(Artifact::Terminal {
        terminal_id: "t".into(),
    });
    CallDetail {
        artifacts,
        locations: vec![turnery_engine::Location {
            path: "/a".into(),
            line: Some(7),
        }],
        ..detail("Read a.txt")
    }
}

fn messages() -> Vec<Arc<LlmMessage>> {
    let id = loop_id("s1", 1);
    let told = Message::System {
        text: "Max turns reached (50/50)".into(),
    };
    let notice = LlmMessage {
        message_id: "notice".into(),
        turn_id: None,
        message: told,
    };
    let elsewhere = LlmMessage {
        message_id: "elsewhere".into(),
        turn_id: Some(TurnId {
            loop_id: "other.cfg.1".into(),
            turn_index: 3,
        }),
        message: user("Copied"),
    };
    let failed = Message::Assistant {
        content: contents(),
        stop: MessageStop::Error,
        model: "m".into(),
        provider: "p".into(),
        usage: None,
        error: Some("overloaded".into()),
        request: None,
    };
    let result = Message::ToolResult {
        call_id: "c1".into(),
        tool_name: "read".into(),
        content: contents(),
        is_error: true,
    };
    let ask = Message::User {
        content: contents(),
    };
    vec![
        message(&id, "ask", ask),
        message(&id, "failed", failed),
        message(&id, "result", result),
        Arc::new(notice),
        Arc::new(elsewhere),
    ]
}

fn kinds() -> Vec<EventKind> {
    let call_id = CallId::from("c1");
    let unkept = message(&loop_id("s1", 1), "unkept", user("In no list of messages"));
    let envelope = ToolEnvelope {
        value: Some(json!({"lines": 3})),
        artifacts: call_detail().artifacts,
        effects: vec![json!("effect")],
        ..ToolEnvelope::failed(ToolErrorKind::ExecutionError, "exit code 2")
    };
    let mut kinds: Vec<EventKind> = messages()
        .into_iter()
        .chain([unkept])
        .map(|message| EventKind::MessageEnd { message })
        .collect();
    let verdicts = [
        Verdict::Allow,
        Verdict::Deny("no".into()),
        Verdict::Cancelled,
    ];
    kinds.extend(verdicts.map(|verdict| EventKind::PermissionResolved {
        call_id: call_id.clone(),
        verdict,
    }));
    kinds.extend([
        EventKind::InputRejected {
            reason: "no".into(),
        },
        EventKind::Delta {
            message_id: "m".into(),
            delta: ModelDelta::Thinking {
                block: 1,
                text: "hm".into(),
            },
        },
        EventKind::UsageReported {
            usage: None,
            cumulative: Usage::default(),
        },
        EventKind::ToolCallRequested {
            call: call("c1"),
            detail: call_detail(),
        },
        EventKind::PermissionRequested {
            call_id: call_id.clone(),
            detail: call_detail(),
        },
        EventKind::ToolExecutionStart {
            call_id: call_id.clone(),
            tool_name: "read".into(),
            runs: true,
        },
        EventKind::ToolExecutionUpdate {
            call_id: call_id.clone(),
            detail: call_detail(),
        },
        EventKind::ToolExecutionOutput {
            call_id: call_id.clone(),
            text: "out".into(),
        },
        EventKind::ToolExecutionEnd {
            call_id,
            tool_name: "read".into(),
            envelope,
            disposition: Disposition::TimedOut,
            child_loop_id: None,
        },
        EventKind::PlanUpdated {
            entries: vec![PlanEntry {
                content: "Do it".into(),
                priority: PlanPriority::High,
                status: PlanStatus::InProgress,
            }],
        },
    ]);
    kinds
}

async fn assert_stored_unchanged(world: &World, record: LoopRecord) {
    let id = record.session_id.clone();
    world.store.create(new_session(id.as_str())).await.unwrap();
    let lane = world.store.claim(&id, &owner("a")).await.unwrap().lane;
    let record = Arc::new(record);
    world.commit(&lane, 0, &record).await.unwrap();
    assert_eq!(world.store.loops(&id, 0).await, Ok(vec![record]));
}

// proves: LASH-42
async fn every_variant_is_read_back_unchanged(world: &World) {
    let mut record = record("s1", 1, "Hello");
    record.messages.extend(messages());
    for (seq, kind) in (20..).step_by(3).zip(kinds()) {
        record.events.push(event("s1", 1, seq, Some(0), kind));
    }
    assert_stored_unchanged(world, record).await;
}

async fn every_outcome_is_read_back_unchanged(world: &World) {
    let stops = [
        TurnStop::Cancelled,
        TurnStop::MaxTurns(ReachedLimit {
            kind: LimitKind::Turns,
            text: "Max turns reached (50/50)".into(),
        }),
        TurnStop::ProviderError(ProviderFailure::Failed {
            kind: ModelErrorKind::Overloaded,
            message: "try later".into(),
        }),
        TurnStop::ProviderError(ProviderFailure::Refused),
        TurnStop::ToolError {
            tool_name: "read".into(),
            value: json!([1, "two"]),
        },
    ];
    for (number, stop) in stops.into_iter().enumerate() {
        let session = format!("s{number}");
        let sample = LoopRecord {
            outcome: Some(Outcome::Stopped(stop)),
            ended_at: None,
            config: None,
            prompt_id: None,
            ..record(&session, 1, "Hello")
        };
        assert_stored_unchanged(world, sample).await;
    }
}
