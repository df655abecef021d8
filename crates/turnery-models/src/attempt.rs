//! Attempt: reads one answer from a stream of bytes, within its bounds and without holding the thread.

use crate::{
    DeltaSender,
    fault::{self, Said},
    http::Endpoint,
    remote::{Broken, Reader, Step},
    retry::Failure,
    silence::{Silence, TooSilent},
    sse::Decoder,
};
use bytes::Bytes;
use std::{future::Future, panic};
use turnery_engine::{AnswerLimits, ModelDelta, ModelFault, Response};

/// How much of an answer is read before other tasks of the runtime get their turn. Unit: bytes.
const AT_ONCE: usize = 64 * 1024;

/// An answer longer than this is settled beside the runtime, since its arguments are parsed then.
/// Unit: bytes.
const SETTLED_HERE: u64 = 256 * 1024;

/// The bytes of an answer, as they come.
pub(crate) trait Source: Send {
    /// The next bytes; `None` at the end of the answer.
    fn next(&mut self) -> impl Future<Output = Result<Option<Bytes>, ModelFault>> + Send;
}

/// What reads one answer, and for whom.
pub(crate) struct Attempt<'a, R> {
    pub(crate) at: &'a Endpoint,
    pub(crate) reader: R,
    pub(crate) limits: AnswerLimits,
    pub(crate) out: &'a DeltaSender,
    /// Becomes true with the first fragment.
    pub(crate) sent: &'a mut bool,
}

impl<R: Reader> Attempt<'_, R> {
    /// Reads the whole answer.
    pub(crate) async fn read(
        mut self,
        source: &mut impl Source,
        silence: &mut Silence<'_>,
    ) -> Result<Response, Failure> {
        let mut decoder = Decoder::default();
        let mut unread = 0;
        loop {
            let next = silence.during(source.next()).await;
            let chunk = next.map_err(|which| self.too_silent(silence, which))??;
            if let Some(bytes) = &chunk {
                silence.hear();
                unread += bytes.len();
                decoder.push(bytes);
            }
            let step = self.events(&mut decoder, chunk.is_none(), silence).await?;
            if step == Step::Done || chunk.is_none() {
                break;
            }
            if unread >= AT_ONCE {
                unread = 0;
                tokio::task::yield_now().await;
            }
        }
        self.settle().await
    }

    /// Reads the events that are there.
    async fn events(
        &mut self,
        decoder: &mut Decoder,
        is_last: bool,
        silence: &mut Silence<'_>,
    ) -> Result<Step, Failure> {
        let mut deltas = Vec::new();
        let mut unread = 0;
        while let Some(data) = decoder.next(is_last) {
            let data = data.map_err(|why| self.fails(Broken::Promise(why.to_string()), is_last))?;
            // Some servers send an empty event to keep the connection open.
            if data.trim_ascii().is_empty() {
                continue;
            }
            unread += data.len();
            let size = self.reader.size().bytes();
            let read = self.reader.on(data, &mut deltas);
            // Signatures and blocks that only the provider reads are content without a delta.
            let has_content = !deltas.is_empty() || self.reader.size().bytes() > size;
            self.send(&mut deltas).await;
            if has_content {
                silence.end();
            }
            let step = read.map_err(|why| self.fails(why, is_last))?;
            if let Err(overrun) = self.reader.size().check(&self.limits) {
                return Err(fault::too_long(overrun).into());
            }
            if step == Step::Done {
                return Ok(step);
            }
            if unread >= AT_ONCE {
                unread = 0;
                tokio::task::yield_now().await;
            }
        }
        Ok(Step::More)
    }

    async fn send(&mut self, deltas: &mut Vec<ModelDelta>) {
        for delta in deltas.drain(..) {
            *self.sent = true;
            self.out.send(delta).await;
        }
    }

    async fn settle(self) -> Result<Response, Failure> {
        let Self { at, reader, .. } = self;
        let ended = if reader.size().bytes() <= SETTLED_HERE {
            reader.end()
        } else {
            match tokio::task::spawn_blocking(move || reader.end()).await {
                Ok(ended) => ended,
                Err(error) => match error.try_into_panic() {
                    Ok(panic) => panic::resume_unwind(panic),
                    Err(_) => Err(Broken::Unfinished("turnery is ending".to_owned())),
                },
            }
        };
        ended.map_err(|why| broken(at, why).into())
    }

    /// Behind the last blank line lies an event that may be whole, or have broken off.
    fn fails(&self, why: Broken, is_last: bool) -> ModelFault {
        let why = match why {
            Broken::Promise(why) if is_last => Broken::Unfinished(why),
            why @ (Broken::Promise(_) | Broken::Unfinished(_) | Broken::Said(_)) => why,
        };
        broken(self.at, why)
    }

    fn too_silent(&self, silence: &Silence<'_>, which: TooSilent) -> ModelFault {
        too_silent(self.at, silence, which)
    }
}

fn broken(at: &Endpoint, why: Broken) -> ModelFault {
    match why {
        Broken::Promise(why) => fault::broken_promise(at, &why),
        Broken::Unfinished(why) => fault::unfinished(at, &why),
        Broken::Said(said) => Said::fault(&said, at, None),
    }
}

/// The fault of a call that was silent for too long.
pub(crate) fn too_silent(at: &Endpoint, silence: &Silence<'_>, which: TooSilent) -> ModelFault {
    match which {
        TooSilent::Idle => fault::silent(at, silence.limits().idle),
        TooSilent::Content => fault::no_content(at, silence.limits().content),
    }
}

#[cfg(test)]
mod tests;
