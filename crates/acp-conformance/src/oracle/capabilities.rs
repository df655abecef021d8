//! Capabilities: nothing is used that the client did not offer (FS-1, TERM-1, ELIC-1, NOTE-1, COMP-1, CFG-3,
//! AUTH-2).

use super::{Found, Sort, answers::Asked};
use serde_json::Value;

#[derive(Debug, Default)]
pub(super) struct Capabilities {
    offered: Value,
}

impl Capabilities {
    pub(super) fn sent(&mut self, message: &Value) {
        if message["method"] == "initialize" {
            let params = &message["params"];
            self.offered = match params["protocolVersion"].as_u64() {
                Some(2) => params["capabilities"].clone(),
                _ => params["clientCapabilities"].clone(),
            };
        }
    }

    fn is_true(&self, pointer: &str) -> bool {
        self.offered.pointer(pointer) == Some(&Value::Bool(true))
    }

    fn is_marked(&self, pointer: &str) -> bool {
        self.offered.pointer(pointer).is_some_and(Value::is_object)
    }

    pub(super) fn heard(
        &self,
        sort: Sort,
        message: &Value,
        asked: Option<&Asked>,
        found: &mut Found,
    ) {
        let params = &message["params"];
        let why = |what: &str| format!("the client does not offer {what}");
        match (sort, message["method"].as_str()) {
            (Sort::Request, Some(method)) if found.version != 2 => match method {
                "fs/read_text_file" => {
                    let offers = self.is_true("/fs/readTextFile");
                    found.holds("FS-1", offers, || why("fs.readTextFile"));
                }
                "fs/write_text_file" => {
                    let offers = self.is_true("/fs/writeTextFile");
                    found.holds("FS-1", offers, || why("fs.writeTextFile"));
                }
                _ if method.starts_with("terminal/") => {
                    found.holds("TERM-1", self.is_true("/terminal"), || why("terminal"));
                }
                _ => self.elicits(method, params, found),
            },
            (Sort::Request, Some(method)) => self.elicits(method, params, found),
            (Sort::Notification, Some("session/update")) if found.version != 2 => {
                self.updates(&params["update"], found);
            }
            (Sort::Response, _) => self.answers(message, asked, found),
            (Sort::Request | Sort::Notification, _) => {}
        }
    }

    fn elicits(&self, method: &str, params: &Value, found: &mut Found) {
        if method == "elicitation/create" {
            let mode = params["mode"].as_str().unwrap_or_default();
            let offers = self.is_marked(&format!("/elicitation/{mode}"));
            found.holds("ELIC-1", offers, || {
                format!("the client does not offer elicitation.{mode}")
            });
        }
    }

    fn updates(&self, update: &Value, found: &mut Found) {
        let why = |what: &str| format!("the client does not offer {what}");
        match update["sessionUpdate"].as_str().unwrap_or_default() {
            "notice" => {
                let offers = self.is_marked("/session/notices");
                found.holds("NOTE-1", offers, || why("session.notices"));
            }
            "compaction_update" | "compaction_summary_chunk" => {
                let offers = self.is_marked("/session/compaction");
                found.holds("COMP-1", offers, || why("session.compaction"));
            }
            "config_option_update" => self.options(&update["configOptions"], found),
            _ => {}
        }
    }

    fn answers(&self, message: &Value, asked: Option<&Asked>, found: &mut Found) {
        let result = &message["result"];
        match asked.map(|asked| asked.method.as_str()) {
            Some("initialize") => {
                let methods = result["authMethods"].as_array();
                let mut methods = methods.into_iter().flatten();
                let has_terminal = methods.any(|method| method["type"] == "terminal");
                let is_kept = !has_terminal || self.is_true("/auth/terminal") || {
                    // In the second version it is a marker.
                    self.is_marked("/auth/terminal")
                };
                found.holds("AUTH-2", is_kept, || {
                    "the client does not offer auth.terminal".to_owned()
                });
            }
            Some(
                "session/new" | "session/load" | "session/resume" | "session/set_config_option",
            ) if found.version != 2 => {
                self.options(&result["configOptions"], found);
            }
            _ => {}
        }
    }

    fn options(&self, options: &Value, found: &mut Found) {
        let Some(options) = options.as_array() else {
            return;
        };
        let has_boolean = options.iter().any(|option| option["type"] == "boolean");
        let offers = self.is_marked("/session/configOptions/boolean");
        found.holds("CFG-3", !has_boolean || offers, || {
            "the client does not offer session.configOptions.boolean".to_owned()
        });
    }
}
