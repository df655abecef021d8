//! `session/cancel` and `$/cancel_request`: the two ways to cancel.

use crate::server::{connection::Connection, envelope::parse_request_id};
use agent_client_protocol_schema::v1::RequestId;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::value::RawValue;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SessionCancelParams {
    session_id: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CancelRequestParams {
    request_id: Box<RawValue>,
}

fn parse_notification<T: DeserializeOwned>(params: Option<&RawValue>) -> Option<T> {
    serde_json::from_str(params?.get()).ok()
}

/// Cancels all prompts of a session, running and queued. Ignores idle and unknown sessions (CANCEL-8).
pub(super) fn handle_session_cancel(connection: &Connection, params: Option<&RawValue>) {
    if let Some(named) = parse_notification::<SessionCancelParams>(params)
        && let Ok(session) = connection.session(&named.session_id)
    {
        let count = session.cancel_prompts();
        tracing::debug!(session = %session.id(), count, "cancelled");
    }
}

/// Parses the id of the request to cancel (REQC-4).
pub(super) fn parse_cancel_request(params: Option<&RawValue>) -> Option<RequestId> {
    parse_request_id(
        parse_notification::<CancelRequestParams>(params)?
            .request_id
            .get(),
    )
}
