//! Tests of the size estimates.

use crate::compaction::{estimate_content_tokens, estimate_text_tokens};
use crate::{
    AudioData, Content, ContextSize, Event, EventKind, ImageData, Message, Recorder, ToolCall,
    Usage,
};
use serde_json::json;

/// UP-10.
#[test]
fn four_bytes_count_as_one_token() {
    assert_eq!(estimate_text_tokens(""), 0);
    assert_eq!(estimate_text_tokens("abcd"), 1);
    assert_eq!(estimate_text_tokens("abcde"), 2);
    let said = Message::user("12345678");
    let expected = ContextSize {
        tokens: 2 + 4,
        messages: 1,
    };
    assert_eq!(ContextSize::of_message(&said), expected);
}

#[test]
fn image_size_is_constant() {
    let image = |base64: &str| {
        Content::Image(ImageData {
            mime_type: "image/png".to_owned(),
            base64: base64.into(),
        })
    };
    assert_eq!(estimate_content_tokens(&[image("QQ==")]), 1_500);
    assert_eq!(
        estimate_content_tokens(&[image(&"A".repeat(1_000_000))]),
        1_500
    );
}

#[test]
fn audio_size_grows_with_length() {
    let audio = |base64: &str| {
        Content::Audio(AudioData {
            mime_type: "audio/wav".to_owned(),
            base64: base64.into(),
        })
    };
    assert_eq!(estimate_content_tokens(&[audio("QQ==")]), 1);
    let second = audio(&"A".repeat(64_000));
    assert_eq!(estimate_content_tokens(&[second.clone(), second]), 126);
}

#[test]
fn call_arguments_count() {
    let call = |text: &str| {
        Content::ToolCall(ToolCall::new(
            "c",
            "read",
            json!({"path": text, "lines": [1, 2]}),
        ))
    };
    let short = estimate_content_tokens(&[call("")]);
    assert_eq!(
        estimate_content_tokens(&[call(&"x".repeat(4_000))]),
        short + 1_000
    );
}

/// The record has the usage of summaries separately from that of its turns.
// proves: I10
#[test]
fn summary_usage_is_not_turn_usage() {
    let cost = Usage {
        input: 10,
        output: 2,
        ..Usage::default()
    };
    let event = |seq, kind| Event {
        session_id: "s".into(),
        loop_id: "s.c.1".into(),
        seq,
        turn_index: None,
        at: chrono::DateTime::UNIX_EPOCH,
        kind,
    };
    let mut recorder = Recorder::new();
    recorder.fold(&event(
        0,
        EventKind::LoopStart {
            agent_id: "a".to_owned(),
            prompt_id: "p".into(),
            parent_loop_id: None,
            continuation_kind: crate::ContinuationKind::Compaction,
            config: None,
            tag: None,
            metadata: None,
            frame_id: None,
            frame: None,
        },
    ));
    for (seq, usage) in [(1, Some(cost)), (2, None), (3, Some(cost))] {
        recorder.fold(&event(
            seq,
            EventKind::CompactionEnded {
                block: None,
                after: ContextSize::default(),
                failure: Some("empty".to_owned()),
                usage,
            },
        ));
    }
    let record = recorder.into_record().unwrap();
    let both = Usage {
        input: 20,
        output: 4,
        ..Usage::default()
    };
    assert_eq!(record.compaction_usage, Some(both));
    assert_eq!(record.usage, Usage::default());
}
