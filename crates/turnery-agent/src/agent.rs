//! Creates, opens, lists, forks and deletes sessions.

mod damage_notice;
mod fork;
mod open_request;
mod replay;

pub use open_request::{Instructions, OpenError, OpenRequest};

use crate::{
    client::{ClientPorts, Outbox, OutboxItem},
    code_mode::Protocol,
    session::{RememberedApprovals, Session, SessionEnv, SessionParts},
    settings::{Settings, SettingsResolver},
    trace_sink::{TraceSink, Tracer},
    usage_report::UsageReport,
};
use std::{
    future::poll_fn,
    path::{Path, PathBuf},
    sync::Arc,
};
use turnery_engine::{LoopRecord, SessionId};
use turnery_models::{Model, ModelRegistry, Thinking};
use turnery_store::{
    Damage, History, ListPage, ListQuery, NewSession, SessionInfo, SessionPatch, Store, StoreError,
};
use turnery_tools::{
    McpServer, McpServers, Mode, PathError, Policy, Toolbox, Workspace, mcp::McpLaunchOptions,
};

/// Creates and opens sessions on one store, model registry and toolbox.
pub struct Agent {
    store: Arc<dyn Store>,
    models: Arc<ModelRegistry>,
    toolbox: Toolbox,
    settings_resolver: Arc<dyn SettingsResolver>,
    tracer: Tracer,
    /// Environment variables hidden from MCP servers.
    hidden_env: Vec<String>,
}

impl Agent {
    /// Creates an agent.
    #[must_use]
    pub fn new(
        store: Arc<dyn Store>,
        models: Arc<ModelRegistry>,
        toolbox: Toolbox,
        settings_resolver: Arc<dyn SettingsResolver>,
    ) -> Self {
        Self {
            store,
            models,
            toolbox,
            settings_resolver,
            tracer: Tracer::default(),
            hidden_env: Vec::new(),
        }
    }

    /// Hides these environment variables from MCP servers, in addition to
    /// [`HIDDEN_ENV`](turnery_tools::shell::HIDDEN_ENV).
    #[must_use]
    pub fn with_hidden_env(mut self, names: impl IntoIterator<Item = String>) -> Self {
        self.hidden_env.extend(names);
        self
    }

    /// Reports every model call to `sink`, in all sessions opened from now on (LASH-99).
    #[must_use]
    pub fn with_trace(mut self, sink: Arc<dyn TraceSink>) -> Self {
        self.tracer = Tracer::new(sink);
        self
    }

    /// Returns the model registry.
    #[must_use]
    pub fn models(&self) -> &Arc<ModelRegistry> {
        &self.models
    }

    /// Returns true if the default model, or any available model, accepts audio.
    #[must_use]
    pub fn supports_audio(&self) -> bool {
        let usual = self.settings_resolver.default_model();
        let usual = usual
            .filter(|name| self.models.require_key(name).is_ok())
            .and_then(|name| self.models.model(&name).ok());
        usual.is_some_and(|model| model.info().audio)
            || self.models.list_models().iter().any(|info| info.audio)
    }

    /// Returns the toolbox.
    #[must_use]
    pub fn toolbox(&self) -> &Toolbox {
        &self.toolbox
    }

    /// Writes the schemas of the tools, for which the first prompt of the process would wait otherwise.
    pub fn prepare(&self) {
        let _ = self.toolbox.specs();
    }

    /// Creates a session and stores it before returning. Must be called inside a tokio runtime.
    pub async fn create(
        &self,
        request: OpenRequest,
        ports: impl FnOnce(&SessionId) -> ClientPorts + Send,
    ) -> Result<Session, OpenError> {
        let id = SessionId::from(turnery_store::new_uuid().to_string());
        self.create_with_id(id, request, ports).await
    }

    /// Like [`create`](Self::create), with an id chosen by the caller: not empty, and without dots, spaces and
    /// control characters. Fails with [`StoreError::Exists`] if the store has a session of this id.
    pub async fn create_with_id(
        &self,
        id: SessionId,
        request: OpenRequest,
        ports: impl FnOnce(&SessionId) -> ClientPorts + Send,
    ) -> Result<Session, OpenError> {
        if !is_valid_id(&id) {
            return Err(OpenError::InvalidId(id));
        }
        self.models.discover_servers().await;
        let settings = self.resolve_settings(&request)?;
        let model = self.models.model(&settings.model)?;
        self.models.require_key(&settings.model)?;
        let ports = ports(&id);
        let workspace = open_workspace(&request, &ports)?;
        let new = NewSession {
            id,
            cwd: match request.has_folder() {
                true => normalize_path(&request.cwd),
                false => workspace.cwd().to_owned(),
            },
            folder: Some(workspace.cwd().to_owned()),
            roots: request.roots,
            model: settings.model.to_string(),
            mode: settings.mode.as_str().to_owned(),
            at: turnery_store::now(),
            spawned_by: None,
        };
        let info = self.store.create(new).await?;
        let mode = settings.mode;
        let servers = self.mcp_servers(request.mcp, &settings, &workspace);
        let given = (ports, workspace, servers);
        Ok(self.start_session(info, mode, (&[], 0), settings, model, given))
    }

    /// Opens a stored session. With `replay`, the whole conversation is pushed to the outbox as
    /// [`OutboxItem::Replay`], and then [`OutboxItem::ReplayEnd`], before this returns (LOAD-1, LOAD-2); without,
    /// nothing is pushed (RES-1).
    pub async fn open(
        &self,
        id: &SessionId,
        request: OpenRequest,
        replay: bool,
        ports: impl FnOnce(&SessionId) -> ClientPorts + Send,
    ) -> Result<Session, OpenError> {
        self.models.discover_servers().await;
        let journal_damage = self.recover_journal(id).await;
        let info = self.store.info(id).await?;
        let mut settings = self.resolve_settings(&request)?;
        if let Some(thinking) = info.thinking.as_deref() {
            settings.thinking = parse_thinking(thinking).unwrap_or(settings.thinking);
        }
        if let Some(protocol) = info.protocol.as_deref() {
            settings.protocol = Protocol::parse(protocol).unwrap_or(settings.protocol);
        }
        let mut ports = ports(id);
        let workspace = open_workspace(&request, &ports)?;
        check_folder(&info, &request.cwd, workspace.cwd())?;
        // A model that no longer exists is replaced by the configured one.
        let known = info.model.parse().and_then(|name| self.models.model(&name));
        let model = match known {
            // Without a key the session can still be read, and another model selected if one is available.
            Ok(model) => match self.models.require_key(&model.info().name) {
                Ok(()) => model,
                Err(missing) => self
                    .models
                    .require_key(&settings.model)
                    .map_or(Err(missing), |()| Ok(model))?,
            },
            Err(gone) => {
                tracing::warn!("{gone}; using {} instead", settings.model);
                self.models.require_key(&settings.model)?;
                self.models.model(&settings.model)?
            }
        };
        let mode = Mode::parse(&info.mode).unwrap_or_else(|| {
            let mode = fallback_mode(settings.mode);
            tracing::warn!(
                "session {id} is in the mode {:?}, which this version does not know; using {mode} \
                 instead until another is set",
                info.mode
            );
            mode
        });
        let patch = SessionPatch {
            roots: Some(request.roots.clone()),
            ..SessionPatch::default()
        };
        let info = if info.roots == request.roots {
            info
        } else {
            self.store.patch(id, patch).await?
        };
        let history = match replay {
            true => {
                replay::replay_session(&*self.store, id, journal_damage, &mut *ports.outbox).await?
            }
            false => {
                let mut history = self.store.history(id).await?;
                history.damage.extend(journal_damage);
                history
            }
        };
        self.add_stored_cost(id, &history, &mut *ports.outbox).await;
        if replay {
            poll_fn(|cx| ports.outbox.poll_ready(cx)).await;
            ports.outbox.push(OutboxItem::ReplayEnd);
        }
        let damaged_places = damage_notice::count_damaged_places(&history.damage);
        let servers = self.mcp_servers(request.mcp, &settings, &workspace);
        let given = (ports, workspace, servers);
        let history = (&*history.loops, damaged_places);
        Ok(self.start_session(info, mode, history, settings, model, given))
    }

    /// Adds the cost of the stored prompts to the session cost of the outbox, if that lacks it. Reads all loops only if
    /// the history does not have them (I9).
    async fn add_stored_cost(&self, id: &SessionId, history: &History, outbox: &mut dyn Outbox) {
        let cost = outbox.session_cost_mut();
        let Some(cost) = cost.filter(|cost| cost.lacks_stored_cost()) else {
            return;
        };
        let report = match history.has_all_loops {
            true => Ok(UsageReport::from_records(&history.loops)),
            false => {
                let all = self.store.loops(id, 0).await;
                all.map(|all| UsageReport::from_records(&all))
            }
        };
        if let Err(error) = &report {
            tracing::warn!("the cost of session {id} is unknown: {error}");
        }
        cost.add_stored_cost(report.ok().as_ref());
    }

    /// Recovers the journal that a dead process left behind and returns the damage found in it. A session
    /// whose store is read-only opens without recovery.
    async fn recover_journal(&self, id: &SessionId) -> Vec<Damage> {
        self.store.recover(id).await.unwrap_or_else(|error| {
            if !matches!(error, StoreError::NotFound(_)) {
                tracing::warn!("the interrupted prompt of {id} is not shown: {error}");
            }
            Vec::new()
        })
    }

    /// Combines the client's MCP servers with those in the settings that they do not hide. Does not start
    /// them.
    fn mcp_servers(
        &self,
        mut mcp: Vec<McpServer>,
        settings: &Settings,
        workspace: &Workspace,
    ) -> Option<Arc<McpServers>> {
        let hidden = |own: &&McpServer| mcp.iter().any(|given| given.name == own.name);
        let (_, own): (Vec<_>, Vec<_>) = settings.mcp_servers.iter().partition(hidden);
        mcp.extend(own.into_iter().cloned());
        let launch = McpLaunchOptions {
            roots: workspace.roots().to_vec(),
            hidden_env: self.hidden_env.clone(),
        };
        (!mcp.is_empty()).then(|| Arc::new(McpServers::new(&mcp, &launch)))
    }

    /// Checks that the model of a new session has the key it needs.
    pub fn check_model_key(&self, request: &OpenRequest) -> Result<(), OpenError> {
        let settings = self.resolve_settings(request)?;
        Ok(self.models.require_key(&settings.model)?)
    }

    /// Returns true if the model of a new session has a key; false also for a model that needs none. Fails if
    /// the model does not exist.
    pub fn has_key(&self, request: &OpenRequest) -> Result<bool, OpenError> {
        let settings = self.resolve_settings(request)?;
        self.models.model(&settings.model)?;
        Ok(self.models.has_key(&settings.model))
    }

    fn resolve_settings(&self, request: &OpenRequest) -> Result<Settings, OpenError> {
        let cwd = request.has_folder().then(|| request.cwd.clone());
        let roots: Vec<PathBuf> = cwd.into_iter().chain(request.roots.clone()).collect();
        let mut settings = self.settings_resolver.settings(&roots)?;
        if let Some(instructions) = &request.instructions {
            settings.system = instructions.apply_to(&settings.system).into();
        }
        settings.final_answer_format = request.final_answer_format.or(settings.final_answer_format);
        Ok(settings)
    }

    fn start_session(
        &self,
        info: SessionInfo,
        mode: Mode,
        (chain, damaged_places): (&[Arc<LoopRecord>], usize),
        settings: Settings,
        model: Arc<dyn Model>,
        (ports, workspace, servers): (ClientPorts, Workspace, Option<Arc<McpServers>>),
    ) -> Session {
        let workspace = workspace.with_sandbox(settings.sandbox.clone());
        let programs = servers
            .as_ref()
            .map_or(&[] as &[_], |it| it.program_files());
        let policy = Policy::new(mode, settings.allow.clone(), settings.deny.clone())
            .with_guarded_paths(settings.guarded.clone().with_paths(programs))
            .with_confined(settings.sandbox.is_active());
        let env = SessionEnv {
            store: Arc::clone(&self.store),
            models: Arc::clone(&self.models),
            toolbox: self.toolbox.clone(),
            workspace: Arc::new(workspace),
            client: ports.client,
            settings,
            model,
            policy,
            tracer: self.tracer.clone(),
            approvals: RememberedApprovals::from_info(&info),
            session_options: None,
            hidden_env: self.hidden_env.clone().into(),
            depth: 0,
            budget: None,
            effect_outbox: None,
        };
        let parts = SessionParts {
            env,
            outbox: ports.outbox,
            servers,
            info,
            damaged_places,
            chain,
        };
        parts.spawn()
    }

    /// Lists stored sessions. The folder of the query may be any path that resolves to the session's folder
    /// (LIST-2).
    pub async fn list(&self, mut query: ListQuery) -> Result<ListPage, StoreError> {
        let Some(cwd) = query.folder.clone() else {
            return self.store.list(query).await;
        };
        // Most paths are those of the folders themselves, so the list does not wait for another thread.
        let resolved = tokio::task::spawn_blocking(move || resolve_folder(&cwd));
        let (resolved, page) = tokio::join!(resolved, self.store.list(query.clone()));
        let resolved = resolved.map_err(|error| StoreError::Broken(error.to_string()))?;
        if query.folder.as_ref() == Some(&resolved) {
            return page;
        }
        query.folder = Some(resolved);
        self.store.list(query).await
    }

    /// Returns the metadata of a stored session.
    pub async fn info(&self, id: &SessionId) -> Result<SessionInfo, StoreError> {
        self.store.info(id).await
    }

    /// Sets the title of a session that is not open here. For an open one use [`Session::set_title`].
    pub async fn set_title(&self, id: &SessionId, title: &str) -> Result<(), StoreError> {
        let patch = SessionPatch {
            title: Some(Some(title.to_owned())),
            ..SessionPatch::default()
        };
        self.store.patch(id, patch).await.map(|_| ())
    }

    /// Archives or unarchives a session. An open session must be closed first.
    pub async fn set_archived(&self, id: &SessionId, archived: bool) -> Result<(), StoreError> {
        let patch = SessionPatch {
            archived: Some(archived),
            ..SessionPatch::default()
        };
        self.store.patch(id, patch).await.map(|_| ())
    }

    /// Deletes a session from the store and returns true if it existed. An open session must be closed first:
    /// deleting one that is in use, here or in another process, fails with [`StoreError::Busy`].
    pub async fn delete(&self, id: &SessionId) -> Result<bool, StoreError> {
        self.store.delete(id).await
    }
}

/// Returns the configured mode, but nothing more permissive than `Ask`: the meaning of the unknown mode
/// cannot be assumed.
fn fallback_mode(configured: Mode) -> Mode {
    match configured.is_more_permissive_than(Mode::Ask) {
        true => Mode::Ask,
        false => configured,
    }
}

/// Returns true for an id from which loop ids can be made (D-13).
fn is_valid_id(id: &SessionId) -> bool {
    let is_odd = |c: char| c == '.' || c.is_whitespace() || c.is_control();
    !id.as_str().is_empty() && !id.as_str().contains(is_odd)
}

fn open_workspace(request: &OpenRequest, ports: &ClientPorts) -> Result<Workspace, PathError> {
    if !request.has_folder() && request.roots.is_empty() {
        return Ok(Workspace::without_folder());
    }
    Workspace::new(
        request.cwd.clone(),
        request.roots.clone(),
        Arc::clone(&ports.files),
        ports.terminals.clone(),
    )
}

/// Checks that the requested folder, with symlinks resolved, is the one that the session was created in: a
/// command may have replaced the folder by a symlink.
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

/// Removes trailing slashes and `.` components.
fn normalize_path(path: &Path) -> PathBuf {
    path.components().collect()
}

/// Resolves symlinks; returns a path that does not exist normalized but unresolved.
fn resolve_folder(path: &Path) -> PathBuf {
    std::fs::canonicalize(path).unwrap_or_else(|_| normalize_path(path))
}

fn parse_thinking(word: &str) -> Option<Thinking> {
    serde_json::from_value(word.into()).ok()
}
