//! Parses hand-written streams and plays them through a fault.

use acp_conformance_dev::faults::{self, Direction, Fault, FaultInjector, SideEffect};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Input for a fault, and its expected output.
pub(crate) struct FaultStream {
    pub(crate) fault: String,
    location: String,
    is_bare: bool,
    client: Value,
    agent: Value,
    version: u64,
    entries: Vec<StreamEntry>,
}

struct StreamEntry {
    line: usize,
    direction: Direction,
    input: Vec<u8>,
    /// `None` if the line passes unchanged.
    expected: Option<Vec<ExpectedOutput>>,
    deed: SideEffect,
}

enum ExpectedOutput {
    Message(Direction, Value),
    Bytes(Direction, Vec<u8>),
}

/// Parses all streams of a file.
pub(crate) fn parse_streams(place: &str, text: &str) -> Vec<FaultStream> {
    let mut names: BTreeMap<String, String> = include_str!("names.txt")
        .lines()
        .filter_map(|line| line.split_once(' '))
        .map(|(name, message)| (name.to_owned(), message.to_owned()))
        .collect();
    let mut found: Vec<FaultStream> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let rest = rest.trim();
        let place = format!("{place}:{}", index + 1);
        if line.is_empty() || word == "#" {
            continue;
        }
        if word == "=" {
            let (name, message) = rest.split_once(' ').expect("= NAME MESSAGE");
            names.insert(name.to_owned(), message.to_owned());
            continue;
        }
        if word == "fault" {
            let (name, bare) = rest.split_once(' ').unwrap_or((rest, ""));
            found.push(FaultStream {
                fault: name.to_owned(),
                location: place,
                is_bare: bare == "bare",
                client: json!({}),
                agent: json!({}),
                version: 1,
                entries: Vec::new(),
            });
            continue;
        }
        let stream = found.last_mut().expect("a file begins with `fault`");
        stream.add_line(&place, index + 1, word, &expand_name(rest, &names));
    }
    found
}

/// Expands a name or an update; other text is the message itself.
fn expand_name(rest: &str, names: &BTreeMap<String, String>) -> String {
    let text = names.get(rest).map_or(rest, String::as_str);
    match text.strip_prefix("up ") {
        Some(update) => format!(
            r#"{{"method":"session/update","params":{{"sessionId":"s1","update":{update}}}}}"#
        ),
        None => text.to_owned(),
    }
}

fn parse_value(place: &str, text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{place}: {error}: {text}"))
}

fn bytes(place: &str, text: &str) -> Vec<u8> {
    let text: String = serde_json::from_str(text).unwrap_or_else(|e| panic!("{place}: {e}"));
    // Characters stand for bytes, so that invalid UTF-8 can be written.
    text.chars()
        .map(|c| u8::try_from(c).expect("a byte"))
        .collect()
}

/// Adds `jsonrpc`, which the streams omit.
fn with_jsonrpc(mut message: Value) -> Value {
    if let Some(message) = message.as_object_mut() {
        message.entry("jsonrpc").or_insert_with(|| json!("2.0"));
    }
    message
}

impl FaultStream {
    fn add_line(&mut self, place: &str, line: usize, word: &str, rest: &str) {
        let way = match word {
            "c>" | "c>raw" | ">a" | ">araw" => Direction::ToAgent,
            _ => Direction::ToClient,
        };
        match word {
            "client" => self.client = parse_value(place, rest),
            "agent" => self.agent = parse_value(place, rest),
            "version" => self.version = rest.parse().expect("a version"),
            "c>" | "a>" => {
                let message = with_jsonrpc(parse_value(place, rest));
                self.push_entry(line, way, format!("{message}\n").into_bytes());
            }
            "c>raw" | "a>raw" => self.push_entry(line, way, bytes(place, rest)),
            ">a" | ">c" => {
                self.push_expected(ExpectedOutput::Message(way, parse_value(place, rest)))
            }
            ">araw" | ">craw" => self.push_expected(ExpectedOutput::Bytes(way, bytes(place, rest))),
            "nothing" => self.last().expected = Some(Vec::new()),
            "dies" => self.last().deed = SideEffect::Die,
            "sleeps" => self.last().deed = SideEffect::Sleep,
            other => panic!("{place}: {other:?} is no word of a stream"),
        }
    }

    fn push_entry(&mut self, line: usize, way: Direction, said: Vec<u8>) {
        self.entries.push(StreamEntry {
            line,
            direction: way,
            input: said,
            expected: None,
            deed: SideEffect::None,
        });
    }

    fn last(&mut self) -> &mut StreamEntry {
        self.entries.last_mut().expect("a line before")
    }

    fn push_expected(&mut self, heard: ExpectedOutput) {
        self.last().expected.get_or_insert_default().push(heard);
    }

    /// Returns true if any output differs from its input.
    pub(crate) fn expects_change(&self) -> bool {
        self.entries
            .iter()
            .any(|entry| entry.expected.is_some() || entry.deed != SideEffect::None)
    }

    fn opening_messages(&self) -> Vec<(Direction, Value)> {
        if self.is_bare {
            return Vec::new();
        }
        let capabilities = if self.version == 2 {
            "capabilities"
        } else {
            "clientCapabilities"
        };
        let mut params = json!({"protocolVersion": self.version});
        params[capabilities] = self.client.clone();
        vec![
            (
                Direction::ToAgent,
                json!({"id": "i", "method": "initialize", "params": params}),
            ),
            (
                Direction::ToClient,
                json!({"id": "i", "result": {"protocolVersion": self.version, "agentCapabilities": self.agent}}),
            ),
            (
                Direction::ToAgent,
                json!({"id": "n", "method": "session/new", "params": {"cwd": "/w", "mcpServers": []}}),
            ),
            (
                Direction::ToClient,
                json!({"id": "n", "result": {"sessionId": "s1"}}),
            ),
        ]
    }

    /// Plays the stream through its fault.
    pub(crate) fn play(&self) -> Result<(), String> {
        let fault = faults::find(&self.fault)
            .ok_or_else(|| format!("{}: there is no fault {}", self.location, self.fault))?;
        let mut breaker = self.opened_injector(Some(fault));
        for entry in &self.entries {
            let outcome = breaker.process_line(entry.direction, &entry.input);
            let right = entry.matches_lines(&outcome.lines) && outcome.side_effect == entry.deed;
            if !right {
                let came: Vec<_> = outcome
                    .lines
                    .iter()
                    .map(|(way, bytes)| format!("  {way:?} {}", String::from_utf8_lossy(bytes)))
                    .collect();
                return Err(format!(
                    "{} ({}), line {}: came\n{}{:?}",
                    self.location,
                    self.fault,
                    entry.line,
                    came.concat(),
                    outcome.side_effect
                ));
            }
        }
        Ok(())
    }

    /// Plays the stream without a fault.
    pub(crate) fn play_without_fault(&self) -> Result<(), String> {
        let mut breaker = self.opened_injector(None);
        for entry in &self.entries {
            let outcome = breaker.process_line(entry.direction, &entry.input);
            if outcome.lines != [(entry.direction, entry.input.clone())]
                || outcome.side_effect != SideEffect::None
            {
                return Err(format!("line {}: {outcome:?}", entry.line));
            }
        }
        Ok(())
    }

    fn opened_injector(&self, fault: Option<&'static Fault>) -> FaultInjector {
        let mut breaker = FaultInjector::new(fault);
        for (way, message) in self.opening_messages() {
            let line = format!("{}\n", with_jsonrpc(message));
            breaker.process_line(way, line.as_bytes());
        }
        breaker
    }
}

impl StreamEntry {
    fn matches_lines(&self, lines: &[(Direction, Vec<u8>)]) -> bool {
        let Some(comes) = &self.expected else {
            return lines == [(self.direction, self.input.clone())];
        };
        comes.len() == lines.len()
            && comes
                .iter()
                .zip(lines)
                .all(|(heard, (way, line))| match heard {
                    ExpectedOutput::Bytes(to, bytes) => to == way && bytes == line,
                    ExpectedOutput::Message(to, message) => {
                        let found: Value = serde_json::from_slice(line).unwrap_or_default();
                        // `"jsonrpc": null` stands for a message that lacks it.
                        let wanted = with_jsonrpc(message.clone());
                        let bare = wanted["jsonrpc"].is_null() && found.get("jsonrpc").is_none();
                        to == way && (found == wanted || bare && without_jsonrpc(&wanted) == found)
                    }
                })
    }
}

fn without_jsonrpc(message: &Value) -> Value {
    let mut message = message.clone();
    if let Some(message) = message.as_object_mut() {
        message.remove("jsonrpc");
    }
    message
}
