//! What a person waits for, and what an open editor costs while nobody types.

use crate::{editor::Editor, home::Home};
use serde_json::json;
use std::time::Duration;
use tokio::time::timeout;

/// Unit: a hundredth of a second of computing. Other agents take seconds, up to thirty; this one milliseconds,
/// and a build for tests, on a slow machine, a few hundredths. How long that lasts is the machine's business: what
/// is counted is what was done, and how often something was waited for.
const AT_ONCE: u64 = 100;
/// The two requests are waited for, and not much else.
const WAITS: u64 = 20;
/// However busy the machine is.
const PATIENCE: Duration = Duration::from_secs(120);

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
    let mut editor = Editor::open(&home, &["acp"], &[]);
    let begun = async {
        editor.initialize().await;
        editor.new_session(&home.project()).await;
    };
    timeout(PATIENCE, begun).await.expect("no long wait");
    let (computed, waited) = (editor.computed(), editor.woken());
    assert!(computed < AT_ONCE, "{computed} ticks");
    assert!(waited < WAITS, "{waited} waits");
}

/// After a prompt has ended nothing goes on: no ticking, no polling, no waiting in a circle. Whatever ticks does
/// so in every second, so one without it is looked for: in the first ones a busy machine may still be at work.
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
    let mut seconds = tokio::time::interval(Duration::from_secs(1));
    seconds.tick().await;
    let mut busy = Vec::new();
    loop {
        let before = (editor.computed(), editor.woken());
        seconds.tick().await;
        let (computed, woken) = (editor.computed() - before.0, editor.woken() - before.1);
        if computed <= 1 && woken < 10 {
            break;
        }
        busy.push((computed, woken));
        assert!(
            busy.len() < 60,
            "ticks and waits in seconds of nothing: {busy:?}"
        );
    }
    assert!(editor.memory() < 200 << 20, "{} bytes", editor.memory());
}
