//! Tests how a conversation is sent.

use crate::{
    format::Format,
    sent, sent_with,
    server::{
        assistant, document, hello_request, picture, request, thought, tool_call, tool_result, user,
    },
};
use serde_json::json;
use turnery_engine::{AudioData, Content, Message, MessageStop};
use turnery_models::{ModelOverride, Thinking, ToolChoice};

/// Returns a message of the model of `format`, or of `model`.
fn response_of(model: &str, stop: MessageStop, content: Vec<Content>) -> Message {
    Message::Assistant {
        content,
        stop,
        model: model.to_owned(),
        provider: "acme".to_owned(),
        usage: None,
        error: None,
        request: None,
    }
}

/// Results stand directly behind the calls in their order, even if they came late, in other order or not at all.
// proves: ANTHROPIC-7, CHAT-7, RESPONSES-7, GEMINI-7
// proves: ANTHROPIC-16, CHAT-16, RESPONSES-16, GEMINI-16
#[tokio::test]
async fn each_call_is_followed_by_its_result() {
    let read = |id| tool_call(id, "read", json!({}));
    let result = |id| tool_result(id, vec![Content::text(id)], false);
    let history = vec![
        user("hello"),
        assistant(vec![Content::text("and"), read("a"), read("b"), read("c")]),
        result("b"),
        user("meanwhile"),
        result("a"),
        assistant(vec![read("d")]),
        user("stop"),
    ];
    for format in Format::ALL {
        let body = sent(format, request(history.clone())).await;
        assert_eq!(
            format.outline(&body),
            [
                "user hello",
                "assistant and",
                "call a read",
                "call b read",
                "call c read",
                "result a a",
                "result b b",
                "result c No result: the call was cut short.",
                "user meanwhile",
                "call d read",
                "result d No result: the call was cut short.",
                "user stop",
            ]
            .map(str::to_owned)
            .into_iter()
            .collect::<Vec<_>>(),
            "{format:?}"
        );
    }
}

// proves: ANTHROPIC-9, CHAT-9, RESPONSES-9, GEMINI-9
#[tokio::test]
async fn blank_text_is_never_sent() {
    let blank = Message::User {
        content: vec![
            Content::text(""),
            Content::text("hello"),
            Content::text("\n "),
        ],
    };
    let history = vec![
        blank,
        assistant(vec![Content::text(" "), tool_call("a", "read", json!({}))]),
        tool_result("a", vec![Content::text("x"), Content::text("")], false),
        assistant(vec![Content::text("")]),
        user("go on"),
    ];
    for format in Format::ALL {
        let body = sent(format, request(history.clone())).await;
        let expected = ["user hello", "call a read", "result a x", "user go on"];
        assert_eq!(format.outline(&body), expected, "{format:?}");
    }
}

/// Notices of turnery are text of the user, and the instructions have the place that the format gives them.
// proves: ANTHROPIC-13, CHAT-13, RESPONSES-13, GEMINI-13
#[tokio::test]
async fn notices_are_no_second_system_message() {
    let notice = Message::System {
        text: "Two turns left.".to_owned(),
    };
    let history = vec![user("hello"), notice];
    for format in Format::ALL {
        let body = sent(format, request(history.clone())).await;
        let text = body.to_string();
        assert_eq!(text.matches("Be brief.").count(), 1, "{format:?}");
        assert_eq!(
            text.matches("\"system\"").count(),
            match format {
                Format::Anthropic | Format::Chat => 1,
                Format::Responses | Format::Gemini => 0,
            }
        );
        let sent = format.outline(&body).join(" ");
        let notice = "<system-notice>\nTwo turns left.\n</system-notice>";
        assert!(sent.starts_with("user hello"), "{format:?}: {sent}");
        assert!(sent.contains(notice), "{format:?}: {sent}");
    }
}

/// The tools stay where they are, so that the history with calls is accepted and the cached prefix holds.
// proves: ANTHROPIC-12, CHAT-12, RESPONSES-12, GEMINI-12
// proves: ANTHROPIC-79, CHAT-79, RESPONSES-79, GEMINI-79
// proves: ANTHROPIC-80, CHAT-80, RESPONSES-80, GEMINI-80
#[tokio::test]
async fn tool_choice_keeps_the_tools() {
    for format in Format::ALL {
        for (choice, expected) in [
            (ToolChoice::Auto, None),
            (ToolChoice::None, Some("none")),
            (ToolChoice::Required, Some("required")),
        ] {
            let mut request = request(vec![
                user("hello"),
                assistant(vec![tool_call("a", "read", json!({}))]),
                tool_result("a", vec![Content::text("seen")], false),
            ]);
            request.tool_choice = choice;
            request.thinking = Thinking::Off;
            let body = sent(format, request).await;
            assert_eq!(format.tool_choice(&body), expected, "{format:?} {choice:?}");
            assert_eq!(format.first_tool(&body), "read", "{format:?} {choice:?}");
            let history = ["user hello", "call a read", "result a seen"];
            assert_eq!(format.outline(&body), history, "{format:?} {choice:?}");
        }
        let mut request = hello_request();
        request.tools = [].into();
        request.tool_choice = ToolChoice::Required;
        let body = sent(format, request).await;
        assert_eq!(format.tool_choice(&body), None, "{format:?}");
    }
}

/// A conversation with a picture and a document, both in the prompt and in a result.
fn with_media() -> Vec<Message> {
    vec![
        Message::User {
            content: vec![Content::text("look"), picture(), document()],
        },
        assistant(vec![tool_call("a", "read", json!({}))]),
        tool_result(
            "a",
            vec![Content::text("seen"), picture(), document()],
            false,
        ),
    ]
}

/// Documents go to the hosts of OpenAI's formats that are known to take them, which the server here is not.
// proves: ANTHROPIC-75, CHAT-75, RESPONSES-75, GEMINI-75
// proves: ANTHROPIC-76, CHAT-76, RESPONSES-76, GEMINI-76
// proves: ANTHROPIC-77, GEMINI-77
#[tokio::test]
async fn media_are_sent_to_models_that_take_them() {
    for format in Format::ALL {
        let facts = ModelOverride {
            images: Some(true),
            ..ModelOverride::default()
        };
        let body = sent_with(format, facts, request(with_media())).await;
        let mut outline = format.outline(&body);
        // Results of Chat hold no media: they follow in a message of the user.
        outline.retain(|line| line != "user Pictures that a gave:");
        let note = "[document a.pdf omitted: this model does not accept documents, but its text can be extracted with a tool]";
        let kinds: Vec<&str> = outline
            .iter()
            .map(|line| line.as_str())
            .filter(|line| !line.ends_with(note) || line.starts_with("result a seen"))
            .map(|line| line.split("\n\n").next().unwrap_or_default())
            .collect();
        let expected: &[&str] = match format {
            Format::Anthropic | Format::Gemini => &[
                "user look",
                "image",
                "document",
                "call a read",
                "result a seen",
                "image",
                "document",
            ],
            Format::Chat | Format::Responses => &[
                "user look",
                "image",
                "call a read",
                "result a seen",
                "image",
            ],
        };
        assert_eq!(kinds, expected, "{format:?}");
        assert_eq!(body.to_string().matches("QUJD").count(), 2, "{format:?}");
    }
}

// proves: ANTHROPIC-63, CHAT-63, RESPONSES-63, GEMINI-63
#[tokio::test]
async fn text_model_gets_notes_for_media() {
    let facts = ModelOverride {
        images: Some(false),
        documents: Some(false),
        ..ModelOverride::default()
    };
    for format in Format::ALL {
        let body = sent_with(format, facts, request(with_media())).await;
        let text = body.to_string();
        assert!(
            !text.contains("QUJD") && !text.contains("JVBE"),
            "{format:?}"
        );
        let picture = "[image (image/png) omitted: this model does not accept images]";
        assert_eq!(text.matches(picture).count(), 2, "{format:?}");
        assert_eq!(text.matches("[document a.pdf omitted").count(), 2);
        let kinds = format.outline(&body);
        assert!(
            !kinds
                .iter()
                .any(|line| line == "image" || line == "document")
        );
    }
}

/// Only Chat and Gemini have a format for recordings, and few models take them.
// proves: ANTHROPIC-84, CHAT-84, RESPONSES-84, GEMINI-84
#[tokio::test]
async fn recording_is_sent_only_to_models_that_take_it() {
    let recording = Content::Audio(AudioData {
        mime_type: "audio/mpeg".to_owned(),
        base64: "TVAz".into(),
    });
    for format in Format::ALL {
        for audio in [true, false] {
            let facts = ModelOverride {
                audio: Some(audio),
                ..ModelOverride::default()
            };
            let content = vec![Content::text("listen"), recording.clone()];
            let body = sent_with(format, facts, request(vec![Message::User { content }])).await;
            let text = body.to_string();
            let is_sent = audio && matches!(format, Format::Chat | Format::Gemini);
            assert_eq!(text.contains("TVAz"), is_sent, "{format:?} {audio}");
            let note = "[audio (audio/mpeg) omitted: this model does not accept audio]";
            assert_eq!(text.contains(note), !is_sent, "{format:?} {audio}");
        }
    }
}

/// A failed response goes back as the text that it showed, without incomplete reasoning; one without text is left out.
// proves: ANTHROPIC-8, CHAT-8, RESPONSES-8, GEMINI-8
#[tokio::test]
async fn failed_response_sends_back_only_its_text() {
    for format in Format::ALL {
        let failed = |content| response_of(format.model(), MessageStop::Error, content);
        let history = vec![
            user("one"),
            failed(vec![thought(None)]),
            user("two"),
            failed(vec![thought(None), Content::text("part")]),
            user("three"),
        ];
        let body = sent(format, request(history)).await;
        let sent = format
            .outline(&body)
            .join("; ")
            .replace("one\n\ntwo", "one; user two");
        assert_eq!(
            sent, "user one; user two; assistant part; user three",
            "{format:?}"
        );
    }
}

/// Neither the reasoning itself nor what the provider keeps with it goes to another model of the same provider.
// proves: ANTHROPIC-17, CHAT-17, RESPONSES-17, GEMINI-17
#[tokio::test]
async fn reasoning_of_another_model_is_left_out() {
    let opaque = |value| Content::Opaque {
        provider: "acme".to_owned(),
        value,
    };
    let content = vec![
        thought(Some("c2lnbmVk")),
        opaque(json!({"type": "redacted_thinking", "data": "c2VjcmV0"})),
        opaque(json!({"type": "reasoning", "summary": [], "encrypted_content": "c2VjcmV0"})),
        opaque(json!({"reasoning_details": [{"type": "reasoning.encrypted", "data": "c2VjcmV0"}]})),
        opaque(json!({"text": "", "thoughtSignature": "c2VjcmV0"})),
        Content::text("so"),
    ];
    for format in Format::ALL {
        let history = vec![
            user("hello"),
            response_of("another", MessageStop::Stop, content.clone()),
            user("on"),
        ];
        let body = sent(format, request(history)).await;
        let expected = ["user hello", "assistant so", "user on"];
        assert_eq!(format.outline(&body), expected, "{format:?}");
        let text = body.to_string();
        for kept in ["Hm", "c2lnbmVk", "c2VjcmV0"] {
            assert!(!text.contains(kept), "{format:?}: {text}");
        }
    }
}

/// A provider and a model keep their names when the user chooses another API for them.
#[tokio::test]
async fn blocks_of_another_api_are_left_out() {
    let blocks = [
        (
            Format::Anthropic,
            json!({"type": "redacted_thinking", "data": "c2VjcmV0"}),
        ),
        (
            Format::Responses,
            json!({"type": "reasoning", "summary": [], "encrypted_content": "c2VjcmV0"}),
        ),
        (
            Format::Responses,
            json!({"type": "web_search_call", "id": "c2VjcmV0"}),
        ),
        (
            Format::Chat,
            json!({"reasoning_details": [{"type": "reasoning.encrypted", "data": "c2VjcmV0"}]}),
        ),
        (
            Format::Gemini,
            json!({"text": "", "thoughtSignature": "c2VjcmV0"}),
        ),
    ];
    for format in Format::ALL {
        for (origin, value) in &blocks {
            let block = Content::Opaque {
                provider: "acme".to_owned(),
                value: value.clone(),
            };
            let content = vec![block, Content::text("so")];
            let history = vec![
                user("hello"),
                response_of(format.model(), MessageStop::Stop, content),
                user("on"),
            ];
            let text = sent(format, request(history)).await.to_string();
            let is_sent = text.contains("c2VjcmV0");
            assert!(!is_sent || *origin == format, "{format:?} {value}: {text}");
        }
    }
}

/// A cache entry is keyed by the start of a request.
// proves: ANTHROPIC-83, CHAT-83, RESPONSES-83, GEMINI-83
#[tokio::test]
async fn request_extends_the_one_before() {
    let read = |id| tool_call(id, "read", json!({"b": 1, "a": 2}));
    let result = |id| tool_result(id, vec![Content::text("x"), picture()], false);
    for format in Format::ALL {
        let own = |content| response_of(format.model(), MessageStop::ToolUse, content);
        let history = [
            user("hello"),
            own(vec![thought(None), read("a|1"), read("functions.read:0")]),
            result("functions.read:0"),
            result("a|1"),
            own(vec![read("c")]),
            result("c"),
            own(vec![Content::text("done")]),
            user("go on"),
        ];
        let mut bodies = Vec::new();
        for upto in [1, 4, 6, 8] {
            let mut turn = request(history[..upto].to_vec());
            if upto == 8 {
                turn.tool_choice = ToolChoice::None;
            }
            let body = sent(format, turn).await;
            // Marks of the cache move along with its end.
            let text = body
                .to_string()
                .replace(r#""cache_control":{"type":"ephemeral"},"#, "");
            bodies.push(serde_json::from_str(&text).unwrap());
        }
        for pair in bodies.windows(2) {
            let [before, after]: &[serde_json::Value; 2] = pair.try_into().unwrap();
            for part in [
                "model",
                "system",
                "systemInstruction",
                "instructions",
                "tools",
            ] {
                assert_eq!(before[part], after[part], "{format:?} {part}");
            }
            let (before, after) = (format.outline(before), format.outline(after));
            assert!(
                after.starts_with(&before),
                "{format:?}: {before:?} {after:?}"
            );
        }
    }
}
