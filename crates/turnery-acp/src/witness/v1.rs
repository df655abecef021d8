//! v1: what the first version of the protocol knows.

use super::schema::{Shape, Table, v1};
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

pub(super) const TABLE: Table = Table {
    asks,
    tells,
    answers,
    error: v1::<Error>(),
};

fn asks(method: &str) -> Option<Shape> {
    Some(match method {
        "session/request_permission" => v1::<RequestPermissionRequest>(),
        "fs/read_text_file" => v1::<ReadTextFileRequest>(),
        "fs/write_text_file" => v1::<WriteTextFileRequest>(),
        "terminal/create" => v1::<CreateTerminalRequest>(),
        "terminal/output" => v1::<TerminalOutputRequest>(),
        "terminal/wait_for_exit" => v1::<WaitForTerminalExitRequest>(),
        "terminal/kill" => v1::<KillTerminalRequest>(),
        "terminal/release" => v1::<ReleaseTerminalRequest>(),
        "elicitation/create" => v1::<CreateElicitationRequest>(),
        _ => return None,
    })
}

fn tells(method: &str) -> Option<Shape> {
    Some(match method {
        "session/update" => v1::<SessionNotification>(),
        "elicitation/complete" => v1::<CompleteElicitationNotification>(),
        "$/cancel_request" => v1::<CancelRequestNotification>(),
        _ => return None,
    })
}

fn answers(method: &str) -> Option<(Shape, Shape)> {
    Some(match method {
        "initialize" => (v1::<InitializeRequest>(), v1::<InitializeResponse>()),
        "authenticate" => (v1::<AuthenticateRequest>(), v1::<AuthenticateResponse>()),
        "logout" => (v1::<LogoutRequest>(), v1::<LogoutResponse>()),
        "session/new" => (v1::<NewSessionRequest>(), v1::<NewSessionResponse>()),
        "session/load" => (v1::<LoadSessionRequest>(), v1::<LoadSessionResponse>()),
        "session/resume" => (v1::<ResumeSessionRequest>(), v1::<ResumeSessionResponse>()),
        "session/fork" => (v1::<ForkSessionRequest>(), v1::<ForkSessionResponse>()),
        "session/list" => (v1::<ListSessionsRequest>(), v1::<ListSessionsResponse>()),
        "session/close" => (v1::<CloseSessionRequest>(), v1::<CloseSessionResponse>()),
        "session/delete" => (v1::<DeleteSessionRequest>(), v1::<DeleteSessionResponse>()),
        "session/set_title" => (
            v1::<SetSessionTitleRequest>(),
            v1::<SetSessionTitleResponse>(),
        ),
        "auth/status" => (v1::<AuthStatusRequest>(), v1::<AuthStatusResponse>()),
        "session/archive" => (
            v1::<ArchiveSessionRequest>(),
            v1::<ArchiveSessionResponse>(),
        ),
        "session/unarchive" => (
            v1::<UnarchiveSessionRequest>(),
            v1::<UnarchiveSessionResponse>(),
        ),
        "session/status" => (v1::<SessionStatusRequest>(), v1::<SessionStatusResponse>()),
        "session/prompt" => (v1::<PromptRequest>(), v1::<PromptResponse>()),
        "session/set_mode" => (
            v1::<SetSessionModeRequest>(),
            v1::<SetSessionModeResponse>(),
        ),
        "session/set_config_option" => (
            v1::<SetSessionConfigOptionRequest>(),
            v1::<SetSessionConfigOptionResponse>(),
        ),
        _ => return None,
    })
}
