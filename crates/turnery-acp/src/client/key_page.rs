//! Sends the user to a page of the host to enter a missing key (ELIC-6 to ELIC-8). The protocol carries only
//! the page's URL and its completion, never the key.

use crate::{
    client::{
        elicitation::is_accepted,
        peer::{Peer, encode_line},
    },
    transport::writer::send_line,
};
use agent_client_protocol_schema::v1::{
    CLIENT_METHOD_NAMES, CompleteElicitationNotification, CreateElicitationRequest, ElicitationId,
    ElicitationMode, ElicitationScope, ElicitationUrlMode,
};
use futures_util::future::BoxFuture;
use serde::Serialize;
use std::{fmt, pin::pin, sync::Arc};
use turnery_models::MissingKeyError;

/// Web page, served by the host, on which the user enters the key of one provider.
pub struct KeyPage {
    /// URL of the page: unguessable, and without any other secret.
    pub url: String,
    /// Resolves to true once the key is stored, false if no valid key was entered in time. Dropping the future
    /// closes the page.
    pub key_stored: BoxFuture<'static, bool>,
}

impl fmt::Debug for KeyPage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyPage").finish_non_exhaustive()
    }
}

/// Opens a page for the key of the named provider.
pub type KeyPageOpener = Arc<dyn Fn(&str) -> Result<KeyPage, String> + Send + Sync>;

#[derive(Serialize)]
struct ElicitationComplete {
    jsonrpc: &'static str,
    method: &'static str,
    params: CompleteElicitationNotification,
}

/// Asks for the key and waits until it is stored, the user declines, the client disconnects or the page
/// closes. Dropping the future cancels the request and closes the page.
pub(crate) async fn request_key(
    peer: &Arc<Peer>,
    pages: &KeyPageOpener,
    scope: impl Into<ElicitationScope>,
    missing: &MissingKeyError,
) {
    let page = match pages(&missing.provider) {
        Ok(page) => page,
        Err(why) => {
            tracing::warn!("no page could be opened for a key: {why}");
            return;
        }
    };
    let id = ElicitationId::new(turnery_store::new_uuid().to_string());
    let mode = ElicitationUrlMode::new(scope, id.clone(), page.url);
    let request =
        CreateElicitationRequest::new(ElicitationMode::Url(mode), elicitation_message(missing));
    let mut given = page.key_stored;
    let mut response = pin!(peer.request(CLIENT_METHOD_NAMES.elicitation_create, &request));
    // The key may arrive before the client reports that the user accepted.
    let is_given = tokio::select! {
        biased;
        is_given = &mut given => is_given,
        answer = &mut response => is_accepted(answer) && tokio::select! {
            biased;
            is_given = &mut given => is_given,
            () = peer.disconnected() => false,
        },
    };
    drop(given);
    if is_given && let Ok(line) = encode_line(&completion_notification(id)) {
        send_line(peer.out(), line).await;
    }
}

fn elicitation_message(missing: &MissingKeyError) -> String {
    format!(
        "There is no key for {}. Enter it on a page of the machine that turnery runs on: it is sent to the \
         provider, stored for you alone, and shown to no model.",
        missing.provider
    )
}

fn completion_notification(id: ElicitationId) -> ElicitationComplete {
    ElicitationComplete {
        jsonrpc: "2.0",
        method: CLIENT_METHOD_NAMES.elicitation_complete,
        params: CompleteElicitationNotification::new(id),
    }
}
