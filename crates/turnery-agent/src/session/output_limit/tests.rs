//! Tests of the output limits, kind by kind.

mod properties;

use super::*;
use serde_json::{Value, json};
use std::sync::Arc;
use turnery_engine::{
    Artifact, CallDetail, ChildUsage, Content, ImageData, Location, PlanEntry, PlanPriority,
    PlanStatus, ToolControl, ToolErrorKind, Usage,
};

/// Small limits for every kind.
const SMALL_LIMITS: OutputLimits = OutputLimits {
    output: 100,
    report_bytes: 100,
    report_count: 3,
    result_text: 100,
    images: 100,
    artifacts: 100,
    locations: 100,
    effects: 20,
    value: 20,
    details: 20,
    control: 20,
};

fn limit_with_small(envelope: ToolEnvelope) -> ToolEnvelope {
    SMALL_LIMITS.limit_envelope(envelope, Omissions::default())
}

/// Texts of a result; other content is a `*`.
fn texts(envelope: &ToolEnvelope) -> Vec<&str> {
    let content = envelope.result.as_ref().unwrap();
    content
        .iter()
        .map(|it| it.as_text().unwrap_or("*"))
        .collect()
}

fn omission_note(left_out: &str) -> String {
    format!("[more than a call may give; left out: {left_out}]")
}

fn image(base64: &str) -> Content {
    Content::Image(ImageData {
        mime_type: "image/png".to_owned(),
        base64: Arc::from(base64),
    })
}

#[test]
fn first_text_over_limit_is_cut_in_middle() {
    let long = format!("{}-{}", "ä".repeat(40), "ö".repeat(40));
    let content = ["one", &long, "two", ""].map(Content::text).to_vec();
    let limited = limit_with_small(ToolEnvelope::ok(content));
    // 100 - 32 - 3 are left for the second, 32 of them for the block: 33, so 16 on either side.
    let cut = format!(
        "{}\n[129 bytes are left out here]\n{}",
        "ä".repeat(8),
        "ö".repeat(8)
    );
    assert_eq!(
        texts(&limited),
        ["one", &cut, &omission_note("2 texts (3 bytes)")]
    );
}

#[test]
fn number_of_empty_texts_is_limited() {
    let limited = limit_with_small(ToolEnvelope::ok(vec![Content::text(""); 1000]));
    let cut = "\n[0 bytes are left out here]\n";
    let note = omission_note("996 texts (0 bytes)");
    assert_eq!(texts(&limited), ["", "", "", cut, &note]);
}

#[test]
fn error_message_and_details_are_limited() {
    let mut envelope = ToolEnvelope::failed(ToolErrorKind::Timeout, "x".repeat(200));
    let details = json!({"a": "0123456789", "b": 1});
    envelope.result.as_mut().unwrap_err().details = Some(details);
    let failure = limit_with_small(envelope).result.unwrap_err();
    let x = "x".repeat(34);
    let note = omission_note("6 bytes of details");
    let message = format!("{x}\n[132 bytes are left out here]\n{x}\n{note}");
    assert_eq!(failure.message, message);
    assert_eq!(failure.kind, ToolErrorKind::Timeout);
    // {"a":"0123456789"} is 18 bytes; what goes is `,"b":1`.
    assert_eq!(failure.details, Some(json!({"a": "0123456789"})));
}

#[test]
fn oversized_image_is_omitted_whole() {
    let large = image(&"A".repeat(100));
    let content = vec![
        image("aaaa"),
        large,
        Content::text("between"),
        image(""),
        image(""),
    ];
    let limited = limit_with_small(ToolEnvelope::ok(content));
    // {"type":"image","mime_type":"image/png","base64":""} is 52 bytes, so one is all there is room for.
    let note = omission_note("3 images, recordings and documents (256 bytes)");
    assert_eq!(texts(&limited), ["*", "between", &note]);
    assert_eq!(limited.result.unwrap()[0], image("aaaa"));
}

#[test]
fn oversized_diff_is_omitted_whole() {
    let diff = |text: &str| Artifact::Diff {
        path: "/a".into(),
        old: None,
        new: text.to_owned(),
        from_line: None,
    };
    let mut envelope = ToolEnvelope::text("done");
    envelope.artifacts = vec![diff(&"n".repeat(100)), diff("small"), diff("\n")];
    let limited = limit_with_small(envelope);
    // {"diff":{"path":"/a","new":""}} is 31 bytes.
    assert_eq!(limited.artifacts, [diff("small"), diff("\n")]);
    assert_eq!(
        texts(&limited),
        ["done", &omission_note("1 artifacts (131 bytes)")]
    );
}

#[test]
fn oversized_locations_and_effects_are_omitted() {
    let place = |path: &str| Location {
        path: path.into(),
        line: None,
    };
    let mut envelope = ToolEnvelope::text("done");
    envelope.locations = vec![place("/a"), place(&"b".repeat(100))];
    envelope.effects = vec![json!({"do": 1}), json!("much more than that"), json!(2)];
    envelope.child_loop_id = Some("l".repeat(2000).into());
    let limited = limit_with_small(envelope);
    assert_eq!(limited.locations, [place("/a")]);
    assert_eq!(limited.effects, [json!({"do": 1}), json!(2)]);
    assert_eq!(limited.child_loop_id, None);
    let left = "1 locations (111 bytes), 1 effects (21 bytes)";
    assert_eq!(texts(&limited), ["done", &omission_note(left)]);
}

#[test]
fn value_is_pruned_from_its_end() {
    let cases = [
        (
            json!("0123456789012345678"),
            json!("012345678901234567"),
            "1 bytes",
        ),
        (json!("ääääääääää"), json!("äääääääää"), "2 bytes"),
        (
            json!("\u{1}\u{1}\u{1}\u{1}"),
            json!("\u{1}\u{1}\u{1}"),
            "6 bytes",
        ),
        (
            json!([1, 2, [3, 4, 5, 6, 7, 8], 9]),
            json!([1, 2, [3, 4, 5, 6, 7]]),
            "4 bytes",
        ),
        (
            json!({"a": {"b": "long enough to cut"}, "c": 1}),
            json!({"a": {"b": "long"}}),
            "20 bytes",
        ),
        (
            json!({"a much longer name": 1, "c": 1}),
            json!({}),
            "28 bytes",
        ),
    ];
    for (value, expected, left_out) in cases {
        let mut envelope = ToolEnvelope::text("done");
        envelope.value = Some(value);
        let limited = limit_with_small(envelope);
        assert_eq!(limited.value, Some(expected));
        assert_eq!(
            texts(&limited),
            ["done", &omission_note(&format!("{left_out} of the value"))]
        );
    }
}

/// `[[[…]]]` with this many levels.
fn nested_array(levels: usize) -> Value {
    (1..levels).fold(json!([]), |inner, _| json!([inner]))
}

#[test]
fn too_deep_values_are_omitted() {
    let mut envelope = ToolEnvelope::text("done");
    envelope.value = Some(json!({"deep": nested_array(64), "b": 2}));
    envelope.effects = vec![nested_array(64), nested_array(65)];
    envelope.control = Some(Box::new(ToolControl::FailWith(nested_array(65))));
    let limited = OUTPUT_LIMITS.limit_envelope(envelope, Omissions::default());
    assert_eq!(limited.effects, [nested_array(64)]);
    // The 64th array is the 65th level.
    let mut bottom = &limited.value.as_ref().unwrap()["deep"];
    for _ in 0..63 {
        bottom = &bottom[0];
    }
    assert_eq!(*bottom, Value::Null);
    assert_eq!(limited.value.as_ref().unwrap()["b"], 2);
    assert_eq!(limited.control, Some(Box::new(ToolControl::Fail)));
    let failure = limited.result.unwrap_err();
    assert!(failure.message.contains("nests too deep"));
}

#[test]
fn oversized_final_value_fails_the_call() {
    let long = || json!("0123456789");
    let small = ToolControl::Finish(json!("01"));
    let cases = [
        (small.clone(), Some(small)),
        (ToolControl::Finish(long()), None),
        (ToolControl::Submit(long()), None),
        (ToolControl::SubmitError(long()), None),
        (ToolControl::FailWith(long()), Some(ToolControl::Fail)),
        (
            ToolControl::SwitchFrame {
                task: "0123456789".to_owned(),
            },
            None,
        ),
    ];
    for (control, expected) in cases {
        let mut envelope = ToolEnvelope::text("done");
        let fits = expected.as_ref() == Some(&control);
        envelope.control = Some(Box::new(control));
        let limited = limit_with_small(envelope);
        assert_eq!(limited.control.as_deref(), expected.as_ref());
        assert_eq!(limited.result.is_ok(), fits);
    }
}

#[test]
fn error_survives_oversized_final_error() {
    let mut envelope = ToolEnvelope::failed(ToolErrorKind::Denied, "no");
    envelope.control = Some(Box::new(ToolControl::FailWith(json!("0123456789"))));
    let limited = limit_with_small(envelope);
    let failure = limited.result.unwrap_err();
    assert_eq!(failure.kind, ToolErrorKind::Denied);
    // {"fail_with":"0123456789"}
    let note = omission_note("1 final value (26 bytes)");
    assert_eq!(failure.message, format!("no\n{note}"));
}

fn plan_report(entry: &str) -> Progress {
    Progress::Plan(vec![PlanEntry {
        content: entry.to_owned(),
        priority: PlanPriority::Medium,
        status: PlanStatus::Pending,
    }])
}

fn detail_report(title: &str) -> Progress {
    Progress::Detail(CallDetail {
        title: title.to_owned(),
        ..CallDetail::default()
    })
}

fn usage_report() -> Progress {
    Progress::ChildUsage(ChildUsage {
        session_id: "child".into(),
        source: "turn".to_owned(),
        model: "m".to_owned(),
        iteration: 0,
        usage: None,
        cumulative: Usage::default(),
    })
}

#[test]
fn reports_are_limited_in_number_and_size() {
    let small = || OutputBudget::with_limits(&SMALL_LIMITS);
    // By size: {"title":"","kind":"other"} is 27 bytes, [{"content":"","priority":"medium","status":"pending"}] 55.
    let mut room = small();
    assert_eq!(room.admit(plan_report("p")), Some(plan_report("p")));
    assert_eq!(room.admit(detail_report(&"t".repeat(19))), None);
    assert_eq!(room.admit(detail_report("t")), Some(detail_report("t")));
    assert_eq!(room.admit(plan_report("p")), None);
    assert_eq!(room.admit(usage_report()), Some(usage_report()));
    let limited = room.limit_envelope(ToolEnvelope::text("done"));
    assert_eq!(
        texts(&limited),
        ["done", &omission_note("2 reports (102 bytes)")]
    );
    // By number.
    let mut room = small();
    for _ in 0..3 {
        let text = Progress::Message("s".to_owned());
        assert_eq!(room.admit(text.clone()), Some(text));
    }
    assert_eq!(room.admit(detail_report("")), None);
    assert_eq!(room.admit(Progress::Message("four".to_owned())), None);
    let printed = Progress::Output("still".to_owned());
    assert_eq!(room.admit(printed.clone()), Some(printed));
    assert_eq!(room.admit(Progress::Output(String::new())), None);
    for _ in 0..1000 {
        assert_eq!(room.admit(usage_report()), Some(usage_report()));
    }
    let limited = room.limit_envelope(ToolEnvelope::text("done"));
    assert_eq!(
        texts(&limited),
        ["done", &omission_note("2 reports (31 bytes)")]
    );
}
