//! Code mode: the model acts by blocks of Python, run by a worker process of turnery.

use crate::{
    editor::{Editor, StartedProcess},
    home::{Home, wait_for_file},
};
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
// proves: LASH-5, LASH-116, UP-33, LASH-4, LASH-113
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
    assert_eq!(
        (&result["outcome"], &result["value"]),
        (&json!("finished"), &Value::Null)
    );
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

/// `finish` ends the block and the prompt with its value, also in the middle of the code; prose does not.
// proves: LASH-10, LASH-119, LASH-113
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
        {"steps": [{"text": "three"}]},
        {"steps": [block("try:\n    finish({'n': 'x'})\nexcept RuntimeError as error:\n    print(error)")]},
    ]));
    let result = run(&home, &model, &["--output-schema", &schema]).await;
    assert_eq!(result["value"], json!({"n": 3}), "{result}");
    assert!(!home.project_folder().join("late.txt").exists());
}

/// `submit_error` ends the block and the prompt with the error's value.
// proves: LASH-26
#[tokio::test]
async fn code_submits_an_error() {
    let home = Home::new();
    let code = "submit_error({'missing': 'x'})\nwrite_file('late.txt', '')";
    let model = home.scripted_model(json!([{"steps": [block(code)]}]));
    let args = [
        "run",
        "--protocol",
        "code",
        "--mode",
        "auto",
        "--model",
        &model,
    ];
    let schema = home.write_file("any.json", "{}").display().to_string();
    let more = ["--output-schema", &schema, "--format", "json", "go"];
    let done = home.run(&[&args[..], &more].concat()).await;
    let result = done.stdout_json();
    assert_eq!(result["outcome"], "submitted_error", "{done:?}");
    assert!(result["error"].to_string().contains("missing"), "{result}");
    assert!(!home.project_folder().join("late.txt").exists());
}

/// Code that does not end, needs too much memory or recursion, prints without end, is not closed or is no Python goes
/// back to the model with the reason, and the variables from before are there.
// proves: UP-33, LASH-84
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

/// Once the user has rejected a call of a block, its other calls are not asked about; the next block asks again.
// proves: UP-33
#[tokio::test]
async fn rejected_code_does_not_ask_again() {
    let home = Home::new();
    let code = "for i in range(5):\n    try:\n        write_file(f'{i}.txt', 'x')\n    \
                except RuntimeError as error:\n        print(i, error)";
    let model = home.scripted_model(json!([
        {"steps": [block(code)]},
        {"steps": [block(&format!("print('again')\n{code}"))]},
        {"steps": [{"text": "done"}]},
    ]));
    let (mut editor, id) =
        Editor::with_session(&home, &["acp", "--protocol", "code", "--model", &model]).await;
    editor.send_prompt(2, &id).await;
    loop {
        let message = editor
            .wait_for(|it| it["id"] == 2 || it["method"] == "session/request_permission")
            .await;
        if message.get("method").is_none() {
            assert_eq!(message["result"]["stopReason"], "end_turn", "{message}");
            break;
        }
        let outcome = json!({"outcome": {"outcome": "selected", "optionId": "reject_once"}});
        editor
            .send(json!({"jsonrpc": "2.0", "id": message["id"], "result": outcome}))
            .await;
    }
    let asked = |it: &&Value| it["method"] == "session/request_permission";
    assert_eq!(editor.said.iter().filter(asked).count(), 2);
    let ended = |it: &&Value| {
        let update = &it["params"]["update"];
        let is_block = update["_meta"]["turnery"].get("parentCallId").is_none();
        update["status"] == "completed" && is_block
    };
    let outputs: Vec<String> = editor
        .said
        .iter()
        .filter(ended)
        .map(Value::to_string)
        .collect();
    assert_eq!(outputs.len(), 2, "{outputs:?}");
    for output in outputs {
        assert!(output.contains("0 the user rejected this call"), "{output}");
        assert!(output.contains("4 the user was not asked"), "{output}");
    }
}

/// An editor shows a block as a call with its code and output, and the calls of the block, which name it.
// proves: UP-33
#[tokio::test]
async fn editor_shows_code_and_its_calls() {
    let home = Home::new();
    home.write_file("project/a.txt", "alpha\n");
    let model = home.scripted_model(json!([
        {"steps": [block("print('**' + read_file('a.txt'))")]},
        {"steps": [{"text": "done"}]},
    ]));
    let (mut editor, id) = Editor::with_session(&home, &["acp", "--model", &model]).await;
    let code_mode = json!({"sessionId": id, "configId": "protocol", "value": "code"});
    let set = editor
        .request(2, "session/set_config_option", code_mode)
        .await;
    assert!(set.get("error").is_none(), "{set}");
    let end = editor.prompt(3, &id).await;
    assert_eq!(end["result"]["stopReason"], "end_turn", "{end}");
    let updates = editor.said.iter().map(|it| &it["params"]["update"]);
    let calls: Vec<&Value> = updates
        .filter(|it| {
            it["sessionUpdate"] == "tool_call" || it["sessionUpdate"] == "tool_call_update"
        })
        .collect();
    let block = calls
        .iter()
        .find(|it| it["kind"] == "execute")
        .expect("a block");
    let of_block: Vec<String> = calls
        .iter()
        .filter(|it| it["toolCallId"] == block["toolCallId"])
        .map(|it| it["content"].to_string())
        .collect();
    let last = of_block.last().expect("an end");
    assert!(
        last.contains("```python\\nprint('**' + read_file('a.txt'))"),
        "{last}"
    );
    // The output is text, not Markdown.
    assert!(last.contains("```\\n**"), "{last}");
    let nested: Vec<&&Value> = calls.iter().filter(|it| it["kind"] == "read").collect();
    assert!(!nested.is_empty());
    for call in nested {
        assert_eq!(
            call["_meta"]["turnery"]["parentCallId"],
            block["toolCallId"]
        );
    }
}

/// Cancelling a prompt ends the command that its code has started.
// proves: LASH-91, UP-33
#[tokio::test]
async fn cancel_ends_command_of_code() {
    let home = Home::new();
    let command = "shell('echo $$ > pid.new; mv pid.new pid; exec sleep 1000')";
    let model = home.scripted_model(json!([{"steps": [block(command)]}]));
    let args = [
        "acp",
        "--protocol",
        "code",
        "--mode",
        "auto",
        "--model",
        &model,
    ];
    let (mut editor, id) = Editor::with_session(&home, &args).await;
    editor.send_prompt(2, &id).await;
    let pid = home.project_folder().join("pid");
    wait_for_file(&pid).await;
    let process = StartedProcess::from_pid_file(&pid);
    let cancel = json!({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": id}});
    editor.send(cancel).await;
    let end = editor.wait_for(|it| it["id"] == 2).await;
    assert_eq!(end["result"]["stopReason"], "cancelled", "{end}");
    process.wait_for_exit();
}
