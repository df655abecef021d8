//! `session/prompt`: runs a prompt to its end. All up to the queueing happens at the first poll, so a
//! cancel on the next line finds it (CANCEL-9).

use super::Call;
use crate::{
    content,
    fault::{Fault, parse},
    stop,
};
use agent_client_protocol_schema::v1::{PromptRequest, PromptResponse};
use turnery_agent::StartError;

pub(super) async fn answer(call: Call) -> Result<PromptResponse, Fault> {
    let request: PromptRequest = parse(&call.params)?;
    let session = call.connection.session(&request.session_id.0)?;
    let input = content::from_wire(request.prompt)?;
    let ticket = session
        .start(input, call.scope.cancel)
        .map_err(|error| match error {
            StartError::Full(_) => Fault::internal(
                "queue_full",
                "Too many prompts wait",
                error.to_string(),
                true,
            ),
            StartError::Closed => Fault::no_session(session.id().as_str(), error.to_string()),
        })?;
    match ticket.result().await {
        Ok(result) => stop::to_wire(&result),
        Err(fault) => Err(stop::not_stored(&fault)),
    }
}
