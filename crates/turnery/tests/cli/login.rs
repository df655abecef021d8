//! `turnery login` and `turnery logout`: prompts, requests, stored keys and messages, none of which reveals the
//! key.

use crate::{
    fake_http::{self, HttpRequest},
    home::{CommandOutput, Home, wait_with_output},
    terminal::{open_pty, read_until},
};
use std::{
    fs,
    io::Write as _,
    net::TcpListener,
    os::unix::fs::PermissionsExt as _,
    path::PathBuf,
    process::Stdio,
    sync::{Arc, Mutex},
};

pub(crate) const VALID_KEY: &str = "sk-right-0123456789";

const MODELS: &str = r#"{"data":[{"id":"small"},{"id":"large"}]}"#;
const REFUSED: &str = r#"{"error":{"message":"no such key","code":"invalid_api_key"}}"#;
const ANSWER: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"hi\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";

/// Starts a provider that accepts one key; returns its address and the received requests.
pub(crate) fn start_provider() -> (String, Arc<Mutex<Vec<String>>>) {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&heard);
    let address = fake_http::serve(move |HttpRequest { head, .. }| {
        let is_right = head.iter().any(|line| line.ends_with(VALID_KEY));
        let (status, kind, body) = match is_right {
            true if head[0].starts_with("POST") => ("200 OK", "text/event-stream", ANSWER),
            true => ("200 OK", "application/json", MODELS),
            false => ("401 Unauthorized", "application/json", REFUSED),
        };
        seen.lock().expect("no panic").push(head.join("\n"));
        Some(fake_http::response(status, kind, body))
    });
    (format!("http://{address}/v1"), heard)
}

fn key_file_path(home: &Home) -> PathBuf {
    home.project_folder()
        .parent()
        .expect("home")
        .join("turnery/keys.json")
}

/// Returns all of stderr, after checking that no output contains a key.
fn stderr_without_key(done: &CommandOutput) -> &str {
    assert_eq!(done.stdout, "");
    assert!(!done.stderr.contains("sk-"), "{done:?}");
    &done.stderr
}

async fn is_ready(home: &Home, model: &str) -> bool {
    let rows = home.run(&["models", "--json"]).await.stdout_json();
    let mut rows = rows.as_array().expect("rows").iter();
    let row = rows.find(|row| row["name"] == model).expect("a row");
    row["ready"] == true
}

#[tokio::test]
async fn piped_key_is_checked_stored_and_removed() {
    let home = Home::new();
    let (address, heard) = start_provider();
    let login = ["login", "openai", "--with-key", "--base-url", &address];
    assert!(!is_ready(&home, "openai/gpt-5").await);
    let done = home.run_with_stdin(&login, &format!("{VALID_KEY}\n")).await;
    assert_eq!(done.code, Some(0), "{done:?}");
    let file = key_file_path(&home);
    assert_eq!(
        stderr_without_key(&done),
        format!(
            "turnery: the key for openai is kept in {}, for you alone to read\n\
             turnery: use it with --model openai/gpt-5.1; `turnery models` lists more\n",
            file.display()
        )
    );
    let heard = heard.lock().expect("no panic").clone();
    assert_eq!(heard.len(), 1, "one cheap request");
    assert!(
        heard[0].starts_with("GET /v1/models HTTP/1.1\n"),
        "{heard:?}"
    );
    assert!(heard[0].contains(&format!("authorization: Bearer {VALID_KEY}")));
    let mode = fs::metadata(&file).expect("kept").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert!(is_ready(&home, "openai/gpt-5").await);

    let done = home.run(&["logout", "openai"]).await;
    assert_eq!(
        stderr_without_key(&done),
        "turnery: the key for openai is forgotten\n"
    );
    assert!(!file.exists());
    assert!(!is_ready(&home, "openai/gpt-5").await);
    let done = home.run(&["logout"]).await;
    assert_eq!(stderr_without_key(&done), "turnery: no key was kept\n");
    let done = home.run(&["logout", "nobody"]).await;
    assert_eq!(
        stderr_without_key(&done),
        "turnery: no key for \"nobody\" was kept\n"
    );
}

#[tokio::test]
async fn refused_or_unchecked_key_is_not_stored() {
    let home = Home::new();
    let (address, _) = start_provider();
    let gone = TcpListener::bind("127.0.0.1:0").expect("a port");
    let nobody = format!("http://{}/v1", gone.local_addr().expect("bound"));
    drop(gone);
    let login = ["login", "openai", "--with-key", "--base-url"];
    let at = |address: &'static str| [&login[..], &[address]].concat();
    let leak = |text: String| -> &'static str { Box::leak(text.into_boxed_str()) };
    let (address, nobody) = (leak(address), leak(nobody));

    let done = home.run_with_stdin(&at(address), "sk-wrong").await;
    assert_eq!(done.code, Some(1));
    assert_eq!(
        stderr_without_key(&done),
        "turnery: openai refuses the key: check the key that you gave (it said: no such key). \
         Nothing was kept; --no-check keeps a key unchecked.\n"
    );
    let done = home.run_with_stdin(&at(nobody), VALID_KEY).await;
    assert_eq!(done.code, Some(1));
    assert!(
        stderr_without_key(&done).contains("Could not reach openai at"),
        "{done:?}"
    );
    for (typed, why) in [
        ("", "no key was given for openai"),
        ("sk-two words", "it has characters that no key has"),
    ] {
        let done = home.run_with_stdin(&at(address), typed).await;
        assert_eq!(done.code, Some(1));
        assert!(stderr_without_key(&done).contains(why), "{done:?}");
    }
    let done = home.run(&["login", "openai"]).await;
    assert!(stderr_without_key(&done).contains("--with-key"), "{done:?}");
    assert!(!key_file_path(&home).exists());

    let unchecked = [&at(nobody)[..], &["--no-check"]].concat();
    let done = home.run_with_stdin(&unchecked, VALID_KEY).await;
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(key_file_path(&home).exists());
}

/// AUTH-9: the user logs in with the editor's arguments before `login`, or without them, and types the key with
/// echo off; only a stored key is a success.
// proves: AUTH-9
#[tokio::test]
async fn interactive_login_hides_key_and_reports_wrong_one() {
    for args in [
        &["login"][..],
        &["acp", "login"],
        &["--acp", "login"],
        &["acp", "--mode", "edit", "login"],
    ] {
        let home = Home::new();
        let (address, heard) = start_provider();
        let (mut person, program) = open_pty().expect("a terminal");
        let child = home
            .command(args)
            .env("OPENAI_BASE_URL", &address)
            .stdin(Stdio::from(program.try_clone().expect("a copy")))
            .stdout(Stdio::from(program.try_clone().expect("a copy")))
            .stderr(Stdio::from(program))
            .spawn()
            .expect("started");
        let shown = tokio::task::spawn_blocking(move || {
            let mut shown = read_until(&mut person, "1 to 26: ");
            for (typed, end) in [
                ("26\n", "A name for it: "),
                ("desk\n", "Its address (such as http://HOST/v1): "),
                ("desk/v1\n", "Its address (such as http://HOST/v1): "),
                (&*format!("{address}\n"), "empty if it needs none): "),
                ("sk-wrong\n", "empty if it needs none): "),
                (&*format!("{VALID_KEY}\n"), "lists more"),
            ] {
                person.write_all(typed.as_bytes()).expect("typed");
                shown.push_str(&read_until(&mut person, end));
            }
            (shown, person)
        });
        let (shown, person) = shown.await.expect("a person");
        for part in [
            "1) anthropic\r\n",
            "an address begins with",
            "desk refuses the key",
            "--model desk/small",
        ] {
            assert!(shown.contains(part), "{part}: {shown}");
        }
        assert!(!shown.contains("sk-"), "{shown}");
        assert_eq!(wait_with_output(child).await.code, Some(0), "{args:?}");
        assert_eq!(heard.lock().expect("no panic").len(), 2);
        assert!(is_ready(&home, "desk/large").await);
        drop(person);
    }
}

#[tokio::test]
async fn cancelled_login_restores_terminal() {
    let home = Home::new();
    let (mut person, program) = open_pty().expect("a terminal");
    let before = rustix::termios::tcgetattr(&program).expect("a terminal");
    let tty = program.try_clone().expect("a copy");
    let child = home
        .command(&["login", "anthropic"])
        .stdin(Stdio::from(program.try_clone().expect("a copy")))
        .stderr(Stdio::from(program))
        .spawn()
        .expect("started");
    let person = tokio::task::spawn_blocking(move || {
        read_until(&mut person, "(not shown): ");
        person.write_all(b"sk-half\x03").expect("typed");
        assert!(!read_until(&mut person, "nothing was kept").contains("sk-"));
        person
    });
    let person = person.await.expect("a person");
    assert_eq!(wait_with_output(child).await.code, Some(130));
    let after = rustix::termios::tcgetattr(&tty).expect("a terminal");
    assert_eq!(after.local_modes, before.local_modes);
    assert!(!key_file_path(&home).exists());
    drop(person);
}

#[tokio::test]
async fn login_without_known_address_says_how_to_give_it() {
    let home = Home::new();
    let azure = "https://YOUR-RESOURCE.openai.azure.com/openai/v1";
    for (name, why, example) in [
        ("azure", "each customer has their own", azure),
        ("desk", "it is not a known provider", "http://HOST/v1"),
    ] {
        let login = ["login", name, "--with-key", "--no-check"];
        let done = home.run_with_stdin(&login, VALID_KEY).await;
        assert_eq!(done.code, Some(1), "{done:?}");
        let advice =
            format!("the address of {name} is unknown: {why}; pass it with --base-url {example}\n");
        assert!(stderr_without_key(&done).ends_with(&advice), "{done:?}");
        assert!(!key_file_path(&home).exists());

        let login = [&login[..], &["--base-url", "https://mine.test/openai/v1"]].concat();
        let done = home.run_with_stdin(&login, VALID_KEY).await;
        assert_eq!(done.code, Some(0), "{done:?}");
        let kept = fs::read_to_string(key_file_path(&home)).expect("kept");
        assert!(kept.contains("https://mine.test/openai/v1"), "{kept}");
        fs::remove_file(key_file_path(&home)).expect("removed");
    }
}

#[tokio::test]
async fn login_asks_for_the_address_of_azure() {
    let home = Home::new();
    let (mut person, program) = open_pty().expect("a terminal");
    let child = home
        .command(&["login", "azure", "--no-check"])
        .stdin(Stdio::from(program.try_clone().expect("a copy")))
        .stderr(Stdio::from(program))
        .spawn()
        .expect("started");
    let person = tokio::task::spawn_blocking(move || {
        let question = "Its address (such as https://YOUR-RESOURCE.openai.azure.com/openai/v1): ";
        read_until(&mut person, question);
        person
            .write_all(b"https://mine.test/openai/v1\n")
            .expect("typed");
        read_until(&mut person, "(not shown): ");
        person
            .write_all(format!("{VALID_KEY}\n").as_bytes())
            .expect("typed");
        read_until(&mut person, "lists more");
        person
    });
    let person = person.await.expect("a person");
    assert_eq!(wait_with_output(child).await.code, Some(0));
    let kept = fs::read_to_string(key_file_path(&home)).expect("kept");
    assert!(kept.contains("https://mine.test/openai/v1"), "{kept}");
    drop(person);
}

#[tokio::test]
async fn keyless_server_is_not_reported_to_have_key() {
    let home = Home::new();
    let url = "http://127.0.0.1:9/v1";
    let login = [
        "login",
        "desk",
        "--base-url",
        url,
        "--with-key",
        "--no-check",
    ];
    let done = home.run_with_stdin(&login, "").await;
    assert_eq!(done.code, Some(0), "{done:?}");
    let word = "turnery: the address of desk, which needs no key, is kept in ";
    assert!(stderr_without_key(&done).starts_with(word), "{done:?}");
}

#[tokio::test]
async fn key_file_readable_by_others_is_repaired_by_login() {
    let home = Home::new();
    let login = ["login", "anthropic", "--with-key", "--no-check"];
    home.run_with_stdin(&login, VALID_KEY).await;
    let file = key_file_path(&home);
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).expect("set");
    let done = home.run(&["run", "hi"]).await;
    assert_eq!(done.code, Some(1));
    let word = format!(
        "{0} may be read by others (mode 0644); run: chmod 600 {0}",
        file.display()
    );
    assert!(stderr_without_key(&done).contains(&word), "{done:?}");
    let done = home.run_with_stdin(&login, VALID_KEY).await;
    assert!(
        stderr_without_key(&done).contains("this is mended now"),
        "{done:?}"
    );
    let mode = fs::metadata(&file).expect("kept").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

/// No log contains the key at any level, and the log says that a key in the environment takes precedence.
#[tokio::test]
async fn logs_hide_key_and_environment_key_wins() {
    let home = Home::new();
    let (address, _) = start_provider();
    let mut child = home
        .command(&["login", "openai", "--with-key", "-vv"])
        .env("OPENAI_BASE_URL", &address)
        .env("OPENAI_API_KEY", "sk-environment")
        .env("RUST_LOG", "trace")
        .stdin(Stdio::piped())
        .spawn()
        .expect("started");
    let mut pipe = child.stdin.take().expect("piped");
    tokio::io::AsyncWriteExt::write_all(&mut pipe, VALID_KEY.as_bytes())
        .await
        .expect("written");
    drop(pipe);
    let done = wait_with_output(child).await;
    assert_eq!(done.code, Some(0), "{done:?}");
    let said = stderr_without_key(&done);
    assert!(said.contains("too, and that one wins"), "{said}");
    assert!(said.contains("TRACE") || said.contains("DEBUG"), "{said}");
}
