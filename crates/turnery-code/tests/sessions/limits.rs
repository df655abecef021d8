//! Limits: each ends the block and leaves the session usable.

use crate::test_host::TestSession;
use futures_util::future::BoxFuture;
use serde_json::json;
use std::time::Duration;
use turnery_code::{CallReply, CodeCall, CodeEnd, CodeHost, CodeLimitExceeded, CodeLimits};

/// Runs code that exceeds a limit, and checks that the variables are as before.
async fn check_stopped(mut session: TestSession, code: &str, limit: CodeLimitExceeded) {
    session.value("kept = 'kept'").await;
    let output = session.run(&format!("kept = 'changed'\n{code}")).await;
    assert_eq!(output.end, CodeEnd::Stopped(limit), "{code}");
    assert_eq!(output.value, None);
    assert!(!output.has_lost_variables);
    assert_eq!(session.value("kept").await, json!("kept"), "{code}");
}

#[tokio::test]
async fn endless_loop_is_stopped() {
    for code in ["while True:\n    pass", "sum(range(10**12))"] {
        let limits = CodeLimits {
            computing_time: Duration::from_millis(500),
            ..CodeLimits::default()
        };
        let session = TestSession::with_limits(limits);
        check_stopped(session, code, CodeLimitExceeded::ComputingTime).await;
    }
}

#[tokio::test]
async fn computing_time_does_not_add_up_over_blocks() {
    let mut session = TestSession::with_limits(CodeLimits {
        computing_time: Duration::from_secs(1),
        ..CodeLimits::default()
    });
    let begin = std::time::Instant::now();
    while begin.elapsed() < Duration::from_millis(1500) {
        session.value("for i in range(100_000):\n    pass").await;
    }
}

#[tokio::test]
async fn large_allocations_are_stopped() {
    for code in [
        "'a' * 10**10",
        "try:\n    'a' * 10**10\nexcept BaseException:\n    pass",
        "x = [0]\nwhile True:\n    x = x + x",
        "x = []\nwhile True:\n    x.append('a' * 1000 + str(len(x)))",
        "10**10**10",
        "x = [1]\nfor _ in range(60):\n    x = [x, x]\nx",
        "list(range(10**12))",
        "'{:>1000000000}'.format(1)",
        "print('a' * 10**9)",
    ] {
        let limits = CodeLimits {
            memory_bytes: 128 << 20,
            ..CodeLimits::default()
        };
        let session = TestSession::with_limits(limits);
        check_stopped(session, code, CodeLimitExceeded::Memory).await;
    }
}

#[tokio::test]
async fn memory_below_the_limit_is_available() {
    let mut session = TestSession::with_limits(CodeLimits {
        memory_bytes: 128 << 20,
        ..CodeLimits::default()
    });
    let length = session.value("x = 'a' * 100_000_000\nlen(x)").await;
    assert_eq!(length, json!(100_000_000));
}

#[tokio::test]
async fn endless_output_is_stopped() {
    for code in [
        "while True:\n    print('a' * 1000)",
        "print('a' * 100_000_000)",
    ] {
        check_stopped(TestSession::new(), code, CodeLimitExceeded::Output).await;
    }
}

#[tokio::test]
async fn long_output_is_cut_in_the_middle() {
    let mut session = TestSession::with_limits(CodeLimits {
        output_bytes: 20,
        ..CodeLimits::default()
    });
    let output = session
        .run("for i in range(1000):\n    print(f'{i:04}')")
        .await;
    let expected = "0000\n0001\n[4980 bytes left out here]\n0998\n0999\n";
    assert_eq!(output.text, expected);
    assert_eq!(session.host.printed.len(), 5000);
}

#[tokio::test]
async fn too_many_calls_are_stopped() {
    let limits = CodeLimits {
        calls: 3,
        ..CodeLimits::default()
    };
    let session = TestSession::with_limits(limits.clone());
    let code = "for i in range(4):\n    echo(i)";
    check_stopped(session, code, CodeLimitExceeded::Calls).await;
    let session = TestSession::with_limits(limits.clone());
    let code = "import asyncio\nawait asyncio.gather(echo(1), echo(2), echo(3), echo(4))";
    check_stopped(session, code, CodeLimitExceeded::Calls).await;
    let mut session = TestSession::with_limits(limits);
    session.value("for i in range(3):\n    echo(i)").await;
    session.value("for i in range(3):\n    echo(i)").await;
    assert_eq!(session.host.batches.len(), 6);
}

#[tokio::test]
async fn endless_recursion_is_a_recursion_error() {
    let mut session = TestSession::new();
    for code in [
        "def f(n):\n    return f(n + 1)\nf(0)",
        "def f(n):\n    return sorted([n], key=f)\nf(0)",
        "class A:\n    def __repr__(self):\n        return repr(self)\nrepr(A())",
        "def f(n):\n    return list(map(f, [n]))\nf(0)",
    ] {
        let error = session.error(code).await;
        assert!(error.contains("RecursionError"), "{code}: {error}");
    }
    let deep = "x = []\nfor _ in range(100_000):\n    x = [x]\nlen(x)";
    assert_eq!(session.value(deep).await, json!(1));
}

#[tokio::test]
async fn own_memory_error_is_an_exception() {
    let mut session = TestSession::new();
    let error = session.error("raise MemoryError('mine')").await;
    assert!(error.ends_with("MemoryError: mine"), "{error}");
}

#[tokio::test]
async fn time_in_host_functions_does_not_count() {
    let mut session = TestSession::with_limits(CodeLimits {
        computing_time: Duration::from_millis(400),
        ..CodeLimits::default()
    });
    let functions = ["slow".to_owned()];
    let code = "slow()\nslow()\n1";
    let output = session.session.run(code, &functions, &mut SlowHost).await;
    assert_eq!(output.value, Some(json!(1)));
}

/// Host whose functions take longer than the code may compute.
struct SlowHost;

impl CodeHost for SlowHost {
    fn call<'a>(&'a mut self, _calls: Vec<CodeCall>) -> BoxFuture<'a, CallReply> {
        Box::pin(async {
            tokio::time::sleep(Duration::from_millis(500)).await;
            CallReply::Results(vec![Ok(json!(null))])
        })
    }

    fn print(&mut self, _text: &str) {}
}

#[tokio::test]
async fn tiny_memory_limit_is_an_error() {
    let mut session = TestSession::with_limits(CodeLimits {
        memory_bytes: 0,
        ..CodeLimits::default()
    });
    // Enough for a small block, thanks to what the allocator reserves, or a clear end.
    let end = session.run("1 + 1").await.end;
    assert!(
        !matches!(end, CodeEnd::Failed(_) | CodeEnd::Ended),
        "{end:?}"
    );
}

#[tokio::test]
async fn deeply_nested_code_is_a_syntax_error() {
    let mut session = TestSession::new();
    for (open, close) in [("(", ")"), ("[", "]"), ("-", ""), ("f(", ")")] {
        let code = format!("{}1{}", open.repeat(100_000), close.repeat(100_000));
        let output = session.run(&code).await;
        assert!(
            matches!(output.end, CodeEnd::Failed(_)),
            "{open}: {:?}",
            output.end
        );
    }
}
