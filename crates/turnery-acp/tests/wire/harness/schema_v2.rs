//! Validates messages of a v2 client against the official JSON Schema.

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

fn schema_errors<T: JsonSchema>(value: &Value) -> Vec<String> {
    let faults = validator::<T>().iter_errors(value);
    let faults = faults.map(|fault| format!("{fault} at {}", fault.instance_path()));
    faults.collect()
}

fn assert_valid<T: JsonSchema>(value: &Value) {
    let faults = schema_errors::<T>(value);
    assert!(faults.is_empty(), "{faults:?}: {value}");
}

/// Returns true if the request is valid in v2. Unknown methods accept any parameters.
pub(super) fn is_valid_request(method: &str, params: &Value) -> bool {
    let faults = match method {
        "initialize" => schema_errors::<InitializeRequest>(params),
        "session/new" => schema_errors::<NewSessionRequest>(params),
        "session/resume" => schema_errors::<ResumeSessionRequest>(params),
        "session/list" if params.is_null() => Vec::new(),
        "session/list" => schema_errors::<ListSessionsRequest>(params),
        "session/close" => schema_errors::<CloseSessionRequest>(params),
        "session/delete" => schema_errors::<DeleteSessionRequest>(params),
        "session/prompt" => schema_errors::<PromptRequest>(params),
        "session/set_config_option" => schema_errors::<SetSessionConfigOptionRequest>(params),
        _ => Vec::new(),
    };
    faults.is_empty()
}

/// Validates a notification of the client.
pub(super) fn check_notification(method: &str, params: &Value) {
    match method {
        "session/cancel" => assert_valid::<CancelSessionNotification>(params),
        "$/cancel_request" => assert_valid::<CancelRequestNotification>(params),
        other => panic!("the client told {other}, which no v2 agent knows"),
    }
}

/// Validates a response of the client.
pub(super) fn check_response(asked: &Value, result: &Value) {
    assert_eq!(asked["method"], "session/request_permission");
    assert_valid::<RequestPermissionResponse>(result);
}
