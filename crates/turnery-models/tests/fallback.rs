//! Tests that configured models take over for a model that is not available, over real HTTP.

mod server;

use server::{ModelServer, error_response, event_response, hello_request, serve};
use std::{sync::Arc, time::Duration};
use turnery_engine::{ModelError, ModelErrorKind, Price, Response};
use turnery_models::{
    Api, CallLimits, ModelEvent, ModelEventSender, ModelName, ModelOverride, ModelRegistry,
    ProviderConfig, RetryPolicy,
};

const HELLO: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"}}]}\n\ndata: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
const CUT: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"}}]}\n\n";

fn name(text: &str) -> ModelName {
    text.parse().expect("a name")
}

fn provider(name: &str, server: &ModelServer) -> ProviderConfig {
    ProviderConfig {
        key: Some("sk-test".to_owned().into()),
        ..ProviderConfig::new(name, Api::OpenAi, format!("{}/v1", server.base_url))
    }
}

/// Returns a registry without retries; `chain` are the fallbacks.
fn registry(providers: Vec<ProviderConfig>, chain: &[&str]) -> Arc<ModelRegistry> {
    let retry = RetryPolicy {
        max_retries: 1,
        initial_wait: Duration::ZERO,
        ..RetryPolicy::default()
    };
    let limits = CallLimits {
        retry,
        ..CallLimits::default()
    };
    let chain = chain.iter().map(|it| name(it)).collect();
    Arc::new(
        ModelRegistry::new(providers)
            .limits(limits)
            .with_fallback_chain(chain),
    )
}

/// A call's outcome, and the attempts that were reported: number, kind and model that takes over.
struct CallOutcome {
    result: Result<Response, ModelError>,
    attempts: Vec<(u32, ModelErrorKind, Option<String>)>,
    errors: Vec<String>,
}

async fn call(registry: &Arc<ModelRegistry>, model: &str, needs_price: bool) -> CallOutcome {
    let model = registry.model(&name(model)).expect("a model");
    let model = registry.with_fallbacks(&model, needs_price);
    let (sender, mut events) = ModelEventSender::new(64);
    let result = model.call(hello_request(), sender).await;
    let mut outcome = CallOutcome {
        result,
        attempts: Vec::new(),
        errors: Vec::new(),
    };
    while let Some(event) = events.recv().await {
        if let ModelEvent::Retry(retry) = event {
            let takeover = retry.takeover.map(|it| it.to_string());
            outcome
                .attempts
                .push((retry.attempt, retry.error.kind, takeover));
            outcome.errors.push(retry.error.message);
        }
    }
    outcome
}

fn rejection(line: &str, body: &str) -> Vec<u8> {
    error_response(line, "", body)
}

#[tokio::test]
async fn errors_about_the_model_let_the_next_take_over() {
    let overloaded = rejection("503 Service Unavailable", "{}");
    let cases = [
        (
            vec![overloaded.clone(), overloaded],
            ModelErrorKind::Overloaded,
        ),
        (
            vec![error_response(
                "429 Too Many Requests",
                "retry-after: 3600\r\n",
                "{}",
            )],
            ModelErrorKind::RateLimit,
        ),
        (
            vec![rejection("402 Payment Required", "{}")],
            ModelErrorKind::BadRequest,
        ),
        (
            vec![rejection(
                "400 Bad Request",
                r#"{"error":{"message":"Your credit balance is too low"}}"#,
            )],
            ModelErrorKind::BadRequest,
        ),
        (
            vec![rejection(
                "404 Not Found",
                r#"{"error":{"code":"model_not_found","message":"no such model"}}"#,
            )],
            ModelErrorKind::BadRequest,
        ),
        (
            vec![rejection("401 Unauthorized", "{}")],
            ModelErrorKind::Auth,
        ),
        (vec![rejection("403 Forbidden", "{}")], ModelErrorKind::Auth),
    ];
    for (replies, kind) in cases {
        let count = u32::try_from(replies.len()).unwrap();
        let (first, second) = (
            serve(replies).await,
            serve(vec![event_response(HELLO)]).await,
        );
        let registry = registry(
            vec![provider("a", &first), provider("b", &second)],
            &["b/m2"],
        );
        let outcome = call(&registry, "a/m1", false).await;
        let response = outcome.result.expect("the second answers");
        assert_eq!((&*response.provider, &*response.model), ("b", "m2"));
        // Every failed attempt is reported with a number of its own, the last one with the model that takes over.
        let numbers: Vec<u32> = outcome.attempts.iter().map(|it| it.0).collect();
        assert_eq!(numbers, (1..=count).collect::<Vec<_>>(), "{kind:?}");
        assert_eq!(
            outcome.attempts.last(),
            Some(&(count, kind, Some("b/m2".to_owned())))
        );
        let last = outcome.errors.last().expect("an error");
        assert!(last.ends_with(" b/m2 takes over."), "{last}");
        let bodies = second.bodies();
        assert_eq!(bodies[0]["model"], "m2");
    }
}

#[tokio::test]
async fn errors_about_the_request_end_the_call() {
    for reply in [
        rejection(
            "400 Bad Request",
            r#"{"error":{"message":"tools[0] is wrong"}}"#,
        ),
        rejection(
            "400 Bad Request",
            r#"{"error":{"code":"context_length_exceeded","message":"too long"}}"#,
        ),
        event_response(CUT),
    ] {
        let (first, second) = (
            serve(vec![reply]).await,
            serve(vec![event_response(HELLO)]).await,
        );
        let registry = registry(
            vec![provider("a", &first), provider("b", &second)],
            &["b/m2"],
        );
        let outcome = call(&registry, "a/m1", false).await;
        assert!(outcome.result.is_err());
        assert!(
            outcome.attempts.iter().all(|it| it.2.is_none()),
            "{:?}",
            outcome.attempts
        );
        assert_eq!(second.bodies().len(), 0);
    }
}

/// A chain that names the first model and a model twice asks each once, in order, and ends with the last error.
#[tokio::test]
async fn each_model_of_the_chain_is_asked_once() {
    let refused = || {
        serve(vec![
            rejection("401 Unauthorized", "{}"),
            rejection("401 Unauthorized", "{}"),
        ])
    };
    let (a, b, c) = (refused().await, refused().await, refused().await);
    let providers = vec![provider("a", &a), provider("b", &b), provider("c", &c)];
    let registry = registry(providers, &["b/m", "a/m", "c/m"]);
    let outcome = call(&registry, "a/m", false).await;
    let error = outcome.result.expect_err("nobody answers");
    assert!(
        error.message.starts_with("c refuses the key"),
        "{}",
        error.message
    );
    // `a` is in the chain, so only what comes after it is left.
    let takeovers: Vec<_> = outcome.attempts.iter().map(|it| it.2.clone()).collect();
    assert_eq!(takeovers, [Some("c/m".to_owned())]);
    assert_eq!(
        [a.bodies().len(), b.bodies().len(), c.bodies().len()],
        [1, 0, 1]
    );

    let outcome = call(&registry, "b/m", false).await;
    let numbers: Vec<_> = outcome
        .attempts
        .iter()
        .map(|it| (it.0, it.2.clone()))
        .collect();
    assert_eq!(
        numbers,
        [(1, Some("a/m".to_owned())), (2, Some("c/m".to_owned()))]
    );
}

#[tokio::test]
async fn models_without_key_or_price_are_passed_over() {
    for (needs_price, answers) in [(false, "b"), (true, "c")] {
        let a = serve(vec![rejection("401 Unauthorized", "{}")]).await;
        let (b, c) = (
            serve(vec![event_response(HELLO)]).await,
            serve(vec![event_response(HELLO)]).await,
        );
        let keyless = ProviderConfig {
            key_hint: "A_KEY".to_owned(),
            ..ProviderConfig::new("locked", Api::OpenAi, format!("{}/v1", b.base_url))
        };
        let providers = vec![
            provider("a", &a),
            keyless,
            provider("b", &b),
            provider("c", &c),
        ];
        let chain = ["missing/m", "locked/m", "b/m", "c/m"].map(name).to_vec();
        let price = ModelOverride {
            price: Some(Price::default()),
            ..ModelOverride::default()
        };
        let registry = ModelRegistry::new(providers)
            .with_fallback_chain(chain)
            .with_overrides([(name("c/m"), price)]);
        let outcome = call(&Arc::new(registry), "a/m", needs_price).await;
        assert_eq!(outcome.result.expect("an answer").provider, answers);
    }
}

#[tokio::test]
async fn without_a_chain_the_model_is_unchanged() {
    let server = serve(Vec::new()).await;
    let registry = registry(vec![provider("a", &server)], &["a/m"]);
    let model = registry.model(&name("a/m")).expect("a model");
    assert!(Arc::ptr_eq(&model, &registry.with_fallbacks(&model, false)));
}
