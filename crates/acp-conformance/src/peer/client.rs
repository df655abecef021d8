//! Client: answers what the agent asks, as far as the case does not do it itself.

use super::terminals::Terminals;
use crate::case::{Elicitation, How, Permission};
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

/// What the client is and has open.
pub(crate) struct Client {
    /// As `initialize` told them.
    capabilities: Value,
    permission: Permission,
    /// Requests for permission without an answer.
    open: Vec<Ask>,
    pub(crate) elicitation: Elicitation,
    ways: BTreeMap<String, How>,
    /// Files that are open in the editor, with text that is not saved.
    pub(crate) buffers: BTreeMap<PathBuf, String>,
    pub(crate) terminals: Terminals,
}

struct Ask {
    id: Value,
    params: Value,
}

impl Default for Client {
    fn default() -> Self {
        Self {
            capabilities: Value::Null,
            permission: Permission::AllowOnce,
            open: Vec::new(),
            elicitation: Elicitation::Cancel,
            ways: BTreeMap::new(),
            buffers: BTreeMap::new(),
            terminals: Terminals::default(),
        }
    }
}

fn result(id: &Value, result: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": result})
}

fn error(id: &Value, code: i64, message: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}})
}

impl Client {
    /// The case has sent this.
    pub(crate) fn said(&mut self, message: &Value) {
        if message["method"] == "initialize" {
            let params = &message["params"];
            self.capabilities = params["clientCapabilities"].clone();
            if params["protocolVersion"] == 2 {
                self.capabilities = params["capabilities"].clone();
            }
        }
        // A case that answers by hand: then nothing is open any more.
        if message.get("method").is_none() {
            self.open.retain(|ask| ask.id != message["id"]);
        }
    }

    /// From here on requests of this method are answered so.
    pub(crate) fn answer_so(&mut self, method: &str, how: How) {
        self.ways.insert(method.to_owned(), how);
    }

    /// The agent has said this: what is answered at once.
    pub(crate) fn asked(&mut self, message: &Value) -> Vec<Value> {
        let (Some(method), Some(id)) = (message["method"].as_str(), message.get("id")) else {
            return Vec::new();
        };
        let params = &message["params"];
        match self.ways.get(method) {
            None | Some(How::ByItself) => {}
            Some(How::ByHand) => return Vec::new(),
            Some(How::Error(code)) => return vec![error(id, *code, "The case wants this error")],
            Some(How::With(value)) => return vec![result(id, value.clone())],
        }
        let reply = match method {
            "session/request_permission" => return self.ask(id, params),
            "fs/read_text_file" if self.offers("/fs/readTextFile") => self.read(id, params),
            "fs/write_text_file" if self.offers("/fs/writeTextFile") => self.write(id, params),
            _ if method.starts_with("terminal/") && self.offers("/terminal") => {
                match self.terminals.answer(method, id, params) {
                    Ok(Some(answer)) => result(id, answer),
                    Ok(None) => return Vec::new(),
                    Err((code, message)) => error(id, code, &message),
                }
            }
            "elicitation/create" if self.elicits(params) => match self.elicit(id, params) {
                Some(reply) => reply,
                None => return Vec::new(),
            },
            _ => error(id, -32601, "Method not found"),
        };
        vec![reply]
    }

    /// An answer that takes its time.
    pub(crate) async fn later(&mut self) -> Value {
        self.terminals.later().await
    }

    /// Nothing that the client has started lives on.
    pub(crate) fn clear(&mut self) {
        self.open.clear();
        self.terminals.clear();
    }

    fn offers(&self, pointer: &str) -> bool {
        self.capabilities.pointer(pointer) == Some(&Value::Bool(true))
    }

    fn elicits(&self, params: &Value) -> bool {
        let mode = params["mode"].as_str().unwrap_or_default();
        self.capabilities["elicitation"][mode].is_object()
    }

    fn read(&self, id: &Value, params: &Value) -> Value {
        let Some(path) = params["path"].as_str().map(Path::new) else {
            return error(id, -32602, "path is missing");
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
        result(
            id,
            json!({"content": lines.take(number(limit)).collect::<String>()}),
        )
    }

    fn write(&mut self, id: &Value, params: &Value) -> Value {
        let (Some(path), Some(text)) = (params["path"].as_str(), params["content"].as_str()) else {
            return error(id, -32602, "path or content is missing");
        };
        let path = Path::new(path);
        // Else it would land where the runner happens to be.
        if !path.is_absolute() {
            return error(id, -32602, "path is relative");
        }
        let written = path.parent().map_or(Ok(()), fs::create_dir_all);
        if let Err(fault) = written.and_then(|()| fs::write(path, text)) {
            return error(id, -32603, &fault.to_string());
        }
        if let Some(buffer) = self.buffers.get_mut(path) {
            text.clone_into(buffer);
        }
        result(id, json!({}))
    }

    fn elicit(&self, id: &Value, params: &Value) -> Option<Value> {
        let accept = |content: Value| result(id, json!({"action": "accept", "content": content}));
        Some(match &self.elicitation {
            Elicitation::Accept(content) => accept(content.clone()),
            Elicitation::AcceptEach(value) => {
                let fields = params["requestedSchema"]["properties"].as_object();
                let names = fields.into_iter().flat_map(|fields| fields.keys());
                accept(names.map(|name| (name.clone(), value.clone())).collect())
            }
            Elicitation::Decline => result(id, json!({"action": "decline"})),
            Elicitation::Cancel => result(id, json!({"action": "cancel"})),
            Elicitation::Strange => result(id, json!({"action": "_shrug"})),
            Elicitation::Error => error(id, -32603, "The user could not be asked"),
            Elicitation::ByHand => return None,
        })
    }

    fn ask(&mut self, id: &Value, params: &Value) -> Vec<Value> {
        self.open.push(Ask {
            id: id.clone(),
            params: params.clone(),
        });
        self.answer_open()
    }

    /// From here on permission is given so: what is answered at once.
    pub(crate) fn permit(&mut self, permission: Permission) -> Vec<Value> {
        self.permission = permission;
        self.answer_open()
    }

    fn answer_open(&mut self) -> Vec<Value> {
        if matches!(self.permission, Permission::Never | Permission::ByHand) {
            return Vec::new();
        }
        let open = std::mem::take(&mut self.open);
        open.iter()
            .map(|ask| permit(self.permission, ask))
            .collect()
    }

    /// The case cancels what goes on in this session: so the client must answer what is open.
    pub(crate) fn cancelled(&mut self, session: &Value) -> Vec<Value> {
        if self.permission == Permission::ByHand {
            return Vec::new();
        }
        let is_its = |ask: &mut Ask| ask.params["sessionId"] == *session;
        let open = self.open.extract_if(.., is_its);
        open.map(|ask| permit(Permission::Cancelled, &ask))
            .collect()
    }
}

fn permit(permission: Permission, ask: &Ask) -> Value {
    let cancelled = || result(&ask.id, json!({"outcome": {"outcome": "cancelled"}}));
    let selected = |option: &Value| {
        let outcome = json!({"outcome": "selected", "optionId": option});
        result(&ask.id, json!({"outcome": outcome}))
    };
    let kinds = match permission {
        Permission::AllowOnce => ["allow_once", "allow_always"],
        Permission::AllowAlways => ["allow_always", "allow_once"],
        Permission::RejectOnce => ["reject_once", "reject_always"],
        Permission::RejectAlways => ["reject_always", "reject_once"],
        Permission::Unknown => return selected(&json!("no-such-option")),
        Permission::Strange => {
            return result(&ask.id, json!({"outcome": {"outcome": "_shrug"}}));
        }
        Permission::Error => return error(&ask.id, -32603, "The user could not be asked"),
        Permission::Cancelled | Permission::Never | Permission::ByHand => return cancelled(),
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
    use crate::official::{Part, Side, official};

    /// What the client answers to a request, having offered all there is.
    fn answers(client: &mut Client, method: &str, params: Value) -> Vec<Value> {
        let offered = json!({"fs": {"readTextFile": true, "writeTextFile": true}, "elicitation": {"form": {}}});
        let params_of_initialize = json!({"protocolVersion": 1, "clientCapabilities": offered});
        client.said(&json!({"method": "initialize", "params": params_of_initialize}));
        client.asked(&json!({"id": 1, "method": method, "params": params}))
    }

    fn right(method: &str, answers: &[Value]) {
        let [answer] = answers else {
            panic!("{answers:?}");
        };
        let name = official(1).name(Side::Client, method, Part::Response);
        let faults = official(1).faults(name.unwrap(), &answer["result"]);
        assert_eq!(faults, [], "{answer}");
    }

    #[test]
    fn its_answers_are_what_the_schema_says() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new/a");
        let file = |text: &str| json!({"sessionId": "s", "path": path, "content": text});
        let mut client = Client::default();
        let written = answers(&mut client, "fs/write_text_file", file("x"));
        right("fs/write_text_file", &written);
        let read = answers(&mut client, "fs/read_text_file", file(""));
        right("fs/read_text_file", &read);
        assert_eq!(read[0]["result"]["content"], "x");
        let options = json!([{"optionId": "y", "name": "Y", "kind": "allow_always"}]);
        let ask = json!({"sessionId": "s", "toolCall": {"toolCallId": "t"}, "options": options});
        for permission in [
            Permission::AllowOnce,
            Permission::RejectOnce,
            Permission::Cancelled,
            Permission::Unknown,
        ] {
            client.permit(permission);
            let answers = answers(&mut client, "session/request_permission", ask.clone());
            right("session/request_permission", &answers);
        }
        let form = json!({"sessionId": "s", "mode": "form", "message": "m", "requestedSchema": {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}}});
        for way in [
            Elicitation::Accept(json!({"a": 1})),
            Elicitation::Decline,
            Elicitation::Cancel,
        ] {
            client.elicitation = way;
            let answers = answers(&mut client, "elicitation/create", form.clone());
            right("elicitation/create", &answers);
        }
        client.elicitation = Elicitation::AcceptEach(json!("x"));
        let answers = answers(&mut client, "elicitation/create", form);
        right("elicitation/create", &answers);
        assert_eq!(answers[0]["result"]["content"], json!({"a": "x", "b": "x"}));
    }

    #[test]
    fn what_is_cancelled_is_answered_so_in_its_session_alone() {
        let mut client = Client::default();
        client.permit(Permission::Never);
        for (id, session) in [(1, "a"), (2, "b")] {
            let params = json!({"sessionId": session, "options": []});
            let ask = json!({"id": id, "method": "session/request_permission", "params": params});
            assert_eq!(client.asked(&ask), Vec::<Value>::new());
        }
        let cancelled = json!({"outcome": {"outcome": "cancelled"}});
        assert_eq!(
            client.cancelled(&json!("a")),
            [result(&json!(1), cancelled)]
        );
        assert_eq!(client.cancelled(&json!("a")), Vec::<Value>::new());
    }
}
