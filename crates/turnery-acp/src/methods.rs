//! Methods: the table of what a client may ask and tell. One file per method.

mod auth_status;
mod authenticate;
mod cancel;
mod initialize;
mod logout;
mod session_archive;
pub(crate) mod session_close;
pub(crate) mod session_delete;
mod session_fork;
mod session_list;
mod session_load;
mod session_new;
mod session_prompt;
mod session_resume;
mod session_say;
mod session_set_config_option;
mod session_set_mode;
mod session_set_title;
mod session_status;
pub(crate) mod setup;
mod system_prompt;

pub(crate) use setup::absolute;

use crate::{
    connection::{Connection, RequestScope},
    envelope::RequestId,
    fault::Fault,
};
use agent_client_protocol_schema::v1::{AGENT_METHOD_NAMES, PROTOCOL_LEVEL_METHOD_NAMES};
use jsonrpsee::{
    Extensions, Methods, RpcModule,
    types::{ErrorObjectOwned, Params},
};
use serde::Serialize;
use serde_json::value::RawValue;
use std::sync::Arc;
use turnery_agent::{Session, StartError};
use turnery_engine::Content;
use turnery_models::ModelInfo;

/// The method that comes first (INIT-12).
pub(crate) const INITIALIZE: &str = AGENT_METHOD_NAMES.initialize;

/// Requests whose work may be dropped half-done when the client takes them back (REQC-2). A prompt is
/// not among them: it ends by its own rules, with `cancelled`.
pub(crate) const CAN_BE_DROPPED: [&str; 5] = [
    AGENT_METHOD_NAMES.authenticate,
    AGENT_METHOD_NAMES.session_new,
    AGENT_METHOD_NAMES.session_load,
    AGENT_METHOD_NAMES.session_resume,
    AGENT_METHOD_NAMES.session_list,
];

/// What a handler is given.
pub(crate) struct Call {
    pub(crate) params: Params<'static>,
    pub(crate) connection: Arc<Connection>,
    pub(crate) scope: RequestScope,
}

/// All requests.
pub(crate) fn table(connection: Arc<Connection>) -> Methods {
    let names = AGENT_METHOD_NAMES;
    let mut table = RpcModule::from_arc(connection);
    add(&mut table, names.initialize, initialize::answer);
    add(&mut table, names.authenticate, authenticate::answer);
    add(&mut table, names.logout, logout::answer);
    add(&mut table, names.session_new, session_new::answer);
    add(&mut table, names.session_load, session_load::answer);
    add(&mut table, names.session_resume, session_resume::answer);
    add(&mut table, names.session_fork, session_fork::answer);
    add(&mut table, names.session_list, session_list::answer);
    add(&mut table, names.session_close, session_close::answer);
    add(&mut table, names.session_delete, session_delete::answer);
    add(&mut table, names.session_prompt, session_prompt::answer);
    add(&mut table, names.session_set_mode, session_set_mode::answer);
    add(
        &mut table,
        names.session_set_config_option,
        session_set_config_option::answer,
    );
    add(
        &mut table,
        names.session_set_title,
        session_set_title::answer,
    );
    add(&mut table, names.session_archive, session_archive::archive);
    add(
        &mut table,
        names.session_unarchive,
        session_archive::unarchive,
    );
    add(&mut table, names.auth_status, auth_status::answer);
    add(&mut table, names.session_status, session_status::answer);
    add(&mut table, session_say::STEER, session_say::steer);
    add(&mut table, session_say::FOLLOW_UP, session_say::follow_up);
    table.into()
}

/// An image or a recording is refused before anything is asked of a model that takes none: nobody would
/// see or hear it there (PROMPT-2). Which model answers may change, so the capability says only that some do.
pub(crate) fn takes(session: &Session, input: &[Content]) -> Result<(), Fault> {
    let options = session.options();
    let current = |model: &&ModelInfo| model.name.to_string() == options.model;
    let Some(model) = options.models.iter().find(current) else {
        return Ok(());
    };
    let is_image = |content: &Content| matches!(content, Content::Image(_));
    let is_audio = |content: &Content| matches!(content, Content::Audio(_));
    let name = &model.name;
    if !model.images && input.iter().any(is_image) {
        return Err(Fault::params(format!(
            "{name} takes no images: choose another model, or say images = true for it in config.toml."
        )));
    }
    if !model.audio && input.iter().any(is_audio) {
        return Err(Fault::params(format!(
            "{name} takes no audio: choose another model, or say audio = true in config.toml for one \
             of an OpenAI-compatible server that does."
        )));
    }
    Ok(())
}

/// A prompt that the session does not take.
pub(crate) fn refused(session: &Session, error: StartError) -> Fault {
    match error {
        StartError::Full(_) => full(error.to_string()),
        StartError::Candidates(_) => Fault::params(error.to_string()),
        StartError::Closed => Fault::no_session(session.id().as_str(), error.to_string()),
    }
}

fn full(details: String) -> Fault {
    Fault::internal("queue_full", "Too many prompts wait", details, true)
}

pub(crate) fn add<R, Fut>(
    table: &mut RpcModule<Connection>,
    name: &'static str,
    answer: fn(Call) -> Fut,
) where
    R: Serialize + Clone + Send + 'static,
    Fut: Future<Output = Result<R, Fault>> + Send + 'static,
{
    let added = table.register_async_method(name, move |params, connection, extensions| {
        let scope = scope(&extensions);
        let answer = answer(Call {
            params,
            connection,
            scope,
        });
        async move { answer.await.map_err(ErrorObjectOwned::from) }
    });
    debug_assert!(added.is_ok(), "{name} stands in the table twice");
}

fn scope(extensions: &Extensions) -> RequestScope {
    extensions
        .get()
        .cloned()
        .unwrap_or_else(|| RequestScope::new(RequestId::Null))
}

/// What a notification asks of the connection.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Notified {
    /// Nothing more.
    Done,
    /// To fire the token of the request of that id.
    Withdraw(RequestId),
}

/// All notifications. The unknown and the malformed mean nothing (RPC-5, RPC-20).
pub(crate) fn notified(
    connection: &Connection,
    method: &str,
    params: Option<&RawValue>,
) -> Notified {
    if method == AGENT_METHOD_NAMES.session_cancel {
        cancel::session(connection, params);
    } else if method == PROTOCOL_LEVEL_METHOD_NAMES.cancel_request {
        return cancel::request(params).map_or(Notified::Done, Notified::Withdraw);
    } else {
        tracing::debug!(method, "an unknown notification was ignored");
    }
    Notified::Done
}
