//! Steps that send requests and check the responses.

use super::{
    StepError,
    case_run::{CaseRun, ReceiveError, SentRequest},
    transcript::PROBE_METHOD,
};
use crate::{
    case::{ExpectedResponse, PermissionAnswer, PromptContent},
    pattern::{fill_text, fill_value, match_pattern},
};
use serde_json::{Value, json};

/// Merges `extra` into `params`; a `null` removes the key.
fn merge_params(params: &mut Value, extra: Option<Value>) {
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

impl CaseRun<'_> {
    /// Sends a request and stores it under a name.
    pub(super) async fn send_request(
        &mut self,
        method: &str,
        params: Value,
        name: &str,
        may_be_invalid: bool,
        joins_next_write: bool,
    ) -> Result<(), StepError> {
        self.next_id += 1;
        let id = Value::from(self.next_id);
        let mut message = json!({"jsonrpc": "2.0", "id": id, "method": method});
        if !params.is_null() {
            message["params"] = params;
        }
        self.set_variable(name, id.clone());
        let request = SentRequest {
            id,
            method: method.to_owned(),
            received_before: self.received.len(),
        };
        self.requests.insert(name.to_owned(), request);
        self.send_message(&message, may_be_invalid, joins_next_write)
            .await
    }

    pub(super) async fn send_notification(
        &mut self,
        method: &str,
        params: &Value,
        may_be_invalid: bool,
    ) -> Result<(), StepError> {
        let mut message = json!({"jsonrpc": "2.0", "method": method});
        if !params.is_null() {
            message["params"] = fill_value(params, &self.captures);
        }
        self.send_message(&message, may_be_invalid, false).await
    }

    /// Waits for the response to a request and returns its line index.
    async fn wait_for_response(&mut self, name: &str) -> Result<usize, StepError> {
        let Some(request) = self.requests.get(name) else {
            return Err(StepError::UnsetVariable(name.to_owned()));
        };
        let (id, from) = (request.id.clone(), request.received_before);
        let is_answer = |value: &Value| value.get("method").is_none() && value["id"] == id;
        let read = self.received[..self.read_count]
            .iter()
            .enumerate()
            .skip(from);
        let mut found = read.filter(|(_, line)| is_answer(&line.value));
        if let Some((index, _)) = found.next() {
            return Ok(index);
        }
        loop {
            match self.next_unread().await {
                Ok(index) if is_answer(&self.received[index].value) => return Ok(index),
                Ok(_) => {}
                Err(silence) => return Err(self.missing_response_error(&silence, &id, from)),
            }
        }
    }

    /// Returns the error of a missing response, with a hint if one came with the id as a string.
    fn missing_response_error(&self, error: &ReceiveError, id: &Value, from: usize) -> StepError {
        let number = id.to_string();
        let is_near = |value: &&Value| {
            let found = value["id"].as_str();
            value.get("method").is_none() && found == Some(&number)
        };
        let mut values = self.received[from..].iter().map(|line| &line.value);
        match (self.error(error), values.find(is_near)) {
            (StepError::NoLine(why), Some(near)) => StepError::NoLine(format!(
                "{why}; an answer with the id {} came, a string, and not the number {id}",
                near["id"]
            )),
            (miss, _) => miss,
        }
    }

    /// Checks the response to a request.
    pub(super) async fn check_response(
        &mut self,
        name: &str,
        expect: &ExpectedResponse,
    ) -> Result<(), StepError> {
        let index = self.wait_for_response(name).await?;
        let line = &self.received[index];
        let (wanted, other, named, pattern) = match expect {
            ExpectedResponse::Any => return Ok(()),
            ExpectedResponse::Result(pattern) => ("result", "error", "an error", pattern),
            ExpectedResponse::Error(pattern) => ("error", "result", "a result", pattern),
        };
        let result = match line.value.get(wanted) {
            // The rule about the shape reports the null; other rules take null for an empty result.
            Some(found) if line.is_malformed && found.is_null() => {
                match_pattern(pattern, &json!({}), &mut self.captures)
            }
            Some(found) => match_pattern(pattern, found, &mut self.captures),
            None if line.value.get(other).is_some() => {
                Err(format!("it is no {wanted}, but {named}"))
            }
            None => Err(format!("it has no {wanted}")),
        };
        result.map_err(|why| {
            if self.received[index].is_malformed {
                StepError::Malformed
            } else {
                self.mismatch_at(why, index)
            }
        })
    }

    /// Returns a mismatch at a received line.
    pub(super) fn mismatch_at(&self, why: String, index: usize) -> StepError {
        let line = &self.received[index];
        StepError::Mismatch {
            why,
            received: Some(line.text.clone()),
            entry: Some(line.entry),
        }
    }

    /// Waits for the result of a request; an error response is a mismatch.
    async fn wait_for_result(&mut self, name: &str) -> Result<Value, StepError> {
        let index = self.wait_for_response(name).await?;
        let value = &self.received[index].value;
        match value.get("result") {
            Some(result) if value.get("error").is_none() => Ok(result.clone()),
            _ => Err(self.mismatch_at("it is no result".to_owned(), index)),
        }
    }

    pub(super) async fn initialize(&mut self, extra: Option<&Value>) -> Result<(), StepError> {
        let info = json!({"name": "acp-conformance", "version": env!("CARGO_PKG_VERSION")});
        let capabilities = fill_value(&self.capabilities, &self.captures);
        let mut params = json!({"protocolVersion": self.version});
        let (info_key, capabilities_key) = match self.version {
            2 => ("info", "capabilities"),
            _ => ("clientInfo", "clientCapabilities"),
        };
        params[info_key] = info;
        params[capabilities_key] = capabilities;
        merge_params(
            &mut params,
            extra.map(|extra| fill_value(extra, &self.captures)),
        );
        self.send_request("initialize", params, "initialize", false, false)
            .await?;
        let result = self.wait_for_result("initialize").await?;
        self.set_variable("initialize", result);
        Ok(())
    }

    /// Logs in, if the profile requires a login before a session is created.
    pub(super) async fn log_in(&mut self) -> Result<(), StepError> {
        let method = self
            .agent
            .profile
            .as_ref()
            .and_then(|profile| profile.authenticate.clone());
        let Some(method) = method.filter(|_| !self.is_logged_in) else {
            return Ok(());
        };
        self.is_logged_in = true;
        // Version 2 may need no login where version 1 offers one.
        let offered = self
            .captures
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
        self.send_request(request, params, "_login", false, false)
            .await?;
        self.wait_for_result("_login").await.map(drop)
    }

    pub(super) async fn create_session(
        &mut self,
        name: &str,
        extra: Option<&Value>,
    ) -> Result<(), StepError> {
        self.log_in().await?;
        let mut params = json!({"cwd": self.captures["CWD"], "mcpServers": []});
        merge_params(
            &mut params,
            extra.map(|extra| fill_value(extra, &self.captures)),
        );
        let request_name = format!("{name}_new");
        self.send_request("session/new", params, &request_name, false, false)
            .await?;
        let result = self.wait_for_result(&request_name).await?;
        match result.get("sessionId") {
            Some(Value::String(id)) => self.set_variable(name, id.clone().into()),
            _ => {
                let index = self.wait_for_response(&request_name).await?;
                return Err(self.mismatch_at("it has no sessionId".to_owned(), index));
            }
        }
        self.set_variable(&format!("{name}_result"), result);
        Ok(())
    }

    /// Sends `session/load` or `session/resume`.
    pub(super) async fn open_session(
        &mut self,
        how: &str,
        name: &str,
        extra: Option<&Value>,
    ) -> Result<(), StepError> {
        let id = self.variable(name)?;
        self.log_in().await?;
        let mut params = json!({"sessionId": id, "cwd": self.captures["CWD"], "mcpServers": []});
        merge_params(
            &mut params,
            extra.map(|extra| fill_value(extra, &self.captures)),
        );
        self.send_request(&format!("session/{how}"), params, how, false, false)
            .await?;
        let result = self.wait_for_result(how).await?;
        self.set_variable(how, result);
        Ok(())
    }

    pub(super) async fn send_prompt(
        &mut self,
        content: &PromptContent,
        session: &str,
        name: &str,
        may_be_invalid: bool,
        joins_next_write: bool,
    ) -> Result<(), StepError> {
        let id = self.variable(session)?;
        let blocks = match content {
            PromptContent::Text(text) => {
                json!([{"type": "text", "text": fill_text(text, &self.captures)}])
            }
            PromptContent::Blocks(blocks) => fill_value(blocks, &self.captures),
        };
        let params = json!({"sessionId": id, "prompt": blocks});
        self.send_request(
            "session/prompt",
            params,
            name,
            may_be_invalid,
            joins_next_write,
        )
        .await
    }

    pub(super) async fn send_cancel(&mut self, session: &str) -> Result<(), StepError> {
        let id = self.variable(session)?;
        let message =
            json!({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": id}});
        self.send_message(&message, false, false).await?;
        for reply in self.client.cancel_permissions(&id) {
            self.send_reply(&reply).await;
        }
        Ok(())
    }

    pub(super) async fn set_permission(
        &mut self,
        permission: PermissionAnswer,
    ) -> Result<(), StepError> {
        for reply in self.client.set_permission(permission) {
            self.send_reply(&reply).await;
        }
        Ok(())
    }

    pub(super) async fn send_probe(&mut self) -> Result<(), StepError> {
        let params = json!({});
        self.send_request(PROBE_METHOD, params, "_probe", false, false)
            .await?;
        self.wait_for_response("_probe").await.map(drop)
    }

    pub(super) async fn probe_twice(&mut self) -> Result<(), StepError> {
        self.send_probe().await?;
        let deadline = self.clock().now() + self.options.quiet_pause;
        while self.receive(deadline).await.is_ok() {}
        self.send_probe().await
    }

    /// Returns a variable, which must have been captured.
    pub(super) fn variable(&self, name: &str) -> Result<Value, StepError> {
        let value = self.captures.get(name).cloned();
        value.ok_or_else(|| StepError::UnsetVariable(name.to_owned()))
    }
}
