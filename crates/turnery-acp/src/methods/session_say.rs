//! `_turnery/session/steer` and `_turnery/session/follow_up`: something said while a prompt runs (C-29).
//! Extensions, named in `_meta` of our capabilities (EXT-3, EXT-5).

use super::{Call, full, takes};
use crate::{
    content,
    fault::{Fault, parse},
};
use agent_client_protocol_schema::v1::ContentBlock;
use serde::{Deserialize, Serialize};
use turnery_agent::{DeliveryReceipt, SayError, Session};
use turnery_engine::Content;

/// Heard as soon as the running call is done (UP-5).
pub(super) const STEER: &str = "_turnery/session/steer";
/// Heard once the prompt would end (UP-6).
pub(super) const FOLLOW_UP: &str = "_turnery/session/follow_up";

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Request {
    session_id: String,
    prompt: Vec<ContentBlock>,
}

/// It was heard; else the answer is an error.
#[derive(Clone, Serialize)]
pub(super) struct Response {
    taken: bool,
}

pub(super) async fn steer(call: Call) -> Result<Response, Fault> {
    say(&call, Session::try_steer).await
}

pub(super) async fn follow_up(call: Call) -> Result<Response, Fault> {
    say(&call, Session::try_follow_up).await
}

/// All up to the queueing happens at the first poll. An answer waits until it was heard: what comes too
/// late is refused, since nobody would await the prompt that it would become.
async fn say(
    call: &Call,
    how: fn(&Session, Vec<Content>) -> Result<DeliveryReceipt, SayError>,
) -> Result<Response, Fault> {
    let request: Request = parse(&call.params)?;
    let session = call.connection.session(&request.session_id)?;
    let content = content::from_wire(request.prompt)?;
    takes(&session, &content)?;
    let heard = match how(&session, content) {
        Ok(said) => said.result().await,
        Err(error) => Err(error),
    };
    match heard {
        Ok(()) => Ok(Response { taken: true }),
        Err(error) => Err(not_taken(&session, error)),
    }
}

fn not_taken(session: &Session, error: SayError) -> Fault {
    let details = format!("{error}.");
    match error {
        SayError::Idle => Fault::internal("not_running", "No prompt is running", details, false),
        SayError::Full(_) => full(details),
        SayError::Empty => Fault::params(details),
        SayError::Closed => Fault::no_session(session.id().as_str(), details),
    }
}
