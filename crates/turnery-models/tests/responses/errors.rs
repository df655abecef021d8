//! Tests errors within streams.

use crate::{
    ANSWER, answer, delta_event,
    server::{
        call_error, call_for_deltas, event_response, hello_request, serve, text_delta,
        without_fingerprint,
    },
    stream,
};
use serde_json::{Value, json};
use turnery_engine::{ModelError, ModelErrorKind};
use turnery_models::Api;

async fn error_of(event: Value) -> ModelError {
    error_of_stream(&stream(&[event])).await
}

async fn error_of_stream(stream: &str) -> ModelError {
    let server = serve(vec![event_response(stream)]).await;
    call_error(&*server.model_with_retries(Api::OpenAiResponses, "m1", 0)).await
}

/// The fields of an `error` event stand at its top level or in an object; a proxy may send the object alone.
// proves: LASH-20
#[tokio::test]
async fn error_events_of_every_shape_fail_the_call() {
    let details = json!({"code": "rate_limit_exceeded", "message": "slow down", "param": null});
    let mut flat = details.clone();
    flat["type"] = json!("error");
    for event in [
        flat,
        json!({"type": "error", "error": details}),
        json!({"error": details}),
        json!({"type": "response.failed", "response": {"status": "failed", "error": details}}),
        json!({"type": "response.completed", "response": {"status": "failed", "error": details}}),
    ] {
        let error = error_of(event.clone()).await;
        assert_eq!(error.kind, ModelErrorKind::RateLimit, "{event}");
        assert!(error.message.contains("it said: slow down"), "{error}");
    }
}

// proves: RESPONSES-43
#[tokio::test]
async fn failed_response_names_what_is_wrong() {
    let failed = |error: Value| json!({"type": "response.failed", "response": {"error": error}});
    let coded = |code: &str| failed(json!({"code": code, "message": "why"}));
    for (event, kind) in [
        (coded("server_error"), ModelErrorKind::Overloaded),
        (
            coded("context_length_exceeded"),
            ModelErrorKind::ContextOverflow,
        ),
        (coded("insufficient_quota"), ModelErrorKind::BadRequest),
        // The request itself is at fault: it is not sent again.
        (coded("invalid_prompt"), ModelErrorKind::BadRequest),
        (coded("image_too_large"), ModelErrorKind::BadRequest),
        (coded("bio_policy"), ModelErrorKind::BadRequest),
        (coded("invalid_api_key"), ModelErrorKind::Auth),
        (failed(json!(null)), ModelErrorKind::Overloaded),
        (
            json!({"type": "response.failed"}),
            ModelErrorKind::Overloaded,
        ),
        (
            json!({"type": "response.completed", "response": {"status": "cancelled"}}),
            ModelErrorKind::Overloaded,
        ),
    ] {
        assert_eq!(error_of(event.clone()).await.kind, kind, "{event}");
        // OpenAI also names the frame of an error.
        let error = &event["response"]["error"];
        if error.is_object() {
            let event = json!({"type": "error", "error": error});
            let stream = format!("event: error\ndata: {event}\n\n");
            assert_eq!(error_of_stream(&stream).await.kind, kind, "{stream}");
        }
    }
}

/// Quirk 49.
// proves: R9, TURN-53
// proves: RESPONSES-49
#[tokio::test]
async fn mid_stream_error_is_retried_only_before_text() {
    let error = json!({"type": "error", "code": "server_error", "message": "Oops"});
    let text = delta_event("output_text", 0, "Hi");
    let server = serve(vec![
        event_response(&stream(std::slice::from_ref(&error))),
        event_response(ANSWER),
        event_response(&stream(&[text, error])),
        event_response(ANSWER),
    ])
    .await;
    let model = server.model(Api::OpenAiResponses, "m1");
    let (response, _) = call_for_deltas(&*model, hello_request()).await;
    assert_eq!(response.map(without_fingerprint), Ok(answer()));
    let (response, streamed) = call_for_deltas(&*model, hello_request()).await;
    assert_eq!(
        response.expect_err("an error").kind,
        ModelErrorKind::Overloaded
    );
    assert_eq!(streamed, [text_delta(0, "Hi")]);
    assert_eq!(server.bodies().len(), 3, "the last reply was not fetched");
}

/// A response that breaks the format is not taken for one that ended.
#[tokio::test]
async fn malformed_event_is_an_error() {
    for data in [
        "{",
        "7",
        "{\"type\":\"response.output_text.delta\",\"delta\":7}",
        "{\"type\":\"response.completed\",\"response\":7}",
        "{\"type\":\"response.output_item.done\",\"item\":{\"type\":\"message\",\"content\":7}}",
    ] {
        let body = format!("data: {data}\n\n{}", stream(&[crate::completed()]));
        let server = serve(vec![event_response(&body)]).await;
        let model = server.model_with_retries(Api::OpenAiResponses, "m1", 0);
        let error = call_error(&*model).await;
        assert_eq!(error.kind, ModelErrorKind::Protocol, "{data}");
    }
}
