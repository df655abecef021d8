//! Job: what a run is to do, and in which session.

use super::tries::TryArgs;
use crate::{args::How, config::Choice, parts::folder};
use anyhow::{Context as _, ensure};
use std::path::PathBuf;
use turnery_agent::{
    Agent, CancellationToken, OpenRequest, Ports, PromptOptions, Session, Ticket, UnknownPrice,
    known_price,
};
use turnery_engine::{Content, Limits, LoopId, SessionId};
use turnery_models::ModelName;
use turnery_store::{ListQuery, SessionInfo, Store};

/// What is to be done, where, and how it is to be shown.
pub(crate) struct Job {
    pub(crate) work: Work,
    pub(crate) place: Place,
    pub(crate) how: How,
}

/// What is to be done.
pub(crate) enum Work {
    /// Say this to the model.
    Say(Vec<Content>),
    /// The same, to several models at once (LOOP-70).
    Try(TryArgs, Vec<Content>),
    /// Let the model go on (LOOP-18).
    GoOn,
    /// Run a loop again, the last one unless said (LOOP-19).
    Rerun(Option<String>),
    /// Go on from the end of a loop with something else (LOOP-20).
    Branch(String, Vec<Content>),
    /// Summarise older messages (LOOP-21).
    Compact,
}

/// The session to do it in.
pub(crate) enum Place {
    /// A new one in this folder.
    New(Option<PathBuf>),
    /// The newest of this folder.
    Newest(Option<PathBuf>),
    /// This one, which must be this folder's.
    Here(String, Option<PathBuf>),
    /// This one, in its own folder.
    There(String),
}

impl Work {
    /// What is new to the model.
    pub(super) fn content(&self) -> &[Content] {
        match self {
            Self::Say(content) | Self::Try(_, content) | Self::Branch(_, content) => content,
            Self::GoOn | Self::Rerun(_) | Self::Compact => &[],
        }
    }

    /// The models that it calls in a session that uses `own`.
    pub(super) fn models<'a>(&'a self, own: &'a ModelName) -> Vec<&'a ModelName> {
        match self {
            Self::Try(tries, _) => tries.called(own),
            Self::Say(_) | Self::GoOn | Self::Rerun(_) | Self::Branch(..) | Self::Compact => {
                vec![own]
            }
        }
    }

    /// Begin it.
    pub(super) async fn start(
        self,
        session: &Session,
        store: &dyn Store,
        cancel: CancellationToken,
    ) -> anyhow::Result<Ticket> {
        let options = PromptOptions::cancelled_by(cancel);
        Ok(match self {
            Self::Say(content) => session.prompt(filled(session, content), options)?,
            Self::Try(tries, content) => tries.start(session, filled(session, content), options)?,
            Self::GoOn => session.go_on(options)?,
            Self::Compact => session.compact(options)?,
            Self::Rerun(None) => session.rerun(None, options)?,
            Self::Rerun(Some(text)) => {
                let which = named(store, session.id(), &text).await?;
                session.rerun(Some(which), options)?
            }
            Self::Branch(text, content) => {
                let from = named(store, session.id(), &text).await?;
                session.branch(from, filled(session, content), options)?
            }
        })
    }
}

/// What a command of the user's or the project's stands for, if the prompt is one; else the prompt.
fn filled(session: &Session, mut content: Vec<Content>) -> Vec<Content> {
    if let Some(Content::Text { text }) = content.first_mut()
        && let Some(filled) = session.options().filled(text)
    {
        *text = filled;
    }
    content
}

/// The loop that a person means: by its id, or by its number, the last part of the id.
async fn named(store: &dyn Store, id: &SessionId, text: &str) -> anyhow::Result<LoopId> {
    let loops = store.loops(id, 0).await?;
    let found = loops
        .iter()
        .map(|record| &record.loop_id)
        .find(|loop_id| loop_id.as_str() == text || number(loop_id) == text);
    found.cloned().with_context(|| {
        format!("session {id} has no loop {text}; `turnery sessions show {id}` lists them")
    })
}

/// The number of a loop in its session.
pub(crate) fn number(id: &LoopId) -> &str {
    id.as_str().rsplit('.').next().unwrap_or_default()
}

/// The session to work in.
pub(super) async fn open(
    agent: &Agent,
    store: &dyn Store,
    place: &Place,
    ports: Ports,
    flags: &Choice,
) -> anyhow::Result<Session> {
    let (id, request) = match place {
        Place::New(cwd) => {
            let request = OpenRequest::folder(folder(cwd.clone())?);
            return Ok(agent.create(request, |_| ports).await?);
        }
        Place::Newest(cwd) => {
            let cwd = folder(cwd.clone())?;
            (newest(agent, cwd.clone()).await?, OpenRequest::folder(cwd))
        }
        Place::Here(id, cwd) => {
            let request = OpenRequest::folder(folder(cwd.clone())?);
            (SessionId::from(id.as_str()), request)
        }
        Place::There(id) => {
            let id = SessionId::from(id.as_str());
            let SessionInfo { cwd, roots, .. } = store.info(&id).await?;
            (
                id,
                OpenRequest {
                    cwd,
                    roots,
                    mcp: Vec::new(),
                    instructions: None,
                },
            )
        }
    };
    let session = agent.open(&id, request, false, |_| ports).await?;
    // A session keeps its own settings; what the command line says is newer.
    if let Some(model) = &flags.model {
        session.set_model(&model.to_string()).await?;
    }
    if let Some(mode) = flags.mode {
        session.set_mode(mode).await?;
    }
    if let Some(thinking) = flags.thinking {
        session.set_thinking(thinking).await?;
    }
    Ok(session)
}

async fn newest(agent: &Agent, cwd: PathBuf) -> anyhow::Result<SessionId> {
    let query = ListQuery {
        cwd: Some(cwd.clone()),
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

/// Whether the model can do what it is asked, as far as that is known without calling it.
pub(super) fn check(agent: &Agent, name: &ModelName, content: &[Content]) -> anyhow::Result<()> {
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
    Ok(())
}

/// Whether a limit of money can be kept with these models.
pub(super) fn check_prices(
    agent: &Agent,
    limits: &Limits,
    models: Vec<&ModelName>,
) -> Result<(), UnknownPrice> {
    if limits.cost.is_some() {
        for model in models {
            known_price(agent.models(), model)?;
        }
    }
    Ok(())
}
