//! `update_plan`.

use crate::fixture::ToolFixture;
use serde_json::json;
use turnery_engine::{CallKind, PlanEntry, PlanPriority, PlanStatus};
use turnery_tools::{Access, Progress};

// proves: ACP-19
#[tokio::test]
async fn whole_plan_is_reported() {
    let mut bench = ToolFixture::new();
    let args = json!({"entries": [
        {"content": "look", "priority": "high", "status": "completed"},
        {"content": "leap"},
        {"content": "land", "priority": "low", "status": "in_progress"},
    ]});
    let prepared = bench.prepare("update_plan", args.clone()).await.unwrap();
    assert_eq!(prepared.access, Access::Nothing);
    assert_eq!(prepared.detail.kind, CallKind::Think);
    let told = bench.call_text("update_plan", args).await;
    assert_eq!(told, "Plan updated: 1 of 3 done");
    let entry = |content: &str, priority, status| PlanEntry {
        content: content.to_owned(),
        priority,
        status,
    };
    let planned = vec![
        entry("look", PlanPriority::High, PlanStatus::Completed),
        entry("leap", PlanPriority::Medium, PlanStatus::Pending),
        entry("land", PlanPriority::Low, PlanStatus::InProgress),
    ];
    assert_eq!(bench.progress.try_recv(), Ok(Progress::Plan(planned)));
}

#[tokio::test]
async fn unknown_status_is_named() {
    let bench = ToolFixture::new();
    let args = json!({"entries": [{"content": "x", "status": "doing"}]});
    let (_, message) = bench.call_failure("update_plan", args).await;
    assert_eq!(
        message,
        "update_plan: /entries/0/status must be one of \"pending\", \"in_progress\", \
         \"completed\", not \"doing\""
    );
}
