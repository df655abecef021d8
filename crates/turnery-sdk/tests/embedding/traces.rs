//! Tests of the trace sink: one record for each attempt of a model call, whatever its result.

use crate::{
    fixture::{World, describe_all, run_hello},
    toy::{ToyStep, model_error, usage_of},
};
use serde_json::json;
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};
use turnery_engine::{Event, EventKind, ModelErrorKind, Outcome, PromptId, Response, TurnStop};
use turnery_sdk::{
    ModelCallAttempt, PromptOptions, PromptStart, SessionExt as _, TraceSink, usage::source,
};

// proves: LASH-99, LASH-112, I12, R9
#[tokio::test(start_paused = true)]
async fn every_attempt_is_traced_with_its_end() {
    let second = Duration::from_secs(1);
    let world = World::new(vec![
        vec![
            ToyStep::Pause(second * 3),
            ToyStep::Retry(1),
            ToyStep::Retry(2),
            ToyStep::Pause(second * 5),
            ToyStep::Say("hi"),
            ToyStep::Spend(usage_of(1)),
            ToyStep::Call("c", "look"),
        ],
        vec![ToyStep::Retry(1), ToyStep::Fail],
    ]);
    let session = world.session().await;
    let output = run_hello(&session).await;
    assert_eq!(
        describe_all(&output.activities),
        [
            "retry 1",
            "retry 2",
            "say hi",
            "usage",
            "start look",
            "end look: done",
            "retry 1",
            "usage",
        ]
    );
    let calls = world.traced_calls();
    let found: Vec<_> = calls
        .iter()
        .map(|call| {
            let kind = call.error.as_ref().map(|error| error.kind);
            (call.attempt, call.accepted, kind, call.duration.as_secs())
        })
        .collect();
    let busy = Some(ModelErrorKind::Overloaded);
    assert_eq!(
        found,
        [
            (1, false, busy, 3),
            (2, false, busy, 0),
            (3, true, None, 5),
            (1, false, busy, 0),
            (2, false, busy, 0),
        ]
    );
    assert_eq!(json!(calls[0])["fault"]["kind"], "overloaded");
    let records = world.records(&session).await;
    for call in &calls {
        assert_eq!(call.session_id, *session.id());
        assert_eq!(call.loop_id, records[0].loop_id);
        assert_eq!(call.source, source::TURN);
        assert_eq!(call.model, "toy/one");
        assert_eq!(call.usage, call.accepted.then(|| usage_of(1)));
    }
    // What was tried again is kept with the loop, too.
    let attempts: Vec<_> = records[0]
        .attempts
        .iter()
        .map(|it| (it.turn_index, it.attempt))
        .collect();
    assert_eq!(attempts, [(0, 1), (0, 2), (1, 1)]);
}

// proves: LASH-99, LASH-106
#[tokio::test(start_paused = true)]
async fn dropped_call_is_traced_as_not_accepted() {
    let world = World::new(vec![
        vec![ToyStep::Say("a"), ToyStep::Spend(usage_of(2))],
        vec![ToyStep::Say("b"), ToyStep::Hang],
    ]);
    let (first, second) = (world.session().await, world.session().await);
    run_hello(&first).await;
    let mut stream = second.new_prompt("hello").stream().unwrap();
    stream.next().await.unwrap();
    second.cancel_prompts();
    stream.finish().await.unwrap();
    let calls = world.traced_calls();
    let ids: Vec<_> = calls.iter().map(|call| &call.session_id).collect();
    assert_eq!(ids, [first.id(), second.id()]);
    assert!(calls[0].accepted);
    assert_eq!(
        (calls[1].accepted, &calls[1].usage, &calls[1].error),
        (false, &None, &None)
    );
    let mut shape = json!(calls[0]);
    let at = shape["started_at"].take();
    assert!(at.is_string());
    assert_eq!(
        shape,
        json!({
            "session_id": first.id(),
            "prompt_id": calls[0].prompt_id,
            "loop_id": calls[0].loop_id,
            "source": "turn",
            "model": "toy/one",
            "attempt": 1,
            "started_at": null,
            "duration_ms": 0,
            "accepted": true,
            "usage": {
                "input_tokens": 2,
                "output_tokens": 20,
                "cache_read_input_tokens": 200,
                "cache_write_input_tokens": 2000,
                "reasoning_output_tokens": 2,
            },
        })
    );
    assert_eq!(json!(calls[1]).get("usage"), None);
    assert_eq!(json!(calls[1]).get("fault"), None);
}

struct Broken;

impl TraceSink for Broken {
    fn record(&self, _call: &ModelCallAttempt) {
        panic!("{}", model_error());
    }

    fn receive_response(&self, _call: &ModelCallAttempt, _response: &Response) {
        panic!("{}", model_error());
    }

    fn start_prompt(&self, _prompt: &PromptStart<'_>) {
        panic!("{}", model_error());
    }

    fn receive_event(&self, _prompt_id: &PromptId, _event: &Event) {
        panic!("{}", model_error());
    }

    fn end_prompt(&self, _prompt_id: &PromptId, _outcome: Option<&Outcome>) {
        panic!("{}", model_error());
    }
}

/// Writes down what it receives: one line each, with the number of the prompt.
#[derive(Default)]
struct Journal(Mutex<(Vec<PromptId>, Vec<String>)>);

impl Journal {
    fn push(&self, prompt_id: &PromptId, text: &str) {
        let (prompts, lines) = &mut *self.0.lock().unwrap();
        let known = prompts.iter().position(|it| it == prompt_id);
        let number = known.unwrap_or_else(|| {
            prompts.push(prompt_id.clone());
            prompts.len() - 1
        });
        lines.push(format!("{number} {text}"));
    }

    fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap().1.clone()
    }
}

impl TraceSink for Journal {
    fn record(&self, call: &ModelCallAttempt) {
        let text = match call.retry_wait {
            Some(wait) => format!("retry after {} ms", wait.as_millis()),
            None => format!(
                "call of {}, used: {}",
                call.requested_model(),
                call.accepted
            ),
        };
        self.push(&call.prompt_id, &text);
    }

    fn receive_response(&self, call: &ModelCallAttempt, response: &Response) {
        self.push(&call.prompt_id, &format!("response: {}", response.text()));
    }

    fn start_prompt(&self, prompt: &PromptStart<'_>) {
        let (agent, model) = (prompt.agent_id, prompt.model);
        let is_child = prompt.spawned_by.is_some();
        let text = format!("start of {agent} with {model}, child: {is_child}");
        self.push(prompt.prompt_id, &text);
    }

    fn receive_event(&self, prompt_id: &PromptId, event: &Event) {
        match &event.kind {
            kind if kind.is_streaming() => self.push(prompt_id, "fragment"),
            EventKind::ToolExecutionStart { tool_name, .. } => {
                self.push(prompt_id, &format!("start of {tool_name}"));
            }
            EventKind::ToolExecutionEnd { tool_name, .. } => {
                self.push(prompt_id, &format!("end of {tool_name}"));
            }
            _ => {}
        }
    }

    fn end_prompt(&self, prompt_id: &PromptId, outcome: Option<&Outcome>) {
        let text = match outcome {
            Some(Outcome::Stopped(TurnStop::Cancelled)) => "cancelled",
            Some(outcome) if outcome.is_finished() => "finished",
            _ => "failed",
        };
        self.push(prompt_id, text);
    }
}

// proves: LASH-99
#[tokio::test(start_paused = true)]
async fn sink_receives_prompts_from_start_to_end() {
    let mut world = World::new(vec![
        vec![
            ToyStep::Retry(1),
            ToyStep::Say("hm"),
            ToyStep::Call("c", "look"),
        ],
        vec![ToyStep::Say("done")],
        vec![ToyStep::Say("b"), ToyStep::Hang],
    ]);
    let journal: Arc<Journal> = Arc::default();
    world.agent = world.agent.with_trace(journal.clone());
    let session = world.session().await;
    run_hello(&session).await;
    let mut stream = session.new_prompt("hello").stream().unwrap();
    stream.next().await.unwrap();
    session.cancel_prompts();
    stream.finish().await.unwrap();
    assert_eq!(
        journal.lines(),
        [
            "0 start of turnery with toy/one, child: false",
            "0 retry after 1000 ms",
            "0 response: hm",
            "0 call of toy/one, used: true",
            "0 start of look",
            "0 end of look",
            "0 response: done",
            "0 call of toy/one, used: true",
            "0 finished",
            "1 start of turnery with toy/one, child: false",
            "1 call of toy/one, used: false",
            "1 cancelled",
        ]
    );
}

// proves: LASH-99
#[tokio::test(start_paused = true)]
async fn trace_sink_panic_does_not_affect_the_prompt() {
    let mut world = World::new(vec![
        vec![ToyStep::Retry(1), ToyStep::Say("a")],
        vec![ToyStep::Say("b")],
    ]);
    world.agent = world.agent.with_trace(Arc::new(Broken));
    let session = world.session().await;
    let output = run_hello(&session).await;
    assert_eq!(
        describe_all(&output.activities),
        ["retry 1", "say a", "usage"]
    );
    let output = run_hello(&session).await;
    assert_eq!(describe_all(&output.activities), ["say b", "usage"]);
}

// proves: LASH-99, I12
#[tokio::test(start_paused = true)]
async fn compaction_without_call_is_not_traced() {
    let world = World::new(vec![vec![ToyStep::Say("hi")]]);
    let session = world.session().await;
    run_hello(&session).await;
    let ticket = session.compact(PromptOptions::default()).unwrap();
    let result = ticket.result().await.unwrap();
    assert_eq!(result.loops[0].compaction_block, None);
    let found: Vec<_> = world
        .traced_calls()
        .iter()
        .map(|call| call.source)
        .collect();
    assert_eq!(found, [source::TURN]);
}
