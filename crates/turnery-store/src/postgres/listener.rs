//! Listens for changes of the sessions that are followed from this process, on a connection of its own.
//!
//! A row in `followers` asks the writers of a session to announce its changes. It expires unless it is renewed, so a
//! session whose followers are gone costs its writers nothing. Announcements may be lost with the connection: after
//! each connect, all sessions count as changed.

use super::{connection::quote_name, engine::Shared, pg_error::PgError};
use futures_util::stream::{StreamExt as _, poll_fn};
use std::{
    cell::{Cell, RefCell},
    collections::HashMap,
    rc::Rc,
    time::Duration,
};
use tokio::{
    sync::{Notify, watch},
    task::spawn_local,
    time::{Instant, MissedTickBehavior, interval, sleep},
};
use tokio_postgres::{AsyncMessage, Client};
use turnery_engine::SessionId;

/// Interval at which the rows of followers are renewed; they expire after three times as long.
const RENEW_INTERVAL: Duration = Duration::from_secs(20);

/// Time after its last use for which a session is listened for.
const IDLE_TIME: Duration = Duration::from_secs(60);

/// Delay before a lost connection is replaced.
const RECONNECT_DELAY: Duration = Duration::from_secs(1);

/// Asks for announcements, and removes rows that have expired.
const FOLLOW: &str = "WITH expired AS ( \
         DELETE FROM followers WHERE until < clock_timestamp() - interval '1 minute') \
     INSERT INTO followers (session_id, until) \
     SELECT session_id, clock_timestamp() + interval '60 seconds' FROM sessions \
     WHERE session_id = ANY ($1) ORDER BY session_id \
     ON CONFLICT (session_id) DO UPDATE SET until = greatest(followers.until, excluded.until)";

/// Query that announces a change to the followers of session `$1`: a notification for each row of a part of the statement
/// that has the id of the session.
macro_rules! tell_followers {
    ($part:literal) => {
        concat!(
            "SELECT pg_notify(current_schema(), ",
            $part,
            ".session_id) FROM ",
            $part,
            " WHERE EXISTS (SELECT 1 FROM followers f WHERE f.session_id = $1 AND f.until > clock_timestamp())"
        )
    };
}
pub(super) use tell_followers;

/// Changes of sessions, as announced by the server.
#[derive(Default)]
pub(super) struct Listener {
    sessions: RefCell<HashMap<SessionId, ListenedSession>>,
    /// Notified when a session is added.
    added: Rc<Notify>,
    is_running: Cell<bool>,
}

struct ListenedSession {
    /// Number of changes.
    changes: watch::Sender<u64>,
    used_at: Instant,
}

impl Listener {
    /// Returns the number of changes of a session, which rises with each later one. Starts to listen if necessary; it
    /// also rises once that has begun.
    pub(super) fn subscribe(&self, shared: &Rc<Shared>, id: &SessionId) -> watch::Receiver<u64> {
        let mut sessions = self.sessions.borrow_mut();
        let is_new = !sessions.contains_key(id);
        let session = sessions
            .entry(id.clone())
            .or_insert_with(|| ListenedSession {
                changes: watch::Sender::new(0),
                used_at: Instant::now(),
            });
        session.used_at = Instant::now();
        let changes = session.changes.subscribe();
        if is_new {
            self.added.notify_one();
        }
        if !self.is_running.replace(true) {
            // Ends with the thread of the store, or when nothing is followed any more.
            spawn_local(listen(Rc::clone(shared)));
        }
        changes
    }

    fn note_change(&self, id: &str) {
        if let Some(session) = self.sessions.borrow().get(&SessionId::from(id)) {
            session.changes.send_modify(|count| *count += 1);
        }
    }

    fn note_change_of_all(&self) {
        for session in self.sessions.borrow().values() {
            session.changes.send_modify(|count| *count += 1);
        }
    }

    /// Returns the ids of all sessions, without those that nobody has used for a while.
    fn used_sessions(&self) -> Vec<String> {
        let mut sessions = self.sessions.borrow_mut();
        sessions.retain(|_, session| {
            session.changes.receiver_count() > 0 || session.used_at.elapsed() < IDLE_TIME
        });
        sessions.keys().map(SessionId::to_string).collect()
    }
}

async fn listen(shared: Rc<Shared>) {
    loop {
        match listen_once(&shared).await {
            Ok(()) => break,
            Err(error) => tracing::debug!(%error, "cannot listen for changes of sessions"),
        }
        sleep(RECONNECT_DELAY).await;
        if shared.listener.used_sessions().is_empty() {
            break;
        }
    }
    shared.listener.is_running.set(false);
}

/// Listens until nothing is followed any more, or the connection is lost.
async fn listen_once(shared: &Rc<Shared>) -> Result<(), PgError> {
    let (address, listener) = (&shared.pool.address, &shared.listener);
    let connected = address.config.connect(shared.pool.tls()?.clone()).await;
    let (client, mut connection) = connected.map_err(PgError::Connect)?;
    let announced = Rc::clone(shared);
    let mut task = AbortOnDrop(spawn_local(async move {
        let mut messages = poll_fn(move |cx| connection.poll_message(cx));
        while let Some(message) = messages.next().await {
            match message {
                Ok(AsyncMessage::Notification(announcement)) => {
                    announced.listener.note_change(announcement.payload());
                }
                Ok(_) => {}
                Err(error) => {
                    tracing::debug!(%error, "the connection that listens for changes has ended");
                    return;
                }
            }
        }
    }));
    let channel = quote_name(&address.schema);
    let settings = format!("SET search_path = {channel}; LISTEN {channel}");
    client.batch_execute(&settings).await?;
    let mut renewal = interval(RENEW_INTERVAL);
    renewal.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            // The connection has ended.
            _ = &mut task.0 => break,
            // The first tick is immediate.
            _ = renewal.tick() => {
                if !follow(&client, listener).await? {
                    break;
                }
            }
            () = listener.added.notified() => {
                follow(&client, listener).await?;
            }
        }
    }
    match listener.used_sessions().is_empty() {
        true => Ok(()),
        false => Err(PgError::Unusable("the connection was lost".to_owned())),
    }
}

/// Asks for announcements of the changes of all sessions in use. Returns false if there are none.
async fn follow(client: &Client, listener: &Listener) -> Result<bool, PgError> {
    let ids = listener.used_sessions();
    if ids.is_empty() {
        return Ok(false);
    }
    client.execute(FOLLOW, &[&ids]).await?;
    // Changes before this statement were not announced.
    listener.note_change_of_all();
    Ok(true)
}

struct AbortOnDrop(tokio::task::JoinHandle<()>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}
