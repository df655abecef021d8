//! Tests failures within a stream.

use crate::{
    ANSWER,
    server::{call_error, call_for_deltas, chunked_response, event_response, hello_request, serve},
};
use turnery_engine::{ModelErrorKind, ModelStop};
use turnery_models::Api;

/// C-31.
// proves: C-31
// proves: CHAT-47
#[tokio::test]
async fn truncated_stream_is_an_error() {
    let bytes = chunked_response(ANSWER);
    // The blank line after [DONE] and the end of the chunk, "\r\n0\r\n\r\n": the response is complete before
    // them.
    let done = bytes.len() - "\n\r\n0\r\n\r\n".len();
    let server = serve((1..=done).map(|end| bytes[..end].to_vec()).collect()).await;
    let model = server.model_with_retries(Api::OpenAi, "m1", 0);
    for end in 1..=done {
        let kind = call_error(&*model).await.kind;
        assert_eq!(
            kind,
            ModelErrorKind::Network,
            "cut at {end}: a chunk is open"
        );
    }
}

/// LASH-25, C-31: the connection is fine, but the response has no terminal event.
// proves: LASH-25, C-31
// proves: CHAT-47
#[tokio::test]
async fn response_without_terminal_event_is_unfinished() {
    let reason =
        ANSWER.find("data: {\"model\":\"m1-0914\",\"choices\":[{\"index\":0,\"delta\":{},");
    let reason = reason.expect("the finish_reason");
    let ends: Vec<usize> = (0..=reason).step_by(7).chain([reason]).collect();
    let bodies = ends
        .iter()
        .map(|end| event_response(ANSWER.get(..*end).unwrap_or_default()));
    let server = serve(bodies.collect()).await;
    let model = server.model_with_retries(Api::OpenAi, "m1", 0);
    for end in ends {
        let kind = call_error(&*model).await.kind;
        assert_eq!(kind, ModelErrorKind::Unfinished, "cut at {end}");
    }
}

#[tokio::test]
async fn finish_reason_ends_a_response_without_done() {
    let body =
        "data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"},\"finish_reason\":\"length\"}]}\n\n";
    let server = serve(vec![
        event_response(body),
        event_response(&format!("{body}data: {{\"usa")),
    ])
    .await;
    let model = server.model_with_retries(Api::OpenAi, "m1", 0);
    let response = call_for_deltas(&*model, hello_request()).await.0.unwrap();
    assert_eq!((response.stop, response.usage), (ModelStop::Length, None));
    let error = call_error(&*model).await;
    assert_eq!(
        error.kind,
        ModelErrorKind::Unfinished,
        "what follows broke off"
    );
}

// proves: LASH-20
#[tokio::test]
async fn error_inside_the_stream_fails_the_call() {
    let server = serve(vec![event_response(
        "data: {\"error\":{\"code\":400,\"message\":\"the request exceeds the available context size\"}}\n\n",
    )])
    .await;
    let model = server.model(Api::OpenAi, "m1");
    let error = call_error(&*model).await;
    assert_eq!(
        (error.kind, error.status),
        (ModelErrorKind::ContextOverflow, Some(400))
    );
}

/// Quirks 43, 48 and 56: errors that come as chunks, in choices and as finish reasons.
// proves: CHAT-43, CHAT-48
#[tokio::test]
async fn errors_are_read_from_every_place() {
    let cases = [
        (
            r#"{"error":{"code":429,"message":"slow down"}}"#,
            ModelErrorKind::RateLimit,
        ),
        (
            r#"{"error":{"code":"rate_limit_exceeded","message":"slow down"}}"#,
            ModelErrorKind::RateLimit,
        ),
        (
            r#"{"choices":[{"delta":{"content":""},"finish_reason":"error","error":{"code":429,"message":"slow down"}}]}"#,
            ModelErrorKind::RateLimit,
        ),
        (
            r#"{"object":"error","type":"rate_limit_error","message":"slow down"}"#,
            ModelErrorKind::RateLimit,
        ),
        (
            r#"{"error":{"code":503,"message":"overloaded"},"choices":[]}"#,
            ModelErrorKind::Overloaded,
        ),
        (
            r#"{"choices":[{"delta":{},"finish_reason":"error"}]}"#,
            ModelErrorKind::Overloaded,
        ),
        (
            r#"{"choices":[{"delta":{"content":"Hi"},"finish_reason":"network_error"}]}"#,
            ModelErrorKind::Overloaded,
        ),
        (
            r#"{"choices":[{"delta":{},"finish_reason":"insufficient_system_resource"}]}"#,
            ModelErrorKind::Overloaded,
        ),
        (
            r#"{"choices":[{"delta":{},"finish_reason":"abort"}]}"#,
            ModelErrorKind::Overloaded,
        ),
        // No answer at all.
        ("[DONE]", ModelErrorKind::Unfinished),
        (
            r#"{"choices":[{"delta":{"role":"assistant"}}]}"#,
            ModelErrorKind::Unfinished,
        ),
        (
            r#"{"choices":[{"delta":{"content":5}}]}"#,
            ModelErrorKind::Protocol,
        ),
    ];
    let replies = cases
        .iter()
        .map(|(event, _)| event_response(&format!("data: {event}\n\ndata: [DONE]\n\n")));
    let server = serve(replies.collect()).await;
    let model = server.model_with_retries(Api::OpenAi, "m1", 0);
    for (event, kind) in cases {
        assert_eq!(call_error(&*model).await.kind, kind, "{event}");
    }
}

/// Quirk 52: after its end, an answer is complete, whatever else the server says; but not if that is cut short.
#[tokio::test]
async fn unreadable_event_after_the_end_is_ignored() {
    let end = r#"data: {"choices":[{"delta":{"content":"Hi"},"finish_reason":"stop"}]}"#;
    let server = serve(vec![
        event_response(&format!(
            "{end}\n\ndata: {{\"choices\":7,\"model\":[]}}\n\ndata: [DONE]\n\n"
        )),
        event_response(&format!("{end}\n\ndata: {{\"choices\":7,\"mo")),
    ])
    .await;
    let model = server.model_with_retries(Api::OpenAi, "m1", 0);
    let response = call_for_deltas(&*model, hello_request()).await.0.unwrap();
    assert_eq!(response.stop, ModelStop::EndTurn);
    assert_eq!(call_error(&*model).await.kind, ModelErrorKind::Unfinished);
}
