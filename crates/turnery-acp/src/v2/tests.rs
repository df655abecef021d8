//! Tests of the parts of v2 that need no connection.

mod calls;
mod diff;
#[path = "../../tests/wire/harness/fold_v2.rs"]
mod fold;
mod laws;
mod state;
mod translate;

use super::Translator;
use crate::{tests::parts::event, update::UpdateWriter};
use agent_client_protocol_schema::v2::UpdateSessionNotification;
use jsonschema::Validator;
use serde_json::Value;
use std::sync::LazyLock;
use turnery_engine::{Event, EventKind};

static SCHEMA: LazyLock<Validator> = LazyLock::new(|| {
    let schema = schemars::schema_for!(UpdateSessionNotification);
    jsonschema::validator_for(schema.as_value()).unwrap()
});

/// The updates in these lines. Each is valid by the official schema and knows nothing beside it.
fn updates(lines: &[u8]) -> Vec<Value> {
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

fn translate(
    kinds: Vec<EventKind>,
    show: fn(&mut Translator, &Event, &mut UpdateWriter),
) -> Vec<Value> {
    let mut translator = Translator::default();
    let mut writer = UpdateWriter::new("s1");
    for kind in kinds {
        show(&mut translator, &event(0, kind), &mut writer);
    }
    updates(&writer.lines)
}

/// What is said of events that happen now.
fn live(kinds: Vec<EventKind>) -> Vec<Value> {
    translate(kinds, Translator::live)
}

/// What is said of events of an earlier time.
fn replayed(kinds: Vec<EventKind>) -> Vec<Value> {
    translate(kinds, Translator::replay)
}
