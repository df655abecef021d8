//! Measures the CPU time per streamed delta on the calling thread: 50,000 events, each written to the socket
//! separately (one read may still return several). Linux only. Run with `cargo run --release --example
//! delta_cost`.

use std::{
    fs,
    io::{Read, Write},
    net::TcpListener,
    thread,
};
use turnery_models::{
    Api, ModelEventSender, ModelRegistry, ModelRequest, ProviderConfig, Thinking,
};

const DELTA_COUNT: usize = 50_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let delta = "data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m1\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\" word\"},\"finish_reason\":null}]}\n\n";
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let base_url = format!("http://{}/v1", listener.local_addr()?);
    let server = thread::spawn(move || -> std::io::Result<()> {
        let (mut socket, _) = listener.accept()?;
        socket.set_nodelay(true)?;
        let _ = socket.read(&mut [0; 65536])?;
        socket.write_all(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n")?;
        for _ in 0..DELTA_COUNT {
            socket.write_all(delta.as_bytes())?;
        }
        socket.write_all(b"data: [DONE]\n\n")
    });
    let provider = ProviderConfig::new("local", Api::OpenAi, base_url);
    let model = ModelRegistry::new(vec![provider]).model(&"local/m1".parse()?)?;
    let request =
        ModelRequest::single_question("s".into(), "", "m0", "hello".to_owned(), Thinking::Off);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let before = cpu_time()?;
    let (block_count, count) = runtime.block_on(async {
        let (sender, mut receiver) = ModelEventSender::new(64);
        let count = async {
            let mut count = 0;
            while receiver.recv().await.is_some() {
                count += 1;
            }
            count
        };
        let (response, count) =
            futures_util::future::join(model.call(request, sender), count).await;
        response.map(|response| (response.content.len(), count))
    })?;
    let spent = cpu_time()? - before;
    let _ = server.join();
    let mut out = std::io::stdout();
    writeln!(
        out,
        "{count} fragments, {block_count} block: {} ns each",
        spent / DELTA_COUNT as u64
    )?;
    Ok(())
}

/// Returns the CPU time of this thread, including the kernel. Unit: nanoseconds.
fn cpu_time() -> Result<u64, Box<dyn std::error::Error>> {
    let stat = fs::read_to_string("/proc/thread-self/schedstat")?;
    let first = stat.split_whitespace().next().ok_or("an empty schedstat")?;
    Ok(first.parse()?)
}
