//! Models that take over for the rest of a prompt, with two providers on real sockets.

use crate::{
    editor::Editor,
    fake_http::{self, HttpRequest},
    home::Home,
};
use serde_json::{Value, json};
use std::{
    net::SocketAddr,
    path::PathBuf,
    sync::{Arc, Mutex},
};

/// Provider that answers its n-th request with the n-th reply, and its last reply from then on.
struct Provider {
    address: SocketAddr,
    /// Models that were asked for.
    requests: Arc<Mutex<Vec<String>>>,
}

impl Provider {
    fn start(replies: &[Value]) -> Self {
        let replies = replies.to_vec();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&requests);
        let address = fake_http::serve(move |HttpRequest { head, body }| {
            if !head[0].starts_with("POST") {
                return Some(fake_http::response(
                    "404 Not Found",
                    "application/json",
                    "{}",
                ));
            }
            let asked: Value = serde_json::from_slice(&body).expect("JSON");
            let mut seen = seen.lock().expect("the requests");
            let reply = replies.get(seen.len()).or(replies.last()).expect("a reply");
            seen.push(asked["model"].as_str().expect("a model").to_owned());
            Some(answer(reply))
        });
        Self { address, requests }
    }

    fn requests(&self) -> Vec<String> {
        self.requests.lock().expect("the requests").clone()
    }
}

/// Returns the response for a status (number), a call of `list_dir` (null) or a text.
fn answer(reply: &Value) -> String {
    if let Some(status) = reply.as_u64() {
        return fake_http::response(&format!("{status} Refused"), "application/json", "{}");
    }
    let delta = match reply.as_str() {
        Some(text) => json!({"content": text}),
        None => json!({"tool_calls": [{"index": 0, "id": "c1", "type": "function",
            "function": {"name": "list_dir", "arguments": "{}"}}]}),
    };
    let finish = if reply.is_null() {
        "tool_calls"
    } else {
        "stop"
    };
    let chunk = json!({"choices": [{"index": 0, "delta": delta}]});
    // A million tokens in, half a million out.
    let usage = json!({"prompt_tokens": 1_000_000, "completion_tokens": 500_000, "total_tokens": 1_500_000});
    let end =
        json!({"choices": [{"index": 0, "delta": {}, "finish_reason": finish}], "usage": usage});
    let events = format!("data: {chunk}\n\ndata: {end}\n\ndata: [DONE]\n\n");
    fake_http::response("200 OK", "text/event-stream", &events)
}

/// Configures the providers `a` and `b` with one model each. That of `b` takes over, and costs 2 and 4 a million tokens.
fn configure(home: &Home, a: &Provider, b: &Provider, priced: &[&str]) -> PathBuf {
    let mut text = "model = \"a/first\"\nfallback = [\"missing/model\", \"b/second\"]\n[limits]\ntokens = 100_000_000\n".to_owned();
    for (name, provider) in [("a", a), ("b", b)] {
        text.push_str(&format!(
            "[providers.{name}]\napi = \"openai\"\nbase_url = \"http://{}/v1\"\n",
            provider.address
        ));
    }
    // Always out of credit.
    let c = Provider::start(&[json!(402)]);
    text.push_str(&format!(
        "[providers.c]\napi = \"openai\"\nbase_url = \"http://{}/v1\"\n",
        c.address
    ));
    for name in priced {
        text.push_str(&format!(
            "[models.\"{name}\"]\ncontext_window = 100_000_000\nprice = {{ input = 2, output = 4 }}\n"
        ));
    }
    home.write_file("turnery/config.toml", &text)
}

/// The second model makes the failed call and all further ones of the prompt; records, usage and cost name it. The next
/// prompt begins with the first model.
#[tokio::test]
async fn second_model_takes_over_for_the_prompt() {
    let home = Home::new();
    let (a, b) = (
        Provider::start(&[json!(402), json!("from a")]),
        Provider::start(&[json!(null), json!("from b")]),
    );
    configure(&home, &a, &b, &["b/second"]);
    let run = home.run(&["run", "--format", "stream-json", "go"]).await;
    assert_eq!(run.code, Some(0), "{run:?}");
    let lines: Vec<Value> = run
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    let result = lines.last().expect("a result");
    assert_eq!(result["text"], "from b", "{result}");
    assert_eq!(result["model"], "b/second", "{result}");
    // Two answers at 2 + 2 each.
    assert_eq!(result["cost"], 8.0, "{result}");
    assert_eq!(
        (a.requests(), b.requests()),
        (vec!["first".to_owned()], vec!["second".to_owned(); 2])
    );
    let retried = lines.iter().map(Value::to_string);
    let retried: Vec<String> = retried.filter(|line| line.contains("takes over")).collect();
    assert_eq!(retried.len(), 1, "{}", run.stdout);
    assert!(retried[0].contains("a has no credit left"), "{retried:?}");
    assert!(retried[0].contains("b/second takes over."), "{retried:?}");
    let warning = "fallback names missing/model, but there is no provider \"missing\"";
    assert!(run.stderr.contains(warning), "{run:?}");

    let id = result["session_id"].as_str().expect("an id");
    let usage = home
        .run(&["sessions", "usage", id, "--json"])
        .await
        .stdout_json();
    let rows: Vec<(&Value, &Value)> = usage["rows"]
        .as_array()
        .expect("rows")
        .iter()
        .map(|row| (&row["model"], &row["cost"]))
        .collect();
    assert_eq!(rows, [(&json!("b/second"), &json!(8.0))]);
    let shown = home.run(&["sessions", "show", id, "--json"]).await.stdout;
    assert!(
        shown.contains("takes over"),
        "the attempt is recorded: {shown}"
    );

    let table = home.run(&["sessions", "show", id]).await.stdout;
    let row = table.lines().find(|line| line.contains("finished"));
    assert!(row.is_some_and(|row| row.ends_with("b/second")), "{table}");

    // The first model fails again; the user is told once.
    let told = home.run(&["run", "--model", "c/third", "go"]).await;
    assert_eq!(told.stdout, "from b\n", "{told:?}");
    assert_eq!(told.stderr.matches("takes over").count(), 1, "{told:?}");

    let next = home.run(&["run", "--session", id, "again"]).await;
    assert_eq!(next.stdout, "from a\n", "{next:?}");
    assert_eq!(a.requests().len(), 2);
}

/// With a limit on cost a model without a known price does not take over, and the cost of the one that does counts.
#[tokio::test]
async fn cost_limit_holds_over_a_takeover() {
    let home = Home::new();
    let refusing = || Provider::start(&[json!(401)]);
    let a = refusing();
    let b = Provider::start(&[json!(null)]);
    configure(&home, &a, &b, &["a/first"]);
    let run = ["run", "--max-cost", "7", "--format", "json", "go"];
    let unknown = home.run(&run).await;
    assert_eq!(unknown.code, Some(1), "{unknown:?}");
    assert!(unknown.stdout.contains("a refuses the key"), "{unknown:?}");
    assert_eq!(b.requests(), [""; 0]);

    // Each answer costs 4: the second reaches the limit.
    configure(&home, &a, &b, &["a/first", "b/second"]);
    let limited = home.run(&run).await;
    assert_eq!(limited.code, Some(4), "{limited:?}");
    let result = limited.stdout_json();
    assert_eq!(
        (&result["turns"], &result["cost"]),
        (&json!(2), &json!(8.0))
    );
}

#[tokio::test]
async fn editor_is_told_which_model_takes_over() {
    let home = Home::new();
    let (a, b) = (
        Provider::start(&[json!(402)]),
        Provider::start(&[json!("from b")]),
    );
    configure(&home, &a, &b, &["a/first", "b/second"]);
    let (mut editor, id) = Editor::with_session(&home, &["acp"]).await;
    let prompt = json!({"sessionId": id, "prompt": [{"type": "text", "text": "go"}]});
    editor.request(2, "session/prompt", prompt).await;
    let said: Vec<String> = editor.said.iter().map(Value::to_string).collect();
    assert!(
        said.iter().any(|line| line.contains("b/second takes over")),
        "{said:?}"
    );
    let mut costs = editor
        .said
        .iter()
        .map(|message| &message["params"]["update"]["cost"]["amount"]);
    assert_eq!(costs.rfind(|cost| !cost.is_null()), Some(&json!(4.0)));
    editor.close_input().await;
}

#[tokio::test]
async fn fallback_of_a_project_is_ignored() {
    let home = Home::new();
    let (a, b) = (
        Provider::start(&[json!(402)]),
        Provider::start(&[json!("from b")]),
    );
    let path = configure(&home, &a, &b, &[]);
    let text = std::fs::read_to_string(&path).expect("a file");
    let line = "fallback = [\"missing/model\", \"b/second\"]\n";
    home.write_file(&path, &text.replace(line, ""));
    home.write_file("project/.turnery/config.toml", line);
    let run = home.run(&["run", "go"]).await;
    assert_eq!(run.code, Some(1), "{run:?}");
    assert!(
        run.stderr.contains("the project's fallback is ignored"),
        "{run:?}"
    );
    assert_eq!(b.requests(), [""; 0]);
}
