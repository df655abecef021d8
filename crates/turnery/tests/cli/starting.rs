//! What a person waits for, and what an open editor costs while nobody types.

use crate::{editor::Editor, home::Home};
use serde_json::json;
use std::time::{Duration, Instant};

/// Other agents take seconds, up to thirty; this one milliseconds. A test machine may be busy.
const AT_ONCE: Duration = Duration::from_secs(3);
/// A hundredth of a second each. A build for tests computes ten times as much as a real one.
const TICKS: u64 = 60;

/// From the start of the process to the first session, in a project with thousands of files.
// proves: THEME-4, INIT-14
#[tokio::test]
async fn a_session_is_there_at_once() {
    let home = Home::new();
    for folder in 0..20 {
        let folder = home.project().join(format!("folder-{folder}"));
        std::fs::create_dir(&folder).expect("a folder");
        for file in 0..100 {
            std::fs::write(folder.join(format!("{file}.txt")), "text").expect("a file");
        }
    }
    let since = Instant::now();
    let mut editor = Editor::open(&home, &["acp"], &[]);
    editor.initialize().await;
    editor.new_session(&home.project()).await;
    assert!(since.elapsed() < AT_ONCE, "{:?}", since.elapsed());
    assert!(editor.computed() < TICKS, "{} ticks", editor.computed());
}

/// After a prompt has ended nothing goes on: no ticking, no polling, no waiting in a circle.
// proves: THEME-18
#[tokio::test]
async fn an_idle_session_computes_nothing() {
    let home = Home::new();
    let model = home.scripted(json!([{"steps": [{"text": "hi"}]}]));
    let (mut editor, id) = Editor::session(&home, &["acp", "--model", &model]).await;
    let prompt = json!({"sessionId": id, "prompt": [{"type": "text", "text": "x"}]});
    let answer = editor.request(2, "session/prompt", prompt).await;
    assert_eq!(answer["result"]["stopReason"], "end_turn");
    // What still happens after the answer is over when this one comes.
    editor.request(3, "session/list", json!({})).await;
    let mut looks = tokio::time::interval(Duration::from_millis(100));
    looks.tick().await;
    let (before, slept) = (editor.computed(), editor.woken());
    for _ in 0..10 {
        looks.tick().await;
    }
    let (computed, woken) = (editor.computed() - before, editor.woken() - slept);
    assert!(computed <= 1, "{computed} ticks in a second of nothing");
    assert!(woken < 10, "woken {woken} times in a second of nothing");
    assert!(editor.memory() < 200 << 20, "{} bytes", editor.memory());
}
