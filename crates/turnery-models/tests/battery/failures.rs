//! Tests what becomes of failed calls.

use crate::{
    format::{End, Format, Item::Text},
    provider,
    server::{
        call_error, call_for_deltas, call_for_events, error_response, event_response,
        hello_request, serve,
    },
};
use serde_json::json;
use std::time::Duration;
use turnery_engine::{ModelError, ModelErrorKind, Response};
use turnery_models::{ModelEvent, ModelOverride, ModelRegistry};

/// Attempts that failed, as the client is told: kind of the error, and the delay.
type Notices = Vec<(ModelErrorKind, Duration)>;

/// Calls a model to which the server first answers with `first`, and then with a response. Returns the number of requests
/// too.
async fn call_twice(
    format: Format,
    first: Vec<u8>,
) -> (Result<Response, ModelError>, Notices, usize) {
    let server = serve(vec![first, event_response(&format.text("Hi"))]).await;
    let model = server.model(format.api(), format.model());
    let (response, events) = call_for_events(&*model, hello_request()).await;
    let notices = events.iter().filter_map(|event| match event {
        ModelEvent::Retry(retry) => Some((retry.error.kind, retry.wait)),
        ModelEvent::Delta(_) | ModelEvent::Silence(_) => None,
    });
    (response, notices.collect(), server.bodies().len())
}

/// Errors in every form of a stream, before the first output.
// proves: ANTHROPIC-49, CHAT-49, RESPONSES-49, GEMINI-49
#[tokio::test]
async fn early_stream_errors_are_tried_again_and_told() {
    let forms = [
        event_response("error: {\"error\":{\"message\":\"gone\",\"code\":502}}\n\n"),
        event_response("event: error\ndata: gone\n\n"),
        event_response("{\n  \"error\": {\n    \"message\": \"gone\"\n  }\n}\n"),
        event_response("data: {\"type\":\"error\",\"error\":{\"message\":\"gone\"}}\n\n"),
        error_response("200 OK", "", "{\"error\":{\"message\":\"gone\"}}"),
    ];
    for format in Format::ALL {
        for (at, form) in forms.iter().enumerate() {
            let (response, notices, calls) = call_twice(format, form.clone()).await;
            assert!(response.is_ok(), "{format:?} form {at}: {response:?}");
            let kinds: Vec<_> = notices.iter().map(|(kind, _)| *kind).collect();
            assert_eq!(kinds, [ModelErrorKind::Overloaded], "{format:?} form {at}");
            assert_eq!(calls, 2, "{format:?} form {at}");
        }
    }
}

/// R9: the same errors after output end the call.
// proves: ANTHROPIC-49, CHAT-49, RESPONSES-49, GEMINI-49
#[tokio::test]
async fn late_stream_errors_end_the_call() {
    for format in Format::ALL {
        let whole = format.stream(&[Text(&["Hi", "<END>"])], End::Stop);
        let begun = &whole[..whole.find("<END>").unwrap()];
        let begun = &begun[..begun.rfind("data: ").unwrap()];
        for error in [
            "error: {\"error\":{\"message\":\"gone\"}}\n\n",
            "event: error\ndata: gone\n\n",
            "{\"error\":{\"message\":\"gone\"}}",
        ] {
            let stream = event_response(&format!("{begun}{error}"));
            let (response, notices, calls) = call_twice(format, stream).await;
            let message = response.unwrap_err().message;
            assert_eq!(
                message,
                "acme is overloaded or broken (it said: gone): try again later, or choose another model.",
                "{format:?}"
            );
            assert_eq!((notices, calls), (Vec::new(), 1), "{format:?}");
        }
    }
}

/// Each kind of error says what to do, and only what may pass is tried again.
// proves: ANTHROPIC-85, CHAT-85, RESPONSES-85, GEMINI-85
// proves: ANTHROPIC-86, CHAT-86, RESPONSES-86, GEMINI-86
#[tokio::test]
async fn errors_are_told_by_status_and_text() {
    use ModelErrorKind::{Auth, BadRequest, Overloaded, RateLimit};
    for format in Format::ALL {
        let unknown = format!(
            "{{\"error\":{{\"message\":\"model {} not found\"}}}}",
            format.model()
        );
        for (line, body, kind, advice) in [
            (
                "401 Unauthorized",
                "",
                Auth,
                "acme refuses the key: check ACME_KEY",
            ),
            (
                "403 Forbidden",
                r#"{"error":{"message":"no access"}}"#,
                Auth,
                "does not let this key use",
            ),
            (
                "402 Payment Required",
                "",
                BadRequest,
                "no credit left: add some",
            ),
            ("404 Not Found", &unknown, BadRequest, "choose another"),
            (
                "400 Bad Request",
                r#"{"error":{"message":"no"}}"#,
                BadRequest,
                "refuses the request (it said: no)",
            ),
        ] {
            let (response, notices, calls) =
                call_twice(format, error_response(line, "", body)).await;
            let error = response.unwrap_err();
            assert_eq!(error.kind, kind, "{format:?} {line}: {error}");
            assert!(error.message.contains(advice), "{format:?}: {error}");
            assert_eq!((notices, calls), (Vec::new(), 1), "{format:?} {line}");
        }
        for (line, kind) in [
            ("429 Too Many Requests", RateLimit),
            ("500 Internal Server Error", Overloaded),
            ("529 Overloaded", Overloaded),
        ] {
            let (response, notices, calls) = call_twice(format, error_response(line, "", "")).await;
            assert!(response.is_ok(), "{format:?} {line}: {response:?}");
            assert_eq!((notices[0].0, calls), (kind, 2), "{format:?} {line}");
        }
    }
}

// proves: ANTHROPIC-56, CHAT-56, RESPONSES-56, GEMINI-56
#[tokio::test]
async fn delay_of_the_provider_is_used_or_told() {
    let google = r#"{"error":{"code":429,"message":"Resource exhausted","details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"0.004s"}]}}"#;
    let words = r#"{"error":{"message":"Rate limit reached. Please try again in 3ms.","code":"rate_limit_exceeded"}}"#;
    let busy = "429 Too Many Requests";
    for format in Format::ALL {
        for (reply, expected) in [
            (error_response(busy, "retry-after-ms: 2\r\n", words), 2),
            (error_response(busy, "retry-after: 0.005\r\n", ""), 5),
            (error_response(busy, "", words), 3),
            (error_response(busy, "", google), 4),
            (event_response(&format!("error: {words}\n\n")), 3),
        ] {
            let (response, notices, _) = call_twice(format, reply).await;
            assert!(response.is_ok(), "{format:?}: {response:?}");
            let waits = notices.iter().map(|(_, wait)| wait.as_millis());
            assert_eq!(waits.collect::<Vec<_>>(), [expected], "{format:?}");
        }
        let long = error_response(busy, "retry-after: 3600\r\n", "");
        let (response, _, calls) = call_twice(format, long).await;
        let error = response.unwrap_err();
        assert!(error.message.contains("It asks to wait 3600 seconds"));
        assert_eq!((error.kind, calls), (ModelErrorKind::RateLimit, 1));
    }
}

/// A conversation that is too long: told by text, by a refusal without a body, within the stream, and by a response
/// without output in a full window.
// proves: ANTHROPIC-57, CHAT-57, RESPONSES-57, GEMINI-57
#[tokio::test]
async fn overflow_is_told_in_every_form() {
    let text =
        r#"{"error":{"message":"prompt is too long: 210000 tokens > 200000 maximum","code":400}}"#;
    for format in Format::ALL {
        for reply in [
            error_response("400 Bad Request", "", text),
            error_response("413 Payload Too Large", "", ""),
            event_response(&format!("data: {{\"type\":\"error\",{}\n\n", &text[1..])),
        ] {
            let (response, _, calls) = call_twice(format, reply).await;
            let error = response.unwrap_err();
            assert_eq!(
                error.kind,
                ModelErrorKind::ContextOverflow,
                "{format:?}: {error}"
            );
            assert_eq!(calls, 1, "{format:?}");
        }
        // "Rate limit" is none.
        let busy = r#"{"error":{"message":"Request too large: tokens per minute limit","code":"rate_limit_exceeded"}}"#;
        let (response, notices, _) =
            call_twice(format, error_response("429 Too Many Requests", "", busy)).await;
        assert!(response.is_ok(), "{format:?}");
        assert_eq!(notices[0].0, ModelErrorKind::RateLimit, "{format:?}");
        for (window, is_overflow) in [(100, true), (1000, false)] {
            let server = serve(vec![event_response(&format.stream(&[], End::Length))]).await;
            let name = format!("acme/{}", format.model());
            let facts = ModelOverride {
                context_window: Some(window),
                ..ModelOverride::default()
            };
            let registry = ModelRegistry::new(vec![provider(format, &server)])
                .with_overrides([(name.parse().unwrap(), facts)]);
            let model = registry.model(&name.parse().unwrap()).unwrap();
            let response = call_for_deltas(&*model, hello_request()).await.0;
            let kind = response.err().map(|error| error.kind);
            let expected = is_overflow.then_some(ModelErrorKind::ContextOverflow);
            assert_eq!(kind, expected, "{format:?} {window}");
        }
    }
}

// proves: ANTHROPIC-61, CHAT-61, RESPONSES-61, GEMINI-61
#[tokio::test]
async fn missing_feature_is_final() {
    let message = "tools param requires --jinja flag";
    let body = json!({"error": {"code": 500, "message": message, "type": "server_error"}});
    let reply = error_response("500 Internal Server Error", "", &body.to_string());
    for format in Format::ALL {
        let (response, notices, calls) = call_twice(format, reply.clone()).await;
        let error = response.unwrap_err();
        assert_eq!(error.kind, ModelErrorKind::BadRequest, "{format:?}");
        assert!(error.message.contains("change how the server is started"));
        assert_eq!((notices, calls), (Vec::new(), 1), "{format:?}");
    }
}

/// The status blames the request for what the model wrote.
// proves: ANTHROPIC-62, CHAT-62, RESPONSES-62, GEMINI-62
#[tokio::test]
async fn slip_of_the_model_is_tried_again() {
    let body = r#"{"error":{"message":"Failed to call a function.","type":"invalid_request_error","code":"tool_use_failed","failed_generation":"<function=read{"}}"#;
    for format in Format::ALL {
        for reply in [
            error_response("400 Bad Request", "", body),
            event_response(&format!("event: error\ndata: {body}\n\n")),
        ] {
            let (response, notices, calls) = call_twice(format, reply).await;
            assert!(response.is_ok(), "{format:?}: {response:?}");
            let kinds: Vec<_> = notices.iter().map(|(kind, _)| *kind).collect();
            assert_eq!(kinds, [ModelErrorKind::Protocol], "{format:?}");
            assert_eq!(calls, 2, "{format:?}");
        }
    }
}

// proves: ANTHROPIC-48, CHAT-48, RESPONSES-48, GEMINI-48
#[tokio::test]
async fn success_without_a_response_is_an_error() {
    for format in Format::ALL {
        for body in ["", ": ping\n\n", "data: [DONE]\n\n"] {
            let server = serve(vec![event_response(body)]).await;
            let model = server.model_with_retries(format.api(), format.model(), 0);
            let kind = call_error(&*model).await.kind;
            let is_known = matches!(kind, ModelErrorKind::Unfinished | ModelErrorKind::Protocol);
            assert!(is_known, "{format:?} {body:?}: {kind:?}");
        }
    }
}

// proves: ANTHROPIC-92, CHAT-92, RESPONSES-92, GEMINI-92
#[tokio::test]
async fn key_is_in_no_error() {
    for format in Format::ALL {
        for reply in [
            error_response("401 Unauthorized", "", "the key sk-test is not known"),
            event_response("error: {\"error\":{\"message\":\"sk-test is not known\"}}\n\n"),
            event_response(
                "data: {\"choices\": \"sk-test\", \"type\": \"sk-test\", \"candidates\": \"sk-test\"\n\n",
            ),
        ] {
            let server = serve(vec![reply]).await;
            let model = server.model_with_retries(format.api(), format.model(), 0);
            let error = call_error(&*model).await;
            assert!(!error.message.contains("sk-test"), "{format:?}: {error}");
        }
    }
}
