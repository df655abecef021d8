//! Answers without end, and calls that fall silent, in virtual time and without a socket.

use super::*;
use crate::{
    CallLimits, ModelInfo, ProviderConfig, Silent, Told, answer::CallIds, anthropic::Anthropic,
    catalogue::Catalogue, openai::OpenAi, remote::Dialect, silence::SilenceLimits,
};
use std::{collections::VecDeque, time::Duration};
use tokio::{
    sync::mpsc::Receiver,
    time::{Instant, advance, sleep},
};
use turnery_engine::FaultKind;

const PING: &str = ": ping\n\n";
const DONE: &str =
    "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn text(text: &str) -> String {
    format!("data: {{\"choices\":[{{\"delta\":{{\"content\":\"{text}\"}}}}]}}\n\n")
}

/// Bytes that come after a while each; then for ever the last ones, or nothing any more.
struct Server {
    script: VecDeque<(Duration, String)>,
    is_endless: bool,
    sent: usize,
}

impl Server {
    fn new(script: impl IntoIterator<Item = (u64, String)>) -> Self {
        let script = script.into_iter();
        Self {
            script: script
                .map(|(after, bytes)| (seconds(after), bytes))
                .collect(),
            is_endless: false,
            sent: 0,
        }
    }

    fn endless(after: u64, bytes: impl Into<String>) -> Self {
        Self {
            is_endless: true,
            ..Self::new([(after, bytes.into())])
        }
    }
}

impl Source for Server {
    async fn next(&mut self) -> Result<Option<Bytes>, ModelFault> {
        let next = match self.script.len() {
            1 if self.is_endless => self.script.front().cloned(),
            _ => self.script.pop_front(),
        };
        let Some((after, bytes)) = next else {
            return std::future::pending().await;
        };
        if !after.is_zero() {
            sleep(after).await;
        }
        self.sent += bytes.len();
        Ok(Some(bytes.into()))
    }
}

/// Pings that never have to be waited for, however much time passes.
struct Flood;

impl Source for Flood {
    async fn next(&mut self) -> Result<Option<Bytes>, ModelFault> {
        advance(seconds(1)).await;
        Ok(Some(Bytes::from_static(PING.as_bytes())))
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
        name: "acme".to_owned(),
        api: crate::Api::OpenAi,
        base_url: "http://acme.test/v1".to_owned(),
        key: None,
        key_hint: "ACME_KEY".to_owned(),
        models: Vec::new(),
    };
    let at = Endpoint::new(&provider, "m", "/chat/completions", &limits());
    let model = Catalogue::new(vec![provider]).model(&"acme/m".parse().unwrap());
    (at, model.unwrap().info().clone())
}

fn openai() -> OpenAi {
    OpenAi::new("http://acme.test/v1")
}

async fn drain(mut told: Receiver<Told>) -> Vec<Told> {
    let mut all = Vec::new();
    while let Some(next) = told.recv().await {
        all.push(next);
    }
    all
}

/// Reads an answer; gives how it ended and what was told.
async fn read(
    dialect: impl Dialect,
    bounds: AnswerLimits,
    source: &mut impl Source,
) -> (Result<Response, ModelFault>, Vec<Told>) {
    let (at, info) = endpoint();
    let (out, told) = DeltaSender::new(64);
    let reading = async {
        let mut sent = false;
        let mut silence = Silence::new(SilenceLimits::new(&limits(), false), Some(&out));
        let attempt = Attempt {
            at: &at,
            reader: dialect.reader(&info, CallIds::default()),
            limits: bounds,
            out: &out,
            sent: &mut sent,
        };
        let ended = attempt.read(source, &mut silence).await;
        drop(out);
        ended.map_err(|failure| failure.fault)
    };
    futures_util::future::join(reading, drain(told)).await
}

/// The notices: length in seconds, and whether the connection is alive.
fn notices(told: &[Told]) -> Vec<(u64, bool)> {
    let notice = |told: &Told| match told {
        Told::Silent(Silent {
            length,
            is_connected,
        }) => Some((length.as_secs(), *is_connected)),
        Told::Delta(_) | Told::Retry(_) => None,
    };
    told.iter().filter_map(notice).collect()
}

#[tokio::test(start_paused = true)]
async fn pings_alone_end_at_the_content_limit() {
    let begun = Instant::now();
    let mut pings = Server::endless(9, PING);
    let (ended, told) = read(openai(), AnswerLimits::default(), &mut pings).await;
    let fault = ended.unwrap_err();
    assert_eq!(fault.kind, FaultKind::Timeout);
    assert_eq!(
        fault.message,
        "acme at http://acme.test/v1 kept the connection open for 100 seconds and sent nothing of an answer: try again, choose another model, or raise limits.content_seconds in the configuration."
    );
    assert_eq!(begun.elapsed().as_secs(), 100);
    assert_eq!(notices(&told), [(20, true), (40, true), (80, true)]);
}

#[tokio::test(start_paused = true)]
async fn pings_that_are_always_ready_end_at_the_content_limit() {
    let (ended, told) = read(openai(), AnswerLimits::default(), &mut Flood).await;
    assert_eq!(ended.unwrap_err().kind, FaultKind::Timeout);
    assert_eq!(notices(&told), [(20, true), (40, true), (80, true)]);
}

#[tokio::test(start_paused = true)]
async fn a_dead_connection_ends_at_the_idle_limit() {
    let begun = Instant::now();
    let mut dead = Server::new([(0, text("Hi"))]);
    let (ended, told) = read(openai(), AnswerLimits::default(), &mut dead).await;
    let fault = ended.unwrap_err();
    assert_eq!(fault.kind, FaultKind::Timeout);
    assert!(
        fault
            .message
            .starts_with("acme at http://acme.test/v1 sent nothing for 30 seconds: "),
        "{}",
        fault.message
    );
    assert_eq!(begun.elapsed().as_secs(), 30);
    assert_eq!(notices(&told), [(20, false)]);
}

/// A model that thinks for minutes between words is not given up.
#[tokio::test(start_paused = true)]
async fn slow_content_between_pings_resets_the_clocks() {
    let mut script = Vec::new();
    for _ in 0..10 {
        script.extend([(25, PING), (25, PING), (25, PING)].map(|(at, ping)| (at, ping.to_owned())));
        script.push((20, text("word ")));
    }
    script.push((0, DONE.to_owned()));
    let (ended, told) = read(openai(), AnswerLimits::default(), &mut Server::new(script)).await;
    assert_eq!(ended.unwrap().text(), "word ".repeat(10));
    let each = [(20, false), (40, true), (80, true)];
    assert_eq!(notices(&told), each.repeat(10));
}

#[tokio::test(start_paused = true)]
async fn an_empty_event_is_no_content_and_no_fault() {
    let script = [
        (1, "data:\n\ndata: \n\n".to_owned()),
        (1, text("Hi")),
        (0, DONE.to_owned()),
    ];
    let (ended, _) = read(openai(), AnswerLimits::default(), &mut Server::new(script)).await;
    assert_eq!(ended.unwrap().text(), "Hi");
}

const SMALL: AnswerLimits = AnswerLimits {
    bytes: 1 << 20,
    calls: 50,
};

/// Reads an endless answer; gives the sentence of the limit and how much the server sent.
async fn overrun(dialect: impl Dialect, first: &str, endless: &str) -> (String, usize) {
    let mut server = Server::endless(0, endless);
    server.script.push_front((Duration::ZERO, first.to_owned()));
    let (ended, _) = read(dialect, SMALL, &mut server).await;
    let fault = ended.unwrap_err();
    assert_eq!(fault.kind, FaultKind::AnswerLimit);
    (fault.message, server.sent)
}

// proves: UP-1
#[tokio::test(start_paused = true)]
async fn an_endless_answer_is_stopped_whatever_it_is_made_of() {
    let size = "Max answer size reached (1048576 bytes)";
    let kib = "x".repeat(1024);
    let thinking =
        format!("data: {{\"choices\":[{{\"delta\":{{\"reasoning_content\":\"{kib}\"}}}}]}}\n\n");
    let arguments = format!(
        "data: {{\"choices\":[{{\"delta\":{{\"tool_calls\":[{{\"index\":0,\"function\":{{\"arguments\":\"{kib}\"}}}}]}}}}]}}\n\n"
    );
    for endless in [text(&kib), thinking, arguments] {
        let (limit, sent) = overrun(openai(), "", &endless).await;
        assert_eq!(limit, size);
        assert!(sent <= 1_300_000, "{sent} of {endless}");
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
        let (limit, sent) = overrun(Anthropic, &first, &endless).await;
        assert_eq!(limit, size, "{endless}");
        assert!(sent <= 1_300_000, "{sent} of {endless}");
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
        let (told, sent) = overrun(openai(), "", &call).await;
        assert_eq!((told.as_str(), sent), (limit, 51 * call.len()));
    }
    let block = "data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"tool_use\",\"name\":\"read\"}}\n\n";
    let (told, sent) = overrun(Anthropic, "", block).await;
    assert_eq!((told.as_str(), sent), (limit, 51 * block.len()));
}

/// An answer that need not be waited for lets other tasks have their turn all the same.
#[tokio::test(start_paused = true)]
async fn a_long_answer_does_not_hold_the_thread() {
    // One fragment a chunk, so that the queue to the client never is what gives others their turn.
    let chunk = text(&"x".repeat(AT_ONCE));
    let mut script = vec![(0, chunk); 40];
    script.push((0, DONE.to_owned()));
    let mut server = Server::new(script);
    let turns = std::cell::Cell::new(0);
    let reading = async {
        let (ended, _) = read(openai(), AnswerLimits::default(), &mut server).await;
        assert_eq!(ended.unwrap().text().len(), 40 * AT_ONCE);
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

/// The name with every fragment and no id: each fragment may begin a call, if the one before is whole.
#[tokio::test(start_paused = true)]
async fn arguments_under_a_repeated_name_are_read_once() {
    let call = |arguments: &str| {
        format!(
            "data: {{\"choices\":[{{\"delta\":{{\"tool_calls\":[{{\"index\":0,\"function\":{{\"name\":\"read\",\"arguments\":{}}}}}]}}}}]}}\n\n",
            serde_json::Value::from(arguments)
        )
    };
    // Read again at each fragment, these would be 2 GB.
    let mut script = vec![(0, call("{\"a\":\""))];
    script.extend(vec![(0, call("}}}}}}}}}}").repeat(100)); 200]);
    script.extend([(0, call("\"}")), (0, call("{}")), (0, DONE.to_owned())]);
    let (ended, _) = read(openai(), AnswerLimits::default(), &mut Server::new(script)).await;
    let response = ended.unwrap();
    let lengths: Vec<usize> = response
        .calls()
        .map(|it| it.args.to_string().len())
        .collect();
    assert_eq!(lengths, [200_000 + 8, 2]);
}
