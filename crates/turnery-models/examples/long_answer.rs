//! Measures the memory that an answer of one gigabyte takes, and how long other tasks of the runtime
//! wait meanwhile. Linux only. Run with `cargo run --release --example long_answer`.

use std::{
    error::Error,
    fs,
    io::{Read, Write},
    net::TcpListener,
    thread,
    time::{Duration, Instant},
};
use turnery_models::{Api, Catalogue, DeltaSender, ModelRequest, ProviderConfig, Thinking};

const SIZE: usize = 1 << 30;
const FRAGMENT: usize = 4 * 1024;

fn main() -> Result<(), Box<dyn Error>> {
    let text = "x".repeat(FRAGMENT);
    let delta = format!("data: {{\"choices\":[{{\"delta\":{{\"content\":\"{text}\"}}}}]}}\n\n");
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let base_url = format!("http://{}/v1", listener.local_addr()?);
    let server = thread::spawn(move || -> std::io::Result<()> {
        let (mut socket, _) = listener.accept()?;
        let _ = socket.read(&mut [0; 65536])?;
        socket.write_all(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n")?;
        for _ in 0..SIZE / FRAGMENT {
            socket.write_all(delta.as_bytes())?;
        }
        socket.write_all(b"data: [DONE]\n\n")
    });
    let provider = ProviderConfig {
        name: "local".to_owned(),
        api: Api::OpenAi,
        base_url,
        key: None,
        key_hint: String::new(),
        models: Vec::new(),
    };
    let model = Catalogue::new(vec![provider]).model(&"local/m1".parse()?)?;
    let request = ModelRequest::question("s".into(), "", "m0", "hello".to_owned(), Thinking::Off);
    let before = peak()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let (ended, shown, longest) = runtime.block_on(async {
        let (sender, mut receiver) = DeltaSender::new(64);
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
    // The client has hung up in the middle.
    let _ = server.join();
    let said = match ended {
        Ok(response) => format!("{} bytes", response.text().len()),
        Err(fault) => fault.to_string(),
    };
    let grown = peak()?.saturating_sub(before) / 1024;
    writeln!(
        std::io::stdout(),
        "{said}; {shown} fragments; memory grew by {grown} MiB; others waited {} ms at most",
        longest?.as_millis()
    )?;
    Ok(())
}

static WATCHED: std::sync::atomic::AtomicBool = std::sync::atomic::AtomicBool::new(false);

/// The largest resident size so far. Unit: KiB.
fn peak() -> Result<u64, Box<dyn Error>> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    let number = line.and_then(|line| line.split_whitespace().nth(1));
    Ok(number.ok_or("no VmHWM in /proc/self/status")?.parse()?)
}
