//! Telemetry that is switched off, lost or not wanted: warnings, and the time that the end takes.

use crate::{
    collector::Collector,
    editor::Editor,
    home::Home,
    telemetry::{
        ANSWER, PROMPT, eventful_replies, home_with, home_with_events, run_to_answer, warnings,
    },
};
use serde_json::json;
use std::{
    net::TcpListener,
    sync::{Mutex, mpsc},
    time::{Duration, Instant},
};

const KEY: &str = "collector-key-4711";

#[tokio::test]
async fn metrics_alone_cost_no_warning() {
    for variable in [
        ("OTEL_TRACES_EXPORTER", "none"),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", ""),
    ] {
        let collector = Collector::start();
        let (home, _) = home_with(vec![json!(ANSWER)]);
        let own = format!("http://{}/v1/metrics", collector.address);
        let metrics = ("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", own.as_str());
        let stderr = run_to_answer(&collector, &home, &[variable, metrics]).await;
        assert_eq!(warnings(&stderr), 0, "{variable:?}: {stderr}");
        assert_eq!(collector.spans().len(), 0);
        assert_eq!(collector.histograms().len(), 3);
    }
}

#[tokio::test]
async fn silent_collector_of_metrics_costs_one_warning() {
    let collector = Collector::answering(None);
    let (home, _) = home_with(vec![json!(ANSWER)]);
    let variables = [
        ("OTEL_TRACES_EXPORTER", "none"),
        ("OTEL_EXPORTER_OTLP_TIMEOUT", "3600000"),
    ];
    let stderr = run_to_answer(&collector, &home, &variables).await;
    assert_eq!(warnings(&stderr), 1, "{stderr}");
    assert!(
        stderr.contains("the last metrics were not delivered in time"),
        "{stderr}"
    );
}

#[tokio::test]
async fn invalid_endpoint_is_not_shown() {
    let collector = Collector::start();
    let (home, _) = home_with(vec![json!(ANSWER)]);
    let address = format!("http://collector/{KEY} {KEY}");
    let endpoint = [("OTEL_EXPORTER_OTLP_ENDPOINT", address.as_str())];
    let stderr = run_to_answer(&collector, &home, &endpoint).await;
    assert_eq!(warnings(&stderr), 1, "{stderr}");
    let warning = "telemetry is off: OTEL_EXPORTER_OTLP_ENDPOINT is not a valid address";
    assert!(stderr.contains(warning), "{stderr}");
    assert!(!stderr.contains(KEY), "{stderr}");
}

#[tokio::test]
async fn dead_collector_costs_one_warning() {
    let unused = TcpListener::bind("127.0.0.1:0").expect("a port");
    let endpoint = format!("http://{}", unused.local_addr().expect("bound"));
    drop(unused);
    let (home, _) = home_with(eventful_replies());
    let mut command = home.command(&["run", PROMPT]);
    command
        .env("OTEL_EXPORTER_OTLP_ENDPOINT", &endpoint)
        .env("OTEL_EXPORTER_OTLP_HEADERS", format!("authorization={KEY}"))
        .env("OTEL_BSP_SCHEDULE_DELAY", "1");
    let run = crate::home::wait_with_output(command.spawn().expect("started")).await;
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!(run.stdout.trim(), ANSWER);
    assert_eq!(warnings(&run.stderr), 1, "{}", run.stderr);
    assert!(run.stderr.contains(&endpoint), "{}", run.stderr);
    assert!(run.stderr.contains("refused"), "{}", run.stderr);
    assert!(!run.stderr.contains(KEY), "{}", run.stderr);
}

#[tokio::test]
async fn refusing_collector_costs_one_warning() {
    let collector = Collector::answering(Some("403 Forbidden"));
    let (home, _) = home_with(vec![json!(ANSWER)]);
    let headers = format!("authorization={KEY}");
    let headers = [("OTEL_EXPORTER_OTLP_HEADERS", headers.as_str())];
    let stderr = run_to_answer(&collector, &home, &headers).await;
    assert_eq!(warnings(&stderr), 1, "{stderr}");
    assert!(stderr.contains("403 Forbidden"), "{stderr}");
    assert!(!stderr.contains(KEY), "{stderr}");
    // The collector itself does receive the key.
    let text = collector.text();
    assert!(text.contains(&format!("authorization: {KEY}")), "{text}");
}

#[tokio::test]
async fn silent_collector_delays_the_end_only_briefly() {
    let collector = Collector::answering(None);
    let (home, _) = home_with(vec![json!(ANSWER)]);
    let began = Instant::now();
    let patient = [("OTEL_EXPORTER_OTLP_TIMEOUT", "3600000")];
    let stderr = run_to_answer(&collector, &home, &patient).await;
    assert_eq!(warnings(&stderr), 1, "{stderr}");
    assert!(stderr.contains("2 of 2 spans"), "{stderr}");
    assert!(began.elapsed() < Duration::from_secs(60));
    assert!(collector.request_count() > 0);
}

#[tokio::test]
async fn silent_collector_lets_an_editor_leave() {
    let collector = Collector::answering(None);
    let home = Home::new();
    let model = home.scripted_model(json!([{"steps": [{"text": "hello"}]}]));
    let endpoint = format!("http://{}", collector.address);
    let variables = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint.as_str()),
        ("OTEL_EXPORTER_OTLP_TIMEOUT", "3600000"),
    ];
    let mut editor = Editor::spawn(&home, &["acp", "--model", &model], &variables);
    editor.initialize().await;
    let session = editor.new_session(&home.project_folder()).await;
    editor.prompt(10, &session).await;
    let exit = editor.close_input().await;
    assert_eq!(exit.code, Some(0), "{exit:?}");
    assert_eq!(warnings(&exit.stderr), 1, "{exit:?}");
    assert!(exit.took < Duration::from_secs(60), "{exit:?}");
}

/// The collector holds the first batch until the model gives its last answer: the queue is full by then. What is in it
/// arrives.
#[tokio::test]
async fn spans_beyond_the_queue_are_dropped_and_counted() {
    let (release, released) = mpsc::channel();
    let released = Mutex::new(Some(released));
    let collector = Collector::with(move || {
        let first = released.lock().expect("no panic").take();
        if let Some(released) = first {
            let _: Result<(), _> = released.recv();
        }
        Some("200 OK")
    });
    let (home, _) = home_with_events(eventful_replies(), move |left| {
        if left == 0 {
            let _ = release.send(());
        }
    });
    let small = [
        ("OTEL_BSP_MAX_QUEUE_SIZE", "2"),
        ("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "2"),
        ("OTEL_METRICS_EXPORTER", "none"),
    ];
    let stderr = run_to_answer(&collector, &home, &small).await;
    let lost = 12 - collector.spans().len();
    assert!((1..=10).contains(&lost), "{lost}");
    let told = format!("{lost} of 12 spans were not delivered");
    assert!(stderr.contains(&told), "{stderr}");
    assert_eq!(warnings(&stderr), 1, "{stderr}");
}

#[tokio::test]
async fn disabled_sdk_exports_nothing() {
    let collector = Collector::start();
    let (home, _) = home_with(vec![json!(ANSWER)]);
    let disabled = [("OTEL_SDK_DISABLED", "true")];
    let stderr = run_to_answer(&collector, &home, &disabled).await;
    assert_eq!(warnings(&stderr), 0, "{stderr}");
    assert_eq!(collector.request_count(), 0);
}

#[tokio::test]
async fn unsupported_exporter_is_named_in_a_warning() {
    let collector = Collector::start();
    let (home, _) = home_with(vec![json!(ANSWER)]);
    let protocol = [("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")];
    let stderr = run_to_answer(&collector, &home, &protocol).await;
    let warning = "telemetry is off: OTEL_EXPORTER_OTLP_PROTOCOL is \"grpc\"";
    assert!(stderr.contains(warning), "{stderr}");
    assert_eq!(collector.request_count(), 0);
}
