//! stream: reads the hand-written streams and plays them through a fault.

use acp_conformance::faults::{self, Breaker, Deed, Fault, Way};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// What a fault is shown, and what must come of it.
pub(crate) struct Stream {
    pub(crate) fault: String,
    place: String,
    bare: bool,
    client: Value,
    agent: Value,
    version: u64,
    entries: Vec<Entry>,
}

struct Entry {
    line: usize,
    way: Way,
    said: Vec<u8>,
    /// `None`: it passes as it is.
    comes: Option<Vec<Heard>>,
    deed: Deed,
}

enum Heard {
    Message(Way, Value),
    Bytes(Way, Vec<u8>),
}

/// All streams of a file.
pub(crate) fn streams(place: &str, text: &str) -> Vec<Stream> {
    let mut names: BTreeMap<String, String> = include_str!("names.txt")
        .lines()
        .filter_map(|line| line.split_once(' '))
        .map(|(name, message)| (name.to_owned(), message.to_owned()))
        .collect();
    let mut found: Vec<Stream> = Vec::new();
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
            found.push(Stream {
                fault: name.to_owned(),
                place,
                bare: bare == "bare",
                client: json!({}),
                agent: json!({}),
                version: 1,
                entries: Vec::new(),
            });
            continue;
        }
        let stream = found.last_mut().expect("a file begins with `fault`");
        stream.take(&place, index + 1, word, &named(rest, &names));
    }
    found
}

/// A name, or an update, or the message itself.
fn named(rest: &str, names: &BTreeMap<String, String>) -> String {
    let text = names.get(rest).map_or(rest, String::as_str);
    match text.strip_prefix("up ") {
        Some(update) => format!(
            r#"{{"method":"session/update","params":{{"sessionId":"s1","update":{update}}}}}"#
        ),
        None => text.to_owned(),
    }
}

fn parsed(place: &str, text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{place}: {error}: {text}"))
}

fn bytes(place: &str, text: &str) -> Vec<u8> {
    let text: String = serde_json::from_str(text).unwrap_or_else(|e| panic!("{place}: {e}"));
    // So that bytes which are no text can be written too.
    text.chars()
        .map(|c| u8::try_from(c).expect("a byte"))
        .collect()
}

/// What nobody wants to type each time.
fn with_jsonrpc(mut message: Value) -> Value {
    if let Some(message) = message.as_object_mut() {
        message.entry("jsonrpc").or_insert_with(|| json!("2.0"));
    }
    message
}

impl Stream {
    fn take(&mut self, place: &str, line: usize, word: &str, rest: &str) {
        let way = match word {
            "c>" | "c>raw" | ">a" | ">araw" => Way::ToAgent,
            _ => Way::ToClient,
        };
        match word {
            "client" => self.client = parsed(place, rest),
            "agent" => self.agent = parsed(place, rest),
            "version" => self.version = rest.parse().expect("a version"),
            "c>" | "a>" => {
                let message = with_jsonrpc(parsed(place, rest));
                self.say(line, way, format!("{message}\n").into_bytes());
            }
            "c>raw" | "a>raw" => self.say(line, way, bytes(place, rest)),
            ">a" | ">c" => self.hear(Heard::Message(way, parsed(place, rest))),
            ">araw" | ">craw" => self.hear(Heard::Bytes(way, bytes(place, rest))),
            "nothing" => self.last().comes = Some(Vec::new()),
            "dies" => self.last().deed = Deed::Die,
            "sleeps" => self.last().deed = Deed::Sleep,
            other => panic!("{place}: {other:?} is no word of a stream"),
        }
    }

    fn say(&mut self, line: usize, way: Way, said: Vec<u8>) {
        self.entries.push(Entry {
            line,
            way,
            said,
            comes: None,
            deed: Deed::None,
        });
    }

    fn last(&mut self) -> &mut Entry {
        self.entries.last_mut().expect("a line before")
    }

    fn hear(&mut self, heard: Heard) {
        self.last().comes.get_or_insert_default().push(heard);
    }

    /// Does anything come out other than it went in?
    pub(crate) fn expects_a_change(&self) -> bool {
        self.entries
            .iter()
            .any(|entry| entry.comes.is_some() || entry.deed != Deed::None)
    }

    fn opening(&self) -> Vec<(Way, Value)> {
        if self.bare {
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
                Way::ToAgent,
                json!({"id": "i", "method": "initialize", "params": params}),
            ),
            (
                Way::ToClient,
                json!({"id": "i", "result": {"protocolVersion": self.version, "agentCapabilities": self.agent}}),
            ),
            (
                Way::ToAgent,
                json!({"id": "n", "method": "session/new", "params": {"cwd": "/w", "mcpServers": []}}),
            ),
            (
                Way::ToClient,
                json!({"id": "n", "result": {"sessionId": "s1"}}),
            ),
        ]
    }

    /// Through its fault.
    pub(crate) fn play(&self) -> Result<(), String> {
        let fault = faults::named(&self.fault)
            .ok_or_else(|| format!("{}: there is no fault {}", self.place, self.fault))?;
        let mut breaker = self.opened(Some(fault));
        for entry in &self.entries {
            let outcome = breaker.line(entry.way, &entry.said);
            let right = entry.fits(&outcome.lines) && outcome.deed == entry.deed;
            if !right {
                let came: Vec<_> = outcome
                    .lines
                    .iter()
                    .map(|(way, bytes)| format!("  {way:?} {}", String::from_utf8_lossy(bytes)))
                    .collect();
                return Err(format!(
                    "{} ({}), line {}: came\n{}{:?}",
                    self.place,
                    self.fault,
                    entry.line,
                    came.concat(),
                    outcome.deed
                ));
            }
        }
        Ok(())
    }

    /// Through no fault.
    pub(crate) fn play_without_fault(&self) -> Result<(), String> {
        let mut breaker = self.opened(None);
        for entry in &self.entries {
            let outcome = breaker.line(entry.way, &entry.said);
            if outcome.lines != [(entry.way, entry.said.clone())] || outcome.deed != Deed::None {
                return Err(format!("line {}: {outcome:?}", entry.line));
            }
        }
        Ok(())
    }

    fn opened(&self, fault: Option<&Fault>) -> Breaker {
        let mut breaker = Breaker::new(fault);
        for (way, message) in self.opening() {
            let line = format!("{}\n", with_jsonrpc(message));
            breaker.line(way, line.as_bytes());
        }
        breaker
    }
}

impl Entry {
    fn fits(&self, lines: &[(Way, Vec<u8>)]) -> bool {
        let Some(comes) = &self.comes else {
            return lines == [(self.way, self.said.clone())];
        };
        comes.len() == lines.len()
            && comes
                .iter()
                .zip(lines)
                .all(|(heard, (way, line))| match heard {
                    Heard::Bytes(to, bytes) => to == way && bytes == line,
                    Heard::Message(to, message) => {
                        let found: Value = serde_json::from_slice(line).unwrap_or_default();
                        // `"jsonrpc": null` stands for a message that lacks it.
                        let wanted = with_jsonrpc(message.clone());
                        let bare = wanted["jsonrpc"].is_null() && found.get("jsonrpc").is_none();
                        to == way && (found == wanted || bare && without(&wanted) == found)
                    }
                })
    }
}

fn without(message: &Value) -> Value {
    let mut message = message.clone();
    if let Some(message) = message.as_object_mut() {
        message.remove("jsonrpc");
    }
    message
}
