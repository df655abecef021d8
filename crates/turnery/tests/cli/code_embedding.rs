//! Code mode in a program that embeds turnery. The interpreter runs in the turnery executable.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

use serde_json::{Value, json};
use std::{
    path::Path,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};
use turnery_engine::{
    EventKind, HookRequest, HookSet, HookVerdict, ImageData, LoopRecord, Message, ToolControl,
    TurnStop,
};
use turnery_sdk::{
    BoxFuture, HookCx, Hooks, Outcome, Protocol, SelectionStrategy,
    models::{Scenario, ScriptedModel},
    prelude::*,
    store::SqliteStore,
};

/// Returns an agent in code mode. The model answers a prompt with the code of the first row whose word the prompt
/// contains, and the output of a block with `done`.
fn coding_agent(rows: &[(&str, &str)]) -> AgentBuilder {
    turnery_sdk::code::use_worker(env!("CARGO_BIN_EXE_turnery"));
    let block = |code: &str| json!([{"text": format!("```python\n{code}\n```\n")}]);
    let rows = rows
        .iter()
        .map(|(word, code)| json!({"when": {"last_user_contains": word}, "steps": block(code)}));
    let done = ["Output of the block", "The block failed"]
        .map(|words| json!({"when": {"last_user_contains": words}, "steps": [{"text": "done"}]}));
    let answers: Vec<Value> = rows.chain(done).collect();
    let script = json!({"answers": answers}).to_string();
    let scenario = Scenario::parse(&script, Path::new("SCRIPT")).unwrap();
    AgentBuilder::with_model(ScriptedModel::new(scenario))
        .settings(|settings| settings.protocol = Protocol::Code)
}

/// Returns the result of the loop's last block.
fn block_output(record: &LoopRecord) -> String {
    let text = |content: &Content| match content {
        Content::Text { text } => Some(text.clone()),
        _ => None,
    };
    let messages = record.messages.iter().rev();
    let mut results = messages.filter_map(|message| match &message.message {
        Message::ToolResult { content, .. } => {
            Some(content.iter().filter_map(text).collect::<String>())
        }
        _ => None,
    });
    results.next().expect("a result")
}

async fn last_output(session: &Session) -> String {
    let records = session.records().await.unwrap();
    block_output(records.last().expect("a loop"))
}

/// Runs a prompt and returns the output of its last block.
async fn run(session: &Session, prompt: &str) -> String {
    session.new_prompt(prompt).run().await.unwrap();
    last_output(session).await
}

/// Variables are those of the loops before: after a rerun or a branch, not those of the loops that it replaces.
// proves: UP-33
#[tokio::test]
async fn variables_follow_the_history() {
    let agent = coding_agent(&[
        ("begin", "n = 1"),
        ("add", "n += 10\nprint('n is', n)"),
        ("tell", "print('n is', n)"),
    ]);
    let session = agent.build().new_session().open().await.unwrap();
    run(&session, "begin").await;
    assert_eq!(run(&session, "add").await, "n is 11\n");
    let again = session.rerun(None, PromptOptions::default()).unwrap();
    again.result().await.unwrap();
    assert_eq!(last_output(&session).await, "n is 11\n");
    assert_eq!(run(&session, "add").await, "n is 21\n");
    let first = session.records().await.unwrap()[0].loop_id.clone();
    let tell = vec![Content::text("tell")];
    let branch = session.branch(first, tell, PromptOptions::default());
    branch.unwrap().result().await.unwrap();
    assert_eq!(last_output(&session).await, "n is 1\n");
    assert_eq!(run(&session, "add").await, "n is 11\n");
}

/// Prose ends a prompt in code mode, and the stream has no value.
// proves: LASH-115
#[tokio::test]
async fn prose_ends_a_prompt_in_code_mode() {
    let agent = coding_agent(&[("begin", "n = 1")]).build();
    let session = agent.new_session().open().await.unwrap();
    let output = session.new_prompt("begin").run().await.unwrap();
    assert_eq!(output.text().as_deref(), Some("done"));
    assert_eq!(output.value(), None);
    let is_value = |it: &PromptActivity| {
        matches!(
            it.event,
            ActivityEvent::FinalValue { .. } | ActivityEvent::ToolValue { .. }
        )
    };
    assert!(!output.activities.iter().any(is_value));
}

/// Candidates run at the same time, each with variables of its own; the next prompt has the winner's.
// proves: UP-33
#[tokio::test]
async fn candidates_have_variables_of_their_own() {
    let agent = coding_agent(&[
        ("begin", "n = 1"),
        (
            "add",
            "n += 1\nfor i in range(10**5):\n    pass\nprint('n is', n)",
        ),
        ("tell", "print('n is', n)"),
    ]);
    let session = agent.build().new_session().open().await.unwrap();
    run(&session, "begin").await;
    let model: turnery_sdk::models::ModelName = session.options().model.name.clone();
    let tried = session.evaluate(
        vec![Content::text("add")],
        vec![model.clone().into(), model.clone().into(), model.into()],
        SelectionStrategy::First,
        PromptOptions::default(),
    );
    tried.unwrap().result().await.unwrap();
    let records = session.records().await.unwrap();
    let outputs: Vec<String> = records[1..].iter().map(|it| block_output(it)).collect();
    assert_eq!(outputs, ["n is 2\n"; 3]);
    assert_eq!(run(&session, "tell").await, "n is 2\n");
}

/// Arguments of a tool without parameters.
#[derive(JsonSchema, Deserialize)]
#[serde(crate = "turnery_sdk::serde")]
#[schemars(crate = "turnery_sdk::schemars")]
struct NoArgs {}

/// A new frame has no variables.
// proves: UP-33
#[tokio::test]
async fn variables_end_with_the_frame() {
    let switch = FunctionTool::new("leave", "Begins a new frame.", |_: NoArgs, _| async {
        ToolEnvelope {
            control: Some(Box::new(ToolControl::SwitchFrame {
                task: "look".to_owned(),
            })),
            ..ToolEnvelope::text("")
        }
    });
    let agent = coding_agent(&[
        ("begin", "n = 1\nleave()\nprint('not reached')"),
        (
            "look",
            "try:\n    print(n)\nexcept NameError as error:\n    print('gone:', error)",
        ),
    ]);
    let session = agent
        .tool(switch)
        .build()
        .new_session()
        .open()
        .await
        .unwrap();
    let output = run(&session, "begin").await;
    assert!(
        output.starts_with("gone: name 'n' is not defined"),
        "{output}"
    );
}

/// Variables too large to be stored live as long as the session is open, and the model is told that they are gone.
/// The record keeps the state after the last block only.
// proves: UP-33
#[tokio::test]
async fn large_variables_live_while_the_session_is_open() {
    let folder = tempfile::tempdir().unwrap();
    let agent = || {
        let store = SqliteStore::open(folder.path().join("sessions.db"));
        let rows = [
            ("begin", "small = 'kept'\nbig = 'x' * 6000000"),
            ("measure", "print(len(big))"),
            ("shrink", "big = 'y' * 1000000"),
        ];
        coding_agent(&rows).store(Arc::new(store)).build()
    };
    let first = agent();
    let session = first.session("s1").open().await.unwrap();
    run(&session, "begin").await;
    assert_eq!(run(&session, "measure").await, "6000000\n");
    session.close().await;
    let session = agent().session("s1").open().await.unwrap();
    let told = run(&session, "measure").await;
    assert!(
        told.starts_with("(The variables of earlier blocks are gone"),
        "{told}"
    );
    assert!(told.contains("NameError"), "{told}");
    run(&session, "shrink").await;
    session.close().await;
    let session = agent().session("s1").open().await.unwrap();
    assert_eq!(run(&session, "measure").await, "1000000\n");
}

/// A block replaces the state that an earlier block of the same loop left.
// proves: LOOP-82
#[tokio::test]
async fn record_keeps_state_of_last_block_only() {
    let agent = coding_agent(&[("begin", "print('next')\nn = 1"), ("next", "n = 2")]);
    // The output of the first block asks for the second.
    let session = agent.build().new_session().open().await.unwrap();
    session.new_prompt("begin").run().await.unwrap();
    let records = session.records().await.unwrap();
    let states = records[0]
        .events
        .iter()
        .filter_map(|event| match &event.kind {
            EventKind::ToolExecutionEnd { envelope, .. } => Some(envelope.state.clone()),
            _ => None,
        });
    let states: Vec<Option<Arc<str>>> = states.collect();
    let last = records[0].tool_states["run_code"].state.clone();
    assert_eq!(states, [None, Some(last)]);
}

/// Cancelling a prompt stops the calls of its code, each of which is told, and ends the block.
// proves: LASH-91, UP-33
#[tokio::test]
async fn cancel_ends_calls_of_code() {
    let told = Arc::new(AtomicUsize::new(0));
    let (started, mut starts) = tokio::sync::mpsc::unbounded_channel();
    let hang = {
        let told = Arc::clone(&told);
        FunctionTool::new("hang", "Waits.", move |_: NoArgs, cx: ToolCx| {
            let (told, started) = (Arc::clone(&told), started.clone());
            async move {
                let _ = started.send(());
                cx.cancel.cancelled().await;
                told.fetch_add(1, Ordering::SeqCst);
                ToolEnvelope::text("stopped")
            }
        })
    };
    let agent = coding_agent(&[
        ("begin", "n = 1"),
        (
            "wait",
            "n = 2\nimport asyncio\nawait asyncio.gather(hang(), hang())",
        ),
        ("tell", "print('n is', n)"),
    ]);
    let session = agent.tool(hang).build().new_session().open().await.unwrap();
    run(&session, "begin").await;
    let cancel = CancellationToken::new();
    let prompt = session.start(vec![Content::text("wait")], cancel.clone());
    let prompt = prompt.unwrap();
    // Tools without effects run side by side; others one after the other.
    starts.recv().await.expect("a start");
    cancel.cancel();
    let result = prompt.result().await.unwrap();
    assert_eq!(result.outcome, Outcome::Stopped(TurnStop::Cancelled));
    assert!(told.load(Ordering::SeqCst) >= 1);
    assert_eq!(run(&session, "tell").await, "n is 1\n");
}

/// Records the names of the calls that it is asked about, and refuses `secret`.
#[derive(Default)]
struct CallHooks(Mutex<Vec<String>>);

impl Hooks for CallHooks {
    fn hook_set(&self) -> HookSet {
        HookSet {
            before_tool: true,
            ..HookSet::default()
        }
    }

    fn ask_hook<'a>(&'a self, _: &'a HookCx, hook: &'a HookRequest) -> BoxFuture<'a, HookVerdict> {
        Box::pin(async move {
            let HookRequest::BeforeTool(call) = hook else {
                return HookVerdict::Continue;
            };
            self.0.lock().unwrap().push(call.name.clone());
            match call.name.as_str() {
                "secret" => HookVerdict::Stop("not this one".to_owned()),
                _ => HookVerdict::Continue,
            }
        })
    }
}

/// Hooks see the block and each of its calls, and may refuse one of them.
// proves: UP-33
#[tokio::test]
async fn hooks_see_calls_of_code() {
    let answer = |name: &str| {
        FunctionTool::new(name, "Answers.", |_: NoArgs, _| async {
            ToolEnvelope::text("yes")
        })
    };
    let code =
        "print(open_door())\ntry:\n    secret()\nexcept RuntimeError as error:\n    print(error)";
    let agent = coding_agent(&[("begin", code)])
        .tool(answer("open_door"))
        .tool(answer("secret"));
    let session = agent.build().new_session().open().await.unwrap();
    let hooks = Arc::new(CallHooks::default());
    let options = PromptOptions {
        hooks: vec![hooks.clone()],
        ..PromptOptions::default()
    };
    session
        .new_prompt("begin")
        .options(options)
        .run()
        .await
        .unwrap();
    let output = last_output(&session).await;
    assert!(
        output.starts_with("yes\n") && output.contains("not this one"),
        "{output}"
    );
    assert_eq!(
        *hooks.0.lock().unwrap(),
        ["run_code", "open_door", "secret"]
    );
}

fn picture_tool() -> FunctionTool {
    FunctionTool::new("picture", "Shows a picture.", |_: NoArgs, _| async {
        let image = ImageData {
            mime_type: "image/png".to_owned(),
            base64: "aGk=".into(),
        };
        ToolEnvelope::ok(vec![Content::text("seen"), Content::Image(image)])
    })
}

/// Images go to the model beside the output; those of a block that fails are left out, which is said.
// proves: UP-33
#[tokio::test]
async fn images_of_tools_go_to_the_model() {
    let agent = coding_agent(&[
        ("look", "print(picture(), picture())"),
        ("break it", "picture()\nraise ValueError('oh')"),
    ]);
    let session = agent
        .tool(picture_tool())
        .build()
        .new_session()
        .open()
        .await
        .unwrap();
    assert_eq!(run(&session, "look").await, "seen seen\n");
    let images = |record: &LoopRecord| {
        let content = record.messages.iter().filter_map(|it| match &it.message {
            Message::ToolResult {
                tool_name, content, ..
            } if tool_name == "run_code" => Some(content),
            _ => None,
        });
        content
            .flatten()
            .filter(|it| matches!(it, Content::Image(_)))
            .count()
    };
    let records = session.records().await.unwrap();
    assert_eq!(images(&records[0]), 2);
    let failed = run(&session, "break it").await;
    assert!(failed.contains("ValueError: oh"), "{failed}");
    assert!(
        failed.contains("left out, because the block failed"),
        "{failed}"
    );
    let records = session.records().await.unwrap();
    assert_eq!(images(&records[1]), 0);
}

/// What the calls of a block pass and return is bounded.
// proves: UP-33
#[tokio::test]
async fn calls_of_a_block_are_bounded_in_size() {
    let calls = Arc::new(AtomicUsize::new(0));
    #[derive(JsonSchema, Deserialize)]
    #[serde(crate = "turnery_sdk::serde")]
    #[schemars(crate = "turnery_sdk::schemars")]
    struct Text {
        text: String,
    }
    let keep = {
        let calls = Arc::clone(&calls);
        FunctionTool::new("keep", "Keeps a text.", move |args: Text, _| {
            calls.fetch_add(1, Ordering::SeqCst);
            async move { ToolEnvelope::text(args.text.len().to_string()) }
        })
    };
    let code = "text = 'x' * 10_000_000\nfor i in range(6):\n    try:\n        keep(text)\n    except RuntimeError as error:\n        print(i, error)";
    let session = coding_agent(&[("begin", code)])
        .tool(keep)
        .build()
        .new_session()
        .open()
        .await
        .unwrap();
    let output = run(&session, "begin").await;
    assert_eq!(calls.load(Ordering::SeqCst), 3, "{output}");
    let told = "3 the calls of this block have used up the 32 MiB";
    assert!(output.starts_with(told), "{output}");
}
