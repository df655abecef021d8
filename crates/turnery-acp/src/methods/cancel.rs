//! `session/cancel` and `$/cancel_request`: the two ways to take something back.

use crate::{connection::Connection, envelope::RequestId};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::value::RawValue;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Session {
    session_id: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Request {
    request_id: Box<RawValue>,
}

fn parse<T: DeserializeOwned>(params: Option<&RawValue>) -> Option<T> {
    serde_json::from_str(params?.get()).ok()
}

/// Cancel all prompts of a session, running and waiting. Idle or unknown: nothing happens (CANCEL-8).
pub(super) fn session(connection: &Connection, params: Option<&RawValue>) {
    if let Some(named) = parse::<Session>(params)
        && let Ok(session) = connection.session(&named.session_id)
    {
        let count = session.cancel_running_turns();
        tracing::debug!(session = %session.id(), count, "cancelled");
    }
}

/// The id of the request that is taken back (REQC-4).
pub(super) fn request(params: Option<&RawValue>) -> Option<RequestId> {
    RequestId::of(parse::<Request>(params)?.request_id.get())
}
