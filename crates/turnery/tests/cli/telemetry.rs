//! Traces and metrics of whole prompts, as an OTLP collector receives them.

use crate::{
    collector::{Collector, ReceivedSpan, tree},
    editor::{Editor, prompt_params},
    fake_http,
    home::{Home, wait_for_file},
};
use serde_json::{Value, json};
use std::{net::SocketAddr, sync::Mutex};

pub(crate) const PROMPT: &str = "find the zebra";
const FILE_TEXT: &str = "a walrus in the file";
const FILE_NAME: &str = "ocelot.txt";
const CHILD_PROMPT: &str = "count the pangolins";
const CHILD_ANSWER: &str = "seven pangolins";
pub(crate) const ANSWER: &str = "the final quokka";
const CAPTURE: (&str, &str) = ("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "true");
const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

/// Starts a provider that answers its n-th call with the n-th reply: a status (number), the call of a tool (an array
/// of its name and arguments) or a text. Every answer costs 30 tokens of input, 20 of them cached, and 5 of output.
///
/// Before it sends a reply, it calls `before` with the number of replies that are left.
fn start_provider(
    replies: Vec<Value>,
    before: impl Fn(usize) + Send + Sync + 'static,
) -> SocketAddr {
    let replies = Mutex::new(replies.into_iter());
    fake_http::serve(move |request| {
        if !request.head[0].starts_with("POST") {
            return Some(fake_http::response(
                "404 Not Found",
                "application/json",
                "{}",
            ));
        }
        let (reply, left) = {
            let mut replies = replies.lock().expect("no panic");
            (replies.next().expect("a reply"), replies.len())
        };
        before(left);
        if let Some(status) = reply.as_u64() {
            let refused = fake_http::response(&format!("{status} No"), "application/json", "{}");
            return Some(refused.replacen("\r\n", "\r\nretry-after-ms: 1\r\n", 1));
        }
        let (delta, reason) = match reply.as_str() {
            Some(text) => (json!({"content": text}), "stop"),
            None => {
                let function = json!({"name": reply[0], "arguments": reply[1].to_string()});
                let call =
                    json!({"index": 0, "id": "c1", "type": "function", "function": function});
                (json!({"tool_calls": [call]}), "tool_calls")
            }
        };
        let first = json!({"model": "served-9", "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]});
        let usage = json!({"prompt_tokens": 30, "completion_tokens": 5, "total_tokens": 35,
            "prompt_tokens_details": {"cached_tokens": 20}});
        let last = json!({"model": "served-9", "choices": [], "usage": usage});
        let events = format!("data: {first}\n\ndata: {last}\n\ndata: [DONE]\n\n");
        Some(fake_http::response("200 OK", "text/event-stream", &events))
    })
}

/// Returns a home whose provider `desk` gives these replies, and its address.
pub(crate) fn home_with(replies: Vec<Value>) -> (Home, SocketAddr) {
    home_with_events(replies, |_| {})
}

/// Like [`home_with`]; the provider calls `before` as [`start_provider`] says.
pub(crate) fn home_with_events(
    replies: Vec<Value>,
    before: impl Fn(usize) + Send + Sync + 'static,
) -> (Home, SocketAddr) {
    let home = Home::new();
    let provider = start_provider(replies, before);
    let config = format!(
        "model = \"desk/asked\"\n[providers.desk]\napi = \"openai\"\nbase_url = \"http://{provider}/v1\"\n"
    );
    home.write_file("turnery/config.toml", &config);
    home.write_file(format!("project/{FILE_NAME}"), FILE_TEXT);
    (home, provider)
}

/// Replies of a prompt with a retry, a tool call, a sub-agent with a call of its own, and a call that fails.
pub(crate) fn eventful_replies() -> Vec<Value> {
    let read = json!(["read_file", {"path": FILE_NAME}]);
    vec![
        json!(503),
        read.clone(),
        json!(["task", {"title": "Dig", "prompt": CHILD_PROMPT}]),
        read,
        json!(CHILD_ANSWER),
        json!(["read_file", {"path": "absent-lynx.txt"}]),
        json!(ANSWER),
    ]
}

/// Runs the prompt to its answer; returns what was written to stderr.
pub(crate) async fn run_to_answer(
    collector: &Collector,
    home: &Home,
    variables: &[(&str, &str)],
) -> String {
    let run = collector.run(home, &["run", PROMPT], variables).await;
    assert_eq!((run.code, run.stdout.trim()), (Some(0), ANSWER), "{run:?}");
    run.stderr
}

/// Returns the number of warnings.
pub(crate) fn warnings(stderr: &str) -> usize {
    let lines = stderr.lines();
    lines.filter(|line| line.trim().starts_with("WARN")).count()
}

fn named<'a>(spans: &'a [ReceivedSpan], name: &str) -> Vec<&'a ReceivedSpan> {
    spans.iter().filter(|span| span.0.name == name).collect()
}

#[tokio::test]
async fn spans_of_a_run_form_one_tree() {
    let collector = Collector::start();
    let (home, provider) = home_with(eventful_replies());
    let stderr = run_to_answer(&collector, &home, &[]).await;
    assert_eq!(warnings(&stderr), 0, "{stderr}");
    let spans = collector.spans();
    assert_eq!(
        tree(&spans),
        [
            "invoke_agent turnery",
            "  chat asked",
            "  execute_tool read_file",
            "  chat asked",
            "  execute_tool task",
            "    invoke_agent turnery/task",
            "      chat asked",
            "      execute_tool read_file",
            "      chat asked",
            "  chat asked",
            "  execute_tool read_file",
            "  chat asked",
        ]
    );
    let trace = &spans[0].0.trace_id;
    assert!(spans.iter().all(|span| span.0.trace_id == *trace));

    let agent = &spans[0];
    let session = agent.attribute("gen_ai.conversation.id");
    assert!(!session.is_empty());
    for (name, value) in [
        ("gen_ai.operation.name", "invoke_agent"),
        ("gen_ai.agent.name", "turnery"),
        ("gen_ai.provider.name", "desk"),
        ("gen_ai.request.model", "asked"),
        ("turnery.outcome", "finished"),
        ("error.type", ""),
    ] {
        assert_eq!(agent.attribute(name), value, "{name}");
    }
    let child = named(&spans, "invoke_agent turnery/task")[0];
    assert_ne!(child.attribute("gen_ai.conversation.id"), session);

    let chats = named(&spans, "chat asked");
    for (name, value) in [
        ("gen_ai.operation.name", "chat"),
        ("gen_ai.provider.name", "desk"),
        ("gen_ai.request.model", "asked"),
        ("gen_ai.response.model", "served-9"),
        ("gen_ai.response.finish_reasons", "[tool_call]"),
        ("gen_ai.usage.input_tokens", "30"),
        ("gen_ai.usage.cache_read.input_tokens", "20"),
        ("gen_ai.usage.output_tokens", "5"),
        ("gen_ai.conversation.id", &session),
        ("server.address", "127.0.0.1"),
        ("server.port", &provider.port().to_string()),
        ("turnery.call.source", "turn"),
        ("error.type", ""),
    ] {
        assert_eq!(chats[0].attribute(name), value, "{name}");
    }
    assert_eq!(chats[0].0.kind, 3, "a client");
    let last = chats.last().expect("a call");
    assert_eq!(last.attribute("gen_ai.response.finish_reasons"), "[stop]");

    let [(retry, details)] = &chats[0].events()[..] else {
        panic!("{:?}", chats[0]);
    };
    assert_eq!(retry, "turnery.retry");
    assert_eq!(details["turnery.retry.attempt"], "1");
    assert_eq!(details["error.type"], "overloaded");
    assert!(chats[1..].iter().all(|chat| chat.events().is_empty()));

    let reads = named(&spans, "execute_tool read_file");
    for (name, value) in [
        ("gen_ai.operation.name", "execute_tool"),
        ("gen_ai.tool.name", "read_file"),
        ("gen_ai.tool.type", "function"),
        ("error.type", ""),
    ] {
        assert_eq!(reads[0].attribute(name), value, "{name}");
    }
    assert!(!reads[0].attribute("gen_ai.tool.call.id").is_empty());
    let failed: Vec<bool> = reads.iter().map(|read| read.is_failed()).collect();
    assert_eq!(failed, [false, false, true]);
    assert_ne!(reads[2].attribute("error.type"), "");

    let (resource, schema) = collector.origin();
    assert_eq!(resource["service.name"], "turnery");
    assert_eq!(schema, "https://opentelemetry.io/schemas/1.41.0");
}

#[tokio::test]
async fn content_is_exported_only_on_request() {
    let content = [
        PROMPT,
        FILE_TEXT,
        FILE_NAME,
        CHILD_PROMPT,
        CHILD_ANSWER,
        "absent-lynx",
        ANSWER,
    ];
    let collector = Collector::start();
    let (home, _) = home_with(eventful_replies());
    collector.run(&home, &["run", PROMPT], &[]).await;
    let text = collector.text();
    assert_eq!(collector.spans().len(), 12);
    for secret in content {
        assert!(!text.contains(secret), "{secret}");
    }
    let folder = home.project_folder();
    assert!(!text.contains(folder.to_str().expect("UTF-8")));

    let collector = Collector::start();
    let (home, _) = home_with(eventful_replies());
    collector.run(&home, &["run", PROMPT], &[CAPTURE]).await;
    let text = collector.text();
    for wanted in content {
        assert!(text.contains(wanted), "{wanted}");
    }
    let spans = collector.spans();
    let json = |span: &ReceivedSpan, name: &str| -> Value {
        serde_json::from_str(&span.attribute(name)).expect("JSON")
    };
    let asked = json!([{"role": "user", "parts": [{"type": "text", "content": PROMPT}]}]);
    assert_eq!(json(&spans[0], "gen_ai.input.messages"), asked);
    let answered = json!([{"role": "assistant", "finish_reason": "stop",
        "parts": [{"type": "text", "content": ANSWER}]}]);
    assert_eq!(json(&spans[0], "gen_ai.output.messages"), answered);
    let chats = named(&spans, "chat asked");
    assert_eq!(json(chats[0], "gen_ai.input.messages"), asked);
    let result = &json(chats[1], "gen_ai.input.messages")[0];
    assert_eq!(result["role"], "tool");
    assert_eq!(result["parts"][0]["type"], "tool_call_response");
    let output = json(chats[0], "gen_ai.output.messages");
    assert_eq!(output[0]["finish_reason"], "tool_call");
    assert_eq!(output[0]["parts"][0]["name"], "read_file");
    let last = chats.last().expect("a call");
    assert_eq!(json(last, "gen_ai.output.messages"), answered);
    let read = named(&spans, "execute_tool read_file")[0];
    let arguments = json(read, "gen_ai.tool.call.arguments");
    assert_eq!(arguments, json!({"path": FILE_NAME}));
    assert!(
        read.attribute("gen_ai.tool.call.result")
            .contains(FILE_TEXT)
    );
}

#[tokio::test]
async fn metrics_add_up_tokens_and_durations() {
    let collector = Collector::start();
    let (home, _) = home_with(vec![json!(["list_dir", {}]), json!(ANSWER)]);
    collector.run(&home, &["run", PROMPT], &[]).await;
    let histograms = collector.histograms();
    let sum = |name: &str, kind: Option<&str>| {
        let fits = |(it, attributes, _): &&(String, _, f64)| {
            let attributes: &std::collections::BTreeMap<String, String> = attributes;
            let found = attributes.get("gen_ai.token.type").map(String::as_str);
            it == name && found == kind && attributes["gen_ai.response.model"] == "served-9"
        };
        let fitting: Vec<_> = histograms.iter().filter(fits).collect();
        assert_eq!(fitting.len(), 1, "{name} {kind:?}: {histograms:?}");
        fitting[0].2
    };
    assert_eq!(
        sum("gen_ai.client.token.usage {token}", Some("input")),
        60.0
    );
    assert_eq!(
        sum("gen_ai.client.token.usage {token}", Some("output")),
        10.0
    );
    assert!(sum("gen_ai.client.operation.duration s", None) > 0.0);
}

#[tokio::test]
async fn failed_call_marks_call_and_prompt() {
    let collector = Collector::start();
    let (home, _) = home_with(vec![json!(401)]);
    let run = collector.run(&home, &["run", PROMPT], &[]).await;
    assert_ne!(run.code, Some(0));
    let spans = collector.spans();
    assert_eq!(tree(&spans), ["invoke_agent turnery", "  chat asked"]);
    for span in &spans {
        assert_eq!(span.attribute("error.type"), "auth", "{span:?}");
        assert!(span.is_failed());
    }
    assert_eq!(spans[0].attribute("turnery.outcome"), "provider_error");
    assert_eq!(spans[1].attribute("gen_ai.response.model"), "");
}

#[tokio::test]
async fn call_that_a_fallback_answers_names_its_provider() {
    let collector = Collector::start();
    let home = Home::new();
    let empty = start_provider(vec![json!(402)], |_| {});
    let other = start_provider(vec![json!(ANSWER)], |_| {});
    let config = format!(
        "model = \"empty/asked\"\nfallback = [\"other/second\"]\n\
         [providers.empty]\napi = \"openai\"\nbase_url = \"http://{empty}/v1\"\n\
         [providers.other]\napi = \"openai\"\nbase_url = \"http://{other}/v1\"\n"
    );
    home.write_file("turnery/config.toml", &config);
    run_to_answer(&collector, &home, &[]).await;
    let spans = collector.spans();
    assert_eq!(tree(&spans), ["invoke_agent turnery", "  chat asked"]);
    for (name, value) in [
        ("gen_ai.provider.name", "other"),
        ("gen_ai.request.model", "asked"),
        ("gen_ai.response.model", "served-9"),
        ("server.port", &other.port().to_string()),
    ] {
        assert_eq!(spans[1].attribute(name), value, "{name}");
    }
    assert_eq!(spans[0].attribute("gen_ai.provider.name"), "empty");
    for (name, attributes, _) in collector.histograms() {
        assert_eq!(attributes["gen_ai.provider.name"], "other", "{name}");
    }
}

#[tokio::test]
async fn cancelled_tool_is_no_error() {
    let collector = Collector::start();
    let home = Home::new();
    let command = "echo > begun.new; mv begun.new begun; exec sleep 1000";
    let model = home.scripted_model(json!([
        {"steps": [{"tool_call": {"name": "shell", "args": {"command": command}}}]},
        {"steps": [{"text": "unused"}]},
    ]));
    let endpoint = format!("http://{}", collector.address);
    let variables = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint.as_str()),
        ("OTEL_BSP_SCHEDULE_DELAY", "1"),
    ];
    let args = ["acp", "--model", &model, "--mode", "auto"];
    let mut editor = Editor::spawn(&home, &args, &variables);
    editor.initialize().await;
    let session = editor.new_session(&home.project_folder()).await;
    editor.send_prompt(10, &session).await;
    wait_for_file(&home.project_folder().join("begun")).await;
    editor
        .send(
            json!({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": session}}),
        )
        .await;
    editor.wait_for(|it| it["id"] == 10).await;
    let exit = editor.close_input().await;
    assert_eq!(exit.code, Some(0), "{exit:?}");
    let spans = collector.spans();
    let tool = named(&spans, "execute_tool shell")[0];
    assert_eq!(tool.attribute("turnery.outcome"), "cancelled");
    assert_eq!(tool.attribute("error.type"), "");
    assert!(spans.iter().all(|span| !span.is_failed()), "{spans:?}");
}

#[tokio::test]
async fn environment_parent_is_used_and_its_sampling() {
    let collector = Collector::start();
    let (home, _) = home_with(vec![json!(ANSWER), json!(ANSWER)]);
    let parent = [("TRACEPARENT", PARENT), ("OTEL_SERVICE_NAME", "nightly")];
    collector.run(&home, &["run", PROMPT], &parent).await;
    let spans = collector.spans();
    assert_eq!(spans.len(), 2);
    assert_eq!(
        hex(&spans[0].0.trace_id),
        "0af7651916cd43dd8448eb211c80319c"
    );
    assert_eq!(hex(&spans[0].0.parent_span_id), "b7ad6b7169203331");
    assert_eq!(collector.origin().0["service.name"], "nightly");
    // The caller did not sample its trace.
    let unsampled = format!("{}00", &PARENT[..PARENT.len() - 2]);
    let parent = [("TRACEPARENT", unsampled.as_str())];
    collector.run(&home, &["run", PROMPT], &parent).await;
    assert_eq!(collector.spans().len(), 2);
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[tokio::test]
async fn editor_parent_is_used_and_cancel_recorded() {
    let collector = Collector::start();
    let home = Home::new();
    let model = home.scripted_model(json!([
        {"steps": [{"text": "hello"}]},
        {"steps": [{"text": "begun"}, {"wait_for_cancel": true}]},
    ]));
    let endpoint = format!("http://{}", collector.address);
    let args = ["acp", "--model", &model];
    let variables = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint.as_str()),
        ("OTEL_BSP_SCHEDULE_DELAY", "1"),
    ];
    let mut editor = Editor::spawn(&home, &args, &variables);
    editor.initialize().await;
    let session = editor.new_session(&home.project_folder()).await;
    let mut params = prompt_params(&session);
    params["_meta"] = json!({"traceparent": PARENT});
    editor.request(10, "session/prompt", params).await;
    editor.send_prompt(11, &session).await;
    editor
        .wait_for(|it| it["params"]["update"]["content"]["text"] == "begun")
        .await;
    editor
        .send(
            json!({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": session}}),
        )
        .await;
    editor.wait_for(|it| it["id"] == 11).await;
    let exit = editor.close_input().await;
    assert_eq!(exit.code, Some(0), "{exit:?}");
    let spans = collector.spans();
    let agents = named(&spans, "invoke_agent turnery");
    assert_eq!(hex(&agents[0].0.parent_span_id), "b7ad6b7169203331");
    assert_eq!(agents[0].attribute("turnery.outcome"), "finished");
    assert_eq!(agents[1].attribute("turnery.outcome"), "cancelled");
    assert!(spans.iter().all(|span| !span.is_failed()), "{spans:?}");
    // The path of the scenario is the name of its model.
    assert!(!collector.text().contains("scenario"));
    assert!(agents[1].0.parent_span_id.is_empty(), "{:?}", agents[1]);
    assert!(
        agents
            .iter()
            .all(|it| it.attribute("gen_ai.conversation.id") == session)
    );
    let calls = spans
        .iter()
        .filter(|span| span.attribute("gen_ai.operation.name") == "chat");
    let outcomes: Vec<String> = calls
        .map(|call| call.attribute("turnery.outcome"))
        .collect();
    assert_eq!(outcomes, ["", "cancelled"]);
}

#[tokio::test]
async fn candidates_and_judge_share_the_span_of_the_prompt() {
    let collector = Collector::start();
    let (home, _) = home_with(vec![json!("one"), json!("two"), json!("2")]);
    let args = [
        "run",
        "--try",
        "desk/asked,desk/asked",
        "--judge",
        "desk/judge",
        PROMPT,
    ];
    let run = collector.run(&home, &args, &[]).await;
    assert_eq!(run.code, Some(0), "{run:?}");
    let spans = collector.spans();
    let mut tree = tree(&spans);
    tree[1..].sort();
    assert_eq!(
        tree,
        [
            "invoke_agent turnery",
            "  chat asked",
            "  chat asked",
            "  chat judge"
        ]
    );
    let chats = named(&spans, "chat asked");
    let loops = [0, 1].map(|it: usize| chats[it].attribute("turnery.loop.number"));
    assert_ne!(loops[0], loops[1]);
    let judge = named(&spans, "chat judge")[0];
    assert_eq!(judge.attribute("turnery.call.source"), "evaluation");
}

#[tokio::test]
async fn commands_do_not_see_the_headers_of_the_collector() {
    let collector = Collector::start();
    let (home, _) = home_with(vec![
        json!(["shell", {"command": "printenv | grep OTEL > seen.txt"}]),
        json!(ANSWER),
    ]);
    let headers = [("OTEL_EXPORTER_OTLP_HEADERS", "authorization=x")];
    let args = ["run", "--mode", "auto", PROMPT];
    collector.run(&home, &args, &headers).await;
    let seen = std::fs::read_to_string(home.project_folder().join("seen.txt")).expect("a file");
    assert!(seen.contains("OTEL_EXPORTER_OTLP_ENDPOINT"), "{seen}");
    assert!(!seen.contains("HEADERS"), "{seen}");
}
