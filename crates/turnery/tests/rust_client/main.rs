//! Drives a whole session, over two agent processes, with the official Rust client.

mod client;
mod history;
mod whole_session;

use serde_json::Value;
use std::{
    fs,
    path::{Path, PathBuf},
};
use whole_session::run_whole_session;

fn conformance_path(file: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance");
    folder.join(file).canonicalize().expect("the file")
}

fn expected_report() -> Value {
    let text = fs::read_to_string(conformance_path("clients/whole-session.json")).expect("a text");
    serde_json::from_str(&text).expect("JSON")
}

/// Runs the whole session and returns its record, with paths replaced by names. `before` is a command prefix
/// for the agent, or empty.
async fn session_report(before: &[&str]) -> Value {
    let folder = tempfile::tempdir().expect("a folder");
    let home = folder.path().canonicalize().expect("its path");
    let scenario = conformance_path("scenarios/whole-session.json");
    let scenario = scenario.to_str().expect("UTF-8");
    let model = format!("scripted:{scenario}");
    let turnery = [env!("CARGO_BIN_EXE_turnery"), "acp", "--model", &model];
    let command = [before, &turnery].concat();
    let command: Vec<String> = command.into_iter().map(str::to_owned).collect();
    let tale = run_whole_session(&command, &format!("scripted/{scenario}"), &home).await;
    let project = home.join("project").display().to_string();
    let tale = tale.to_string().replace(&project, "$PROJECT");
    serde_json::from_str(&tale.replace(scenario, "$SCENARIO")).expect("JSON")
}

// proves: ACP-42, ACP-46
#[tokio::test]
async fn whole_session_matches_expected_report() {
    let (tale, expected) = (session_report(&[]).await, expected_report());
    for (part, what) in expected.as_object().expect("parts") {
        assert_eq!(tale[part], *what, "{part}");
    }
    let parts = |all: &Value| all.as_object().map(serde_json::Map::len);
    assert_eq!(parts(&tale), parts(&expected));
}

#[tokio::test]
async fn missing_updates_are_detected() {
    let forgetful = conformance_path("clients/forgetful.sh");
    let forgetful = forgetful.to_str().expect("UTF-8");
    let expected = expected_report();
    let parts = expected.as_object().expect("parts");
    for (forgotten, missed) in [
        (
            r#""sessionUpdate":"plan""#,
            vec!["edited", "greeted", "loaded"],
        ),
        (
            r#""sessionUpdate":"user_message_chunk""#,
            vec!["forked", "loaded"],
        ),
        (r#""sessionUpdate":"config_option_update""#, vec!["edited"]),
    ] {
        let tale = session_report(&[forgetful, forgotten]).await;
        let differ = parts.keys().filter(|part| tale[*part] != parts[*part]);
        let mut differ: Vec<&String> = differ.collect();
        differ.sort();
        assert_eq!(differ, missed, "{forgotten}");
    }
}
