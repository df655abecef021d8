//! Tests the classification of lines (RPC-1 to RPC-8) with a table.

use crate::server::envelope::{Envelope, classify_line, parse_request_id};
use proptest::prelude::*;

/// Formats the classification of a line: `request METHOD ID`, `notification METHOD`, `result ID`, `error ID`,
/// `dropped` (ignored), or `CODE ID` (malformed).
fn summary(line: &str) -> String {
    match classify_line(line.as_bytes()) {
        Envelope::Request(request) => format!("request {} {}", request.method, request.raw_id),
        Envelope::Notification { method, .. } => format!("notification {method}"),
        Envelope::Response { result: Ok(_), id } => format!("result {id:?}"),
        Envelope::Response { result: Err(_), id } => format!("error {id:?}"),
        Envelope::Ignored => "dropped".to_owned(),
        Envelope::Malformed { id, code, .. } => format!("{code} {id}"),
    }
}

// proves: RPC-1, RPC-2, RPC-3, RPC-6, RPC-7, RPC-8, UP-39, G-25
#[test]
fn lines_are_classified() {
    let table = [
        // RPC-2: ids byte for byte.
        (r#"{"jsonrpc":"2.0","id":0,"method":"a"}"#, "request a 0"),
        (r#"{"jsonrpc":"2.0","id":-1,"method":"a"}"#, "request a -1"),
        (
            r#"{"jsonrpc":"2.0","id":"0","method":"a"}"#,
            "request a \"0\"",
        ),
        (
            r#"{"jsonrpc":"2.0","id":"","method":"a"}"#,
            "request a \"\"",
        ),
        (
            r#"{"jsonrpc":"2.0","id":"\u0041","method":"a"}"#,
            r#"request a "\u0041""#,
        ),
        (
            r#"{"jsonrpc":"2.0","id":null,"method":"a"}"#,
            "request a null",
        ),
        (
            r#"{"jsonrpc":"2.0","id":9223372036854775807,"method":"a"}"#,
            "request a 9223372036854775807",
        ),
        (
            r#"{"jsonrpc":"2.0","id":-9223372036854775808,"method":"a"}"#,
            "request a -9223372036854775808",
        ),
        // RPC-3: invalid ids.
        (r#"{"jsonrpc":"2.0","id":1.5,"method":"a"}"#, "-32600 null"),
        (
            r#"{"jsonrpc":"2.0","id":9223372036854775808,"method":"a"}"#,
            "-32600 null",
        ),
        (r#"{"jsonrpc":"2.0","id":{},"method":"a"}"#, "-32600 null"),
        (r#"{"jsonrpc":"2.0","id":true,"method":"a"}"#, "-32600 null"),
        // RPC-6: not JSON.
        (r#"{"a":"#, "-32700 null"),
        ("nonsense", "-32700 null"),
        ("[1", "-32700 null"),
        // RPC-7: JSON that is not a message.
        ("{}", "-32600 null"),
        ("1", "-32600 null"),
        ("\"a\"", "-32600 null"),
        ("null", "-32600 null"),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"a","params":1}"#,
            "-32600 null",
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"a","params":"b"}"#,
            "-32600 null",
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"a","result":{}}"#,
            "-32600 null",
        ),
        (r#"{"jsonrpc":"2.0","id":1,"method":2}"#, "-32600 null"),
        (
            r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"a"}"#,
            "-32600 null",
        ),
        (r#"{"jsonrpc":"2.0","id":1}"#, "-32600 null"),
        // RPC-1: no other version, but the id is known.
        (r#"{"jsonrpc":"1.0","id":7,"method":"a"}"#, "-32600 7"),
        (r#"{"id":"x","method":"a"}"#, "-32600 \"x\""),
        // RPC-8: batches.
        ("[]", "-32600 null"),
        ("[1]", "-32600 null"),
        (
            r#"[{"jsonrpc":"2.0","id":1,"method":"initialize"}]"#,
            "-32600 null",
        ),
        // Notifications.
        (r#"{"jsonrpc":"2.0","method":"a"}"#, "notification a"),
        (
            r#"{"jsonrpc":"2.0","method":"$/x","params":null}"#,
            "notification $/x",
        ),
        // RPC-5 before RPC-7: malformed notifications.
        (r#"{"jsonrpc":"2.0","method":"a","params":7}"#, "dropped"),
        (r#"{"jsonrpc":"2.0","method":"a","params":"b"}"#, "dropped"),
        (r#"{"method":"a"}"#, "dropped"),
        (r#"{"jsonrpc":"1.0","method":"a","params":{}}"#, "dropped"),
        // Without a string `method` it is not a notification.
        (r#"{"jsonrpc":"2.0","method":1,"params":7}"#, "-32600 null"),
        (
            r#"{"jsonrpc":"2.0","method":"a","result":{}}"#,
            "-32600 null",
        ),
        // Responses, and lines that resemble one.
        (
            r#"{"jsonrpc":"2.0","id":4,"result":null}"#,
            "result Number(4)",
        ),
        (
            r#"{"jsonrpc":"2.0","id":4,"result":{},"error":null}"#,
            "result Number(4)",
        ),
        (
            r#"{"jsonrpc":"2.0","id":4,"error":{"code":1,"message":""}}"#,
            "error Number(4)",
        ),
        (
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":""}}"#,
            "error Null",
        ),
        (
            r#"{"jsonrpc":"2.0","id":4,"result":{},"error":{}}"#,
            "dropped",
        ),
        (r#"{"jsonrpc":"2.0","result":{}}"#, "dropped"),
        (r#"{"jsonrpc":"2.0","id":1.5,"result":{}}"#, "dropped"),
    ];
    for (line, expected) in table {
        assert_eq!(summary(line), expected, "{line}");
    }
}

// proves: TR-1
#[test]
fn invalid_utf8_is_a_parse_error() {
    let line = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}";
    assert!(matches!(
        classify_line(line),
        Envelope::Malformed {
            id: "null",
            code: -32700,
            ..
        }
    ));
}

#[test]
fn ids_are_compared_by_value() {
    assert_eq!(parse_request_id(r#""\u0041""#), parse_request_id(r#""A""#));
    assert_ne!(parse_request_id("1"), parse_request_id("\"1\""));
    assert_eq!(parse_request_id("1e3"), None);
}

proptest! {
    /// Classifying arbitrary bytes never panics.
    #[test]
    fn classify_never_panics(line in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = classify_line(&line);
    }

    // proves: RPC-2, RPC-23
    #[test]
    fn every_int64_id_is_preserved(id in any::<i64>()) {
        let line = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"m"}}"#);
        prop_assert_eq!(summary(&line), format!("request m {id}"));
    }
}
