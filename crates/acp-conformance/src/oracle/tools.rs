//! Tools: the life of a tool call, from its first report to its end (TOOL-2, TOOL-4, TOOL-7, TOOL-10, PERM-2,
//! CANCEL-10). The first version only.

use super::{
    Found, Sort,
    answers::Asked,
    messages::{session, update},
};
use serde_json::Value;
use std::collections::BTreeMap;

#[derive(Debug, Default)]
pub(super) struct Tools {
    /// By session and id.
    calls: BTreeMap<(String, String), Call>,
    /// Prompts that have no answer, by session.
    running: BTreeMap<String, usize>,
    /// Sessions that are being loaded.
    loading: Vec<String>,
}

#[derive(Debug, Default)]
struct Call {
    name: Option<String>,
    is_reported: bool,
    is_over: bool,
    /// It was reported while a session was loaded.
    is_replayed: bool,
}

impl Tools {
    pub(super) fn sent(&mut self, message: &Value) {
        if message.get("id").is_none() {
            return;
        }
        let session = session(&message["params"]).to_owned();
        match message["method"].as_str().unwrap_or_default() {
            "session/prompt" => *self.running.entry(session).or_default() += 1,
            "session/load" => {
                // What it replays it reports anew.
                self.calls.retain(|(of, _), _| *of != session);
                self.loading.push(session);
            }
            _ => {}
        }
    }

    pub(super) fn heard(
        &mut self,
        sort: Sort,
        message: &Value,
        asked: Option<&Asked>,
        found: &mut Found,
    ) {
        if let (Sort::Response, Some(asked)) = (sort, asked) {
            return self.answered(message, asked, found);
        }
        if message["method"] == "session/request_permission" {
            return self.asked(&message["params"], found);
        }
        if let Some(update) = update(message) {
            match update.kind {
                "tool_call" => self.reported(update.session, update.body, found),
                "tool_call_update" => self.updated(update.session, update.body, found),
                _ => {}
            }
        }
    }

    fn reported(&mut self, session: &str, call: &Value, found: &mut Found) {
        let is_replayed = self.loading.iter().any(|loading| loading == session);
        let known = self.calls.entry(key(session, call)).or_default();
        let is_used = known.is_reported && known.is_over;
        found.holds("TOOL-2", !is_used, || {
            format!("the tool call {} is over already", call["toolCallId"])
        });
        *known = Call {
            name: call["name"].as_str().map(str::to_owned),
            is_reported: true,
            is_over: is_over(call),
            is_replayed,
        };
        check_paths(call, found);
    }

    fn updated(&mut self, session: &str, call: &Value, found: &mut Found) {
        let Some(known) = self.calls.get_mut(&key(session, call)) else {
            let why = format!("the tool call {} was never reported", call["toolCallId"]);
            return found.broken("TOOL-2", why);
        };
        found.seen("TOOL-2");
        let goes_back =
            known.is_over && matches!(call["status"].as_str(), Some("pending" | "in_progress"));
        found.holds("TOOL-4", !goes_back, || {
            "the tool call was over already".to_owned()
        });
        known.is_over |= is_over(call);
        if let Some(name) = call["name"].as_str() {
            let changes = known.name.as_ref().is_some_and(|known| known != name);
            found.holds("TOOL-10", !changes, || {
                format!("it had another name before: {:?}", known.name)
            });
            known.name = Some(name.to_owned());
        }
        check_paths(call, found);
    }

    fn asked(&mut self, params: &Value, found: &mut Found) {
        let call = &params["toolCall"];
        let options = params["options"].as_array();
        let ids = options
            .into_iter()
            .flatten()
            .map(|option| &option["optionId"]);
        let ids: Vec<&Value> = ids.collect();
        let is_unique = ids
            .iter()
            .enumerate()
            .all(|(index, id)| !ids[..index].contains(id));
        found.holds("PERM-2", !ids.is_empty() && is_unique, || {
            "there is no option, or two have one id".to_owned()
        });
        // A call may be shown first by the question about it.
        self.calls.entry(key(session(params), call)).or_default();
        check_paths(call, found);
    }

    fn answered(&mut self, message: &Value, asked: &Asked, found: &mut Found) {
        let session = session(&asked.params);
        if asked.method == "session/load" {
            self.loading.retain(|loading| loading != session);
            let open = self.calls.iter().find(|((of, _), call)| {
                of == session && call.is_reported && call.is_replayed && !call.is_over
            });
            if self.calls.keys().any(|(of, _)| of == session) {
                found.holds("LOAD-7", open.is_none(), || {
                    format!(
                        "the tool call {:?} looks as if it ran",
                        open.map(|((_, id), _)| id)
                    )
                });
            }
            return;
        }
        if asked.method != "session/prompt" {
            return;
        }
        let running = self.running.entry(session.to_owned()).or_default();
        *running = running.saturating_sub(1);
        let Some(reason) = message["result"]["stopReason"]
            .as_str()
            .filter(|_| *running == 0)
        else {
            return;
        };
        let rule = if reason == "cancelled" {
            "CANCEL-10"
        } else {
            "TOOL-4"
        };
        let its = || {
            self.calls
                .iter()
                .filter(|((of, _), call)| of == session && call.is_reported)
        };
        if its().next().is_none() {
            return;
        }
        let open = its().find(|(_, call)| !call.is_over && !call.is_replayed);
        found.holds(rule, open.is_none(), || {
            let id = open.map_or("", |((_, id), _)| id);
            format!("the tool call {id:?} has no end")
        });
        if let Some((key, _)) = open {
            // It is said once.
            let key = key.clone();
            self.calls.entry(key).or_default().is_over = true;
        }
    }
}

fn key(session: &str, call: &Value) -> (String, String) {
    let id = call["toolCallId"].as_str().unwrap_or_default();
    (session.to_owned(), id.to_owned())
}

fn is_over(call: &Value) -> bool {
    matches!(call["status"].as_str(), Some("completed" | "failed"))
}

/// Paths are absolute, lines count from 1 (TOOL-7).
fn check_paths(call: &Value, found: &mut Found) {
    let of = |key: &str| call[key].as_array().into_iter().flatten();
    let diffs = of("content").filter(|item| item["type"] == "diff");
    for place in of("locations").chain(diffs) {
        let path = place["path"].as_str().unwrap_or_default();
        found.holds("TOOL-7", is_absolute(path), || {
            format!("{path:?} is not absolute")
        });
        let line = place["line"].as_u64();
        found.holds("TOOL-7", line != Some(0), || {
            "lines count from 1".to_owned()
        });
    }
}

/// Of either kind of system.
pub(super) fn is_absolute(path: &str) -> bool {
    let bytes = path.as_bytes();
    let has_drive = bytes.len() > 2 && bytes[0].is_ascii_alphabetic() && bytes[1] == b':';
    path.starts_with('/') || path.starts_with("\\\\") || has_drive
}
