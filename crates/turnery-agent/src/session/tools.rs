//! Combines a session's own tools with those of its MCP servers.

use super::{
    PromptError, SessionTask,
    command::PromptKind,
    prompt_guard::{GuardOutcome, PromptGuard},
    prompt_run::PromptScope,
};
use crate::{Client, agent::overhead, ask_user};
use std::{sync::Arc, time::Duration};
use tokio::sync::watch;
use turnery_engine::{CommitError, Content};
use turnery_tools::{Servers, Toolbox};

/// Sources of a session's toolbox.
pub(crate) struct SessionTools {
    /// Tools without any server's.
    base: Toolbox,
    servers: Option<Arc<Servers>>,
    news: Option<watch::Receiver<u64>>,
}

impl SessionTools {
    pub(crate) fn new(base: Toolbox, servers: Option<Arc<Servers>>) -> Self {
        let news = servers.as_ref().map(|servers| {
            let mut news = servers.news();
            // The tool that waits for starting servers is needed from the first call.
            news.mark_changed();
            news
        });
        Self {
            base,
            news,
            servers,
        }
    }

    /// Returns the tools for a candidate, without `ask_user`.
    pub(super) fn withheld(&self, client: &dyn Client) -> Self {
        Self::new(
            ask_user::without_ask_user(&self.base, client),
            self.servers.clone(),
        )
    }

    /// Starts to connect to the servers in the background.
    pub(super) fn start(&self) {
        if let Some(servers) = &self.servers {
            servers.start();
        }
    }

    pub(super) fn servers(&self) -> Option<Arc<Servers>> {
        self.servers.clone()
    }

    /// Returns the toolbox for a call. If it lacks the tool but a connecting server may have it, waits for
    /// that server, for a bounded time.
    pub(super) fn toolbox_for_call(
        &self,
        toolbox: &Toolbox,
        name: &str,
    ) -> impl Future<Output = Toolbox> + Send + use<> {
        let servers = self.servers.clone();
        let coming = servers.filter(|it| toolbox.get(name).is_none() && it.may_have_tool(name));
        let (base, toolbox, name) = (self.base.clone(), toolbox.clone(), name.to_owned());
        async move {
            match coming {
                Some(servers) => {
                    servers.wait_for_server_of_tool(&name).await;
                    base.with_extra_tools(servers.tools())
                }
                None => toolbox,
            }
        }
    }

    /// Returns the toolbox if it has changed since the last call.
    fn take_changed(&mut self) -> Option<Toolbox> {
        let (Some(servers), Some(news)) = (&self.servers, &mut self.news) else {
            return None;
        };
        // An error means that the servers are gone: nothing changes any more.
        if !news.has_changed().unwrap_or(false) {
            return None;
        }
        news.mark_unchanged();
        Some(self.base.clone().with_extra_tools(servers.tools()))
    }
}

impl SessionTask {
    /// Updates the tools that the model sees.
    pub(super) fn refresh_tools(&mut self) {
        if let Some(toolbox) = self.tools.take_changed() {
            self.overhead = overhead(&toolbox, &self.settings.system);
            self.toolbox = toolbox;
        }
    }

    /// Waits for connecting servers if the prompt names one of their tools. For a prompt that an MCP server
    /// generates, waits until that server is connected or has failed, and requests the content. Returns at
    /// once after a cancel, which the loop then handles.
    pub(super) async fn wait_for_servers(
        &mut self,
        work: PromptKind,
        scope: &PromptScope,
        watch: &mut PromptGuard,
    ) -> Result<PromptKind, PromptError> {
        let Some(servers) = self.tools.servers() else {
            return Ok(work);
        };
        let asked = async {
            match &work {
                PromptKind::Server {
                    command,
                    args,
                    extra_content,
                } => {
                    servers.wait_for_server_of_prompt(command).await;
                    let written = servers.prompt(command, args, &scope.trace).await;
                    written.map(|mut content| {
                        content.extend(extra_content.iter().cloned());
                        Some(PromptKind::Say(content))
                    })
                }
                PromptKind::Say(content) | PromptKind::Branch(_, content) => {
                    for text in content.iter().filter_map(Content::as_text) {
                        servers.wait_for_servers_named_in(text).await;
                    }
                    Ok(None)
                }
                PromptKind::Continue | PromptKind::Rerun(_) | PromptKind::Compact => Ok(None),
            }
        };
        let written = match watch.run_guarded(self, asked, Duration::ZERO).await {
            GuardOutcome::Done(written) => written.map_err(PromptError::Server)?,
            GuardOutcome::Cancelled => None,
            GuardOutcome::LaneLost => return Err(PromptError::Lost(CommitError::LaneLost)),
        };
        self.refresh_tools();
        Ok(written.unwrap_or(work))
    }
}
