//! Tests of a model with tools, without a session.

use crate::toy::{TestModel, ToyStep};
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use std::{
    path::Path,
    sync::{Arc, Mutex},
};
use turnery_engine::{Message, ModelError, ModelErrorKind, Response, Role, ToolError};
use turnery_models::{Model, ModelEventSender, ModelInfo, ModelRequest, Scenario, ScriptedModel};
use turnery_sdk::{ConverseError, ConverseOptions, converse, generate, generate_text};
use turnery_tools::{
    ExecuteOptions, ExecuteScope, FunctionTool, Toolbox, Workspace, telemetry::CallStage,
};

fn model(script: &str) -> ScriptedModel {
    ScriptedModel::new(Scenario::parse(script, Path::new("SCRIPT")).unwrap())
}

/// Model that records the names of the tools offered with each call.
struct OfferedTools {
    model: ScriptedModel,
    names: Mutex<Vec<Vec<String>>>,
}

impl OfferedTools {
    fn new(script: &str) -> Self {
        Self {
            model: model(script),
            names: Mutex::default(),
        }
    }
}

impl Model for OfferedTools {
    fn info(&self) -> &ModelInfo {
        self.model.info()
    }

    fn call(
        &self,
        request: ModelRequest,
        out: ModelEventSender,
    ) -> BoxFuture<'_, Result<Response, ModelError>> {
        let names = request.tools.iter().map(|tool| tool.name.clone());
        self.names.lock().unwrap().push(names.collect());
        self.model.call(request, out)
    }
}

/// Answers 6 * 7 once it has seen the product.
const PRODUCT: &str = r#"{"answers": [
    {"steps": [{"text": "Let me see."}, {"tool_call": {"name": "multiply", "args": {"a": "6", "b": 7}}}]},
    {"when": {"last_tool_result_contains": "{\"product\":42}"}, "steps": [{"text": "It is 42."}]}
]}"#;

/// Requests the tool forever.
const ENDLESS: &str = r#"{"repeat": true, "answers": [
    {"steps": [{"tool_call": {"name": "multiply", "args": {"a": 1, "b": 1}}}]}
]}"#;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Factors {
    a: i64,
    b: i64,
}

fn tools() -> Toolbox {
    FunctionTool::new("multiply", "", async |Factors { a, b }, _| {
        Ok::<Value, ToolError>(json!({"product": a * b}))
    })
    .into()
}

fn scope() -> ExecuteScope {
    let folder = tempfile::tempdir().unwrap();
    let workspace = Workspace::local(folder.path().to_owned()).unwrap();
    ExecuteScope::new(Arc::new(workspace)).with_tools(tools())
}

fn question() -> Vec<Message> {
    vec![
        Message::System {
            text: "You are a calculator.".to_owned(),
        },
        Message::user("What is 6 * 7?"),
    ]
}

// proves: JIDO-2, JIDO-17, JIDO-31, JIDO-35, JIDO-78, JIDO-77
#[tokio::test]
async fn converse_runs_tools_until_final_answer() {
    let model = OfferedTools::new(PRODUCT);
    let done = converse(&model, question(), &scope(), &ConverseOptions::default()).await;
    let done = done.unwrap();
    assert_eq!(*model.names.lock().unwrap(), [["multiply"]; 2]);
    assert_eq!(done.response.text(), "It is 42.");
    assert!(!done.response.needs_tools());
    assert_eq!(done.iterations, 1);
    let texts: Vec<(Role, String)> = done
        .messages
        .iter()
        .map(|message| (message.role(), message.text()))
        .collect();
    let expected = [
        (Role::System, "You are a calculator."),
        (Role::User, "What is 6 * 7?"),
        (Role::Assistant, "Let me see."),
        (Role::Tool, "{\"product\":42}"),
        (Role::Assistant, "It is 42."),
    ];
    assert_eq!(texts, expected.map(|(role, text)| (role, text.to_owned())));
}

// proves: JIDO-33, JIDO-34
#[tokio::test]
async fn iterations_count_from_zero_to_maximum() {
    for (options, expected) in [
        (ConverseOptions::default(), 5),
        (
            ConverseOptions {
                max_iterations: 7,
                ..ConverseOptions::default()
            },
            7,
        ),
    ] {
        let scope = scope();
        let (sender, mut receiver) = tokio::sync::mpsc::channel(16);
        let observe = scope.tools.as_ref().unwrap().telemetry();
        let start = observe.event_path(CallStage::Start).clone();
        let count = move |_: &_, _: &_, about: &serde_json::Map<_, Value>, _: &_| {
            sender.try_send(about["iteration"].clone()).unwrap();
        };
        observe.attach("count", start, count, Value::Null).unwrap();
        let stopped = converse(&model(ENDLESS), question(), &scope, &options).await;
        let max = expected;
        assert_eq!(stopped, Err(ConverseError::MaxIterationsReached { max }));
        let words = ConverseError::MaxIterationsReached { max }.to_string();
        assert!(words.starts_with("max_iterations_reached: "));
        let counted: Vec<Value> = std::iter::from_fn(|| receiver.try_recv().ok()).collect();
        let rising: Vec<Value> = [0, 1, 2, 3, 4, 5, 6].map(Value::from).to_vec();
        assert_eq!(counted, rising[..max as usize]);
    }
}

// proves: JIDO-78
#[tokio::test]
async fn generate_text_returns_text() {
    let script = r#"{"answers": [
        {"when": {"last_user_contains": "capital of France"}, "steps": [{"text": "Paris."}]}
    ]}"#;
    let answer = generate_text(&model(script), "What is the capital of France?").await;
    assert_eq!(answer, Ok("Paris.".to_owned()));
}

// proves: JIDO-1
#[tokio::test]
async fn generate_sends_messages_and_named_tools() {
    let toy = TestModel::new("one", vec![vec![ToyStep::Call("c", "multiply")]]);
    let messages = [
        Message::System {
            text: "be good".to_owned(),
        },
        Message::user("What is 6 * 7?"),
        Message::user("Be quick."),
    ];
    let other = FunctionTool::new("add", "", async |_: Value, _| {
        Ok::<Value, ToolError>(Value::Null)
    });
    let both = tools().with_tool(other);
    let response = generate(&*toy, &messages, &both, &["multiply"]).await;
    let response = response.unwrap();
    assert_eq!(response.model, "one");
    let calls: Vec<&str> = response.calls().map(|call| call.name.as_str()).collect();
    assert_eq!(calls, ["multiply"]);
    let requests = toy.requests.lock().unwrap();
    let [request] = &requests[..] else {
        panic!("{requests:?}");
    };
    assert_eq!(&*request.system, "be good");
    let sent = request.messages.iter().map(|it| it.message.clone());
    assert_eq!(sent.collect::<Vec<_>>(), messages[1..]);
    let offered: Vec<&str> = request.tools.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(offered, ["multiply"]);
}

#[tokio::test]
async fn generate_rejects_unknown_tool_name() {
    let unknown = generate(&model(PRODUCT), &question(), &tools(), &["divide"]).await;
    assert_eq!(
        unknown.unwrap_err().to_string(),
        "there is no tool \"divide\" to offer to the model; the tools are multiply"
    );
}

#[tokio::test]
async fn model_error_ends_the_conversation() {
    let script = r#"{"answers": []}"#;
    let options = ConverseOptions::default();
    match converse(&model(script), question(), &scope(), &options).await {
        Err(ConverseError::Model(error)) => assert_eq!(error.kind, ModelErrorKind::BadRequest),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn cancel_ends_the_conversation() {
    let script = r#"{"answers": [{"steps": [{"wait_for_cancel": true}]}]}"#;
    let scope = scope();
    let (cancel, model) = (scope.cancel.clone(), model(script));
    let options = ConverseOptions::default();
    let mut talk = Box::pin(converse(&model, question(), &scope, &options));
    assert!(futures_util::poll!(&mut talk).is_pending());
    cancel.cancel();
    assert_eq!(talk.await, Err(ConverseError::Cancelled));
}

// proves: JIDO-78
#[tokio::test]
async fn options_toolbox_overrides_scope() {
    let options = ConverseOptions {
        tools: ExecuteOptions {
            tools: Some(tools()),
            ..ExecuteOptions::default()
        },
        ..ConverseOptions::default()
    };
    let divide = FunctionTool::new("divide", "", async |_: Factors, _| Ok(json!("no")));
    for tools in [None, Some(Toolbox::from(divide))] {
        let scope = ExecuteScope { tools, ..scope() };
        let model = OfferedTools::new(PRODUCT);
        let done = converse(&model, question(), &scope, &options).await;
        assert_eq!(*model.names.lock().unwrap(), [["multiply"]; 2]);
        assert_eq!(done.unwrap().response.text(), "It is 42.");
    }
}

// proves: JIDO-77, JIDO-79
#[test]
fn module_docs_link_related_modules() {
    let page = include_str!("../../src/converse.rs");
    for neighbour in [
        "`examples/tool_loop.rs`",
        "(mod@turnery_tools::execute) for calling tools",
        "[`turnery_engine::response`]",
        "messages are\n//! projected into it",
        "[`turnery_tools::telemetry`] for watching tools at work",
    ] {
        assert!(page.contains(neighbour), "{neighbour}");
    }
    let module = include_str!("../../../turnery-engine/src/response.rs");
    for user in [
        "hosts with their own agent loop",
        "code that inspects responses before deciding",
        "code that converts responses into history",
    ] {
        assert!(module.contains(user), "{user}");
    }
}
