//! MCP server that cases give to agents. `acp-conformance mcp-server LOG` writes its arguments, its
//! `CONFORMANCE_` variables and its input to LOG, so that a case can check them.
//!
//! Tools: `conformance_echo {text}` returns the text; `conformance_ask {question}` sends a form elicitation
//! and returns the answer. The fake model serves the same tools at `/mcp` to requests with the right header,
//! but without elicitation.

use serde_json::{Value, json};
use std::{
    fs::{File, OpenOptions},
    io::{self, BufRead, Write},
    path::Path,
};

/// MCP version for clients that request none; any requested version is accepted.
const PROTOCOL_VERSION: &str = "2025-06-18";
/// Name of the tool that returns its text.
const ECHO_TOOL: &str = "conformance_echo";
const ASK_TOOL: &str = "conformance_ask";
/// Id of the elicitation request.
const ELICITATION_ID: &str = "conformance-asks";

/// Serves a client over these streams until the input ends.
///
/// # Errors
/// If a stream or the log cannot be read or written.
pub fn serve(
    log: &Path,
    started_with: &[String],
    input: impl BufRead,
    output: impl Write,
) -> io::Result<()> {
    let log = OpenOptions::new().create(true).append(true).open(log)?;
    let mut server = McpServer {
        log,
        output,
        pending_call: None,
    };
    server.write_log(&format!("arguments {}", json!(started_with)))?;
    let mut variables: Vec<(String, String)> = std::env::vars().collect();
    variables.retain(|(name, _)| name.starts_with("CONFORMANCE_"));
    variables.sort();
    for (name, value) in variables {
        server.write_log(&format!("variable {name}={value}"))?;
    }
    for line in input.lines() {
        let line = line?;
        server.write_log(&format!("heard {line}"))?;
        if let Ok(message) = serde_json::from_str(&line) {
            server.handle_message(&message)?;
        }
    }
    server.write_log("end")
}

struct McpServer<W> {
    log: File,
    output: W,
    /// Id of the call that waits for the user's answer.
    pending_call: Option<Value>,
}

impl<W: Write> McpServer<W> {
    fn handle_message(&mut self, message: &Value) -> io::Result<()> {
        if message.get("method").is_none() {
            return self.finish_call(message);
        }
        let params = &message["params"];
        if message["method"] == "tools/call" && params["name"] == ASK_TOOL {
            self.pending_call = Some(message["id"].clone());
            let schema = json!({
                "type": "object",
                "properties": {"colour": {"type": "string", "enum": ["red", "green"]}},
                "required": ["colour"],
            });
            let question = &params["arguments"]["question"];
            let params = json!({"message": question, "requestedSchema": schema});
            return self.write_message(&json!({"jsonrpc": "2.0", "id": ELICITATION_ID, "method": "elicitation/create", "params": params}));
        }
        match respond(message) {
            Some(response) => self.write_message(&response),
            None => Ok(()),
        }
    }

    /// Finishes the pending call if `message` is the response to the elicitation.
    fn finish_call(&mut self, message: &Value) -> io::Result<()> {
        if message["id"] != ELICITATION_ID {
            return Ok(());
        }
        let Some(call) = self.pending_call.take() else {
            return Ok(());
        };
        let came = match message.get("result") {
            Some(result) => format!("the user answers {result}"),
            None => "nobody answers".to_owned(),
        };
        self.write_message(&json!({"jsonrpc": "2.0", "id": call, "result": text_content(&came)}))
    }

    fn write_message(&mut self, message: &Value) -> io::Result<()> {
        writeln!(self.output, "{message}")?;
        self.output.flush()
    }

    fn write_log(&mut self, text: &str) -> io::Result<()> {
        writeln!(self.log, "{text}")
    }
}

/// Returns the response to a request that needs no user; `None` for notifications.
pub(crate) fn respond(message: &Value) -> Option<Value> {
    let (id, params) = (&message["id"], &message["params"]);
    let answer = |result: &Value| json!({"jsonrpc": "2.0", "id": id, "result": result});
    let error = |code: i64, why: &str| json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": why}});
    if id.is_null() {
        return None;
    }
    Some(match message["method"].as_str()? {
        "initialize" => {
            let version = params["protocolVersion"]
                .as_str()
                .unwrap_or(PROTOCOL_VERSION);
            answer(&json!({
                "protocolVersion": version,
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "conformance", "version": env!("CARGO_PKG_VERSION")},
            }))
        }
        "ping" => answer(&json!({})),
        "tools/list" => answer(&json!({"tools": tools_json()})),
        "tools/call" if params["name"] == ECHO_TOOL => {
            let text = params["arguments"]["text"].as_str().unwrap_or("");
            answer(&text_content(&format!("the server says {text}")))
        }
        "tools/call" => error(-32602, "no such tool"),
        _ => error(-32601, "no such method"),
    })
}

fn text_content(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}]})
}

fn tools_json() -> Value {
    let tool = |name: &str, about: &str, argument: &str| {
        json!({
            "name": name,
            "description": about,
            "inputSchema": {
                "type": "object",
                "properties": {argument: {"type": "string"}},
                "required": [argument],
            },
            "annotations": {"readOnlyHint": true},
        })
    };
    json!([
        tool(ECHO_TOOL, "Gives a text back", "text"),
        tool(ASK_TOOL, "Asks the user for a colour", "question"),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run_session(received: &[Value]) -> (Vec<Value>, String) {
        let folder = tempfile::tempdir().expect("a folder");
        let log = folder.path().join("log");
        let lines: Vec<String> = received.iter().map(|line| format!("{line}\n")).collect();
        let mut output = Vec::new();
        let words = ["two words".to_owned()];
        serve(&log, &words, lines.concat().as_bytes(), &mut output).expect("it is served");
        let sent = String::from_utf8(output).expect("UTF-8");
        let sent = sent
            .lines()
            .map(|line| serde_json::from_str(line).expect("JSON"));
        (sent.collect(), std::fs::read_to_string(log).expect("a log"))
    }

    #[test]
    fn echo_is_returned_and_logged() {
        let (sent, log) = run_session(&[
            json!({"id": 1, "method": "initialize", "params": {"protocolVersion": "2024-11-05"}}),
            json!({"method": "notifications/initialized"}),
            json!({"id": 2, "method": "tools/list"}),
            json!({"id": 3, "method": "tools/call", "params": {"name": "conformance_echo", "arguments": {"text": "hi"}}}),
            json!({"id": 4, "method": "tools/call", "params": {"name": "other"}}),
            json!({"id": 5, "method": "nothing"}),
        ]);
        assert_eq!(sent.len(), 5);
        assert_eq!(sent[0]["result"]["protocolVersion"], "2024-11-05");
        assert_eq!(sent[1]["result"]["tools"].as_array().map(Vec::len), Some(2));
        assert_eq!(
            sent[2]["result"],
            json!({"content": [{"type": "text", "text": "the server says hi"}]})
        );
        assert_eq!(sent[3]["error"]["code"], -32602);
        assert_eq!(sent[4]["error"]["code"], -32601);
        assert!(log.starts_with("arguments [\"two words\"]\n"), "{log}");
        assert!(
            log.contains("heard {\"id\":2,\"method\":\"tools/list\"}\n"),
            "{log}"
        );
        assert!(log.ends_with("end\n"), "{log}");
    }

    #[test]
    fn elicitation_response_ends_the_call() {
        let ask = json!({"id": 1, "method": "tools/call", "params": {"name": "conformance_ask", "arguments": {"question": "which?"}}});
        let answer = json!({"id": ELICITATION_ID, "result": {"action": "decline"}});
        let (sent, _) = run_session(&[ask.clone(), answer.clone(), answer]);
        assert_eq!(sent.len(), 2);
        assert_eq!(sent[0]["method"], "elicitation/create");
        assert_eq!(sent[0]["params"]["message"], "which?");
        assert_eq!(
            sent[1],
            json!({"jsonrpc": "2.0", "id": 1, "result": text_content("the user answers {\"action\":\"decline\"}")})
        );
        let refused = json!({"id": ELICITATION_ID, "error": {"code": -32601, "message": "no"}});
        let (sent, _) = run_session(&[ask, refused]);
        assert_eq!(sent[1]["result"], text_content("nobody answers"));
    }
}
