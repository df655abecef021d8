//! Runs slash commands in v2. The prompt is a message like any other; its answer is either outside the
//! conversation or a prompt of the command's own.

use super::{session_state, shared};
use crate::{
    commands::{
        slash_command::{CommandCall, CommandOutcome, SlashCommand},
        transcript::{CommandTranscript, new_message_id},
    },
    server::{connection::Connection, rpc_error::RpcError},
    transport::{update_writer::UpdateWriter, writer::WriteItem},
};
use agent_client_protocol_schema::v2::{
    AgentMessage, ContentBlock, MessageId, SessionUpdate, UserMessage,
};
use std::sync::Arc;
use turnery_agent::{PromptHandle, PromptResult, Session};

/// Runs a command. Returns once the command is done or its prompt is queued.
pub(super) async fn run_command(
    command: &SlashCommand,
    call: CommandCall,
) -> Result<MessageId, RpcError> {
    let session = call.session.clone();
    let connection = Arc::clone(&call.connection);
    let echo = call.prompt.iter().filter_map(shared::encode_block);
    let echo: Vec<ContentBlock> = echo.collect();
    let id = new_message_id(&session);
    let transcript = CommandTranscript::new(&id, call.prompt.clone());
    let reply = command.run(call).await?;
    let id = MessageId::from(id);
    let echo_update = SessionUpdate::UserMessage(UserMessage::new(id.clone()).content(echo));
    match reply {
        CommandOutcome::Text(text) => {
            write_answer(&connection, &session, transcript, Some(&echo_update), text).await
        }
        CommandOutcome::Prompt(ticket, closing) => {
            let line =
                crate::transport::update_writer::update_line(session.id().as_str(), &echo_update);
            crate::transport::writer::send_line(connection.peer.out(), line).await;
            tokio::spawn(report_command_end(
                connection, session, transcript, ticket, closing,
            ));
        }
    }
    Ok(id)
}

/// Waits for the end of the command's prompt, then shows the closing text.
async fn report_command_end(
    connection: Arc<Connection>,
    session: Session,
    transcript: CommandTranscript,
    ticket: PromptHandle,
    closing_text: fn(&PromptResult) -> Option<String>,
) {
    let text = match ticket.result().await {
        Ok(result) => closing_text(&result),
        Err(error) => Some(format!("{error}.")),
    };
    let open = connection.session(session.id().as_str()).is_ok();
    if let Some(text) = text
        && open
    {
        write_answer(&connection, &session, transcript, None, text).await;
    }
}

/// Stores the answer of a command and sends it as a whole message, after `prompt`, the echo of the user's
/// message. If the last reported state is idle, wraps both in a running and an idle state update; this may
/// also be so while a prompt is queued.
async fn write_answer(
    connection: &Connection,
    session: &Session,
    transcript: CommandTranscript,
    prompt: Option<&SessionUpdate>,
    text: String,
) {
    let id = new_message_id(session);
    transcript.record_answer(&id, &text, session).await;
    let answer = AgentMessage::new(id).content(vec![shared::text_block(text)]);
    let answer = SessionUpdate::AgentMessage(answer);
    let Ok(place) = connection.peer.out().reserve().await else {
        return;
    };
    // `None` if the session was closed meanwhile.
    let Some(encoder) = connection.encoder(session.id().as_str()) else {
        return;
    };
    let encoder = encoder.lock();
    let mut to = UpdateWriter::new(session.id().as_str());
    if let Some(echo_update) = prompt {
        to.write_update(echo_update);
    }
    match encoder.is_idle() {
        true => session_state::write_running_then_idle(|to| to.write_update(&answer), &mut to),
        false => to.write_update(&answer),
    }
    place.send(WriteItem::Lines(to.lines));
}
