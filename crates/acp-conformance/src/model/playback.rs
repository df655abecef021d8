//! Plays a scripted response to one request, step by step.

use super::{
    encoder::{ResponseEnd, ResponseHead, ResponsePart, StreamEncoder},
    exchange::{Exchange, ExchangeState},
    request::{Api, ModelRequest},
    script::{ScriptAction, ScriptedResponse},
    state::{ExchangeGuard, SharedState},
    tool_resolution::{ToolCandidates, resolve_tool_call},
    wire_format::{encode_whole, stream_encoder},
};
use bytes::Bytes;
use futures_util::stream::{Stream, unfold};
use hyper::body::Frame;
use serde_json::Value;
use std::{collections::VecDeque, time::Duration};

/// Step of a response on the wire.
#[derive(Debug, PartialEq)]
enum PlaybackStep {
    Send(ResponsePart),
    Slow(Duration),
    Hang,
    Cut,
    Error(u16, String),
}

/// Scripted response with its tools resolved to those of the agent.
#[derive(Debug)]
pub(super) struct ResponsePlayback {
    steps: VecDeque<PlaybackStep>,
    end: ResponseEnd,
    api: Api,
    head: ResponseHead,
    pause: Duration,
    exchange_guard: ExchangeGuard,
    state: SharedState,
}

/// Error that closes the connection before the response is complete.
#[derive(Debug, thiserror::Error)]
#[error("the script cuts the connection")]
pub(super) struct ConnectionCutError;

/// Start of a response.
pub(super) enum ResponseStart {
    /// Response with status 200.
    Response(ResponsePlayback),
    /// HTTP error: status and message.
    Error(u16, String),
}

impl ResponsePlayback {
    pub(super) fn new(
        answer: ScriptedResponse,
        request: &ModelRequest,
        candidates: &ToolCandidates,
        state: &SharedState,
        exchange_guard: ExchangeGuard,
    ) -> Self {
        let mut steps = VecDeque::new();
        let mut calls = Vec::new();
        let (mut served, mut missing) = (Vec::new(), Vec::new());
        for piece in answer.actions {
            steps.push_back(match piece {
                ScriptAction::Text(text) => PlaybackStep::Send(ResponsePart::Text(text)),
                ScriptAction::Think(text) => PlaybackStep::Send(ResponsePart::Think(text)),
                ScriptAction::Refusal(text) => PlaybackStep::Send(ResponsePart::Refusal(text)),
                ScriptAction::Slow(pause) => PlaybackStep::Slow(pause),
                ScriptAction::Hang => PlaybackStep::Hang,
                ScriptAction::Cut => PlaybackStep::Cut,
                ScriptAction::Error(status, message) => PlaybackStep::Error(status, message),
                ScriptAction::Call(tool, arguments) => {
                    match resolve_tool_call(&tool, &arguments, &request.tools, candidates) {
                        Some(called) => {
                            calls.push(called.name.clone());
                            served.push(tool);
                            PlaybackStep::Send(ResponsePart::Call(called))
                        }
                        None => {
                            let text = format!("No tool on offer does {tool}.");
                            missing.push(tool);
                            PlaybackStep::Send(ResponsePart::Text(text))
                        }
                    }
                }
            });
        }
        exchange_guard.update_exchange(|exchange: &mut Exchange| {
            exchange.called_tools = calls;
            exchange.served_tools = served;
            exchange.missing_tools = missing;
        });
        Self {
            steps,
            end: ResponseEnd {
                finish_reason: answer.finish_reason,
                usage: answer.usage,
            },
            api: request.api,
            head: ResponseHead {
                number: exchange_guard.exchange_index(),
                model: request.model.clone(),
            },
            pause: Duration::ZERO,
            exchange_guard,
            state: SharedState::clone(state),
        }
    }

    /// Plays the steps before the first part: pauses, or an error instead of a response.
    pub(super) async fn start(mut self) -> Result<ResponseStart, ConnectionCutError> {
        while let Some(beat) = self.steps.pop_front() {
            match beat {
                PlaybackStep::Slow(pause) => self.pause = pause,
                PlaybackStep::Hang => wait_for_release(&self.state).await,
                PlaybackStep::Cut => return Err(self.cut_connection()),
                PlaybackStep::Error(status, message) => {
                    self.exchange_guard
                        .update_exchange(|exchange| exchange.status = Some(status));
                    self.exchange_guard.settle(ExchangeState::Answered);
                    return Ok(ResponseStart::Error(status, message));
                }
                PlaybackStep::Send(_) => {
                    self.steps.push_front(beat);
                    break;
                }
            }
        }
        self.exchange_guard
            .update_exchange(|exchange| exchange.status = Some(200));
        Ok(ResponseStart::Response(self))
    }

    /// Plays the whole response and encodes it as one JSON value.
    pub(super) async fn into_json(mut self) -> Result<Value, ConnectionCutError> {
        let mut parts = Vec::new();
        while let Some(beat) = self.steps.pop_front() {
            match beat {
                PlaybackStep::Slow(pause) => self.pause = pause,
                PlaybackStep::Hang => wait_for_release(&self.state).await,
                // After status 200, a response that is not streamed cannot report an error.
                PlaybackStep::Cut | PlaybackStep::Error(..) => return Err(self.cut_connection()),
                PlaybackStep::Send(part) => {
                    tokio::time::sleep(self.pause).await;
                    parts.push(part);
                }
            }
        }
        self.exchange_guard.settle(ExchangeState::Answered);
        Ok(encode_whole(self.api, &self.head, &parts, self.end))
    }

    /// Plays the response as a stream of the API's events.
    pub(super) fn into_stream(
        self,
    ) -> impl Stream<Item = Result<Frame<Bytes>, ConnectionCutError>> + Send {
        let mut encoder = stream_encoder(self.api, self.head.clone());
        let streaming = EventStream {
            ready_events: encoder.encode_start().into(),
            encoder,
            playback: self,
            is_closed: false,
        };
        unfold(streaming, |mut streaming| async {
            let frame = streaming.next_event().await?;
            Some((frame.map(Frame::data), streaming))
        })
    }

    fn cut_connection(&mut self) -> ConnectionCutError {
        self.exchange_guard.settle(ExchangeState::Cut);
        ConnectionCutError
    }
}

/// Response that is being streamed.
struct EventStream {
    encoder: Box<dyn StreamEncoder>,
    playback: ResponsePlayback,
    ready_events: VecDeque<Bytes>,
    is_closed: bool,
}

impl EventStream {
    /// Returns the next event; each is written before the next is made.
    async fn next_event(&mut self) -> Option<Result<Bytes, ConnectionCutError>> {
        loop {
            if let Some(event) = self.ready_events.pop_front() {
                if self.is_closed && self.ready_events.is_empty() {
                    // A client may close the connection after the last event, before the end of the transfer.
                    self.playback.exchange_guard.settle(ExchangeState::Answered);
                }
                return Some(Ok(event));
            }
            if self.is_closed {
                return None;
            }
            match self.playback.steps.pop_front() {
                Some(PlaybackStep::Slow(pause)) => self.playback.pause = pause,
                Some(PlaybackStep::Hang) => wait_for_release(&self.playback.state).await,
                Some(PlaybackStep::Cut) => {
                    // An error discards unwritten data; yield so that the data is written first.
                    tokio::task::yield_now().await;
                    return Some(Err(self.playback.cut_connection()));
                }
                Some(PlaybackStep::Send(part)) => {
                    if !self.playback.pause.is_zero() {
                        tokio::time::sleep(self.playback.pause).await;
                    }
                    self.ready_events = self.encoder.encode_part(&part).into();
                }
                Some(PlaybackStep::Error(status, message)) => {
                    self.ready_events = self.encoder.encode_error(status, &message).into();
                    self.is_closed = true;
                }
                None => {
                    self.ready_events = self.encoder.encode_end(self.playback.end).into();
                    self.is_closed = true;
                }
            }
        }
    }
}

/// Waits for the next release of hanging responses.
async fn wait_for_release(state: &SharedState) {
    let mut stage = state.subscribe();
    let before = stage.borrow().release_count;
    // `state` holds the sender, so `wait_for` cannot fail.
    let _ = stage.wait_for(|stage| stage.release_count > before).await;
}
