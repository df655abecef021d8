//! Holds the state of a connection: the client's capabilities and the open sessions.

use crate::{
    client::{features::ClientFeatures, key_page::KeyPageOpener, peer::Peer},
    server::{
        acp_version::AcpVersion, encoder::SharedEncoder, login::Login,
        prompt_barrier::PromptBarrier, rpc_error::RpcError,
    },
};
use agent_client_protocol_schema::v1::RequestId;
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
};
use tokio_util::sync::CancellationToken;
use turnery_agent::{Agent, OpenError, OpenRequest, Session};
use turnery_models::MissingKeyError;

/// State of one connection, shared by the method handlers. No lock is held across an await.
pub(crate) struct Connection {
    pub(crate) agent: Arc<Agent>,
    pub(crate) peer: Arc<Peer>,
    pub(crate) barrier: PromptBarrier,
    login: Option<Login>,
    state: Mutex<ConnectionState>,
}

#[derive(Default)]
struct ConnectionState {
    client_features: Option<ClientFeatures>,
    version: AcpVersion,
    /// True once a request other than `initialize` was received: the version no longer changes (INIT-15).
    is_version_fixed: bool,
    sessions: HashMap<String, (Session, SharedEncoder)>,
    /// Fires when the closing session with this id is closed.
    closing: HashMap<String, CancellationToken>,
    /// True after a logout, until the client authenticates.
    logged_out: bool,
    /// Last request to open a session that failed for lack of a key.
    refused_request: Option<OpenRequest>,
}

/// Context of a request for its handler.
#[derive(Clone, Debug)]
pub(crate) struct RequestScope {
    /// Id of the request.
    pub(crate) id: RequestId,
    /// Fires when the client cancels the request.
    pub(crate) cancel: CancellationToken,
    /// Fires once the response is written, so that nothing that follows delays it.
    pub(crate) responded: CancellationToken,
    /// Lines queued together with the response, right after it.
    pub(crate) trailing_lines: Arc<OnceLock<Vec<u8>>>,
}

impl RequestScope {
    pub(crate) fn new(id: RequestId) -> Self {
        Self {
            id,
            cancel: CancellationToken::new(),
            responded: CancellationToken::new(),
            trailing_lines: Arc::default(),
        }
    }
}

impl Connection {
    pub(crate) fn new(agent: Arc<Agent>, peer: Arc<Peer>, barrier: PromptBarrier) -> Self {
        Self {
            agent,
            peer,
            barrier,
            login: None,
            state: Mutex::default(),
        }
    }

    /// Sets how the user logs in.
    pub(crate) fn with_login(self, login: Option<Login>) -> Self {
        Self { login, ..self }
    }

    /// Returns how the user logs in, if the host offers a login.
    pub(crate) fn login(&self) -> Option<&Login> {
        self.login.as_ref()
    }

    /// Returns the key page opener if the client can open URLs (ELIC-1).
    pub(crate) fn key_page_opener(&self) -> Option<KeyPageOpener> {
        let pages = self.login.as_ref()?.key_page_opener.as_ref()?;
        self.client_features().login.url.then(|| Arc::clone(pages))
    }

    /// Returns the key that the next session would lack.
    pub(crate) fn missing_key(&self) -> Option<MissingKeyError> {
        match self.agent.check_model_key(&self.likely_open_request()?) {
            Err(OpenError::Key(missing)) => Some(missing),
            Ok(()) | Err(_) => None,
        }
    }

    /// Refuses new sessions until the client authenticates.
    pub(crate) fn log_out(&self) {
        self.lock_state().logged_out = true;
    }

    /// Returns the request most likely to open the next session: the last one refused for lack of a key, else
    /// one for the current directory.
    pub(crate) fn likely_open_request(&self) -> Option<OpenRequest> {
        let refused = self.lock_state().refused_request.clone();
        refused.or_else(|| std::env::current_dir().ok().map(OpenRequest::folder))
    }

    /// Allows new sessions again if the key for [`Self::likely_open_request`] exists.
    ///
    /// # Errors
    /// Reports the missing key.
    pub(crate) fn log_in(&self) -> Result<(), RpcError> {
        if let Some(request) = self.likely_open_request() {
            self.agent.check_model_key(&request)?;
        }
        let mut state = self.lock_state();
        state.logged_out = false;
        state.refused_request = None;
        Ok(())
    }

    /// Checks that the client has not logged out.
    pub(crate) fn check_logged_in(&self) -> Result<(), RpcError> {
        match self.lock_state().logged_out {
            true => Err(RpcError::auth_required(
                "You have logged out. Authenticate to continue with the existing keys.",
            )),
            false => Ok(()),
        }
    }

    /// Converts an error of opening a session; remembers the request if a key was missing.
    pub(crate) fn record_open_error(&self, request: OpenRequest, error: OpenError) -> RpcError {
        if let OpenError::Key(_) = &error {
            self.lock_state().refused_request = Some(request);
        }
        error.into()
    }

    fn lock_state(&self) -> MutexGuard<'_, ConnectionState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records the client's features and version. May be called again (INIT-13).
    pub(crate) fn initialize(&self, client: ClientFeatures, version: AcpVersion) {
        let mut state = self.lock_state();
        state.client_features = Some(client);
        state.version = version;
    }

    /// Returns the negotiated version.
    pub(crate) fn version(&self) -> AcpVersion {
        self.lock_state().version
    }

    /// Fixes the negotiated version for the rest of the connection.
    pub(crate) fn fix_version(&self) {
        self.lock_state().is_version_fixed = true;
    }

    /// Returns the version if it is fixed.
    pub(crate) fn fixed_version(&self) -> Option<AcpVersion> {
        let state = self.lock_state();
        state.is_version_fixed.then_some(state.version)
    }

    /// Returns true if `initialize` has succeeded (INIT-12).
    pub(crate) fn is_initialized(&self) -> bool {
        self.lock_state().client_features.is_some()
    }

    /// Returns the client's features.
    pub(crate) fn client_features(&self) -> ClientFeatures {
        self.lock_state().client_features.unwrap_or_default()
    }

    /// Returns the open session with this id (SESS-9).
    pub(crate) fn session(&self, id: &str) -> Result<Session, RpcError> {
        let state = self.lock_state();
        let (session, _) = state.sessions.get(id).ok_or_else(|| {
            RpcError::session_not_found(
                id,
                "The session is not open on this connection: load or resume it first.",
            )
        })?;
        Ok(session.clone())
    }

    /// Returns the encoder of the open session with this id.
    pub(crate) fn encoder(&self, id: &str) -> Option<SharedEncoder> {
        let state = self.lock_state();
        state.sessions.get(id).map(|(_, encoder)| encoder.clone())
    }

    /// Adds an open session; returns the one it replaces, if any.
    pub(crate) fn insert_session(
        &self,
        session: Session,
        encoder: SharedEncoder,
    ) -> Option<Session> {
        let id = session.id().to_string();
        let replaced = self.lock_state().sessions.insert(id, (session, encoder));
        replaced.map(|(session, _)| session)
    }

    /// Closes the session with this id if it is open, and waits until it is closed, also if another request
    /// closes it. Otherwise a load in the same write would miss the end of the running prompt.
    pub(crate) async fn close_session(&self, id: &str) {
        let closed = CancellationToken::new();
        let (session, closing) = {
            let mut state = self.lock_state();
            match state.sessions.remove(id) {
                Some((session, _)) => {
                    state.closing.insert(id.to_owned(), closed.clone());
                    (Some(session), None)
                }
                None => (None, state.closing.get(id).cloned()),
            }
        };
        if let Some(session) = session {
            let _fires_last = closed.drop_guard();
            session.close().await;
            self.lock_state().closing.remove(id);
        } else if let Some(closing) = closing {
            closing.cancelled().await;
        }
    }

    /// Returns all open sessions.
    pub(crate) fn sessions(&self) -> Vec<Session> {
        let state = self.lock_state();
        let sessions = state.sessions.values();
        sessions.map(|(session, _)| session.clone()).collect()
    }
}
