//! Parses the client's answers to permission requests.

use crate::client::peer::PeerError;
use serde::Deserialize;
use turnery_agent::{PermissionAnswer, PermissionChoice};

/// Response to `session/request_permission`. Not the schema's type: an unknown outcome must mean no (PERM-3).
#[derive(Deserialize)]
pub(crate) struct PermissionResponse {
    outcome: PermissionOutcome,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PermissionOutcome {
    outcome: String,
    #[serde(default)]
    option_id: Option<String>,
}

/// Parses the response. Allowing requires the outcome `selected` with the id of an offered option (PERM-3);
/// the agent interprets the option.
pub(crate) fn parse_response(
    reply: Result<PermissionResponse, PeerError>,
    offered: &[PermissionChoice],
) -> PermissionAnswer {
    let outcome = match reply {
        Ok(reply) => reply.outcome,
        Err(error) if error.is_cancelled() => return PermissionAnswer::Cancelled,
        Err(error) => {
            return PermissionAnswer::NoAnswer(format!(
                "permission could not be asked for: {error}"
            ));
        }
    };
    match (outcome.outcome.as_str(), outcome.option_id) {
        ("cancelled", _) => PermissionAnswer::Cancelled,
        ("selected", Some(id)) if offered.iter().any(|option| option.id == id) => {
            PermissionAnswer::Selected(id)
        }
        ("selected", id) => PermissionAnswer::NoAnswer(format!(
            "the client chose {:?}, which was not offered",
            id.unwrap_or_default()
        )),
        (other, _) => PermissionAnswer::NoAnswer(format!("the client answered {other:?}")),
    }
}
