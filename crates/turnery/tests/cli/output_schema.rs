//! `turnery run --output-schema`: exactly one value on stdout, or a failure that says why.

use crate::home::Home;
use serde_json::{Value, json};

fn schema_file(home: &Home) -> String {
    let schema = json!({
        "type": "object",
        "required": ["rating", "score"],
        "properties": {
            "rating": {"type": "string"},
            "score": {"type": "integer", "minimum": 1}
        }
    });
    let path = home.write_file("risk.json", &schema.to_string());
    path.display().to_string()
}

fn finish(score: i64) -> Value {
    let value = json!({"rating": "low", "score": score});
    json!({"tool_call": {"name": "finish", "args": {"value": value}}})
}

/// Stdout is only the accepted value, as one line of JSON; with `--format json` it is the field `value` of
/// the result.
#[tokio::test]
async fn stdout_is_exactly_the_value() {
    let home = Home::new();
    let schema = schema_file(&home);
    let model = home.scripted_model(json!([
        {"when": {"last_tool_result_contains": "/score"}, "steps": [finish(2)]},
        {"steps": [{"text": "I think it is low."}, finish(0)]},
    ]));
    let run = ["run", "--model", &model, "--output-schema", &schema];
    let done = home.run(&[&run[..], &["rate it"]].concat()).await;
    let line = "{\"rating\":\"low\",\"score\":2}\n";
    assert_eq!(
        (done.code, done.stdout.as_str()),
        (Some(0), line),
        "{done:?}"
    );
    let as_json = [&run[..], &["--format", "json", "rate it"]].concat();
    let done = home.run(&as_json).await;
    let result: Value = serde_json::from_str(&done.stdout).expect("an object");
    assert_eq!(
        result["value"],
        json!({"rating": "low", "score": 2}),
        "{done:?}"
    );
    assert_eq!(result["outcome"], "finished", "{done:?}");
}

/// Without a value, stdout is empty, the exit code is not 0, and stderr has the reasons.
#[tokio::test]
async fn missing_value_is_a_failure_with_reasons() {
    let home = Home::new();
    let schema = schema_file(&home);
    let wrong = home.scripted_model(json!([{"steps": [finish(0)]}, {"steps": [finish(0)]}]));
    let run = |model: &str| {
        let turns = [
            "run",
            "--max-turns",
            "2",
            "--model",
            model,
            "--output-schema",
            &schema,
            "x",
        ];
        turns.map(str::to_owned)
    };
    let args = run(&wrong);
    let done = home.run(&args.each_ref().map(String::as_str)).await;
    assert_eq!((done.code, done.stdout.as_str()), (Some(4), ""), "{done:?}");
    assert!(done.stderr.contains("Max turns reached (2/2)"), "{done:?}");
    assert!(done.stderr.contains("/score: "), "{done:?}");
    let error =
        json!({"tool_call": {"name": "submit_error", "args": {"error": "there is no change"}}});
    let gave_up = home.scripted_model(json!([{"steps": [error]}]));
    let args = run(&gave_up);
    let done = home.run(&args.each_ref().map(String::as_str)).await;
    assert_eq!((done.code, done.stdout.as_str()), (Some(1), ""), "{done:?}");
    let told = "the model submitted an error instead of a value: there is no change";
    assert!(done.stderr.contains(told), "{done:?}");
}

/// The offline model says that it gives no values, instead of using up the turns.
#[tokio::test]
async fn offline_model_says_that_it_gives_no_value() {
    let home = Home::new();
    let schema = schema_file(&home);
    let args = [
        "run",
        "--model",
        "offline",
        "--output-schema",
        &schema,
        "rate it",
    ];
    let done = home.run(&args).await;
    assert_eq!((done.code, done.stdout.as_str()), (Some(1), ""), "{done:?}");
    assert!(
        done.stderr.contains("I work offline, without a model"),
        "{done:?}"
    );
}

/// A schema that cannot be used is an error of the command line, before anything has begun.
#[tokio::test]
async fn unusable_schema_is_a_usage_error() {
    let home = Home::new();
    let model = home.scripted_model(json!([{"steps": [{"text": "never"}]}]));
    for (text, part) in [
        (
            "{\"type\": \"objekt\"}",
            "bad.json: this is not a usable JSON Schema",
        ),
        ("{", "bad.json is not JSON"),
    ] {
        let path = home.write_file("bad.json", text).display().to_string();
        let args = ["run", "--model", &model, "--output-schema", &path, "x"];
        let done = home.run(&args).await;
        assert_eq!((done.code, done.stdout.as_str()), (Some(2), ""), "{done:?}");
        assert!(done.stderr.contains(part), "{done:?}");
    }
    let args = [
        "run",
        "--model",
        &model,
        "--output-schema",
        "absent.json",
        "x",
    ];
    let done = home.run(&args).await;
    assert_eq!(done.code, Some(2), "{done:?}");
    assert!(done.stderr.contains("cannot read absent.json"), "{done:?}");
    let listed = home.run(&["sessions", "list", "--all", "--json"]).await;
    assert_eq!(listed.stdout.trim(), "[]", "{listed:?}");
}
