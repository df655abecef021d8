//! Methods of the draft of the second protocol version.

use super::schema::{MethodTable, TypeCheck, check_v2};
use agent_client_protocol_schema::v2::{
    CancelRequestNotification, CloseSessionRequest, CloseSessionResponse,
    CompleteElicitationNotification, CreateElicitationRequest, DeleteSessionRequest,
    DeleteSessionResponse, Error, InitializeRequest, InitializeResponse, ListSessionsRequest,
    ListSessionsResponse, NewSessionRequest, NewSessionResponse, PromptRequest, PromptResponse,
    RequestPermissionRequest, ResumeSessionRequest, ResumeSessionResponse,
    SetSessionConfigOptionRequest, SetSessionConfigOptionResponse, UpdateSessionNotification,
};

pub(super) const TABLE: MethodTable = MethodTable {
    agent_requests,
    agent_notifications,
    client_requests,
    error: check_v2::<Error>(),
};

fn agent_requests(method: &str) -> Option<TypeCheck> {
    Some(match method {
        "session/request_permission" => check_v2::<RequestPermissionRequest>(),
        "elicitation/create" => check_v2::<CreateElicitationRequest>(),
        _ => return None,
    })
}

fn agent_notifications(method: &str) -> Option<TypeCheck> {
    Some(match method {
        "session/update" => check_v2::<UpdateSessionNotification>(),
        "elicitation/complete" => check_v2::<CompleteElicitationNotification>(),
        "$/cancel_request" => check_v2::<CancelRequestNotification>(),
        _ => return None,
    })
}

fn client_requests(method: &str) -> Option<(TypeCheck, TypeCheck)> {
    Some(match method {
        "initialize" => (
            check_v2::<InitializeRequest>(),
            check_v2::<InitializeResponse>(),
        ),
        "session/new" => (
            check_v2::<NewSessionRequest>(),
            check_v2::<NewSessionResponse>(),
        ),
        "session/resume" => (
            check_v2::<ResumeSessionRequest>(),
            check_v2::<ResumeSessionResponse>(),
        ),
        "session/list" => (
            check_v2::<ListSessionsRequest>(),
            check_v2::<ListSessionsResponse>(),
        ),
        "session/close" => (
            check_v2::<CloseSessionRequest>(),
            check_v2::<CloseSessionResponse>(),
        ),
        "session/delete" => (
            check_v2::<DeleteSessionRequest>(),
            check_v2::<DeleteSessionResponse>(),
        ),
        "session/prompt" => (check_v2::<PromptRequest>(), check_v2::<PromptResponse>()),
        "session/set_config_option" => (
            check_v2::<SetSessionConfigOptionRequest>(),
            check_v2::<SetSessionConfigOptionResponse>(),
        ),
        _ => return None,
    })
}
