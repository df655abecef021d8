//! A build without telemetry says so when a variable asks for it.

use crate::home::{Home, wait_with_output};

#[tokio::test]
async fn variables_without_the_feature_are_warned_about() {
    let home = Home::new();
    let model = home.scripted_model(serde_json::json!([{"steps": [{"text": "hi"}]}]));
    for (value, warnings) in [("http://127.0.0.1:9", 1), ("", 0)] {
        let mut command = home.command(&["run", "--model", &model, "go"]);
        command.env("OTEL_EXPORTER_OTLP_ENDPOINT", value);
        let run = wait_with_output(command.spawn().expect("started")).await;
        assert_eq!((run.code, run.stdout.trim()), (Some(0), "hi"), "{run:?}");
        let lines = run.stderr.lines();
        let found = lines
            .filter(|line| line.contains("has no telemetry"))
            .count();
        assert_eq!(found, warnings, "{run:?}");
    }
}
