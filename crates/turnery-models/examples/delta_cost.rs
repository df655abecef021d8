//! Measures the CPU time that a streamed response costs in each API: from the socket to the events that the caller receives,
//! with all threads of the client and the kernel's part. Linux only. Run with `cargo run --release --example delta_cost`.
//!
//! The first table is about 5,000 deltas of text, compared with parsing their data twice into a `serde_json::Value`. The
//! second is about the arguments of one call: with linear accumulation, twice the size takes twice the time.

use std::{
    error::Error,
    fs,
    io::{self, Read, Write},
    net::TcpListener,
    thread,
    time::Duration,
};
use turnery_models::{
    Api, ModelEventSender, ModelRegistry, ModelRequest, ProviderConfig, Thinking,
};

const DELTA_COUNT: usize = 5_000;

/// Fragment of arguments. Their size is typical: one to four tokens.
const FRAGMENT: &str = "0123456789abcdef";

/// Each figure is the smallest of so many runs.
const RUNS: usize = 15;

const APIS: [Api; 4] = [
    Api::OpenAi,
    Api::OpenAiResponses,
    Api::Anthropic,
    Api::Gemini,
];

fn main() -> Result<(), Box<dyn Error>> {
    let mut out = io::stdout();
    writeln!(out, "API | ns per delta | parsed twice, ns | ratio")?;
    for api in APIS {
        let events = text_events(api);
        let cost = smallest(|| call_cost(api, &events, DELTA_COUNT))? / DELTA_COUNT as u64;
        let parsing = smallest(|| parse_twice(&events.fragment))?;
        let ratio = cost as f64 / parsing as f64;
        writeln!(out, "{api:?} | {cost} | {parsing} | {ratio:.2}")?;
    }
    writeln!(out, "\nAPI | arguments of 1, 2, 4 MiB, ms")?;
    for api in APIS {
        write!(out, "{api:?}")?;
        for mebibytes in [1, 2, 4] {
            let (events, count) = call_events(api, mebibytes * (1 << 20) / FRAGMENT.len());
            let cost = smallest(|| call_cost(api, &events, count))?;
            write!(out, " | {:.1}", cost as f64 / 1e6)?;
        }
        writeln!(out)?;
    }
    Ok(())
}

/// Events of a stream, each as its data: `fragment` is repeated.
struct Events {
    start: Vec<String>,
    fragment: String,
    end: Vec<String>,
}

/// Returns a stream of text fragments.
fn text_events(api: Api) -> Events {
    let (start, fragment, end): (&[&str], &str, &[&str]) = match api {
        Api::OpenAi => (
            &[],
            r#"{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1795821451,"model":"m1","choices":[{"index":0,"delta":{"content":" word"},"finish_reason":null}]}"#,
            &[
                r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#,
                "[DONE]",
            ],
        ),
        Api::OpenAiResponses => (
            &[
                r#"{"type":"response.output_item.added","output_index":0,"item":{"id":"msg_1","type":"message","role":"assistant","content":[]}}"#,
            ],
            r#"{"type":"response.output_text.delta","sequence_number":4,"item_id":"msg_1","output_index":0,"content_index":0,"delta":" word","logprobs":[],"obfuscation":"Hk3xZy91Ab"}"#,
            &[
                r#"{"type":"response.output_item.done","output_index":0,"item":{"id":"msg_1","type":"message","role":"assistant","status":"completed","content":[{"type":"output_text","text":"TEXT"}]}}"#,
                r#"{"type":"response.completed","response":{"status":"completed","output":[],"usage":{"input_tokens":1,"output_tokens":1,"total_tokens":2}}}"#,
            ],
        ),
        Api::Anthropic => (
            &[
                r#"{"type":"message_start","message":{"id":"msg_1","model":"m1","usage":{"input_tokens":1,"output_tokens":1}}}"#,
                r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
            ],
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":" word"}}"#,
            &[
                r#"{"type":"content_block_stop","index":0}"#,
                r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":9}}"#,
                r#"{"type":"message_stop"}"#,
            ],
        ),
        Api::Gemini => (
            &[],
            r#"{"candidates":[{"content":{"parts":[{"text":" word"}],"role":"model"},"index":0}],"usageMetadata":{"promptTokenCount":9,"candidatesTokenCount":2,"totalTokenCount":11},"modelVersion":"m1","responseId":"r1"}"#,
            &[
                r#"{"candidates":[{"content":{"parts":[{"text":"."}],"role":"model"},"finishReason":"STOP","index":0}]}"#,
            ],
        ),
    };
    let text = " word".repeat(DELTA_COUNT);
    Events {
        start: start.iter().map(|&event| event.to_owned()).collect(),
        fragment: fragment.to_owned(),
        end: end
            .iter()
            .map(|event| event.replace("TEXT", &text))
            .collect(),
    }
}

/// Returns a stream with a call whose arguments consist of so many fragments, and how often its fragment is sent: Gemini
/// sends them at once.
fn call_events(api: Api, fragments: usize) -> (Events, usize) {
    let whole = FRAGMENT.repeat(fragments);
    let mut count = fragments;
    let (start, fragment, end) = match api {
        Api::OpenAi => {
            let call = |call: &str| {
                format!(
                    r#"{{"choices":[{{"index":0,"delta":{{"tool_calls":[{{"index":0,{call}}}]}}}}]}}"#
                )
            };
            (
                vec![call(
                    r#""id":"c1","type":"function","function":{"name":"write","arguments":"{\"text\":\""}"#,
                )],
                call(&format!(r#""function":{{"arguments":"{FRAGMENT}"}}"#)),
                vec![
                    call(r#""function":{"arguments":"\"}"}"#),
                    r#"{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}"#
                        .to_owned(),
                    "[DONE]".to_owned(),
                ],
            )
        }
        Api::OpenAiResponses => {
            let item = |state: &str, arguments: &str| {
                format!(
                    r#"{{"type":"response.output_item.{state}","output_index":0,"item":{{"id":"fc_1","type":"function_call","call_id":"c1","name":"write","arguments":"{arguments}"}}}}"#
                )
            };
            let delta = |text: &str| {
                format!(
                    r#"{{"type":"response.function_call_arguments.delta","item_id":"fc_1","output_index":0,"delta":"{text}"}}"#
                )
            };
            (
                vec![item("added", ""), delta(r#"{\"text\":\""#)],
                delta(FRAGMENT),
                vec![
                    delta(r#"\"}"#),
                    item("done", &format!(r#"{{\"text\":\"{whole}\"}}"#)),
                    r#"{"type":"response.completed","response":{"status":"completed","output":[]}}"#.to_owned(),
                ],
            )
        }
        Api::Anthropic => {
            let delta = |text: &str| {
                format!(
                    r#"{{"type":"content_block_delta","index":0,"delta":{{"type":"input_json_delta","partial_json":"{text}"}}}}"#
                )
            };
            (
                vec![
                    r#"{"type":"message_start","message":{"id":"msg_1","model":"m1"}}"#.to_owned(),
                    r#"{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"c1","name":"write","input":{}}}"#.to_owned(),
                    delta(r#"{\"text\":\""#),
                ],
                delta(FRAGMENT),
                vec![
                    delta(r#"\"}"#),
                    r#"{"type":"content_block_stop","index":0}"#.to_owned(),
                    r#"{"type":"message_delta","delta":{"stop_reason":"tool_use"}}"#.to_owned(),
                    r#"{"type":"message_stop"}"#.to_owned(),
                ],
            )
        }
        Api::Gemini => {
            count = 1;
            (
                vec![],
                format!(
                    r#"{{"candidates":[{{"content":{{"parts":[{{"functionCall":{{"name":"write","args":{{"text":"{whole}"}}}}}}],"role":"model"}},"index":0}}]}}"#
                ),
                vec![r#"{"candidates":[{"finishReason":"STOP","index":0}]}"#.to_owned()],
            )
        }
    };
    let events = Events {
        start,
        fragment,
        end,
    };
    (events, count)
}

fn smallest(mut run: impl FnMut() -> Result<u64, Box<dyn Error>>) -> Result<u64, Box<dyn Error>> {
    let first = run()?;
    (1..RUNS).try_fold(first, |least, _| Ok(run()?.min(least)))
}

/// Returns the CPU time of a call of a model that responds with these events. Unit: nanoseconds.
fn call_cost(api: Api, events: &Events, count: usize) -> Result<u64, Box<dyn Error>> {
    let encode = |events: &[String]| -> String {
        events
            .iter()
            .map(|data| format!("data: {data}\n\n"))
            .collect()
    };
    let (start, fragment, end) = (
        encode(&events.start),
        format!("data: {}\n\n", events.fragment),
        encode(&events.end),
    );
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let base_url = format!("http://{}/v1", listener.local_addr()?);
    let provider = ProviderConfig::new("local", api, base_url);
    let model = ModelRegistry::new(vec![provider]).model(&"local/m1".parse()?)?;
    let request =
        ModelRequest::single_question("s".into(), "", "m0", "hello".to_owned(), Thinking::Off);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let before = cpu_time()?;
    // The server's thread starts after this measurement and has ended before the next, so its time does not count.
    let server = thread::spawn(move || -> io::Result<()> {
        let (mut socket, _) = listener.accept()?;
        let _ = socket.read(&mut [0; 65536])?;
        socket.write_all(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n")?;
        socket.write_all(start.as_bytes())?;
        for _ in 0..count {
            socket.write_all(fragment.as_bytes())?;
        }
        socket.write_all(end.as_bytes())
    });
    let received = runtime.block_on(async {
        let (sender, mut receiver) = ModelEventSender::new(64);
        let received = async {
            let mut received = 0;
            while receiver.recv().await.is_some() {
                received += 1;
            }
            received
        };
        let (response, received) =
            futures_util::future::join(model.call(request, sender), received).await;
        response.map(|_| received)
    })?;
    server.join().map_err(|_| "the server panicked")??;
    let cost = cpu_time()? - before;
    if received < count {
        return Err(format!("{received} events for {count} fragments").into());
    }
    Ok(cost)
}

/// Returns the CPU time of parsing the data of a delta twice. Unit: nanoseconds.
fn parse_twice(data: &str) -> Result<u64, Box<dyn Error>> {
    let before = cpu_time()?;
    for _ in 0..2 * DELTA_COUNT {
        let value: serde_json::Value = serde_json::from_str(std::hint::black_box(data))?;
        std::hint::black_box(value);
    }
    Ok((cpu_time()? - before) / DELTA_COUNT as u64)
}

/// Returns the CPU time of all running threads, including the kernel. Unit: nanoseconds.
fn cpu_time() -> Result<u64, Box<dyn Error>> {
    // The kernel counts the time of a running thread when it stops running.
    thread::sleep(Duration::from_millis(1));
    let mut sum = 0;
    for thread in fs::read_dir("/proc/self/task")? {
        let stat = fs::read_to_string(thread?.path().join("schedstat"))?;
        let first = stat.split_whitespace().next().ok_or("an empty schedstat")?;
        sum += first.parse::<u64>()?;
    }
    Ok(sum)
}
