//! Measures the processor time of the calling thread per streamed fragment: 50,000 events, each its
//! own write to the socket (one read may still find several of them). Linux only. Run with `cargo run --release --example delta_cost`.

use std::{
    fs,
    io::{Read, Write},
    net::TcpListener,
    sync::Arc,
    thread,
};
use turnery_models::{Api, Catalogue, DeltaSender, ModelRequest, ProviderConfig, Thinking};

const COUNT: usize = 50_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let delta = "data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m1\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\" word\"},\"finish_reason\":null}]}\n\n";
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let base_url = format!("http://{}/v1", listener.local_addr()?);
    let server = thread::spawn(move || -> std::io::Result<()> {
        let (mut socket, _) = listener.accept()?;
        socket.set_nodelay(true)?;
        let _ = socket.read(&mut [0; 65536])?;
        socket.write_all(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n")?;
        for _ in 0..COUNT {
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
    let request = ModelRequest {
        session_id: "s".into(),
        system: "".into(),
        messages: Arc::default(),
        tools: Arc::new([]),
        thinking: Thinking::Default,
        temperature: None,
        answer: turnery_engine::AnswerLimits::default(),
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let before = on_processor()?;
    let (text, count) = runtime.block_on(async {
        let (sender, mut receiver) = DeltaSender::new(64);
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
    let spent = on_processor()? - before;
    let _ = server.join();
    let mut out = std::io::stdout();
    writeln!(
        out,
        "{count} fragments, {text} block: {} ns each",
        spent / COUNT as u64
    )?;
    Ok(())
}

/// Nanoseconds that this thread has run, kernel included.
fn on_processor() -> Result<u64, Box<dyn std::error::Error>> {
    let stat = fs::read_to_string("/proc/thread-self/schedstat")?;
    let first = stat.split_whitespace().next().ok_or("an empty schedstat")?;
    Ok(first.parse()?)
}
