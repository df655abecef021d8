//! `turnery run`: the exit code for each outcome, and Ctrl-C.

use crate::home::{Home, send_signal, wait_with_output};
use rustix::process::Signal;
use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};

#[tokio::test]
async fn every_outcome_has_exit_code_and_message() {
    let table = [
        (json!([{"steps": [{"text": "yes"}]}]), 0, "finished", ""),
        (
            json!([{"steps": [{"text": "no"}], "end": "refusal"}]),
            3,
            "refusal",
            "the model refused to answer",
        ),
        (
            json!([{"steps": [{"text": "and so on"}], "end": "length"}]),
            4,
            "incomplete",
            "the answer was cut off at the model's output limit",
        ),
        (
            json!([{"end": {"error": {"kind": "auth", "message": "the key is wrong"}}}]),
            1,
            "provider_error",
            "the key is wrong",
        ),
    ];
    for (answers, code, outcome, sentence) in table {
        let home = Home::new();
        let model = home.scripted_model(answers);
        let run = ["run", "--model", &model, "--format", "json", "hi"];
        let done = home.run(&run).await;
        assert_eq!(done.code, Some(code), "{outcome}: {done:?}");
        assert!(done.stderr.contains(sentence), "{outcome}: {done:?}");
        let result = done.stdout_json();
        assert_eq!(result["outcome"], outcome);
        assert_eq!(result["exit_code"], code);
    }
}

/// A provider may send control characters.
#[tokio::test]
async fn errors_contain_no_control_characters() {
    let home = Home::new();
    let message = "bad \u{1b}[2J\u{202e}\u{1b}]0;t\u{7} end";
    let error = json!({"end": {"error": {"kind": "bad_request", "message": message}}});
    let model = home.scripted_model(json!([error]));
    let done = home.run(&["run", "--model", &model, "hi"]).await;
    let told = "bad ⟨U+001B⟩[2J⟨U+202E⟩⟨U+001B⟩]0;t⟨U+0007⟩ end";
    assert!(done.stderr.contains(told), "{done:?}");
    assert!(!done.stderr.contains('\u{1b}'), "{done:?}");
}

#[tokio::test]
async fn usage_mistakes_exit_with_two() {
    let home = Home::new();
    for (args, sentence) in [
        (&["run"][..], "there is no prompt"),
        (
            &["run", "--mode", "free", "x"],
            "\"free\" is no mode; write ask, edit, plan or auto",
        ),
        (
            &["run", "--max-turns", "0", "x"],
            "\"0\" is no whole number from 1 on",
        ),
        (
            &["run", "--max-turns", "-1", "x"],
            "\"-1\" is no whole number from 1 on",
        ),
        (
            &["run", "--max-seconds", "1.5", "x"],
            "\"1.5\" is no whole number from 1 on",
        ),
        (
            &["run", "--max-cost", "-0.5", "x"],
            "\"-0.5\" is no amount of money above 0",
        ),
        (
            &["run", "--allow", "shell(", "x"],
            "invalid rule \"shell(\": ",
        ),
        (&["rnu"], "unrecognized subcommand 'rnu'"),
        (
            &["tool", "call", "read_file", "{path"],
            "the arguments are no JSON",
        ),
    ] {
        let done = home.run(args).await;
        assert_eq!(done.code, Some(2), "{args:?}: {done:?}");
        assert!(done.stderr.contains(sentence), "{args:?}: {done:?}");
        assert_eq!(done.stdout, "", "{args:?}");
    }
}

#[tokio::test]
async fn first_ctrl_c_cancels_and_stores_prompt() {
    assert_first_signal_stores_prompt(Signal::INT).await;
}

/// SIGTERM from a supervisor and SIGHUP from a closed terminal have the same effect.
#[tokio::test]
async fn sigterm_and_sighup_cancel_like_ctrl_c() {
    for sent in [Signal::TERM, Signal::HUP] {
        assert_first_signal_stores_prompt(sent).await;
    }
}

async fn assert_first_signal_stores_prompt(sent: Signal) {
    let home = Home::new();
    let model = home.scripted_model(json!([
        {"steps": [{"text": "working on it\n"}, {"wait_for_cancel": true}]}
    ]));
    let mut child = home
        .command(&["run", "--model", &model, "go"])
        .spawn()
        .expect("started");
    let mut out = BufReader::new(child.stdout.take().expect("piped"));
    let mut line = String::new();
    out.read_line(&mut line).await.expect("read");
    assert_eq!(line, "working on it\n");
    send_signal(&child, sent);
    let done = wait_with_output(child).await;
    assert_eq!(done.code, Some(130), "{done:?}");
    let mut rest = String::new();
    out.read_to_string(&mut rest).await.expect("read");
    assert_eq!(rest, "");
    assert_eq!(
        done.stderr,
        "turnery: stopping; press Ctrl-C again to force it\nturnery: cancelled\n"
    );

    let list = home
        .run(&["sessions", "list", "--json"])
        .await
        .stdout_json();
    let id = list[0]["id"].as_str().expect("one session");
    let shown = home.run(&["sessions", "show", id]).await;
    assert!(shown.stdout.contains("> go\n"), "{shown:?}");
}

#[tokio::test]
async fn second_ctrl_c_exits_and_leaves_no_process() {
    let home = Home::new();
    // Ignores SIGTERM, SIGINT and SIGHUP, and waits forever.
    let command = "trap '' TERM INT HUP; mkfifo fifo; while :; do read -r _ < fifo; done";
    let model = home.scripted_model(json!([
        {"steps": [{"tool_call": {"name": "shell", "args": {"command": command}}}]}
    ]));
    let mut child = home
        .command(&["run", "--model", &model, "--mode", "auto", "go"])
        .spawn()
        .expect("started");
    let mut err = BufReader::new(child.stderr.take().expect("piped"));
    let mut line = String::new();
    err.read_line(&mut line).await.expect("read");
    assert!(line.starts_with('•'), "{line}");
    send_signal(&child, Signal::INT);
    let mut line = String::new();
    err.read_line(&mut line).await.expect("read");
    assert_eq!(line, "turnery: stopping; press Ctrl-C again to force it\n");
    send_signal(&child, Signal::INT);
    let mut rest = String::new();
    // Returns only when every process that holds stderr has ended.
    err.read_to_string(&mut rest).await.expect("read");
    let done = wait_with_output(child).await;
    assert_eq!(done.code, Some(130), "{done:?} {rest}");
}
