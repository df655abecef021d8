//! `_meta` of turnery: facts that the protocol has no field for.

use agent_client_protocol_schema::v1::Meta;
use serde_json::{Map, Value, json};
use turnery_agent::{
    UsageRow,
    view::{LoopLineage, PromptUsage},
};

/// Wraps `members` under the one name that turnery uses in `_meta` (EXT-1).
pub(crate) fn turnery_meta(members: Value) -> Meta {
    Map::from_iter([("turnery".to_owned(), members)])
}

/// Returns the members that report the lineage of a loop: the protocol has no update for it.
pub(crate) fn lineage_members(lineage: &LoopLineage<'_>) -> Value {
    let mut members = json!({"loopId": lineage.loop_id, "continuationKind": lineage.kind});
    for (key, value) in [
        ("parentLoopId", lineage.parent.map(|id| id.as_str())),
        ("tag", lineage.tag),
        ("frameId", lineage.frame_id.map(|id| id.as_str())),
        ("task", lineage.task),
    ] {
        if let Some(value) = value {
            members[key] = value.into();
        }
    }
    json!({ "loop": members })
}

/// Returns the `_meta` with the usage of a prompt. `None` without child sessions, since the protocol's own
/// fields then say it all.
pub(crate) fn prompt_usage_meta(usage: &PromptUsage) -> Option<Meta> {
    let children = usage.children();
    (!children.is_empty()).then(|| {
        turnery_meta(json!({
            "usage": usage.own(),
            "childrenUsage": usage_rows(&children),
            "totalUsage": usage.total(),
        }))
    })
}

/// Encodes usage by source and model.
pub(crate) fn usage_rows(rows: &[UsageRow]) -> Value {
    let row =
        |row: &UsageRow| json!({"source": row.source, "model": row.model, "usage": row.usage});
    rows.iter().map(row).collect()
}
