//! `session/prompt`: runs a prompt to its end. All up to the queueing happens at the first poll, so a
//! cancel on the next line finds it (CANCEL-9).

use super::{Call, refused, takes};
use crate::{
    commands::{self, Typed},
    content,
    fault::{Fault, parse},
    servers, stop,
};
use agent_client_protocol_schema::v1::{ContentBlock, PromptRequest, PromptResponse};
use turnery_agent::PromptOptions;
use turnery_tools::TraceContext;

pub(super) async fn answer(call: Call) -> Result<PromptResponse, Fault> {
    let request: PromptRequest = parse(&call.params)?;
    let session = call.connection.session(&request.session_id.0)?;
    let is_text = request.prompt.iter();
    let is_text: Vec<bool> = is_text
        .map(|it| matches!(it, ContentBlock::Text(_)))
        .collect();
    let input = content::from_wire(request.prompt)?;
    let trace = request.meta.as_ref().map(TraceContext::of_meta);
    let options = PromptOptions {
        trace: trace.unwrap_or_default(),
        ..PromptOptions::cancelled_by(call.scope.cancel.clone())
    };
    if let Some(found) = commands::find(&input, &is_text) {
        let typed = Typed {
            args: found.args,
            rest: found.rest,
            whole: input,
            session,
            connection: call.connection,
            scope: call.scope,
        };
        return Box::pin(found.command.answer(typed)).await;
    }
    if let Some(found) = servers::command(&input, &is_text, &session) {
        let ticket = session.prompt_of_server(found.command, found.typed, found.rest, options);
        let ticket = ticket.map_err(|error| refused(&session, error))?;
        return Box::pin(servers::answer(ticket, input, &session, &call.connection)).await;
    }
    takes(&session, &input)?;
    let input = commands::fill(input, &is_text, &session.options());
    let known = call.connection.abilities().prompt_usage;
    let ticket = session
        .prompt(input, options)
        .map_err(|error| refused(&session, error))?;
    match ticket.result().await {
        Ok(result) => stop::to_wire(&result, known),
        Err(fault) => Err(stop::not_stored(&fault)),
    }
}
