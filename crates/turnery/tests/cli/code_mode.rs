//! Code mode: the model acts by blocks of Python, run by a worker process of turnery.

use crate::home::Home;
use serde_json::{Value, json};

/// Returns a step with prose and a block of code.
fn block(code: &str) -> Value {
    json!({"text": format!("I act.\n```python\n{code}\n```\nThis is ignored.")})
}

/// Runs a prompt in code mode and returns its result.
async fn run(home: &Home, model: &str, more: &[&str]) -> Value {
    let args = [
        "run",
        "--protocol",
        "code",
        "--model",
        model,
        "--format",
        "json",
    ];
    let prompt: &[&str] = if more.contains(&"again") {
        &[]
    } else {
        &["go"]
    };
    let done = home.run(&[&args[..], more, prompt].concat()).await;
    assert_eq!(done.code, Some(0), "{done:?}");
    done.stdout_json()
}

/// A block calls tools like functions, its output goes back to the model, and its variables live on, also in the next
/// prompt and process.
// proves: LASH-5, LASH-116, UP-33
#[tokio::test]
async fn blocks_call_tools_and_keep_variables() {
    let home = Home::new();
    home.write_file("project/a.txt", "one two\n");
    home.write_file("project/b.txt", "three\n");
    let read = "import asyncio\n\
                async def read():\n    return await asyncio.gather(read_file('a.txt'), read_file(path='b.txt'))\n\
                texts = asyncio.run(read())\n\
                words = [word for text in texts for word in text.split() if word.isalpha()]\n\
                print(sorted(words))";
    let model = home.scripted_model(json!([
        {"when": {"last_user_contains": "['one', 'three', 'two']"}, "steps": [block("len(words) * 10")]},
        {"when": {"last_user_contains": "Output of the block:\n30"}, "steps": [{"text": "Thirty."}]},
        {"when": {"last_user_contains": "again"}, "steps": [block("print(words[0].upper())")]},
        {"when": {"last_user_contains": "ONE"}, "steps": [{"text": "Still there."}]},
        {"steps": [block(read)]},
    ]));
    let result = run(&home, &model, &[]).await;
    assert_eq!(result["text"], "Thirty.", "{result}");
    let result = run(&home, &model, &["--continue", "again"]).await;
    assert_eq!(result["text"], "Still there.", "{result}");
}

/// The calls of code need permission like any others, and fail with the reason.
// proves: UP-33
#[tokio::test]
async fn calls_of_code_are_judged() {
    let home = Home::new();
    let write = "try:\n    write_file('x.txt', 'x')\nexcept RuntimeError as error:\n    print('refused:', error)";
    let model = home.scripted_model(json!([
        {"when": {"last_user_contains": "refused: plan mode only reads"}, "steps": [{"text": "It may not."}]},
        {"steps": [block(write)]},
    ]));
    let result = run(&home, &model, &["--mode", "plan"]).await;
    assert_eq!(result["text"], "It may not.", "{result}");
    assert!(!home.project_folder().join("x.txt").exists());
}

/// `finish` ends the block and the prompt with its value, also in the middle of the code.
// proves: LASH-10, LASH-119
#[tokio::test]
async fn code_finishes_with_a_value() {
    let home = Home::new();
    let schema =
        json!({"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}});
    let schema = home
        .write_file("n.json", &schema.to_string())
        .display()
        .to_string();
    let model = home.scripted_model(json!([
        {"when": {"last_user_contains": "/n"}, "steps": [block("finish({'n': 3})\nwrite_file('late.txt', '')")]},
        {"steps": [block("try:\n    finish({'n': 'x'})\nexcept RuntimeError as error:\n    print(error)")]},
    ]));
    let result = run(&home, &model, &["--output-schema", &schema]).await;
    assert_eq!(result["value"], json!({"n": 3}), "{result}");
    assert!(!home.project_folder().join("late.txt").exists());
}

/// Code that does not end, needs too much memory or recursion, prints without end, is not closed or is no Python goes
/// back to the model with the reason, and the variables from before are there.
// proves: LASH-26, UP-33
#[tokio::test]
async fn failures_of_code_are_explained_to_the_model() {
    let home = Home::new();
    for (code, reason) in [
        ("x = 'a' * 10**10", "memory"),
        ("def f():\n    f()\nf()", "RecursionError"),
        ("while True:\n    print('y' * 1000000)", "printed"),
        ("this is no Python", "SyntaxError"),
        ("open('/etc/passwd')", "no access"),
    ] {
        let model = home.scripted_model(json!([
            {"when": {"last_user_contains": "kept 7"}, "steps": [{"text": "fine"}]},
            {"when": {"last_user_contains": reason}, "steps": [block("print('kept', kept)")]},
            {"when": {"last_user_contains": "Output of the block:\n7"}, "steps": [block(code)]},
            {"steps": [block("kept = 7\nkept")]},
        ]));
        let result = run(&home, &model, &[]).await;
        assert_eq!(result["text"], "fine", "{code}: {result}");
    }
    let unclosed = home.scripted_model(json!([
        {"when": {"last_user_contains": "no closing line"}, "steps": [{"text": "fine"}]},
        {"steps": [{"text": "```python\nprint(1)\n"}]},
    ]));
    assert_eq!(run(&home, &unclosed, &[]).await["text"], "fine");
}
