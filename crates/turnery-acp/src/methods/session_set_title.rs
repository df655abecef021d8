//! `session/set_title` (unstable, behind `sessionCapabilities.title`): sets the title of a session, open or
//! not. Prompts do not replace it.

use crate::server::{method_call::MethodCall, params::parse_params, rpc_error::RpcError};
use agent_client_protocol_schema::v1::{SetSessionTitleRequest, SetSessionTitleResponse};
use turnery_engine::SessionId;

/// Length to which titles are cut. Unit: characters.
const TITLE_LIMIT: usize = 200;

pub(super) async fn handle(call: MethodCall) -> Result<SetSessionTitleResponse, RpcError> {
    let request: SetSessionTitleRequest = parse_params(&call.params)?;
    let title = normalize_title(&request.title);
    if title.is_empty() {
        return Err(RpcError::invalid_params("title: must not be empty."));
    }
    let id = SessionId::from(&*request.session_id.0);
    match call.connection.session(id.as_str()) {
        Ok(session) => session.set_title(&title).await?,
        Err(_) => {
            let kept = call.connection.agent.set_title(&id, &title).await;
            kept.map_err(|error| RpcError::from_store(&error))?;
        }
    }
    Ok(SetSessionTitleResponse::new(title))
}

/// Joins a title to one trimmed line.
fn normalize_title(title: &str) -> String {
    let gap = |char: char| char.is_whitespace() || char.is_control();
    let words: Vec<&str> = title.split(gap).filter(|word| !word.is_empty()).collect();
    let line: String = words.join(" ").chars().take(TITLE_LIMIT).collect();
    line.trim_end().to_owned()
}
