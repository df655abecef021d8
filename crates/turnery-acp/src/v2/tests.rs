//! Unit tests of v2 that need no connection.

mod call_terminal;
mod diff;
mod encoder;
#[path = "../../tests/wire/harness/fold_v2.rs"]
mod fold;
mod properties;
mod session_state;
mod tool_calls;

use crate::{
    server::encoder::Encoder,
    tests::support::{encode_lines, event, live, stored},
    v2::encoder::EncoderV2,
};
use agent_client_protocol_schema::v2::UpdateSessionNotification;
use jsonschema::Validator;
use serde_json::Value;
use std::sync::LazyLock;
use turnery_agent::OutboxItem;
use turnery_engine::{Event, EventKind};

static SCHEMA: LazyLock<Validator> = LazyLock::new(|| {
    let schema = schemars::schema_for!(UpdateSessionNotification);
    jsonschema::validator_for(schema.as_value()).unwrap()
});

/// Parses the updates in these lines. Each must be valid by the official schema, without unknown members.
fn parse_updates(lines: &[u8]) -> Vec<Value> {
    let text = std::str::from_utf8(lines).unwrap();
    text.lines()
        .map(|line| {
            let message: Value = serde_json::from_str(line).unwrap();
            let params = &message["params"];
            if let Err(fault) = SCHEMA.validate(params) {
                panic!("{fault}: {params}");
            }
            let typed: UpdateSessionNotification = serde_json::from_value(params.clone()).unwrap();
            assert_eq!(&serde_json::to_value(typed).unwrap(), params);
            params["update"].clone()
        })
        .collect()
}

fn encode(kinds: Vec<EventKind>, item: fn(&Event) -> OutboxItem<'_>) -> Vec<Value> {
    let events: Vec<Event> = kinds.into_iter().map(|kind| event(0, kind)).collect();
    let encoder = Encoder::V2(EncoderV2::default());
    parse_updates(&encode_lines(&events, encoder, item))
}

/// Encodes events live.
fn encode_live(kinds: Vec<EventKind>) -> Vec<Value> {
    encode(kinds, live)
}

/// Encodes events as a replay.
fn encode_replayed(kinds: Vec<EventKind>) -> Vec<Value> {
    encode(kinds, stored)
}
