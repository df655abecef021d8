//! Serves one connection from its first line to its last.
//!
//! One task reads lines in order. The handler of a request is polled once before the next line is read, so a
//! cancel in the same write finds its prompt (CANCEL-9). Unfinished handlers then run concurrently on the same
//! task.

use crate::{
    client::peer::Peer,
    limits::{
        FLUSH_STALL_LIMIT, LINE_LIMIT, MAX_CONCURRENT_REQUESTS, MAX_QUEUED_RESPONSES,
        SHUTDOWN_STALL_LIMIT,
    },
    methods,
    server::{
        connection::{Connection, RequestScope},
        dispatch::{Dispatcher, error_line},
        envelope::{Envelope, IncomingRequest, classify_line},
        login::Login,
        prompt_barrier::{BarrierReceiver, PromptBarrier},
        rpc_error::{INTERNAL_ERROR, INVALID_REQUEST, REQUEST_CANCELLED, RpcError},
    },
    transport::{
        reader::{self, InputBlock},
        stall_timer::{ShutdownProgress, StallTimer},
        stdio::{Input, Output},
        writer::{self, WriteItem, WriteSender},
    },
};
use agent_client_protocol_schema::v1::RequestId;
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

/// Options of [`serve()`].
#[derive(Clone, Debug, Default)]
pub struct ServeOptions {
    /// Finish accepted prompts at the end of input instead of cancelling them. For scripts that write prompts
    /// into a pipe.
    pub drain: bool,
    /// Offer the draft of the second protocol version to clients that request it. Other clients are served v1
    /// exactly as without this option.
    pub v2: bool,
    /// How the user logs in, if the host offers a login.
    pub login: Option<Login>,
    /// Ends the connection, like the end of input. For signal handlers.
    pub stop: CancellationToken,
    /// Fires once the response to the first request is written, for work of the host that must not delay it.
    pub first_response: CancellationToken,
}

/// Reason a connection ended. Each of them is a normal end, not an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExitReason {
    /// The client closed the agent's input.
    EndOfInput,
    /// `ServeOptions::stop` fired.
    Stopped,
    /// The client closed the agent's output.
    OutputClosed,
}

/// Serves one client until its input ends, `options.stop` fires, or the client stops reading.
///
/// Requires a tokio runtime with time enabled.
///
/// # Errors
/// Fails only if a thread cannot be started.
pub async fn serve(
    agent: Arc<Agent>,
    input: impl Into<Input>,
    output: impl Into<Output>,
    options: ServeOptions,
) -> io::Result<ExitReason> {
    let mut reader = reader::spawn(input.into())?;
    let writer = writer::spawn(output.into())?;
    let peer = Peer::new(writer.sender.clone());
    let (barrier, waiting) = PromptBarrier::new();
    let connection = Connection::new(agent, peer, barrier).with_login(options.login.clone());
    let (queue, progress) = (writer.sender.clone(), writer.progress.clone());
    let mut serving = ServeLoop::new(connection, &options, queue, waiting, progress);
    let reason = serving
        .read_lines(&mut reader.blocks, &options.stop, &writer.closed)
        .await;
    drop(reader);
    let mut stall_timer = serving.shut_down(reason, &options, &writer.closed).await;
    drop(serving);
    let said_all = async {
        let _ = writer.sender.send(WriteItem::Stop).await;
        let _ = writer.finished.await;
    };
    tokio::select! {
        biased;
        () = said_all => {}
        () = stall_timer.stalled_for(SHUTDOWN_STALL_LIMIT + FLUSH_STALL_LIMIT) => tracing::debug!("the client no longer reads"),
    }
    Ok(reason)
}

/// Finished response to a request that is not yet in the write queue.
struct PendingResponse {
    id: RequestId,
    line: Vec<u8>,
    /// Lines to send right after the response.
    trailing_lines: Arc<OnceLock<Vec<u8>>>,
    /// Dropped once the line is written, or never will be.
    responded: DropGuard,
}

struct ServeLoop {
    connection: Arc<Connection>,
    dispatch: Dispatcher,
    in_flight: FuturesUnordered<BoxFuture<'static, PendingResponse>>,
    /// Responses waiting for room in the queue, in completion order.
    responses: VecDeque<PendingResponse>,
    /// Cancellation tokens of the requests without a response.
    cancel_tokens: HashMap<RequestId, CancellationToken>,
    queue: PollSender<WriteItem>,
    /// Sessions waiting until no response is ready.
    barrier_waiters: BarrierReceiver,
    /// Fires when the shutdown time is over: requests in progress then get an error response.
    out_of_time: CancellationToken,
    /// Counts responses and closed sessions; the writer counts what the client reads.
    progress: ShutdownProgress,
    /// Token of [`ServeOptions::first_response`], until the first request.
    first_response: Option<CancellationToken>,
}

impl ServeLoop {
    fn new(
        connection: Connection,
        options: &ServeOptions,
        queue: WriteSender,
        barrier_waiters: BarrierReceiver,
        progress: ShutdownProgress,
    ) -> Self {
        let connection = Arc::new(connection);
        Self {
            dispatch: Dispatcher::new(Arc::clone(&connection), options.v2),
            connection,
            in_flight: FuturesUnordered::new(),
            responses: VecDeque::new(),
            cancel_tokens: HashMap::new(),
            queue: PollSender::new(queue),
            barrier_waiters,
            out_of_time: CancellationToken::new(),
            progress,
            first_response: Some(options.first_response.clone()),
        }
    }

    /// Reads and handles lines until the connection ends.
    async fn read_lines(
        &mut self,
        lines: &mut mpsc::Receiver<InputBlock>,
        stop: &CancellationToken,
        gone: &CancellationToken,
    ) -> ExitReason {
        loop {
            // Stop reading while many responses wait for a client that does not read: this bounds the memory
            // it can make the agent use.
            let reading = self.responses.len() < MAX_QUEUED_RESPONSES;
            tokio::select! {
                biased;
                () = gone.cancelled() => return ExitReason::OutputClosed,
                () = stop.cancelled() => return ExitReason::Stopped,
                () = self.step() => {}
                block = lines.recv(), if reading => match block {
                    None => return ExitReason::EndOfInput,
                    Some(InputBlock::LineTooLong) => self.respond_error("null", line_too_long_error()),
                    Some(InputBlock::Lines(block)) => {
                        for line in reader::non_blank_lines(&block) {
                            self.handle_line(line).await;
                        }
                    }
                },
            }
        }
    }

    /// Waits for the next step: queues a response, collects a finished handler, or, with neither ready, lets a
    /// session pass the barrier.
    async fn step(&mut self) {
        tokio::select! {
            biased;
            _ = poll_fn(|cx| self.queue.poll_reserve(cx)), if !self.responses.is_empty() => {
                if let Some(mut answer) = self.responses.pop_front() {
                    if let Some(after) = answer.trailing_lines.get() {
                        answer.line.extend_from_slice(after);
                    }
                    let _ = self.queue.send_item(WriteItem::Awaited(answer.line, answer.responded));
                    self.cancel_tokens.remove(&answer.id);
                }
            }
            Some(answer) = self.in_flight.next(), if !self.in_flight.is_empty() => {
                self.responses.push_back(answer);
                if !self.out_of_time.is_cancelled() {
                    self.progress.advance();
                }
            }
            Some(pass) = self.barrier_waiters.recv(), if self.responses.is_empty() => {
                let _ = pass.send(());
            }
            else => std::future::pending().await,
        }
    }

    async fn handle_line(&mut self, line: &[u8]) {
        match classify_line(line) {
            Envelope::Request(request) => self.handle_request(&request).await,
            Envelope::Notification { method, params } => {
                match methods::handle_notification(&self.connection, &method, params) {
                    methods::NotificationAction::Nothing => {}
                    methods::NotificationAction::CancelRequest(id) => {
                        if let Some(token) = self.cancel_tokens.get(&id) {
                            token.cancel();
                        }
                    }
                }
            }
            Envelope::Response { id, result: reply } => {
                self.connection.peer.handle_response(&id, reply)
            }
            Envelope::Ignored => tracing::debug!("a malformed message was dropped"),
            Envelope::Malformed { id, code, details } => {
                let message = match code {
                    INVALID_REQUEST => "The message is not a valid request",
                    _ => "The line cannot be read",
                };
                self.respond_error(id, RpcError::new(code, message, details));
            }
        }
    }

    async fn handle_request(&mut self, request: &IncomingRequest<'_>) {
        if self.in_flight.len() >= MAX_CONCURRENT_REQUESTS {
            self.respond_error(request.raw_id, too_many_requests_error());
            return;
        }
        // Requests with a null id are indistinguishable, so they cannot be cancelled.
        let id = request.id.clone();
        let mut scope = RequestScope::new(id.clone());
        if let Some(first) = self.first_response.take() {
            scope.responded = first;
        }
        if id != RequestId::Null {
            self.cancel_tokens
                .entry(id.clone())
                .or_insert_with(|| scope.cancel.clone());
        }
        let answered = scope.responded.clone().drop_guard();
        let after = Arc::clone(&scope.trailing_lines);
        let mut handler = self.dispatch.dispatch(request, scope);
        let answer = |line| PendingResponse {
            id,
            line,
            trailing_lines: after,
            responded: answered,
        };
        match poll_once(&mut handler).await {
            Some(line) => self.responses.push_back(answer(line)),
            None => {
                let over = self.out_of_time.clone();
                let raw_id = request.raw_id.to_owned();
                let line = async move {
                    tokio::select! {
                        biased;
                        line = handler => line,
                        () = over.cancelled() => error_line(&raw_id, out_of_time_error()),
                    }
                };
                self.in_flight.push(line.map(answer).boxed());
            }
        }
    }

    fn respond_error(&mut self, raw_id: &str, fault: RpcError) {
        self.responses.push_back(PendingResponse {
            id: RequestId::Null,
            line: error_line(raw_id, fault),
            trailing_lines: Arc::default(),
            responded: CancellationToken::new().drop_guard(),
        });
    }

    /// Cancels or drains the running prompts, finishes the responses and closes the sessions. Bounded by time
    /// without progress, except while draining; returns the timer with the time already counted (TR-6, TR-7).
    async fn shut_down(
        &mut self,
        reason: ExitReason,
        options: &ServeOptions,
        gone: &CancellationToken,
    ) -> StallTimer {
        self.connection.peer.close();
        if options.drain && reason == ExitReason::EndOfInput {
            tokio::select! {
                biased;
                () = gone.cancelled() => {}
                () = options.stop.cancelled() => {}
                () = self.finish_sessions(false) => {}
            }
        }
        let mut stall_timer = StallTimer::start(self.progress.clone());
        for session in self.connection.sessions() {
            session.cancel_prompts();
        }
        let in_time = tokio::select! {
            biased;
            () = self.finish_sessions(true) => true,
            () = stall_timer.stalled_for(SHUTDOWN_STALL_LIMIT) => false,
        };
        if !in_time {
            tracing::warn!("work did not finish in time and was dropped");
            self.out_of_time.cancel();
            tokio::select! {
                biased;
                () = self.finish_responses() => {}
                () = stall_timer.stalled_for(SHUTDOWN_STALL_LIMIT + FLUSH_STALL_LIMIT) => {}
            }
        }
        stall_timer
    }

    async fn finish_responses(&mut self) {
        while !(self.in_flight.is_empty() && self.responses.is_empty()) {
            self.step().await;
        }
    }

    /// Finishes all responses and ends all sessions, with their prompts cancelled or completed. Needed even
    /// after the client disconnects, since sessions waiting at the barrier are released here.
    async fn finish_sessions(&mut self, cancel: bool) {
        self.finish_responses().await;
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

/// Polls a future once, outside the task's coop budget: with no budget left the future would not run, and a
/// prompt would be accepted only after later input, such as its cancel or the end of input.
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

fn out_of_time_error() -> RpcError {
    RpcError::new(
        REQUEST_CANCELLED,
        "The agent shut down before the request was done",
        "It waited as long as it could; everything stored by then is kept.",
    )
}

fn line_too_long_error() -> RpcError {
    RpcError::new(
        INVALID_REQUEST,
        "The line is too long",
        format!("The limit is {LINE_LIMIT} bytes; the line was skipped."),
    )
    .with_data("limit", LINE_LIMIT)
}

fn too_many_requests_error() -> RpcError {
    RpcError::new(
        INTERNAL_ERROR,
        "Too many requests are in progress",
        format!("{MAX_CONCURRENT_REQUESTS} requests are waiting for their responses; wait for some of them to finish."),
    )
    .with_data("retryable", true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::support;
    use std::future::pending;
    use tokio::task::coop::{consume_budget, has_budget_remaining};

    /// While a client does not read, 256 responses wait beside the queue. Then its lines are left unread, one for each
    /// response that it still has to take.
    // proves: C-10
    #[tokio::test]
    async fn input_waits_while_many_responses_wait() {
        let (queue, mut written) = mpsc::channel(1);
        let (barrier, waiting) = PromptBarrier::new();
        let connection = support::connection(queue.clone(), barrier);
        let progress = ShutdownProgress::default();
        let mut serving = ServeLoop::new(
            connection,
            &ServeOptions::default(),
            queue,
            waiting,
            progress,
        );
        let (input, mut blocks) = mpsc::channel(1_000);
        for _ in 0..1_000 {
            let line = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"_unknown\"}\n";
            input.try_send(InputBlock::Lines(line.to_vec())).unwrap();
        }
        let never = CancellationToken::new();
        let mut reading = serving.read_lines(&mut blocks, &never, &never).boxed();
        for taken in 257..300 {
            assert_eq!(poll_once(&mut reading).await, None);
            assert_eq!(input.capacity(), taken);
            written.recv().await.unwrap();
        }
    }

    #[tokio::test]
    async fn handler_is_polled_at_once_without_budget() {
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
