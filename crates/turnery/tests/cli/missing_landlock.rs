//! turnery on a kernel without landlock, which a system call filter imitates.
#![cfg(target_os = "linux")]

use crate::{editor::Editor, home::Home};
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, apply_filter};
use serde_json::json;
use std::future::Future;
use turnery_tools::SandboxSupport;

/// System call number of `landlock_create_ruleset`, the same on all architectures.
const LANDLOCK_CREATE_RULESET: i64 = 444;
/// "Function not implemented".
const ENOSYS: u32 = 38;
/// A line that needs no approval because commands are confined.
const LINE: &str = "find . -type f | xargs wc -l";

/// Runs `test` on a thread of its own, and its child processes, without landlock.
fn without_landlock(test: impl Future<Output = ()> + Send) {
    let run = || {
        let filter = SeccompFilter::new(
            [(LANDLOCK_CREATE_RULESET, Vec::new())].into(),
            SeccompAction::Allow,
            SeccompAction::Errno(ENOSYS),
            std::env::consts::ARCH
                .try_into()
                .expect("a known architecture"),
        );
        let filter: BpfProgram = filter.and_then(TryInto::try_into).expect("a filter");
        apply_filter(&filter).expect("applied");
        block_on(test);
    };
    std::thread::scope(|scope| scope.spawn(run).join().expect("passed"));
}

fn block_on(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.expect("a runtime").block_on(test);
}

/// Opens two sessions and runs [`LINE`] in the second one. Returns true if the user was asked, and stderr.
async fn run_line() -> (bool, String) {
    let home = Home::new();
    let call = json!({"tool_call": {"name": "shell", "args": {"command": LINE}}});
    let model = home.scripted_model(json!([{"steps": [call]}, {"steps": [{"text": "done"}]}]));
    let (mut editor, _) = Editor::with_session(&home, &["acp", "--model", &model]).await;
    let id = editor.new_session(&home.project_folder()).await;
    editor.send_prompt(2, &id).await;
    let message = editor
        .wait_for(|it| it["id"] == 2 || it["method"] == "session/request_permission")
        .await;
    let is_asked = message.get("method").is_some();
    if is_asked {
        let result = json!({"outcome": {"outcome": "cancelled"}});
        editor
            .send(json!({"jsonrpc": "2.0", "id": message["id"], "result": result}))
            .await;
        editor
            .wait_for(|it| it["id"] == 2 && it.get("method").is_none())
            .await;
    }
    (is_asked, editor.close_input().await.stderr)
}

/// Counts the warnings that commands cannot be confined.
fn count_warnings(stderr: &str) -> usize {
    stderr.matches("Commands cannot be confined here").count()
}

#[test]
fn missing_landlock_is_reported_once_and_commands_ask() {
    without_landlock(async {
        let (is_asked, stderr) = run_line().await;
        assert!(is_asked, "{stderr}");
        assert_eq!(count_warnings(&stderr), 1, "{stderr}");
    });
    // Control: with landlock the same line is confined instead.
    if SandboxSupport::detect().is_usable() {
        block_on(async {
            let (is_asked, stderr) = run_line().await;
            assert!(!is_asked, "{stderr}");
            assert_eq!(count_warnings(&stderr), 0, "{stderr}");
        });
    }
}
