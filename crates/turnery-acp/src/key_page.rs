//! Key page: sends a person to a page of the host's to give a missing key (ELIC-6 to ELIC-8). The protocol
//! sees where the page is, and whether it is done; never what is typed there.

use crate::{
    elicitation::is_accepted,
    peer::{Peer, json_line},
    serve::send,
};
use agent_client_protocol_schema::v1::{
    CLIENT_METHOD_NAMES, CompleteElicitationNotification, CreateElicitationRequest, ElicitationId,
    ElicitationMode, ElicitationScope, ElicitationUrlMode,
};
use futures_util::future::BoxFuture;
use serde::Serialize;
use std::{fmt, pin::pin, sync::Arc};
use turnery_models::MissingKey;

/// A page that is open for one key.
pub struct KeyPage {
    /// Where it is: an address that nobody can guess, and that holds no secret but that.
    pub url: String,
    /// True once the key is kept, false when nobody gave a good one in time. Dropping it closes the page.
    pub given: BoxFuture<'static, bool>,
}

impl fmt::Debug for KeyPage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyPage").finish_non_exhaustive()
    }
}

/// Opens a page for the key of the provider of that name, or says why not.
pub type KeyPages = Arc<dyn Fn(&str) -> Result<KeyPage, String> + Send + Sync>;

#[derive(Serialize)]
struct Notification {
    jsonrpc: &'static str,
    method: &'static str,
    params: CompleteElicitationNotification,
}

/// Ask for the key, and wait until it is kept, or will not be: the person said no, the client went, or
/// the page has closed. Dropping the future takes the question back, and closes the page.
pub(crate) async fn ask(
    peer: &Arc<Peer>,
    pages: &KeyPages,
    scope: impl Into<ElicitationScope>,
    missing: &MissingKey,
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
    let request = CreateElicitationRequest::new(ElicitationMode::Url(mode), message(missing));
    let mut given = page.given;
    let mut asked = pin!(peer.request(CLIENT_METHOD_NAMES.elicitation_create, &request));
    // Whoever has the page open need not wait for the client to say so.
    let is_given = tokio::select! {
        biased;
        is_given = &mut given => is_given,
        answer = &mut asked => is_accepted(answer) && tokio::select! {
            biased;
            is_given = &mut given => is_given,
            () = peer.gone() => false,
        },
    };
    drop(given);
    if is_given && let Ok(line) = json_line(&completed(id)) {
        send(peer.out(), line).await;
    }
}

fn message(missing: &MissingKey) -> String {
    format!(
        "There is no key for {}. Type it on a page of the machine that turnery runs on: it goes to the \
         provider, is kept for you alone, and is shown to no model.",
        missing.provider
    )
}

fn completed(id: ElicitationId) -> Notification {
    Notification {
        jsonrpc: "2.0",
        method: CLIENT_METHOD_NAMES.elicitation_complete,
        params: CompleteElicitationNotification::new(id),
    }
}
