//! `session/prompt`: says something to the model. Answered once that is part of the conversation, long
//! before anything came of it; held while other work runs, and never refused for that (V2-4, V2-5, V2-7).

use crate::{
    commands::{self, Typed},
    fault::{Fault, parse},
    methods::{Call, refused, takes},
    servers,
    v2::{command, content, stop},
};
use agent_client_protocol_schema::v2::{ContentBlock, PromptRequest, PromptResponse};
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
    if let Some(found) = commands::find(&input, &is_text) {
        let typed = Typed {
            args: found.args,
            rest: found.rest,
            whole: input,
            session,
            connection: call.connection,
            scope: call.scope,
        };
        let run = Box::pin(command::run(found.command, typed));
        return Ok(PromptResponse::new(run.await?));
    }
    takes(&session, &input)?;
    let trace = request.meta.as_ref().map(TraceContext::of_meta);
    let options = PromptOptions {
        withdrawable: true,
        trace: trace.unwrap_or_default(),
        ..PromptOptions::cancelled_by(call.scope.cancel)
    };
    let queued = match servers::command(&input, &is_text, &session) {
        Some(found) => session.prompt_of_server(found.command, found.typed, found.rest, options),
        None => {
            let input = commands::fill(input, &is_text, &session.options());
            session.prompt(input, options)
        }
    };
    let mut ticket = queued.map_err(|error| refused(&session, error))?;
    match ticket.inserted().await {
        Some(id) => Ok(PromptResponse::new(id.as_str())),
        None => Err(stop::not_inserted(ticket.result().await)),
    }
}
