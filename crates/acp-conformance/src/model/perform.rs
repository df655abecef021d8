//! Perform: an answer of the script becomes what one request gets, beat by beat.

use super::{
    asked::{Api, Asked},
    record::{Exchange, Fate},
    script::{Answer, Piece},
    spoken::{Encode, Ending, Head, Part, encoder, whole},
    stage::{Shared, Ticket},
    tools::{Candidates, resolve},
};
use bytes::Bytes;
use futures_util::stream::{Stream, unfold};
use hyper::body::Frame;
use serde_json::Value;
use std::{collections::VecDeque, time::Duration};

/// One thing that happens on the wire.
#[derive(Debug, PartialEq)]
enum Beat {
    Say(Part),
    Slow(Duration),
    Hang,
    Cut,
    Fail(u16, String),
}

/// An answer with the agent's own tools in it.
#[derive(Debug)]
pub(super) struct Performance {
    beats: VecDeque<Beat>,
    ending: Ending,
    api: Api,
    head: Head,
    pause: Duration,
    ticket: Ticket,
    stage: Shared,
}

/// The connection is to be closed with the answer unfinished.
#[derive(Debug, thiserror::Error)]
#[error("the script cuts the connection")]
pub(super) struct CutOff;

/// What a request gets at first.
pub(super) enum Opening {
    /// An answer.
    Answer(Performance),
    /// An HTTP error.
    Error(u16, String),
}

impl Performance {
    pub(super) fn new(
        answer: Answer,
        asked: &Asked,
        candidates: &Candidates,
        stage: &Shared,
        ticket: Ticket,
    ) -> Self {
        let mut beats = VecDeque::new();
        let mut calls = Vec::new();
        let (mut served, mut missing) = (Vec::new(), Vec::new());
        for piece in answer.pieces {
            beats.push_back(match piece {
                Piece::Text(text) => Beat::Say(Part::Text(text)),
                Piece::Think(text) => Beat::Say(Part::Think(text)),
                Piece::Refusal(text) => Beat::Say(Part::Refusal(text)),
                Piece::Slow(pause) => Beat::Slow(pause),
                Piece::Hang => Beat::Hang,
                Piece::Cut => Beat::Cut,
                Piece::Error(status, message) => Beat::Fail(status, message),
                Piece::Call(tool, arguments) => {
                    match resolve(&tool, &arguments, &asked.offered, candidates) {
                        Some(called) => {
                            calls.push(called.name.clone());
                            served.push(tool);
                            Beat::Say(Part::Call(called))
                        }
                        None => {
                            let text = format!("No tool on offer does {tool}.");
                            missing.push(tool);
                            Beat::Say(Part::Text(text))
                        }
                    }
                }
            });
        }
        ticket.note(|exchange: &mut Exchange| {
            exchange.calls = calls;
            exchange.served = served;
            exchange.missing = missing;
        });
        Self {
            beats,
            ending: Ending {
                stop: answer.stop,
                usage: answer.usage,
            },
            api: asked.api,
            head: Head {
                number: ticket.number(),
                model: asked.model.clone(),
            },
            pause: Duration::ZERO,
            ticket,
            stage: Shared::clone(stage),
        }
    }

    /// What comes before the first word: silence, or an error instead of an answer.
    pub(super) async fn open(mut self) -> Result<Opening, CutOff> {
        while let Some(beat) = self.beats.pop_front() {
            match beat {
                Beat::Slow(pause) => self.pause = pause,
                Beat::Hang => released(&self.stage).await,
                Beat::Cut => return Err(self.cut()),
                Beat::Fail(status, message) => {
                    self.ticket.note(|exchange| exchange.status = Some(status));
                    self.ticket.settle(Fate::Answered);
                    return Ok(Opening::Error(status, message));
                }
                Beat::Say(_) => {
                    self.beats.push_front(beat);
                    break;
                }
            }
        }
        self.ticket.note(|exchange| exchange.status = Some(200));
        Ok(Opening::Answer(self))
    }

    /// The answer in one piece.
    pub(super) async fn whole(mut self) -> Result<Value, CutOff> {
        let mut parts = Vec::new();
        while let Some(beat) = self.beats.pop_front() {
            match beat {
                Beat::Slow(pause) => self.pause = pause,
                Beat::Hang => released(&self.stage).await,
                // There is no way to tell of an error behind a status of 200.
                Beat::Cut | Beat::Fail(..) => return Err(self.cut()),
                Beat::Say(part) => {
                    tokio::time::sleep(self.pause).await;
                    parts.push(part);
                }
            }
        }
        self.ticket.settle(Fate::Answered);
        Ok(whole(self.api, &self.head, &parts, self.ending))
    }

    /// The answer as the events of its API.
    pub(super) fn stream(self) -> impl Stream<Item = Result<Frame<Bytes>, CutOff>> + Send {
        let mut encoder = encoder(self.api, self.head.clone());
        let streaming = Streaming {
            ready: encoder.open().into(),
            encoder,
            performance: self,
            closed: false,
        };
        unfold(streaming, |mut streaming| async {
            let frame = streaming.next().await?;
            Some((frame.map(Frame::data), streaming))
        })
    }

    fn cut(&mut self) -> CutOff {
        self.ticket.settle(Fate::Cut);
        CutOff
    }
}

/// An answer that is being streamed.
struct Streaming {
    encoder: Box<dyn Encode>,
    performance: Performance,
    ready: VecDeque<Bytes>,
    closed: bool,
}

impl Streaming {
    /// The next event; each goes out before the next is made.
    async fn next(&mut self) -> Option<Result<Bytes, CutOff>> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                if self.closed && self.ready.is_empty() {
                    // Whoever has the last event may leave without the end of the transfer.
                    self.performance.ticket.settle(Fate::Answered);
                }
                return Some(Ok(event));
            }
            if self.closed {
                return None;
            }
            match self.performance.beats.pop_front() {
                Some(Beat::Slow(pause)) => self.performance.pause = pause,
                Some(Beat::Hang) => released(&self.performance.stage).await,
                Some(Beat::Cut) => {
                    // An error throws away what is not yet written; a pause lets it be written first.
                    tokio::task::yield_now().await;
                    return Some(Err(self.performance.cut()));
                }
                Some(Beat::Say(part)) => {
                    if !self.performance.pause.is_zero() {
                        tokio::time::sleep(self.performance.pause).await;
                    }
                    self.ready = self.encoder.part(&part).into();
                }
                Some(Beat::Fail(status, message)) => {
                    self.ready = self.encoder.fail(status, &message).into();
                    self.closed = true;
                }
                None => {
                    self.ready = self.encoder.close(self.performance.ending).into();
                    self.closed = true;
                }
            }
        }
    }
}

/// Until what hangs is released once more.
async fn released(stage: &Shared) {
    let mut stage = stage.subscribe();
    let before = stage.borrow().releases;
    // The sender outlives every answer, for the answer holds it.
    let _ = stage.wait_for(|stage| stage.releases > before).await;
}
