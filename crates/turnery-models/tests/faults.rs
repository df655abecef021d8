//! What a person reads when a call fails, what is tried again, and that a dropped call is gone.

mod server;

use server::{Reply, call, events, hello, listen, serve, serve_writes, status, text};
use std::time::Duration;
use turnery_engine::{FaultKind, ModelFault};
use turnery_models::{Api, Catalogue, DeltaSender, ProviderConfig, Told};

const OK: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";

async fn fault_of(line: &str, headers: &str, body: &str) -> ModelFault {
    let server = serve(vec![status(line, headers, body)]).await;
    let model = server.model_with(Api::OpenAi, "m1", 0);
    call(&*model, hello()).await.0.expect_err("a fault")
}

#[tokio::test]
async fn a_wrong_key_names_the_place_to_set_it_and_never_the_key() {
    let fault = fault_of(
        "401 Unauthorized",
        "",
        r#"{"error":{"message":"bad key sk-test"}}"#,
    )
    .await;
    assert_eq!(fault.kind, FaultKind::Auth);
    assert_eq!(fault.status, Some(401));
    assert_eq!(
        fault.message,
        "acme refuses the key: check ACME_KEY (it said: bad key [key])."
    );
}

#[tokio::test]
async fn faults_by_status_and_text() {
    let cases = [
        (
            "404 Not Found",
            r#"{"error":"model 'm1' not found"}"#,
            FaultKind::BadRequest,
            "acme has no model called \"m1\"",
        ),
        (
            "404 Not Found",
            "404 page not found",
            FaultKind::BadRequest,
            "There is nothing at http://127.0.0.1",
        ),
        (
            "400 Bad Request",
            r#"{"error":{"code":"context_length_exceeded","message":"too long"}}"#,
            FaultKind::ContextOverflow,
            "The conversation is longer than m1 can take in",
        ),
        (
            "400 Bad Request",
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 9 > 8"}}"#,
            FaultKind::ContextOverflow,
            "The conversation is longer",
        ),
        (
            "400 Bad Request",
            r#"{"error":{"message":"no"}}"#,
            FaultKind::BadRequest,
            "acme refuses the request (it said: no).",
        ),
        (
            "429 Too Many Requests",
            r#"{"error":{"code":"insufficient_quota","message":"pay"}}"#,
            FaultKind::BadRequest,
            "The account at acme has no credit left",
        ),
        (
            "402 Payment Required",
            r#"{"error":{"message":"This request requires more credits","code":402}}"#,
            FaultKind::BadRequest,
            "The account at acme has no credit left",
        ),
        (
            "403 Forbidden",
            r#"{"error":{"message":"Quota exceeded for this project"}}"#,
            FaultKind::BadRequest,
            "The account at acme has no credit left",
        ),
        (
            "400 Bad Request",
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the Anthropic API."}}"#,
            FaultKind::BadRequest,
            "The account at acme has no credit left",
        ),
        (
            "403 Forbidden",
            r#"{"type":"error","error":{"type":"billing_error","message":"pay"}}"#,
            FaultKind::BadRequest,
            "The account at acme has no credit left",
        ),
        (
            "429 Too Many Requests",
            r#"[{"error":{"code":429,"message":"You exceeded your current quota, please check your plan and billing details.","status":"RESOURCE_EXHAUSTED"}}]"#,
            FaultKind::RateLimit,
            "acme has had too many requests",
        ),
        (
            "403 Forbidden",
            r#"{"error":{"message":"no access to m1"}}"#,
            FaultKind::Auth,
            "acme does not let this key use m1",
        ),
        (
            "403 Forbidden",
            "<!DOCTYPE html><html><title>Blocked</title></html>",
            FaultKind::BadRequest,
            "acme refuses the request (it answered with a page for browsers).",
        ),
        (
            "400 Bad Request",
            r#"[{"error":{"code":400,"status":"INVALID_ARGUMENT","message":"API key not valid. Please pass a valid API key."}}]"#,
            FaultKind::Auth,
            "acme refuses the key",
        ),
        (
            "500 Internal Server Error",
            "",
            FaultKind::Overloaded,
            "acme is overloaded or broken",
        ),
        (
            "529 Overloaded",
            "",
            FaultKind::Overloaded,
            "acme is overloaded or broken",
        ),
    ];
    for (line, body, kind, start) in cases {
        let fault = fault_of(line, "", body).await;
        assert_eq!(fault.kind, kind, "{line} {body}");
        assert!(fault.message.starts_with(start), "{}", fault.message);
    }
}

#[tokio::test]
async fn long_texts_are_cut() {
    let fault = fault_of("400 Bad Request", "", &"x".repeat(100_000)).await;
    assert_eq!(
        fault.message,
        format!("acme refuses the request (it said: {}…).", "x".repeat(300))
    );
}

/// UP-8.
// proves: R9, UP-8
#[tokio::test]
async fn what_may_pass_is_tried_again() {
    let server = serve(vec![
        status("429 Too Many Requests", "retry-after-ms: 2\r\n", ""),
        status("529 Overloaded", "", ""),
        Vec::new(),
        events(OK),
    ])
    .await;
    let model = server.model(Api::OpenAi, "m1");
    let (response, told) = listen(&*model, hello()).await;
    assert_eq!(response.unwrap().raw_stop.as_deref(), Some("stop"));
    assert_eq!(server.bodies().len(), 4);
    // Each failed attempt is told before the next is made, and all of them before the answer.
    let told: Vec<_> = told
        .into_iter()
        .map(|told| match told {
            Told::Silent(silent) => panic!("{silent:?}"),
            Told::Retry(retry) => (retry.attempt, Some(retry.fault.kind)),
            Told::Delta(delta) => {
                assert_eq!(delta, text(0, "Hi"));
                (4, None)
            }
        })
        .collect();
    let faults = [
        (1, Some(FaultKind::RateLimit)),
        (2, Some(FaultKind::Overloaded)),
        (3, Some(FaultKind::Network)),
        (4, None),
    ];
    assert_eq!(told, faults);
}

#[tokio::test]
async fn a_long_wait_ends_the_call() {
    let fault = fault_of("429 Too Many Requests", "Retry-After: 3600\r\n", "").await;
    assert_eq!(fault.kind, FaultKind::RateLimit);
    assert_eq!(fault.retry_after, Some(Duration::from_secs(3600)));
    assert!(
        fault.message.contains("It asks to wait 3600 seconds"),
        "{}",
        fault.message
    );
}

/// R9.
// proves: R9
#[tokio::test]
async fn after_the_first_fragment_nothing_is_tried_again() {
    let cut = "data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"}}]}\n\n";
    let server = serve(vec![events(cut), events(OK)]).await;
    let model = server.model(Api::OpenAi, "m1");
    let (response, told) = listen(&*model, hello()).await;
    assert_eq!(response.unwrap_err().kind, FaultKind::Unfinished);
    assert_eq!(told, [Told::Delta(text(0, "Hi"))]);
    assert_eq!(server.bodies().len(), 1);
}

#[tokio::test]
async fn a_dead_endpoint_is_named() {
    let provider = ProviderConfig {
        name: "ollama".to_owned(),
        api: Api::OpenAi,
        base_url: "http://127.0.0.1:1/v1".to_owned(),
        key: None,
        key_hint: String::new(),
        models: Vec::new(),
    };
    // With all the usual retries: a local server that does not run is not waited for.
    let catalogue = Catalogue::new(vec![provider]);
    let model = catalogue.model(&"ollama/m1".parse().unwrap()).unwrap();
    let fault = call(&*model, hello()).await.0.unwrap_err();
    assert_eq!(fault.kind, FaultKind::Network);
    assert!(
        fault
            .message
            .starts_with("Could not reach ollama at http://127.0.0.1:1/v1 ("),
        "{}",
        fault.message
    );
    assert!(
        fault
            .message
            .ends_with("or set OLLAMA_HOST to its address."),
        "{}",
        fault.message
    );
}

#[tokio::test]
async fn a_provider_says_whether_to_try_again() {
    let no = "x-should-retry: false\r\n";
    let server = serve(vec![status("529 Overloaded", no, ""), events(OK)]).await;
    let model = server.model(Api::OpenAi, "m1");
    let fault = call(&*model, hello()).await.0.unwrap_err();
    assert_eq!(fault.kind, FaultKind::Overloaded);
    assert_eq!(server.bodies().len(), 1);

    let yes = "x-should-retry: true\r\n";
    let server = serve(vec![status("409 Conflict", yes, ""), events(OK)]).await;
    let model = server.model(Api::OpenAi, "m1");
    assert!(call(&*model, hello()).await.0.is_ok());
    assert_eq!(server.bodies().len(), 2);
}

/// The key reaches no text, whichever part of an answer repeats it.
#[tokio::test]
async fn key_is_masked_in_places_and_in_broken_events() {
    let moved = "location: http://h/?key=sk%2Dtest\r\n";
    let fault = fault_of("301 Moved Permanently", moved, "").await;
    assert!(
        fault.message.contains("to http://h/?key=[key]:"),
        "{fault:?}"
    );
    let server = serve(vec![events("data: {\"choices\": \"sk-\u{ad}test\"}\n\n")]).await;
    let model = server.model_with(Api::OpenAi, "m1", 0);
    let fault = call(&*model, hello()).await.0.expect_err("a fault");
    assert!(fault.message.contains("\"[key]\""), "{fault:?}");
}

/// A redirect would take the key and the conversation to wherever a server likes.
#[tokio::test]
async fn a_redirect_is_told_and_not_followed() {
    let elsewhere = serve(vec![events(OK)]).await;
    let location = format!("location: {}/v1/chat/completions\r\n", elsewhere.base);
    for line in [
        "301 Moved Permanently",
        "307 Temporary Redirect",
        "308 Permanent Redirect",
    ] {
        let server = serve(vec![status(line, &location, ""), events(OK)]).await;
        let model = server.model(Api::OpenAi, "m1");
        let fault = call(&*model, hello()).await.0.unwrap_err();
        assert_eq!(
            fault.message,
            format!(
                "acme has moved from {0}/v1 to {1}/v1/chat/completions: set base_url of the provider acme in the configuration.",
                server.base, elsewhere.base
            )
        );
        assert_eq!(server.bodies().len(), 1, "{line}");
    }
    assert_eq!(elsewhere.bodies().len(), 0);
}

#[tokio::test]
async fn a_missing_key_fails_the_call_and_hides_the_models() {
    let catalogue = Catalogue::new(ProviderConfig::well_known(&|_| None));
    let model = catalogue.model(&"openai/gpt-5".parse().unwrap()).unwrap();
    let fault = call(&*model, hello()).await.0.unwrap_err();
    assert_eq!(fault.kind, FaultKind::Auth);
    assert_eq!(
        fault.message,
        "There is no key for openai: set OPENAI_API_KEY."
    );
    let names: Vec<String> = catalogue
        .list()
        .iter()
        .map(|info| info.name.to_string())
        .collect();
    assert_eq!(names, ["offline"]);
}

// proves: LASH-90
#[tokio::test]
async fn silence_ends_the_call_and_a_dropped_call_closes_its_socket() {
    let first = events("data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"}}]}\n\n");
    let held = || Reply {
        writes: vec![first.clone()],
        is_held: true,
    };
    let server = serve_writes(vec![held(), held()]).await;
    let idle = Duration::from_secs(300);
    let begin = async || {
        let model = server.model_within(Api::OpenAi, "m1", 0, idle);
        let (sender, mut receiver) = DeltaSender::new(8);
        let running = tokio::spawn(async move { model.call(hello(), sender).await });
        let hi = Told::Delta(text(0, "Hi"));
        assert_eq!(receiver.recv().await, Some(hi));
        (running, receiver)
    };
    let (running, _receiver) = begin().await;
    tokio::time::pause();
    tokio::time::advance(idle).await;
    let response = running.await.unwrap();
    assert_eq!(response.unwrap_err().kind, FaultKind::Timeout);
    tokio::time::resume();
    server.closed.notified().await;

    let (running, _receiver) = begin().await;
    running.abort();
    server.closed.notified().await;
    assert!(running.await.unwrap_err().is_cancelled());
}

#[tokio::test]
async fn a_page_instead_of_events_is_explained() {
    let page = || status("200 OK", "", r#"{"choices":[]}"#);
    let server = serve(vec![page(), page()]).await;
    let model = server.model_with(Api::OpenAi, "m1", 1);
    let fault = call(&*model, hello()).await.0.expect_err("a fault");
    // The next page would be no better.
    assert_eq!(server.requests.lock().expect("no panic").len(), 1);
    assert_eq!(fault.kind, FaultKind::Protocol);
    assert!(
        fault
            .message
            .contains("did not answer with a stream of events"),
        "{}",
        fault.message
    );
}
