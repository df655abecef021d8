//! Local model servers without a key: discovery of their models, and reports about servers that do not
//! answer.

use crate::{
    editor::Editor,
    fake_http::{self, HttpRequest},
    home::{CommandOutput, Home, wait_with_output},
};
use serde_json::{Value, json};
use std::{
    net::{SocketAddr, TcpListener},
    time::{Duration, Instant},
};
use turnery_models::ProviderConfig;

/// Starts a server like Ollama: it lists two models, a duplicate and invalid names, and answers every prompt
/// with the name of the requested model.
fn start_server() -> SocketAddr {
    fake_http::serve(|request| Some(answer_request(&request)))
}

fn answer_request(HttpRequest { head, body }: &HttpRequest) -> String {
    let (kind, said) = match head[0].as_str() {
        "GET /v1/models HTTP/1.1" => {
            let list = json!({"object": "list", "data": [
                {"id": "tiny-1"}, {"id": "tiny-1"}, {"id": ""}, {"id": "m\u{1b}[2Jx"}, {"id": "e\u{202e}x"},
                {"id": "tiny-2"},
            ]});
            ("application/json", list.to_string())
        }
        _ => {
            let asked: Value = serde_json::from_slice(body).unwrap_or_default();
            let text = format!("I am {}", asked["model"].as_str().unwrap_or("nobody"));
            let delta = json!({"choices": [{"index": 0, "delta": {"content": text}}]});
            let stop = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]});
            let events = format!("data: {delta}\n\ndata: {stop}\n\ndata: [DONE]\n\n");
            ("text/event-stream", events)
        }
    };
    fake_http::response("200 OK", kind, &said)
}

/// Returns an address without a listener.
fn unused_address() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("an address")
}

async fn run_with_address(
    home: &Home,
    args: &[&str],
    variable: &str,
    at: SocketAddr,
) -> CommandOutput {
    let mut command = home.command(args);
    command.env(variable, format!("http://{at}/v1"));
    wait_with_output(command.spawn().expect("started")).await
}

/// Returns whether the model is ready, and what it needs.
fn model_status(rows: &Value, name: &str) -> Option<(bool, String)> {
    let all = rows.as_array().expect("rows");
    let row = all.iter().find(|row| row["name"] == name)?;
    let needs = row["needs"].as_str().unwrap_or_default().to_owned();
    Some((row["ready"] == true, needs))
}

#[tokio::test]
async fn address_alone_connects_server_models() {
    let home = Home::new();
    let at = start_server();
    let listed = run_with_address(&home, &["models"], "OPENAI_BASE_URL", at).await;
    let (first, rest) = listed.stdout.split_once('\n').expect("rows");
    assert_eq!(first, "* openai/tiny-1", "{listed:?}");
    assert!(rest.starts_with("  openai/tiny-2\n"), "{listed:?}");
    let own = listed.stdout.lines().filter_map(|line| line.get(2..));
    let own: Vec<&str> = own.filter(|line| line.starts_with("openai/")).collect();
    assert_eq!(own, ["openai/tiny-1", "openai/tiny-2"], "{listed:?}");
    assert!(
        !listed.stdout.contains(['\u{1b}', '\u{202e}']),
        "{listed:?}"
    );
    let said = run_with_address(&home, &["run", "who are you?"], "OPENAI_BASE_URL", at).await;
    assert_eq!(
        (said.code, said.stdout.as_str()),
        (Some(0), "I am tiny-1\n"),
        "{said:?}"
    );
}

#[tokio::test]
async fn unreachable_server_is_not_ready() {
    let home = Home::new();
    let at = unused_address();
    let listed = run_with_address(&home, &["models", "--json"], "OLLAMA_HOST", at)
        .await
        .stdout_json();
    let needs = format!("a server with models at http://{at}/v1");
    assert_eq!(model_status(&listed, "ollama/..."), Some((false, needs)));
    let said = run_with_address(&home, &["run", "hello"], "OPENAI_BASE_URL", at).await;
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(
        said.stderr
            .contains(&format!("openai at http://{at}/v1 does not answer")),
        "{said:?}"
    );
    let listed = run_with_address(&home, &["models", "--json"], "OPENAI_BASE_URL", at).await;
    let listed = listed.stdout_json();
    let rows = listed.as_array().expect("rows");
    let default: Vec<&Value> = rows.iter().filter(|row| row["default"] == true).collect();
    let [default] = default.as_slice() else {
        panic!("one of them is used: {listed}")
    };
    assert!(
        default["name"]
            .as_str()
            .expect("a name")
            .starts_with("openai/"),
        "what `run` tries: {listed}"
    );
    assert_eq!(default["ready"], false, "{listed}");
    // The offline model can still be requested.
    let asked = ["run", "--model", "offline", "hello"];
    assert_eq!(
        run_with_address(&home, &asked, "OPENAI_BASE_URL", at)
            .await
            .code,
        Some(0)
    );
}

/// The log says why the offline model answers.
#[tokio::test]
async fn unreachable_server_is_logged_for_editor() {
    let home = Home::new();
    let at = unused_address();
    let address = format!("http://{at}/v1");
    let mut editor = Editor::spawn(&home, &["acp"], &[("OPENAI_BASE_URL", &address)]);
    editor.initialize().await;
    let params = json!({"cwd": home.project_folder(), "mcpServers": []});
    editor.request(1, "session/new", params).await;
    let left = editor.close_input().await;
    let told = format!("openai at {address} does not answer with a list of models");
    assert!(left.stderr.contains(&told), "{}", left.stderr);
}

/// Discovery gives up after half a second on a server that accepts connections but does not answer.
#[tokio::test]
async fn hanging_server_is_waited_for_briefly() {
    let home = Home::new();
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let at = listener.local_addr().expect("an address");
    let began = Instant::now();
    let listed = run_with_address(&home, &["models", "--json"], "OLLAMA_HOST", at)
        .await
        .stdout_json();
    let took = began.elapsed();
    assert!(took < Duration::from_secs(15), "{took:?}");
    assert_eq!(
        model_status(&listed, "ollama/...").map(|row| row.0),
        Some(false)
    );
    drop(listener);
}

/// A server that accepts connections and never answers is named, instead of another model being used.
#[tokio::test]
async fn run_reports_hanging_server() {
    let home = Home::new();
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let at = listener.local_addr().expect("an address");
    let said = run_with_address(&home, &["run", "hello"], "OPENAI_BASE_URL", at).await;
    let reason = format!("openai at http://{at}/v1 does not answer");
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(said.stderr.contains(&reason), "{said:?}");
    let note = format!("waiting for the list of models of openai at http://{at}/v1");
    assert!(said.stderr.contains(&note), "{said:?}");
    drop(listener);
}

/// Starts a server that takes longer for its list than a session waits for other lists.
fn start_slow_server() -> SocketAddr {
    fake_http::serve(|request| {
        if request.head[0].starts_with("GET ") {
            std::thread::sleep(Duration::from_millis(2500));
        }
        Some(answer_request(&request))
    })
}

/// A provider that the user has set up is waited for, with a key and without.
#[tokio::test]
async fn run_waits_for_list_of_configured_provider() {
    for key in ["", "key_env = \"DESK_KEY\"\n"] {
        let home = Home::new();
        let at = start_slow_server();
        let config =
            format!("[providers.desk]\napi = \"openai\"\nbase_url = \"http://{at}/v1\"\n{key}");
        home.write_file("turnery/config.toml", &config);
        let mut command = home.command(&["run", "who are you?"]);
        command.env("DESK_KEY", "k-12345");
        let said = wait_with_output(command.spawn().expect("started")).await;
        let expected = (Some(0), "I am tiny-1\n");
        assert_eq!((said.code, said.stdout.as_str()), expected, "{said:?}");
        let note = "waiting for the list of models of desk";
        assert!(said.stderr.contains(note), "{said:?}");
    }
}

/// A provider with a key that does not list its models is an error too.
#[tokio::test]
async fn run_reports_configured_provider_without_list() {
    let home = Home::new();
    let at = unused_address();
    let config = format!(
        "[providers.desk]\napi = \"openai\"\nbase_url = \"http://{at}/v1\"\nkey_env = \"DESK_KEY\"\n"
    );
    home.write_file("turnery/config.toml", &config);
    let mut command = home.command(&["run", "hello"]);
    command.env("DESK_KEY", "k-12345");
    let said = wait_with_output(command.spawn().expect("started")).await;
    assert_eq!((said.code, said.stdout.as_str()), (Some(1), ""), "{said:?}");
    let reason = format!("desk at http://{at}/v1 does not answer with a list of models");
    assert!(said.stderr.contains(&reason), "{said:?}");
}

/// A refused key is called that.
#[tokio::test]
async fn run_reports_refused_key_of_configured_provider() {
    let home = Home::new();
    let at = fake_http::serve(|_| {
        let body = json!({"error": {"message": "no such key"}}).to_string();
        let kind = "application/json";
        Some(fake_http::response("401 Unauthorized", kind, &body))
    });
    let config = format!(
        "[providers.desk]\napi = \"openai\"\nbase_url = \"http://{at}/v1\"\nkey_env = \"DESK_KEY\"\n"
    );
    home.write_file("turnery/config.toml", &config);
    let mut command = home.command(&["run", "hello"]);
    command.env("DESK_KEY", "k-12345");
    let said = wait_with_output(command.spawn().expect("started")).await;
    assert_eq!((said.code, said.stdout.as_str()), (Some(1), ""), "{said:?}");
    let reason = "desk refuses the key: check DESK_KEY (it said: no such key)";
    assert!(said.stderr.contains(reason), "{said:?}");
    assert!(!said.stderr.contains("does not answer"), "{said:?}");
}

/// Only the provider whose header lacks its variable is unusable.
#[tokio::test]
async fn unset_header_variable_is_named() {
    let home = Home::new();
    let at = start_server();
    let config = format!(
        "[providers.gone]\napi = \"openai\"\nbase_url = \"http://{at}/v1\"\nmodels = [\"m\"]\n\
         headers = {{ X-Team = {{ env = \"NOT_SET\" }} }}\n\
         [providers.desk]\napi = \"openai\"\nbase_url = \"http://{at}/v1\"\n"
    );
    home.write_file("turnery/config.toml", &config);
    let said = home.run(&["run", "--model", "desk/tiny-2", "hello"]).await;
    assert_eq!(said.stdout, "I am tiny-2\n", "{said:?}");
    for part in ["providers.gone", "X-Team", "NOT_SET"] {
        assert!(said.stderr.contains(part), "{part}: {said:?}");
    }
    let said = home.run(&["run", "--model", "gone/m", "hello"]).await;
    assert_eq!((said.code, said.stdout.as_str()), (Some(1), ""), "{said:?}");
    assert!(said.stderr.contains("gone cannot be used"), "{said:?}");
}

/// Returns the models offered in an editor's new session.
async fn offered_models(home: &Home, at: SocketAddr) -> Vec<String> {
    let mut editor = Editor::spawn(home, &["acp"], &[("OLLAMA_HOST", &at.to_string())]);
    let models = models_of_new_session(home, &mut editor).await;
    editor.close_input().await;
    models
}

async fn models_of_new_session(home: &Home, editor: &mut Editor) -> Vec<String> {
    editor.initialize().await;
    let params = json!({"cwd": home.project_folder(), "mcpServers": []});
    let made = editor.request(1, "session/new", params).await;
    model_values(&made["result"]["configOptions"])
}

/// Returns the models that options offer.
fn model_values(options: &Value) -> Vec<String> {
    let options = options.as_array().expect("options");
    let model = options.iter().find(|option| option["id"] == "model");
    let values = model.expect("models")["options"]
        .as_array()
        .expect("values");
    let names = values.iter().filter_map(|value| value["value"].as_str());
    names.map(str::to_owned).collect()
}

#[tokio::test]
async fn editor_is_offered_server_models() {
    let home = Home::new();
    let found = offered_models(&home, start_server()).await;
    assert!(found.contains(&"ollama/tiny-2".to_owned()), "{found:?}");
    let missing = offered_models(&home, unused_address()).await;
    let of_it = missing.iter().find(|name| name.starts_with("ollama/"));
    assert_eq!(of_it, None, "{missing:?}");
}

/// The window that a server states is listed and kept in mind; a model that it does not describe has the stated defaults.
#[tokio::test]
async fn window_of_a_served_model_is_listed() {
    let home = Home::new();
    let at = fake_http::serve(|_| {
        let list = json!({"data": [{"id": "tiny", "max_model_len": 32_768}, {"id": "plain"}]});
        Some(fake_http::response(
            "200 OK",
            "application/json",
            &list.to_string(),
        ))
    });
    let listed = run_with_address(&home, &["models", "--json"], "VLLM_BASE_URL", at).await;
    let rows = listed.stdout_json();
    let row = |name: &str| {
        let mut rows = rows.as_array().expect("rows").iter();
        rows.find(|row| row["name"] == name).expect("a row").clone()
    };
    let tiny = row("vllm/tiny");
    assert_eq!(
        (&tiny["context_window"], &tiny["max_output"]),
        (&json!(32_768), &json!(8192))
    );
    assert_eq!(tiny["price"], json!(null), "{tiny}");
    let plain = row("vllm/plain");
    assert_eq!(
        (&plain["context_window"], &plain["max_output"]),
        (&json!(null), &json!(8192))
    );
    let text = run_with_address(&home, &["models"], "VLLM_BASE_URL", at)
        .await
        .stdout;
    let line = text
        .lines()
        .find(|line| line.contains("vllm/tiny"))
        .expect("a line");
    assert!(line.ends_with("33k tokens"), "{line}");
}

/// A provider with a key that does not answer in time keeps its usual models, and a sentence says so.
#[tokio::test]
async fn provider_that_does_not_list_is_named() {
    let home = Home::new();
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = format!("http://{}/v1", listener.local_addr().expect("an address"));
    let mut command = home.command(&["models"]);
    command
        .env("MISTRAL_BASE_URL", &address)
        .env("MISTRAL_API_KEY", "k-1");
    let listed = wait_with_output(command.spawn().expect("started")).await;
    assert_eq!(listed.code, Some(0), "{listed:?}");
    assert!(
        listed.stdout.contains("mistral/mistral-large-latest"),
        "{listed:?}"
    );
    let sentence = format!("mistral at {address} did not list its models within 500 ms.");
    assert_eq!(listed.stdout.lines().last(), Some(&*sentence), "{listed:?}");
    drop(listener);
}

/// The list of a provider with a key adds well-known models, in the editor too; others only to `turnery models`.
#[tokio::test]
async fn provider_list_adds_models() {
    let home = Home::new();
    let at = fake_http::serve(|_| {
        let list = json!({"data": [{"id": "gpt-4o-mini"}, {"id": "text-embedding-3-large"}, {"id": "gpt-5"}]});
        Some(fake_http::response(
            "200 OK",
            "application/json",
            &list.to_string(),
        ))
    });
    let (url, key) = (format!("http://{at}/v1"), "k-1");
    let mut command = home.command(&["models", "--json"]);
    command
        .env("OPENAI_BASE_URL", &url)
        .env("OPENAI_API_KEY", key);
    let listed = wait_with_output(command.spawn().expect("started"))
        .await
        .stdout_json();
    for name in [
        "openai/gpt-4o-mini",
        "openai/text-embedding-3-large",
        "openai/gpt-5",
    ] {
        assert_eq!(
            model_status(&listed, name),
            Some((true, String::new())),
            "{name}"
        );
    }
    let variables = [("OPENAI_BASE_URL", &*url), ("OPENAI_API_KEY", key)];
    let mut editor = Editor::spawn(&home, &["acp"], &variables);
    let mut found = models_of_new_session(&home, &mut editor).await;
    // A session does not wait for the list.
    if !found.contains(&"openai/gpt-4o-mini".to_owned()) {
        let is_options = |message: &Value| !message["params"]["update"]["configOptions"].is_null();
        let update = editor.wait_for(is_options).await;
        found = model_values(&update["params"]["update"]["configOptions"]);
    }
    editor.close_input().await;
    let has = |name: &str| found.iter().any(|it| it == name);
    assert!(
        has("openai/gpt-4o-mini") && has("openai/gpt-5.1"),
        "{found:?}"
    );
    assert!(!has("openai/text-embedding-3-large"), "{found:?}");
}

/// `run` reads the price of a model that is not well known from the provider's list: a cost limit needs it.
#[tokio::test]
async fn run_knows_price_from_provider_list() {
    let home = Home::new();
    let at = fake_http::serve(|request| {
        if !request.head[0].starts_with("GET ") {
            return Some(answer_request(&request));
        }
        let pricing = json!({"prompt": "0.000001", "completion": "0.000002"});
        let list = json!({"data": [{"id": "acme/new-1", "pricing": pricing}]});
        let list = list.to_string();
        Some(fake_http::response("200 OK", "application/json", &list))
    });
    for (model, code) in [("acme/new-1", 0), ("acme/other", 1)] {
        let model = format!("openrouter/{model}");
        let mut command = home.command(&["run", "--model", &model, "--max-cost", "1", "hi"]);
        command
            .env("OPENROUTER_BASE_URL", format!("http://{at}/v1"))
            .env("OPENROUTER_API_KEY", "k-1");
        let ran = wait_with_output(command.spawn().expect("started")).await;
        assert_eq!(ran.code, Some(code), "{model}: {ran:?}");
    }
}

/// Tests disable discovery, so that servers on the test machine have no effect.
#[tokio::test]
async fn tests_see_no_server_of_the_machine() {
    let usual = ProviderConfig::standard_from_env(&|_| None);
    let usual = usual.iter().filter(|it| it.base_url.contains("//127."));
    let usual: Vec<&ProviderConfig> = usual.collect();
    for provider in &usual {
        let at = provider.base_url.trim_start_matches("http://");
        // A port in use has a server already.
        if let Ok(listener) = TcpListener::bind(at.trim_end_matches("/v1")) {
            fake_http::serve_on(listener, |request| Some(answer_request(&request)));
        }
    }
    let home = Home::new();
    let listed = home.run(&["models", "--json"]).await.stdout_json();
    for provider in &usual {
        let row = model_status(&listed, &format!("{}/...", provider.name));
        assert_eq!(row.map(|row| row.0), Some(false), "{listed}");
    }
    assert!(!usual.is_empty());
}
