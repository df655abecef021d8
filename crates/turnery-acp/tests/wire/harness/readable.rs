//! Parameters that the official types can read: turnery takes no others, and what it takes is their leniency.

use agent_client_protocol_schema::{v1, v2};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

fn reads<T: DeserializeOwned>(params: &Value) -> bool {
    let empty = json!({});
    let params = if params.is_null() { &empty } else { params };
    T::deserialize(params).is_ok()
}

/// Returns true if the official types read the parameters of this request. Those of `initialize` may be of a later
/// version (INIT-4), and those of unknown methods may be anything.
pub(super) fn is_readable(version: u64, method: &str, params: &Value) -> bool {
    let reads = match (version, method) {
        (2, "session/new") => reads::<v2::NewSessionRequest>,
        (2, "session/resume") => reads::<v2::ResumeSessionRequest>,
        (2, "session/list") => reads::<v2::ListSessionsRequest>,
        (2, "session/close") => reads::<v2::CloseSessionRequest>,
        (2, "session/delete") => reads::<v2::DeleteSessionRequest>,
        (2, "session/prompt") => reads::<v2::PromptRequest>,
        (2, "session/set_config_option") => reads::<v2::SetSessionConfigOptionRequest>,
        (2, _) => return true,
        (_, "authenticate") => reads::<v1::AuthenticateRequest>,
        (_, "logout") => reads::<v1::LogoutRequest>,
        (_, "auth/status") => reads::<v1::AuthStatusRequest>,
        (_, "session/new") => reads::<v1::NewSessionRequest>,
        (_, "session/load") => reads::<v1::LoadSessionRequest>,
        (_, "session/resume") => reads::<v1::ResumeSessionRequest>,
        (_, "session/fork") => reads::<v1::ForkSessionRequest>,
        (_, "session/list") => reads::<v1::ListSessionsRequest>,
        (_, "session/close") => reads::<v1::CloseSessionRequest>,
        (_, "session/delete") => reads::<v1::DeleteSessionRequest>,
        (_, "session/set_title") => reads::<v1::SetSessionTitleRequest>,
        (_, "session/archive") => reads::<v1::ArchiveSessionRequest>,
        (_, "session/unarchive") => reads::<v1::UnarchiveSessionRequest>,
        (_, "session/status") => reads::<v1::SessionStatusRequest>,
        (_, "session/prompt") => reads::<v1::PromptRequest>,
        (_, "session/set_mode") => reads::<v1::SetSessionModeRequest>,
        (_, "session/set_config_option") => reads::<v1::SetSessionConfigOptionRequest>,
        _ => return true,
    };
    reads(params)
}
