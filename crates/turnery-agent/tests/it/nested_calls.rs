//! Tests the calls that a running call requests: they are judged, recorded, shown and stopped like the model's.

use crate::fixture::{
    EmbeddingFixture, LARGE_CAPACITY, ModelAct, ShownItem, choose, drain, live_events, run_text,
    start_text,
};
use serde_json::{Value, json};
use turnery_agent::{ActivityEvent, Projection};
use turnery_engine::{
    CallId, Content, Disposition, Event, EventKind, Message, Outcome, ToolCall, ToolEnvelope,
    TurnStop, oracle::check_live,
};
use turnery_tools::ToolCx;

/// Calls the named tools at once, and returns their results as lines. A name with `>` is a group that calls the tool
/// after it.
pub(crate) async fn call_group(args: &Value, cx: &ToolCx) -> ToolEnvelope {
    let calls = args["calls"].as_str().unwrap_or_default();
    let calls = calls
        .split_whitespace()
        .map(|name| match name.split_once('>') {
            Some((group, inner)) => (group.to_owned(), json!({ "calls": inner })),
            None => (name.to_owned(), json!({})),
        });
    let caller = cx.caller.as_ref().expect("a session");
    match caller.call(calls.collect()).await {
        Ok(results) => {
            let text = |result: ToolEnvelope| match result.result {
                Ok(content) => content.iter().filter_map(Content::as_text).collect(),
                Err(error) => format!("{:?}: {}", error.kind, error.message),
            };
            let lines: Vec<String> = results.into_iter().map(text).collect();
            ToolEnvelope::text(lines.join("\n"))
        }
        Err(error) => ToolEnvelope::from(error),
    }
}

const CALLS: fn(&'static str) -> [ModelAct; 1] = |args| [ModelAct::CallWith("g", "group", args)];

/// Returns the calls that were requested: id, name, and parent.
fn requested(events: &[Event]) -> Vec<(String, String, Option<String>)> {
    let calls = events.iter().filter_map(|event| match &event.kind {
        EventKind::ToolCallRequested { call, .. } => Some(call),
        _ => None,
    });
    let describe = |call: &ToolCall| {
        let parent = call.parent_call_id.as_ref().map(CallId::to_string);
        (call.call_id.to_string(), call.name.clone(), parent)
    };
    calls.map(describe).collect()
}

fn row(id: &str, name: &str, parent: Option<&str>) -> (String, String, Option<String>) {
    (id.to_owned(), name.to_owned(), parent.map(str::to_owned))
}

/// Returns the text of the result that the model got for the call `g`.
fn result_text(events: &[Event]) -> String {
    let mut results = events.iter().filter_map(|event| match &event.kind {
        EventKind::MessageEnd { message } => match &message.message {
            Message::ToolResult { call_id, .. } if *call_id == "g".into() => {
                Some(message.message.text())
            }
            _ => None,
        },
        _ => None,
    });
    results.next_back().unwrap_or_default()
}

// proves: LASH-71, C-6
#[tokio::test(start_paused = true)]
async fn nested_calls_run_side_by_side_and_return_to_their_parent() {
    let world = EmbeddingFixture::new(&[
        // Two calls of `meet` end only if they run at once.
        &CALLS(r#"{"calls": "meet meet absent look"}"#),
        &[ModelAct::Say("done")],
    ]);
    let (session, mut seen) = world.session(LARGE_CAPACITY).await;
    run_text(&session, "go").await;
    let events = live_events(&drain(&mut seen));
    check_live(&events).unwrap();
    let text = result_text(&events);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[..2], ["met", "met"]);
    assert!(
        lines[2].starts_with("NotFound: there is no tool \"absent\""),
        "{text}"
    );
    assert_eq!(lines[3], "done");
    assert_eq!(
        requested(&events),
        [
            row("g", "group", None),
            row("g.0", "meet", Some("g")),
            row("g.1", "meet", Some("g")),
            row("g.2", "absent", Some("g")),
            row("g.3", "look", Some("g")),
        ]
    );
    // The model sees only the call that it made.
    let request = world.model.request(1);
    assert_eq!(request.len(), 3, "{request:?}");
}

// proves: PERM-1, PERM-3
#[tokio::test(start_paused = true)]
async fn nested_call_needs_permission() {
    for (answer, text) in [
        ("allow_once", "done"),
        ("reject_once", "Denied: the user rejected this call"),
    ] {
        let world =
            EmbeddingFixture::new(&[&CALLS(r#"{"calls": "ring"}"#), &[ModelAct::Say("so be it")]])
                .with_answers(&[choose(answer)]);
        let (session, mut seen) = world.session(LARGE_CAPACITY).await;
        run_text(&session, "ring").await;
        let asked = world.client.asked.lock().unwrap().len();
        let events = live_events(&drain(&mut seen));
        assert_eq!((result_text(&events).as_str(), asked), (text, 1));
        let ran = world.ran.lock().unwrap().contains(&"ring".to_owned());
        assert_eq!(ran, answer == "allow_once");
    }
}

// proves: ACP-51, LASH-90
#[tokio::test(start_paused = true)]
async fn cancel_stops_nested_calls_and_their_parent() {
    for calls in [
        r#"{"calls": "hang"}"#,
        r#"{"calls": "stubborn look"}"#,
        r#"{"calls": "group>hang"}"#,
    ] {
        let world = EmbeddingFixture::new(&[&[ModelAct::CallWith("g", "group", calls)]]);
        let (session, mut seen) = world.session(LARGE_CAPACITY).await;
        let prompt = start_text(&session, "go");
        let depth = if calls.contains('>') { "g.0.0" } else { "g.0" };
        let mut items = Vec::new();
        let is_inner = |item: &ShownItem| match item {
            ShownItem::Live(event) => matches!(
                &event.kind,
                EventKind::ToolExecutionStart { call_id, .. } if call_id.as_str() == depth
            ),
            ShownItem::Replay(_) | ShownItem::Info(_) => false,
        };
        while !items.last().is_some_and(is_inner) {
            items.push(seen.recv().await.unwrap());
        }
        assert_eq!(session.cancel_prompts(), 1);
        let result = prompt.result().await.unwrap();
        assert_eq!(result.outcome, Outcome::Stopped(TurnStop::Cancelled));
        items.extend(drain(&mut seen));
        let events = live_events(&items);
        let ends: Vec<&CallId> = events
            .iter()
            .filter_map(|event| match &event.kind {
                EventKind::ToolExecutionEnd { call_id, .. } => Some(call_id),
                _ => None,
            })
            .collect();
        // Inner calls end before the ones that requested them.
        assert_eq!(ends.last().map(|id| id.as_str()), Some("g"), "{calls}");
        assert!(ends.contains(&&CallId::from(depth)), "{calls}: {ends:?}");
        check_live(&events).unwrap();
    }
}

/// A tool times out while its nested calls run.
#[tokio::test(start_paused = true)]
async fn nested_calls_end_with_their_parent() {
    let script: [&[ModelAct]; 2] = [
        &CALLS(r#"{"calls": "group>stubborn"}"#),
        &[ModelAct::Say("go on")],
    ];
    let world = EmbeddingFixture::with_settings(&script, |settings| {
        settings.limits.duration = std::time::Duration::from_secs(100_000);
    });
    let (session, mut seen) = world.session(LARGE_CAPACITY).await;
    // Both groups have the same time limit; the outer one began first.
    run_text(&session, "go").await;
    let events = live_events(&drain(&mut seen));
    check_live(&events).unwrap();
    let ended = events.iter().filter_map(|event| match &event.kind {
        EventKind::ToolExecutionEnd {
            call_id,
            disposition,
            ..
        } => Some((call_id.as_str().to_owned(), *disposition)),
        _ => None,
    });
    let ended: Vec<(String, Disposition)> = ended.collect();
    assert_eq!(
        ended.last(),
        Some(&("g".to_owned(), Disposition::TimedOut)),
        "{ended:?}"
    );
    assert_eq!(ended.len(), 3, "{ended:?}");
}

// proves: LASH-71, LASH-72
#[tokio::test(start_paused = true)]
async fn activities_name_the_call_around_them() {
    let world = EmbeddingFixture::new(&[
        &CALLS(r#"{"calls": "look group>look"}"#),
        &[ModelAct::Say("done")],
    ]);
    let (session, mut seen) = world.session(LARGE_CAPACITY).await;
    run_text(&session, "go").await;
    let mut projection = Projection::default();
    let events = live_events(&drain(&mut seen));
    let parents: Vec<String> = events
        .iter()
        .filter_map(|event| projection.project(event))
        .filter_map(|activity| {
            let (sign, call, parent) = match activity.event {
                ActivityEvent::ToolCallStarted {
                    call_id,
                    parent_call_id,
                    ..
                } => ("start", call_id, parent_call_id),
                ActivityEvent::ToolCallCompleted {
                    call_id,
                    parent_call_id,
                    ..
                } => ("end", call_id, parent_call_id),
                _ => return None,
            };
            let parent = parent.map_or("none".to_owned(), |id| id.to_string());
            Some(format!("{sign} {} in {parent}", call?))
        })
        .collect();
    assert_eq!(
        parents,
        [
            "start g in none",
            "start g.0 in g",
            "end g.0 in g",
            "start g.1 in g",
            "start g.1.0 in g.1",
            "end g.1.0 in g.1",
            "end g.1 in g",
            "end g in none",
        ]
    );
}

/// A later call of the model never gets the id of a nested call, also after the session was opened again.
// proves: ACP-24, TOOL-2
#[tokio::test(start_paused = true)]
async fn ids_of_nested_calls_stay_unique() {
    let world = EmbeddingFixture::new(&[
        &CALLS(r#"{"calls": "look"}"#),
        &[ModelAct::Call("g.0", "look")],
        &[ModelAct::Say("done")],
        &[ModelAct::Call("g.0", "look")],
        &[ModelAct::Say("done")],
    ]);
    let (session, mut seen) = world.session(LARGE_CAPACITY).await;
    run_text(&session, "go").await;
    let ids = |items: Vec<ShownItem>| -> Vec<String> {
        let calls = requested(&live_events(&items)).into_iter();
        calls.map(|(id, ..)| id).collect()
    };
    let first = ids(drain(&mut seen));
    assert_eq!(first, ["g", "g.0", "g_0"]);
    session.close().await;
    let (session, mut seen) = world.open(session.id(), false).await;
    run_text(&session, "again").await;
    let second = ids(drain(&mut seen));
    assert_eq!(second.len(), 1);
    assert!(!first.contains(&second[0]), "{second:?}");
}
