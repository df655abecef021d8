//! Limits of a prompt across candidates, sub-agents and judges: the requests and costs at the provider, and the
//! report of `turnery run`.

use crate::{
    editor::Editor,
    fake_http,
    home::{CommandOutput, Home},
};
use serde_json::{Value, json};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

/// Input and output tokens of every response.
const TOKENS_PER_ANSWER: u64 = 50;

/// A provider whose models never finish by themselves, except `talker` and `judge`. Keeps its own ledger.
#[derive(Clone)]
struct FakeProvider {
    address: String,
    ledger: Arc<Mutex<ProviderLedger>>,
}

#[derive(Default)]
struct ProviderLedger {
    /// Number of requests, by model.
    requests: HashMap<String, u64>,
    /// Tokens of all responses.
    charged: u64,
    /// First request that gets no response, like all after it.
    hangs_from: Option<u64>,
}

impl ProviderLedger {
    fn request_count(&self) -> u64 {
        self.requests.values().sum()
    }
}

impl FakeProvider {
    fn start(hangs_from: Option<u64>) -> Self {
        let ledger = Arc::new(Mutex::new(ProviderLedger {
            hangs_from,
            ..ProviderLedger::default()
        }));
        let kept = Arc::clone(&ledger);
        let address = fake_http::serve(move |request| answer_request(&kept, &request.body));
        let address = format!("http://{address}/v1");
        Self { address, ledger }
    }

    /// Returns the number of requests and the charged tokens.
    fn totals(&self) -> (u64, u64) {
        let ledger = self.ledger.lock().expect("no panic");
        (ledger.request_count(), ledger.charged)
    }

    fn requests(&self, model: &str) -> u64 {
        let ledger = self.ledger.lock().expect("no panic");
        ledger.requests.get(model).copied().unwrap_or_default()
    }
}

fn answer_request(ledger: &Mutex<ProviderLedger>, body: &[u8]) -> Option<String> {
    let request: Value = serde_json::from_slice(body).expect("JSON");
    let model = request["model"].as_str().expect("a model");
    let mut ledger = ledger.lock().expect("no panic");
    let count = ledger.requests.entry(model.to_owned()).or_default();
    *count += 1;
    let is_odd = *count % 2 == 1;
    if ledger
        .hangs_from
        .is_some_and(|from| ledger.request_count() >= from)
    {
        return None;
    }
    if model == "flaky" && is_odd {
        let overloaded = fake_http::response("529 Overloaded", "application/json", "{}");
        return Some(overloaded.replacen("\r\n", "\r\nretry-after-ms: 1\r\n", 1));
    }
    ledger.charged += TOKENS_PER_ANSWER;
    let body = format!("{}data: [DONE]\n\n", response_chunks(model, &request));
    Some(fake_http::response("200 OK", "text/event-stream", &body))
}

/// Returns a response: a tool call as long as tools are offered, unless the model only talks.
fn response_chunks(model: &str, request: &Value) -> String {
    let is_child = request["messages"]
        .to_string()
        .contains("You are a sub-agent");
    let delegate = ("task", json!({"title": "Dig", "prompt": "dig"}));
    let look = ("list_dir", json!({}));
    let call = match model {
        "talker" | "judge" => None,
        "lead" if is_child => Some(look),
        "lead" | "boss" => Some(delegate),
        _ => Some(look),
    };
    let may_call = request["tools"].is_array() && request["tool_choice"] != "none";
    let delta = match call.filter(|_| may_call) {
        Some((name, args)) => json!({"tool_calls": [{
            "index": 0, "id": format!("c{}", request["messages"].as_array().map_or(0, Vec::len)),
            "type": "function", "function": {"name": name, "arguments": args.to_string()},
        }]}),
        None if model == "judge" => json!({"content": "2"}),
        None => json!({"content": format!("{model} says so")}),
    };
    let reason = if delta["content"].is_null() {
        "tool_calls"
    } else {
        "stop"
    };
    let usage = json!({"prompt_tokens": 40, "completion_tokens": 10, "total_tokens": 50});
    let first = json!({"choices": [{"index": 0, "delta": delta, "finish_reason": reason}]});
    let last = json!({"choices": [], "usage": usage});
    format!("data: {first}\n\ndata: {last}\n\n")
}

/// Models that cost 1 per response.
const PRICED_MODELS: [&str; 8] = ["a", "b", "c", "lead", "boss", "talker", "judge", "flaky"];

/// Returns a home whose configuration contains the fake provider, preceded by `head`.
fn home_with_provider(desk: &FakeProvider, head: &str) -> Home {
    let home = Home::new();
    let mut config = format!(
        "{head}\n[providers.desk]\napi = \"openai\"\nbase_url = \"{}\"\n",
        desk.address
    );
    for model in PRICED_MODELS {
        config +=
            &format!("[models.\"desk/{model}\"]\nprice = {{ input = 20000, output = 20000 }}\n");
    }
    home.write_file("turnery/config.toml", &config);
    home
}

async fn run_prompt(home: &Home, model: &str, more: &[&str]) -> CommandOutput {
    let model = format!("desk/{model}");
    let mut args = vec!["run", "--format", "json", "--model", &model];
    args.extend(more);
    args.push("go");
    home.run(&args).await
}

/// Kind of work in the prompt.
#[derive(Clone, Copy, Debug)]
enum PromptShape {
    Plain,
    /// One response that ends the prompt.
    Talk,
    Retry,
    Child,
    ChildInChild,
    /// A hook that continues whenever the model has finished.
    Continuation,
    Try,
    Judge,
}

impl PromptShape {
    fn arguments(self) -> (&'static str, &'static [&'static str]) {
        match self {
            Self::Plain => ("a", &[]),
            Self::Talk => ("talker", &[]),
            Self::Retry => ("flaky", &[]),
            Self::Child => ("lead", &[]),
            Self::ChildInChild => ("boss", &[]),
            Self::Continuation => ("talker", &[]),
            Self::Try => ("a", &["--try", "desk/a,desk/b,desk/c"]),
            Self::Judge => (
                "talker",
                &["--try", "desk/talker,desk/talker", "--judge", "desk/judge"],
            ),
        }
    }

    fn hooks(self) -> &'static str {
        match self {
            Self::Continuation => {
                "[[hooks]]\non = \"checkpoint\"\ncommand = \"echo '{\\\"verdict\\\": \\\"inject\\\", \\\"text\\\": \\\"more\\\"}'\"\n"
            }
            Self::Plain
            | Self::Talk
            | Self::Retry
            | Self::Child
            | Self::ChildInChild
            | Self::Try
            | Self::Judge => "",
        }
    }
}

/// A row: prompt shape, limit, first request that gets no response (0 for none), minimum and maximum number
/// of paid responses, expected stop reason, and part of the expected message.
type LimitCase = (
    PromptShape,
    &'static str,
    u64,
    (u64, u64),
    &'static str,
    &'static str,
);

/// Returns all rows. In shapes that send one request at a time, four responses reach the limit, and a limit
/// of turns is followed by one more reply; three candidates at once exceed a limit by their responses in
/// progress. A judge is asked only if its two candidates have left some budget: with `tokens = 101` and
/// `seconds = 1`.
#[rustfmt::skip]
fn limit_cases() -> Vec<LimitCase> {
    use PromptShape::{Child, ChildInChild, Continuation, Judge, Plain, Retry, Talk, Try};
    const TURNS: &str = "max_turn_requests";
    const TOKENS: &str = "max_tokens";
    let mut rows: Vec<LimitCase> = Vec::new();
    for shape in [Plain, Retry, Child, ChildInChild, Continuation] {
        rows.extend([
            (shape, "turns = 4", 0, (5, 5), TURNS, "Max turns reached (4/4)"),
            (shape, "tokens = 175", 0, (4, 4), TOKENS, "Max tokens reached (200/175)"),
            (shape, "cost = 3.5", 0, (4, 4), TURNS, "Max cost reached (4.00/3.50)"),
            (shape, "seconds = 1", 3, (0, 2), TURNS, "Max duration reached ("),
        ]);
    }
    rows.extend([
        (Try, "turns = 4", 0, (5, 5), TURNS, "Max turns reached (4/4)"),
        (Try, "tokens = 175", 0, (4, 6), TOKENS, "Max tokens reached ("),
        (Try, "tokens = 1", 0, (3, 3), TOKENS, "Max tokens reached (150/1)"),
        (Try, "cost = 3.5", 0, (4, 6), TURNS, "Max cost reached ("),
        (Try, "cost = 0.5", 0, (3, 3), TURNS, "Max cost reached (3.00/0.50)"),
        (Try, "seconds = 1", 4, (0, 3), TURNS, "Max duration reached ("),
        (Talk, "tokens = 1", 0, (1, 1), TOKENS, "Max tokens reached (50/1)"),
        (Talk, "cost = 0.0009", 0, (1, 1), TURNS, "Max cost reached (1.00/0.0009)"),
        (Judge, "tokens = 101", 0, (3, 3), TOKENS, "Max tokens reached (150/101)"),
        (Judge, "turns = 2", 0, (2, 2), TURNS, "Max turns reached (2/2)"),
        (Judge, "tokens = 100", 0, (2, 2), TOKENS, "Max tokens reached (100/100)"),
        (Judge, "cost = 2", 0, (2, 2), TURNS, "Max cost reached (2.00/2.00)"),
        (Judge, "seconds = 1", 3, (0, 2), TURNS, "Max duration reached ("),
    ]);
    rows
}

/// Returns true if the result matches the provider's charges: each response is a turn and costs 1. The reply
/// beyond a limit of turns is not a turn.
fn is_billed(result: &Value, limits: &str, charged: u64, answers: u64) -> bool {
    let tokens = ["input", "output"].map(|key| result["usage"][key].as_u64().unwrap_or_default());
    let cost = result["cost"].as_f64().unwrap_or_default();
    let turns = match limits.strip_prefix("turns = ") {
        Some(most) => most.parse().ok(),
        None => Some(answers),
    };
    tokens.iter().sum::<u64>() == charged
        && format!("{cost:.2}") == format!("{answers}.00")
        && result["turns"].as_u64() == turns
}

/// The provider counts requests and charges for responses.
// proves: UP-1, C-4, ACP-43, ACP-44, ACP-1
#[tokio::test]
async fn limits_cover_all_work_of_a_prompt() {
    let mut wrong = Vec::new();
    for (shape, limits, silent_from, (least, most), stop_reason, error) in limit_cases() {
        let desk = FakeProvider::start((silent_from > 0).then_some(silent_from));
        let home = home_with_provider(&desk, &format!("{}[limits]\n{limits}\n", shape.hooks()));
        let (model, more) = shape.arguments();
        let done = run_prompt(&home, model, more).await;
        let (requests, charged) = desk.totals();
        let answers = charged / TOKENS_PER_ANSWER;
        let attempts = if matches!(shape, PromptShape::Retry) {
            2
        } else {
            1
        };
        let is_silent = silent_from > 0;
        let result = done.stdout_json();
        let told = result["error"].as_str().unwrap_or_default();
        let holds = (least..=most).contains(&answers)
            && (is_silent || requests == answers * attempts)
            && done.code == Some(4)
            && result["exit_code"] == 4
            && result["outcome"] == "limit"
            && result["stop_reason"] == stop_reason
            && told.contains(error)
            && done.stderr.contains(error)
            && (is_silent || is_billed(&result, limits, charged, answers));
        if !holds {
            let keys = ["outcome", "stop_reason", "error", "usage", "cost", "turns"];
            let what = keys.map(|key| result[key].to_string());
            wrong.push(format!(
                "{shape:?}, {limits}: {requests} requests, {charged} tokens, exit {:?}, {what:?}",
                done.code
            ));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// The reply beyond the limit of turns is an answer, and the limit is reported as well.
// proves: C-4, UP-3, ACP-44
#[tokio::test]
async fn limit_is_reported_after_last_reply() {
    let desk = FakeProvider::start(None);
    let home = home_with_provider(&desk, "");
    let done = run_prompt(&home, "a", &["--max-turns", "2"]).await;
    assert_eq!(desk.totals().0, 3, "two turns, and one reply without tools");
    assert_eq!(done.code, Some(4), "{done:?}");
    let result = done.stdout_json();
    assert_eq!(result["text"], "a says so");
    assert_eq!(result["outcome"], "limit");
    assert_eq!(result["stop_reason"], "max_turn_requests");

    let desk = FakeProvider::start(None);
    let home = home_with_provider(&desk, "forced_reply = false");
    let done = run_prompt(&home, "a", &["--max-turns", "2"]).await;
    assert_eq!(desk.totals().0, 2);
    assert_eq!(done.code, Some(4), "{done:?}");
    assert_eq!(done.stdout_json()["stop_reason"], "max_turn_requests");

    // A prompt that continues has its own limits.
    let id = done.stdout_json()["session_id"].clone();
    let id = id.as_str().expect("an id");
    let on = [
        "sessions",
        "continue",
        "--format",
        "json",
        "--max-turns",
        "3",
        id,
    ];
    let done = home.run(&on).await;
    assert_eq!(desk.totals().0, 5);
    assert_eq!(done.code, Some(4), "{done:?}");
    assert_eq!(done.stdout_json()["stop_reason"], "max_turn_requests");
}

#[tokio::test]
async fn limits_can_be_set_for_one_run() {
    for (flag, value, silent_from, limit) in [
        ("--max-turns", "2", None, "Max turns reached (2/2)"),
        ("--max-tokens", "99", None, "Max tokens reached (100/99)"),
        ("--max-seconds", "1", Some(2), "Max duration reached ("),
        ("--max-cost", "1.5", None, "Max cost reached (2.00/1.50)"),
    ] {
        let desk = FakeProvider::start(silent_from);
        let home = home_with_provider(&desk, "");
        let done = run_prompt(&home, "a", &[flag, value]).await;
        assert_eq!(done.code, Some(4), "{flag}: {done:?}");
        assert!(done.stderr.contains(limit), "{flag}: {done:?}");
    }
}

/// The remaining budget suffices: nothing is stopped or reported.
#[tokio::test]
async fn judge_within_the_limits_is_asked() {
    for limits in ["turns = 3", "tokens = 150", "cost = 3"] {
        let desk = FakeProvider::start(None);
        let home = home_with_provider(&desk, &format!("[limits]\n{limits}\n"));
        let (model, more) = PromptShape::Judge.arguments();
        let done = run_prompt(&home, model, more).await;
        assert_eq!(desk.requests("judge"), 1, "{limits}: {done:?}");
        assert_eq!(done.code, Some(0), "{limits}: {done:?}");
        assert_eq!(done.stdout_json()["stop_reason"], "end_turn", "{limits}");
    }
}

/// An editor receives the matching stop reason.
// proves: ACP-44
#[tokio::test]
async fn editor_receives_limit_after_last_reply() {
    let desk = FakeProvider::start(None);
    let home = home_with_provider(&desk, "");
    let args = ["acp", "--model", "desk/a", "--max-turns", "2"];
    let (mut editor, id) = Editor::with_session(&home, &args).await;
    let answer = editor.prompt(2, &id).await;
    assert_eq!(
        answer["result"]["stopReason"], "max_turn_requests",
        "{answer}"
    );
    let detail = &answer["result"]["_meta"]["turnery"]["detail"]["limit"];
    assert_eq!(detail["kind"], "turns", "{answer}");
    assert_eq!(desk.totals().0, 3);
    editor.close_input().await;
}

/// No request is sent while the price of a model that may be called is unknown.
// proves: UP-1
#[tokio::test]
async fn unknown_price_with_a_limit_of_money_is_refused() {
    let flag = ["--max-cost", "5"];
    let cases: [(&str, &str, &[&str]); 5] = [
        ("", "free", &flag),
        ("[limits]\ncost = 5", "free", &[]),
        ("", "a", &["--max-cost", "5", "--try", "desk/a,desk/free"]),
        (
            "[limits]\ncost = 5",
            "a",
            &["--try", "desk/a,desk/b", "--judge", "desk/free"],
        ),
        (
            "[limits]\ncost = 5",
            "free",
            &["--try", "desk/a,desk/b", "--pick", "judge"],
        ),
    ];
    for (head, model, more) in cases {
        let desk = FakeProvider::start(None);
        let home = home_with_provider(&desk, head);
        let done = run_prompt(&home, model, more).await;
        let what = format!("{head} {model} {more:?}: {done:?}");
        assert_eq!(desk.totals(), (0, 0), "{what}");
        assert_eq!(done.code, Some(1), "{what}");
        let told = done.stdout_json()["error"].as_str().map(str::to_owned);
        let told = told.unwrap_or_default();
        assert!(
            told.starts_with("no price is known for desk/free, "),
            "{what}"
        );
        assert!(told.contains("[models.\"desk/free\"] price = "), "{what}");
        let listed = home
            .run(&["sessions", "list", "--json"])
            .await
            .stdout_json();
        assert_eq!(listed, json!([]), "{what}");
    }
    // The session's model is not called, so its price does not matter.
    let desk = FakeProvider::start(None);
    let home = home_with_provider(&desk, "[limits]\ncost = 3.5");
    let done = run_prompt(&home, "free", &["--try", "desk/a,desk/b"]).await;
    assert_eq!(done.code, Some(4), "{done:?}");
    // The offline model costs nothing.
    let offline = ["run", "--model", "offline", "hi"];
    assert_eq!(home.run(&offline).await.code, Some(0));
    // An editor gets an error that says what to do.
    let (mut editor, id) = Editor::with_session(&home, &["acp", "--model", "desk/free"]).await;
    let answer = editor.prompt(2, &id).await;
    assert!(
        answer["error"]
            .to_string()
            .contains("no price is known for desk/free"),
        "{answer}"
    );
    assert_eq!(desk.requests("free"), 0);
    editor.close_input().await;
}
