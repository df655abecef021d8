//! Checks ids, modes, options, commands, times, compactions and elicitations in version 1 (SESS-1, MODE-1,
//! MODE-3, CFG-1, CMD-3, LIST-6, INFO-1, COMP-2, ELIC-6, AUTH-1).

use super::{
    messages::{AgentMessage, are_unique, option_values, parse_update, session_id},
    recorder::RuleRecorder,
    responses::ClientRequest,
};
use crate::official_schema::MessageKind;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug, Default)]
pub(super) struct SessionStateRules {
    sessions: BTreeSet<String>,
    /// Mode ids of each session.
    modes: BTreeMap<String, Vec<String>>,
    /// Final status of each compaction, by session and id; `None` while running.
    compactions: BTreeMap<(String, String), Option<String>>,
    /// Ids of the elicitations of this connection.
    elicitations: BTreeSet<String>,
    /// Unanswered elicitations: request id and elicitation id.
    pending_elicitations: Vec<(Value, String)>,
}

impl SessionStateRules {
    pub(super) fn on_sent(&mut self, message: &Value) {
        if message.get("method").is_none() {
            self.pending_elicitations
                .retain(|(id, _)| *id != message["id"]);
        }
    }

    pub(super) fn on_received(&mut self, message: AgentMessage<'_>, recorder: &mut RuleRecorder) {
        let json = message.json;
        match (message.kind, json["method"].as_str(), message.request) {
            (MessageKind::Response, _, Some(request)) => {
                if let Some(result) = json.get("result") {
                    self.on_response(result, request, recorder);
                }
            }
            (MessageKind::Notification, Some("session/update"), _) => {
                self.on_update(json, recorder)
            }
            (MessageKind::Request, Some("elicitation/create"), _) => {
                self.check_elicitation(json, recorder)
            }
            (MessageKind::Notification, Some("elicitation/complete"), _) => {
                let id = json["params"]["elicitationId"].as_str().unwrap_or_default();
                recorder.record_check("ELIC-6", self.elicitations.contains(id), || {
                    format!("there is no elicitation {id:?}")
                });
            }
            (MessageKind::Request | MessageKind::Notification | MessageKind::Response, _, _) => {}
        }
    }

    fn on_response(
        &mut self,
        result: &Value,
        request: &ClientRequest,
        recorder: &mut RuleRecorder,
    ) {
        let mut name = session_id(&request.params).to_owned();
        match request.method.as_str() {
            "initialize" => {
                let ids = string_members(&result["authMethods"], "id");
                recorder.record_check("AUTH-1", are_unique(&ids), || {
                    "two methods have one id".to_owned()
                });
            }
            "session/new" | "session/fork" => {
                result["sessionId"]
                    .as_str()
                    .unwrap_or_default()
                    .clone_into(&mut name);
                let is_new = self.sessions.insert(name.clone());
                recorder.record_check("SESS-1", is_new && !name.is_empty(), || {
                    format!("{name:?} is empty, or that of another session")
                });
            }
            "session/list" => {
                for listed in result["sessions"].as_array().into_iter().flatten() {
                    if let Some(at) = listed["updatedAt"].as_str() {
                        recorder.record_check("LIST-6", is_date_or_time(at), || {
                            format!("{at:?} is no ISO 8601")
                        });
                    }
                }
            }
            _ => {}
        }
        let modes = &result["modes"];
        if modes.is_object() {
            let ids = string_members(&modes["availableModes"], "id");
            let current = modes["currentModeId"].as_str().unwrap_or_default();
            recorder.record_check("MODE-1", ids.iter().any(|id| id == current), || {
                format!("the mode {current:?} is none of those on offer")
            });
            self.modes.insert(name, ids);
        }
        check_options(&result["configOptions"], recorder);
    }

    fn on_update(&mut self, message: &Value, recorder: &mut RuleRecorder) {
        let Some(update) = parse_update(message) else {
            return;
        };
        let body = update.body;
        match update.kind {
            "current_mode_update" => {
                let mode = body["currentModeId"].as_str().unwrap_or_default();
                if let Some(modes) = self.modes.get(update.session_id) {
                    recorder.record_check(
                        "MODE-3",
                        modes.iter().any(|known| known == mode),
                        || format!("the mode {mode:?} is none of those on offer"),
                    );
                }
            }
            "config_option_update" => check_options(&body["configOptions"], recorder),
            "available_commands_update" => {
                let names = string_members(&body["availableCommands"], "name");
                let is_right = |name: &String| {
                    !name.is_empty()
                        && !name.starts_with('/')
                        && !name.contains(char::is_whitespace)
                };
                recorder.record_check(
                    "CMD-3",
                    are_unique(&names) && names.iter().all(is_right),
                    || format!("names have no slash and no blank, and are unique: {names:?}"),
                );
            }
            "compaction_update" => self.check_compaction(update.session_id, body, recorder),
            "compaction_summary_chunk" => {
                let key = compaction_key(update.session_id, body);
                recorder.record_check("COMP-2", self.compactions.get(&key) == Some(&None), || {
                    "no such compaction goes on".to_owned()
                });
            }
            "session_info_update" => {
                if let Some(at) = body["updatedAt"].as_str() {
                    recorder.record_check("INFO-1", is_date_or_time(at), || {
                        format!("{at:?} is no ISO 8601")
                    });
                }
            }
            _ => {}
        }
    }

    fn check_compaction(&mut self, session: &str, body: &Value, recorder: &mut RuleRecorder) {
        let status = body["status"].as_str().unwrap_or_default();
        let is_final = matches!(status, "completed" | "failed" | "cancelled");
        let ended = is_final.then(|| status.to_owned());
        let key = compaction_key(session, body);
        let before = self.compactions.insert(key, ended.clone()).flatten();
        // Finished compactions may still be updated, and each update repeats the status.
        recorder.record_check("COMP-2", before.is_none() || before == ended, || {
            "this compaction was over already".to_owned()
        });
        let has = |key: &str| body.get(key).is_some_and(|value| !value.is_null());
        let is_right =
            (!has("summary") || status == "completed") && (!has("error") || status == "failed");
        recorder.record_check("COMP-2", is_right, || {
            "only a completed compaction has a summary, only a failed one an error".to_owned()
        });
    }

    fn check_elicitation(&mut self, message: &Value, recorder: &mut RuleRecorder) {
        let Some(id) = message["params"]["elicitationId"].as_str() else {
            return;
        };
        let is_free = self
            .pending_elicitations
            .iter()
            .all(|(_, asking)| asking != id);
        recorder.record_check("ELIC-6", is_free, || {
            format!("{id:?} is that of another elicitation")
        });
        self.elicitations.insert(id.to_owned());
        self.pending_elicitations
            .push((message["id"].clone(), id.to_owned()));
    }
}

fn compaction_key(session: &str, body: &Value) -> (String, String) {
    let id = body["compactionId"].as_str().unwrap_or_default();
    (session.to_owned(), id.to_owned())
}

/// Returns a string member of each item.
fn string_members(items: &Value, key: &str) -> Vec<String> {
    let items = items.as_array().into_iter().flatten();
    items
        .filter_map(|item| item[key].as_str().map(str::to_owned))
        .collect()
}

/// Checks that the current value of each option is one of its offered values (CFG-1).
fn check_options(options: &Value, recorder: &mut RuleRecorder) {
    for option in options.as_array().into_iter().flatten() {
        let Some(current) = option["currentValue"].as_str() else {
            continue;
        };
        let is_offered = option_values(option).any(|value| *value == current);
        recorder.record_check("CFG-1", is_offered, || {
            format!("{current:?} is none of the values of {}", option["id"])
        });
    }
}

/// Returns true if the text is a date or a timestamp.
fn is_date_or_time(text: &str) -> bool {
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
