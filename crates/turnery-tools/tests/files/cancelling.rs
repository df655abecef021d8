//! Work on many or large files is not done on the thread that drives sessions, and a cancel is heard.

use crate::bench::{Bench, call};
use serde_json::{Value, json};
use std::{future::Future, sync::mpsc, task::Poll};
use turnery_engine::{FailureKind, ToolEnvelope};

/// A call that is cancelled while its work is still in the hands of another thread. There is one
/// such thread, and it is kept busy until the cancel is out.
fn cancelled_at_work(bench: &Bench, name: &str, args: Value) -> ToolEnvelope {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(1)
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let (release, held) = mpsc::channel::<()>();
        let busy = tokio::task::spawn_blocking(move || held.recv());
        let call = call(name, args);
        let mut run = Box::pin(bench.toolbox.run(&call, &bench.cx));
        std::future::poll_fn(|cx| {
            assert!(run.as_mut().poll(cx).is_pending(), "{name} works elsewhere");
            Poll::Ready(())
        })
        .await;
        bench.cx.cancel.cancel();
        release.send(()).expect("the thread waits");
        let _ = busy.await.expect("it ended");
        run.await
    })
}

#[test]
fn a_search_or_a_list_that_is_cancelled_stops() {
    for (name, args) in [
        ("search", json!({"pattern": "needle"})),
        ("list_dir", json!({})),
        ("find_files", json!({"pattern": "*"})),
    ] {
        let bench = Bench::new();
        bench.put("a", "needle");
        let envelope = cancelled_at_work(&bench, name, args);
        let failure = envelope.result.expect_err("it was cancelled");
        assert_eq!(failure.kind, FailureKind::Cancelled, "{name}");
    }
}

#[test]
fn files_are_compared_elsewhere_and_not_changed_after_a_cancel() {
    for (name, args) in [
        (
            "edit_file",
            json!({"path": "a", "old_text": "needle", "new_text": "x"}),
        ),
        ("write_file", json!({"path": "a", "content": "x"})),
    ] {
        let bench = Bench::new();
        bench.put("a", "needle");
        let envelope = cancelled_at_work(&bench, name, args);
        let failure = envelope.result.expect_err("it was cancelled");
        assert_eq!(failure.kind, FailureKind::Cancelled, "{name}");
        assert_eq!(bench.bytes("a"), b"needle", "{name}");
    }
}

#[test]
fn files_are_read_elsewhere() {
    let bench = Bench::new();
    bench.put("a", "needle");
    let envelope = cancelled_at_work(&bench, "read_file", json!({"path": "a"}));
    assert_eq!(
        envelope.result,
        Ok(vec![turnery_engine::Content::text("1\tneedle\n")])
    );
}
