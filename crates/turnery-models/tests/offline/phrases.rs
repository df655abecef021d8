//! Phrases: what each sentence leads to, seen by the first call that it makes.

use crate::driver::{play, play_content};
use serde_json::Value;
use turnery_engine::{Content, ImageData};

/// The first call, as `tool key=value`, or the beginning of the answer when there is none.
fn first(prompt: &str) -> String {
    let played = play(prompt, |tool, _| match tool {
        "list_dir" => Ok("Cargo.toml".into()),
        _ => Err("stop here".into()),
    });
    let skip = usize::from(played.calls.len() > 1 && played.calls[0].0 == "list_dir");
    let Some((tool, args)) = played.calls.get(skip).or(played.calls.first()) else {
        return played.text.lines().next().unwrap_or_default().to_owned();
    };
    let key = ["command", "path", "pattern"]
        .into_iter()
        .find(|key| args.get(key).is_some())
        .unwrap_or("none");
    format!(
        "{tool} {}",
        args.get(key).and_then(Value::as_str).unwrap_or_default()
    )
}

#[test]
fn running() {
    for (prompt, command) in [
        ("run the tests", "cargo test --no-fail-fast"),
        ("Please run all tests.", "cargo test --no-fail-fast"),
        ("can you run the test suite?", "cargo test --no-fail-fast"),
        ("do the tests pass?", "cargo test --no-fail-fast"),
        ("which tests fail", "cargo test --no-fail-fast"),
        ("test", "cargo test --no-fail-fast"),
        ("cargo test", "cargo test --no-fail-fast"),
        (
            "run the test `machine::tests`",
            "cargo test --no-fail-fast machine::tests",
        ),
        ("build", "cargo build"),
        ("build the project", "cargo build"),
        ("does it compile?", "cargo build"),
        ("lint", "cargo clippy --all-targets"),
        ("run clippy", "cargo clippy --all-targets"),
        ("run `make check all`", "make check all"),
        ("run git status", "git status"),
        ("run ./check.sh --all", "./check.sh --all"),
        ("git changes", "git status --short --branch"),
        ("what does E0308 mean?", "rustc --explain E0308"),
        ("e0502", "rustc --explain E0502"),
        ("what changed?", "git status --short --branch"),
        ("summarise my changes", "git status --short --branch"),
        ("git diff", "git status --short --branch"),
        ("suggest a commit message", "git status --short --branch"),
        ("show the recent commits", "git log --oneline -n 15"),
    ] {
        assert_eq!(first(prompt), format!("shell {command}"), "{prompt}");
    }
}

#[test]
fn reading() {
    for (prompt, call) in [
        ("show src/main.rs", "read_file src/main.rs"),
        (
            "show me lines 10 to 20 of src/main.rs",
            "read_file src/main.rs",
        ),
        ("cat README.md", "read_file README.md"),
        ("src/main.rs:10-40", "read_file src/main.rs"),
        ("outline src/main.rs", "read_file src/main.rs"),
        ("explain src/main.rs", "read_file src/main.rs"),
        (
            "what functions are in `src/lib.rs`?",
            "read_file src/lib.rs",
        ),
        ("outline crates/engine", "search crates/engine"),
        ("list the files", "list_dir ."),
        ("ls src/", "list_dir src/"),
        ("list the files in src", "list_dir src"),
        ("what files are in the docs folder?", "list_dir docs"),
        ("outline src", "search src"),
        ("list the TODOs in docs", "search docs"),
        ("find *.md", "find_files **/*.md"),
        ("list all rust files", "find_files **/*.rs"),
        ("where is main.rs?", "find_files **/main.rs"),
        ("list the TODOs", r"search \b(TODO|FIXME|XXX|HACK)\b"),
        ("any FIXMEs in src/lib.rs?", "search src/lib.rs"),
        ("TODO", r"search \b(TODO|FIXME|XXX|HACK)\b"),
        ("replace foo with bar", "search foo"),
        ("rename `a_b` to `c_d` in src/lib.rs", "search src/lib.rs"),
        ("change \"old text\" to \"new text\"", "search old text"),
        ("search for \"some text\"", "search some text"),
        ("grep hello world", "search hello world"),
    ] {
        assert_eq!(first(prompt), call, "{prompt}");
    }
}

#[test]
fn looking_up() {
    for (prompt, name) in [
        ("where is Loop defined?", "Loop"),
        ("Where is `Loop` used?", "Loop"),
        ("find Loop", "Loop"),
        ("what is DeltaSender", "DeltaSender"),
        ("explain parse_args", "parse_args"),
        ("who calls parse_args()?", "parse_args"),
        ("definition of loop", "loop"),
        ("usages of ToolSpec", "ToolSpec"),
        ("what does `Catalogue::model` do?", "model"),
        ("how does the Recorder work?", "Recorder"),
        ("where is the struct Loop", "Loop"),
        ("ModelInfo", "ModelInfo"),
        ("please make parse_args faster", "parse_args"),
    ] {
        let call = first(prompt);
        assert!(call.starts_with("search "), "{prompt}: {call}");
        assert!(call.contains(&format!("{name}\\b")), "{prompt}: {call}");
    }
}

#[test]
fn explaining_the_repository() {
    for prompt in [
        "explain this repository",
        "Explain the project",
        "what is this project?",
        "what does this project do?",
        "give me an overview",
        "summarise the codebase",
        "how is the code organised?",
        "explain this",
        "explain this folder",
        "how do I run the tests?",
    ] {
        let played = play(prompt, |_, _| Ok("a.txt  3 B".into()));
        assert_eq!(played.names(), ["list_dir", "list_dir"], "{prompt}");
        played.says(&["1 file (1 .txt)"]);
    }
}

#[test]
fn helping() {
    for prompt in [
        "help",
        "what can you do?",
        "who are you",
        "hello",
        "how do I connect a model?",
        "which models can I use?",
        "write me a poem about the sea",
        "",
        "add a dark mode to the settings page",
    ] {
        let played = play(prompt, |tool, _| panic!("{tool} for {prompt:?}"));
        played.says(&["No model is connected", "not an AI"]);
    }
    let help = play("help", |_, _| Ok(String::new()));
    help.says(&[
        "turnery login",
        "ANTHROPIC_API_KEY",
        "OPENAI_API_KEY",
        "OPENAI_BASE_URL",
        "turnery models",
        "--model provider/model",
    ]);
}

/// It is what an editor talks to that has set nothing up, and the agent says that it takes pictures.
#[test]
fn a_picture_is_taken_and_said_not_to_be_seen() {
    let picture = |text: &str| {
        let image = ImageData {
            mime_type: "image/png".to_owned(),
            base64: "iVBORw0KGgo=".into(),
        };
        vec![Content::text(text), Content::Image(image)]
    };
    let blind = "I cannot see pictures";
    let help = play_content(picture("hello"), &[], |_, _| Ok(String::new()));
    help.says(&[blind, "No model is connected"]);
    let list = play_content(picture("list the files"), &["list_dir"], |_, _| {
        Ok("a.txt  3 B".to_owned())
    });
    assert_eq!(list.names(), ["list_dir"]);
    assert!(list.text.starts_with(blind), "{}", list.text);
    assert_eq!(list.text.matches(blind).count(), 1, "{}", list.text);
    let words = play("list the files", |_, _| Ok("a.txt  3 B".to_owned()));
    assert!(!words.text.contains(blind), "{}", words.text);
}

/// Nothing is looked up in what somebody pasted without a word; that it is long is no reason to hang.
#[test]
fn an_endless_sentence_is_none() {
    let endless = format!("where is `Name` defined? {}", "and so on ".repeat(400_000));
    let played = play(&endless, |tool, _| panic!("{tool}"));
    played.says(&["I did not understand that"]);
    let short = play("where is `Name` defined?", |_, _| Ok(String::new()));
    assert!(!short.calls.is_empty());
}
