//! Connection: what is known of the client, and the sessions that are open on it.

use crate::{
    barrier::Barrier,
    dialect::Dialect,
    envelope::RequestId,
    fault::Fault,
    key_page::KeyPages,
    login::{Login, LogsIn},
    news::Takes,
    peer::Peer,
    prompt_usage,
    quirks::Quirks,
};
use agent_client_protocol_schema::v1::ClientCapabilities;
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
};
use tokio_util::sync::CancellationToken;
use turnery_agent::{Agent, OpenError, OpenRequest, Session};
use turnery_models::MissingKey;

/// One connection. Shared by the handlers of its methods; no lock is held across an await.
pub(crate) struct Connection {
    pub(crate) agent: Arc<Agent>,
    pub(crate) peer: Arc<Peer>,
    pub(crate) barrier: Barrier,
    login: Option<Login>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    client: Option<Abilities>,
    dialect: Dialect,
    /// A request besides `initialize` has been taken: the dialect stays what it is (INIT-15).
    settled: bool,
    sessions: HashMap<String, Session>,
    /// The client has logged out, and not in again.
    logged_out: bool,
    /// Where a session could not begin, for want of a key.
    refused: Option<OpenRequest>,
}

/// What the client can do. All that it did not say is no (INIT-7).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Abilities {
    pub(crate) read_files: bool,
    pub(crate) write_files: bool,
    pub(crate) terminals: bool,
    /// It shows forms, and gives back what is filled in.
    pub(crate) forms: bool,
    /// What it can do for a login.
    pub(crate) logs_in: LogsIn,
    /// It knows the usage in the answer to a prompt.
    pub(crate) prompt_usage: bool,
    /// Updates that only some clients take.
    pub(crate) takes: Takes,
    /// Where it is known to deviate from the protocol.
    pub(crate) quirks: Quirks,
}

impl From<ClientCapabilities> for Abilities {
    fn from(said: ClientCapabilities) -> Self {
        Self {
            read_files: said.fs.read_text_file,
            write_files: said.fs.write_text_file,
            terminals: said.terminal,
            logs_in: LogsIn::from(&said),
            prompt_usage: prompt_usage::is_known(said.meta.as_ref()),
            forms: said.elicitation.is_some_and(|it| it.form.is_some()),
            takes: said.session.map_or_else(Takes::default, |session| Takes {
                notices: session.notices.is_some(),
                compaction: session.compaction.is_some(),
            }),
            quirks: Quirks::default(),
        }
    }
}

/// What a handler knows of the request that it answers.
#[derive(Clone, Debug)]
pub(crate) struct RequestScope {
    /// Its id.
    pub(crate) id: RequestId,
    /// Fires when the client takes the request back.
    pub(crate) cancel: CancellationToken,
    /// Fires once the answer is in the write queue.
    pub(crate) answered: CancellationToken,
    /// Lines that enter the queue with the answer, right behind it.
    pub(crate) after: Arc<OnceLock<Vec<u8>>>,
}

impl RequestScope {
    pub(crate) fn new(id: RequestId) -> Self {
        Self {
            id,
            cancel: CancellationToken::new(),
            answered: CancellationToken::new(),
            after: Arc::default(),
        }
    }
}

impl Connection {
    pub(crate) fn new(agent: Arc<Agent>, peer: Arc<Peer>, barrier: Barrier) -> Self {
        Self {
            agent,
            peer,
            barrier,
            login: None,
            state: Mutex::default(),
        }
    }

    /// The same, where a person can log in.
    pub(crate) fn with_login(self, login: Option<Login>) -> Self {
        Self { login, ..self }
    }

    /// How a person logs in.
    pub(crate) fn login(&self) -> Option<&Login> {
        self.login.as_ref()
    }

    /// Where a person can be sent for a key: only by a client that said it does so (ELIC-1).
    pub(crate) fn pages(&self) -> Option<KeyPages> {
        let pages = self.login.as_ref()?.pages.as_ref()?;
        self.abilities().logs_in.url.then(|| Arc::clone(pages))
    }

    /// The key that the session would lack that begins next.
    pub(crate) fn missing_key(&self) -> Option<MissingKey> {
        match self.agent.ready(&self.likely_request()?) {
            Err(OpenError::Key(missing)) => Some(missing),
            Ok(()) | Err(_) => None,
        }
    }

    /// No session begins any more.
    pub(crate) fn log_out(&self) {
        self.state().logged_out = true;
    }

    /// The session that would begin next: one that was refused for want of a key, else one where this
    /// process was started.
    pub(crate) fn likely_request(&self) -> Option<OpenRequest> {
        let refused = self.state().refused.clone();
        refused.or_else(|| std::env::current_dir().ok().map(OpenRequest::folder))
    }

    /// Sessions may begin again, if there is the key that they need: where one was refused for want of
    /// it, else where this process was started.
    pub(crate) fn log_in(&self) -> Result<(), Fault> {
        if let Some(request) = self.likely_request() {
            self.agent.ready(&request)?;
        }
        let mut state = self.state();
        state.logged_out = false;
        state.refused = None;
        Ok(())
    }

    /// Whether sessions may begin.
    pub(crate) fn logged_in(&self) -> Result<(), Fault> {
        match self.state().logged_out {
            true => Err(Fault::login(
                "You have logged out. Authenticate to go on with the keys that are there.",
            )),
            false => Ok(()),
        }
    }

    /// A session that could not be opened.
    pub(crate) fn refused(&self, request: OpenRequest, error: OpenError) -> Fault {
        if let OpenError::Key(_) = &error {
            self.state().refused = Some(request);
        }
        error.into()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The client has introduced itself. It may do so again (INIT-13).
    pub(crate) fn initialize(&self, client: Abilities, dialect: Dialect) {
        let mut state = self.state();
        state.client = Some(client);
        state.dialect = dialect;
    }

    /// The version that is spoken.
    pub(crate) fn dialect(&self) -> Dialect {
        self.state().dialect
    }

    /// Work begins in the version that is spoken.
    pub(crate) fn settle(&self) {
        self.state().settled = true;
    }

    /// The version that is spoken for good, once it is.
    pub(crate) fn settled(&self) -> Option<Dialect> {
        let state = self.state();
        state.settled.then_some(state.dialect)
    }

    /// Whether the client has introduced itself (INIT-12).
    pub(crate) fn is_initialized(&self) -> bool {
        self.state().client.is_some()
    }

    /// What the client can do.
    pub(crate) fn abilities(&self) -> Abilities {
        self.state().client.unwrap_or_default()
    }

    /// The open session of that id (SESS-9).
    pub(crate) fn session(&self, id: &str) -> Result<Session, Fault> {
        self.state().sessions.get(id).cloned().ok_or_else(|| {
            Fault::no_session(
                id,
                "The session is not open on this connection: load or resume it first.",
            )
        })
    }

    /// Add an open session; gives back the one that was open under the same id.
    pub(crate) fn add(&self, session: Session) -> Option<Session> {
        let id = session.id().to_string();
        self.state().sessions.insert(id, session)
    }

    /// Take an open session out.
    pub(crate) fn remove(&self, id: &str) -> Option<Session> {
        self.state().sessions.remove(id)
    }

    /// All open sessions.
    pub(crate) fn sessions(&self) -> Vec<Session> {
        self.state().sessions.values().cloned().collect()
    }
}
