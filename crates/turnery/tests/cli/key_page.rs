//! The page on which the user enters a missing key: who may open it, what happens to the key, and how the page
//! closes.

use crate::{
    editor::Editor,
    home::Home,
    login::{VALID_KEY, start_provider},
};
use serde_json::{Value, json};
use std::{
    fs,
    io::{Read as _, Write as _},
    net::TcpStream,
    os::unix::fs::PermissionsExt as _,
    path::PathBuf,
};

/// HTTP client of the page on which the user enters a key.
struct KeyPageClient {
    /// `127.0.0.1:PORT`
    host: String,
    path: String,
}

/// Content type with which browsers submit a form.
const FORM_CONTENT_TYPE: &str = "application/x-www-form-urlencoded";

/// Key that the provider rejects.
const WRONG_KEY: &str = "sk-wrong";

fn holds_key(text: &str) -> bool {
    text.contains(VALID_KEY) || text.contains(WRONG_KEY)
}

impl KeyPageClient {
    fn from_elicitation(question: &Value) -> Self {
        let url = question["params"]["url"].as_str().expect("an address");
        let rest = url.strip_prefix("http://").expect("a page");
        let (host, path) = rest.split_once('/').expect("a path");
        assert!(host.starts_with("127.0.0.1:"), "{url}");
        Self {
            host: host.to_owned(),
            path: format!("/{path}"),
        }
    }

    /// Sends a request; returns the status and the whole response.
    fn send(&self, head: &str, body: &str) -> (String, String) {
        let mut stream = TcpStream::connect(&self.host).expect("it is open");
        let sent = format!("{head}content-length: {}\r\n\r\n{body}", body.len());
        // The server closes the connection on an oversized request, without a response.
        let _ = stream.write_all(sent.as_bytes());
        let mut text = String::new();
        let _ = stream.read_to_string(&mut text);
        let status = text.split(' ').nth(1).unwrap_or_default().to_owned();
        (status, text)
    }

    fn get(&self, path: &str, host: &str) -> (String, String) {
        self.send(&format!("GET {path} HTTP/1.1\r\nhost: {host}\r\n"), "")
    }

    fn post(&self, origin: &str, kind: &str, body: &str) -> (String, String) {
        let Self { host, path } = self;
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: {host}\r\norigin: {origin}\r\ncontent-type: {kind}\r\n"
        );
        self.send(&head, body)
    }

    /// Submits the form as a browser does.
    fn submit_key(&self, key: &str) -> String {
        let (status, text) = self.post(
            &format!("http://{}", self.host),
            FORM_CONTENT_TYPE,
            &format!("key={key}"),
        );
        assert_eq!(status, "200", "{text}");
        assert!(!holds_key(&text), "{text}");
        text
    }

    fn is_closed(&self) -> bool {
        TcpStream::connect(&self.host).is_err()
    }
}

/// Starts an editor that supports elicitation by URL. The agent logs verbosely and has one provider, for
/// which no key is stored yet.
async fn open_editor(home: &Home) -> Editor {
    let (address, _) = start_provider();
    home.write_file(
        "turnery/config.toml",
        &format!(
            "model = \"desk/m\"\n[providers.desk]\napi = \"openai\"\nbase_url = \"{address}\"\n\
             key_env = \"DESK_KEY\"\n"
        ),
    );
    let mut editor = Editor::spawn(home, &["acp"], &[("TURNERY_LOG", "trace")]);
    let can = json!({"elicitation": {"url": {}}});
    let params = json!({"protocolVersion": 1, "clientCapabilities": can});
    editor.request(0, "initialize", params).await;
    editor
}

/// Sends a request and waits for the page that the user is sent to.
async fn request_key_page(
    editor: &mut Editor,
    id: u64,
    method: &str,
    params: Value,
) -> (Value, KeyPageClient) {
    editor.send_request(id, method, params).await;
    let question = editor
        .wait_for(|message| message["method"] == "elicitation/create")
        .await;
    let page = KeyPageClient::from_elicitation(&question);
    (question, page)
}

async fn answer_elicitation(editor: &mut Editor, question: &Value, action: &str) {
    let result = json!({"action": action});
    editor
        .send(json!({"jsonrpc": "2.0", "id": question["id"], "result": result}))
        .await;
}

fn key_file_path(home: &Home) -> PathBuf {
    let project = home.project_folder();
    project.with_file_name("turnery").join("keys.json")
}

/// Requests with a guessed path, another host name or another origin find nothing. The user sees why a key was
/// rejected; the right key is checked, stored, used and never disclosed.
// proves: ELIC-3, ELIC-6, ELIC-7, ELIC-8, AUTH-4
#[tokio::test]
async fn key_from_page_is_checked_stored_and_used() {
    let home = Home::new();
    let mut editor = open_editor(&home).await;
    let login = json!({"methodId": "page"});
    let (question, page) = request_key_page(&mut editor, 1, "authenticate", login).await;
    assert_eq!(question["params"]["requestId"], 1);
    answer_elicitation(&mut editor, &question, "accept").await;
    let KeyPageClient { host, path } = &page;
    for (wrong_path, wrong_host) in [
        ("/", host.as_str()),
        ("/favicon.ico", host),
        (&path[..path.len() - 1], host),
        (format!("{path}?x").as_str(), host),
        (format!("{path}/").as_str(), host),
        (path, "localhost"),
        (path, "evil.example"),
        (path, "127.0.0.1"),
        (path, format!("{host}\r\nhost: {host}").as_str()),
    ] {
        let (status, text) = page.get(wrong_path, wrong_host);
        let nothing = ["400", "404"].contains(&status.as_str());
        assert!(nothing && !text.contains("<form"), "{wrong_path}: {text}");
    }
    let (status, form) = page.get(path, host);
    assert_eq!(status, "200", "{form}");
    for part in [
        "content-security-policy: default-src 'none'; form-action 'self'; base-uri 'none'; \
         frame-ancestors 'none'\r\n",
        "cache-control: no-store\r\n",
        "referrer-policy: same-origin\r\n",
        "<input type=\"password\" name=\"key\"",
    ] {
        assert!(form.contains(part), "{part}: {form}");
    }
    assert!(!form.contains("src=") && !form.contains("href="), "{form}");

    let right = format!("key={VALID_KEY}");
    for (origin, kind) in [
        ("http://evil.example", FORM_CONTENT_TYPE),
        ("null", FORM_CONTENT_TYPE),
        (format!("https://{host}").as_str(), FORM_CONTENT_TYPE),
        (format!("http://{host}").as_str(), "text/plain"),
    ] {
        let (status, text) = page.post(origin, kind, &right);
        assert_eq!(status, "404", "{origin} {kind}: {text}");
    }
    let long = format!("key={}", "x".repeat(60 << 10));
    let (_, text) = page.post(&format!("http://{host}"), FORM_CONTENT_TYPE, &long);
    assert!(!text.contains("kept."), "{text}");
    assert!(page.submit_key("").contains("no key was given for desk"));
    let told = page.submit_key(WRONG_KEY);
    assert!(told.contains("role=\"alert\""), "{told}");
    assert!(!key_file_path(&home).exists());

    let told = page.submit_key(VALID_KEY);
    assert!(told.contains("The key for desk is kept."), "{told}");
    let complete = editor
        .wait_for(|message| message["method"] == "elicitation/complete")
        .await;
    let params = json!({"elicitationId": question["params"]["elicitationId"]});
    assert_eq!(complete["params"], params);
    let answer = editor.wait_for(|message| message["id"] == 1).await;
    assert_eq!(answer["result"], json!({}), "{answer}");
    assert!(page.is_closed());
    let mode = fs::metadata(key_file_path(&home))
        .expect("kept")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);

    let new = json!({"cwd": home.project_folder(), "mcpServers": []});
    let made = editor.request(2, "session/new", new).await;
    let prompt = json!({
        "sessionId": made["result"]["sessionId"],
        "prompt": [{"type": "text", "text": "x"}],
    });
    let answer = editor.request(3, "session/prompt", prompt).await;
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
    let done = editor.close_input().await;
    let sessions = fs::read(key_file_path(&home).with_file_name("sessions.db")).expect("stored");
    let stored = String::from_utf8_lossy(&sessions);
    for text in [&format!("{:?}", done.said), &done.stderr, &*stored] {
        assert!(!holds_key(text), "a key: {text}");
    }
    assert!(!done.stderr.contains(path.as_str()), "{}", done.stderr);
}

/// Prompts in a session without a key: the user declines, cancels, fails too often, and finally enters the key,
/// with which the last prompt continues.
// proves: ELIC-4, ELIC-6, ELIC-8, AUTH-6
#[tokio::test]
async fn prompt_without_key_waits_for_page() {
    let home = Home::new();
    let mut editor = open_editor(&home).await;
    home.run_with_stdin(&["login", "desk", "--with-key"], VALID_KEY)
        .await;
    let id = editor.new_session(&home.project_folder()).await;
    let prompt = json!({"sessionId": id, "prompt": [{"type": "text", "text": "x"}]});
    editor.request(2, "logout", json!({})).await;

    let (question, page) = request_key_page(&mut editor, 3, "session/prompt", prompt.clone()).await;
    assert_eq!(question["params"]["sessionId"], id.as_str());
    answer_elicitation(&mut editor, &question, "decline").await;
    let answer = editor.wait_for(|message| message["id"] == 3).await;
    assert_eq!(answer["error"]["code"], -32000, "{answer}");
    assert!(page.is_closed());

    let (question, page) = request_key_page(&mut editor, 4, "session/prompt", prompt.clone()).await;
    answer_elicitation(&mut editor, &question, "accept").await;
    assert_eq!(page.get(&page.path, &page.host).0, "200");
    let cancel = json!({"sessionId": id});
    editor
        .send(json!({"jsonrpc": "2.0", "method": "session/cancel", "params": cancel}))
        .await;
    let answer = editor.wait_for(|message| message["id"] == 4).await;
    assert_eq!(answer["result"]["stopReason"], "cancelled", "{answer}");
    assert!(page.is_closed());

    let (question, page) = request_key_page(&mut editor, 5, "session/prompt", prompt.clone()).await;
    answer_elicitation(&mut editor, &question, "accept").await;
    for _ in 0..2 {
        assert!(page.submit_key(WRONG_KEY).contains("<form"));
    }
    assert!(
        page.submit_key(WRONG_KEY)
            .contains("this page is closed now")
    );
    let answer = editor.wait_for(|message| message["id"] == 5).await;
    assert_eq!(answer["error"]["code"], -32000, "{answer}");
    assert!(page.is_closed());

    let (question, page) = request_key_page(&mut editor, 6, "session/prompt", prompt).await;
    answer_elicitation(&mut editor, &question, "accept").await;
    page.submit_key(VALID_KEY);
    let answer = editor.wait_for(|message| message["id"] == 6).await;
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
    let done = editor.close_input().await;
    assert!(!holds_key(&done.stderr), "{done:?}");
}
