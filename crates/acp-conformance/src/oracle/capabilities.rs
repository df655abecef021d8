//! Checks that agents use only capabilities that the client offered (FS-1, TERM-1, ELIC-1, NOTE-1, COMP-1,
//! CFG-3, AUTH-2).

use super::{messages::AgentMessage, recorder::RuleRecorder};
use crate::official_schema::MessageKind;
use serde_json::Value;

#[derive(Debug, Default)]
pub(super) struct CapabilityRules {
    client_capabilities: Value,
}

impl CapabilityRules {
    fn has_flag(&self, pointer: &str) -> bool {
        self.client_capabilities.pointer(pointer) == Some(&Value::Bool(true))
    }

    fn has_object(&self, pointer: &str) -> bool {
        self.client_capabilities
            .pointer(pointer)
            .is_some_and(Value::is_object)
    }

    pub(super) fn on_received(&mut self, message: AgentMessage<'_>, recorder: &mut RuleRecorder) {
        if let Some(request) = message.accepted_initialize() {
            let params = &request.params;
            self.client_capabilities = match params["protocolVersion"].as_u64() {
                Some(2) => params["capabilities"].clone(),
                _ => params["clientCapabilities"].clone(),
            };
        }
        let params = &message.json["params"];
        let why = |what: &str| format!("the client does not offer {what}");
        match (message.kind, message.json["method"].as_str()) {
            (MessageKind::Request, Some(method)) if recorder.version != 2 => match method {
                "fs/read_text_file" => {
                    let offers = self.has_flag("/fs/readTextFile");
                    recorder.record_check("FS-1", offers, || why("fs.readTextFile"));
                }
                "fs/write_text_file" => {
                    let offers = self.has_flag("/fs/writeTextFile");
                    recorder.record_check("FS-1", offers, || why("fs.writeTextFile"));
                }
                _ if method.starts_with("terminal/") => {
                    recorder.record_check("TERM-1", self.has_flag("/terminal"), || why("terminal"));
                }
                _ => self.check_elicitation(method, params, recorder),
            },
            (MessageKind::Request, Some(method)) => {
                self.check_elicitation(method, params, recorder)
            }
            (MessageKind::Notification, Some("session/update")) if recorder.version != 2 => {
                self.check_update(&params["update"], recorder);
            }
            (MessageKind::Response, _) => self.check_response(message, recorder),
            (MessageKind::Request | MessageKind::Notification, _) => {}
        }
    }

    fn check_elicitation(&self, method: &str, params: &Value, recorder: &mut RuleRecorder) {
        if method == "elicitation/create" {
            let mode = params["mode"].as_str().unwrap_or_default();
            let offers = self.has_object(&format!("/elicitation/{mode}"));
            recorder.record_check("ELIC-1", offers, || {
                format!("the client does not offer elicitation.{mode}")
            });
        }
    }

    fn check_update(&self, update: &Value, recorder: &mut RuleRecorder) {
        let why = |what: &str| format!("the client does not offer {what}");
        match update["sessionUpdate"].as_str().unwrap_or_default() {
            "notice" => {
                let offers = self.has_object("/session/notices");
                recorder.record_check("NOTE-1", offers, || why("session.notices"));
            }
            "compaction_update" | "compaction_summary_chunk" => {
                let offers = self.has_object("/session/compaction");
                recorder.record_check("COMP-1", offers, || why("session.compaction"));
            }
            "config_option_update" => self.check_options(&update["configOptions"], recorder),
            _ => {}
        }
    }

    fn check_response(&self, message: AgentMessage<'_>, recorder: &mut RuleRecorder) {
        let result = &message.json["result"];
        match message.request.map(|request| request.method.as_str()) {
            Some("initialize") => {
                let methods = result["authMethods"].as_array();
                let mut methods = methods.into_iter().flatten();
                let has_terminal = methods.any(|method| method["type"] == "terminal");
                let is_kept = !has_terminal || self.has_flag("/auth/terminal") || {
                    // In version 2 the capability is a marker object.
                    self.has_object("/auth/terminal")
                };
                recorder.record_check("AUTH-2", is_kept, || {
                    "the client does not offer auth.terminal".to_owned()
                });
            }
            Some(
                "session/new" | "session/load" | "session/resume" | "session/set_config_option",
            ) if recorder.version != 2 => {
                self.check_options(&result["configOptions"], recorder);
            }
            _ => {}
        }
    }

    fn check_options(&self, options: &Value, recorder: &mut RuleRecorder) {
        let Some(options) = options.as_array() else {
            return;
        };
        let has_boolean = options.iter().any(|option| option["type"] == "boolean");
        let offers = self.has_object("/session/configOptions/boolean");
        recorder.record_check("CFG-3", !has_boolean || offers, || {
            "the client does not offer session.configOptions.boolean".to_owned()
        });
    }
}
