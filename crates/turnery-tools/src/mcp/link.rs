//! Link: the task of one server, and what others see of it.
//!
//! The task alone holds the connection. It connects when it begins, lists what there is, and lists it
//! again when the server says so. Whoever wants to use the server asks the task for it: then one that has
//! died is started again, once for each use, and not for ever.

use super::{
    child::Process,
    offer::{self, Offer},
    reach::Reach,
    secrets::Secrets,
    told::{Listeners, Told},
};
use futures_util::{
    FutureExt as _,
    future::{BoxFuture, Shared},
};
use rmcp::{
    RoleClient,
    service::{Peer, RunningServiceCancellationToken},
};
use std::{sync::Arc, time::Duration};
use tokio::{
    sync::{mpsc, oneshot, watch},
    time::{Instant, timeout},
};
use tokio_util::sync::CancellationToken;

/// Uses of a server that may wait for it at once.
const ORDERS: usize = 64;
/// A server that lives shorter than this may soon die again.
const SHORT_LIFE: Duration = Duration::from_secs(60);
/// How long a connection may take to end once its server is gone or its end was ordered.
const LONGEST_CLOSE: Duration = Duration::from_millis(500);
/// So many short lives on end are enough.
const SHORT_LIVES: u32 = 3;

/// A wish to use the server.
type Order = oneshot::Sender<Result<Peer<RoleClient>, String>>;

/// What is known of a server.
#[derive(Clone, Default)]
pub(super) struct Seen {
    /// The first try to connect is over, however it ended.
    pub(super) settled: bool,
    /// What it had when it was last listed.
    pub(super) offer: Option<Arc<Offer>>,
    /// What is wrong with it now.
    pub(super) trouble: Option<Arc<str>>,
}

/// A server, for those who use it.
pub(super) struct Link {
    /// What people call it.
    pub(super) name: Arc<str>,
    /// What it is called in names of tools.
    pub(super) slug: String,
    /// How long a call may take.
    pub(super) timeout: Duration,
    pub(super) secrets: Secrets,
    pub(super) listeners: Listeners,
    seen: watch::Receiver<Seen>,
    orders: mpsc::Sender<Order>,
}

/// The task.
pub(super) struct LinkTask {
    reach: Box<dyn Reach>,
    told: Told,
    secrets: Secrets,
    /// How long it may take to connect.
    bound: Duration,
    seen: watch::Sender<Seen>,
    /// Counts what has changed, over all servers of the session.
    news: watch::Sender<u64>,
    orders: mpsc::Receiver<Order>,
    changed: mpsc::Receiver<()>,
    short_lives: u32,
    /// Whether what is wrong is said in the log.
    logs: bool,
}

/// What a link is made of.
pub(super) struct Plan {
    pub(super) name: Arc<str>,
    pub(super) slug: String,
    pub(super) timeout: Duration,
    pub(super) bound: Duration,
    pub(super) secrets: Secrets,
    pub(super) reach: Box<dyn Reach>,
    pub(super) roots: Arc<[std::path::PathBuf]>,
    pub(super) news: watch::Sender<u64>,
}

/// A connection.
struct Live {
    peer: Peer<RoleClient>,
    /// Polled through clones only: more than one place waits for it.
    over: Shared<BoxFuture<'static, ()>>,
    stop: RunningServiceCancellationToken,
    process: Option<Process>,
    since: Instant,
}

impl Link {
    /// A link, and its task, which does nothing yet.
    pub(super) fn new(plan: Plan) -> (Self, LinkTask) {
        let (orders, ordered) = mpsc::channel(ORDERS);
        let (changing, changed) = mpsc::channel(1);
        let (seen, see) = watch::channel(Seen::default());
        let listeners = Listeners::default();
        let link = Self {
            name: Arc::clone(&plan.name),
            slug: plan.slug,
            timeout: plan.timeout,
            secrets: plan.secrets.clone(),
            listeners: listeners.clone(),
            seen: see,
            orders,
        };
        let task = LinkTask {
            reach: plan.reach,
            told: Told {
                server: plan.name,
                listeners,
                changed: changing,
                roots: plan.roots,
            },
            secrets: plan.secrets,
            bound: plan.bound,
            seen,
            news: plan.news,
            orders: ordered,
            changed,
            short_lives: 0,
            logs: true,
        };
        (link, task)
    }

    /// What is known of it by now.
    pub(super) fn seen(&self) -> Seen {
        self.seen.borrow().clone()
    }

    /// Wait until the first try to connect is over.
    pub(super) async fn settled(&self) {
        // An error means that the task is gone, which settles it too.
        let _ = self.seen.clone().wait_for(|seen| seen.settled).await;
    }

    /// The server, started again if it has died.
    pub(super) async fn peer(&self) -> Result<Peer<RoleClient>, String> {
        let gone = |_| "its session is over".to_owned();
        let (reply, answer) = oneshot::channel();
        self.orders.send(reply).await.map_err(|_| gone(()))?;
        answer.await.map_err(|_| gone(()))?
    }
}

impl LinkTask {
    /// What is wrong is told by its [`Link`] alone.
    pub(super) fn keep_out_of_log(&mut self) {
        self.logs = false;
    }

    /// Serve until `stop` fires; then the server is gone.
    pub(super) async fn serve(mut self, stop: CancellationToken) {
        let mut live = self.connect(&stop).await;
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => break,
                () = over(&mut live) => {
                    if let Some(dead) = live.take() {
                        self.died(dead).await;
                    }
                }
                order = self.orders.recv() => match order {
                    Some(reply) => {
                        live = self.revived(live, &stop).await;
                        let _ = reply.send(self.answer(live.as_ref()));
                    }
                    None => break,
                },
                Some(()) = self.changed.recv() => {
                    if let Some(live) = &live {
                        self.list_again(&live.peer, &stop).await;
                    }
                }
            }
        }
        if let Some(live) = live {
            live.end().await;
        }
    }

    fn answer(&self, live: Option<&Live>) -> Result<Peer<RoleClient>, String> {
        match live {
            Some(live) => Ok(live.peer.clone()),
            None => {
                let trouble = self.seen.borrow().trouble.clone();
                Err(trouble.map_or_else(|| "it is not connected".to_owned(), |why| why.to_string()))
            }
        }
    }

    /// The connection, or a new one in its place if it is dead.
    async fn revived(&mut self, live: Option<Live>, stop: &CancellationToken) -> Option<Live> {
        match live {
            Some(live) if !live.peer.is_transport_closed() => return Some(live),
            Some(dead) => self.died(dead).await,
            None => {}
        }
        if self.short_lives > SHORT_LIVES {
            self.tell(Some(
                "it ends again and again, so it is not started any more".to_owned(),
            ));
            return None;
        }
        self.connect(stop).await
    }

    async fn connect(&mut self, stop: &CancellationToken) -> Option<Live> {
        let attempt = async {
            let reached = self.reach.reach(self.told.clone()).await?;
            let offer = offer::list(reached.service.peer()).await?;
            Ok((reached, offer))
        };
        let made = tokio::select! {
            biased;
            () = stop.cancelled() => return None,
            made = timeout(self.bound, attempt) => made,
        };
        let made = made.unwrap_or_else(|_| {
            Err(format!(
                "it was not ready within {} s",
                self.bound.as_secs()
            ))
        });
        match made {
            Ok((reached, offer)) => {
                self.seen.send_modify(|seen| {
                    seen.trouble = None;
                    seen.offer = Some(Arc::new(offer));
                });
                self.settle();
                Some(Live {
                    peer: reached.service.peer().clone(),
                    stop: reached.service.cancellation_token(),
                    over: async move {
                        let _ = reached.service.waiting().await;
                    }
                    .boxed()
                    .shared(),
                    process: reached.process,
                    since: Instant::now(),
                })
            }
            Err(why) => {
                self.short_lives += 1;
                self.tell(Some(why));
                None
            }
        }
    }

    async fn died(&mut self, dead: Live) {
        self.short_lives = match dead.since.elapsed() < SHORT_LIFE {
            true => self.short_lives + 1,
            false => 0,
        };
        let why = "it ended".to_owned();
        let why = match dead.process {
            Some(process) => process.dies_of(why).await,
            None => why,
        };
        // Answers that the server gave before its end are read first. A call that still waits then fails.
        let _ = timeout(LONGEST_CLOSE, dead.over).await;
        dead.stop.cancel();
        self.tell(Some(why));
    }

    async fn list_again(&self, peer: &Peer<RoleClient>, stop: &CancellationToken) {
        let listed = tokio::select! {
            biased;
            () = stop.cancelled() => return,
            listed = timeout(self.bound, offer::list(peer)) => listed,
        };
        match listed {
            Ok(Ok(offer)) => {
                self.seen
                    .send_modify(|seen| seen.offer = Some(Arc::new(offer)));
                self.news.send_modify(|count| *count += 1);
            }
            Ok(Err(why)) => self.tell(Some(why)),
            Err(_) => self.tell(Some("it did not list anew what it has".to_owned())),
        }
    }

    /// Say what is wrong, here and in the log.
    fn tell(&self, trouble: Option<String>) {
        let trouble = trouble.map(|why| self.secrets.hide(&why));
        if let Some(why) = trouble.as_ref().filter(|_| self.logs) {
            tracing::warn!("the MCP server {} does not work: {why}", self.told.server);
        }
        self.seen
            .send_modify(|seen| seen.trouble = trouble.map(Into::into));
        self.settle();
    }

    /// Whoever waited for the server finds the news there already.
    fn settle(&self) {
        self.news.send_modify(|count| *count += 1);
        self.seen.send_modify(|seen| seen.settled = true);
    }
}

impl Live {
    /// End it: the connection first, which closes the process's input.
    async fn end(self) {
        self.stop.cancel();
        let over = timeout(LONGEST_CLOSE, self.over);
        match self.process {
            Some(process) => {
                let _ = futures_util::future::join(over, process.end()).await;
            }
            None => {
                let _ = over.await;
            }
        }
    }
}

/// Ready once the connection is over or its process has ended; never if there is no connection.
async fn over(live: &mut Option<Live>) {
    let Some(live) = live else {
        return std::future::pending().await;
    };
    let exited = async {
        match &mut live.process {
            Some(process) => process.wait_exit().await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        biased;
        () = live.over.clone() => {}
        () = exited => {}
    }
}
