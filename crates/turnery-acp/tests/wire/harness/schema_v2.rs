//! Schema of v2: what a client of the second version sends is valid by the official JSON Schema.

use agent_client_protocol_schema::v2::{
    CancelRequestNotification, CancelSessionNotification, CloseSessionRequest,
    DeleteSessionRequest, InitializeRequest, ListSessionsRequest, NewSessionRequest, PromptRequest,
    RequestPermissionResponse, ResumeSessionRequest, SetSessionConfigOptionRequest,
};
use jsonschema::Validator;
use schemars::JsonSchema;
use serde_json::Value;
use std::{
    collections::HashMap,
    sync::{LazyLock, Mutex},
};

static VALIDATORS: LazyLock<Mutex<HashMap<String, &'static Validator>>> =
    LazyLock::new(Mutex::default);

fn validator<T: JsonSchema>() -> &'static Validator {
    let name = T::schema_name().into_owned();
    let mut known = VALIDATORS.lock().expect("no panic");
    known.entry(name).or_insert_with(|| {
        let schema = schemars::schema_for!(T).to_value();
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
