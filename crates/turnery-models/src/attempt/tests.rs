//! Tests endless responses and silent calls, in virtual time and without a socket.

use super::*;
use crate::{
    CallLimits, ModelEvent, ModelInfo, ProviderConfig, SilenceNotice, anthropic::Anthropic,
    dialect::ApiDialect, model_registry::ModelRegistry, openai::OpenAi, silence::SilenceLimits,
};
use std::{collections::VecDeque, time::Duration};
use tokio::{
    sync::mpsc::Receiver,
    task::consume_budget,
    time::{Instant, advance, sleep},
};
use turnery_engine::{CallIds, ModelErrorKind};

const PING: &str = ": ping\n\n";
const DONE: &str =
    "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn text_event(text: &str) -> String {
    format!("data: {{\"choices\":[{{\"delta\":{{\"content\":\"{text}\"}}}}]}}\n\n")
}

/// Byte source with delayed chunks; then repeats the last chunk forever, or stays silent.
struct ScriptedSource {
    chunks: VecDeque<(Duration, String)>,
    is_endless: bool,
    sent_bytes: usize,
}

impl ScriptedSource {
    fn new(chunks: impl IntoIterator<Item = (u64, String)>) -> Self {
        let chunks = chunks.into_iter();
        Self {
            chunks: chunks
                .map(|(after, bytes)| (seconds(after), bytes))
                .collect(),
            is_endless: false,
            sent_bytes: 0,
        }
    }

    fn repeating(after: u64, bytes: impl Into<String>) -> Self {
        Self {
            is_endless: true,
            ..Self::new([(after, bytes.into())])
        }
    }
}

impl ByteSource for ScriptedSource {
    async fn next_chunk(&mut self) -> Result<Option<Bytes>, ModelError> {
        let next = match self.chunks.len() {
            1 if self.is_endless => self.chunks.front().cloned(),
            _ => self.chunks.pop_front(),
        };
        let Some((after, bytes)) = next else {
            return std::future::pending().await;
        };
        if !after.is_zero() {
            sleep(after).await;
        }
        self.sent_bytes += bytes.len();
        Ok(Some(bytes.into()))
    }
}

/// Byte source whose pings are always ready, however much time passes.
struct PingFlood;

impl ByteSource for PingFlood {
    async fn next_chunk(&mut self) -> Result<Option<Bytes>, ModelError> {
        advance(seconds(1)).await;
        Ok(Some(Bytes::from_static(PING.as_bytes())))
    }
}

/// Byte source that yields nothing and uses up the budget of its task whenever it is polled.
struct BusySource;

impl ByteSource for BusySource {
    async fn next_chunk(&mut self) -> Result<Option<Bytes>, ModelError> {
        loop {
            consume_budget().await;
        }
    }
}

fn limits() -> CallLimits {
    CallLimits {
        idle: seconds(30),
        content: seconds(100),
        notice: seconds(20),
        ..CallLimits::default()
    }
}

fn endpoint() -> (Endpoint, ModelInfo) {
    let provider = ProviderConfig {
        key_hint: "ACME_KEY".to_owned(),
        ..ProviderConfig::new("acme", crate::Api::OpenAi, "http://acme.test/v1")
    };
    let at = Endpoint::new(&provider, "m", "/chat/completions", &limits());
    let model = ModelRegistry::new(vec![provider]).model(&"acme/m".parse().unwrap());
    (at, model.unwrap().info().clone())
}

fn openai() -> OpenAi {
    OpenAi::new("http://acme.test/v1", "m1", false)
}

async fn collect_events(mut events: Receiver<ModelEvent>) -> Vec<ModelEvent> {
    let mut all = Vec::new();
    while let Some(next) = events.recv().await {
        all.push(next);
    }
    all
}

/// Reads a response; returns the result and the events sent.
async fn read_response(
    source: &mut impl ByteSource,
) -> (Result<Response, ModelError>, Vec<ModelEvent>) {
    read_with(openai(), ResponseLimits::default(), source).await
}

async fn read_with(
    dialect: impl ApiDialect,
    bounds: ResponseLimits,
    source: &mut impl ByteSource,
) -> (Result<Response, ModelError>, Vec<ModelEvent>) {
    let (at, info) = endpoint();
    let (out, events) = ModelEventSender::new(64);
    let reading = async {
        let mut sent_bytes = false;
        let mut silence = SilenceTimer::new(SilenceLimits::new(&limits(), false), Some(&out));
        let attempt = ResponseReceiver {
            endpoint: &at,
            reader: dialect.reader(&info, CallIds::default()),
            limits: bounds,
            first_block: 0,
            sender: &out,
            has_sent: &mut sent_bytes,
        };
        let ended = attempt.read_response(source, &mut silence).await;
        drop(out);
        ended.map_err(|failure| failure.error)
    };
    futures_util::future::join(reading, collect_events(events)).await
}

/// Returns the notices: length in seconds, and whether the connection is alive.
fn notices(events: &[ModelEvent]) -> Vec<(u64, bool)> {
    let notice = |events: &ModelEvent| match events {
        ModelEvent::Silence(SilenceNotice {
            length,
            is_connected,
        }) => Some((length.as_secs(), *is_connected)),
        ModelEvent::Delta(_) | ModelEvent::Retry(_) => None,
    };
    events.iter().filter_map(notice).collect()
}

#[tokio::test(start_paused = true)]
async fn pings_alone_end_at_the_content_limit() {
    let begun = Instant::now();
    let mut pings = ScriptedSource::repeating(9, PING);
    let (ended, events) = read_response(&mut pings).await;
    let error = ended.unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Timeout);
    assert_eq!(
        error.message,
        "acme at http://acme.test/v1 kept the connection open for 100 seconds and sent nothing of an answer: try again, choose another model, or raise limits.content_seconds in the configuration."
    );
    assert_eq!(begun.elapsed().as_secs(), 100);
    assert_eq!(notices(&events), [(20, true), (40, true), (80, true)]);
}

#[tokio::test(start_paused = true)]
async fn pings_that_are_always_ready_end_at_the_content_limit() {
    let (ended, events) = read_response(&mut PingFlood).await;
    assert_eq!(ended.unwrap_err().kind, ModelErrorKind::Timeout);
    assert_eq!(notices(&events), [(20, true), (40, true), (80, true)]);
}

#[tokio::test(start_paused = true)]
async fn dead_connection_ends_at_the_idle_limit() {
    let begun = Instant::now();
    let mut dead = ScriptedSource::new([(0, text_event("Hi"))]);
    let (ended, events) = read_response(&mut dead).await;
    let error = ended.unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Timeout);
    assert!(
        error
            .message
            .starts_with("acme at http://acme.test/v1 sent nothing for 30 seconds: "),
        "{}",
        error.message
    );
    assert_eq!(begun.elapsed().as_secs(), 30);
    assert_eq!(notices(&events), [(20, false)]);
}

/// A model that thinks for minutes between words is not cancelled.
#[tokio::test(start_paused = true)]
async fn slow_content_between_pings_resets_the_clocks() {
    let mut chunks = Vec::new();
    for _ in 0..10 {
        chunks.extend([(25, PING), (25, PING), (25, PING)].map(|(at, ping)| (at, ping.to_owned())));
        chunks.push((20, text_event("word ")));
    }
    chunks.push((0, DONE.to_owned()));
    let (ended, events) = read_response(&mut ScriptedSource::new(chunks)).await;
    assert_eq!(ended.unwrap().text(), "word ".repeat(10));
    let each = [(20, false), (40, true), (80, true)];
    assert_eq!(notices(&events), each.repeat(10));
}

/// The timer is set for the idle limit when content moves the next notice before it.
#[tokio::test(start_paused = true)]
async fn notice_after_content_is_not_late() {
    let chunks = [
        (25, PING.to_owned()),
        (15, PING.to_owned()),
        (1, text_event("Hi")),
        (25, PING.to_owned()),
        (0, DONE.to_owned()),
    ];
    let (ended, events) = read_response(&mut ScriptedSource::new(chunks)).await;
    assert_eq!(ended.unwrap().text(), "Hi");
    assert_eq!(notices(&events), [(20, false), (40, true), (20, false)]);
}

#[tokio::test(start_paused = true)]
async fn busy_source_does_not_postpone_the_idle_limit() {
    let reading = tokio::spawn(async { read_response(&mut BusySource).await.0 });
    tokio::task::yield_now().await;
    advance(seconds(31)).await;
    // Otherwise the task would run forever.
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    assert!(reading.is_finished());
    let error = reading.await.unwrap().unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Timeout);
}

#[tokio::test(start_paused = true)]
async fn empty_event_is_ignored() {
    let chunks = [
        (1, "data:\n\ndata: \n\n".to_owned()),
        (1, text_event("Hi")),
        (0, DONE.to_owned()),
    ];
    let (ended, _) = read_response(&mut ScriptedSource::new(chunks)).await;
    assert_eq!(ended.unwrap().text(), "Hi");
}

const SMALL_LIMITS: ResponseLimits = ResponseLimits {
    bytes: 1 << 20,
    calls: 50,
};

/// Reads an endless response; returns the limit's message and how much the server sent.
async fn read_until_limit(dialect: impl ApiDialect, first: &str, endless: &str) -> (String, usize) {
    let mut server = ScriptedSource::repeating(0, endless);
    server.chunks.push_front((Duration::ZERO, first.to_owned()));
    let (ended, _) = read_with(dialect, SMALL_LIMITS, &mut server).await;
    let error = ended.unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::AnswerLimit);
    (error.message, server.sent_bytes)
}

// proves: UP-1
#[tokio::test(start_paused = true)]
async fn endless_response_of_any_block_kind_is_stopped() {
    let size = "Max answer size reached (1048576 bytes)";
    let kib = "x".repeat(1024);
    let thinking =
        format!("data: {{\"choices\":[{{\"delta\":{{\"reasoning_content\":\"{kib}\"}}}}]}}\n\n");
    let arguments = format!(
        "data: {{\"choices\":[{{\"delta\":{{\"tool_calls\":[{{\"index\":0,\"function\":{{\"arguments\":\"{kib}\"}}}}]}}}}]}}\n\n"
    );
    for endless in [text_event(&kib), thinking, arguments] {
        let (limit, sent_bytes) = read_until_limit(openai(), "", &endless).await;
        assert_eq!(limit, size);
        assert!(sent_bytes <= 1_300_000, "{sent_bytes} of {endless}");
    }
    let delta = |delta: &str| {
        format!("data: {{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{{{delta}}}}}\n\n")
    };
    let start = |block: &str| {
        format!(
            "data: {{\"type\":\"content_block_start\",\"index\":0,\"content_block\":{{\"type\":{block}}}}}\n\n"
        )
    };
    let cases = [
        (start("\"text\""), delta(&format!("\"text\":\"{kib}\""))),
        (
            start("\"thinking\""),
            delta(&format!("\"signature\":\"{kib}\"")),
        ),
        (
            start("\"odd\""),
            delta(&format!("\"partial_json\":\"{kib}\"")),
        ),
        (String::new(), start(&format!("\"odd\",\"data\":\"{kib}\""))),
        // Empty blocks.
        (String::new(), start("\"thinking\"")),
    ];
    for (first, endless) in cases {
        let (limit, sent_bytes) = read_until_limit(Anthropic::default(), &first, &endless).await;
        assert_eq!(limit, size, "{endless}");
        assert!(sent_bytes <= 1_300_000, "{sent_bytes} of {endless}");
    }
}

// proves: UP-1
#[tokio::test(start_paused = true)]
async fn endless_calls_are_stopped_with_and_without_arguments() {
    let limit = "Max calls of one answer reached (50)";
    for arguments in ["{}", ""] {
        let call = format!(
            "data: {{\"choices\":[{{\"delta\":{{\"tool_calls\":[{{\"function\":{{\"name\":\"read\",\"arguments\":\"{arguments}\"}}}}]}}}}]}}\n\n"
        );
        let (events, sent_bytes) = read_until_limit(openai(), "", &call).await;
        assert_eq!((events.as_str(), sent_bytes), (limit, 51 * call.len()));
    }
    let block = "data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"tool_use\",\"name\":\"read\"}}\n\n";
    let (events, sent_bytes) = read_until_limit(Anthropic::default(), "", block).await;
    assert_eq!((events.as_str(), sent_bytes), (limit, 51 * block.len()));
}

/// A response that is always ready still yields to other tasks.
#[tokio::test(start_paused = true)]
async fn long_response_yields_to_other_tasks() {
    // One delta per chunk, so that the bounded queue is not what yields to other tasks.
    let chunk = text_event(&"x".repeat(YIELD_AFTER_BYTES));
    let mut chunks = vec![(0, chunk); 40];
    chunks.push((0, DONE.to_owned()));
    let mut server = ScriptedSource::new(chunks);
    let turns = std::cell::Cell::new(0);
    let reading = async {
        let (ended, _) = read_response(&mut server).await;
        assert_eq!(ended.unwrap().text().len(), 40 * YIELD_AFTER_BYTES);
    };
    let other = async {
        loop {
            turns.set(turns.get() + 1);
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        () = reading => {}
        () = other => {}
    }
    assert!(turns.get() >= 40, "{} turns", turns.get());
}

/// Every delta has the name and no id, so each may start a call if the previous one is complete.
#[tokio::test(start_paused = true)]
async fn arguments_under_a_repeated_name_are_read_once() {
    let call = |arguments: &str| {
        format!(
            "data: {{\"choices\":[{{\"delta\":{{\"tool_calls\":[{{\"index\":0,\"function\":{{\"name\":\"read\",\"arguments\":{}}}}}]}}}}]}}\n\n",
            serde_json::Value::from(arguments)
        )
    };
    // Re-reading the text at each delta would take 2 GB.
    let mut chunks = vec![(0, call("{\"a\":\""))];
    chunks.extend(vec![(0, call("}}}}}}}}}}").repeat(100)); 200]);
    chunks.extend([(0, call("\"}")), (0, call("{}")), (0, DONE.to_owned())]);
    let (ended, _) = read_response(&mut ScriptedSource::new(chunks)).await;
    let response = ended.unwrap();
    let lengths: Vec<usize> = response
        .calls()
        .map(|it| it.args.to_string().len())
        .collect();
    assert_eq!(lengths, [200_000 + 8, 2]);
}
