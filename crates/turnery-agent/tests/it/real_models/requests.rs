//! Tests of single requests: last replies, required values, compaction, other models and changed instructions.

use super::{
    dialect::{ANTHROPIC, CHAT, DIALECTS, Dialect, Ending, ScriptedCall, ScriptedResponse},
    world::{PrefixWorld, model_name, picture, run_prompt},
};
use serde_json::{Value, json};
use turnery_agent::{FinishRule, PromptOptions, Session};
use turnery_engine::{Content, Limits, Outcome, ProviderFailure, TurnStop};
use turnery_models::Thinking;
use turnery_tools::{McpServer, mcp::McpTransport};

fn call(tool: &'static str) -> ScriptedResponse {
    ScriptedResponse {
        thinking: Some("hm".to_owned()),
        calls: vec![ScriptedCall {
            id: "c1",
            tool,
            args: "{}".to_owned(),
        }],
        ..ScriptedResponse::text("I see.")
    }
}

fn spending(tokens: u64) -> ScriptedResponse {
    ScriptedResponse {
        usage: (tokens, 5),
        ..ScriptedResponse::text("So it went.")
    }
}

fn overflow() -> ScriptedResponse {
    ScriptedResponse {
        ending: Ending::Overflow,
        ..ScriptedResponse::default()
    }
}

fn one_turn() -> PromptOptions {
    PromptOptions {
        limits: Some(Limits {
            turns: 1,
            ..Limits::default()
        }),
        ..PromptOptions::default()
    }
}

/// Returns the requests to a server in JSON.
fn requests(world: &PrefixWorld, server: usize) -> Vec<Value> {
    let bodies = world.servers[server].bodies();
    bodies
        .iter()
        .map(|body| serde_json::from_str(body).unwrap())
        .collect()
}

fn is_summary_request(request: &Value) -> bool {
    request.to_string().contains("<conversation>")
}

/// Fills the window of every model.
const FULL: u64 = 900_000;

/// A world in which two turns are enough for a summary.
async fn world_with_short_memory(dialects: &'static [Dialect]) -> PrefixWorld {
    let world = PrefixWorld::new(dialects).await;
    world.set(|settings| {
        settings.compaction.first_turns = 0;
        settings.compaction.recent_turns = 1;
    });
    world
}

async fn run_exchanges(world: &PrefixWorld, session: &Session, last: ScriptedResponse) {
    let long = "word ".repeat(400);
    world.run(session, &long, [spending(500)]).await;
    world.run(session, &long, [spending(1_000)]).await;
    world.run(session, "And now?", [last]).await;
}

/// Quirk 12.
// proves: C-4
#[tokio::test]
async fn last_reply_keeps_the_tools_and_forbids_calls() {
    for (place, forbidden) in [
        (0, json!({"type": "none"})),
        (1, json!("none")),
        (2, json!("none")),
        (3, json!({"functionCallingConfig": {"mode": "NONE"}})),
    ] {
        let world = PrefixWorld::new(&DIALECTS[place..=place]).await;
        let session = world.create().await;
        world.servers[0].play([call("look")]);
        run_prompt(&session, vec![Content::text("Look.")], one_turn()).await;
        let [first, last] = &requests(&world, 0)[..] else {
            panic!("two requests");
        };
        let choice = DIALECTS[place].choice;
        assert_eq!(first["tools"].to_string().matches("A tool.").count(), 4);
        assert_eq!(first["tools"], last["tools"]);
        assert_eq!(first[choice], Value::Null);
        assert_eq!(last[choice], forbidden);
    }
}

/// Prose where a value is required is followed by one request that requires a call.
// proves: UP-33
#[tokio::test]
async fn prose_for_a_value_requires_a_call() {
    for (place, required) in [
        (0, json!({"type": "any"})),
        (1, json!("required")),
        (2, json!("required")),
        (3, json!({"functionCallingConfig": {"mode": "ANY"}})),
    ] {
        let world = PrefixWorld::new(&DIALECTS[place..=place]).await;
        // Claude rejects a required call while it thinks.
        world.set(|settings| settings.thinking = Thinking::Default);
        let session = world.create().await;
        let finish = ScriptedCall {
            id: "c2",
            tool: "finish",
            args: r#"{"value": 1}"#.to_owned(),
        };
        let finish = ScriptedResponse {
            calls: vec![finish],
            ..ScriptedResponse::text("")
        };
        world.servers[0].play([ScriptedResponse::text("One."), call("look"), finish]);
        let options = PromptOptions {
            finish: FinishRule::Value,
            ..PromptOptions::default()
        };
        run_prompt(&session, vec![Content::text("Count.")], options).await;
        let choices: Vec<Value> = requests(&world, 0)
            .iter()
            .map(|request| request[DIALECTS[place].choice].clone())
            .collect();
        assert_eq!(choices, [Value::Null, required, Value::Null]);
    }
}

/// The texts alone would fill less than a hundredth of the window.
// proves: UP-10
#[tokio::test]
async fn usage_of_last_answer_decides_about_compaction() {
    for is_reopened in [false, true] {
        for (tokens, is_compacted) in [(1_000, false), (FULL, true)] {
            let world = world_with_short_memory(DIALECTS).await;
            let mut session = world.create().await;
            run_exchanges(&world, &session, spending(tokens)).await;
            if is_reopened {
                session = world.reopen(&session).await;
            }
            world.run(&session, "Go on.", [spending(900)]).await;
            let requests = requests(&world, 0);
            assert_eq!(
                is_summary_request(&requests[3]),
                is_compacted,
                "{tokens} tokens, reopened: {is_reopened}"
            );
            // The count of a response before the summary no longer matters.
            let session = world.reopen(&session).await;
            world.run(&session, "Go on.", []).await;
            let last = world.servers[0].bodies().len();
            assert_eq!(last, 5 + usize::from(is_compacted));
        }
    }
}

/// A prompt counts before it is sent: a token has about four letters.
// proves: UP-10
#[tokio::test]
async fn large_prompt_is_counted_before_it_is_sent() {
    // The window has 128,000 tokens.
    let world = world_with_short_memory(&[CHAT]).await;
    let session = world.create().await;
    run_exchanges(&world, &session, spending(2_000)).await;
    world.run(&session, &"word ".repeat(100_000), []).await;
    assert!(is_summary_request(&requests(&world, 0)[3]));
}

/// A rejected request is repeated once, after a summary.
// proves: TURN-58
#[tokio::test]
async fn overflow_is_followed_by_one_compaction() {
    for is_in_vain in [false, true] {
        let world = world_with_short_memory(DIALECTS).await;
        let session = world.create().await;
        run_exchanges(&world, &session, spending(2_000)).await;
        let mut responses = vec![overflow(), ScriptedResponse::text("A summary.")];
        responses.extend(is_in_vain.then(overflow));
        let result = world.run(&session, "Go on.", responses).await;
        let summaries: Vec<bool> = requests(&world, 0)[3..]
            .iter()
            .map(is_summary_request)
            .collect();
        assert_eq!(summaries, [false, true, false]);
        let has_failed = matches!(
            result.outcome,
            Outcome::Stopped(TurnStop::ProviderError(ProviderFailure::Failed { .. }))
        );
        assert_eq!(has_failed, is_in_vain, "{:?}", result.outcome);
    }
}

/// Quirk 35: the kept message keeps its text and loses its signed reasoning.
#[tokio::test]
async fn compaction_drops_signed_reasoning() {
    let world = world_with_short_memory(DIALECTS).await;
    // The last answer and the new prompt.
    world.set(|settings| settings.compaction.recent_turns = 2);
    let session = world.create().await;
    run_exchanges(&world, &session, spending(500)).await;
    let seen = |text, tokens| ScriptedResponse {
        thinking: Some("hm".to_owned()),
        usage: (tokens, 5),
        ..ScriptedResponse::text(text)
    };
    world.run(&session, "Look.", [seen("A field.", 500)]).await;
    world.run(&session, "Up.", [seen("A sky.", FULL)]).await;
    world.run(&session, "Go on.", []).await;
    let bodies = world.servers[0].bodies();
    let [.., before, summary, after] = &bodies[..] else {
        panic!("three requests");
    };
    assert!(before.contains("A field.") && before.contains("c2lnbmVk"));
    assert!(summary.contains("<conversation>"));
    assert!(
        after.contains("A sky.") && !after.contains("c2lnbmVk"),
        "{after}"
    );
}

/// Quirks 17 and 63: another model gets the calls and results, a note instead of the picture, and no foreign reasoning;
/// with the first model the picture and its own reasoning come back.
#[tokio::test]
async fn other_model_gets_what_it_can_read() {
    let world = PrefixWorld::new(DIALECTS).await;
    let session = world.create().await;
    world.servers[0].play([call("show"), ScriptedResponse::text("A field.")]);
    let content = vec![Content::text("Look."), picture()];
    run_prompt(&session, content.clone(), PromptOptions::default()).await;
    let blind = model_name(&CHAT).replace(CHAT.model, "deepseek-chat");
    session.set_model(&blind).await.unwrap();
    run_prompt(
        &session,
        vec![Content::text("Go on.")],
        PromptOptions::default(),
    )
    .await;
    session.set_model(&model_name(&ANTHROPIC)).await.unwrap();
    run_prompt(
        &session,
        vec![Content::text("Go on.")],
        PromptOptions::default(),
    )
    .await;

    let [chat] = &requests(&world, 1)[..] else {
        panic!("one request");
    };
    let roles: Vec<&Value> = chat["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|message| &message["role"])
        .collect();
    assert_eq!(
        roles,
        ["system", "user", "assistant", "tool", "assistant", "user"]
            .iter()
            .collect::<Vec<_>>()
    );
    let text = chat.to_string();
    assert!(text.contains("image (image/png) omitted"), "{text}");
    for foreign in ["QUJD", "c2lnbmVk", "reasoning_"] {
        assert!(!text.contains(foreign), "{foreign} in {text}");
    }
    let back = world.servers[0].bodies().pop().unwrap();
    assert_eq!(back.matches("QUJD").count(), 2, "{back}");
    assert!(back.contains("c2lnbmVk"), "{back}");
}

/// The system prompt stays until a summary; meanwhile new instructions are told as a message, each change once.
#[tokio::test]
async fn changed_instructions_are_told_in_the_conversation() {
    let world = world_with_short_memory(DIALECTS).await;
    let mut session = world.create().await;
    run_exchanges(&world, &session, spending(500)).await;
    let mut told = Vec::new();
    for (instructions, tokens) in [
        ("Be better.", 500),
        ("Be better.", 500),
        ("Be good.", 500),
        ("Be best.", FULL),
    ] {
        world.set(|settings| settings.system = instructions.into());
        session = world.reopen(&session).await;
        world.run(&session, "Go on.", [spending(tokens)]).await;
        let body = world.servers[0].bodies().pop().unwrap();
        let request: Value = serde_json::from_str(&body).unwrap();
        assert_eq!(request["system"][0]["text"], "Be good.");
        told.push(["Be good.", "Be better.", "Be best."].map(|it| body.matches(it).count()));
    }
    // One of the first is the system prompt.
    assert_eq!(told, [[1, 1, 0], [1, 1, 0], [2, 1, 0], [2, 1, 1]]);
    // The fifth prompt is preceded by a summary.
    for _ in 0..2 {
        world
            .run(&session, "Go on.", [spending(500), spending(500)])
            .await;
        let request = requests(&world, 0).pop().unwrap();
        assert_eq!(request["system"][0]["text"], "Be best.");
        session = world.reopen(&session).await;
    }
}

/// A server with one tool.
const TOOL_SERVER: &str = r#"
    while read -r line; do
        id=$(printf '%s' "$line" | sed -n 's/.*"id": *\([0-9][0-9]*\).*/\1/p')
        case "$line" in
        *'"initialize"'*) result='{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}' ;;
        *'"tools/list"'*) result='{"tools":[{"name":"hello","inputSchema":{"type":"object"}}]}' ;;
        *) continue ;;
        esac
        printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$result"
    done"#;

/// The servers of a session that is opened again start anew.
#[tokio::test]
async fn opened_session_waits_for_the_tools_it_had() {
    let world = PrefixWorld::new(DIALECTS).await;
    world.set(|settings| {
        settings.mcp_servers = vec![McpServer {
            name: "script".to_owned(),
            transport: McpTransport::Stdio {
                command: "/bin/sh".into(),
                args: vec!["-c".to_owned(), TOOL_SERVER.to_owned()],
                env: Vec::new(),
            },
            timeout: None,
        }];
    });
    let session = world.create().await;
    session.servers().unwrap().wait_until_settled().await;
    world.run(&session, "Hello?", []).await;
    let session = world.reopen(&session).await;
    world.run(&session, "Still there?", []).await;
    session.close().await;
    let [before, after] = &requests(&world, 0)[..] else {
        panic!("two requests");
    };
    assert!(before["tools"].to_string().contains("hello"));
    assert_eq!(before["tools"], after["tools"]);
}
