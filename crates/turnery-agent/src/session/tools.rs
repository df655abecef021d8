//! Tools: what a session can call: its own tools, and those of its MCP servers by now.

use super::{
    PromptError, Task,
    mail::Work,
    prompting::Scope,
    watch::{Attended, Watch},
};
use crate::{Client, agent::overhead, ask_user};
use std::{sync::Arc, time::Duration};
use tokio::sync::watch;
use turnery_engine::{CommitFault, Content};
use turnery_tools::{Servers, Toolbox};

/// Where the toolbox of a session comes from.
pub(crate) struct Tools {
    /// What there is without any server.
    own: Toolbox,
    servers: Option<Arc<Servers>>,
    news: Option<watch::Receiver<u64>>,
}

impl Tools {
    pub(crate) fn new(own: Toolbox, servers: Option<Arc<Servers>>) -> Self {
        let news = servers.as_ref().map(|servers| {
            let mut news = servers.news();
            // There is a tool for servers that are starting, from the first call on.
            news.mark_changed();
            news
        });
        Self { own, news, servers }
    }

    /// The same for a candidate, which works out of the person's sight.
    pub(super) fn withheld(&self, client: &dyn Client) -> Self {
        Self::new(ask_user::withheld(&self.own, client), self.servers.clone())
    }

    /// Connect to the servers, in the background.
    pub(super) fn start(&self) {
        if let Some(servers) = &self.servers {
            servers.start();
        }
    }

    pub(super) fn servers(&self) -> Option<Arc<Servers>> {
        self.servers.clone()
    }

    /// The toolbox for a call. A tool that it lacks may be of a server that is connecting: then this waits for
    /// that server, for a bounded time.
    pub(super) fn for_call(
        &self,
        toolbox: &Toolbox,
        name: &str,
    ) -> impl Future<Output = Toolbox> + Send + use<> {
        let servers = self.servers.clone();
        let coming = servers.filter(|it| toolbox.get(name).is_none() && it.may_have_tool(name));
        let (own, toolbox, name) = (self.own.clone(), toolbox.clone(), name.to_owned());
        async move {
            match coming {
                Some(servers) => {
                    servers.settled_for_tool(&name).await;
                    own.and_all(servers.tools())
                }
                None => toolbox,
            }
        }
    }

    /// The toolbox, if it is another one since it was last asked for.
    fn changed(&mut self) -> Option<Toolbox> {
        let (Some(servers), Some(news)) = (&self.servers, &mut self.news) else {
            return None;
        };
        // An error means that the servers are gone with all their tasks: then nothing changes any more.
        if !news.has_changed().unwrap_or(false) {
            return None;
        }
        news.mark_unchanged();
        Some(self.own.clone().and_all(servers.tools()))
    }
}

impl Task {
    /// What the model is told of from now on.
    pub(super) fn refresh_tools(&mut self) {
        if let Some(toolbox) = self.tools.changed() {
            self.overhead = overhead(&toolbox, &self.settings.system);
            self.toolbox = toolbox;
        }
    }

    /// Waits for servers that are still connecting if the prompt names one of their tools; or lets one of them write
    /// the prompt, if that is what is to be said, and waits for that one until it is connected or has failed. After a cancel nothing of it is waited for: the loop
    /// then begins with its cancel.
    pub(super) async fn with_servers(
        &mut self,
        work: Work,
        scope: &Scope,
        watch: &mut Watch,
    ) -> Result<Work, PromptError> {
        let Some(servers) = self.tools.servers() else {
            return Ok(work);
        };
        let asked = async {
            match &work {
                Work::Server {
                    command,
                    typed,
                    rest,
                } => {
                    servers.settled_for_prompt(command).await;
                    let written = servers.prompt(command, typed, &scope.trace).await;
                    written.map(|mut content| {
                        content.extend(rest.iter().cloned());
                        Some(Work::Say(content))
                    })
                }
                Work::Say(content) | Work::Branch(_, content) => {
                    for text in content.iter().filter_map(Content::as_text) {
                        servers.settled_for_text(text).await;
                    }
                    Ok(None)
                }
                Work::Continue | Work::Rerun(_) | Work::Compact => Ok(None),
            }
        };
        let written = match watch.attend(self, asked, Duration::ZERO).await {
            Attended::Done(written) => written.map_err(PromptError::Server)?,
            Attended::Cancelled => None,
            Attended::LaneLost => return Err(PromptError::Lost(CommitFault::LaneLost)),
        };
        self.refresh_tools();
        Ok(written.unwrap_or(work))
    }
}
