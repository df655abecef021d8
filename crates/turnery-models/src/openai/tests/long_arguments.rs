//! Tests that long arguments are read in linear time.

use crate::{
    dialect::ResponseReader as _,
    openai::{quirks::ReasoningField, stream::OpenAiReader},
};
use std::{
    fs,
    sync::LazyLock,
    time::{Duration, Instant},
};
use turnery_engine::CallIds;

/// Returns the processor time of this thread, which does not depend on what else runs; where the system does not tell,
/// the time since the first call.
fn processor_time() -> Duration {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    let told = fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanos = told.and_then(|text| text.split(' ').next()?.parse().ok());
    nanos.map_or_else(|| START.elapsed(), Duration::from_nanos)
}

/// Returns the time for reading a call with `count` fragments of 16 bytes.
fn read_fragments(count: usize) -> Duration {
    let field = ReasoningField::ReasoningContent;
    let mut reader = OpenAiReader::new("acme", "m1", field, CallIds::default());
    let delta = |call: &str| format!(r#"{{"choices":[{{"delta":{{"tool_calls":[{call}]}}}}]}}"#);
    let start =
        delta(r#"{"index":0,"id":"c","function":{"name":"write","arguments":"{\"text\":\""}}"#);
    // The name and the id in each fragment: the hardest form to assign.
    let fragment =
        delta(r#"{"index":0,"id":"c","function":{"name":"write","arguments":"0123456789abcdef"}}"#);
    let end = delta(r#"{"index":0,"function":{"arguments":"\"}"}}"#);
    let started = processor_time();
    let mut deltas = Vec::new();
    reader.on(&start, &mut deltas).unwrap();
    for _ in 0..count {
        deltas.clear();
        reader.on(&fragment, &mut deltas).unwrap();
    }
    reader.on(&end, &mut deltas).unwrap();
    reader.on("[DONE]", &mut deltas).unwrap();
    let response = reader.end().unwrap();
    let time = processor_time().saturating_sub(started);
    let text = response.calls().next().unwrap().args["text"]
        .as_str()
        .map(str::len);
    assert_eq!(text, Some(count * 16));
    time
}

#[test]
fn a_megabyte_of_arguments_takes_linear_time() {
    let fastest = |count| (0..3).map(|_| read_fragments(count)).min().unwrap();
    let little = fastest(4 * 1024);
    let megabyte = fastest(64 * 1024);
    // Sixteen times the time if linear, 256 times if quadratic.
    assert!(megabyte < little * 40, "{little:?}, {megabyte:?}");
}
