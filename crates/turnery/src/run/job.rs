//! Describes the work of a run and opens the session for it.

use super::try_models::TryArgs;
use crate::{
    app::resolve_cwd,
    args::OutputFormat,
    config::{Config, model_lists::LOCAL_TIMEOUT},
    session_address::find_session,
};
use anyhow::{Context as _, ensure};
use std::{path::PathBuf, sync::Arc};
use turnery_agent::{
    Agent, ClientPorts, OpenRequest, PromptHandle, PromptOptions, Session, UnknownPriceError,
    ValueSchema, known_price,
};
use turnery_engine::{Content, Limits, LoopId, SessionId};
use turnery_models::{ModelName, is_listed_model};
use turnery_store::{ListQuery, SessionInfo, Store};

/// Work of a run, its session, its output format and its settings.
pub(crate) struct Job {
    pub(crate) action: JobAction,
    pub(crate) target: SessionTarget,
    pub(crate) format: OutputFormat,
    /// Schema of the value that the prompt must end with.
    pub(crate) schema: Option<Arc<ValueSchema>>,
    /// Settings of the command line.
    pub(crate) flags: Config,
    /// True if the session is to be in memory only.
    pub(crate) no_store: bool,
    /// True if the prompt may wait for the process that holds the session.
    pub(crate) is_queued: bool,
}

/// Kind of work.
pub(crate) enum JobAction {
    /// Send a prompt to the model.
    Prompt(Vec<Content>),
    /// Send a prompt to several models at once (LOOP-70).
    TryModels(TryArgs, Vec<Content>),
    /// Continue without a new prompt (LOOP-18).
    Continue,
    /// Rerun a loop, by default the last one (LOOP-19).
    Rerun(Option<String>),
    /// Send a new prompt that follows an earlier loop (LOOP-20).
    Branch(String, Vec<Content>),
    /// Summarise older messages (LOOP-21).
    Compact,
}

/// Session to work in.
pub(crate) enum SessionTarget {
    /// A new session in this folder.
    New(Option<PathBuf>),
    /// The newest session of this folder.
    Newest(Option<PathBuf>),
    /// The session of this name, which must belong to this folder.
    InFolder(String, Option<PathBuf>),
    /// The session of this name, in its own folder.
    Stored(String),
}

impl JobAction {
    /// Returns the content that is new to the model.
    pub(super) fn new_content(&self) -> &[Content] {
        match self {
            Self::Prompt(content) | Self::TryModels(_, content) | Self::Branch(_, content) => {
                content
            }
            Self::Continue | Self::Rerun(_) | Self::Compact => &[],
        }
    }

    /// Returns the models that the work calls in a session whose model is `own`.
    pub(super) fn called_models<'a>(&'a self, own: &'a ModelName) -> Vec<&'a ModelName> {
        match self {
            Self::TryModels(tries, _) => tries.called_models(own),
            Self::Prompt(_)
            | Self::Continue
            | Self::Rerun(_)
            | Self::Branch(..)
            | Self::Compact => {
                vec![own]
            }
        }
    }

    /// Starts the work in a session.
    pub(super) async fn start(
        self,
        session: &Session,
        store: &dyn Store,
        options: PromptOptions,
    ) -> anyhow::Result<PromptHandle> {
        Ok(match self {
            Self::Prompt(content) => session.prompt(expand_command(session, content), options)?,
            Self::TryModels(tries, content) => {
                tries.start(session, expand_command(session, content), options)?
            }
            Self::Continue => session.continue_loop(options)?,
            Self::Compact => session.compact(options)?,
            Self::Rerun(None) => session.rerun(None, options)?,
            Self::Rerun(Some(text)) => {
                let which = find_loop(store, session.id(), &text).await?;
                session.rerun(Some(which), options)?
            }
            Self::Branch(text, content) => {
                let from = find_loop(store, session.id(), &text).await?;
                session.branch(from, expand_command(session, content), options)?
            }
        })
    }
}

/// Expands a slash command of the user or the project; returns any other prompt unchanged.
pub(super) fn expand_command(session: &Session, mut content: Vec<Content>) -> Vec<Content> {
    if let Some(Content::Text { text }) = content.first_mut()
        && let Some(filled) = session.options().expand_command(text)
    {
        *text = filled;
    }
    content
}

/// Finds a loop by its id, or by its number, which is the last part of the id.
async fn find_loop(store: &dyn Store, id: &SessionId, text: &str) -> anyhow::Result<LoopId> {
    let loops = store.loops(id, 0).await?;
    let found = loops
        .iter()
        .map(|record| &record.loop_id)
        .find(|loop_id| loop_id.as_str() == text || loop_number(loop_id) == text);
    found.cloned().with_context(|| {
        format!("session {id} has no loop {text}; `turnery sessions show {id}` lists them")
    })
}

/// Returns the number of a loop in its session.
pub(crate) fn loop_number(id: &LoopId) -> &str {
    id.as_str().rsplit('.').next().unwrap_or_default()
}

/// Creates or opens the session to work in.
pub(super) async fn open_session(
    agent: &Agent,
    store: &dyn Store,
    target: &SessionTarget,
    ports: ClientPorts,
    flags: &Config,
) -> anyhow::Result<Session> {
    let (id, request) = match target {
        SessionTarget::New(cwd) => {
            let request = OpenRequest::folder(resolve_cwd(cwd.clone())?);
            return Ok(agent.create(request, |_| ports).await?);
        }
        SessionTarget::Newest(cwd) => {
            let cwd = resolve_cwd(cwd.clone())?;
            (
                newest_session(agent, cwd.clone()).await?,
                OpenRequest::folder(cwd),
            )
        }
        SessionTarget::InFolder(id, cwd) => {
            let cwd = resolve_cwd(cwd.clone())?;
            let id = find_session(store, id, Some(&cwd)).await?;
            (id, OpenRequest::folder(cwd))
        }
        SessionTarget::Stored(id) => {
            let id = find_session(store, id, resolve_cwd(None).ok().as_deref()).await?;
            let SessionInfo { cwd, roots, .. } = store.info(&id).await?;
            (
                id,
                OpenRequest {
                    roots,
                    ..OpenRequest::folder(cwd)
                },
            )
        }
    };
    let session = agent.open(&id, request, false, |_| ports).await?;
    // A session keeps its settings, but flags override them.
    if let Some(model) = &flags.model {
        session.set_model(&model.to_string()).await?;
    }
    if let Some(mode) = flags.mode {
        session.set_mode(mode).await?;
    }
    if let Some(thinking) = flags.thinking {
        session.set_thinking(thinking).await?;
    }
    if let Some(protocol) = flags.protocol {
        session.set_protocol(protocol).await?;
    }
    Ok(session)
}

async fn newest_session(agent: &Agent, cwd: PathBuf) -> anyhow::Result<SessionId> {
    let query = ListQuery {
        folder: Some(cwd.clone()),
        limit: 1,
        ..ListQuery::default()
    };
    let page = agent.list(query).await?;
    let newest = page.sessions.into_iter().next().with_context(|| {
        format!(
            "no session was held in {} yet; leave out --continue",
            cwd.display()
        )
    })?;
    Ok(newest.id)
}

/// Checks that the model accepts images, recordings and documents, as far as that is known without calling it.
pub(super) fn check_media_support(
    agent: &Agent,
    name: &ModelName,
    content: &[Content],
) -> anyhow::Result<()> {
    let pictures = content.iter().any(|it| matches!(it, Content::Image(_)));
    ensure!(
        !pictures || agent.models().model(name)?.info().images,
        "{name} takes no pictures; choose another model, or say images = true for it in config.toml"
    );
    let recordings = content.iter().any(|it| matches!(it, Content::Audio(_)));
    ensure!(
        !recordings || agent.models().model(name)?.info().audio,
        "{name} takes no recordings; choose another model, or say audio = true in config.toml for \
         one of an OpenAI-compatible server that does"
    );
    let documents = content.iter().any(|it| matches!(it, Content::Document(_)));
    ensure!(
        !documents || agent.models().model(name)?.info().documents,
        "{name} takes no documents; choose another model, extract the text first, or say \
         documents = true for it in config.toml"
    );
    Ok(())
}

/// Queries providers for their lists, for a short time, if a model is not well known: its list may state its context
/// window and its price. Returns true if lists were queried.
pub(super) async fn query_unlisted(agent: &Agent, models: &[&ModelName]) -> bool {
    let is_unlisted = |it: &&ModelName| agent.models().has_key(it) && !is_listed_model(&it.model);
    if !models.iter().any(is_unlisted) {
        return false;
    }
    let Some(queries) = agent.models().missing_lists() else {
        return false;
    };
    let _ = tokio::time::timeout(LOCAL_TIMEOUT, queries).await;
    true
}

/// Checks that the prices of all models are known if there is a cost limit.
pub(super) fn check_prices(
    agent: &Agent,
    limits: &Limits,
    models: Vec<&ModelName>,
) -> Result<(), UnknownPriceError> {
    if limits.cost.is_some() {
        for model in models {
            known_price(agent.models(), model)?;
        }
    }
    Ok(())
}
