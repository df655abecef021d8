//! HTTP server of a fake provider: one request per connection.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::Arc,
    thread,
};

/// Request of turnery.
pub(crate) struct HttpRequest {
    /// Request line and headers.
    pub(crate) head: Vec<String>,
    pub(crate) body: Vec<u8>,
}

/// Starts a server that answers each request with the text of a response. `None` leaves the client waiting.
pub(crate) fn serve(
    answer: impl Fn(HttpRequest) -> Option<String> + Send + Sync + 'static,
) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("bound");
    serve_on(listener, answer);
    address
}

/// Like [`serve`], at this listener.
pub(crate) fn serve_on(
    listener: TcpListener,
    answer: impl Fn(HttpRequest) -> Option<String> + Send + Sync + 'static,
) {
    let answer = Arc::new(answer);
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let answer = Arc::clone(&answer);
            thread::spawn(move || answer_request(stream, &*answer));
        }
    });
}

fn answer_request(mut stream: TcpStream, answer: &dyn Fn(HttpRequest) -> Option<String>) {
    let mut reader = BufReader::new(stream.try_clone().expect("a copy"));
    let lines = reader.by_ref().lines().map_while(Result::ok);
    let head: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
    if head.is_empty() {
        return;
    }
    let mut headers = head.iter();
    let length = headers.find_map(|line| line.strip_prefix("content-length: "));
    let mut body = vec![0; length.map_or(0, |text| text.parse().expect("a number"))];
    if reader.read_exact(&mut body).is_err() {
        return;
    }
    let _ = match answer(HttpRequest { head, body }) {
        Some(response) => stream.write_all(response.as_bytes()),
        // Blocks until the client gives up.
        None => stream.read(&mut [0]).map(drop),
    };
}

/// Returns the text of a response.
pub(crate) fn response(status: &str, content_type: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\ncontent-type: {content_type}\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}"
    )
}
