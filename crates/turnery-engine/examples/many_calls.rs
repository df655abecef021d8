//! Measures how long a loop takes to cancel an answer with very many calls, at two sizes: the time
//! should grow with their number. Run with `cargo run --release --example many_calls`.

use std::{io::Write as _, sync::Arc, time::Instant};
use turnery_engine::{
    ConfigSnapshot, Content, Effect, Input, Limits, Loop, LoopSpec, ModelStop, Response,
    ResponseLimits, Timestamp, ToolCall, Verdict,
};

fn spec() -> LoopSpec {
    let config = ConfigSnapshot {
        model: "m".to_owned(),
        provider: "p".to_owned(),
        config_id: None,
        name: None,
        api: None,
        base_url: None,
        reasoning: None,
        context_window: None,
        max_tokens: None,
        thinking_level: None,
        temperature: None,
    };
    let input = vec![Content::text("hello")];
    LoopSpec {
        limits: Limits {
            response: ResponseLimits {
                bytes: u64::MAX,
                calls: u64::MAX,
            },
            ..Limits::default()
        },
        ..LoopSpec::for_prompt("s".into(), "s.c.1".into(), "p".into(), config, input)
    }
}

fn answer(count: usize) -> Response {
    let call = |at| {
        Content::ToolCall(ToolCall {
            call_id: format!("c{at}").into(),
            name: "tool".to_owned(),
            args: Arc::new(serde_json::Value::Null),
        })
    };
    Response {
        content: (0..count).map(call).collect(),
        stop: ModelStop::ToolUse,
        raw_stop: None,
        usage: None,
        model: "m".to_owned(),
        provider: "p".to_owned(),
        tool_results: Vec::new(),
    }
}

fn main() -> std::io::Result<()> {
    for count in [10_000, 100_000] {
        let now = Timestamp::default();
        let mut out: Vec<Effect> = Vec::new();
        let mut machine = Loop::start(spec(), now, &mut out);
        let begun = Instant::now();
        let response = answer(count);
        let calls = Vec::new();
        machine.handle_input(now, Input::ModelAnswered { response, calls }, &mut out);
        let call_id = "c0".into();
        let verdict = Verdict::Allow;
        machine.handle_input(now, Input::Verdict { call_id, verdict }, &mut out);
        let answered = begun.elapsed();
        machine.handle_input(now, Input::Cancel, &mut out);
        machine.handle_input(now, Input::GraceOver, &mut out);
        let cancelled = begun.elapsed() - answered;
        writeln!(
            std::io::stdout(),
            "{count} calls: answered in {} ms, cancelled in {} ms, {} effects",
            answered.as_millis(),
            cancelled.as_millis(),
            out.len()
        )?;
    }
    Ok(())
}
