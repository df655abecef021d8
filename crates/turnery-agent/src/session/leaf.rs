//! Leaves: one model call or one tool at work. Polled by the session task itself, so dropping one
//! ends it at once, with its connection or its processes.

use super::most::Room;
use crate::{CancellationToken, subagent, trace_sink::Trace};
use futures_util::{FutureExt, future::BoxFuture};
use std::{
    panic::AssertUnwindSafe,
    sync::Arc,
    task::{Context, Poll},
};
use tokio::sync::mpsc;
use turnery_engine::{
    CallId, FailureKind, FaultKind, ModelFault, Response, ToolCall, ToolEnvelope,
};
use turnery_models::{DeltaSender, Model, ModelRequest, Told};
use turnery_tools::{Progress, ToolCx, Toolbox};

/// Fragments that may wait between the model and the session.
const DELTAS_WAITING: usize = 64;
/// Reports that may wait between a tool and the session.
pub(crate) const REPORTS_WAITING: usize = 16;

/// Something that streams and then ends: what it streams in order, then how it ended, once.
struct Leaf<T, E> {
    stream: mpsc::Receiver<T>,
    future: Option<BoxFuture<'static, E>>,
    end: Option<E>,
}

/// What a leaf has for the session.
pub(crate) enum Said<T, E> {
    /// The next of its stream.
    Item(T),
    /// Its end.
    End(E),
}

impl<T, E> Leaf<T, E> {
    fn new(stream: mpsc::Receiver<T>, future: BoxFuture<'static, E>) -> Self {
        Self {
            stream,
            future: Some(future),
            end: None,
        }
    }

    /// The work always goes on; its stream is read only while `listen`.
    fn poll(&mut self, cx: &mut Context<'_>, listen: bool) -> Poll<Said<T, E>> {
        if let Some(future) = &mut self.future
            && let Poll::Ready(end) = future.as_mut().poll(cx)
        {
            self.end = Some(end);
            self.future = None;
            self.stream.close();
        }
        if !listen {
            return Poll::Pending;
        }
        match self.stream.poll_recv(cx) {
            Poll::Ready(Some(item)) => Poll::Ready(Said::Item(item)),
            // Closed with the future's end, so all of the stream has been read.
            Poll::Ready(None) => match self.end.take() {
                Some(end) => Poll::Ready(Said::End(end)),
                None => Poll::Pending,
            },
            Poll::Pending => Poll::Pending,
        }
    }
}

/// A model at work.
pub(crate) struct RunningModel {
    leaf: Leaf<Told, Result<Response, ModelFault>>,
    trace: Trace,
}

impl RunningModel {
    /// Call the model.
    pub(crate) fn call(model: Arc<dyn Model>, request: ModelRequest, trace: Trace) -> Self {
        let (sender, deltas) = DeltaSender::new(DELTAS_WAITING);
        let call = AssertUnwindSafe(async move { model.call(request, sender).await });
        let call = call.catch_unwind().map(|ended| {
            ended.unwrap_or_else(|_| {
                Err(ModelFault {
                    kind: FaultKind::Protocol,
                    message: "the model adapter broke; this is a fault of turnery".to_owned(),
                    status: None,
                    retry_after: None,
                })
            })
        });
        let leaf = Leaf::new(deltas, call.boxed());
        Self { leaf, trace }
    }

    pub(crate) fn poll(
        &mut self,
        cx: &mut Context<'_>,
        listen: bool,
    ) -> Poll<Said<Told, Result<Response, ModelFault>>> {
        let said = self.leaf.poll(cx, listen);
        match &said {
            Poll::Ready(Said::Item(Told::Retry(retry))) => self.trace.failed(retry),
            Poll::Ready(Said::End(end)) => self.trace.end(end),
            Poll::Ready(Said::Item(Told::Delta(_) | Told::Silent(_))) | Poll::Pending => {}
        }
        said
    }
}

/// A tool at work.
pub(crate) struct RunningTool {
    pub(crate) call_id: CallId,
    pub(crate) is_sub_agent: bool,
    cancel: CancellationToken,
    room: Room,
    leaf: Leaf<Progress, ToolEnvelope>,
}

impl RunningTool {
    /// Run a call.
    pub(crate) fn run(
        toolbox: Toolbox,
        call: ToolCall,
        cx: ToolCx,
        reports: mpsc::Receiver<Progress>,
    ) -> Self {
        let call_id = call.call_id.clone();
        let is_sub_agent = call.name == subagent::NAME;
        let cancel = cx.cancel.clone();
        let run = AssertUnwindSafe(async move { toolbox.run(&call, &cx).await });
        let run = run.catch_unwind().map(|ended| {
            ended.unwrap_or_else(|_| {
                let why = "the tool broke; this is a fault of turnery, not of the arguments";
                ToolEnvelope::failed(FailureKind::Exception, why)
            })
        });
        Self {
            call_id,
            is_sub_agent,
            cancel,
            room: Room::default(),
            leaf: Leaf::new(reports, run.boxed()),
        }
    }

    /// Ask it to stop.
    pub(crate) fn stop(&self) {
        self.cancel.cancel();
    }

    pub(crate) fn poll(
        &mut self,
        cx: &mut Context<'_>,
        listen: bool,
    ) -> Poll<Said<Progress, ToolEnvelope>> {
        loop {
            match std::task::ready!(self.leaf.poll(cx, listen)) {
                Said::Item(report) => {
                    if let Some(report) = self.room.admit(report) {
                        return Poll::Ready(Said::Item(report));
                    }
                }
                Said::End(envelope) => {
                    return Poll::Ready(Said::End(self.room.close(envelope)));
                }
            }
        }
    }
}
