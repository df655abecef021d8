//! The interpreter of a session in code mode that is idle. In a process of its own, since it counts the processes that the
//! test has started.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

use serde_json::json;
use std::{path::Path, time::Duration};
use tokio::time::Instant;
use turnery_sdk::{
    Protocol,
    models::{Scenario, ScriptedModel},
    prelude::*,
};

/// Returns the number of interpreter processes that this process has started.
fn workers() -> usize {
    let own = std::process::id();
    let is_worker = |entry: std::io::Result<std::fs::DirEntry>| {
        let folder = entry.unwrap().path();
        // A process may end while it is looked at.
        let read = |name| std::fs::read_to_string(folder.join(name)).unwrap_or_default();
        let parent = format!("PPid:\t{own}\n");
        read("status").contains(&parent) && read("cmdline").starts_with("turnery-code-worker")
    };
    let processes = std::fs::read_dir("/proc").unwrap();
    processes.map(is_worker).filter(|it| *it).count()
}

/// The interpreter's process ends after a minute without a block; the variables stay.
// proves: UP-33
#[tokio::test]
async fn idle_interpreter_has_no_process() {
    turnery_sdk::code::use_worker(env!("CARGO_BIN_EXE_turnery"));
    let block = |code: &str| json!([{"text": format!("```python\n{code}\n```\n")}]);
    let script = json!({"answers": [
        {"when": {"last_user_contains": "begin"}, "steps": block("n = 1")},
        {"when": {"last_user_contains": "tell"}, "steps": block("print('n is', n)")},
        {"when": {"last_user_contains": "n is 1"}, "steps": [{"text": "It is there."}]},
        {"steps": [{"text": "done"}]},
    ]});
    let scenario = Scenario::parse(&script.to_string(), Path::new("SCRIPT")).unwrap();
    let agent = AgentBuilder::with_model(ScriptedModel::new(scenario));
    let agent = agent.settings(|settings| settings.protocol = Protocol::Code);
    let session = agent.build().new_session().open().await.unwrap();
    // The block ends between these.
    let before = Instant::now();
    session.new_prompt("begin").run().await.unwrap();
    assert_eq!(workers(), 1);
    let after = Instant::now();
    tokio::time::pause();
    tokio::time::sleep_until(before + Duration::from_secs(59)).await;
    assert_eq!(workers(), 1);
    tokio::time::sleep_until(after + Duration::from_secs(61)).await;
    tokio::time::resume();
    // No event reports that a process has ended.
    for _ in 0..6000 {
        if workers() == 0 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(workers(), 0);
    let told = session.new_prompt("tell").run().await.unwrap();
    assert_eq!(told.text().as_deref(), Some("It is there."));
}
