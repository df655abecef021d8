//! Tests the method table against the schema's list, so that a new stable method cannot be forgotten.

use super::support::connection;
use crate::{methods, server::prompt_barrier::PromptBarrier};
use agent_client_protocol_schema::v1::AGENT_METHOD_NAMES;
use std::{collections::BTreeSet, sync::Arc};

/// Methods of the schema that the table omits, and why.
const NOT_IN_TABLE: [(&str, &str); 1] = [("session/cancel", "a notification")];

// proves: EXT-3
#[test]
fn every_stable_method_is_registered_or_exempt() {
    let names = serde_json::to_value(AGENT_METHOD_NAMES).unwrap();
    let stable: BTreeSet<String> = names
        .as_object()
        .unwrap()
        .values()
        .map(|name| name.as_str().unwrap().to_owned())
        .collect();
    let (extensions, ours): (Vec<_>, Vec<_>) = registered_methods()
        .into_iter()
        .partition(|name| name.starts_with('_'));
    assert_eq!(
        BTreeSet::from_iter(extensions),
        BTreeSet::from(["_turnery/session/steer", "_turnery/session/follow_up"])
    );
    let mut ours: BTreeSet<String> = ours.into_iter().map(str::to_owned).collect();
    assert_eq!(ours.len(), 18);
    ours.extend(NOT_IN_TABLE.map(|(name, _)| name.to_owned()));
    assert_eq!(ours, stable);
}

fn registered_methods() -> Vec<&'static str> {
    let (out, _lines) = tokio::sync::mpsc::channel(1);
    methods::method_table(Arc::new(connection(out, PromptBarrier::new().0)))
        .method_names()
        .collect()
}
