//! Snapshots.

use crate::test_host::TestSession;
use serde_json::json;
use turnery_code::{CodeEnd, CodeLimitExceeded, CodeLimits};

#[tokio::test]
async fn restored_session_continues() {
    let mut first = TestSession::new();
    assert_eq!(first.session.snapshot(), None);
    first
        .value("import asyncio\nimport math\nx = {'a': [1]}\nasync def get(n):\n    return await echo(n)")
        .await;
    first.error("x['b'] = math.floor(2.5)\n1 / 0").await;
    let snapshot = first.session.snapshot().unwrap().to_vec();
    drop(first);
    let mut second = TestSession::restore(snapshot.clone());
    assert_eq!(second.session.snapshot(), Some(&snapshot[..]));
    assert_eq!(second.value("x").await, json!({"a": [1], "b": 2}));
    let code = "await asyncio.gather(get(1), get(2))";
    assert_eq!(second.value(code).await, json!([1, 2]));
    assert_eq!(second.host.batches[0].len(), 2);
}

#[tokio::test]
async fn damaged_snapshot_is_reported_once() {
    let mut first = TestSession::new();
    first.value("x = 1").await;
    let mut damaged = first.session.snapshot().unwrap().to_vec();
    *damaged.last_mut().unwrap() ^= 1;
    for snapshot in [damaged, Vec::new(), b"{}".to_vec()] {
        let mut session = TestSession::restore(snapshot);
        let CodeEnd::WorkerFailed(reason) = session.run("x").await.end else {
            panic!("the block ran");
        };
        assert!(
            reason.starts_with("the variables of earlier blocks cannot be restored: "),
            "{reason}"
        );
        assert_eq!(session.session.snapshot(), None);
        assert_eq!(session.value("y = 2\ny").await, json!(2));
    }
}

#[tokio::test]
async fn large_variables_have_no_snapshot_but_survive_a_stop() {
    let mut session = TestSession::new();
    session.value("x = 'a' * 5_000_000").await;
    assert_eq!(session.session.snapshot(), None);
    let output = session.run("'a' * 10**10").await;
    assert_eq!(output.end, CodeEnd::Stopped(CodeLimitExceeded::Memory));
    assert!(!output.has_lost_variables);
    assert_eq!(session.value("len(x)").await, json!(5_000_000));
    session.value("x = 1").await;
    assert!(session.session.snapshot().is_some());
}

#[tokio::test]
async fn loss_of_very_large_variables_is_reported_once() {
    let mut session = TestSession::with_limits(CodeLimits {
        memory_bytes: 128 << 20,
        ..CodeLimits::default()
    });
    session.value("x = 'a' * 50_000_000").await;
    assert_eq!(session.session.snapshot(), None);
    assert_eq!(session.value("len(x)").await, json!(50_000_000));
    let output = session.run("'a' * 10**10").await;
    assert_eq!(output.end, CodeEnd::Stopped(CodeLimitExceeded::Memory));
    assert!(output.has_lost_variables);
    let output = session.run("x").await;
    assert!(matches!(output.end, CodeEnd::Failed(_)));
    assert!(!output.has_lost_variables);
}
