//! Tests of the compactor: its requests to the model and its use of the responses.

use super::*;
use futures_util::future::BoxFuture;
use serde_json::json;
use std::{path::Path, sync::Mutex};
use turnery_engine::{CallId, LlmMessage, Message, MessageStop, ModelErrorKind, ToolCall, TurnId};
use turnery_models::{ModelName, OfflineModel, Scenario, ScriptedModel};

/// A prompt, `turns` turns that read one file each, and a question.
fn sample_view(turns: u32, output: &str) -> ContextView {
    let mut view = ContextView::default();
    let mut n = 0;
    let mut say = |turn, message| {
        view.push(Arc::new(LlmMessage {
            message_id: format!("s.c.1.m{n}").into(),
            turn_id: Some(TurnId {
                loop_id: "s.c.1".into(),
                turn_index: turn,
            }),
            message,
        }));
        n += 1;
    };
    let user = |text: &str| Message::user(text);
    say(0, user("read it all"));
    for turn in 0..turns {
        let call_id = CallId::from(format!("c{turn}"));
        let call = Content::ToolCall(ToolCall::new(
            call_id.clone(),
            "read_file",
            json!({"path": format!("/src/part{turn}.rs")}),
        ));
        say(
            turn,
            Message::Assistant {
                content: vec![Content::text(format!("Now part {turn}.")), call],
                stop: MessageStop::ToolUse,
                model: "m".to_owned(),
                provider: "p".to_owned(),
                usage: None,
                error: None,
                request: None,
            },
        );
        say(
            turn,
            Message::ToolResult {
                call_id,
                tool_name: "read_file".to_owned(),
                content: vec![Content::text(output)],
                is_error: turn % 2 == 1,
            },
        );
    }
    say(turns, user("and now?"));
    view
}

fn compaction(view: ContextView) -> Compaction {
    Compaction {
        session_id: "s".into(),
        size_before: view.size(),
        has_overflowed: false,
        view,
        overhead_tokens: 0,
        settings: CompactionSettings::default(),
    }
}

/// Behavior of the test model.
enum Behavior {
    Answer(Vec<Content>, ModelStop),
    Error(ModelErrorKind),
    Panic,
    /// Streams text without end.
    Endless,
}

/// Model that records its requests.
struct RecordingModel {
    info: ModelInfo,
    behavior: Behavior,
    requests: Mutex<Vec<ModelRequest>>,
}

const COST: Usage = Usage {
    input: 900,
    output: 30,
    reasoning: 0,
    cache_read: 0,
    cache_write: 0,
};

impl RecordingModel {
    fn new(behavior: Behavior) -> Arc<Self> {
        Self::with_window(None, behavior)
    }

    fn with_window(context_window: Option<u32>, behavior: Behavior) -> Arc<Self> {
        Arc::new(Self {
            info: ModelInfo {
                context_window,
                max_output: 100,
                ..ModelInfo::new(ModelName::new("p", "m"), "test")
            },
            behavior,
            requests: Mutex::default(),
        })
    }

    fn answering(text: &str) -> Arc<Self> {
        Self::new(Behavior::Answer(
            vec![Content::text(text)],
            ModelStop::EndTurn,
        ))
    }

    /// Returns the text of the only request.
    fn request(&self) -> String {
        let requests = self.requests.lock().unwrap();
        let [request] = &requests[..] else {
            panic!("one request: {requests:?}");
        };
        request.messages[0].message.text()
    }
}

impl Model for RecordingModel {
    fn info(&self) -> &ModelInfo {
        &self.info
    }

    fn call(
        &self,
        request: ModelRequest,
        out: ModelEventSender,
    ) -> BoxFuture<'_, Result<Response, ModelError>> {
        self.requests.lock().unwrap().push(request);
        Box::pin(async move {
            match &self.behavior {
                Behavior::Answer(content, stop) => Ok(Response {
                    content: content.clone(),
                    stop: *stop,
                    raw_stop: None,
                    usage: Some(COST),
                    tool_results: Vec::new(),
                    model: "m".to_owned(),
                    provider: "p".to_owned(),
                    request: None,
                }),
                Behavior::Error(kind) => Err(ModelError::new(*kind, "no")),
                Behavior::Panic => panic!("adapter"),
                Behavior::Endless => loop {
                    let (block, text) = (0, "word ".repeat(100));
                    out.send_delta(ModelDelta::Text { block, text }).await;
                },
            }
        })
    }
}

// proves: UP-11, UP-14, I10
#[tokio::test]
async fn model_answer_becomes_summary() {
    let scenario = r#"{"answers": [{"steps": [{"text": "GOAL: read it all"}],
        "usage": {"input": 70, "output": 8}}]}"#;
    let scenario = Scenario::parse(scenario, Path::new("x")).unwrap();
    let view = sample_view(20, &"fn main() {}\n".repeat(20));
    let before = view.size();
    let compacted = compaction(view.clone())
        .run(Arc::new(ScriptedModel::new(scenario)))
        .await;
    let cost = Usage {
        input: 70,
        output: 8,
        ..Usage::default()
    };
    assert_eq!(compacted.usage, Some(cost));
    let block = compacted.block.unwrap();
    let summary = block.keep_compacted[0].message.text();
    assert!(summary.contains("\nGOAL: read it all\n"), "{summary}");
    let mut live = view;
    assert!(live.apply_block(&block));
    assert_eq!(live.size(), compacted.size_after);
    assert!(compacted.size_after.tokens < before.tokens / 2);
}

#[tokio::test]
async fn summary_request_has_transcript_and_no_tools() {
    let model = RecordingModel::answering("a summary");
    let compacted = compaction(sample_view(40, "some output"))
        .run(model.clone())
        .await;
    assert!(compacted.block.is_ok(), "{:?}", compacted.block);
    let request = model.request();
    let part = "<agent>\nNow part 2.\n[calls read_file with {\"path\":\"/src/part2.rs\"}]\n</agent>\n\
                <tool>\n[read_file answered]\nsome output\n</tool>\n";
    assert!(
        request.starts_with(&format!("<conversation>\n{part}")),
        "{request}"
    );
    assert!(request.contains("<tool>\n[read_file failed]\nsome output\n</tool>\n"));
    assert!(
        !request.contains("part 1.") && !request.contains("and now?"),
        "{request}"
    );
    let requests = model.requests.lock().unwrap();
    assert!(requests[0].tools.is_empty());
    assert_eq!(requests[0].thinking, Thinking::Off);
    assert!(requests[0].system.contains("in the person's own words"));
}

#[tokio::test]
async fn earlier_summary_is_summarised_again() {
    let output = "x ".repeat(200);
    let mut view = sample_view(60, &output);
    let first = compaction(view.clone())
        .run(RecordingModel::answering("what was first"))
        .await;
    assert!(view.apply_block(&first.block.unwrap()));
    let model = RecordingModel::answering("what was then");
    let second = compaction(view.clone()).run(model.clone()).await;
    let request = model.request();
    assert!(request.starts_with("<conversation>\n<earlier>\n[Not a message of the user"));
    assert!(request.contains("what was first"), "{request}");
    assert!(view.apply_block(&second.block.unwrap()));
    let shown: Vec<String> = view.messages().iter().map(|m| m.message.text()).collect();
    assert!(!shown.iter().any(|text| text.contains("what was first")));
    assert!(shown.iter().any(|text| text.contains("what was then")));
}

#[tokio::test]
async fn transcript_fits_context_window() {
    let output = "a line of some length that says nothing at all\n".repeat(300);
    let small = "and a summary";
    for (window, lines) in [(None, 100), (Some(22_000), 40), (Some(3_500), 5)] {
        let behavior = Behavior::Answer(vec![Content::text(small)], ModelStop::EndTurn);
        let model = RecordingModel::with_window(window, behavior);
        let compacted = compaction(sample_view(40, &output))
            .run(model.clone())
            .await;
        assert!(compacted.block.is_ok());
        let request = model.request();
        if let Some(window) = window {
            assert!(
                estimate_text_tokens(&request) + 100 < u64::from(window),
                "{window}"
            );
        }
        let tool = request.split("<tool>").nth(1).unwrap();
        let shown = tool.split("</tool>").next().unwrap().trim().lines();
        assert_eq!(shown.count(), 1 + lines, "{window:?}");
    }
}

#[tokio::test]
async fn oldest_messages_are_omitted_first() {
    let behavior = Behavior::Answer(vec![Content::text("short")], ModelStop::EndTurn);
    let model = RecordingModel::with_window(Some(1_000), behavior);
    let compacted = compaction(sample_view(60, "output"))
        .run(model.clone())
        .await;
    assert!(compacted.block.is_ok());
    let request = model.request();
    assert!(request.starts_with("<conversation>\n[… what was said before this is left out …]\n"));
    assert!(
        estimate_text_tokens(&request) < 900 + 50,
        "{}",
        estimate_text_tokens(&request)
    );
}

// proves: I10
#[tokio::test]
async fn unusable_summary_is_a_typed_error() {
    let answer = |text: &str, stop| Behavior::Answer(vec![Content::text(text)], stop);
    let call = Content::ToolCall(ToolCall::new("c", "x", json!({})));
    let error = ModelError::new(ModelErrorKind::Overloaded, "no");
    let long = "long ".repeat(10_000);
    let cases = [
        (
            answer(" \n", ModelStop::EndTurn),
            CompactionError::Empty,
            true,
        ),
        (
            Behavior::Answer(vec![call], ModelStop::ToolUse),
            CompactionError::Empty,
            true,
        ),
        (
            answer(&long, ModelStop::EndTurn),
            CompactionError::TooLong,
            true,
        ),
        (
            answer("no", ModelStop::Refusal),
            CompactionError::Refused,
            true,
        ),
        (Behavior::Endless, CompactionError::TooLong, false),
        (Behavior::Panic, CompactionError::AdapterPanicked, false),
        (
            Behavior::Error(ModelErrorKind::Overloaded),
            CompactionError::Model(error),
            false,
        ),
    ];
    for (behavior, expected, costs) in cases {
        let view = sample_view(40, "some output");
        let before = view.size();
        let compacted = compaction(view).run(RecordingModel::new(behavior)).await;
        assert_eq!(compacted.block, Err(expected));
        assert_eq!(compacted.size_after, before);
        assert_eq!(
            compacted.usage,
            costs.then_some(COST),
            "what it cost is known"
        );
    }
}

#[tokio::test]
async fn empty_plan_makes_no_model_call() {
    let model = RecordingModel::answering("a summary");
    let compacted = compaction(sample_view(0, "")).run(model.clone()).await;
    assert_eq!(compacted.block, Err(CompactionError::NothingToSummarise));
    assert_eq!(compacted.usage, None);
    assert!(model.requests.lock().unwrap().is_empty());
}

#[tokio::test]
async fn summary_cut_at_output_limit_is_kept() {
    let behavior = Behavior::Answer(vec![Content::text("GOAL: half a")], ModelStop::Length);
    let compacted = compaction(sample_view(40, "some output"))
        .run(RecordingModel::new(behavior))
        .await;
    assert!(compacted.block.is_ok());
}

/// The loop uses the provider's count, the plan an estimate: the remaining size is in the loop's count.
#[tokio::test]
async fn remaining_size_is_scaled_to_provider_count() {
    let view = sample_view(20, &"x ".repeat(200));
    let whole = view.size();
    let counted = Compaction {
        size_before: ContextSize {
            tokens: 3 * (whole.tokens + 1_000),
            ..whole
        },
        overhead_tokens: 1_000,
        ..compaction(view.clone())
    };
    let compacted = counted.run(RecordingModel::answering("a summary")).await;
    let mut live = view;
    assert!(live.apply_block(&compacted.block.unwrap()));
    let expected = ContextSize {
        tokens: 3 * (live.size().tokens + 1_000),
        ..live.size()
    };
    assert_eq!(compacted.size_after, expected);
}

/// The window is unknown, but a request of 5,000 tokens was too long for it.
#[tokio::test]
async fn transcript_is_shorter_after_overflow() {
    let view = sample_view(40, &"x ".repeat(400));
    assert!(view.size().tokens > 9_000);
    let mut sizes = Vec::new();
    for has_overflowed in [false, true] {
        let model = RecordingModel::answering("a summary");
        let request = Compaction {
            has_overflowed,
            size_before: ContextSize {
                tokens: 5_000,
                ..view.size()
            },
            ..compaction(view.clone())
        };
        request.run(model.clone()).await.block.unwrap();
        let requests = model.requests.lock().unwrap();
        let sent: ContextSize = requests[0].messages.iter().sum();
        sizes.push(sent.tokens);
    }
    assert!(sizes[0] > 6_000, "{sizes:?}");
    assert!(sizes[1] < 5_000, "{sizes:?}");
}

/// The offline model's rules cannot produce a summary.
#[tokio::test]
async fn offline_model_is_not_called() {
    let compacted = compaction(sample_view(40, "some output"))
        .run(Arc::new(OfflineModel::default()))
        .await;
    assert_eq!(compacted.block, Err(CompactionError::Offline));
}
