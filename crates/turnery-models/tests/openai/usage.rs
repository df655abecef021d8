//! Tests usage reports in the forms of all servers.

use crate::variants::read;
use turnery_engine::Usage;

/// Counts: input, output, reasoning, read from the cache, written to it.
type Counts = (u64, u64, u64, u64, u64);

fn usage((input, output, reasoning, cache_read, cache_write): Counts) -> Usage {
    Usage {
        input,
        output,
        reasoning,
        cache_read,
        cache_write,
    }
}

/// Quirks 44, 45 and 52.
// proves: LASH-107, LASH-108, LASH-109, LASH-110, LASH-111
// proves: CHAT-44, CHAT-45, CHAT-52
#[tokio::test]
async fn usage_is_read_in_every_form() {
    let cases: [(&str, &str, Option<Counts>); 16] = [
        (
            "reasoning within the completion",
            r#"{"prompt_tokens":10,"completion_tokens":20,"total_tokens":30,"completion_tokens_details":{"reasoning_tokens":8}}"#,
            Some((10, 20, 8, 0, 0)),
        ),
        (
            "xAI: beside it, by the total",
            r#"{"prompt_tokens":10,"completion_tokens":20,"total_tokens":38,"completion_tokens_details":{"reasoning_tokens":8}}"#,
            Some((10, 28, 8, 0, 0)),
        ),
        (
            "beside it, more than the completion, without a total",
            r#"{"prompt_tokens":10,"completion_tokens":5,"completion_tokens_details":{"reasoning_tokens":8}}"#,
            Some((10, 13, 8, 0, 0)),
        ),
        (
            "Doubleword: within it by the total, though more",
            r#"{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15,"completion_tokens_details":{"reasoning_tokens":8}}"#,
            Some((10, 5, 5, 0, 0)),
        ),
        (
            "OpenAI: cached tokens",
            r#"{"prompt_tokens":100,"completion_tokens":1,"prompt_tokens_details":{"cached_tokens":64}}"#,
            Some((36, 1, 0, 64, 0)),
        ),
        (
            "DeepSeek: cache hits",
            r#"{"prompt_tokens":100,"completion_tokens":1,"prompt_cache_hit_tokens":64,"prompt_cache_miss_tokens":36}"#,
            Some((36, 1, 0, 64, 0)),
        ),
        (
            "Moonshot: cached tokens at the top",
            r#"{"prompt_tokens":100,"completion_tokens":1,"cached_tokens":64}"#,
            Some((36, 1, 0, 64, 0)),
        ),
        (
            "OpenRouter: cache writes",
            r#"{"prompt_tokens":100,"completion_tokens":1,"prompt_tokens_details":{"cached_tokens":60,"cache_write_tokens":30}}"#,
            Some((10, 1, 0, 60, 30)),
        ),
        (
            "Qwen: cache writes",
            r#"{"prompt_tokens":100,"completion_tokens":1,"prompt_tokens_details":{"cache_creation_input_tokens":30}}"#,
            Some((70, 1, 0, 0, 30)),
        ),
        (
            "more cached than sent",
            r#"{"prompt_tokens":10,"completion_tokens":1,"cached_tokens":64}"#,
            Some((0, 1, 0, 10, 0)),
        ),
        (
            "floats and strings",
            r#"{"prompt_tokens":10.0,"completion_tokens":"20","total_tokens":null}"#,
            Some((10, 20, 0, 0, 0)),
        ),
        (
            "negative",
            r#"{"prompt_tokens":-1,"completion_tokens":20}"#,
            None,
        ),
        (
            "fractional",
            r#"{"prompt_tokens":1.5,"completion_tokens":20}"#,
            None,
        ),
        ("empty", "{}", None),
        ("no object", "7", None),
        ("null", "null", None),
    ];
    for (what, report, expected) in cases {
        let expected = expected.map(usage);
        let end = r#"{"choices":[{"delta":{"content":"Hi"},"finish_reason":"stop"}]}"#;
        let at_top = format!(r#"{{"choices":[],"usage":{report}}}"#);
        let in_choice = format!(
            r#"{{"choices":[{{"delta":{{"content":"Hi"}},"finish_reason":"stop","usage":{report}}}]}}"#
        );
        assert_eq!(read(&[end, &at_top]).await.usage, expected, "{what}");
        assert_eq!(read(&[&in_choice]).await.usage, expected, "{what}");
    }
}

#[tokio::test]
async fn empty_report_keeps_the_one_before() {
    let end = r#"{"choices":[{"delta":{"content":"Hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":2}}"#;
    let response = read(&[end, r#"{"choices":[],"usage":{}}"#]).await;
    assert_eq!(response.usage, Some(usage((1, 2, 0, 0, 0))));
}
