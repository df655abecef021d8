//! Checks the life cycle of tool calls in version 1, from the first report to the final status (TOOL-2,
//! TOOL-4, TOOL-7, TOOL-10, PERM-2, CANCEL-10, LOAD-7).

use super::{
    messages::{AgentMessage, are_unique, parse_update, session_id},
    recorder::RuleRecorder,
    responses::ClientRequest,
    session_activity::SessionActivity,
};
use crate::official_schema::MessageKind;
use serde_json::Value;
use std::collections::BTreeMap;

#[derive(Debug, Default)]
pub(super) struct ToolCallRules {
    /// Tool calls, by session and id.
    calls: BTreeMap<(String, String), ToolCallState>,
    activity: SessionActivity,
}

#[derive(Debug, Default)]
struct ToolCallState {
    name: Option<String>,
    is_reported: bool,
    is_over: bool,
    /// True if the call was reported during `session/load`.
    is_replayed: bool,
}

impl ToolCallRules {
    pub(super) fn on_sent(&mut self, message: &Value) {
        self.activity.on_sent(message);
    }

    pub(super) fn on_received(&mut self, message: AgentMessage<'_>, recorder: &mut RuleRecorder) {
        let json = message.json;
        if let (MessageKind::Response, Some(request)) = (message.kind, message.request) {
            return self.on_response(json, request, recorder);
        }
        if json["method"] == "session/request_permission" {
            return self.on_permission_request(&json["params"], recorder);
        }
        if let Some(update) = parse_update(json) {
            match update.kind {
                "tool_call" => self.on_tool_call(update.session_id, update.body, recorder),
                "tool_call_update" => {
                    self.on_tool_call_update(update.session_id, update.body, recorder)
                }
                _ => {}
            }
        }
    }

    fn on_tool_call(&mut self, session: &str, call: &Value, recorder: &mut RuleRecorder) {
        // A load reports the calls again. Until its replay begins, a running prompt may update its own.
        let is_replayed = self.activity.is_loading(session);
        let known = self.calls.entry(call_key(session, call)).or_default();
        let is_used = known.is_reported && known.is_over && !is_replayed;
        recorder.record_check("TOOL-2", !is_used, || {
            format!("the tool call {} is over already", call["toolCallId"])
        });
        *known = ToolCallState {
            name: call["name"].as_str().map(str::to_owned),
            is_reported: true,
            is_over: has_final_status(call),
            is_replayed,
        };
        check_paths(call, recorder);
    }

    fn on_tool_call_update(&mut self, session: &str, call: &Value, recorder: &mut RuleRecorder) {
        let Some(known) = self.calls.get_mut(&call_key(session, call)) else {
            let why = format!("the tool call {} was never reported", call["toolCallId"]);
            return recorder.record_violation("TOOL-2", why);
        };
        recorder.record_observed("TOOL-2");
        let goes_back =
            known.is_over && matches!(call["status"].as_str(), Some("pending" | "in_progress"));
        recorder.record_check("TOOL-4", !goes_back, || {
            "the tool call was over already".to_owned()
        });
        known.is_over |= has_final_status(call);
        if let Some(name) = call["name"].as_str() {
            let changes = known.name.as_ref().is_some_and(|known| known != name);
            recorder.record_check("TOOL-10", !changes, || {
                format!("it had another name before: {:?}", known.name)
            });
            known.name = Some(name.to_owned());
        }
        check_paths(call, recorder);
    }

    fn on_permission_request(&mut self, params: &Value, recorder: &mut RuleRecorder) {
        let call = &params["toolCall"];
        let options = params["options"].as_array().into_iter().flatten();
        let ids: Vec<&Value> = options.map(|option| &option["optionId"]).collect();
        recorder.record_check("PERM-2", !ids.is_empty() && are_unique(&ids), || {
            "there is no option, or two have one id".to_owned()
        });
        // A permission request may introduce a call.
        self.calls
            .entry(call_key(session_id(params), call))
            .or_default();
        check_paths(call, recorder);
    }

    fn on_response(
        &mut self,
        message: &Value,
        request: &ClientRequest,
        recorder: &mut RuleRecorder,
    ) {
        self.activity.on_response(request);
        let session = session_id(&request.params);
        if request.method == "session/load" {
            let open = self.calls.iter().find(|((of, _), call)| {
                of == session && call.is_reported && call.is_replayed && !call.is_over
            });
            let mut its = self.calls.iter().filter(|((of, _), _)| of == session);
            if its.any(|(_, call)| call.is_replayed) {
                recorder.record_check("LOAD-7", open.is_none(), || {
                    format!(
                        "the tool call {:?} looks as if it ran",
                        open.map(|((_, id), _)| id)
                    )
                });
            }
            return;
        }
        if request.method != "session/prompt" {
            return;
        }
        let rule = match message["result"]["stopReason"].as_str() {
            None => return,
            Some(_) if self.activity.is_prompting(session) => return,
            Some("cancelled") => "CANCEL-10",
            Some(_) => "TOOL-4",
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
        recorder.record_check(rule, open.is_none(), || {
            let id = open.map_or("", |((_, id), _)| id);
            format!("the tool call {id:?} has no end")
        });
        if let Some((key, _)) = open {
            // Report only once.
            let key = key.clone();
            self.calls.entry(key).or_default().is_over = true;
        }
    }
}

fn call_key(session: &str, call: &Value) -> (String, String) {
    let id = call["toolCallId"].as_str().unwrap_or_default();
    (session.to_owned(), id.to_owned())
}

fn has_final_status(call: &Value) -> bool {
    matches!(call["status"].as_str(), Some("completed" | "failed"))
}

/// Checks that paths are absolute and line numbers start at 1 (TOOL-7).
fn check_paths(call: &Value, recorder: &mut RuleRecorder) {
    let of = |key: &str| call[key].as_array().into_iter().flatten();
    let diffs = of("content").filter(|item| item["type"] == "diff");
    for place in of("locations").chain(diffs) {
        let path = place["path"].as_str().unwrap_or_default();
        recorder.record_check("TOOL-7", is_absolute(path), || {
            format!("{path:?} is not absolute")
        });
        let line = place["line"].as_u64();
        recorder.record_check("TOOL-7", line != Some(0), || {
            "lines count from 1".to_owned()
        });
    }
}

/// Returns true for an absolute Unix or Windows path.
pub(super) fn is_absolute(path: &str) -> bool {
    let bytes = path.as_bytes();
    let has_drive = bytes.len() > 2 && bytes[0].is_ascii_alphabetic() && bytes[1] == b':';
    path.starts_with('/') || path.starts_with("\\\\") || has_drive
}
