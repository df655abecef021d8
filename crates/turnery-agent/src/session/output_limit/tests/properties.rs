//! Property tests: any result stays within the limits, and one within them is unchanged.

use super::*;
use proptest::{collection::vec, option, prelude::*};
use serde::Serialize;
use turnery_engine::ToolError;

/// Total bytes that the kinds of `SMALL_LIMITS` allow: text six times for its escapes, and 1,500 for an id,
/// the names of the fields and the notes.
const MAX_TOTAL_BYTES: usize = 6 * 100 + 4 * 32 + 100 + 100 + 100 + 20 + 20 + 20 + 20 + 1500;

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        Just(String::new()),
        "[a-c]{1,6}",
        "[\u{1}\n\"\\\\a-z€ä\u{1f642}]{0,120}",
        (100_usize..3000).prop_map(|length| "é".repeat(length)),
    ]
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        text().prop_map(Value::from),
    ];
    let tree = leaf.prop_recursive(4, 40, 6, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..6).prop_map(Value::from),
            vec((text(), inner), 0..6).prop_map(|fields| fields.into_iter().collect()),
        ]
    });
    prop_oneof![4 => tree, 1 => (60_usize..70).prop_map(nested_array)]
}

fn content() -> impl Strategy<Value = Content> {
    prop_oneof![
        text().prop_map(Content::text),
        text().prop_map(|data| image(&data)),
        value().prop_map(|value| Content::Opaque {
            provider: String::new(),
            value
        }),
    ]
}

fn control() -> impl Strategy<Value = ToolControl> {
    prop_oneof![
        value().prop_map(ToolControl::Finish),
        value().prop_map(ToolControl::FailWith),
        text().prop_map(|task| ToolControl::SwitchFrame { task }),
    ]
}

fn result() -> impl Strategy<Value = Result<Vec<Content>, ToolError>> {
    let failure = (text(), option::of(value())).prop_map(|(message, details)| ToolError {
        kind: ToolErrorKind::Exception,
        message,
        details,
    });
    prop_oneof![vec(content(), 0..8).prop_map(Ok), failure.prop_map(Err)]
}

fn envelope() -> impl Strategy<Value = ToolEnvelope> {
    let artifact = prop_oneof![
        content().prop_map(Artifact::Content),
        text().prop_map(|new| Artifact::Diff {
            path: "/a".into(),
            old: None,
            new,
            from_line: None,
        }),
    ];
    let location = text().prop_map(|path| Location {
        path: path.into(),
        line: None,
    });
    (
        result(),
        option::of(value()),
        vec(artifact, 0..5),
        vec(location, 0..5),
        vec(value(), 0..5),
        option::of(control()),
        option::of(text()),
    )
        .prop_map(
            |(result, value, artifacts, locations, effects, control, child)| ToolEnvelope {
                result,
                value,
                artifacts,
                locations,
                effects,
                control: control.map(Box::new),
                child_loop_id: child.map(Into::into),
                state: None,
            },
        )
}

fn to_json(thing: &impl Serialize) -> String {
    serde_json::to_string(thing).unwrap()
}

proptest! {
    #[test]
    fn any_envelope_stays_within_total_limit(envelope in envelope()) {
        let limited = limit_with_small(envelope);
        let whole = to_json(&limited);
        prop_assert!(whole.len() <= MAX_TOTAL_BYTES, "{} bytes", whole.len());
        // Each kind by itself; a list has brackets.
        prop_assert!(limited.value.as_ref().is_none_or(|it| to_json(it).len() <= 20));
        prop_assert!(limited.control.as_ref().is_none_or(|it| to_json(it).len() <= 20));
        prop_assert!(to_json(&limited.effects).len() <= 22);
        prop_assert!(to_json(&limited.artifacts).len() <= 102);
        prop_assert!(to_json(&limited.locations).len() <= 102);
        // The limited envelope can be parsed again, despite its depth.
        prop_assert!(serde_json::from_str::<ToolEnvelope>(&whole).is_ok());
    }

    #[test]
    fn envelope_within_limits_is_unchanged(envelope in envelope()) {
        prop_assume!(!to_json(&envelope).contains(&"[".repeat(60)));
        prop_assume!(to_json(&envelope).len() <= 64 * 1024);
        prop_assume!(envelope.child_loop_id.as_ref().is_none_or(|id| id.as_str().len() <= 1024));
        let limited = OUTPUT_LIMITS.limit_envelope(envelope.clone(), Omissions::default());
        prop_assert_eq!(limited, envelope);
    }
}
