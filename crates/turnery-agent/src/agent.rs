//! Agent: opens sessions, lists them, deletes them.

mod damage_notice;
mod fork;
mod replay;

use crate::{
    Bill, Ports, Projects, Session, SessionOptions, Settings, TraceSink, UsageReport, ask_user,
    observe::observing,
    session::{BackgroundWork, Budget, History, Known, MAILBOX, Task, Tools, offered},
    sink::Tap,
    trace_sink::Tracing,
};
use std::{
    collections::VecDeque,
    path::{Path, PathBuf},
    sync::Arc,
};
use tokio::sync::{mpsc, watch};
use turnery_engine::{LoopRecord, SessionId, compaction::text_tokens};
use turnery_models::{Catalogue, Model, Thinking};
use turnery_store::{
    Damage, ListPage, ListQuery, NewSession, Owner, SessionInfo, SessionPatch, Store, StoreError,
};
use turnery_tools::{
    McpServer, Mode, PathRefused, Policy, Servers, Toolbox, Workspace, mcp::Launch,
};

/// Opens sessions over one store, one catalogue of models and one toolbox.
pub struct Agent {
    store: Arc<dyn Store>,
    models: Arc<Catalogue>,
    toolbox: Toolbox,
    projects: Arc<dyn Projects>,
    tracing: Tracing,
    /// Variables that no MCP server inherits.
    hidden_env: Vec<String>,
}

/// Where a session works, and with which servers of its client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenRequest {
    /// Absolute, an existing folder.
    pub cwd: PathBuf,
    /// Further roots, absolute, existing folders.
    pub roots: Vec<PathBuf>,
    /// MCP servers, to be connected for as long as the session is open (MCP-7). One of them hides one
    /// of the same name in the settings.
    pub mcp: Vec<McpServer>,
    /// What the client has to say to the model beside the settings' own system prompt.
    pub instructions: Option<Instructions>,
}

/// A system prompt of the client's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Instructions {
    /// Behind our own.
    Append(String),
    /// In place of our own.
    Override(String),
}

impl Instructions {
    fn beside(&self, own: &str) -> String {
        match self {
            Self::Append(text) => format!("{own}\n\n{text}"),
            Self::Override(text) => text.clone(),
        }
    }
}

impl OpenRequest {
    /// In one folder.
    #[must_use]
    pub fn folder(cwd: PathBuf) -> Self {
        Self {
            cwd,
            roots: Vec::new(),
            mcp: Vec::new(),
            instructions: None,
        }
    }
}

/// Why a session could not be opened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// A folder is not absolute, does not exist, or may not be read.
    #[error(transparent)]
    Path(#[from] PathRefused),
    /// The session was made for another folder (G-24).
    #[error("session {session} belongs to {expected}; open it there")]
    OtherFolder {
        /// The session.
        session: SessionId,
        /// Its folder.
        expected: PathBuf,
    },
    /// The folder of the session leads elsewhere by now, by a link for instance.
    #[error(
        "session {session} belongs to {expected}, but {requested} leads to {found} now: put the folder back in its \
         place, or begin a new session"
    )]
    FolderLeadsElsewhere {
        /// The session.
        session: SessionId,
        /// Its folder.
        expected: PathBuf,
        /// The path by which it was to be opened.
        requested: PathBuf,
        /// Where that path leads now.
        found: PathBuf,
    },
    /// The configuration cannot be read.
    #[error(transparent)]
    Settings(#[from] crate::SettingsError),
    /// The configured model does not exist.
    #[error(transparent)]
    Model(#[from] turnery_models::UnknownModel),
    /// The model that is to be used needs a key, and there is none (AUTH-6).
    #[error(transparent)]
    Key(#[from] turnery_models::MissingKey),
    /// The store says no.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Agent {
    /// An agent of these parts.
    #[must_use]
    pub fn new(
        store: Arc<dyn Store>,
        models: Arc<Catalogue>,
        toolbox: Toolbox,
        projects: Arc<dyn Projects>,
    ) -> Self {
        Self {
            store,
            models,
            toolbox,
            projects,
            tracing: Tracing::default(),
            hidden_env: Vec::new(),
        }
    }

    /// Let no MCP server inherit these environment variables; those of
    /// [`HIDDEN_ENV`](turnery_tools::shell::HIDDEN_ENV) none ever does.
    #[must_use]
    pub fn hiding(mut self, names: impl IntoIterator<Item = String>) -> Self {
        self.hidden_env.extend(names);
        self
    }

    /// Tell this sink of every call of a model, in all sessions opened from now on (LASH-99).
    #[must_use]
    pub fn with_trace(mut self, sink: Arc<dyn TraceSink>) -> Self {
        self.tracing = Tracing::new(sink);
        self
    }

    /// The models within reach.
    #[must_use]
    pub fn models(&self) -> &Catalogue {
        &self.models
    }

    /// Whether a model that is offered where no project names another takes recordings.
    #[must_use]
    pub fn takes_audio(&self) -> bool {
        let usual = self.projects.usual_model();
        let usual = usual
            .filter(|name| self.models.ready(name).is_ok())
            .and_then(|name| self.models.model(&name).ok());
        usual.is_some_and(|model| model.info().audio)
            || self.models.list().iter().any(|info| info.audio)
    }

    /// The tools on offer.
    #[must_use]
    pub fn toolbox(&self) -> &Toolbox {
        &self.toolbox
    }

    /// Make a session. It is on disk when this returns. Must be called inside a tokio runtime.
    pub async fn create(
        &self,
        request: OpenRequest,
        ports: impl FnOnce(&SessionId) -> Ports + Send,
    ) -> Result<Session, OpenError> {
        self.models.discover().await;
        let (roots, settings) = self.settings(&request)?;
        let model = self.models.model(&settings.model)?;
        self.models.ready(&settings.model)?;
        let id = SessionId::from(turnery_store::new_uuid().to_string());
        let ports = ports(&id);
        let workspace = workspace(&request, &ports)?;
        let new = NewSession {
            id,
            cwd: plain(&roots[0]),
            folder: Some(workspace.cwd().to_owned()),
            roots: roots[1..].to_vec(),
            model: settings.model.to_string(),
            mode: settings.mode.as_str().to_owned(),
            at: turnery_store::now(),
            spawned_by: None,
        };
        let info = self.store.create(new).await?;
        let mode = settings.mode;
        let servers = self.servers(request.mcp, &settings, &workspace);
        let given = (ports, workspace, servers);
        Ok(self.spawn(info, mode, &[], settings, model, given))
    }

    /// Open a session that exists. With `replay`, its whole conversation goes to the outbox as
    /// `Item::Replay` before this returns (LOAD-1, LOAD-2); without, nothing does (RES-1).
    pub async fn open(
        &self,
        id: &SessionId,
        request: OpenRequest,
        replay: bool,
        ports: impl FnOnce(&SessionId) -> Ports + Send,
    ) -> Result<Session, OpenError> {
        self.models.discover().await;
        let journal_damage = self.recover(id).await;
        let info = self.store.info(id).await?;
        let (roots, mut settings) = self.settings(&request)?;
        if let Some(thinking) = info.thinking.as_deref() {
            settings.thinking = known_level(thinking).unwrap_or(settings.thinking);
        }
        let mut ports = ports(id);
        let workspace = workspace(&request, &ports)?;
        check_folder(&info, &request.cwd, workspace.cwd())?;
        // A model may be gone since the session was last open: then the configured one takes over.
        let known = info.model.parse().and_then(|name| self.models.model(&name));
        let model = match known {
            // Without a key it can be looked at, and another model chosen, if there is one to choose.
            Ok(model) => match self.models.ready(&model.info().name) {
                Ok(()) => model,
                Err(missing) => self
                    .models
                    .ready(&settings.model)
                    .map_or(Err(missing), |()| Ok(model))?,
            },
            Err(gone) => {
                tracing::warn!("{gone}; using {} instead", settings.model);
                self.models.ready(&settings.model)?;
                self.models.model(&settings.model)?
            }
        };
        let known = Mode::ALL
            .into_iter()
            .find(|mode| mode.as_str() == info.mode);
        let mode = known.unwrap_or_else(|| {
            let mode = careful(settings.mode);
            tracing::warn!(
                "session {id} is in the mode {:?}, which this version does not know; using {mode} \
                 instead until another is set",
                info.mode
            );
            mode
        });
        let patch = SessionPatch {
            roots: Some(roots[1..].to_vec()),
            ..SessionPatch::default()
        };
        let info = if info.roots == roots[1..] {
            info
        } else {
            self.store.patch(id, patch).await?
        };
        let history = match replay {
            true => replay::show(&*self.store, id, journal_damage, &mut *ports.outbox).await?,
            false => {
                let mut history = self.store.history(id).await?;
                history.damage.extend(journal_damage);
                history
            }
        };
        if let Some(system) = damage_notice::tell_model(&settings.system, &history.damage) {
            settings.system = system.into();
        }
        let servers = self.servers(request.mcp, &settings, &workspace);
        let given = (ports, workspace, servers);
        Ok(self.spawn(info, mode, &history.loops, settings, model, given))
    }

    /// Brings back what a process that is gone has left of a prompt; returns what could not be read of it. A
    /// session whose store cannot be written is opened without.
    async fn recover(&self, id: &SessionId) -> Vec<Damage> {
        self.store.recover(id).await.unwrap_or_else(|error| {
            if !matches!(error, StoreError::NotFound(_)) {
                tracing::warn!("the interrupted prompt of {id} is not shown: {error}");
            }
            Vec::new()
        })
    }

    /// The servers of a session: those of its client, and those of its settings that these do not hide.
    /// None of them is started yet.
    fn servers(
        &self,
        mut mcp: Vec<McpServer>,
        settings: &Settings,
        workspace: &Workspace,
    ) -> Option<Arc<Servers>> {
        let hidden = |own: &&McpServer| mcp.iter().any(|given| given.name == own.name);
        let (_, own): (Vec<_>, Vec<_>) = settings.mcp.iter().partition(hidden);
        mcp.extend(own.into_iter().cloned());
        let launch = Launch {
            roots: workspace.roots().to_vec(),
            hidden_env: self.hidden_env.clone(),
        };
        (!mcp.is_empty()).then(|| Arc::new(Servers::new(&mcp, &launch)))
    }

    /// Whether the model that a new session would begin with has the key that it needs.
    pub fn ready(&self, request: &OpenRequest) -> Result<(), OpenError> {
        let (_, settings) = self.settings(request)?;
        Ok(self.models.ready(&settings.model)?)
    }

    /// Whether a key is there for that model: not for one that needs none. An error if there is no such model.
    pub fn has_key(&self, request: &OpenRequest) -> Result<bool, OpenError> {
        let (_, settings) = self.settings(request)?;
        self.models.model(&settings.model)?;
        Ok(self.models.has_key(&settings.model))
    }

    fn settings(&self, request: &OpenRequest) -> Result<(Vec<PathBuf>, Settings), OpenError> {
        let mut roots = vec![request.cwd.clone()];
        roots.extend(request.roots.iter().cloned());
        let mut settings = self.projects.settings(&roots)?;
        if let Some(instructions) = &request.instructions {
            settings.system = instructions.beside(&settings.system).into();
        }
        Ok((roots, settings))
    }

    fn spawn(
        &self,
        info: SessionInfo,
        mode: Mode,
        chain: &[Arc<LoopRecord>],
        settings: Settings,
        model: Arc<dyn Model>,
        (ports, workspace, servers): (Ports, Workspace, Option<Arc<Servers>>),
    ) -> Session {
        let workspace = workspace.confined(settings.sandbox.clone());
        spawn(Opening {
            store: Arc::clone(&self.store),
            models: Arc::clone(&self.models),
            toolbox: self.toolbox.clone(),
            servers,
            workspace: Arc::new(workspace),
            ports,
            policy: Policy::new(mode, settings.allow.clone(), settings.deny.clone())
                .guarding(settings.guarded.clone())
                .confined(settings.sandbox.is_active()),
            settings,
            model,
            info,
            chain,
            tracing: self.tracing.clone(),
            known: None,
            depth: 0,
            budget: None,
        })
    }

    /// The sessions of the store. A folder may be named in any way that leads to it (LIST-2).
    pub async fn list(&self, mut query: ListQuery) -> Result<ListPage, StoreError> {
        if let Some(cwd) = query.cwd {
            let found = tokio::task::spawn_blocking(move || folder(&cwd)).await;
            let found = found.map_err(|error| StoreError::Broken(error.to_string()))?;
            query.cwd = Some(found);
        }
        self.store.list(query).await
    }

    /// A session of the store, without its history.
    pub async fn info(&self, id: &SessionId) -> Result<SessionInfo, StoreError> {
        self.store.info(id).await
    }

    /// What a session has cost so far, by what is stored of it; `None` where a price is not known. Unit: as in
    /// [`Bill`].
    pub async fn cost(&self, id: &SessionId) -> Result<Option<u64>, StoreError> {
        let records = self.store.loops(id, 0).await?;
        let report = UsageReport::of(records.iter().map(|record| &**record));
        Ok(Bill::of(&report, |model| self.models.price_of(model)).total())
    }

    /// Name a session that is not open here; one that is has [`Session::set_title`].
    pub async fn set_title(&self, id: &SessionId, title: &str) -> Result<(), StoreError> {
        let patch = SessionPatch {
            title: Some(Some(title.to_owned())),
            ..SessionPatch::default()
        };
        self.store.patch(id, patch).await.map(|_| ())
    }

    /// Put a session away, or take it back. Close it first if it is open.
    pub async fn set_archived(&self, id: &SessionId, archived: bool) -> Result<(), StoreError> {
        let patch = SessionPatch {
            archived: Some(archived),
            ..SessionPatch::default()
        };
        self.store.patch(id, patch).await.map(|_| ())
    }

    /// Remove a session from the store. True if there was one. Close it first if it is open: a session
    /// that is in use, here or in another process, is an error ([`StoreError::Busy`]).
    pub async fn delete(&self, id: &SessionId) -> Result<bool, StoreError> {
        self.store.delete(id).await
    }
}

/// A session that is about to be served.
pub(crate) struct Opening<'a> {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) models: Arc<Catalogue>,
    pub(crate) toolbox: Toolbox,
    /// Its MCP servers; a child uses its parent's.
    pub(crate) servers: Option<Arc<Servers>>,
    pub(crate) workspace: Arc<Workspace>,
    pub(crate) ports: Ports,
    pub(crate) settings: Settings,
    pub(crate) model: Arc<dyn Model>,
    pub(crate) policy: Policy,
    pub(crate) info: SessionInfo,
    /// What has been said in it.
    pub(crate) chain: &'a [Arc<LoopRecord>],
    pub(crate) tracing: Tracing,
    /// The session that the person knows, if it is another one.
    pub(crate) known: Option<Known>,
    /// How many sessions lie above it.
    pub(crate) depth: u8,
    /// What its prompt draws on, if that is not its own.
    pub(crate) budget: Option<Budget>,
}

/// Serve a session from now on, in a task of its own.
pub(crate) fn spawn(opening: Opening<'_>) -> Session {
    let Opening {
        store,
        models,
        toolbox,
        servers,
        workspace,
        ports,
        settings,
        model,
        policy,
        info,
        chain,
        tracing,
        known,
        depth,
        budget,
    } = opening;
    let toolbox = ask_user::offered(toolbox, &ports.client, &info.id);
    let options = SessionOptions {
        mode: policy.mode,
        model: model.info().name.to_string(),
        models: offered(&models, &*model, &settings.model),
        thinking: settings.thinking,
        sandbox: settings
            .sandbox
            .describe(workspace.terminals().is_some())
            .into(),
        slashes: Arc::clone(&settings.slashes),
    };
    let (options, seen) = watch::channel(options);
    let (sender, mailbox) = mpsc::channel(MAILBOX);
    let (observing, observable) = observing();
    let session = Session::new(
        info.id.clone(),
        sender,
        Arc::clone(&store),
        observable,
        seen,
        servers.clone(),
    );
    let task = Task {
        overhead: overhead(&toolbox, &settings.system),
        store,
        models,
        tools: Tools::new(toolbox.clone(), servers),
        toolbox,
        workspace,
        ports,
        settings,
        model,
        policy,
        history: History::of(chain),
        frame_id: chain.last().and_then(|last| last.frame_id.clone()),
        owner: Owner::this_process(),
        options,
        mailbox,
        tracing,
        tap: Tap::default(),
        observing,
        inserting: None,
        waiting: VecDeque::new(),
        words: VecDeque::new(),
        lost: 0,
        retries: true,
        setting: None,
        background: BackgroundWork::default(),
        closing: Vec::new(),
        shown_as: known.unwrap_or_else(|| Known::of(&info)),
        depth,
        lent: budget,
        info,
    };
    tokio::spawn(task.serve());
    session
}

/// The configured mode, but none that is freer than to ask: what an unknown one allows, nobody knows.
fn careful(configured: Mode) -> Mode {
    match configured.is_freer_than(Mode::Ask) {
        true => Mode::Ask,
        false => configured,
    }
}

fn workspace(request: &OpenRequest, ports: &Ports) -> Result<Workspace, PathRefused> {
    Workspace::new(
        request.cwd.clone(),
        request.roots.clone(),
        Arc::clone(&ports.files),
        ports.terminals.clone(),
    )
}

/// Fails unless the folder that was asked for is the one that the session was made in, with links resolved: a command
/// may have put a link in the place of a folder.
fn check_folder(info: &SessionInfo, requested: &Path, resolved: &Path) -> Result<(), OpenError> {
    if resolved == info.folder {
        return Ok(());
    }
    let (session, expected) = (info.id.clone(), info.folder.clone());
    Err(match requested == info.cwd || requested == info.folder {
        true => OpenError::FolderLeadsElsewhere {
            session,
            expected,
            requested: requested.to_owned(),
            found: resolved.to_owned(),
        },
        false => OpenError::OtherFolder { session, expected },
    })
}

/// What of every request is no message. Unit: tokens.
pub(crate) fn overhead(toolbox: &Toolbox, system: &str) -> u64 {
    let specs = toolbox.specs();
    let tools = specs.iter().map(|spec| {
        let schema = text_tokens(&spec.schema.to_string());
        text_tokens(&spec.name) + text_tokens(&spec.description) + schema
    });
    text_tokens(system) + tools.sum::<u64>()
}

/// A path without what says nothing: a slash at its end, a dot.
fn plain(path: &Path) -> PathBuf {
    path.components().collect()
}

/// A folder with its links resolved. One that is gone is called as it is.
fn folder(path: &Path) -> PathBuf {
    std::fs::canonicalize(path).unwrap_or_else(|_| plain(path))
}

fn known_level(word: &str) -> Option<Thinking> {
    serde_json::from_value(word.into()).ok()
}
