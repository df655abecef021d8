//! Stands between a store and its server: cuts connections within messages, and replaces parts of statements.

use crate::postgres_url;
use std::{
    io,
    net::Ipv4Addr,
    sync::{Arc, Mutex, mpsc},
    thread::{self, JoinHandle},
};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
    sync::oneshot,
};

/// Direction of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    /// To the server.
    Request,
    /// From the server.
    Answer,
}

/// Flaw of the store: a part of its statements is replaced on the way to the server.
#[derive(Clone, Copy, Debug)]
pub(super) struct Replacement {
    pub(super) part: &'static str,
    pub(super) by: &'static str,
}

#[derive(Default)]
struct Plan {
    /// Direction to cut, and the number of messages before that.
    cut: Option<(Direction, usize)>,
    has_cut: bool,
    replacements: Vec<Replacement>,
    /// Number of statements that were changed, for each replacement.
    changed: Vec<usize>,
}

impl Plan {
    /// Counts a message. Returns true if the connection is cut within it.
    fn is_cut(&mut self, direction: Direction) -> bool {
        match &mut self.cut {
            Some((cut, left)) if *cut == direction => {
                if let Some(fewer) = left.checked_sub(1) {
                    *left = fewer;
                    return false;
                }
            }
            Some(_) | None => return false,
        }
        self.cut = None;
        self.has_cut = true;
        true
    }

    fn change(&mut self, statement: &str) -> String {
        let mut statement = statement.to_owned();
        for (replacement, changed) in self.replacements.iter().zip(&mut self.changed) {
            if statement.contains(replacement.part) {
                statement = statement.replace(replacement.part, replacement.by);
                *changed += 1;
            }
        }
        statement
    }
}

/// A proxy on a thread of its own.
pub(super) struct Proxy {
    port: u16,
    plan: Arc<Mutex<Plan>>,
    end: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Proxy {
    fn drop(&mut self) {
        drop(self.end.take());
        self.thread.take().map(JoinHandle::join);
    }
}

impl Proxy {
    /// Starts a proxy in front of the server of the tests.
    pub(super) fn start(replacements: &[Replacement]) -> Self {
        let plan = Arc::new(Mutex::new(Plan {
            changed: vec![0; replacements.len()],
            replacements: replacements.to_vec(),
            ..Plan::default()
        }));
        let (end, is_over) = oneshot::channel();
        let (ready, port) = mpsc::channel();
        let shared = Arc::clone(&plan);
        let server = port_of(&postgres_url("any"));
        let thread = thread::spawn(move || {
            let mut runtime = tokio::runtime::Builder::new_current_thread();
            let runtime = runtime.enable_io().build().unwrap();
            runtime.block_on(async {
                let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
                ready.send(listener.local_addr().unwrap().port()).unwrap();
                tokio::select! {
                    () = accept(listener, server, shared) => {}
                    _ = is_over => {}
                }
            });
        });
        Self {
            port: port.recv().unwrap(),
            plan,
            end: Some(end),
            thread: Some(thread),
        }
    }

    /// Returns the address of a schema, through the proxy.
    pub(super) fn url(&self, schema: &str) -> String {
        let url = postgres_url(schema);
        let server = format!(":{}/", port_of(&url));
        url.replace(&server, &format!(":{}/", self.port))
    }

    /// Cuts the next connection within a message, after this many messages in this direction.
    pub(super) fn cut_after(&self, direction: Direction, messages: usize) {
        let mut plan = self.plan.lock().unwrap();
        (plan.cut, plan.has_cut) = (Some((direction, messages)), false);
    }

    /// Returns true if a connection was cut. Cuts no other one.
    pub(super) fn stop_cutting(&self) -> bool {
        let mut plan = self.plan.lock().unwrap();
        plan.cut = None;
        std::mem::take(&mut plan.has_cut)
    }

    /// Returns the parts of statements that were never found.
    pub(super) fn unused_replacements(&self) -> Vec<&'static str> {
        let plan = self.plan.lock().unwrap();
        let used = plan.replacements.iter().zip(&plan.changed);
        let unused = used.filter(|(_, changed)| **changed == 0);
        unused.map(|(it, _)| it.part).collect()
    }
}

/// Returns the port of an address.
fn port_of(url: &str) -> u16 {
    let (_, place) = url.rsplit_once('@').unwrap();
    let (_, rest) = place.split_once(':').unwrap();
    rest.split_once('/').unwrap().0.parse().unwrap()
}

async fn accept(listener: TcpListener, server: u16, plan: Arc<Mutex<Plan>>) {
    loop {
        let (client, _) = listener.accept().await.unwrap();
        let plan = Arc::clone(&plan);
        tokio::spawn(async move {
            // A connection that ends on either side ends on both.
            let _ = forward(client, server, &plan).await;
        });
    }
}

async fn forward(client: TcpStream, server: u16, plan: &Mutex<Plan>) -> io::Result<()> {
    let server = TcpStream::connect((Ipv4Addr::LOCALHOST, server)).await?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    tokio::select! {
        done = pump(from_client, to_server, Direction::Request, plan) => done,
        done = pump(from_server, to_client, Direction::Answer, plan) => done,
    }
}

async fn pump(
    from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    direction: Direction,
    plan: &Mutex<Plan>,
) -> io::Result<()> {
    let mut from = BufReader::new(from);
    // The first message of a client has no kind.
    let mut has_kind = direction == Direction::Answer;
    loop {
        let mut message = Vec::new();
        if has_kind {
            message.push(from.read_u8().await?);
        }
        let length = from.read_u32().await?;
        let mut body = vec![0; usize::try_from(length).unwrap() - 4];
        from.read_exact(&mut body).await?;
        match (has_kind, direction, message.first()) {
            (true, Direction::Request, Some(b'P')) => change_statement(&mut body, 1, plan),
            (true, Direction::Request, Some(b'Q')) => change_statement(&mut body, 0, plan),
            _ => {}
        }
        has_kind = true;
        let length = u32::try_from(body.len() + 4).unwrap();
        message.extend(length.to_be_bytes());
        message.extend(body);
        if plan.lock().unwrap().is_cut(direction) {
            return to.write_all(&message[..message.len() / 2]).await;
        }
        to.write_all(&message).await?;
    }
}

/// Replaces parts of the statement that is the text of this index in a message.
fn change_statement(body: &mut Vec<u8>, index: usize, plan: &Mutex<Plan>) {
    let mut ends = (0..body.len()).filter(|place| body[*place] == 0);
    let start = match index {
        0 => 0,
        index => ends.nth(index - 1).unwrap() + 1,
    };
    let end = ends.next().unwrap();
    let statement = std::str::from_utf8(&body[start..end]).unwrap();
    let changed = plan.lock().unwrap().change(statement);
    body.splice(start..end, changed.into_bytes());
}
