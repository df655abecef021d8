//! Schema of v2: every line of a v2 connection is valid by the official JSON Schema, and says nothing that
//! its types do not know.
//!
//! The schema is made from the types of the official crate, which the published one is made from too. To
//! check against the published file, name it in `ACP_SCHEMA_V2`: it is `schema/v2/schema.json` of the npm
//! package `@agentclientprotocol/sdk`.

use super::schema::{Checks, same};
use agent_client_protocol_schema::v2::{
    CancelRequestNotification, CancelSessionNotification, CloseSessionRequest,
    CloseSessionResponse, DeleteSessionRequest, DeleteSessionResponse, Error, InitializeRequest,
    InitializeResponse, ListSessionsRequest, ListSessionsResponse, NewSessionRequest,
    NewSessionResponse, PromptRequest, PromptResponse, RequestPermissionRequest,
    RequestPermissionResponse, ResumeSessionRequest, ResumeSessionResponse,
    SetSessionConfigOptionRequest, SetSessionConfigOptionResponse, UpdateSessionNotification,
};
use jsonschema::Validator;
use schemars::JsonSchema;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use std::{
    collections::HashMap,
    sync::{LazyLock, Mutex},
};

/// How each line is checked: a call, a result, an error.
pub(super) const CHECKS: Checks = (check_call, check_result, check_error);

/// The published schema, if it is at hand.
static PUBLISHED: LazyLock<Option<Value>> = LazyLock::new(|| {
    let path = std::env::var_os("ACP_SCHEMA_V2")?;
    let text = std::fs::read_to_string(path).expect("ACP_SCHEMA_V2 names a file");
    Some(serde_json::from_str(&text).expect("the schema is JSON"))
});

static VALIDATORS: LazyLock<Mutex<HashMap<String, &'static Validator>>> =
    LazyLock::new(Mutex::default);

fn validator<T: JsonSchema>() -> &'static Validator {
    let name = T::schema_name().into_owned();
    let mut known = VALIDATORS.lock().expect("no panic");
    known.entry(name).or_insert_with_key(|name| {
        let schema = match &*PUBLISHED {
            Some(all) => json!({"$ref": format!("#/$defs/{name}"), "$defs": all["$defs"]}),
            None => schemars::schema_for!(T).to_value(),
        };
        Box::leak(Box::new(
            jsonschema::validator_for(&schema).expect("a schema"),
        ))
    })
}

fn faults<T: JsonSchema>(value: &Value) -> Vec<String> {
    let faults = validator::<T>().iter_errors(value);
    let faults = faults.map(|fault| format!("{fault} at {}", fault.instance_path()));
    faults.collect()
}

fn fits<T: JsonSchema>(value: &Value) {
    let faults = faults::<T>(value);
    assert!(faults.is_empty(), "{faults:?}: {value}");
}

fn valid<T: JsonSchema + Serialize + DeserializeOwned>(value: &Value) {
    fits::<T>(value);
    same::<T>(value);
}

/// Whether a client of the second version may ask this. Of methods that do not exist anything goes.
pub(super) fn may_ask(method: &str, params: &Value) -> bool {
    let faults = match method {
        "initialize" => faults::<InitializeRequest>(params),
        "session/new" => faults::<NewSessionRequest>(params),
        "session/resume" => faults::<ResumeSessionRequest>(params),
        "session/list" if params.is_null() => Vec::new(),
        "session/list" => faults::<ListSessionsRequest>(params),
        "session/close" => faults::<CloseSessionRequest>(params),
        "session/delete" => faults::<DeleteSessionRequest>(params),
        "session/prompt" => faults::<PromptRequest>(params),
        "session/set_config_option" => faults::<SetSessionConfigOptionRequest>(params),
        _ => Vec::new(),
    };
    faults.is_empty()
}

/// What the client tells.
pub(super) fn check_told(method: &str, params: &Value) {
    match method {
        "session/cancel" => fits::<CancelSessionNotification>(params),
        "$/cancel_request" => fits::<CancelRequestNotification>(params),
        other => panic!("the client told {other}, which no v2 agent knows"),
    }
}

/// What the client answers.
pub(super) fn check_reply(asked: &Value, result: &Value) {
    assert_eq!(asked["method"], "session/request_permission");
    fits::<RequestPermissionResponse>(result);
}

fn check_call(method: &str, params: &Value) {
    match method {
        "session/update" => valid::<UpdateSessionNotification>(params),
        "session/request_permission" => valid::<RequestPermissionRequest>(params),
        "$/cancel_request" => valid::<CancelRequestNotification>(params),
        other => panic!("the agent called {other}, which no v2 client knows"),
    }
}

fn check_result(method: &str, result: &Value) {
    match method {
        "initialize" => valid::<InitializeResponse>(result),
        "session/new" => valid::<NewSessionResponse>(result),
        "session/resume" => valid::<ResumeSessionResponse>(result),
        "session/list" => valid::<ListSessionsResponse>(result),
        "session/close" => valid::<CloseSessionResponse>(result),
        "session/delete" => valid::<DeleteSessionResponse>(result),
        "session/prompt" => valid::<PromptResponse>(result),
        "session/set_config_option" => valid::<SetSessionConfigOptionResponse>(result),
        other => panic!("{other} was answered with a result: {result}"),
    }
}

fn check_error(error: &Value) {
    valid::<Error>(error);
    let details = error["data"]["details"].as_str().expect("details");
    assert!(!details.is_empty(), "{error}");
}
