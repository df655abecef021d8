//! Serve: one connection, from its first line to its last.
//!
//! One task reads lines in order. The handler of a request is polled once before the next line is
//! looked at, so a cancel in the same write finds the prompt that it means (CANCEL-9). Handlers
//! that are not done then go on beside each other, on the same task.

use crate::{
    barrier::{Barrier, Waiting},
    bounds::{ANSWERS_WAITING, LAST_WORDS, LINE_LIMIT, QUIET_AT_THE_END, REQUESTS_AT_WORK},
    connection::{Connection, RequestScope},
    dispatch::{Dispatch, error_line},
    envelope::{Envelope, Request, RequestId, classify},
    fault::{CANCELLED, Fault, INTERNAL, INVALID_REQUEST},
    login::Login,
    methods,
    peer::Peer,
    quiet_time::{Progress, QuietTime},
    reader::{self, Block},
    stdio::{Input, Output},
    writer::{self, Out, Sender},
};
use futures_util::{FutureExt, StreamExt, future::BoxFuture, stream::FuturesUnordered};
use std::{
    collections::{HashMap, VecDeque},
    future::poll_fn,
    io,
    pin::pin,
    sync::{Arc, OnceLock},
};
use tokio::{sync::mpsc, task::coop::unconstrained};
use tokio_util::sync::{CancellationToken, DropGuard, PollSender};
use turnery_agent::{Agent, Session};

/// How a connection is served.
#[derive(Clone, Debug, Default)]
pub struct ServeOptions {
    /// When the input ends, let prompts that were accepted come to their end instead of cancelling
    /// them. For scripts that write prompts into a pipe.
    pub drain: bool,
    /// Speak the draft of the protocol's second version with clients that ask for it. All others get the
    /// first one, and that one is the same as without.
    pub v2: bool,
    /// How a person logs in, if the process that serves offers it.
    pub login: Option<Login>,
    /// Fire it to end the connection as the end of input does. For signals.
    pub stop: CancellationToken,
}

/// Why a connection ended. All are ordinary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExitReason {
    /// The client closed our input.
    EndOfInput,
    /// `ServeOptions::stop` fired.
    Stopped,
    /// The client closed our output.
    OutputClosed,
}

/// Serve one client until its input ends, `options.stop` fires, or it stops listening. Needs a tokio
/// runtime with time; fails only when a thread cannot be started.
pub async fn serve(
    agent: Arc<Agent>,
    input: impl Into<Input>,
    output: impl Into<Output>,
    options: ServeOptions,
) -> io::Result<ExitReason> {
    let mut reader = reader::spawn(input.into())?;
    let writer = writer::spawn(output.into())?;
    let peer = Peer::new(writer.sender.clone());
    let (barrier, waiting) = Barrier::new();
    let connection = Connection::new(agent, peer, barrier).with_login(options.login.clone());
    let connection = Arc::new(connection);
    let mut serving = Serving {
        dispatch: Dispatch::new(Arc::clone(&connection), options.v2),
        connection,
        at_work: FuturesUnordered::new(),
        answers: VecDeque::new(),
        cancels: HashMap::new(),
        queue: PollSender::new(writer.sender.clone()),
        waiting,
        over: CancellationToken::new(),
        progress: writer.progress.clone(),
    };
    let reason = serving
        .read(&mut reader.blocks, &options.stop, &writer.gone)
        .await;
    drop(reader);
    let mut quiet = serving.end(reason, &options, &writer.gone).await;
    drop(serving);
    let said_all = async {
        let _ = writer.sender.send(Out::Stop).await;
        let _ = writer.ended.await;
    };
    tokio::select! {
        biased;
        () = said_all => {}
        () = quiet.exceeds(QUIET_AT_THE_END + LAST_WORDS) => tracing::debug!("the client no longer reads"),
    }
    Ok(reason)
}

/// A request that is answered, or to be.
struct Answer {
    id: RequestId,
    line: Vec<u8>,
    /// What follows it at once, if there is anything by then.
    after: Arc<OnceLock<Vec<u8>>>,
    /// Fires once the line is in the write queue, or will never be.
    answered: DropGuard,
}

struct Serving {
    connection: Arc<Connection>,
    dispatch: Dispatch,
    at_work: FuturesUnordered<BoxFuture<'static, Answer>>,
    /// Answers that wait for room in the queue, in the order in which they were ready.
    answers: VecDeque<Answer>,
    /// The tokens of the requests that are not answered yet.
    cancels: HashMap<RequestId, CancellationToken>,
    queue: PollSender<Out>,
    /// Sessions that wait until no answer is ready any more.
    waiting: Waiting,
    /// Fires when there is no more time: what is at work then is answered with an error.
    over: CancellationToken,
    /// Steps towards the end: answers, ends of sessions; the writer counts what the client takes.
    progress: Progress,
}

impl Serving {
    /// Read lines until there are no more.
    async fn read(
        &mut self,
        lines: &mut mpsc::Receiver<Block>,
        stop: &CancellationToken,
        gone: &CancellationToken,
    ) -> ExitReason {
        loop {
            // No more is read while many answers wait for a client that does not read: that alone
            // bounds what it can make us hold.
            let reading = self.answers.len() < ANSWERS_WAITING;
            tokio::select! {
                biased;
                () = gone.cancelled() => return ExitReason::OutputClosed,
                () = stop.cancelled() => return ExitReason::Stopped,
                () = self.step() => {}
                block = lines.recv(), if reading => match block {
                    None => return ExitReason::EndOfInput,
                    Some(Block::TooLong) => self.refuse("null", too_long()),
                    Some(Block::Lines(block)) => {
                        for line in reader::lines(&block) {
                            self.line(line).await;
                        }
                    }
                },
            }
        }
    }

    /// One step, ready only when there is one: an answer enters the queue, a handler has finished, or,
    /// when there is neither, a session may go on.
    async fn step(&mut self) {
        tokio::select! {
            biased;
            _ = poll_fn(|cx| self.queue.poll_reserve(cx)), if !self.answers.is_empty() => {
                if let Some(mut answer) = self.answers.pop_front() {
                    if let Some(after) = answer.after.get() {
                        answer.line.extend_from_slice(after);
                    }
                    let _ = self.queue.send_item(Out::Lines(answer.line));
                    self.cancels.remove(&answer.id);
                    drop(answer.answered);
                }
            }
            Some(answer) = self.at_work.next(), if !self.at_work.is_empty() => {
                self.answers.push_back(answer);
                if !self.over.is_cancelled() {
                    self.progress.advance();
                }
            }
            Some(pass) = self.waiting.recv(), if self.answers.is_empty() => {
                let _ = pass.send(());
            }
            else => std::future::pending().await,
        }
    }

    async fn line(&mut self, line: &[u8]) {
        match classify(line) {
            Envelope::Request(request) => self.request(&request).await,
            Envelope::Notification { method, params } => {
                match methods::notified(&self.connection, &method, params) {
                    methods::Notified::Done => {}
                    methods::Notified::Withdraw(id) => {
                        if let Some(token) = self.cancels.get(&id) {
                            token.cancel();
                        }
                    }
                }
            }
            Envelope::Response { id, reply } => self.connection.peer.answered(&id, reply),
            Envelope::Dropped => tracing::debug!("a message without sense was dropped"),
            Envelope::Malformed { id, code, details } => {
                let message = match code {
                    INVALID_REQUEST => "The message is not a valid request",
                    _ => "The line cannot be read",
                };
                self.refuse(id, Fault::new(code, message, details));
            }
        }
    }

    async fn request(&mut self, request: &Request<'_>) {
        if self.at_work.len() >= REQUESTS_AT_WORK {
            self.refuse(request.raw_id, too_many());
            return;
        }
        // A null id cannot be told from another one, so such a request cannot be taken back.
        let id = request.id.clone();
        let scope = RequestScope::new(id.clone());
        if id != RequestId::Null {
            self.cancels
                .entry(id.clone())
                .or_insert_with(|| scope.cancel.clone());
        }
        let answered = scope.answered.clone().drop_guard();
        let after = Arc::clone(&scope.after);
        let mut handler = self.dispatch.call(request, scope);
        let answer = |line| Answer {
            id,
            line,
            after,
            answered,
        };
        match poll_once(&mut handler).await {
            Some(line) => self.answers.push_back(answer(line)),
            None => {
                let over = self.over.clone();
                let raw_id = request.raw_id.to_owned();
                let line = async move {
                    tokio::select! {
                        biased;
                        line = handler => line,
                        () = over.cancelled() => error_line(&raw_id, out_of_time()),
                    }
                };
                self.at_work.push(line.map(answer).boxed());
            }
        }
    }

    fn refuse(&mut self, raw_id: &str, fault: Fault) {
        self.answers.push_back(Answer {
            id: RequestId::Null,
            line: error_line(raw_id, fault),
            after: Arc::default(),
            answered: CancellationToken::new().drop_guard(),
        });
    }

    /// The input has ended: cancel, or drain; answer what was asked; close the sessions. Bounded by
    /// time in which nothing advances, but for a drain; gives the time that was counted (TR-6, TR-7).
    async fn end(
        &mut self,
        reason: ExitReason,
        options: &ServeOptions,
        gone: &CancellationToken,
    ) -> QuietTime {
        self.connection.peer.close();
        if options.drain && reason == ExitReason::EndOfInput {
            tokio::select! {
                biased;
                () = gone.cancelled() => {}
                () = options.stop.cancelled() => {}
                () = self.finish(false) => {}
            }
        }
        let mut quiet = QuietTime::start(self.progress.clone());
        for session in self.connection.sessions() {
            session.cancel_running_turns();
        }
        let in_time = tokio::select! {
            biased;
            () = self.finish(true) => true,
            () = quiet.exceeds(QUIET_AT_THE_END) => false,
        };
        if !in_time {
            tracing::warn!("work did not end in time and is dropped");
            self.over.cancel();
            tokio::select! {
                biased;
                () = self.answer_all() => {}
                () = quiet.exceeds(QUIET_AT_THE_END + LAST_WORDS) => {}
            }
        }
        quiet
    }

    async fn answer_all(&mut self) {
        while !(self.at_work.is_empty() && self.answers.is_empty()) {
            self.step().await;
        }
    }

    /// Answer all that was asked, and end all sessions, with their prompts cancelled or done. Also when
    /// nobody listens any more: a session may wait at the barrier, which is served here.
    async fn finish(&mut self, cancel: bool) {
        self.answer_all().await;
        let sessions = self.connection.sessions();
        let progress = self.progress.clone();
        let end = async |session: &Session| {
            match cancel {
                true => session.close().await,
                false => session.finish().await,
            }
            progress.advance();
        };
        let ending: FuturesUnordered<_> = sessions.iter().map(end).collect();
        let mut ending = pin!(ending.collect::<()>());
        loop {
            tokio::select! {
                biased;
                () = &mut ending => return,
                () = self.step() => {}
            }
        }
    }
}

/// One poll, and no more. The runtime's budget of a task does not hold for it: without any left, the future would not
/// run at all, and a prompt would be accepted only after what is read behind it, such as its cancel or the end of input.
async fn poll_once<T>(future: &mut BoxFuture<'_, T>) -> Option<T> {
    let mut future = pin!(unconstrained(future));
    poll_fn(|cx| {
        std::task::Poll::Ready(match future.poll_unpin(cx) {
            std::task::Poll::Ready(value) => Some(value),
            std::task::Poll::Pending => None,
        })
    })
    .await
}

fn out_of_time() -> Fault {
    Fault::new(
        CANCELLED,
        "The agent ended before this was done",
        "It waited as long as it could; what was stored by then is kept.",
    )
}

fn too_long() -> Fault {
    Fault::new(
        INVALID_REQUEST,
        "The line is too long",
        format!("A line may have {LINE_LIMIT} bytes; this one was skipped."),
    )
    .with("limit", LINE_LIMIT)
}

fn too_many() -> Fault {
    Fault::new(
        INTERNAL,
        "Too many requests are at work",
        format!("{REQUESTS_AT_WORK} requests wait for their answers; wait for some of them."),
    )
    .with("retryable", true)
}

/// Where updates that no session sends go: after what is in the queue already.
pub(crate) async fn send(queue: &Sender, line: Vec<u8>) {
    let _ = queue.send(Out::Lines(line)).await;
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::pending;
    use tokio::task::coop::{consume_budget, has_budget_remaining};

    #[tokio::test]
    async fn a_handler_runs_at_once_without_budget() {
        while has_budget_remaining() {
            consume_budget().await;
        }
        let (entered, mut is_entered) = tokio::sync::oneshot::channel();
        let prompt = async {
            let _ = entered.send(());
            pending().await
        };
        let mut handler = async {
            tokio::select! {
                () = prompt => {}
                () = pending() => {}
            }
        }
        .boxed();
        assert!(!has_budget_remaining());
        assert_eq!(poll_once(&mut handler).await, None);
        assert_eq!(is_entered.try_recv(), Ok(()));
    }
}
