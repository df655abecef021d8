//! Servers: all servers of one session.

use super::{
    McpServer, Way,
    child::Child,
    http::Http,
    link::{Link, LinkTask, Plan, Seen},
    list_resources::ListResources,
    names, offer,
    prompts::{self, McpPrompt},
    reach::{Reach, Reached},
    read_resource::ReadResource,
    secrets::Secrets,
    told::Told,
    tool::ServerTool,
    wait_for_server::{self, WaitForServer},
};
use crate::{Tool, TraceContext, shell::HIDDEN_ENV};
use futures_util::future::{BoxFuture, join_all, ready};
use std::{
    collections::HashSet,
    fmt,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::sync::watch;
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use turnery_engine::Content;

/// How long a server may take to connect. What uses it waits as long.
const BOUND: Duration = Duration::from_secs(20);
/// How long a call may take, unless the server was given with another time.
const TIMEOUT: Duration = Duration::from_secs(120);

/// What servers are started with.
#[derive(Clone, Debug, Default)]
pub struct Launch {
    /// The folders of the session, its working directory first.
    pub roots: Vec<PathBuf>,
    /// Variables that no server inherits, besides those of [`HIDDEN_ENV`]. A `*` in front stands for
    /// anything.
    pub hidden_env: Vec<String>,
}

/// How a server is, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerStatus {
    /// What people call it.
    pub name: String,
    /// What its tools are called here.
    pub tools: Vec<String>,
    /// How many tools it has that are not offered, since there are too many, or they are too large.
    pub left_out: usize,
    /// What is wrong with it, if anything is.
    pub trouble: Option<String>,
}

/// The servers of one session. They end when it is closed or dropped.
pub struct Servers {
    links: Vec<Arc<Link>>,
    /// Until they are started.
    tasks: Mutex<Vec<LinkTask>>,
    news: watch::Receiver<u64>,
    stop: CancellationToken,
    running: TaskTracker,
}

impl fmt::Debug for Servers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.links.iter().map(|link| &link.name);
        f.debug_set().entries(names).finish()
    }
}

impl Servers {
    /// Name of the tool that waits for a server that is starting.
    pub const WAIT_TOOL: &str = wait_for_server::NAME;

    /// These servers. Nothing is started yet.
    #[must_use]
    pub fn new(servers: &[McpServer], launch: &Launch) -> Self {
        let hidden = HIDDEN_ENV.iter().copied();
        let hidden = hidden.chain(launch.hidden_env.iter().map(String::as_str));
        let hidden_env: Arc<[String]> = hidden.map(str::to_uppercase).collect();
        let cwd = launch.roots.first().cloned().unwrap_or_default();
        let reaching = servers.iter().map(|server| {
            let name: Arc<str> = offer::line(&server.name).into();
            let secrets = Secrets::of(&server.way);
            let reach: Box<dyn Reach> = match &server.way {
                Way::Stdio { command, args, env } => Box::new(Child {
                    server: Arc::clone(&name),
                    command: command.clone(),
                    args: args.clone(),
                    env: env.clone(),
                    cwd: cwd.clone(),
                    hidden_env: Arc::clone(&hidden_env),
                    secrets: secrets.clone(),
                }),
                Way::Http { url, headers } => Box::new(Http {
                    url: url.clone(),
                    headers: headers.clone(),
                }),
                Way::Not(why) => Box::new(Unreachable(why.clone())),
            };
            (name, server.timeout.unwrap_or(TIMEOUT), secrets, reach)
        });
        Self::reached_by(reaching, &launch.roots)
    }

    /// Servers of these names, reached in these ways.
    pub(super) fn reached_by(
        servers: impl Iterator<Item = (Arc<str>, Duration, Secrets, Box<dyn Reach>)>,
        roots: &[PathBuf],
    ) -> Self {
        let (news, read) = watch::channel(0);
        let mut slugs = HashSet::new();
        let (links, tasks) = servers
            .map(|(name, timeout, secrets, reach)| {
                let (link, task) = Link::new(Plan {
                    slug: names::of_server(&name, &mut slugs),
                    name,
                    timeout,
                    bound: BOUND,
                    secrets,
                    reach,
                    roots: roots.into(),
                    news: news.clone(),
                });
                (Arc::new(link), task)
            })
            .unzip();
        Self {
            links,
            tasks: Mutex::new(tasks),
            news: read,
            stop: CancellationToken::new(),
            running: TaskTracker::new(),
        }
    }

    /// The same, with nothing about them in the log: for a caller that shows [`status`](Self::status).
    #[must_use]
    pub fn unlogged(self) -> Self {
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        tasks.iter_mut().for_each(LinkTask::keep_out_of_log);
        drop(tasks);
        self
    }

    /// Connect to all of them, in the background. Needs a tokio runtime.
    pub fn start(&self) {
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        for task in tasks.drain(..) {
            self.running.spawn(task.serve(self.stop.clone()));
        }
    }

    /// Wait until each of them is connected or has failed, which takes a bounded time.
    pub async fn settled(&self) {
        join_all(self.links.iter().map(|link| link.settled())).await;
    }

    /// Waits until the servers whose tools this text names are connected or have failed. Prompts wait for no others:
    /// the model gets a tool to wait with, and the tools of a server once it is connected.
    pub async fn settled_for_text(&self, text: &str) {
        let is_named =
            |link: &&Arc<Link>| text.contains(&format!("{}__", names::of_all(&link.slug)));
        let named = self.links.iter().filter(is_named);
        join_all(named.map(|link| link.settled())).await;
    }

    /// Whether a tool of that name may be offered by a server that is connecting.
    #[must_use]
    pub fn may_have_tool(&self, name: &str) -> bool {
        self.seen()
            .any(|(link, seen)| !seen.settled && names::is_of(name, &link.slug))
    }

    /// Wait until the server whose tool has that name is connected or has failed.
    pub async fn settled_for_tool(&self, name: &str) {
        let its = self.links.iter();
        let its = its.filter(|link| names::is_of(name, &link.slug));
        join_all(its.map(|link| link.settled())).await;
    }

    /// Wait until the server whose prompt is that command is connected or has failed.
    pub async fn settled_for_prompt(&self, command: &str) {
        let slug = command.split_once(':').map_or(command, |(slug, _)| slug);
        let its = self.links.iter().filter(|link| link.slug == slug);
        join_all(its.map(|link| link.settled())).await;
    }

    /// End them all, and wait until they are gone, which takes a bounded time.
    pub async fn close(&self) {
        self.stop.cancel();
        self.tasks
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clear();
        self.running.close();
        self.running.wait().await;
    }

    /// Counts what has changed: see it grow to look at the tools, prompts and states again.
    #[must_use]
    pub fn news(&self) -> watch::Receiver<u64> {
        self.news.clone()
    }

    /// Ready once they are ended.
    pub fn closed(&self) -> impl Future<Output = ()> + Send + use<> {
        self.stop.clone().cancelled_owned()
    }

    /// The tools of all of them by now, those that read their resources, and one to wait for those that are starting. As many as model APIs take.
    #[must_use]
    pub fn tools(&self) -> Vec<Arc<dyn Tool>> {
        let mut tools: Vec<Arc<dyn Tool>> = Vec::new();
        let mut with_resources = Vec::new();
        let mut starting = Vec::new();
        for (link, seen) in self.seen() {
            if !seen.settled {
                starting.push(Arc::clone(link));
            }
            let Some(offer) = seen.offer else { continue };
            let mut taken = HashSet::new();
            for it in &offer.tools {
                let name = names::of_tool(&link.slug, &it.name, &mut taken);
                tools.push(Arc::new(ServerTool::new(name, it, Arc::clone(link))));
            }
            if offer.resources {
                with_resources.push(Arc::clone(link));
            }
        }
        tools.truncate(offer::MOST);
        if !with_resources.is_empty() {
            tools.push(Arc::new(ListResources::new(with_resources.clone())));
            tools.push(Arc::new(ReadResource::new(with_resources)));
        }
        if !starting.is_empty() {
            tools.push(Arc::new(WaitForServer::new(starting)));
        }
        tools
    }

    /// The prompts of all of them by now.
    #[must_use]
    pub fn prompts(&self) -> Vec<McpPrompt> {
        let of = |(link, seen): (&Arc<Link>, Seen)| {
            let prompts = seen.offer.iter().flat_map(|offer| &offer.prompts);
            prompts
                .map(|prompt| McpPrompt::new(link, prompt))
                .collect::<Vec<_>>()
        };
        self.seen().flat_map(of).collect()
    }

    /// Whether a prompt of that name is theirs, or may be, as long as its server is connecting.
    #[must_use]
    pub fn may_have_prompt(&self, command: &str) -> bool {
        let of = |(link, seen): (&Arc<Link>, Seen)| {
            let prompts = seen.offer.iter().flat_map(|offer| &offer.prompts);
            let mut names = prompts.map(|prompt| prompts::command(link, prompt));
            let is_its = command
                .split_once(':')
                .is_some_and(|(slug, _)| slug == link.slug);
            is_its && (!seen.settled || names.any(|name| name == command))
        };
        self.seen().any(of)
    }

    /// What a prompt says with these arguments. The error is for people.
    pub async fn prompt(
        &self,
        command: &str,
        typed: &str,
        trace: &TraceContext,
    ) -> Result<Vec<Content>, String> {
        for (link, seen) in self.seen() {
            let offer = seen.offer.unwrap_or_default();
            let of_it = |prompt: &&rmcp::model::Prompt| prompts::command(link, prompt) == command;
            if let Some(prompt) = offer.prompts.iter().find(of_it) {
                return prompts::get(link, prompt, typed, trace).await;
            }
        }
        Err(format!("no MCP server offers /{command} any more"))
    }

    /// How each of them is.
    #[must_use]
    pub fn status(&self) -> Vec<ServerStatus> {
        let mut room = offer::MOST;
        let of = |(link, seen): (&Arc<Link>, Seen)| {
            let offer = seen.offer.unwrap_or_default();
            let mut taken = HashSet::new();
            let tools = offer.tools.iter().take(room);
            let tools: Vec<String> = tools
                .map(|it| names::of_tool(&link.slug, &it.name, &mut taken))
                .collect();
            room -= tools.len();
            ServerStatus {
                name: link.name.to_string(),
                left_out: offer.left_out + offer.tools.len() - tools.len(),
                tools,
                trouble: seen.trouble.map(|why| why.to_string()),
            }
        };
        self.seen().map(of).collect()
    }

    fn seen(&self) -> impl Iterator<Item = (&Arc<Link>, Seen)> {
        self.links.iter().map(|link| (link, link.seen()))
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// A server that was given in a way that cannot be used.
struct Unreachable(String);

impl Reach for Unreachable {
    fn reach(&self, _told: Told) -> BoxFuture<'_, Result<Reached, String>> {
        Box::pin(ready(Err(self.0.clone())))
    }
}
