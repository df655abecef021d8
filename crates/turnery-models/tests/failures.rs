//! Tests failures of streams, what is tried again and after which delay, and the settings of the transport.

mod server;

use serde_json::json;
use server::{
    ModelServer, call_error, call_for_deltas, call_for_events, error_response, event_response,
    hello_request, serve,
};
use std::time::Duration;
use turnery_engine::{ModelError, ModelErrorKind, Response};
use turnery_models::{
    Api, CallLimits, ModelEvent, ModelName, ModelOverride, ModelRegistry, ProviderConfig,
    RetryPolicy,
};

const OK_STREAM: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";

/// Attempts that were told to the client: kind of the error, and the delay.
fn notices(events: &[ModelEvent]) -> Vec<(ModelErrorKind, Duration)> {
    let notice = |event: &ModelEvent| match event {
        ModelEvent::Retry(retry) => Some((retry.error.kind, retry.wait)),
        ModelEvent::Delta(_) | ModelEvent::Silence(_) => None,
    };
    events.iter().filter_map(notice).collect()
}

/// Calls a model to which the server first answers with `first`, and then with a response.
async fn call_twice(
    api: Api,
    first: Vec<u8>,
) -> (Result<Response, ModelError>, Vec<ModelEvent>, usize) {
    let server = serve(vec![first, event_response(OK_STREAM)]).await;
    let model = server.model(api, "m1");
    let (response, events) = call_for_events(&*model, hello_request()).await;
    let calls = server.bodies().len();
    (response, events, calls)
}

/// Quirk 49: errors in every form of a stream are errors with their text; before the first output they are tried again,
/// and the client is told.
#[tokio::test]
async fn stream_errors_in_every_form_are_tried_again() {
    let forms = [
        event_response("error: {\"error\":{\"message\":\"gone\",\"code\":502}}\n\n"),
        event_response("event: error\ndata: gone\n\n"),
        event_response("event: error\ndata: {\"message\":\"gone\"}\n\n"),
        event_response("{\"error\":{\"message\":\"gone\"}}"),
        event_response("{\n  \"error\": {\n    \"message\": \"gone\"\n  }\n}\n"),
        event_response(": ping\n\n{\"error\":\"gone\"}\n\n"),
        error_response("200 OK", "", "{\"error\":{\"message\":\"gone\"}}"),
    ];
    for (at, form) in forms.into_iter().enumerate() {
        let (response, events, calls) = call_twice(Api::OpenAi, form).await;
        assert!(response.is_ok(), "form {at}: {response:?}");
        let kinds: Vec<_> = notices(&events).iter().map(|(kind, _)| *kind).collect();
        assert_eq!(
            (kinds.as_slice(), calls),
            ([ModelErrorKind::Overloaded].as_slice(), 2),
            "form {at}"
        );
        let told = events.iter().any(|event| {
            matches!(event, ModelEvent::Retry(retry) if retry.error.message.contains("(it said: gone)"))
        });
        assert!(told, "form {at}: {events:?}");
    }
}

/// Quirk 62: a call of the model that the server cannot read is the model's slip, although the status says that the
/// request is bad.
#[tokio::test]
async fn slips_of_the_model_are_tried_again() {
    let groq = r#"{"error":{"message":"Failed to call a function. Please adjust your prompt.","type":"invalid_request_error","code":"tool_use_failed","failed_generation":"<function=read{"}}"#;
    let router = "data: {\"error\":{\"code\":400,\"message\":\"Provider returned error\",\"metadata\":{\"raw\":\"malformed tool call\"}},\"choices\":[]}\n\n";
    for first in [
        error_response("400 Bad Request", "", groq),
        event_response(&format!("error: {groq}\n\n")),
        event_response(&router.replace("data: ", "event: error\ndata: ")),
    ] {
        let (response, events, calls) = call_twice(Api::OpenAi, first).await;
        assert!(response.is_ok(), "{response:?}");
        let kinds: Vec<_> = notices(&events).iter().map(|(kind, _)| *kind).collect();
        assert_eq!(
            (kinds.as_slice(), calls),
            ([ModelErrorKind::Protocol].as_slice(), 2)
        );
    }
    let server = serve(vec![error_response("400 Bad Request", "", groq); 2]).await;
    let error = call_error(&*server.model_with_retries(Api::OpenAi, "m1", 1)).await;
    assert_eq!(
        error.message,
        "m1 wrote a tool call that acme cannot read (it said: Failed to call a function. Please adjust your prompt.): try again, or choose another model (2 attempts)."
    );
}

/// Quirk 61: a server that lacks a feature lacks it at the next attempt too.
#[tokio::test]
async fn missing_features_are_final_and_say_what_to_do() {
    for (line, message) in [
        (
            "500 Internal Server Error",
            "tools param requires --jinja flag",
        ),
        (
            "500 Internal Server Error",
            "image input is not supported - hint: if this is unexpected, you may need to provide the mmproj",
        ),
        ("501 Not Implemented", "This server does not do that"),
    ] {
        let body = json!({"error": {"code": 500, "message": message, "type": "server_error"}});
        let reply = error_response(line, "", &body.to_string());
        let (response, events, calls) = call_twice(Api::OpenAi, reply).await;
        let error = response.unwrap_err();
        assert_eq!(error.kind, ModelErrorKind::BadRequest, "{message}");
        assert!(
            error.message.contains(
                "lacks a feature that the request needs: change how the server is started"
            ),
            "{error:?}"
        );
        assert_eq!((events.len(), calls), (0, 1), "{message}");
    }
}

/// Quirk 56: delays in headers, in the body and in words, used and told.
#[tokio::test]
async fn delays_are_taken_from_headers_bodies_and_words() {
    let google = r#"{"error":{"code":429,"message":"Resource exhausted","details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"0.004s"}]}}"#;
    let words = r#"{"error":{"message":"Rate limit reached. Please try again in 3ms.","type":"tokens","code":"rate_limit_exceeded"}}"#;
    let busy = "429 Too Many Requests";
    for (reply, expected) in [
        (error_response(busy, "retry-after-ms: 2\r\n", words), 2),
        (error_response(busy, "", words), 3),
        (error_response(busy, "", google), 4),
        (
            error_response("503 Service Unavailable", "retry-after: 0.005\r\n", ""),
            5,
        ),
        // The same within a stream.
        (event_response(&format!("error: {words}\n\n")), 3),
    ] {
        let (response, events, _) = call_twice(Api::OpenAi, reply).await;
        assert!(response.is_ok(), "{response:?}");
        let waits: Vec<_> = notices(&events)
            .iter()
            .map(|(_, wait)| wait.as_millis())
            .collect();
        assert_eq!(waits, [expected]);
    }
}

/// A long delay is told instead of waited for.
#[tokio::test]
async fn long_delay_in_words_ends_the_call() {
    let words = r#"{"error":{"message":"Rate limit reached on tokens per day (TPD). Please try again in 6h0m0s.","code":"rate_limit_exceeded"}}"#;
    let reply = error_response("429 Too Many Requests", "", words);
    let (response, events, calls) = call_twice(Api::OpenAi, reply).await;
    let error = response.unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::RateLimit);
    assert!(
        error.message.ends_with(
            "It asks to wait 21600 seconds: try again after that, or choose another model."
        ),
        "{}",
        error.message
    );
    assert_eq!((events.len(), calls), (0, 1));
}

/// Quirk 57: a refusal without a body most often means that the conversation is too long.
#[tokio::test]
async fn refusals_without_a_body_count_as_overflow() {
    for line in ["400 Bad Request", "413 Payload Too Large"] {
        let (response, _, calls) = call_twice(Api::OpenAi, error_response(line, "", "")).await;
        let error = response.unwrap_err();
        assert_eq!(
            (error.kind, calls),
            (ModelErrorKind::ContextOverflow, 1),
            "{line}"
        );
        assert!(
            error.message.contains("longer than m1 can take in"),
            "{}",
            error.message
        );
    }
}

/// Errors that need an action of the user name it.
#[tokio::test]
async fn errors_name_what_to_do() {
    let deployment = r#"{"error":{"code":"DeploymentNotFound","message":"The API deployment for this resource does not exist."}}"#;
    let region = r#"{"error":{"code":"unsupported_country_region_territory","message":"Country, region, or territory not supported"}}"#;
    for (line, body, kind, expected) in [
        (
            "404 Not Found",
            deployment,
            ModelErrorKind::BadRequest,
            "name the deployment instead of the model, or set base_url of the provider acme in the configuration",
        ),
        (
            "403 Forbidden",
            region,
            ModelErrorKind::BadRequest,
            "does not serve the region that you call from: choose another provider",
        ),
        (
            "401 Unauthorized",
            "",
            ModelErrorKind::Auth,
            "acme refuses the key: check ACME_KEY",
        ),
        (
            "402 Payment Required",
            "",
            ModelErrorKind::BadRequest,
            "has no credit left: add some, or choose another provider",
        ),
    ] {
        let (response, _, calls) = call_twice(Api::OpenAi, error_response(line, "", body)).await;
        let error = response.unwrap_err();
        assert_eq!((error.kind, calls), (kind, 1), "{line}");
        assert!(error.message.contains(expected), "{}", error.message);
    }
}

/// Quirk 57, silent overflow: servers that cut the conversation to the window, and z.ai's stop reason. A response with
/// output is not one.
#[tokio::test]
async fn silent_overflow_is_context_overflow() {
    let stream = |content: &str, finish: &str, tokens: u32| {
        format!(
            "data: {{\"choices\":[{{\"delta\":{{{content}}},\"finish_reason\":\"{finish}\"}}],\"usage\":{{\"prompt_tokens\":{tokens},\"completion_tokens\":0}}}}\n\ndata: [DONE]\n\n"
        )
    };
    let text = "\"content\":\"Hi\"";
    for (stream, is_overflow) in [
        (stream("", "stop", 99_999), true),
        (stream("", "length", 95_000), true),
        (stream("", "stop", 94_000), false),
        (stream("", "model_context_window_exceeded", 0), true),
        (stream("", "content_filter", 99_999), false),
        (stream(text, "stop", 99_999), false),
        (stream(text, "model_context_window_exceeded", 99_999), false),
    ] {
        let server = serve(vec![event_response(&stream)]).await;
        let provider = ProviderConfig::new("acme", Api::OpenAi, format!("{}/v1", server.base_url));
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
                assert_eq!(
                    (error.kind, is_overflow),
                    (ModelErrorKind::ContextOverflow, true),
                    "{stream}"
                );
            }
            Ok(_) => assert!(!is_overflow, "{stream}"),
        }
    }
}

/// A URL that cannot be called is a mistake in the settings: nothing is tried again.
#[tokio::test]
async fn bad_url_scheme_names_the_setting() {
    for (url, why) in [
        (
            "localhost:8080/v1",
            "it must begin with http:// or https://",
        ),
        ("ftp://h/v1", "it must begin with http:// or https://"),
        (
            "hunter2:hunter2@h:8080/v1",
            "it must begin with http:// or https://",
        ),
        ("http://", "empty host"),
    ] {
        let provider = ProviderConfig::new("acme", Api::OpenAi, url);
        let model = ModelRegistry::new(vec![provider]).model(&"acme/m1".parse().unwrap());
        let (response, events) = call_for_events(&*model.unwrap(), hello_request()).await;
        let error = response.unwrap_err();
        assert_eq!(error.kind, ModelErrorKind::BadRequest);
        assert!(error.message.contains(&format!("cannot be called ({why}): set base_url of the provider acme in the configuration to something like")), "{}", error.message);
        assert!(!error.message.contains("hunter2"), "{}", error.message);
        assert_eq!(events, []);
    }
}

fn provider_with_headers(server: &ModelServer, headers: &[(&str, &str)]) -> ProviderConfig {
    let pair = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned().into());
    ProviderConfig {
        key: Some("sk-test".to_owned().into()),
        headers: headers.iter().map(pair).collect(),
        ..ProviderConfig::new("acme", Api::OpenAi, format!("{}/v1", server.base_url))
    }
}

/// Headers of the configuration are sent, replace the one for the key, and never appear in an error.
#[tokio::test]
async fn configured_headers_are_sent_and_masked() {
    let server = serve(vec![
        event_response(OK_STREAM),
        error_response("403 Forbidden", "", "the token gateway-s3cret is not known"),
    ])
    .await;
    let headers = [
        ("X-Team", "blue"),
        ("authorization", "Basic gateway-s3cret"),
    ];
    let provider = provider_with_headers(&server, &headers);
    let registry = ModelRegistry::new(vec![provider]);
    let model = registry.model(&"acme/m1".parse().unwrap()).unwrap();
    call_for_deltas(&*model, hello_request()).await.0.unwrap();
    {
        let requests = server.requests.lock().unwrap();
        let head = requests[0].0.to_ascii_lowercase();
        assert!(head.contains("x-team: blue"), "{head}");
        assert!(
            head.contains("authorization: basic gateway-s3cret"),
            "{head}"
        );
        assert!(!head.contains("sk-test"), "{head}");
    }
    let error = call_error(&*model).await;
    assert!(
        !error.message.contains("gateway-s3cret"),
        "{}",
        error.message
    );
    assert!(
        error.message.contains("the token [key] is not known"),
        "{}",
        error.message
    );
}

#[tokio::test]
async fn header_that_cannot_be_sent_is_named_without_its_value() {
    let server = serve(Vec::new()).await;
    let provider = provider_with_headers(&server, &[("X-Team", "s3cret\nvalue")]);
    let model = ModelRegistry::new(vec![provider]).model(&"acme/m1".parse().unwrap());
    let error = call_error(&*model.unwrap()).await;
    assert_eq!(
        error.message,
        "The request to acme cannot be made: the value of the header X-Team holds characters that no header has. Correct headers of the provider acme in the configuration."
    );
}

#[tokio::test]
async fn unreadable_certificates_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let empty = folder.path().join("empty.pem");
    std::fs::write(&empty, "").unwrap();
    for (path, why) in [
        (folder.path().join("gone.pem"), "No such file"),
        (empty, "it holds none"),
    ] {
        let provider = ProviderConfig {
            ca_file: Some(path.clone()),
            ..ProviderConfig::new("acme", Api::OpenAi, "https://127.0.0.1:1/v1")
        };
        let limits = CallLimits {
            retry: RetryPolicy {
                max_retries: 0,
                ..RetryPolicy::default()
            },
            ..CallLimits::default()
        };
        let registry = ModelRegistry::new(vec![provider]).limits(limits);
        let error = call_error(&*registry.model(&"acme/m1".parse().unwrap()).unwrap()).await;
        assert_eq!(error.kind, ModelErrorKind::BadRequest);
        assert!(
            error.message.starts_with(&format!(
                "The certificates in {} cannot be read ({why}",
                path.display()
            )),
            "{}",
            error.message
        );
    }
}
