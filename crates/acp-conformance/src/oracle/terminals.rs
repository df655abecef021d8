//! Terminals and files of the client: used by their ids and paths, and released (TERM-2, TERM-3, TOOL-9, FS-2).
//! The first version only.

use super::{
    Found, Sort,
    answers::Asked,
    messages::{session, update},
    tools::is_absolute,
};
use serde_json::Value;
use std::collections::BTreeMap;

#[derive(Debug, Default)]
pub(super) struct Terminals {
    /// Requests to make one, by id: the session.
    making: Vec<(Value, String)>,
    /// By id: what became of it.
    made: BTreeMap<String, Made>,
    /// Prompts without an answer, by session.
    running: BTreeMap<String, usize>,
    loading: Vec<String>,
}

#[derive(Debug)]
struct Made {
    session: String,
    is_released: bool,
}

impl Terminals {
    pub(super) fn sent(&mut self, message: &Value) {
        let params = &message["params"];
        match message["method"].as_str() {
            Some("session/prompt") if message.get("id").is_some() => {
                *self.running.entry(session(params).to_owned()).or_default() += 1;
            }
            Some("session/load") => self.loading.push(session(params).to_owned()),
            Some(_) => {}
            None => {
                let made = self.making.iter().position(|(id, _)| *id == message["id"]);
                let Some((_, session)) = made.map(|index| self.making.swap_remove(index)) else {
                    return;
                };
                if let Some(id) = message["result"]["terminalId"].as_str() {
                    let is_released = false;
                    self.made.insert(
                        id.to_owned(),
                        Made {
                            session,
                            is_released,
                        },
                    );
                }
            }
        }
    }

    pub(super) fn heard(
        &mut self,
        sort: Sort,
        message: &Value,
        asked: Option<&Asked>,
        found: &mut Found,
    ) {
        let params = &message["params"];
        match (sort, message["method"].as_str()) {
            (Sort::Request, Some("terminal/create")) => {
                let session = session(params).to_owned();
                self.making.push((message["id"].clone(), session));
                if let Some(cwd) = params["cwd"].as_str() {
                    found.holds("TERM-3", is_absolute(cwd), || {
                        format!("{cwd:?} is not absolute")
                    });
                }
            }
            (Sort::Request, Some(method)) if method.starts_with("terminal/") => {
                self.used(method, params, found);
            }
            (Sort::Request, Some("fs/read_text_file" | "fs/write_text_file")) => {
                let path = params["path"].as_str().unwrap_or_default();
                found.holds("FS-2", is_absolute(path), || {
                    format!("{path:?} is not absolute")
                });
                let line = params["line"].as_u64();
                found.holds("FS-2", line != Some(0), || "lines count from 1".to_owned());
            }
            (Sort::Notification, _) => self.shown(message, found),
            (Sort::Response, _) => {
                let Some(asked) = asked else { return };
                let session = session(&asked.params);
                match asked.method.as_str() {
                    "session/prompt" => {
                        let running = self.running.entry(session.to_owned()).or_default();
                        *running = running.saturating_sub(1);
                    }
                    "session/load" => self.loading.retain(|loading| loading != session),
                    _ => {}
                }
            }
            (Sort::Request, _) => {}
        }
    }

    fn used(&mut self, method: &str, params: &Value, found: &mut Found) {
        let id = params["terminalId"].as_str().unwrap_or_default();
        let Some(made) = self.made.get_mut(id) else {
            return found.broken("TERM-3", format!("there is no terminal {id:?}"));
        };
        found.holds("TERM-3", !made.is_released, || {
            format!("the terminal {id:?} was released")
        });
        made.is_released |= method == "terminal/release";
    }

    fn shown(&self, message: &Value, found: &mut Found) {
        let Some(update) = update(message) else {
            return;
        };
        // What is replayed may show what is long gone.
        if self.loading.iter().any(|loading| loading == update.session) {
            return;
        }
        let content = update.body["content"].as_array().into_iter().flatten();
        for item in content.filter(|item| item["type"] == "terminal") {
            let id = item["terminalId"].as_str().unwrap_or_default();
            match self.made.get(id) {
                // It may show it once more after that.
                Some(_) => found.seen("TOOL-9"),
                None => found.broken("TOOL-9", format!("there is no terminal {id:?}")),
            }
        }
    }

    /// The connection is over: of turns that have ended all are released.
    pub(super) fn ended(&self, found: &mut Found) {
        for (id, made) in &self.made {
            if self
                .running
                .get(&made.session)
                .is_none_or(|running| *running == 0)
            {
                let why = || format!("the terminal {id:?} was not released");
                found.holds("TERM-2", made.is_released, why);
            }
        }
    }
}
