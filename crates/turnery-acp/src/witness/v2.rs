//! v2: what the draft of the second version of the protocol knows.

use super::schema::{Shape, Table, v2};
use agent_client_protocol_schema::v2::{
    CancelRequestNotification, CloseSessionRequest, CloseSessionResponse,
    CompleteElicitationNotification, CreateElicitationRequest, DeleteSessionRequest,
    DeleteSessionResponse, Error, InitializeRequest, InitializeResponse, ListSessionsRequest,
    ListSessionsResponse, NewSessionRequest, NewSessionResponse, PromptRequest, PromptResponse,
    RequestPermissionRequest, ResumeSessionRequest, ResumeSessionResponse,
    SetSessionConfigOptionRequest, SetSessionConfigOptionResponse, UpdateSessionNotification,
};

pub(super) const TABLE: Table = Table {
    asks,
    tells,
    answers,
    error: v2::<Error>(),
};

fn asks(method: &str) -> Option<Shape> {
    Some(match method {
        "session/request_permission" => v2::<RequestPermissionRequest>(),
        "elicitation/create" => v2::<CreateElicitationRequest>(),
        _ => return None,
    })
}

fn tells(method: &str) -> Option<Shape> {
    Some(match method {
        "session/update" => v2::<UpdateSessionNotification>(),
        "elicitation/complete" => v2::<CompleteElicitationNotification>(),
        "$/cancel_request" => v2::<CancelRequestNotification>(),
        _ => return None,
    })
}

fn answers(method: &str) -> Option<(Shape, Shape)> {
    Some(match method {
        "initialize" => (v2::<InitializeRequest>(), v2::<InitializeResponse>()),
        "session/new" => (v2::<NewSessionRequest>(), v2::<NewSessionResponse>()),
        "session/resume" => (v2::<ResumeSessionRequest>(), v2::<ResumeSessionResponse>()),
        "session/list" => (v2::<ListSessionsRequest>(), v2::<ListSessionsResponse>()),
        "session/close" => (v2::<CloseSessionRequest>(), v2::<CloseSessionResponse>()),
        "session/delete" => (v2::<DeleteSessionRequest>(), v2::<DeleteSessionResponse>()),
        "session/prompt" => (v2::<PromptRequest>(), v2::<PromptResponse>()),
        "session/set_config_option" => (
            v2::<SetSessionConfigOptionRequest>(),
            v2::<SetSessionConfigOptionResponse>(),
        ),
        _ => return None,
    })
}
