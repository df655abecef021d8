//! Answers requests of the agent that the case does not answer itself.

use super::terminals::ClientTerminals;
use crate::case::{ElicitationAnswer, PermissionAnswer, ResponseMode};
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

/// Simulated client: settings and open resources.
pub(crate) struct Client {
    /// Capabilities sent in `initialize`.
    capabilities: Value,
    permission: PermissionAnswer,
    /// Unanswered permission requests.
    open_permissions: Vec<PermissionRequest>,
    pub(crate) elicitation: ElicitationAnswer,
    response_modes: BTreeMap<String, ResponseMode>,
    /// Files open in the editor, with unsaved text.
    pub(crate) buffers: BTreeMap<PathBuf, String>,
    pub(crate) terminals: ClientTerminals,
}

struct PermissionRequest {
    id: Value,
    params: Value,
}

impl Default for Client {
    fn default() -> Self {
        Self {
            capabilities: Value::Null,
            permission: PermissionAnswer::AllowOnce,
            open_permissions: Vec::new(),
            elicitation: ElicitationAnswer::Cancel,
            response_modes: BTreeMap::new(),
            buffers: BTreeMap::new(),
            terminals: ClientTerminals::default(),
        }
    }
}

fn result_response(id: &Value, result: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": result})
}

fn error_response(id: &Value, code: i64, message: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}})
}

impl Client {
    /// Observes a message sent by the case.
    pub(crate) fn observe_sent(&mut self, message: &Value) {
        if message["method"] == "initialize" {
            let params = &message["params"];
            self.capabilities = params["clientCapabilities"].clone();
            if params["protocolVersion"] == 2 {
                self.capabilities = params["capabilities"].clone();
            }
        }
        // The case answers by hand, so the request is no longer open.
        if message.get("method").is_none() {
            self.open_permissions.retain(|ask| ask.id != message["id"]);
        }
    }

    /// Sets how requests of this method are answered from now on.
    pub(crate) fn set_response_mode(&mut self, method: &str, mode: ResponseMode) {
        self.response_modes.insert(method.to_owned(), mode);
    }

    /// Handles an agent message and returns the immediate responses.
    pub(crate) fn handle_message(&mut self, message: &Value) -> Vec<Value> {
        let (Some(method), Some(id)) = (message["method"].as_str(), message.get("id")) else {
            return Vec::new();
        };
        let params = &message["params"];
        match self.response_modes.get(method) {
            None | Some(ResponseMode::ByItself) => {}
            Some(ResponseMode::ByHand) => return Vec::new(),
            Some(ResponseMode::Error(code)) => {
                return vec![error_response(id, *code, "The case wants this error")];
            }
            Some(ResponseMode::With(value)) => return vec![result_response(id, value.clone())],
        }
        let reply = match method {
            "session/request_permission" => return self.handle_permission_request(id, params),
            "fs/read_text_file" if self.has_capability("/fs/readTextFile") => {
                self.read_file(id, params)
            }
            "fs/write_text_file" if self.has_capability("/fs/writeTextFile") => {
                self.write_file(id, params)
            }
            _ if method.starts_with("terminal/") && self.has_capability("/terminal") => {
                match self.terminals.handle_request(method, id, params) {
                    Ok(Some(answer)) => result_response(id, answer),
                    Ok(None) => return Vec::new(),
                    Err((code, message)) => error_response(id, code, &message),
                }
            }
            "elicitation/create" if self.can_elicit(params) => {
                match self.handle_elicitation(id, params) {
                    Some(reply) => reply,
                    None => return Vec::new(),
                }
            }
            _ => error_response(id, -32601, "Method not found"),
        };
        vec![reply]
    }

    /// Waits for the next delayed response.
    pub(crate) async fn next_delayed_response(&mut self) -> Value {
        self.terminals.next_delayed_response().await
    }

    /// Ends everything that the client has started.
    pub(crate) fn stop_all(&mut self) {
        self.open_permissions.clear();
        self.terminals.kill_all();
    }

    fn has_capability(&self, pointer: &str) -> bool {
        self.capabilities.pointer(pointer) == Some(&Value::Bool(true))
    }

    fn can_elicit(&self, params: &Value) -> bool {
        let mode = params["mode"].as_str().unwrap_or_default();
        self.capabilities["elicitation"][mode].is_object()
    }

    fn read_file(&self, id: &Value, params: &Value) -> Value {
        let Some(path) = params["path"].as_str().map(Path::new) else {
            return error_response(id, -32602, "path is missing");
        };
        let text = match self.buffers.get(path) {
            Some(text) => text.clone(),
            None => match fs::read_to_string(path) {
                Ok(text) => text,
                Err(_) => {
                    let uri = format!("file://{}", path.display());
                    return json!({"jsonrpc": "2.0", "id": id, "error":
                        {"code": -32002, "message": "Resource not found", "data": {"uri": uri}}});
                }
            },
        };
        let first = params["line"].as_u64().unwrap_or(1).max(1) - 1;
        let limit = params["limit"].as_u64().unwrap_or(u64::MAX);
        let number = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        let lines = text.split_inclusive('\n').skip(number(first));
        result_response(
            id,
            json!({"content": lines.take(number(limit)).collect::<String>()}),
        )
    }

    fn write_file(&mut self, id: &Value, params: &Value) -> Value {
        let (Some(path), Some(text)) = (params["path"].as_str(), params["content"].as_str()) else {
            return error_response(id, -32602, "path or content is missing");
        };
        let path = Path::new(path);
        // A relative path would refer to the runner's own working directory.
        if !path.is_absolute() {
            return error_response(id, -32602, "path is relative");
        }
        let written = path.parent().map_or(Ok(()), fs::create_dir_all);
        if let Err(fault) = written.and_then(|()| fs::write(path, text)) {
            return error_response(id, -32603, &fault.to_string());
        }
        if let Some(buffer) = self.buffers.get_mut(path) {
            text.clone_into(buffer);
        }
        result_response(id, json!({}))
    }

    fn handle_elicitation(&self, id: &Value, params: &Value) -> Option<Value> {
        let accept =
            |content: Value| result_response(id, json!({"action": "accept", "content": content}));
        Some(match &self.elicitation {
            ElicitationAnswer::Accept(content) => accept(content.clone()),
            ElicitationAnswer::AcceptEach(value) => {
                let fields = params["requestedSchema"]["properties"].as_object();
                let names = fields.into_iter().flat_map(|fields| fields.keys());
                accept(names.map(|name| (name.clone(), value.clone())).collect())
            }
            ElicitationAnswer::Decline => result_response(id, json!({"action": "decline"})),
            ElicitationAnswer::Cancel => result_response(id, json!({"action": "cancel"})),
            ElicitationAnswer::UnknownAction => result_response(id, json!({"action": "_shrug"})),
            ElicitationAnswer::Error => error_response(id, -32603, "The user could not be asked"),
            ElicitationAnswer::ByHand => return None,
        })
    }

    fn handle_permission_request(&mut self, id: &Value, params: &Value) -> Vec<Value> {
        self.open_permissions.push(PermissionRequest {
            id: id.clone(),
            params: params.clone(),
        });
        self.answer_open_permissions()
    }

    /// Sets the permission policy and returns the responses to open requests.
    pub(crate) fn set_permission(&mut self, permission: PermissionAnswer) -> Vec<Value> {
        self.permission = permission;
        self.answer_open_permissions()
    }

    fn answer_open_permissions(&mut self) -> Vec<Value> {
        if matches!(
            self.permission,
            PermissionAnswer::Never | PermissionAnswer::ByHand
        ) {
            return Vec::new();
        }
        let open = std::mem::take(&mut self.open_permissions);
        open.iter()
            .map(|ask| permission_response(self.permission, ask))
            .collect()
    }

    /// Returns responses to the open permission requests of a session that the case cancels.
    pub(crate) fn cancel_permissions(&mut self, session: &Value) -> Vec<Value> {
        if self.permission == PermissionAnswer::ByHand {
            return Vec::new();
        }
        let is_its = |ask: &mut PermissionRequest| ask.params["sessionId"] == *session;
        let open = self.open_permissions.extract_if(.., is_its);
        open.map(|ask| permission_response(PermissionAnswer::Cancelled, &ask))
            .collect()
    }
}

fn permission_response(permission: PermissionAnswer, ask: &PermissionRequest) -> Value {
    let cancelled = || result_response(&ask.id, json!({"outcome": {"outcome": "cancelled"}}));
    let selected = |option: &Value| {
        let outcome = json!({"outcome": "selected", "optionId": option});
        result_response(&ask.id, json!({"outcome": outcome}))
    };
    let kinds = match permission {
        PermissionAnswer::AllowOnce => ["allow_once", "allow_always"],
        PermissionAnswer::AllowAlways => ["allow_always", "allow_once"],
        PermissionAnswer::RejectOnce => ["reject_once", "reject_always"],
        PermissionAnswer::RejectAlways => ["reject_always", "reject_once"],
        PermissionAnswer::UnknownOption => return selected(&json!("no-such-option")),
        PermissionAnswer::UnknownOutcome => {
            return result_response(&ask.id, json!({"outcome": {"outcome": "_shrug"}}));
        }
        PermissionAnswer::Error => {
            return error_response(&ask.id, -32603, "The user could not be asked");
        }
        PermissionAnswer::Cancelled | PermissionAnswer::Never | PermissionAnswer::ByHand => {
            return cancelled();
        }
    };
    let options = ask.params["options"].as_array();
    let of_kind = |kind: &str| options?.iter().find(|option| option["kind"] == kind);
    match kinds.into_iter().find_map(of_kind) {
        Some(option) => selected(&option["optionId"]),
        None => cancelled(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::official_schema::{MessageKind, Side, official_schema};

    /// Returns the responses of a client that offers all capabilities.
    fn responses_to(client: &mut Client, method: &str, params: Value) -> Vec<Value> {
        let offered = json!({"fs": {"readTextFile": true, "writeTextFile": true}, "elicitation": {"form": {}}});
        let params_of_initialize = json!({"protocolVersion": 1, "clientCapabilities": offered});
        client.observe_sent(&json!({"method": "initialize", "params": params_of_initialize}));
        client.handle_message(&json!({"id": 1, "method": method, "params": params}))
    }

    fn assert_valid_response(method: &str, answers: &[Value]) {
        let [answer] = answers else {
            panic!("{answers:?}");
        };
        let name = official_schema(1).definition_name(Side::Client, method, MessageKind::Response);
        let faults = official_schema(1).violations(name.unwrap(), &answer["result"]);
        assert_eq!(faults, [], "{answer}");
    }

    #[test]
    fn client_responses_match_the_schema() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new/a");
        let file = |text: &str| json!({"sessionId": "s", "path": path, "content": text});
        let mut client = Client::default();
        let written = responses_to(&mut client, "fs/write_text_file", file("x"));
        assert_valid_response("fs/write_text_file", &written);
        let read = responses_to(&mut client, "fs/read_text_file", file(""));
        assert_valid_response("fs/read_text_file", &read);
        assert_eq!(read[0]["result"]["content"], "x");
        let options = json!([{"optionId": "y", "name": "Y", "kind": "allow_always"}]);
        let ask = json!({"sessionId": "s", "toolCall": {"toolCallId": "t"}, "options": options});
        for permission in [
            PermissionAnswer::AllowOnce,
            PermissionAnswer::RejectOnce,
            PermissionAnswer::Cancelled,
            PermissionAnswer::UnknownOption,
        ] {
            client.set_permission(permission);
            let answers = responses_to(&mut client, "session/request_permission", ask.clone());
            assert_valid_response("session/request_permission", &answers);
        }
        let form = json!({"sessionId": "s", "mode": "form", "message": "m", "requestedSchema": {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}}});
        for way in [
            ElicitationAnswer::Accept(json!({"a": 1})),
            ElicitationAnswer::Decline,
            ElicitationAnswer::Cancel,
        ] {
            client.elicitation = way;
            let answers = responses_to(&mut client, "elicitation/create", form.clone());
            assert_valid_response("elicitation/create", &answers);
        }
        client.elicitation = ElicitationAnswer::AcceptEach(json!("x"));
        let answers = responses_to(&mut client, "elicitation/create", form);
        assert_valid_response("elicitation/create", &answers);
        assert_eq!(answers[0]["result"]["content"], json!({"a": "x", "b": "x"}));
    }

    #[test]
    fn cancel_answers_permissions_of_its_session_only() {
        let mut client = Client::default();
        client.set_permission(PermissionAnswer::Never);
        for (id, session) in [(1, "a"), (2, "b")] {
            let params = json!({"sessionId": session, "options": []});
            let ask = json!({"id": id, "method": "session/request_permission", "params": params});
            assert_eq!(client.handle_message(&ask), Vec::<Value>::new());
        }
        let cancelled = json!({"outcome": {"outcome": "cancelled"}});
        assert_eq!(
            client.cancel_permissions(&json!("a")),
            [result_response(&json!(1), cancelled)]
        );
        assert_eq!(client.cancel_permissions(&json!("a")), Vec::<Value>::new());
    }
}
