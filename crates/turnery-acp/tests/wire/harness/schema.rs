//! Schema: reads messages back with the official types.

use agent_client_protocol_schema::v1::{
    AuthenticateResponse, CancelRequestNotification, CloseSessionResponse,
    CreateElicitationRequest, CreateTerminalRequest, DeleteSessionResponse, Error,
    ForkSessionResponse, InitializeResponse, KillTerminalRequest, ListSessionsResponse,
    LoadSessionResponse, LogoutResponse, NewSessionResponse, PromptResponse, ReadTextFileRequest,
    ReleaseTerminalRequest, RequestPermissionRequest, ResumeSessionResponse, SessionNotification,
    SessionStatusResponse, SetSessionConfigOptionResponse, SetSessionModeResponse,
    SetSessionTitleResponse, TerminalOutputRequest, WaitForTerminalExitRequest,
    WriteTextFileRequest,
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

/// How each line is checked: a call, a result, an error.
pub(super) const CHECKS: Checks = (check_call, check_result, check_error);

/// The three.
pub(super) type Checks = (fn(&str, &Value), fn(&str, &Value), fn(&Value));

/// What is read as `T` must write the same: nothing unknown, nothing misspelt, nothing lost.
pub(super) fn same<T: Serialize + DeserializeOwned>(value: &Value) {
    let typed: T = serde_json::from_value(value.clone()).unwrap_or_else(|e| panic!("{e}: {value}"));
    let again = serde_json::to_value(typed).expect("writes");
    assert_eq!(&again, value);
}

/// A request or notification of the agent.
fn check_call(method: &str, params: &Value) {
    match method {
        "session/update" => same::<SessionNotification>(params),
        "session/request_permission" => same::<RequestPermissionRequest>(params),
        "fs/read_text_file" => same::<ReadTextFileRequest>(params),
        "fs/write_text_file" => same::<WriteTextFileRequest>(params),
        "terminal/create" => same::<CreateTerminalRequest>(params),
        "terminal/output" => same::<TerminalOutputRequest>(params),
        "terminal/wait_for_exit" => same::<WaitForTerminalExitRequest>(params),
        "terminal/kill" => same::<KillTerminalRequest>(params),
        "terminal/release" => same::<ReleaseTerminalRequest>(params),
        "elicitation/create" => same::<CreateElicitationRequest>(params),
        "$/cancel_request" => same::<CancelRequestNotification>(params),
        other => panic!("the agent called {other}, which no client knows"),
    }
}

/// The answer to a request of the client.
fn check_result(method: &str, result: &Value) {
    match method {
        "initialize" => same::<InitializeResponse>(result),
        "authenticate" => same::<AuthenticateResponse>(result),
        "logout" => same::<LogoutResponse>(result),
        "session/new" => same::<NewSessionResponse>(result),
        "session/fork" => same::<ForkSessionResponse>(result),
        "session/set_title" => same::<SetSessionTitleResponse>(result),
        "session/status" => same::<SessionStatusResponse>(result),
        "session/load" => same::<LoadSessionResponse>(result),
        "session/resume" => same::<ResumeSessionResponse>(result),
        "session/list" => same::<ListSessionsResponse>(result),
        "session/close" => same::<CloseSessionResponse>(result),
        "session/delete" => same::<DeleteSessionResponse>(result),
        "session/prompt" => same::<PromptResponse>(result),
        "session/set_mode" => same::<SetSessionModeResponse>(result),
        "session/set_config_option" => same::<SetSessionConfigOptionResponse>(result),
        "_turnery/session/steer" | "_turnery/session/follow_up" => {
            assert_eq!(result, &serde_json::json!({"taken": true}));
        }
        other => panic!("{other} was answered with a result: {result}"),
    }
}

/// An error answer: a sentence, and in `data.details` what to do (RPC-13).
fn check_error(error: &Value) {
    same::<Error>(error);
    assert!(!error["message"].as_str().expect("a message").is_empty());
    let details = error["data"]["details"].as_str().expect("details");
    assert!(!details.is_empty(), "{error}");
}
