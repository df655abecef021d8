//! Tests that every call ends and reports how, however its tool behaves.

use crate::fixture::{ToolFixture, new_call};
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use std::{sync::Arc, time::Duration};
use turnery_engine::{CallDetail, CallKind, ToolEnvelope, ToolError, ToolErrorKind, ToolSpec};
use turnery_tools::{Access, PreparedCall, Tool, ToolCx, Toolbox, Workspace};

/// A tool that hangs, panics, or delays its end on cancel, according to its arguments.
struct MisbehavingTool(ToolSpec);

impl MisbehavingTool {
    fn new() -> Self {
        Self(ToolSpec {
            name: "odd".to_owned(),
            description: String::new(),
            schema: json!({"type": "object"}).into(),
        })
    }
}

impl Tool for MisbehavingTool {
    fn spec(&self) -> ToolSpec {
        self.0.clone()
    }

    fn describe(&self, _args: &Value, _workspace: &Workspace) -> CallDetail {
        panic!("described")
    }

    fn prepare<'a>(
        &'a self,
        _args: &'a Value,
        _cx: &'a ToolCx,
    ) -> BoxFuture<'a, Result<PreparedCall, ToolError>> {
        Box::pin(async {
            Ok(PreparedCall {
                access: Access::Nothing,
                detail: CallDetail::default(),
            })
        })
    }

    fn run<'a>(&'a self, args: &'a Value, cx: &'a ToolCx) -> BoxFuture<'a, ToolEnvelope> {
        Box::pin(async move {
            match args["do"].as_str() {
                Some("panic") => panic!("of its own"),
                Some("wind up") => {
                    cx.cancel.cancelled().await;
                    ToolEnvelope::text("as far as it got")
                }
                Some(_) | None => std::future::pending().await,
            }
        })
    }

    fn timeout(&self, args: &Value) -> Duration {
        assert!(args["do"] != "have no limit", "of its own");
        Duration::from_secs(30)
    }
}

fn fixture() -> ToolFixture {
    let mut bench = ToolFixture::new();
    bench.toolbox = Toolbox::new(vec![
        Arc::new(MisbehavingTool::new()),
        Arc::new(MisbehavingTool::new()),
    ]);
    bench
}

/// JIDO-68, JIDO-69, JIDO-70.
// proves: JIDO-68, JIDO-69, JIDO-70, C-21
#[tokio::test(start_paused = true)]
async fn hanging_tool_times_out_after_30_seconds() {
    let bench = fixture();
    let began = tokio::time::Instant::now();
    assert_eq!(
        bench.call_failure("odd", json!({})).await,
        (
            ToolErrorKind::Timeout,
            "odd ran longer than 30s and was stopped".to_owned()
        )
    );
    assert_eq!(began.elapsed(), Duration::from_secs(30));
}

/// JIDO-28.
// proves: JIDO-28, C-21
#[tokio::test(start_paused = true)]
async fn caller_can_set_timeout() {
    let bench = fixture();
    let began = tokio::time::Instant::now();
    let limit = Some(Duration::from_millis(250));
    let call = new_call("odd", json!({}));
    let envelope = bench
        .toolbox
        .run_with_timeout(&call, &bench.cx, limit)
        .await;
    assert_eq!(envelope.result.unwrap_err().kind, ToolErrorKind::Timeout);
    assert_eq!(began.elapsed(), Duration::from_millis(250));
}

#[tokio::test(start_paused = true)]
async fn cancelled_tool_gets_bounded_grace_period() {
    let bench = fixture();
    bench.cx.cancel.cancel();
    let told = bench.call_text("odd", json!({"do": "wind up"})).await;
    assert_eq!(told, "as far as it got");
    let began = tokio::time::Instant::now();
    assert_eq!(
        bench.call_failure("odd", json!({})).await,
        (ToolErrorKind::Cancelled, "odd was cancelled".to_owned())
    );
    assert_eq!(began.elapsed(), Duration::from_millis(1250));
}

#[tokio::test]
async fn panic_fails_only_its_call() {
    let bench = fixture();
    assert_eq!(
        bench.call_failure("odd", json!({"do": "panic"})).await,
        (
            ToolErrorKind::Exception,
            "odd panicked: of its own".to_owned()
        )
    );
    let no_limit = json!({"do": "have no limit"});
    let message = "odd panicked: of its own".to_owned();
    assert_eq!(
        bench.call_failure("odd", no_limit.clone()).await,
        (ToolErrorKind::Exception, message.clone())
    );
    let unprepared = bench.prepare("odd", no_limit).await.unwrap_err();
    assert_eq!(unprepared.message, message);
    let call = new_call("odd", json!({}));
    let detail = bench.toolbox.describe(&call, &bench.cx.workspace);
    assert_eq!(detail.title, "odd");
}

/// Only calls that change nothing may run side by side.
// proves: C-6
#[test]
fn only_reading_tools_run_in_parallel() {
    let bench = fixture();
    let file = json!({"path": "a"});
    let calls = [
        ("read_file", file, true),
        ("list_dir", json!({}), true),
        ("find_files", json!({"pattern": "*"}), true),
        ("search", json!({"pattern": "a"}), true),
        (
            "edit_file",
            json!({"path": "a", "old_text": "a", "new_text": "b"}),
            false,
        ),
        ("write_file", json!({"path": "a", "content": "a"}), false),
        ("shell", json!({"command": "ls"}), false),
        ("update_plan", json!({"entries": [{"content": "a"}]}), false),
    ];
    let toolbox = Toolbox::coding();
    let names: Vec<&str> = toolbox.names().collect();
    assert_eq!(calls.each_ref().map(|call| call.0).to_vec(), names);
    for (name, args, is_parallel) in calls {
        let announced = toolbox.announce(&new_call(name, args), &bench.cx.workspace);
        assert_eq!(announced.is_parallel, is_parallel, "{name}");
        assert_ne!(announced.detail.title, name, "its arguments are not valid");
    }
}

/// JIDO-65, JIDO-66, JIDO-67.
// proves: JIDO-66, JIDO-67
#[tokio::test]
async fn unknown_tool_error_lists_tools() {
    let bench = fixture();
    let message = "there is no tool \"Odd\"; the tools are odd".to_owned();
    assert_eq!(
        bench.call_failure("Odd", json!({})).await,
        (ToolErrorKind::NotFound, message.clone())
    );
    let failure = bench.prepare("Odd", json!({})).await.unwrap_err();
    assert_eq!(
        (failure.kind, failure.message),
        (ToolErrorKind::NotFound, message)
    );
    let names: Vec<String> = Toolbox::coding()
        .specs()
        .iter()
        .map(|spec| spec.name.clone())
        .collect();
    assert_eq!(
        names,
        [
            "read_file",
            "list_dir",
            "find_files",
            "search",
            "edit_file",
            "write_file",
            "shell",
            "update_plan"
        ]
    );
}

// proves: ACP-25
#[test]
fn describing_call_does_no_io() {
    let bench = ToolFixture::new();
    for (name, args, title) in [
        ("read_file", json!({"path": "x/../a.rs"}), "Read a.rs"),
        ("list_dir", json!({}), "List ."),
        (
            "edit_file",
            json!({"path": "a", "old_text": "b", "new_text": "c"}),
            "Edit a",
        ),
        ("read_file", json!({"wrong": 1}), "read_file"),
        ("nothing", json!({}), "nothing"),
    ] {
        let detail = bench
            .toolbox
            .describe(&new_call(name, args), &bench.cx.workspace);
        assert_eq!(detail.title, title);
        let kind = match name {
            "read_file" | "list_dir" => CallKind::Read,
            "edit_file" => CallKind::Edit,
            _ => CallKind::Other,
        };
        assert_eq!(detail.kind, kind, "{title}");
        for location in detail.locations {
            assert!(location.path.is_absolute());
        }
    }
}
