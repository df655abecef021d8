//! Calls of host functions.

use crate::test_host::TestSession;
use serde_json::{Value, json};
use turnery_code::{CodeCall, CodeEnd};

fn echo(args: Value) -> CodeCall {
    CodeCall {
        function: "echo".to_owned(),
        args: args.as_array().unwrap().clone(),
        kwargs: serde_json::Map::new(),
    }
}

#[tokio::test]
async fn plain_call_returns_its_value() {
    let mut session = TestSession::new();
    assert_eq!(session.value("x = echo([1, 2])\nx[1] + 1").await, json!(3));
    assert_eq!(session.host.batches, [[echo(json!([[1, 2]]))]]);
}

#[tokio::test]
async fn keyword_arguments_reach_the_host() {
    let mut session = TestSession::new();
    let value = session.value("echo(path='a', lines=(1, 2))").await;
    assert_eq!(value, json!({"path": "a", "lines": [1, 2]}));
    let call = &session.host.batches[0][0];
    assert_eq!(call.args, Vec::<Value>::new());
    assert_eq!(Value::Object(call.kwargs.clone()), value);
}

#[tokio::test]
async fn calls_awaited_together_are_one_batch() {
    let code = "import asyncio\na, b = await asyncio.gather(echo(1), echo('b'))\n[b, a]";
    let mut session = TestSession::new();
    assert_eq!(session.value(code).await, json!(["b", 1]));
    assert_eq!(
        session.host.batches,
        [[echo(json!([1])), echo(json!(["b"]))]]
    );
}

#[tokio::test]
async fn calls_of_coroutines_awaited_together_are_one_batch() {
    let code = "import asyncio\n\
        async def twice(n):\n    return 2 * await echo(n)\n\
        async def main():\n    tasks = [twice(n) for n in range(3)]\n    \
        return await asyncio.gather(*tasks)\n\
        asyncio.run(main())";
    let mut session = TestSession::new();
    assert_eq!(session.value(code).await, json!([0, 2, 4]));
    let expected = [[echo(json!([0])), echo(json!([1])), echo(json!([2]))]];
    assert_eq!(session.host.batches, expected);
    // The coroutine function is still there in the next block.
    assert_eq!(session.value("await twice(4)").await, json!(8));
}

#[tokio::test]
async fn plain_and_awaited_calls_work_in_one_block() {
    let code = "import asyncio\npaths = echo(['a', 'b'])\ntasks = []\n\
        for path in paths:\n    tasks.append(echo(path))\n\
        texts = await asyncio.gather(*tasks)\nlast = await echo('c')\n[*texts, last]";
    let mut session = TestSession::new();
    assert_eq!(session.value(code).await, json!(["a", "b", "c"]));
    let sizes: Vec<usize> = session.host.batches.iter().map(Vec::len).collect();
    assert_eq!(sizes, [1, 2, 1]);
}

#[tokio::test]
async fn large_awaited_calls_come_in_several_batches() {
    let code = "import asyncio\n\
        parts = await asyncio.gather(*[echo('a' * 6_000_000) for _ in range(3)])\n\
        [len(part) for part in parts]";
    let mut session = TestSession::new();
    let expected = json!([6_000_000, 6_000_000, 6_000_000]);
    assert_eq!(session.value(code).await, expected);
    let sizes: Vec<usize> = session.host.batches.iter().map(Vec::len).collect();
    assert_eq!(sizes, [2, 1]);
}

#[tokio::test]
async fn host_error_is_a_runtime_error() {
    let mut session = TestSession::new();
    let caught = "try:\n    fail()\nexcept RuntimeError as error:\n    r = str(error)\nr";
    assert_eq!(session.value(caught).await, json!("it failed"));
    let caught = "try:\n    await fail()\nexcept RuntimeError as error:\n    r = str(error)\nr";
    assert_eq!(session.value(caught).await, json!("it failed"));
    let expected = "Traceback (most recent call last):\n  \
        File \"<python-input-2>\", line 2, in <module>\n    fail()\n    ~~~~~~\n\
        RuntimeError: it failed";
    assert_eq!(session.error("x = 1\nfail()").await, expected);
    let error = session.error("y = [await echo(1), await fail()]").await;
    // The names and columns are those of the code.
    assert!(
        error.contains("    y = [await echo(1), await fail()]\n"),
        "{error}"
    );
    assert!(error.ends_with("RuntimeError: it failed"), "{error}");
}

#[tokio::test]
async fn end_stops_the_block_past_all_handlers() {
    for call in [
        "end()",
        "await end()",
        "await asyncio.gather(echo(1), end())",
    ] {
        let code = format!(
            "import asyncio\nx = 1\ntry:\n    {call}\nexcept BaseException:\n    x = 2\nfinally:\n    x = 3\nx = 4"
        );
        let mut session = TestSession::new();
        let output = session.run(&code).await;
        assert_eq!(output.end, CodeEnd::Ended, "{call}");
        assert_eq!(session.value("x").await, json!(1), "{call}");
    }
}

#[tokio::test]
async fn arguments_without_json_form_are_type_errors() {
    let mut session = TestSession::new();
    for (code, reason) in [
        (
            "echo(len)",
            "echo(): argument 1: a function has no JSON form",
        ),
        (
            "echo(1, [echo])",
            "echo(): argument 2: a function has no JSON form",
        ),
        (
            "echo(k={1})",
            "echo(): argument 'k': a set has no JSON form; make a list of it",
        ),
        (
            "x = []\nx.append(x)\necho(x)",
            "echo(): argument 1: a value that contains itself has no JSON form",
        ),
        (
            "x = 1\nfor _ in range(65):\n    x = [x]\necho(x)",
            "echo(): argument 1: a value nested more than 64 deep has no JSON form",
        ),
        (
            "echo(float('nan'))",
            "echo(): argument 1: nan has no JSON form",
        ),
        (
            "echo({(1, 2): 3})",
            "echo(): argument 1: a dict with the key (1, 2) has no JSON form; keys must be strings",
        ),
        (
            "echo('a' * 16_000_000)",
            "echo(): the arguments are too large: 16000043 bytes as JSON, at most 15728640 are possible",
        ),
    ] {
        let error = session.error(code).await;
        assert!(error.ends_with(&format!("TypeError: {reason}")), "{error}");
    }
    assert!(session.host.batches.is_empty());
}

#[tokio::test]
async fn deep_result_is_an_error_in_the_code() {
    let mut session = TestSession::new();
    let mut value = json!(1);
    for _ in 0..200 {
        value = json!([value]);
    }
    let mut host = Deep(value);
    let functions = ["f".to_owned()];
    let output = session.session.run("f()", &functions, &mut host).await;
    let CodeEnd::Failed(error) = output.end else {
        panic!("{output:?}");
    };
    let expected = "RuntimeError: the result of the function is nested more than 64 deep";
    assert!(error.ends_with(expected), "{error}");
}

/// Returns a value.
struct Deep(Value);

impl turnery_code::CodeHost for Deep {
    fn call<'a>(
        &'a mut self,
        _calls: Vec<CodeCall>,
    ) -> futures_util::future::BoxFuture<'a, turnery_code::CallReply> {
        let result = Ok(self.0.clone());
        Box::pin(async move { turnery_code::CallReply::Results(vec![result]) })
    }

    fn print(&mut self, _text: &str) {}
}

#[tokio::test]
async fn function_of_an_earlier_block_is_unknown_if_no_longer_offered() {
    let mut session = TestSession::new();
    session.value("echo(1)\nawait echo(1)").await;
    for code in ["echo(2)", "await echo(2)"] {
        let output = session.session.run(code, &[], &mut session.host).await;
        let CodeEnd::Failed(error) = output.end else {
            panic!("{output:?}");
        };
        assert!(
            error.ends_with("NameError: name 'echo' is not defined"),
            "{error}"
        );
    }
}

#[tokio::test]
async fn own_function_replaces_that_of_the_host() {
    let mut session = TestSession::new();
    session.value("async def echo(n):\n    return n + 1").await;
    assert_eq!(session.value("await echo(1)").await, json!(2));
    assert!(session.host.batches.is_empty());
}

#[tokio::test]
async fn failed_call_of_a_batch_fails_the_gather() {
    let code = "import asyncio\ntry:\n    await asyncio.gather(echo(1), fail(), echo(2))\n\
        except RuntimeError as error:\n    r = str(error)\nr";
    let mut session = TestSession::new();
    assert_eq!(session.value(code).await, json!("it failed"));
    assert_eq!(session.host.batches[0].len(), 3);
    assert_eq!(session.value("echo('still')").await, json!("still"));
}

#[tokio::test]
async fn call_awaited_in_a_later_block_fails() {
    let mut session = TestSession::new();
    session
        .value("task = echo(1)\nif False:\n    await task")
        .await;
    assert!(session.host.batches.is_empty());
    let error = session.error("await task").await;
    assert!(error.contains("RuntimeError: "), "{error}");
    assert_eq!(session.value("await echo(2)").await, json!(2));
}

#[tokio::test]
async fn awaiting_a_plain_result_is_a_type_error() {
    let mut session = TestSession::new();
    session.value("result = echo('a')").await;
    let error = session.error("await result").await;
    let expected = "TypeError: 'str' object can't be awaited";
    assert!(error.ends_with(expected), "{error}");
}

#[tokio::test]
async fn host_function_can_be_called_through_a_variable() {
    let mut session = TestSession::new();
    assert_eq!(session.value("f = echo\n[f(1), f(2)]").await, json!([1, 2]));
    assert_eq!(session.value("f(3)").await, json!(3));
}
