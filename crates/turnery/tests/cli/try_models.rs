//! `turnery run --try`: one prompt, several models, one answer.

use crate::{editor::Editor, home::Home};
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

/// Returns a scripted model that replaces the file `answer`, then says `done`.
fn writing_model(home: &Home, file: &str, text: &str) -> String {
    let write = json!({"name": "write_file", "args": {"path": "answer", "content": text}});
    let scenario =
        json!({"answers": [{"steps": [{"tool_call": write}]}, {"steps": [{"text": "done"}]}]});
    let path = home.write_file(file, &scenario.to_string());
    format!("scripted:{}", path.display())
}

/// Candidates with a mode change copies of the folder; the command picks one, and its change is applied.
// proves: LOOP-75
#[tokio::test]
async fn judge_command_picks_the_change_to_apply() {
    let home = Home::new();
    home.write_file("project/answer", "first");
    let wrong = writing_model(&home, "wrong.json", "41");
    let right = writing_model(&home, "right.json", "42");
    let both = format!("{wrong}=edit,{right}=edit");
    let run = async |mode: &str| {
        let args = [
            "run",
            "--model",
            &wrong,
            "--mode",
            mode,
            "--try",
            &both,
            "--judge-command",
            "grep -q 42 answer",
            "--format",
            "json",
            "hi",
        ];
        home.run(&args).await
    };
    // A candidate may do no more than the session.
    let done = run("ask").await;
    assert_ne!(done.code, Some(0), "{done:?}");
    assert!(
        done.stderr.contains("mode edit allows more than"),
        "{done:?}"
    );
    let answer = home.project_folder().join("answer");
    assert_eq!(std::fs::read_to_string(&answer).expect("a file"), "first");
    let done = run("edit").await;
    let result = done.stdout_json();
    assert_eq!(done.code, Some(0), "{done:?}");
    assert_eq!(result["text"], "done");
    assert_eq!(
        result["changes"],
        json!({"applied": true, "files": ["answer"]})
    );
    let codes = |it: &Value| (it["won"].clone(), it["judge_exit_code"].clone());
    let candidates = result["candidates"].as_array().expect("candidates");
    let codes: Vec<_> = candidates.iter().map(codes).collect();
    assert_eq!(codes, [(json!(false), json!(1)), (json!(true), json!(0))]);
    assert_eq!(std::fs::read_to_string(&answer).expect("a file"), "42");
    assert!(
        done.stderr.contains(", exit code 0, its answer was taken"),
        "{done:?}"
    );
}

/// Without anybody to ask, changes are not applied but kept, and the exit code says so.
#[tokio::test]
async fn changes_that_nobody_allows_are_kept() {
    let home = Home::new();
    let right = writing_model(&home, "right.json", "42");
    let tried = format!("{right}=edit");
    let args = [
        "run",
        "--model",
        &right,
        "--mode",
        "edit",
        "--deny",
        "edit(answer)",
        "--try",
        &tried,
        "--format",
        "json",
        "hi",
    ];
    // The rule is about the session's folder and its copy alike: nothing changes.
    let done = home.run(&args).await;
    assert_eq!(done.stdout_json()["changes"], Value::Null, "{done:?}");
    // A settings file of an editor may be written in the copy, once allowed, but not here.
    let write = json!({"name": "shell", "args": {"command": "mkdir .vscode; echo {} > .vscode/settings.json"}});
    let scenario =
        json!({"answers": [{"steps": [{"tool_call": write}]}, {"steps": [{"text": "done"}]}]});
    let path = home.write_file("shell.json", &scenario.to_string());
    let model = format!("scripted:{}", path.display());
    let tried = format!("{model}=edit");
    let args = [
        "run", "--model", &model, "--mode", "edit", "--allow", "shell", "--try", &tried,
        "--format", "json", "hi",
    ];
    let done = home.run(&args).await;
    let result = done.stdout_json();
    assert_eq!(done.code, Some(1), "{done:?}");
    assert_eq!(result["outcome"], "finished", "{done:?}");
    assert_eq!(result["changes"]["applied"], false, "{done:?}");
    assert!(!home.project_folder().join(".vscode").exists());
    let kept = result["changes"]["kept"].as_str().expect("a folder");
    let file = std::path::Path::new(kept).join("files/.vscode/settings.json");
    assert_eq!(std::fs::read_to_string(file).expect("a file"), "{}\n");
    std::fs::remove_dir_all(kept).expect("removed");
}

/// A project can neither set a judging command nor type one.
#[tokio::test]
async fn project_names_no_judging_command() {
    let home = Home::new();
    let mark = home.project_folder().with_file_name("mark");
    let line = format!("touch {}", mark.display());
    let model = scripted_model(&home, "one.json", "one", 1);
    home.write_file(
        "project/.turnery/commands/fix.md",
        &format!("/try {model}=plan --judge-command '{line}' hi"),
    );
    let args = ["run", "--model", &model, "--try", &model, "/fix"];
    let done = home.run(&args).await;
    assert_eq!((done.code, &*done.stdout), (Some(0), "one\n"), "{done:?}");
    let (mut editor, session) = Editor::with_session(&home, &["acp", "--model", &model]).await;
    let prompt = [json!({"type": "text", "text": "/fix"})];
    let prompt = json!({"sessionId": session, "prompt": prompt});
    editor.request(9, "session/prompt", prompt).await;
    assert!(!mark.exists());
    home.write_file(
        "project/.turnery/config.toml",
        &format!("judge_command = \"{line}\"\n"),
    );
    let done = home.run(&args).await;
    assert!(
        done.stderr.contains("unknown key `judge_command`"),
        "{done:?}"
    );
    assert!(!mark.exists());
}
