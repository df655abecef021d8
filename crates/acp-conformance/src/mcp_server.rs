//! MCP server: what the cases hand to agents as a server of the client's. `acp-conformance mcp-server LOG`
//! writes what it is started with and what it hears into LOG, so that a case can look there.
//!
//! Its tools: `conformance_echo {text}` gives the text back; `conformance_ask {question}` puts a form to the
//! user, if the agent lets servers ask, and gives back what came. The fake model's address has the same
//! server, at `/mcp`, for who brings the right header; there it asks nobody.

use serde_json::{Value, json};
use std::{
    fs::{File, OpenOptions},
    io::{self, BufRead, Write},
    path::Path,
};

/// The newest version of MCP that it knows; it takes any.
const VERSION: &str = "2025-06-18";
/// Its tools.
const ECHO: &str = "conformance_echo";
const ASK: &str = "conformance_ask";
/// The id of its own request.
const ASKED: &str = "conformance-asks";

/// Serve a client over these streams until the input ends.
///
/// # Errors
/// A stream or the log cannot be written or read.
pub fn serve(
    log: &Path,
    started_with: &[String],
    input: impl BufRead,
    output: impl Write,
) -> io::Result<()> {
    let log = OpenOptions::new().create(true).append(true).open(log)?;
    let mut server = Server {
        log,
        output,
        asking: None,
    };
    server.note(&format!("arguments {}", json!(started_with)))?;
    let mut variables: Vec<(String, String)> = std::env::vars().collect();
    variables.retain(|(name, _)| name.starts_with("CONFORMANCE_"));
    variables.sort();
    for (name, value) in variables {
        server.note(&format!("variable {name}={value}"))?;
    }
    for line in input.lines() {
        let line = line?;
        server.note(&format!("heard {line}"))?;
        if let Ok(message) = serde_json::from_str(&line) {
            server.on(&message)?;
        }
    }
    server.note("end")
}

struct Server<W> {
    log: File,
    output: W,
    /// The call that waits for the user's answer.
    asking: Option<Value>,
}

impl<W: Write> Server<W> {
    fn on(&mut self, message: &Value) -> io::Result<()> {
        if message.get("method").is_none() {
            return self.answered(message);
        }
        let params = &message["params"];
        if message["method"] == "tools/call" && params["name"] == ASK {
            self.asking = Some(message["id"].clone());
            let schema = json!({
                "type": "object",
                "properties": {"colour": {"type": "string", "enum": ["red", "green"]}},
                "required": ["colour"],
            });
            let question = &params["arguments"]["question"];
            let params = json!({"message": question, "requestedSchema": schema});
            return self.say(&json!({"jsonrpc": "2.0", "id": ASKED, "method": "elicitation/create", "params": params}));
        }
        match reply(message) {
            Some(reply) => self.say(&reply),
            None => Ok(()),
        }
    }

    /// The user's answer, or none.
    fn answered(&mut self, message: &Value) -> io::Result<()> {
        if message["id"] != ASKED {
            return Ok(());
        }
        let Some(call) = self.asking.take() else {
            return Ok(());
        };
        let came = match message.get("result") {
            Some(result) => format!("the user answers {result}"),
            None => "nobody answers".to_owned(),
        };
        self.say(&json!({"jsonrpc": "2.0", "id": call, "result": content(&came)}))
    }

    fn say(&mut self, message: &Value) -> io::Result<()> {
        writeln!(self.output, "{message}")?;
        self.output.flush()
    }

    fn note(&mut self, text: &str) -> io::Result<()> {
        writeln!(self.log, "{text}")
    }
}

/// The answer to a request that needs no user; a notification has none.
pub(crate) fn reply(message: &Value) -> Option<Value> {
    let (id, params) = (&message["id"], &message["params"]);
    let answer = |result: &Value| json!({"jsonrpc": "2.0", "id": id, "result": result});
    let error = |code: i64, why: &str| json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": why}});
    if id.is_null() {
        return None;
    }
    Some(match message["method"].as_str()? {
        "initialize" => {
            let version = params["protocolVersion"].as_str().unwrap_or(VERSION);
            answer(&json!({
                "protocolVersion": version,
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "conformance", "version": env!("CARGO_PKG_VERSION")},
            }))
        }
        "ping" => answer(&json!({})),
        "tools/list" => answer(&json!({"tools": tools()})),
        "tools/call" if params["name"] == ECHO => {
            let text = params["arguments"]["text"].as_str().unwrap_or("");
            answer(&content(&format!("the server says {text}")))
        }
        "tools/call" => error(-32602, "no such tool"),
        _ => error(-32601, "no such method"),
    })
}

fn content(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}]})
}

fn tools() -> Value {
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
        tool(ECHO, "Gives a text back", "text"),
        tool(ASK, "Asks the user for a colour", "question"),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(heard: &[Value]) -> (Vec<Value>, String) {
        let folder = tempfile::tempdir().expect("a folder");
        let log = folder.path().join("log");
        let lines: Vec<String> = heard.iter().map(|line| format!("{line}\n")).collect();
        let mut output = Vec::new();
        let words = ["two words".to_owned()];
        serve(&log, &words, lines.concat().as_bytes(), &mut output).expect("it is served");
        let said = String::from_utf8(output).expect("UTF-8");
        let said = said
            .lines()
            .map(|line| serde_json::from_str(line).expect("JSON"));
        (said.collect(), std::fs::read_to_string(log).expect("a log"))
    }

    #[test]
    fn an_echo_comes_back_and_all_is_logged() {
        let (said, log) = session(&[
            json!({"id": 1, "method": "initialize", "params": {"protocolVersion": "2024-11-05"}}),
            json!({"method": "notifications/initialized"}),
            json!({"id": 2, "method": "tools/list"}),
            json!({"id": 3, "method": "tools/call", "params": {"name": "conformance_echo", "arguments": {"text": "hi"}}}),
            json!({"id": 4, "method": "tools/call", "params": {"name": "other"}}),
            json!({"id": 5, "method": "nothing"}),
        ]);
        assert_eq!(said.len(), 5);
        assert_eq!(said[0]["result"]["protocolVersion"], "2024-11-05");
        assert_eq!(said[1]["result"]["tools"].as_array().map(Vec::len), Some(2));
        assert_eq!(
            said[2]["result"],
            json!({"content": [{"type": "text", "text": "the server says hi"}]})
        );
        assert_eq!(said[3]["error"]["code"], -32602);
        assert_eq!(said[4]["error"]["code"], -32601);
        assert!(log.starts_with("arguments [\"two words\"]\n"), "{log}");
        assert!(
            log.contains("heard {\"id\":2,\"method\":\"tools/list\"}\n"),
            "{log}"
        );
        assert!(log.ends_with("end\n"), "{log}");
    }

    #[test]
    fn a_question_goes_out_and_its_answer_ends_the_call() {
        let ask = json!({"id": 1, "method": "tools/call", "params": {"name": "conformance_ask", "arguments": {"question": "which?"}}});
        let answer = json!({"id": ASKED, "result": {"action": "decline"}});
        let (said, _) = session(&[ask.clone(), answer.clone(), answer]);
        assert_eq!(said.len(), 2);
        assert_eq!(said[0]["method"], "elicitation/create");
        assert_eq!(said[0]["params"]["message"], "which?");
        assert_eq!(
            said[1],
            json!({"jsonrpc": "2.0", "id": 1, "result": content("the user answers {\"action\":\"decline\"}")})
        );
        let refused = json!({"id": ASKED, "error": {"code": -32601, "message": "no"}});
        let (said, _) = session(&[ask, refused]);
        assert_eq!(said[1]["result"], content("nobody answers"));
    }
}
