//! Values, variables, output and errors.

use crate::test_host::TestSession;
use proptest::{
    prelude::{Just, Strategy, any},
    prop_oneof,
    test_runner::{Config, TestRunner},
};
use serde_json::{Value, json};
use turnery_code::CodeEnd;

#[tokio::test]
async fn variables_live_from_block_to_block() {
    let mut session = TestSession::new();
    assert_eq!(session.value("x = 41").await, Value::Null);
    assert_eq!(session.value("x + 1").await, json!(42));
    session.value("def double(n):\n    return 2 * n").await;
    assert_eq!(session.value("double(x)").await, json!(82));
    assert_eq!(session.value("").await, Value::Null);
}

#[tokio::test]
async fn values_have_their_json_form() {
    let mut session = TestSession::new();
    for (code, expected) in [
        ("None", Value::Null),
        ("True", json!(true)),
        ("1.5", json!(1.5)),
        ("'\u{e9}'", json!("\u{e9}")),
        ("[1, (2, 'a'), []]", json!([1, [2, "a"], []])),
        (
            "{'a': 1, 2: None, None: 3, True: 4}",
            json!({"a": 1, "2": null, "null": 3, "true": 4}),
        ),
        ("2**63", json!(9_223_372_036_854_775_808_u64)),
        ("-2**63", json!(i64::MIN)),
        ("2**64", json!("18446744073709551616")),
        ("-2**63 - 1", json!("-9223372036854775809")),
        ("{1}", json!("{1}")),
        ("b'a'", json!("b'a'")),
        ("float('inf')", json!("inf")),
        ("[float('nan')]", json!("[nan]")),
        ("x = []\nx.append(x)\nx", json!("[[...]]")),
    ] {
        assert_eq!(session.value(code).await, expected, "{code}");
    }
    let function = session.value("def f(): pass\nf").await;
    assert!(
        function.as_str().unwrap().starts_with("<function 'f'"),
        "{function}"
    );
    let deep = session
        .value("x = 1\nfor _ in range(64):\n    x = [x]\nx")
        .await;
    assert_eq!(
        deep.to_string(),
        format!("{}1{}", "[".repeat(64), "]".repeat(64))
    );
    let deeper = session.value("[x]").await;
    let expected = format!("{}1{}", "[".repeat(65), "]".repeat(65));
    assert_eq!(deeper, json!(expected));
}

#[tokio::test]
async fn printed_text_reaches_output_and_host() {
    let mut session = TestSession::new();
    let output = session
        .run("print('a', 1)\nprint('\u{e9}')\nprint('x', end='')")
        .await;
    assert_eq!(output.text, "a 1\n\u{e9}\nx");
    assert_eq!(output.value, None);
    assert_eq!(session.host.printed, "a 1\n\u{e9}\nx");
}

#[tokio::test]
async fn uncaught_exception_has_a_traceback_with_lines() {
    let mut session = TestSession::new();
    let code = "y = 5\ndef g(n):\n    return 1 / n\n\ng(0)";
    let error = session.error(code).await;
    let expected = "Traceback (most recent call last):\n  \
        File \"<python-input-0>\", line 5, in <module>\n    g(0)\n    ~~~~\n  \
        File \"<python-input-0>\", line 3, in g\n    return 1 / n\n           ~~~~~\n\
        ZeroDivisionError: division by zero";
    assert_eq!(error, expected);
    // Assignments before the exception remain.
    assert_eq!(session.value("y").await, json!(5));
}

#[tokio::test]
async fn syntax_error_names_the_line() {
    let mut session = TestSession::new();
    session.value("x = 1").await;
    let error = session.error("a = 1\nb = = 2").await;
    assert!(error.contains("line 2"), "{error}");
    assert!(error.contains("SyntaxError"), "{error}");
    assert_eq!(session.value("x").await, json!(1));
}

#[tokio::test]
async fn unknown_name_is_a_name_error() {
    let error = TestSession::new().error("x = 1\nunknown(x)").await;
    assert!(
        error.ends_with("NameError: name 'unknown' is not defined"),
        "{error}"
    );
    assert!(error.contains("line 2"), "{error}");
}

#[tokio::test]
async fn operating_system_is_refused() {
    let mut session = TestSession::new();
    for code in [
        "open('/etc/passwd')",
        "import os\nos.getenv('HOME')",
        "import os\nos.environ",
        "from pathlib import Path\nPath('/').exists()",
        "from datetime import datetime\ndatetime.now()",
    ] {
        let error = session.error(code).await;
        assert!(error.contains("PermissionError: "), "{error}");
        assert!(
            error.contains("no access to files, the environment or the clock"),
            "{error}"
        );
    }
    let caught = "try:\n    open('a')\nexcept PermissionError:\n    r = 'caught'\nr";
    assert_eq!(session.value(caught).await, json!("caught"));
}

fn json_value() -> impl Strategy<Value = Value> {
    let number = prop_oneof![
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        proptest::num::f64::NORMAL.prop_map(Value::from),
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        number,
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 6, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            proptest::collection::btree_map(any::<String>(), inner, 0..6)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

#[test]
fn json_values_round_trip_through_the_interpreter() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let session = std::cell::RefCell::new(TestSession::new());
    let mut runner = TestRunner::new(Config {
        failure_persistence: None,
        ..Config::with_cases(100)
    });
    runner
        .run(&json_value(), |value| {
            let mut session = session.borrow_mut();
            // The host's result is a value of the interpreter, which goes back as an argument and as the value of
            // the block.
            let functions = ["given".to_owned()];
            let mut host = Giver {
                value: value.clone(),
                received: None,
            };
            let run = session
                .session
                .run("x = given()\ngiven(x)\nx", &functions, &mut host);
            let output = runtime.block_on(run);
            proptest::prop_assert_eq!(output.end, CodeEnd::Completed);
            proptest::prop_assert_eq!(host.received, Some(value.clone()));
            proptest::prop_assert_eq!(output.value.unwrap_or_default(), value);
            Ok(())
        })
        .unwrap();
}

/// Returns a value and remembers the argument.
struct Giver {
    value: Value,
    received: Option<Value>,
}

impl turnery_code::CodeHost for Giver {
    fn call<'a>(
        &'a mut self,
        calls: Vec<turnery_code::CodeCall>,
    ) -> futures_util::future::BoxFuture<'a, turnery_code::CallReply> {
        for call in calls {
            self.received = call.args.into_iter().next();
        }
        let result = Ok(self.value.clone());
        Box::pin(async move { turnery_code::CallReply::Results(vec![result]) })
    }

    fn print(&mut self, _text: &str) {}
}

#[test]
fn session_and_its_run_can_move_between_threads() {
    fn check_send(_: &impl Send) {}
    let mut session = TestSession::new();
    check_send(&session.session);
    check_send(&session.session.run("1", &[], &mut session.host));
}
