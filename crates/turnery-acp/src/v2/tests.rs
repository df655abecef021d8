//! Unit tests of v2 that need no connection.

mod diff;
mod encoder;
#[path = "../../tests/wire/harness/fold_v2.rs"]
mod fold;
mod properties;
mod session_state;
mod tool_calls;

use crate::{
    tests::support::event, transport::update_writer::UpdateWriter, v2::encoder::EncoderV2,
};
use agent_client_protocol_schema::v2::UpdateSessionNotification;
use jsonschema::Validator;
use serde_json::Value;
use std::sync::LazyLock;
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

fn encode(
    kinds: Vec<EventKind>,
    show: fn(&mut EncoderV2, &Event, &mut UpdateWriter),
) -> Vec<Value> {
    let mut translator = EncoderV2::default();
    let mut writer = UpdateWriter::new("s1");
    for kind in kinds {
        show(&mut translator, &event(0, kind), &mut writer);
    }
    parse_updates(&writer.lines)
}

/// Encodes events live.
fn encode_live(kinds: Vec<EventKind>) -> Vec<Value> {
    encode(kinds, EncoderV2::encode_live)
}

/// Encodes events as a replay.
fn encode_replayed(kinds: Vec<EventKind>) -> Vec<Value> {
    encode(kinds, EncoderV2::encode_replay)
}
