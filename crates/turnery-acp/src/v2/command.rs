//! Command: a prompt that begins with a slash. It is a message like any other; what answers it lies
//! around the session, or is a prompt of the session's own.

use super::{shown, state};
use crate::{
    commands::{Aside, Command, Reply, Typed, message_id},
    connection::Connection,
    fault::Fault,
    update::UpdateWriter,
    writer::Out,
};
use agent_client_protocol_schema::v2::{
    AgentMessage, ContentBlock, MessageId, SessionUpdate, UserMessage,
};
use std::sync::Arc;
use turnery_agent::{PromptResult, Session, Ticket};

/// Run a command. It is answered once it has a place: when it did all it does, or is queued.
pub(super) async fn run(command: &Command, typed: Typed) -> Result<MessageId, Fault> {
    let session = typed.session.clone();
    let connection = Arc::clone(&typed.connection);
    let echo = typed.whole.iter().filter_map(shown::block);
    let echo: Vec<ContentBlock> = echo.collect();
    let id = message_id(&session);
    let aside = Aside::typed(&id, typed.whole.clone());
    let reply = command.run(typed).await?;
    let id = MessageId::from(id);
    let asked = SessionUpdate::UserMessage(UserMessage::new(id.clone()).content(echo));
    match reply {
        Reply::Said(text) => say(&connection, &session, aside, Some(&asked), text).await,
        Reply::Runs(ticket, closing) => {
            let line = crate::update::line(session.id().as_str(), &asked);
            crate::serve::send(connection.peer.out(), line).await;
            tokio::spawn(close(connection, session, aside, ticket, closing));
        }
    }
    Ok(id)
}

/// When the command's own prompt is over, say what is to be said of it.
async fn close(
    connection: Arc<Connection>,
    session: Session,
    aside: Aside,
    ticket: Ticket,
    closing: fn(&PromptResult) -> Option<String>,
) {
    let text = match ticket.result().await {
        Ok(result) => closing(&result),
        Err(error) => Some(format!("{error}.")),
    };
    let open = connection.session(session.id().as_str()).is_ok();
    if let Some(text) = text
        && open
    {
        say(&connection, &session, aside, None, text).await;
    }
}

/// Say something, at once and whole. A session that is not at work was so for just that; one that is,
/// still is.
async fn say(
    connection: &Connection,
    session: &Session,
    aside: Aside,
    asked: Option<&SessionUpdate>,
    text: String,
) {
    let id = message_id(session);
    aside.answered(&id, &text, session).await;
    let said = AgentMessage::new(id).content(vec![shown::text_block(text)]);
    let said = SessionUpdate::AgentMessage(said);
    // Whether it is at work is asked with the place in the queue in hand: nothing comes between.
    let Ok(place) = connection.peer.out().reserve().await else {
        return;
    };
    let mut to = UpdateWriter::new(session.id().as_str());
    if let Some(asked) = asked {
        to.update(asked);
    }
    match session.is_busy() {
        true => to.update(&said),
        false => state::at_once(|to| to.update(&said), &mut to),
    }
    place.send(Out::Lines(to.lines));
}
