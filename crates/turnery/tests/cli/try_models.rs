//! `turnery run --try`: one prompt, several models, one answer.

use crate::home::Home;
use serde_json::{Value, json};

fn scripted_model(home: &Home, file: &str, text: &str, output_tokens: u64) -> String {
    let usage = json!({"input": 10, "output": output_tokens});
    let scenario = json!({"answers": [{"steps": [{"text": text}], "usage": usage}]});
    let path = home.write_file(file, &scenario.to_string());
    format!("scripted:{}", path.display())
}

// proves: LOOP-70, LOOP-75, UP-17
#[tokio::test]
async fn one_answer_is_printed_and_candidates_are_reported() {
    let home = Home::new();
    let long = scripted_model(&home, "long.json", "a long answer", 9);
    let short = scripted_model(&home, "short.json", "short", 2);
    let both = format!("{long},{short}");
    let run = |pick: &'static [&'static str]| {
        let mut args = vec!["run", "--model", &long, "--try", &both];
        args.extend(pick);
        args.push("hi");
        home.command(&args)
    };
    for (pick, answer) in [
        (&[][..], "a long answer\n"),
        (&["--pick", "fewest-tokens"], "short\n"),
        (&["--pick", "most-tokens"], "a long answer\n"),
    ] {
        let done = crate::home::wait_with_output(run(pick).spawn().expect("started")).await;
        assert_eq!(
            (done.code, done.stdout.as_str()),
            (Some(0), answer),
            "{done:?}"
        );
        let lines: Vec<&str> = done.stderr.lines().collect();
        assert_eq!(lines.len(), 2, "{done:?}");
        assert!(lines[0].contains(": 19 tokens, "), "{done:?}");
        assert!(lines[1].contains(": 12 tokens, "), "{done:?}");
        let taken = |line: &&&str| line.ends_with("its answer was taken");
        assert_eq!(lines.iter().filter(taken).count(), 1, "{done:?}");
    }
}

// proves: LOOP-75
#[tokio::test]
async fn a_judge_picks_and_json_has_all_candidates() {
    let home = Home::new();
    let first = scripted_model(&home, "first.json", "one", 9);
    let second = scripted_model(&home, "second.json", "two", 2);
    let judge = scripted_model(&home, "judge.json", "2", 1);
    let both = format!("{first},{second}");
    let done = home
        .run(&[
            "run", "--model", &first, "--try", &both, "--judge", &judge, "--format", "json", "hi",
        ])
        .await;
    let result: Value = serde_json::from_str(&done.stdout).expect("an object");
    assert_eq!(result["text"], "two", "{done:?}");
    let candidates = result["candidates"].as_array().expect("candidates");
    let told = |it: &Value| (it["won"].clone(), it["usage"]["output"].clone());
    let told: Vec<_> = candidates.iter().map(told).collect();
    assert_eq!(told, [(json!(false), json!(9)), (json!(true), json!(2))]);
    // With the judge's: two tries of 9 and 2 tokens, and its answer of 1.
    assert_eq!(result["usage"]["output"], 12);
    assert_eq!(result["turns"], 3);
}

/// More than eight candidates are a usage error, for which no session is created; eight are accepted.
// proves: LOOP-70
#[tokio::test]
async fn too_many_models_are_a_usage_error() {
    let home = Home::new();
    let one = scripted_model(&home, "one.json", "one", 1);
    let nine = [one.as_str(); 9].join(",");
    let args = |models| ["run", "--model", &one, "--try", models, "hi"].map(str::to_owned);
    let run = async |args: [String; 6]| home.run(&args.each_ref().map(String::as_str)).await;
    let done = run(args(&nine)).await;
    assert_eq!(done.code, Some(2), "{done:?}");
    assert!(
        done.stderr
            .contains("9 candidates are too many for one prompt; name at most 8"),
        "{done:?}"
    );
    let eight = &nine[..nine.len() - one.len() - 1];
    let done = run(args(eight)).await;
    assert_eq!(
        (done.code, done.stdout.as_str()),
        (Some(0), "one\n"),
        "{done:?}"
    );
    let listed = home.run(&["sessions", "list"]).await;
    assert_eq!(listed.stdout.matches("hi").count(), 1, "{listed:?}");
}

#[tokio::test]
async fn pick_requires_try() {
    let home = Home::new();
    let done = home.run(&["run", "--pick", "first", "hi"]).await;
    assert_eq!(done.code, Some(2), "{done:?}");
    assert!(done.stderr.contains("--try"), "{done:?}");
}

/// Scripts rely on `won` to mean that there is an answer.
#[tokio::test]
async fn model_without_an_answer_has_not_won() {
    let home = Home::new();
    let empty = home.write_file("empty.json", &json!({"answers": []}).to_string());
    let broken = format!("scripted:{}", empty.display());
    let both = format!("{broken},{broken}");
    let try_both = |models| {
        [
            "run", "--model", &broken, "--try", models, "--format", "json", "hi",
        ]
    };
    let done = home.run(&try_both(&both)).await;
    let told = |done: &crate::home::CommandOutput| {
        let candidates = done.stdout_json()["candidates"].clone();
        let candidates = candidates.as_array().cloned().unwrap_or_default();
        candidates
            .iter()
            .map(|it| (it["finished"].clone(), it["won"].clone()))
            .collect::<Vec<_>>()
    };
    let lost = (json!(false), json!(false));
    assert_eq!(told(&done), [lost.clone(), lost.clone()], "{done:?}");
    assert_ne!(done.code, Some(0));
    assert_eq!(
        done.stderr.matches(", gave no answer").count(),
        2,
        "{done:?}"
    );
    // A candidate with an answer wins, and its name is reported as given.
    let done = home.run(&try_both(&format!("{broken},offline"))).await;
    assert_eq!(told(&done), [lost, (json!(true), json!(true))], "{done:?}");
    assert!(done.stderr.contains("tried offline: "), "{done:?}");
    assert_eq!(done.stdout_json()["model"], "offline", "{done:?}");
}
