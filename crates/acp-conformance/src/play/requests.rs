//! Requests: the macros that send one, and their answers.

use super::{
    Miss,
    log::PROBE,
    stage::{Asked, Silence, Stage},
};
use crate::{
    case::{Content, Expect, Permission},
    pattern::{fill_text, fill_value, fits},
};
use serde_json::{Value, json};

/// Lay `extra` over `params`; a `null` takes a key out.
fn merge(params: &mut Value, extra: Option<Value>) {
    let (Some(params), Some(Value::Object(extra))) = (params.as_object_mut(), extra) else {
        return;
    };
    for (key, value) in extra {
        if value.is_null() {
            params.remove(&key);
        } else {
            params.insert(key, value);
        }
    }
}

impl Stage<'_> {
    /// Send a request and remember it by this name.
    pub(super) async fn call(
        &mut self,
        method: &str,
        params: Value,
        name: &str,
        broken: bool,
        more: bool,
    ) -> Result<(), Miss> {
        self.next_id += 1;
        let id = Value::from(self.next_id);
        let mut message = json!({"jsonrpc": "2.0", "id": id, "method": method});
        if !params.is_null() {
            message["params"] = params;
        }
        self.set(name, id.clone());
        let asked = Asked {
            id,
            method: method.to_owned(),
            from: self.heard.len(),
        };
        self.asked.insert(name.to_owned(), asked);
        self.send_message(&message, broken, more).await
    }

    pub(super) async fn tell(
        &mut self,
        method: &str,
        params: &Value,
        broken: bool,
    ) -> Result<(), Miss> {
        let mut message = json!({"jsonrpc": "2.0", "method": method});
        if !params.is_null() {
            message["params"] = fill_value(params, &self.vars);
        }
        self.send_message(&message, broken, false).await
    }

    /// Wait for the answer to this request: its place among the lines.
    async fn answer_to(&mut self, name: &str) -> Result<usize, Miss> {
        let Some(asked) = self.asked.get(name) else {
            return Err(Miss::Unset(name.to_owned()));
        };
        let (id, from) = (asked.id.clone(), asked.from);
        let is_answer = |value: &Value| value.get("method").is_none() && value["id"] == id;
        let read = self.heard[..self.read].iter().enumerate().skip(from);
        let mut found = read.filter(|(_, heard)| is_answer(&heard.value));
        if let Some((index, _)) = found.next() {
            return Ok(index);
        }
        loop {
            match self.next().await {
                Ok(index) if is_answer(&self.heard[index].value) => return Ok(index),
                Ok(_) => {}
                Err(silence) => return Err(self.silence_for(&silence, &id, from)),
            }
        }
    }

    /// What is missing is the answer to this request; one that is nearly that may have come.
    fn silence_for(&self, silence: &Silence, id: &Value, from: usize) -> Miss {
        let number = id.to_string();
        let is_near = |value: &&Value| {
            let found = value["id"].as_str();
            value.get("method").is_none() && found == Some(&number)
        };
        let mut heard = self.heard[from..].iter().map(|heard| &heard.value);
        match (self.silence(silence), heard.find(is_near)) {
            (Miss::Nothing(why), Some(near)) => Miss::Nothing(format!(
                "{why}; an answer with the id {} came, a string, and not the number {id}",
                near["id"]
            )),
            (miss, _) => miss,
        }
    }

    /// The answer to a request is what is expected.
    pub(super) async fn answered(&mut self, name: &str, expect: &Expect) -> Result<(), Miss> {
        let index = self.answer_to(name).await?;
        let heard = &self.heard[index];
        let (wanted, other, named, pattern) = match expect {
            Expect::Any => return Ok(()),
            Expect::Result(pattern) => ("result", "error", "an error", pattern),
            Expect::Error(pattern) => ("error", "result", "a result", pattern),
        };
        let result = match heard.value.get(wanted) {
            // The rule of its shape says that it is null; for the rest it is an empty result.
            Some(found) if heard.is_bent && found.is_null() => {
                fits(pattern, &json!({}), &mut self.vars)
            }
            Some(found) => fits(pattern, found, &mut self.vars),
            None if heard.value.get(other).is_some() => {
                Err(format!("it is no {wanted}, but {named}"))
            }
            None => Err(format!("it has no {wanted}")),
        };
        result.map_err(|why| {
            if self.heard[index].is_bent {
                Miss::Bent
            } else {
                self.wrong(why, index)
            }
        })
    }

    /// A miss about this line.
    pub(super) fn wrong(&self, why: String, index: usize) -> Miss {
        let heard = &self.heard[index];
        Miss::Wrong {
            why,
            came: Some(heard.text.clone()),
            entry: Some(heard.entry),
        }
    }

    /// The result of the request that was just sent; an error is wrong.
    async fn result_of(&mut self, name: &str) -> Result<Value, Miss> {
        let index = self.answer_to(name).await?;
        let value = &self.heard[index].value;
        match value.get("result") {
            Some(result) if value.get("error").is_none() => Ok(result.clone()),
            _ => Err(self.wrong("it is no result".to_owned(), index)),
        }
    }

    pub(super) async fn initialize(&mut self, extra: Option<&Value>) -> Result<(), Miss> {
        let info = json!({"name": "acp-conformance", "version": env!("CARGO_PKG_VERSION")});
        let capabilities = fill_value(&self.capabilities, &self.vars);
        let mut params = json!({"protocolVersion": self.version});
        let (info_key, capabilities_key) = match self.version {
            2 => ("info", "capabilities"),
            _ => ("clientInfo", "clientCapabilities"),
        };
        params[info_key] = info;
        params[capabilities_key] = capabilities;
        merge(
            &mut params,
            extra.map(|extra| fill_value(extra, &self.vars)),
        );
        self.call("initialize", params, "initialize", false, false)
            .await?;
        let result = self.result_of("initialize").await?;
        self.set("initialize", result);
        Ok(())
    }

    /// Log in, if the profile says that this agent wants it before it makes a session.
    pub(super) async fn log_in(&mut self) -> Result<(), Miss> {
        let method = self
            .agent
            .profile
            .as_ref()
            .and_then(|profile| profile.authenticate.clone());
        let Some(method) = method.filter(|_| !self.is_logged_in) else {
            return Ok(());
        };
        self.is_logged_in = true;
        // The second version may need no login where the first offers one.
        let offered = self
            .vars
            .get("initialize")
            .map(|result| &result["authMethods"]);
        let mut offered = offered.and_then(Value::as_array).into_iter().flatten();
        if self.version == 2 && !offered.any(|offer| offer["methodId"] == method.as_str()) {
            return Ok(());
        }
        let request = match self.version {
            2 => "auth/login",
            _ => "authenticate",
        };
        let params = json!({"methodId": method});
        self.call(request, params, "_login", false, false).await?;
        self.result_of("_login").await.map(drop)
    }

    pub(super) async fn session(&mut self, name: &str, extra: Option<&Value>) -> Result<(), Miss> {
        self.log_in().await?;
        let mut params = json!({"cwd": self.vars["CWD"], "mcpServers": []});
        merge(
            &mut params,
            extra.map(|extra| fill_value(extra, &self.vars)),
        );
        let asked = format!("{name}_new");
        self.call("session/new", params, &asked, false, false)
            .await?;
        let result = self.result_of(&asked).await?;
        match result.get("sessionId") {
            Some(Value::String(id)) => self.set(name, id.clone().into()),
            _ => {
                let index = self.answer_to(&asked).await?;
                return Err(self.wrong("it has no sessionId".to_owned(), index));
            }
        }
        self.set(&format!("{name}_result"), result);
        Ok(())
    }

    /// `session/load` or `session/resume`.
    pub(super) async fn open(
        &mut self,
        how: &str,
        name: &str,
        extra: Option<&Value>,
    ) -> Result<(), Miss> {
        let id = self.var(name)?;
        self.log_in().await?;
        let mut params = json!({"sessionId": id, "cwd": self.vars["CWD"], "mcpServers": []});
        merge(
            &mut params,
            extra.map(|extra| fill_value(extra, &self.vars)),
        );
        self.call(&format!("session/{how}"), params, how, false, false)
            .await?;
        let result = self.result_of(how).await?;
        self.set(how, result);
        Ok(())
    }

    pub(super) async fn prompt(
        &mut self,
        content: &Content,
        session: &str,
        name: &str,
        broken: bool,
        more: bool,
    ) -> Result<(), Miss> {
        let id = self.var(session)?;
        let blocks = match content {
            Content::Text(text) => {
                json!([{"type": "text", "text": fill_text(text, &self.vars)}])
            }
            Content::Blocks(blocks) => fill_value(blocks, &self.vars),
        };
        let params = json!({"sessionId": id, "prompt": blocks});
        self.call("session/prompt", params, name, broken, more)
            .await
    }

    pub(super) async fn cancel(&mut self, session: &str) -> Result<(), Miss> {
        let id = self.var(session)?;
        let message =
            json!({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": id}});
        self.send_message(&message, false, false).await?;
        for reply in self.client.cancelled(&id) {
            self.reply(&reply).await;
        }
        Ok(())
    }

    pub(super) async fn permission(&mut self, permission: Permission) -> Result<(), Miss> {
        for reply in self.client.permit(permission) {
            self.reply(&reply).await;
        }
        Ok(())
    }

    pub(super) async fn probe(&mut self) -> Result<(), Miss> {
        let params = json!({});
        self.call(PROBE, params, "_probe", false, false).await?;
        self.answer_to("_probe").await.map(drop)
    }

    pub(super) async fn quiet(&mut self) -> Result<(), Miss> {
        self.probe().await?;
        let deadline = self.pace().now() + self.options.grace;
        while self.hear(deadline).await.is_ok() {}
        self.probe().await
    }

    /// A variable that must be there.
    pub(super) fn var(&self, name: &str) -> Result<Value, Miss> {
        let value = self.vars.get(name).cloned();
        value.ok_or_else(|| Miss::Unset(name.to_owned()))
    }
}
