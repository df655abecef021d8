//! Answers a prompt that contains a slash command.

use crate::{
    commands::{
        slash_command::{CommandCall, CommandOutcome, SlashCommand},
        transcript::{CommandTranscript, new_message_id},
    },
    server::rpc_error::RpcError,
    transport::{update_writer::UpdateWriter, writer::send_line},
    v1::prompt_response,
    view::stop_reason,
};
use agent_client_protocol_schema::v1::{PromptResponse, StopReason};
use std::sync::Arc;
use turnery_agent::PromptError;

/// Runs a command and returns the response to the prompt it came in.
pub(crate) async fn run_command(
    command: &SlashCommand,
    call: CommandCall,
) -> Result<PromptResponse, RpcError> {
    let session = call.session.clone();
    let connection = Arc::clone(&call.connection);
    let transcript = CommandTranscript::new(&new_message_id(&session), call.prompt.clone());
    let known = connection.client_features().prompt_usage;
    let (text, answer) = match command.run(call).await? {
        CommandOutcome::Text(text) => (Some(text), end_turn_response()),
        CommandOutcome::Prompt(ticket, closing) => match ticket.result().await {
            Ok(result) => {
                let (text, answer) = (
                    closing(&result),
                    prompt_response::to_prompt_response(&result, known),
                );
                match text.is_some() {
                    // The text already explains the error.
                    true => (text, answer.or_else(|_| end_turn_response())),
                    false => (text, answer),
                }
            }
            Err(
                error @ (PromptError::Continue(_)
                | PromptError::Model(_)
                | PromptError::Candidate { .. }
                | PromptError::EmptyJudgeCommand
                | PromptError::Folders(_)),
            ) => (Some(format!("{error}.")), end_turn_response()),
            Err(error) => return Err(stop_reason::prompt_error(&error)),
        },
    };
    if let Some(text) = text {
        let id = new_message_id(&session);
        transcript.record_answer(&id, &text, &session).await;
        let mut writer = UpdateWriter::new(session.id().as_str());
        writer.write_text(turnery_agent::view::ChunkAuthor::Agent, &id, &text);
        send_line(connection.peer.out(), writer.lines).await;
    }
    answer
}

fn end_turn_response() -> Result<PromptResponse, RpcError> {
    Ok(PromptResponse::new(StopReason::EndTurn))
}
