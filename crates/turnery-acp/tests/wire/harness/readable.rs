//! Checks whether the official types can deserialize the parameters of a request: turnery must reject all
//! others.

use agent_client_protocol_schema::{v1, v2};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

fn can_deserialize<T: DeserializeOwned>(params: &Value) -> bool {
    let empty = json!({});
    let params = if params.is_null() { &empty } else { params };
    T::deserialize(params).is_ok()
}

/// Returns true if the official types read the parameters of this request. Those of `initialize` may be of a later
/// version (INIT-4), and those of unknown methods may be anything.
pub(super) fn is_readable(version: u64, method: &str, params: &Value) -> bool {
    let reads = match (version, method) {
        (2, "session/new") => can_deserialize::<v2::NewSessionRequest>,
        (2, "session/resume") => can_deserialize::<v2::ResumeSessionRequest>,
        (2, "session/list") => can_deserialize::<v2::ListSessionsRequest>,
        (2, "session/close") => can_deserialize::<v2::CloseSessionRequest>,
        (2, "session/delete") => can_deserialize::<v2::DeleteSessionRequest>,
        (2, "session/prompt") => can_deserialize::<v2::PromptRequest>,
        (2, "session/set_config_option") => can_deserialize::<v2::SetSessionConfigOptionRequest>,
        (2, _) => return true,
        (_, "authenticate") => can_deserialize::<v1::AuthenticateRequest>,
        (_, "logout") => can_deserialize::<v1::LogoutRequest>,
        (_, "auth/status") => can_deserialize::<v1::AuthStatusRequest>,
        (_, "session/new") => can_deserialize::<v1::NewSessionRequest>,
        (_, "session/load") => can_deserialize::<v1::LoadSessionRequest>,
        (_, "session/resume") => can_deserialize::<v1::ResumeSessionRequest>,
        (_, "session/fork") => can_deserialize::<v1::ForkSessionRequest>,
        (_, "session/list") => can_deserialize::<v1::ListSessionsRequest>,
        (_, "session/close") => can_deserialize::<v1::CloseSessionRequest>,
        (_, "session/delete") => can_deserialize::<v1::DeleteSessionRequest>,
        (_, "session/set_title") => can_deserialize::<v1::SetSessionTitleRequest>,
        (_, "session/archive") => can_deserialize::<v1::ArchiveSessionRequest>,
        (_, "session/unarchive") => can_deserialize::<v1::UnarchiveSessionRequest>,
        (_, "session/status") => can_deserialize::<v1::SessionStatusRequest>,
        (_, "session/prompt") => can_deserialize::<v1::PromptRequest>,
        (_, "session/set_mode") => can_deserialize::<v1::SetSessionModeRequest>,
        (_, "session/set_config_option") => can_deserialize::<v1::SetSessionConfigOptionRequest>,
        _ => return true,
    };
    reads(params)
}
