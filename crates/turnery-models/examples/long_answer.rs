//! Measures the memory use of a response beyond its size limit, and how long other runtime tasks wait
//! meanwhile: the server sends up to one gigabyte. Linux only. Run with `cargo run --release --example
//! long_answer`.

use std::{
    error::Error,
    fs,
    io::{Read, Write},
    net::TcpListener,
    thread,
    time::{Duration, Instant},
};
use turnery_models::{
    Api, ModelEventSender, ModelRegistry, ModelRequest, ProviderConfig, Thinking,
};

const RESPONSE_BYTES: usize = 1 << 30;
const FRAGMENT_BYTES: usize = 4 * 1024;

fn main() -> Result<(), Box<dyn Error>> {
    let text = "x".repeat(FRAGMENT_BYTES);
    let delta = format!("data: {{\"choices\":[{{\"delta\":{{\"content\":\"{text}\"}}}}]}}\n\n");
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let base_url = format!("http://{}/v1", listener.local_addr()?);
    let server = thread::spawn(move || -> std::io::Result<()> {
        let (mut socket, _) = listener.accept()?;
        let _ = socket.read(&mut [0; 65536])?;
        socket.write_all(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n")?;
        for _ in 0..RESPONSE_BYTES / FRAGMENT_BYTES {
            socket.write_all(delta.as_bytes())?;
        }
        socket.write_all(b"data: [DONE]\n\n")
    });
    let provider = ProviderConfig::new("local", Api::OpenAi, base_url);
    let model = ModelRegistry::new(vec![provider]).model(&"local/m1".parse()?)?;
    let request =
        ModelRequest::single_question("s".into(), "", "m0", "hello".to_owned(), Thinking::Off);
    let before = peak_memory()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let (ended, shown, longest) = runtime.block_on(async {
        let (sender, mut receiver) = ModelEventSender::new(64);
        let watch = tokio::spawn(async {
            let mut longest = Duration::ZERO;
            loop {
                let begun = Instant::now();
                tokio::time::sleep(Duration::from_millis(1)).await;
                longest = longest.max(begun.elapsed());
                if WATCHED.load(std::sync::atomic::Ordering::Relaxed) {
                    return longest;
                }
            }
        });
        let count = async {
            let mut count = 0;
            while receiver.recv().await.is_some() {
                count += 1;
            }
            count
        };
        let (ended, count) = futures_util::future::join(model.call(request, sender), count).await;
        WATCHED.store(true, std::sync::atomic::Ordering::Relaxed);
        (ended, count, watch.await)
    });
    // The client has closed the connection early.
    let _ = server.join();
    let said = match ended {
        Ok(response) => format!("{} bytes", response.text().len()),
        Err(error) => error.to_string(),
    };
    let grown = peak_memory()?.saturating_sub(before) / 1024;
    writeln!(
        std::io::stdout(),
        "{said}; {shown} fragments; memory grew by {grown} MiB; others waited {} ms at most",
        longest?.as_millis()
    )?;
    Ok(())
}

static WATCHED: std::sync::atomic::AtomicBool = std::sync::atomic::AtomicBool::new(false);

/// Returns the peak resident size. Unit: KiB.
fn peak_memory() -> Result<u64, Box<dyn Error>> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    let number = line.and_then(|line| line.split_whitespace().nth(1));
    Ok(number.ok_or("no VmHWM in /proc/self/status")?.parse()?)
}
