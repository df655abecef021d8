//! News: ids, modes, options, commands, summaries and questions say what they must (SESS-1, MODE-3, CFG-1,
//! CMD-3, LIST-6, COMP-2, ELIC-6, AUTH-1). The first version only.

use super::{
    Found, Sort,
    answers::Asked,
    messages::{session, update},
};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug, Default)]
pub(super) struct News {
    sessions: BTreeSet<String>,
    /// The modes that a session has.
    modes: BTreeMap<String, Vec<String>>,
    /// Compactions: the status they ended with.
    compactions: BTreeMap<(String, String), Option<String>>,
    /// Elicitations of this connection, by their id.
    elicitations: BTreeSet<String>,
    /// Of these, the ones without an answer: the id of the request, and theirs.
    asking: Vec<(Value, String)>,
}

impl News {
    pub(super) fn sent(&mut self, message: &Value) {
        if message.get("method").is_none() {
            self.asking.retain(|(id, _)| *id != message["id"]);
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
        match (sort, message["method"].as_str(), asked) {
            (Sort::Response, _, Some(asked)) => {
                if let Some(result) = message.get("result") {
                    self.answered(result, asked, found);
                }
            }
            (Sort::Notification, Some("session/update"), _) => self.updated(message, found),
            (Sort::Request, Some("elicitation/create"), _) => self.elicits(message, found),
            (Sort::Notification, Some("elicitation/complete"), _) => {
                let id = params["elicitationId"].as_str().unwrap_or_default();
                found.holds("ELIC-6", self.elicitations.contains(id), || {
                    format!("there is no elicitation {id:?}")
                });
            }
            (Sort::Request | Sort::Notification | Sort::Response, _, _) => {}
        }
    }

    fn answered(&mut self, result: &Value, asked: &Asked, found: &mut Found) {
        let mut name = session(&asked.params).to_owned();
        match asked.method.as_str() {
            "initialize" => {
                let ids = strings(&result["authMethods"], "id");
                found.holds("AUTH-1", is_unique(&ids), || {
                    "two methods have one id".to_owned()
                });
            }
            "session/new" | "session/fork" => {
                result["sessionId"]
                    .as_str()
                    .unwrap_or_default()
                    .clone_into(&mut name);
                let is_new = self.sessions.insert(name.clone());
                found.holds("SESS-1", is_new && !name.is_empty(), || {
                    format!("{name:?} is empty, or that of another session")
                });
            }
            "session/list" => {
                for listed in result["sessions"].as_array().into_iter().flatten() {
                    if let Some(at) = listed["updatedAt"].as_str() {
                        found.holds("LIST-6", is_time(at), || format!("{at:?} is no ISO 8601"));
                    }
                }
            }
            _ => {}
        }
        let modes = &result["modes"];
        if modes.is_object() {
            let ids = strings(&modes["availableModes"], "id");
            let current = modes["currentModeId"].as_str().unwrap_or_default();
            found.holds("MODE-1", ids.iter().any(|id| id == current), || {
                format!("the mode {current:?} is none of those on offer")
            });
            self.modes.insert(name, ids);
        }
        check_options(&result["configOptions"], found);
    }

    fn updated(&mut self, message: &Value, found: &mut Found) {
        let Some(update) = update(message) else {
            return;
        };
        let body = update.body;
        match update.kind {
            "current_mode_update" => {
                let mode = body["currentModeId"].as_str().unwrap_or_default();
                if let Some(modes) = self.modes.get(update.session) {
                    found.holds("MODE-3", modes.iter().any(|known| known == mode), || {
                        format!("the mode {mode:?} is none of those on offer")
                    });
                }
            }
            "config_option_update" => check_options(&body["configOptions"], found),
            "available_commands_update" => {
                let names = strings(&body["availableCommands"], "name");
                let is_right = |name: &String| {
                    !name.is_empty()
                        && !name.starts_with('/')
                        && !name.contains(char::is_whitespace)
                };
                found.holds(
                    "CMD-3",
                    is_unique(&names) && names.iter().all(is_right),
                    || format!("names have no slash and no blank, and are unique: {names:?}"),
                );
            }
            "compaction_update" => self.compacts(update.session, body, found),
            "compaction_summary_chunk" => {
                let key = compaction(update.session, body);
                found.holds("COMP-2", self.compactions.get(&key) == Some(&None), || {
                    "no such compaction goes on".to_owned()
                });
            }
            "session_info_update" => {
                if let Some(at) = body["updatedAt"].as_str() {
                    found.holds("INFO-1", is_time(at), || format!("{at:?} is no ISO 8601"));
                }
            }
            _ => {}
        }
    }

    fn compacts(&mut self, session: &str, body: &Value, found: &mut Found) {
        let status = body["status"].as_str().unwrap_or_default();
        let is_final = matches!(status, "completed" | "failed" | "cancelled");
        let ended = is_final.then(|| status.to_owned());
        let key = compaction(session, body);
        let before = self.compactions.insert(key, ended.clone()).flatten();
        // What is over may still be patched, and each patch says the status.
        found.holds("COMP-2", before.is_none() || before == ended, || {
            "this compaction was over already".to_owned()
        });
        let has = |key: &str| body.get(key).is_some_and(|value| !value.is_null());
        let is_right =
            (!has("summary") || status == "completed") && (!has("error") || status == "failed");
        found.holds("COMP-2", is_right, || {
            "a summary is of what is completed, an error of what failed".to_owned()
        });
    }

    fn elicits(&mut self, message: &Value, found: &mut Found) {
        let Some(id) = message["params"]["elicitationId"].as_str() else {
            return;
        };
        let is_free = self.asking.iter().all(|(_, asking)| asking != id);
        found.holds("ELIC-6", is_free, || {
            format!("{id:?} is that of another elicitation")
        });
        self.elicitations.insert(id.to_owned());
        self.asking.push((message["id"].clone(), id.to_owned()));
    }
}

fn compaction(session: &str, body: &Value) -> (String, String) {
    let id = body["compactionId"].as_str().unwrap_or_default();
    (session.to_owned(), id.to_owned())
}

/// What this member of each item says.
fn strings(items: &Value, key: &str) -> Vec<String> {
    let items = items.as_array().into_iter().flatten();
    items
        .filter_map(|item| item[key].as_str().map(str::to_owned))
        .collect()
}

fn is_unique(ids: &[String]) -> bool {
    ids.iter().collect::<BTreeSet<_>>().len() == ids.len()
}

/// The current value of each option is one of those it offers (CFG-1).
fn check_options(options: &Value, found: &mut Found) {
    for option in options.as_array().into_iter().flatten() {
        let Some(current) = option["currentValue"].as_str() else {
            continue;
        };
        let offered = option["options"].as_array().into_iter().flatten();
        let is_offered = |value: &Value| value["value"] == current;
        let mut offered = offered.flat_map(|one| match one["options"].as_array() {
            Some(group) => group.iter().collect(),
            None => vec![one],
        });
        found.holds("CFG-1", offered.any(is_offered), || {
            format!("{current:?} is none of the values of {}", option["id"])
        });
    }
}

/// A day, or a point in time.
fn is_time(text: &str) -> bool {
    const DAY: &str = "dddd-dd-dd";
    const TIME: &str = "dddd-dd-ddTdd:dd";
    let fits = |shape: &str| {
        text.len() >= shape.len()
            && text
                .bytes()
                .zip(shape.bytes())
                .all(|(found, wanted)| match wanted {
                    b'd' => found.is_ascii_digit(),
                    b'T' => matches!(found, b'T' | b't' | b' '),
                    other => found == other,
                })
    };
    fits(TIME) || (fits(DAY) && text.len() == DAY.len())
}
