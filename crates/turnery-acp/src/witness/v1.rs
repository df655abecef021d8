//! Methods of the first protocol version.

use super::schema::{MethodTable, TypeCheck, check_v1};
use agent_client_protocol_schema::v1::{
    ArchiveSessionRequest, ArchiveSessionResponse, AuthStatusRequest, AuthStatusResponse,
    AuthenticateRequest, AuthenticateResponse, CancelRequestNotification, CloseSessionRequest,
    CloseSessionResponse, CompleteElicitationNotification, CreateElicitationRequest,
    CreateTerminalRequest, DeleteSessionRequest, DeleteSessionResponse, Error, ForkSessionRequest,
    ForkSessionResponse, InitializeRequest, InitializeResponse, KillTerminalRequest,
    ListSessionsRequest, ListSessionsResponse, LoadSessionRequest, LoadSessionResponse,
    LogoutRequest, LogoutResponse, NewSessionRequest, NewSessionResponse, PromptRequest,
    PromptResponse, ReadTextFileRequest, ReleaseTerminalRequest, RequestPermissionRequest,
    ResumeSessionRequest, ResumeSessionResponse, SessionNotification, SessionStatusRequest,
    SessionStatusResponse, SetSessionConfigOptionRequest, SetSessionConfigOptionResponse,
    SetSessionModeRequest, SetSessionModeResponse, SetSessionTitleRequest, SetSessionTitleResponse,
    TerminalOutputRequest, UnarchiveSessionRequest, UnarchiveSessionResponse,
    WaitForTerminalExitRequest, WriteTextFileRequest,
};

pub(super) const TABLE: MethodTable = MethodTable {
    agent_requests,
    agent_notifications,
    client_requests,
    error: check_v1::<Error>(),
};

fn agent_requests(method: &str) -> Option<TypeCheck> {
    Some(match method {
        "session/request_permission" => check_v1::<RequestPermissionRequest>(),
        "fs/read_text_file" => check_v1::<ReadTextFileRequest>(),
        "fs/write_text_file" => check_v1::<WriteTextFileRequest>(),
        "terminal/create" => check_v1::<CreateTerminalRequest>(),
        "terminal/output" => check_v1::<TerminalOutputRequest>(),
        "terminal/wait_for_exit" => check_v1::<WaitForTerminalExitRequest>(),
        "terminal/kill" => check_v1::<KillTerminalRequest>(),
        "terminal/release" => check_v1::<ReleaseTerminalRequest>(),
        "elicitation/create" => check_v1::<CreateElicitationRequest>(),
        _ => return None,
    })
}

fn agent_notifications(method: &str) -> Option<TypeCheck> {
    Some(match method {
        "session/update" => check_v1::<SessionNotification>(),
        "elicitation/complete" => check_v1::<CompleteElicitationNotification>(),
        "$/cancel_request" => check_v1::<CancelRequestNotification>(),
        _ => return None,
    })
}

fn client_requests(method: &str) -> Option<(TypeCheck, TypeCheck)> {
    Some(match method {
        "initialize" => (
            check_v1::<InitializeRequest>(),
            check_v1::<InitializeResponse>(),
        ),
        "authenticate" => (
            check_v1::<AuthenticateRequest>(),
            check_v1::<AuthenticateResponse>(),
        ),
        "logout" => (check_v1::<LogoutRequest>(), check_v1::<LogoutResponse>()),
        "session/new" => (
            check_v1::<NewSessionRequest>(),
            check_v1::<NewSessionResponse>(),
        ),
        "session/load" => (
            check_v1::<LoadSessionRequest>(),
            check_v1::<LoadSessionResponse>(),
        ),
        "session/resume" => (
            check_v1::<ResumeSessionRequest>(),
            check_v1::<ResumeSessionResponse>(),
        ),
        "session/fork" => (
            check_v1::<ForkSessionRequest>(),
            check_v1::<ForkSessionResponse>(),
        ),
        "session/list" => (
            check_v1::<ListSessionsRequest>(),
            check_v1::<ListSessionsResponse>(),
        ),
        "session/close" => (
            check_v1::<CloseSessionRequest>(),
            check_v1::<CloseSessionResponse>(),
        ),
        "session/delete" => (
            check_v1::<DeleteSessionRequest>(),
            check_v1::<DeleteSessionResponse>(),
        ),
        "session/set_title" => (
            check_v1::<SetSessionTitleRequest>(),
            check_v1::<SetSessionTitleResponse>(),
        ),
        "auth/status" => (
            check_v1::<AuthStatusRequest>(),
            check_v1::<AuthStatusResponse>(),
        ),
        "session/archive" => (
            check_v1::<ArchiveSessionRequest>(),
            check_v1::<ArchiveSessionResponse>(),
        ),
        "session/unarchive" => (
            check_v1::<UnarchiveSessionRequest>(),
            check_v1::<UnarchiveSessionResponse>(),
        ),
        "session/status" => (
            check_v1::<SessionStatusRequest>(),
            check_v1::<SessionStatusResponse>(),
        ),
        "session/prompt" => (check_v1::<PromptRequest>(), check_v1::<PromptResponse>()),
        "session/set_mode" => (
            check_v1::<SetSessionModeRequest>(),
            check_v1::<SetSessionModeResponse>(),
        ),
        "session/set_config_option" => (
            check_v1::<SetSessionConfigOptionRequest>(),
            check_v1::<SetSessionConfigOptionResponse>(),
        ),
        _ => return None,
    })
}
