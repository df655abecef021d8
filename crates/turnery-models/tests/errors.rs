//! Tests the messages of failed calls, retries, and that dropped calls close their connection.

mod server;

use server::{
    Reply, call_error, call_for_deltas, call_for_events, error_response, event_response,
    hello_request, serve, serve_replies, text_delta,
};
use std::time::{Duration, Instant};
use turnery_engine::{ModelDelta, ModelError, ModelErrorKind, ModelStop};
use turnery_models::{
    Api, ModelEvent, ModelEventSender, ModelName, ModelOverride, ModelRegistry, ProviderConfig,
};

const OK_STREAM: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";

/// Returns the error of a call without retries to which the server answers with these bytes.
async fn error_of(reply: Vec<u8>) -> ModelError {
    let server = serve(vec![reply]).await;
    call_error(&*server.model_with_retries(Api::OpenAi, "m1", 0)).await
}

#[tokio::test]
async fn wrong_key_error_names_its_variable_not_the_key() {
    let error = error_of(error_response(
        "401 Unauthorized",
        "",
        r#"{"error":{"message":"bad key sk-test"}}"#,
    ))
    .await;
    assert_eq!(error.kind, ModelErrorKind::Auth);
    assert_eq!(error.status, Some(401));
    assert_eq!(
        error.message,
        "acme refuses the key: check ACME_KEY (it said: bad key [key])."
    );
}

// proves: G-11, LASH-20
#[tokio::test]
async fn errors_by_status_and_text() {
    use ModelErrorKind::{Auth, BadRequest, ContextOverflow, Overloaded, RateLimit};
    let cases = [
        (
            "404 Not Found",
            r#"{"error":"model 'm1' not found"}"#,
            BadRequest,
            "acme has no model called \"m1\", or does not let you use it (it said: model 'm1' not found): choose another model.",
        ),
        (
            "404 Not Found",
            "404 page not found",
            BadRequest,
            "There is nothing at http://127.0.0.1",
        ),
        (
            "400 Bad Request",
            r#"{"error":{"code":"context_length_exceeded","message":"too long"}}"#,
            ContextOverflow,
            "The conversation is longer than m1 can take in",
        ),
        (
            "400 Bad Request",
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 9 > 8"}}"#,
            ContextOverflow,
            "The conversation is longer",
        ),
        (
            "400 Bad Request",
            r#"{"error":{"message":"no"}}"#,
            BadRequest,
            "acme refuses the request (it said: no): change what it objects to, or choose another model.",
        ),
        (
            "429 Too Many Requests",
            r#"{"error":{"code":"insufficient_quota","message":"pay"}}"#,
            BadRequest,
            "The account at acme has no credit left",
        ),
        (
            "402 Payment Required",
            r#"{"error":{"message":"This request requires more credits","code":402}}"#,
            BadRequest,
            "The account at acme has no credit left",
        ),
        (
            "403 Forbidden",
            r#"{"error":{"message":"Quota exceeded for this project"}}"#,
            BadRequest,
            "The account at acme has no credit left",
        ),
        (
            "400 Bad Request",
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the Anthropic API."}}"#,
            BadRequest,
            "The account at acme has no credit left",
        ),
        (
            "403 Forbidden",
            r#"{"type":"error","error":{"type":"billing_error","message":"pay"}}"#,
            BadRequest,
            "The account at acme has no credit left",
        ),
        (
            "429 Too Many Requests",
            r#"[{"error":{"code":429,"message":"You exceeded your current quota, please check your plan and billing details.","status":"RESOURCE_EXHAUSTED"}}]"#,
            RateLimit,
            "acme limits the rate of requests (it said: You exceeded your current quota, please check your plan and billing details.): try again later, or choose another model.",
        ),
        (
            "403 Forbidden",
            r#"{"error":{"message":"no access to m1"}}"#,
            Auth,
            "acme does not let this key use m1",
        ),
        (
            "403 Forbidden",
            "<!DOCTYPE html><html><title>Blocked</title></html>",
            BadRequest,
            "acme refuses the request (it answered with a page for browsers): change what it objects to, or choose another model.",
        ),
        (
            "400 Bad Request",
            r#"[{"error":{"code":400,"status":"INVALID_ARGUMENT","message":"API key not valid. Please pass a valid API key."}}]"#,
            Auth,
            "acme refuses the key",
        ),
        (
            "500 Internal Server Error",
            "",
            Overloaded,
            "acme is overloaded or broken (it did not say why): try again later, or choose another model.",
        ),
        (
            "529 Overloaded",
            "",
            Overloaded,
            "acme is overloaded or broken (it did not say why): try again later, or choose another model.",
        ),
    ];
    for (line, body, kind, start) in cases {
        let error = error_of(error_response(line, "", body)).await;
        assert_eq!(error.kind, kind, "{line} {body}");
        assert!(error.message.starts_with(start), "{}", error.message);
    }
}

#[tokio::test]
async fn long_provider_texts_are_shortened() {
    let error = error_of(error_response("400 Bad Request", "", &"x".repeat(100_000))).await;
    assert_eq!(
        error.message,
        format!(
            "acme refuses the request (it said: {}…): change what it objects to, or choose another model.",
            "x".repeat(300)
        )
    );
}

/// UP-8.
// proves: R9, UP-8
#[tokio::test]
async fn transient_errors_are_retried() {
    let server = serve(vec![
        error_response("429 Too Many Requests", "retry-after-ms: 2\r\n", ""),
        error_response("529 Overloaded", "", ""),
        Vec::new(),
        event_response(OK_STREAM),
    ])
    .await;
    let model = server.model(Api::OpenAi, "m1");
    let began = Instant::now();
    let (response, events) = call_for_events(&*model, hello_request()).await;
    let took = began.elapsed();
    assert_eq!(response.unwrap().raw_stop.as_deref(), Some("stop"));
    assert_eq!(server.bodies().len(), 4);
    let waits = events.iter().filter_map(|event| match event {
        ModelEvent::Retry(retry) => Some(retry.wait),
        ModelEvent::Silence(_) | ModelEvent::Delta(_) => None,
    });
    let waits: Vec<Duration> = waits.collect();
    assert_eq!(waits[0], Duration::from_millis(2), "the provider's");
    assert!(took >= waits.iter().sum(), "{took:?} for {waits:?}");
    // Each failed attempt is reported before the next one, and all of them before the response.
    let events: Vec<_> = events
        .into_iter()
        .map(|event| match event {
            ModelEvent::Silence(silent) => panic!("{silent:?}"),
            ModelEvent::Retry(retry) => (retry.attempt, Some(retry.error.kind)),
            ModelEvent::Delta(delta) => {
                assert_eq!(delta, text_delta(0, "Hi"));
                (4, None)
            }
        })
        .collect();
    let expected = [
        (1, Some(ModelErrorKind::RateLimit)),
        (2, Some(ModelErrorKind::Overloaded)),
        (3, Some(ModelErrorKind::Network)),
        (4, None),
    ];
    assert_eq!(events, expected);
}

#[tokio::test]
async fn too_long_provider_wait_ends_the_call() {
    let error = error_of(error_response(
        "429 Too Many Requests",
        "Retry-After: 3600\r\n",
        "",
    ))
    .await;
    assert_eq!(error.kind, ModelErrorKind::RateLimit);
    assert_eq!(error.retry_after, Some(Duration::from_secs(3600)));
    assert!(
        error.message.contains("It asks to wait 3600 seconds"),
        "{}",
        error.message
    );
}

/// A stream that breaks off after anything of it was shown is not made again: text, reasoning or a part of a call.
// proves: R9
#[tokio::test]
async fn no_retry_after_the_first_delta() {
    let thought = |text: &str| ModelDelta::Thinking {
        block: 0,
        text: text.to_owned(),
    };
    let args = ModelDelta::ToolCallArgs {
        block: 0,
        name: "read".to_owned(),
        fragment: "{".to_owned(),
    };
    let call =
        r#"{"tool_calls":[{"index":0,"id":"c","function":{"name":"read","arguments":"{"}}]}"#;
    let choice = |delta: &str| format!("data: {{\"choices\":[{{\"delta\":{delta}}}]}}\n\n");
    let block = concat!(
        r#"data: {"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":""}}"#,
        "\n\n",
        r#"data: {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"Hm"}}"#,
        "\n\n"
    );
    for (api, cut, delta) in [
        (
            Api::OpenAi,
            choice(r#"{"content":"Hi"}"#),
            text_delta(0, "Hi"),
        ),
        (
            Api::OpenAi,
            choice(r#"{"reasoning_content":"Hm"}"#),
            thought("Hm"),
        ),
        (Api::OpenAi, choice(call), args),
        (Api::Anthropic, block.to_owned(), thought("Hm")),
    ] {
        let server = serve(vec![event_response(&cut), event_response(OK_STREAM)]).await;
        let model = server.model(api, "m1");
        let (response, events) = call_for_events(&*model, hello_request()).await;
        assert_eq!(
            response.unwrap_err().kind,
            ModelErrorKind::Unfinished,
            "{cut}"
        );
        assert_eq!(events, [ModelEvent::Delta(delta)]);
        assert_eq!(server.bodies().len(), 1, "{cut}");
    }
}

#[tokio::test]
async fn unreachable_endpoint_is_named() {
    let provider = ProviderConfig::new("ollama", Api::OpenAi, "http://127.0.0.1:1/v1");
    // Even with retries enabled, a local server that does not run is not retried.
    let catalogue = ModelRegistry::new(vec![provider]);
    let model = catalogue.model(&"ollama/m1".parse().unwrap()).unwrap();
    let error = call_error(&*model).await;
    assert_eq!(error.kind, ModelErrorKind::Network);
    assert!(
        error
            .message
            .starts_with("Could not reach ollama at http://127.0.0.1:1/v1 ("),
        "{}",
        error.message
    );
    assert!(
        error
            .message
            .ends_with("or set OLLAMA_HOST to its address."),
        "{}",
        error.message
    );
}

#[tokio::test]
async fn provider_header_decides_about_retry() {
    let no = "x-should-retry: false\r\n";
    let server = serve(vec![
        error_response("529 Overloaded", no, ""),
        event_response(OK_STREAM),
    ])
    .await;
    let model = server.model(Api::OpenAi, "m1");
    let error = call_error(&*model).await;
    assert_eq!(error.kind, ModelErrorKind::Overloaded);
    assert_eq!(server.bodies().len(), 1);

    let yes = "x-should-retry: true\r\n";
    let server = serve(vec![
        error_response("409 Conflict", yes, ""),
        event_response(OK_STREAM),
    ])
    .await;
    let model = server.model(Api::OpenAi, "m1");
    assert!(call_for_deltas(&*model, hello_request()).await.0.is_ok());
    assert_eq!(server.bodies().len(), 2);
}

/// The key appears in no text, whichever part of a response repeats it.
#[tokio::test]
async fn key_is_masked_in_places_and_in_broken_events() {
    let moved = "location: http://h/?key=sk%2Dtest\r\n";
    let error = error_of(error_response("301 Moved Permanently", moved, "")).await;
    assert!(
        error.message.contains("to http://h/?key=[key]:"),
        "{error:?}"
    );
    let broken = "data: {\"choices\": \"sk-\u{ad}test\"}\n\n";
    let error = error_of(event_response(broken)).await;
    assert!(error.message.contains("\"[key]\""), "{error:?}");
}

/// A followed redirect would send the key and the conversation to any host that a server names.
#[tokio::test]
async fn redirect_is_reported_and_not_followed() {
    let elsewhere = serve(vec![event_response(OK_STREAM)]).await;
    let location = format!("location: {}/v1/chat/completions\r\n", elsewhere.base_url);
    for line in [
        "301 Moved Permanently",
        "307 Temporary Redirect",
        "308 Permanent Redirect",
    ] {
        let server = serve(vec![
            error_response(line, &location, ""),
            event_response(OK_STREAM),
        ])
        .await;
        let model = server.model(Api::OpenAi, "m1");
        let error = call_error(&*model).await;
        assert_eq!(
            error.message,
            format!(
                "acme has moved from {0}/v1 to {1}/v1/chat/completions: set base_url of the provider acme in the configuration.",
                server.base_url, elsewhere.base_url
            )
        );
        assert_eq!(server.bodies().len(), 1, "{line}");
    }
    assert_eq!(elsewhere.bodies().len(), 0);
}

#[tokio::test]
async fn missing_key_fails_calls_and_hides_models() {
    let catalogue = ModelRegistry::new(ProviderConfig::standard_from_env(&|_| None));
    let model = catalogue.model(&"openai/gpt-5".parse().unwrap()).unwrap();
    let error = call_error(&*model).await;
    assert_eq!(error.kind, ModelErrorKind::Auth);
    assert_eq!(
        error.message,
        "There is no key for openai: set OPENAI_API_KEY."
    );
    let names: Vec<String> = catalogue
        .list_models()
        .iter()
        .map(|info| info.name.to_string())
        .collect();
    assert_eq!(names, ["offline"]);
}

// proves: LASH-90
#[tokio::test]
async fn silence_and_drop_both_close_the_socket() {
    let first = event_response("data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"}}]}\n\n");
    let held = || Reply {
        writes: vec![first.clone()],
        is_held: true,
    };
    let server = serve_replies(vec![held(), held()]).await;
    let idle = Duration::from_secs(300);
    let begin = async || {
        let model = server.model_with_idle_limit(Api::OpenAi, "m1", 0, idle);
        let (sender, mut receiver) = ModelEventSender::new(8);
        let running = tokio::spawn(async move { model.call(hello_request(), sender).await });
        let hi = ModelEvent::Delta(text_delta(0, "Hi"));
        assert_eq!(receiver.recv().await, Some(hi));
        (running, receiver)
    };
    let (running, _receiver) = begin().await;
    tokio::time::pause();
    tokio::time::advance(idle).await;
    let response = running.await.unwrap();
    assert_eq!(response.unwrap_err().kind, ModelErrorKind::Timeout);
    tokio::time::resume();
    server.closed.notified().await;

    let (running, _receiver) = begin().await;
    running.abort();
    server.closed.notified().await;
    assert!(running.await.unwrap_err().is_cancelled());
}

#[tokio::test]
async fn html_instead_of_events_is_explained() {
    let page = || error_response("200 OK", "", r#"{"choices":[]}"#);
    let server = serve(vec![page(), page()]).await;
    let model = server.model_with_retries(Api::OpenAi, "m1", 1);
    let error = call_error(&*model).await;
    // A retry would return the same page.
    assert_eq!(server.requests.lock().expect("no panic").len(), 1);
    assert_eq!(error.kind, ModelErrorKind::Protocol);
    assert!(
        error
            .message
            .contains("did not answer with a stream of events"),
        "{}",
        error.message
    );
}

/// A response without output that reached the output limit in a window that is almost full means that the conversation
/// is too long.
// proves: UP-34, LASH-17, LASH-20
#[tokio::test]
async fn empty_response_in_full_window_is_context_overflow() {
    for (tokens, is_overflow) in [(95_000, true), (94_000, false)] {
        let stream = format!(
            "data: {{\"choices\":[{{\"delta\":{{}},\"finish_reason\":\"length\"}}],\"usage\":{{\"prompt_tokens\":{tokens},\"completion_tokens\":0}}}}\n\ndata: [DONE]\n\n"
        );
        let server = serve(vec![event_response(&stream)]).await;
        let provider = ProviderConfig {
            key: Some("sk-test".to_owned().into()),
            ..ProviderConfig::new("acme", Api::OpenAi, format!("{}/v1", server.base_url))
        };
        let name: ModelName = "acme/m1".parse().unwrap();
        let window = ModelOverride {
            context_window: Some(100_000),
            ..ModelOverride::default()
        };
        let registry = ModelRegistry::new(vec![provider]).with_overrides([(name.clone(), window)]);
        let model = registry.model(&name).unwrap();
        let (response, _) = call_for_deltas(&*model, hello_request()).await;
        match response {
            Err(error) => {
                assert!(is_overflow, "{tokens}: {error:?}");
                assert_eq!(error.kind, ModelErrorKind::ContextOverflow);
            }
            Ok(response) => {
                assert!(!is_overflow, "{tokens}: {response:?}");
                assert_eq!(response.stop, ModelStop::Length);
            }
        }
    }
}
