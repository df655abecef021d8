//! Sends the models of providers that are queried for their lists after a session was opened.

use crate::{
    server::{connection::Connection, session_updates},
    transport::writer::send_line,
};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;
use turnery_agent::Session;

/// Starts a task that queries the lists of models that are missing, and then sends the session's options again if that
/// changes the models to choose from. Sends nothing before `answered` fires, and nothing for a session that was closed.
pub(crate) fn send_later_models(
    session: &Session,
    connection: &Arc<Connection>,
    answered: CancellationToken,
) {
    let Some(queries) = connection.agent.models().missing_lists() else {
        return;
    };
    let id = session.id().to_string();
    let before = session.model_names();
    let connection = Arc::downgrade(connection);
    tokio::spawn(async move {
        answered.cancelled().await;
        queries.await;
        let Some(connection) = connection.upgrade() else {
            return;
        };
        let Ok(session) = connection.session(&id) else {
            return;
        };
        let current = session.options().model;
        let known = connection.agent.models().model(&current.name);
        if known.is_ok_and(|known| *known.info() != *current) {
            // If it fails, the session goes on with what was known before.
            let _ = session.reload_model().await;
        }
        if session.model_names() != before {
            let line = session_updates::encode_model_change(connection.version(), &session);
            send_line(connection.peer.out(), line).await;
        }
    });
}
