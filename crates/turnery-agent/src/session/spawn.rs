//! Spawns the task that serves a session.

use super::{
    BackgroundWork, SessionOptions, SessionTools,
    command::COMMAND_QUEUE_CAPACITY,
    conversation::Conversation,
    counter::SharedCounter,
    effect_delivery::EffectOutbox,
    env::SessionEnv,
    handle::{Session, SessionShared},
    inbox::Inbox,
    output::SessionOutput,
    queued_prompts::QueueWatch,
    system_prompt::SystemPrompt,
    task::SessionTask,
};
use crate::{ask_user, client::Outbox, observe::observer_channel};
use std::sync::Arc;
use tokio::sync::{mpsc, watch};
use turnery_engine::LoopRecord;
use turnery_store::{Owner, SessionInfo};
use turnery_tools::McpServers;

/// Parts from which a session task is started.
pub(crate) struct SessionParts<'a> {
    pub(crate) env: SessionEnv,
    pub(crate) outbox: Box<dyn Outbox>,
    /// MCP servers; `None` in a child session, which uses its parent's.
    pub(crate) servers: Option<Arc<McpServers>>,
    pub(crate) info: SessionInfo,
    /// Number of damaged places in the history that the model sees.
    pub(crate) damaged_places: usize,
    /// Stored loops of the active branch.
    pub(crate) chain: &'a [Arc<LoopRecord>],
}

impl SessionParts<'_> {
    /// Spawns the task that serves the session.
    pub(crate) fn spawn(self) -> Session {
        let Self {
            mut env,
            outbox,
            servers,
            info,
            damaged_places,
            chain,
        } = self;
        let system = SystemPrompt::new(Arc::clone(&env.settings.system), damaged_places);
        let conversation = Conversation::new(info, system, chain);
        let info = &conversation.info;
        env.settings.system = Arc::clone(conversation.system.current());
        env.toolbox = ask_user::with_ask_user(env.toolbox, &env.client, &info.id);
        let settings = &env.settings;
        if settings.effect_handler.is_some() {
            let policy = &settings.effect_policy;
            let own = || EffectOutbox::new(info.id.clone(), policy.clone());
            env.effect_outbox.get_or_insert_with(own);
        }
        let options = SessionOptions {
            mode: env.policy.mode,
            model: Arc::new(env.model.info().clone()),
            thinking: settings.thinking,
            protocol: settings.protocol,
            sandbox: settings
                .sandbox
                .describe(env.workspace.terminals().is_some())
                .into(),
            custom_commands: Arc::clone(&settings.custom_commands),
        };
        let (options, receiver) = watch::channel(options);
        let (sender, mailbox) = mpsc::channel(COMMAND_QUEUE_CAPACITY);
        let (publisher, events) = observer_channel();
        let shared = SessionShared {
            id: info.id.clone(),
            mailbox: sender,
            store: Arc::clone(&env.store),
            observable: events,
            options: receiver,
            models: Arc::clone(&env.models),
            configured_model: settings.model.clone(),
            servers: servers.clone(),
            all: Arc::default(),
            open: SharedCounter::default(),
            interjections: SharedCounter::default(),
        };
        let runs_queued =
            settings.runs_queued_prompts && env.depth == 0 && outbox.shows_other_prompts();
        let queue_watch = runs_queued.then(|| {
            let mut watch = QueueWatch {
                store: Arc::clone(&env.store),
                session_id: info.id.clone(),
                active_prompts: shared.open.clone(),
                cancel_all: Arc::clone(&shared.all),
                search: None,
            };
            // Nothing waits in a new session.
            if info.head_version > 0 {
                watch.begin_on_request(false);
            }
            watch
        });
        let task = SessionTask {
            tools: SessionTools::new(env.toolbox.clone(), servers),
            env,
            conversation,
            owner: Owner::for_this_process(),
            options,
            inbox: Inbox::new(mailbox),
            output: SessionOutput::new(outbox, publisher),
            interpreter: Arc::default(),
            background: BackgroundWork::default(),
            queue_watch,
            group: None,
        };
        tokio::spawn(task.serve());
        shared.into()
    }
}
