//! Measures the memory that one large response takes from the provider's stream to the commit, per byte of
//! the response, and how long other tasks of the thread wait meanwhile. Linux only. Run with `cargo run
//! --release -p turnery-agent --example large_answer`.

use std::{
    error::Error,
    fs,
    io::{Read as _, Write as _},
    net::TcpListener,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};
use turnery_agent::{Agent, ClientPorts, OpenRequest, PromptOptions, Settings};
use turnery_engine::{Content, Outcome, TurnFinish::AssistantMessage};
use turnery_models::{Api, ModelRegistry, ProviderConfig};
use turnery_store::SqliteStore;
use turnery_tools::Toolbox;

/// Just below the default response limit.
const RESPONSE_BYTES: usize = 15 << 20;
const FRAGMENT_BYTES: usize = 4 * 1024;

fn main() -> Result<(), Box<dyn Error>> {
    let text = "x".repeat(FRAGMENT_BYTES);
    let delta = format!("data: {{\"choices\":[{{\"delta\":{{\"content\":\"{text}\"}}}}]}}\n\n");
    let stop =
        "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let base_url = format!("http://{}/v1", listener.local_addr()?);
    let server = thread::spawn(move || -> std::io::Result<()> {
        let (mut socket, _) = listener.accept()?;
        let _ = socket.read(&mut [0; 65536])?;
        socket.write_all(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n")?;
        for _ in 0..RESPONSE_BYTES / FRAGMENT_BYTES {
            socket.write_all(delta.as_bytes())?;
        }
        socket.write_all(stop.as_bytes())
    });
    let provider = ProviderConfig::new("local", Api::OpenAi, base_url);
    let models = ModelRegistry::new(vec![provider]);
    let settings = Settings::new("local/m1".parse()?, "");
    let folder = std::env::temp_dir().join(format!("turnery-large-answer-{}", std::process::id()));
    fs::create_dir(&folder)?;
    let store = Arc::new(SqliteStore::open(folder.join("sessions.db")));
    let agent = Agent::new(
        store,
        Arc::new(models),
        Toolbox::coding(),
        Arc::new(settings),
    );
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let here = OpenRequest::folder(folder.clone());
    let measured = runtime.block_on(async {
        let session = agent.create(here, |_| ClientPorts::silent()).await?;
        let before = peak_memory_kib()?;
        let watch = tokio::spawn(longest_wait());
        let prompt = vec![Content::text("hello")];
        let ticket = session.prompt(prompt, PromptOptions::default())?;
        let outcome = ticket.result().await?.outcome;
        DONE.store(true, std::sync::atomic::Ordering::Relaxed);
        let longest = watch.await?;
        session.close().await;
        Ok::<_, Box<dyn Error>>((outcome, peak_memory_kib()?.saturating_sub(before), longest))
    });
    fs::remove_dir_all(&folder)?;
    let (outcome, grown, longest) = measured?;
    let _ = server.join();
    let Outcome::Finished(AssistantMessage { text }, _) = outcome else {
        return Err(format!("the prompt ended early: {outcome:?}").into());
    };
    let tenths = grown * 1024 * 10 / text.len() as u64;
    writeln!(
        std::io::stdout(),
        "{} MiB; memory grew by {} MiB, {}.{} times the answer; others waited {} ms at most",
        text.len() >> 20,
        grown / 1024,
        tenths / 10,
        tenths % 10,
        longest.as_millis()
    )?;
    Ok(())
}

static DONE: std::sync::atomic::AtomicBool = std::sync::atomic::AtomicBool::new(false);

/// Returns the longest time that a sleep of one millisecond took.
async fn longest_wait() -> Duration {
    let mut longest = Duration::ZERO;
    while !DONE.load(std::sync::atomic::Ordering::Relaxed) {
        let begun = Instant::now();
        tokio::time::sleep(Duration::from_millis(1)).await;
        longest = longest.max(begun.elapsed());
    }
    longest
}

/// Returns the peak resident set size. Unit: KiB.
fn peak_memory_kib() -> Result<u64, Box<dyn Error>> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    let number = line.and_then(|line| line.split_whitespace().nth(1));
    Ok(number.ok_or("no VmHWM in /proc/self/status")?.parse()?)
}
