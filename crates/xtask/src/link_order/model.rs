//! A model that calls three tools and then answers.

use anyhow::Result;
use std::{
    io::{self, BufRead as _, BufReader, Read as _, Write as _},
    net::{Ipv4Addr, TcpListener, TcpStream},
    thread,
};

/// Calls of one prompt: a tool and its arguments.
const CALLS: [(&str, &str); 3] = [
    ("read_file", r#"{\"path\":\"hello.txt\"}"#),
    ("search", r#"{\"pattern\":\"hello\"}"#),
    ("shell", r#"{\"command\":\"cat hello.txt\"}"#),
];

const LIST: &str = r#"{"object":"list","data":[{"id":"fake","object":"model"}]}"#;

/// Serves Chat Completions on loopback until the process ends. Returns the address.
pub(super) fn serve() -> Result<String> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let address = listener.local_addr()?.to_string();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // The agent sees a failure as one of its model.
            let _ = answer(stream);
        }
    });
    Ok(address)
}

fn answer(stream: TcpStream) -> io::Result<()> {
    let mut input = BufReader::new(&stream);
    let (mut head, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        if input.read_line(&mut line)? == 0 || line == "\r\n" {
            break;
        }
        let line = line.to_ascii_lowercase();
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().map_err(io::Error::other)?;
        }
        head.push_str(&line);
    }
    let mut body = String::new();
    input.take(length).read_to_string(&mut body)?;
    let (kind, text) = match head.starts_with("post") {
        true => ("text/event-stream", respond(&body)),
        false => ("application/json", LIST.to_owned()),
    };
    let length = text.len();
    write!(
        &stream,
        "HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{text}"
    )
}

/// Returns the response to a request with the results of these calls.
fn respond(body: &str) -> String {
    let place = body.matches("\"role\":\"tool\"").count();
    let (delta, reason) = match CALLS.get(place) {
        Some((name, arguments)) => (
            format!(
                "\"tool_calls\":[{{\"index\":0,\"id\":\"call-{place}\",\"type\":\"function\",\
                 \"function\":{{\"name\":\"{name}\",\"arguments\":\"{arguments}\"}}}}]"
            ),
            "tool_calls",
        ),
        None => ("\"content\":\"Done.\"".to_owned(), "stop"),
    };
    format!(
        "data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"role\":\"assistant\",{delta}}}}}]}}\n\n\
         data: {{\"choices\":[{{\"index\":0,\"delta\":{{}},\"finish_reason\":\"{reason}\"}}],\
         \"usage\":{{\"prompt_tokens\":1,\"completion_tokens\":1}}}}\n\ndata: [DONE]\n\n"
    )
}
