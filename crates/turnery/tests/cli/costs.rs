//! Model facts in the configuration: prices and cost limits, images, missing keys; and the schema of results.

use crate::{editor::Editor, home::Home};
use serde_json::{Value, json};
use std::fs;

fn write_price(home: &Home, model: &str, more: &str) {
    let table = format!("[models.\"{model}\"]\nprice = {{ input = 10, output = 50 }}\n{more}");
    home.write_file("turnery/config.toml", &table);
}

// proves: UP-1
#[tokio::test]
async fn prompt_stops_at_cost_limit() {
    let home = Home::new();
    let list = json!({"tool_call": {"name": "list_dir", "args": {}}});
    let turn = json!({"steps": [list], "usage": {"input": 100_000, "output": 10_000}});
    let model = home.scripted_model(json!([turn, turn, turn, turn, {"steps": [{"text": "done"}]}]));
    let run = [
        "run",
        "--model",
        &model,
        "--max-cost",
        "2.5",
        "--format",
        "json",
        "go",
    ];
    let unknown = home.run(&run).await;
    assert_eq!(unknown.code, Some(1));
    assert!(
        unknown.stderr.contains("no price is known for scripted"),
        "{unknown:?}"
    );
    // Each turn costs 1 + 0.5: the second is the first to reach the limit.
    write_price(&home, &model, "");
    let done = home.run(&run).await;
    assert_eq!(done.code, Some(4), "{done:?}");
    let result = done.stdout_json();
    assert_eq!(
        (&result["turns"], &result["cost"]),
        (&json!(2), &json!(3.0)),
        "{result}"
    );
    // The same limit in the file, and none that is lower.
    write_price(&home, &model, "[limits]\ncost = 1.5\n");
    let run = ["run", "--model", &model, "--format", "json", "go"];
    assert_eq!(home.run(&run).await.stdout_json()["turns"], 1);
}

/// An unknown cost is not reported as zero, neither in its row nor in the sum.
#[tokio::test]
async fn session_cost_is_reported_for_known_prices() {
    let home = Home::new();
    let answer = |text: &str| json!({"steps": [{"text": text}], "usage": {"input": 100_000, "output": 10_000}});
    let model = home.scripted_model(json!([answer("one"), answer("two"), answer("three")]));
    let run = ["run", "--model", &model, "--format", "json", "go"];
    let id = home.run(&run).await.stdout_json()["session_id"].clone();
    let id = id.as_str().expect("an id");
    // A second model in the same session, with the same answers.
    let other = home.write_file(
        "other.json",
        &json!({"answers": [answer("x"), answer("y")]}).to_string(),
    );
    let other = format!("scripted:{}", other.display());
    let more = ["run", "--model", &other, "--session", id, "go"];
    let more = home.run(&more).await;
    assert_eq!(more.code, Some(0), "{more:?}");

    let usage = async |json: &[&str]| {
        home.run(&[&["sessions", "usage", id][..], json].concat())
            .await
    };
    let costs = |told: &Value| -> Vec<(String, Value)> {
        let rows = told["rows"].as_array().expect("rows").iter();
        rows.map(|row| {
            (
                row["model"].as_str().expect("a name").replacen('/', ":", 1),
                row["cost"].clone(),
            )
        })
        .collect()
    };
    let told = usage(&["--json"]).await.stdout_json();
    assert_eq!(told["cost"], json!(null), "{told}");
    assert!(
        costs(&told).iter().all(|(_, cost)| cost.is_null()),
        "{told}"
    );
    assert_eq!(costs(&told).len(), 2, "{told}");

    // 0.1 million in at 10, 0.01 million out at 50.
    write_price(&home, &model, "");
    let told = usage(&["--json"]).await.stdout_json();
    assert!(
        costs(&told).contains(&(model.clone(), json!(1.5))),
        "{told}"
    );
    assert!(
        costs(&told).contains(&(other.clone(), json!(null))),
        "{told}"
    );
    assert_eq!(told["cost"], json!(null), "{told}");
    let table = usage(&[]).await;
    let last = |line: &str, place: usize| line.split_whitespace().nth(place).map(str::to_owned);
    let mut words: Vec<_> = table
        .stdout
        .lines()
        .skip(1)
        .filter_map(|line| last(line, 6))
        .collect();
    words.sort();
    assert_eq!(words, ["1.500000", "unknown", "unknown"], "{table:?}");

    let second = format!("[models.\"{other}\"]\nprice = {{ input = 0, output = 100 }}\n");
    write_price(&home, &model, &second);
    let told = usage(&["--json"]).await.stdout_json();
    assert!(
        costs(&told).contains(&(other.clone(), json!(1.0))),
        "{told}"
    );
    assert_eq!(told["cost"], json!(2.5), "{told}");
}

/// Stands for the cost of a usage update without one.
fn absent() -> Value {
    json!("absent")
}

/// Returns all `cost`s that the editor receives during a request, in order. Version 2 clears a cost by `null`.
async fn reported_costs(editor: &mut Editor, id: u64, method: &str, params: Value) -> Vec<Value> {
    let before = editor.said.len();
    let answer = editor.request(id, method, params).await;
    assert_eq!(answer["error"], json!(null), "{answer}");
    let updates = editor.said[before..].iter();
    let updates = updates.map(|message| &message["params"]["update"]);
    let usage = updates.filter(|update| update["sessionUpdate"] == "usage_update");
    let cost = |update: &Value| update.get("cost").cloned();
    usage
        .map(|update| cost(update).unwrap_or_else(absent))
        .collect()
}

/// The reported cost of a session covers all prompts and processes; it is absent while a price is unknown,
/// rather than incomplete.
// proves: USAGE-1, THEME-12
#[tokio::test]
async fn editor_receives_session_cost() {
    let home = Home::new();
    let list = json!({"tool_call": {"name": "list_dir", "args": {}}});
    let turn =
        |step: Value| json!({"steps": [step], "usage": {"input": 100_000, "output": 10_000}});
    let text = |text: &str| turn(json!({"text": text}));
    let model = home.scripted_model(json!([
        turn(list),
        text("one"),
        text("two"),
        text("three"),
        text("four")
    ]));
    let again = json!({"answers": [text("x")], "repeat": true});
    let other = home.write_file("other.json", &again.to_string());
    let other = format!("scripted:{}", other.display());
    let window = "context_window = 1_000_000\n";
    let more = format!("{window}[models.\"{other}\"]\n{window}");
    write_price(&home, &model, &more);
    let usd = |amount: f64| json!({"amount": amount, "currency": "USD"});
    let args = ["acp", "--model", &model];
    let (mut editor, id) = Editor::with_session(&home, &args).await;
    let prompt = json!({"sessionId": id, "prompt": [{"type": "text", "text": "go"}]});
    // 0.1 million in at 10, 0.01 million out at 50.
    let first = reported_costs(&mut editor, 2, "session/prompt", prompt.clone()).await;
    assert_eq!(first, [usd(1.5), usd(3.0)]);
    let second = reported_costs(&mut editor, 3, "session/prompt", prompt.clone()).await;
    assert_eq!(second, [usd(4.5)]);
    editor.close_input().await;

    let at = json!({"sessionId": id, "cwd": home.project_folder(), "mcpServers": []});
    for method in ["session/resume", "session/load"] {
        let mut editor = Editor::spawn(&home, &args, &[]);
        editor.initialize().await;
        let shown = reported_costs(&mut editor, 2, method, at.clone()).await;
        // Each replayed prompt has its usage; the cost of the session follows at the end.
        let expected = if method == "session/load" {
            vec![absent(), absent(), absent(), usd(6.0)]
        } else {
            Vec::new()
        };
        assert_eq!(shown, expected, "{method}");
        let next = reported_costs(&mut editor, 3, "session/prompt", prompt.clone()).await;
        let after = if method == "session/load" {
            usd(7.5)
        } else {
            usd(6.0)
        };
        assert_eq!(next, [after], "{method}");
        editor.close_input().await;
    }

    let mut editor = Editor::spawn(&home, &["acp", "--acp-v2", "--model", &model], &[]);
    let info = json!({"name": "a test", "version": "1"});
    let hello = json!({"protocolVersion": 2, "info": info, "capabilities": {}});
    editor.request(0, "initialize", hello).await;
    let from =
        json!({"sessionId": id, "cwd": home.project_folder(), "replayFrom": {"type": "start"}});
    let shown = reported_costs(&mut editor, 2, "session/resume", from).await;
    assert_eq!(shown, [absent(), absent(), absent(), absent(), usd(7.5)]);
    editor.close_input().await;

    // A model without a price: from then on the cost is unknown.
    let mut editor = Editor::spawn(&home, &args, &[]);
    editor.initialize().await;
    reported_costs(&mut editor, 2, "session/resume", at).await;
    let set = json!({"sessionId": id, "configId": "model", "value": other});
    reported_costs(&mut editor, 3, "session/set_config_option", set).await;
    let unknown = reported_costs(&mut editor, 4, "session/prompt", prompt).await;
    assert_eq!(unknown, [absent()]);
    editor.close_input().await;
}

/// A response that was replaced was paid for too.
// proves: USAGE-1, I9
#[tokio::test]
async fn stored_session_cost_counts_replaced_responses() {
    let home = Home::new();
    let usage = json!({"input": 100_000, "output": 10_000});
    let turn = |text: &str| json!({"steps": [{"text": text}], "usage": usage});
    let model = home.scripted_model(json!([turn("1"), turn("2"), turn("3"), turn("4")]));
    write_price(&home, &model, "context_window = 1_000_000\n");
    let args = ["acp", "--model", &model];
    let (mut editor, id) = Editor::with_session(&home, &args).await;
    let prompt = |text: &str| json!({"sessionId": id, "prompt": [{"type": "text", "text": text}]});
    for (request, text) in [(2, "go"), (3, "/rerun")] {
        reported_costs(&mut editor, request, "session/prompt", prompt(text)).await;
    }
    editor.close_input().await;
    let at = json!({"sessionId": id, "cwd": home.project_folder(), "mcpServers": []});
    let mut editor = Editor::spawn(&home, &args, &[]);
    editor.initialize().await;
    reported_costs(&mut editor, 2, "session/resume", at.clone()).await;
    let resumed = reported_costs(&mut editor, 3, "session/prompt", prompt("and")).await;
    assert_eq!(resumed[0]["amount"], 4.5);
    editor.close_input().await;
    let mut editor = Editor::spawn(&home, &args, &[]);
    editor.initialize().await;
    let loaded = reported_costs(&mut editor, 2, "session/load", at.clone()).await;
    assert_eq!(loaded.last().unwrap()["amount"], 4.5, "{loaded:?}");
    // A copied history was paid for in its own session.
    let forked = editor.request(3, "session/fork", at).await;
    let prompt = json!({
        "sessionId": forked["result"]["sessionId"],
        "prompt": [{"type": "text", "text": "go"}],
    });
    let own = reported_costs(&mut editor, 4, "session/prompt", prompt).await;
    assert_eq!(own[0]["amount"], 1.5, "{forked}");
    editor.close_input().await;
}

#[tokio::test]
async fn image_for_model_without_images_is_rejected() {
    let home = Home::new();
    let model = home.scripted_model(json!([{"steps": [{"text": "seen"}]}]));
    let picture = home.write_file("dot.gif", "GIF89a");
    let picture = picture.to_str().expect("UTF-8");
    let run = ["run", "--model", &model, "--image", picture, "look"];
    assert_eq!(home.run(&run).await.stdout, "seen\n");
    write_price(&home, &model, "");
    home.write_file(
        "turnery/config.toml",
        &format!("[models.\"{model}\"]\nimages = false\n"),
    );
    let done = home.run(&run).await;
    assert_eq!((done.code, done.stdout.as_str()), (Some(1), ""));
    assert!(done.stderr.contains("takes no pictures"), "{done:?}");
}

#[tokio::test]
async fn missing_key_creates_no_session() {
    let home = Home::new();
    let run = [
        "run",
        "--model",
        "anthropic/claude-opus-4-8",
        "--format",
        "json",
        "hi",
    ];
    let done = home.run(&run).await;
    assert_eq!(done.code, Some(1), "{done:?}");
    assert_eq!(
        done.stdout_json()["error"],
        "there is no key for anthropic: run `turnery login anthropic` or set ANTHROPIC_API_KEY, or choose another model (`turnery models` lists them)"
    );
    assert_eq!(
        home.run(&["sessions", "list", "--json"])
            .await
            .stdout_json(),
        json!([])
    );
}

#[tokio::test]
async fn printed_lines_match_schema() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../schemas/run.json");
    let schema = fs::read_to_string(file).expect("a schema");
    let schema: Value = serde_json::from_str(&schema).expect("JSON");
    let schema = jsonschema::validator_for(&schema).expect("a schema");
    let home = Home::new();
    let model = home.scripted_model(json!([
        {"steps": [{"thinking": "hm"}, {"tool_call": {"name": "write_file", "args": {"path": "a", "content": "b"}}}]},
        {"steps": [{"tool_call": {"name": "shell", "args": {"command": "false"}}}]},
        {"steps": [{"text": "done"}], "usage": {"input": 3, "output": 1}},
    ]));
    write_price(&home, &model, "");
    let stream = [
        "run",
        "--mode",
        "auto",
        "--format",
        "stream-json",
        "--model",
        &model,
        "go",
    ];
    let good = home.run(&stream).await;
    let bad = home
        .run(&["run", "--format", "json", "--session", "nope", "go"])
        .await;
    let misused = home.run(&["run", "--format", "json"]).await;
    let lines = [&good, &bad, &misused].map(|done| done.stdout.lines());
    let mut count = 0;
    for line in lines.into_iter().flatten() {
        let line: Value = serde_json::from_str(line).expect("JSON");
        assert!(schema.is_valid(&line), "{line}");
        count += 1;
    }
    assert!(count > 20, "{count} lines");
    assert_eq!(misused.stdout_json()["outcome"], "usage");
    for wrong in [
        json!({"type": "event"}),
        json!({"type": "result", "outcome": "finished"}),
        json!({"type": "other"}),
    ] {
        assert!(!schema.is_valid(&wrong), "{wrong}");
    }
}
