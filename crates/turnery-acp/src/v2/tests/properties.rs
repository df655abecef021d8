//! Property tests: folding the live updates of a call yields the same state as its replay.

use super::{encode_live, encode_replayed, fold::FoldedSession};
use crate::tests::{
    encoder::{assistant, config},
    events::{loop_end, loop_start, message_end},
};
use proptest::prelude::*;
use serde_json::json;
use std::path::PathBuf;
use turnery_engine::{
    Artifact, CallDetail, CallId, CallKind, Content, Disposition, EventKind, Location, LoopId,
    Outcome, ToolCall, ToolEnvelope, ToolErrorKind, TurnFinish,
};

fn location() -> impl Strategy<Value = Location> {
    ("/[ab]", prop::option::of(1u32..9)).prop_map(|(path, line)| Location {
        path: PathBuf::from(path),
        line,
    })
}

fn artifact() -> impl Strategy<Value = Artifact> {
    let diff = ("/[ab]", prop::option::of("[a\n]{0,4}"), "[ab\n]{0,4}");
    prop_oneof![
        diff.prop_map(|(path, old, new)| Artifact::Diff {
            path: PathBuf::from(path),
            old,
            new,
            from_line: None,
        }),
        "[a-z]{1,3}".prop_map(|text| Artifact::Content(Content::text(text))),
    ]
}

fn detail() -> impl Strategy<Value = CallDetail> {
    let kinds = prop::sample::select(vec![CallKind::Read, CallKind::Execute, CallKind::Other]);
    (
        "[a-c]{0,2}",
        kinds,
        prop::collection::vec(location(), 0..3),
        prop::collection::vec(artifact(), 0..3),
    )
        .prop_map(|(title, kind, locations, artifacts)| CallDetail {
            title,
            kind,
            locations,
            artifacts,
        })
}

fn call_end() -> impl Strategy<Value = (ToolEnvelope, Disposition, Option<LoopId>)> {
    let result = prop_oneof![
        prop::collection::vec("[a-z\n]{0,3}", 0..3)
            .prop_map(|texts| ToolEnvelope::ok(texts.into_iter().map(Content::text).collect())),
        "[a-z]{1,3}".prop_map(|text| ToolEnvelope::failed(ToolErrorKind::ExecutionError, text)),
    ];
    let ends = prop::sample::select(vec![
        Disposition::Executed,
        Disposition::Denied,
        Disposition::Cancelled,
        Disposition::TimedOut,
    ]);
    (
        result,
        prop::option::of("[a-z]{1,3}"),
        prop::collection::vec(artifact(), 0..3),
        prop::collection::vec(location(), 0..2),
        ends,
        prop::option::of(Just(LoopId::from("child.offline.1"))),
    )
        .prop_map(
            |(mut envelope, value, artifacts, locations, disposition, child)| {
                envelope.value = value.map(|value| json!(value));
                envelope.artifacts = artifacts;
                envelope.locations = locations;
                (envelope, disposition, child)
            },
        )
}

/// Generates an event between the request of a call and its start.
fn call_event(id: CallId) -> impl Strategy<Value = EventKind> {
    let asked = id.clone();
    let says = id.clone();
    prop_oneof![
        detail().prop_map(move |detail| EventKind::ToolExecutionUpdate {
            call_id: id.clone(),
            detail
        }),
        detail().prop_map(move |detail| EventKind::PermissionRequested {
            call_id: asked.clone(),
            detail
        }),
        "[a-z]{1,3}".prop_map(move |text| EventKind::ToolProgress {
            call_id: says.clone(),
            text
        }),
    ]
}

fn call_history(n: usize) -> impl Strategy<Value = Vec<EventKind>> {
    let id = CallId::from(format!("c{n}").as_str());
    let between = prop::collection::vec(call_event(id.clone()), 0..5);
    (detail(), between, call_end()).prop_map(move |(detail, between, end)| {
        let asked = ToolCall::new(id.clone(), "tool", json!({"a": 1}));
        let (envelope, disposition, child_loop_id) = end;
        let mut kinds = vec![EventKind::ToolCallRequested {
            call: asked,
            detail,
        }];
        kinds.extend(between);
        kinds.push(EventKind::ToolExecutionStart {
            call_id: id.clone(),
            tool_name: "tool".to_owned(),
            runs: disposition == Disposition::Executed,
        });
        kinds.push(EventKind::ToolExecutionEnd {
            call_id: id.clone(),
            tool_name: "tool".to_owned(),
            envelope,
            disposition,
            child_loop_id,
        });
        kinds
    })
}

fn wrap_in_loop(between: Vec<EventKind>) -> Vec<EventKind> {
    let content = vec![Content::text("hello")];
    let mut kinds = vec![
        loop_start(Some(config(Some(100)))),
        message_end("m1", assistant(content)),
    ];
    kinds.extend(between);
    kinds.push(loop_end(Outcome::Finished(
        TurnFinish::AssistantMessage {
            text: "hello".into(),
        },
        None,
    )));
    kinds
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    // proves: V2-11, V2-12
    #[test]
    fn live_updates_fold_to_the_replay(calls in (call_history(1), call_history(2))) {
        let kinds = wrap_in_loop([calls.0, calls.1].concat());
        let mut told = encode_live(kinds.clone());
        // Sent at the end of a prompt, which is not an event.
        told.push(json!({"sessionUpdate": "state_update", "state": "idle"}));
        let (live, later) = FoldedSession::live_and_replayed(&told, &encode_replayed(kinds));
        prop_assert_eq!(live, later);
    }
}
