//! Runs one model call or one tool call. The session task polls it, so dropping it ends the call at once, with
//! its connection or processes.

use super::output_limit::OutputBudget;
use crate::trace_sink::ModelCallTrace;
use futures_util::{FutureExt, future::BoxFuture};
use std::{
    panic::AssertUnwindSafe,
    sync::Arc,
    task::{Context, Poll},
};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use turnery_engine::{
    CallId, ModelError, ModelErrorKind, Response, ToolCall, ToolEnvelope, ToolErrorKind,
};
use turnery_models::{Model, ModelEvent, ModelEventSender, ModelRequest};
use turnery_tools::{NestedCalls, Progress, ToolCx, Toolbox};

/// Deltas buffered between the model and the session.
const DELTA_QUEUE_CAPACITY: usize = 64;
/// Reports buffered between a tool and the session.
pub(crate) const REPORT_QUEUE_CAPACITY: usize = 16;

/// Future with a stream of items: yields the items in order, then the result, once.
struct StreamingTask<T, E> {
    stream: mpsc::Receiver<T>,
    future: Option<BoxFuture<'static, E>>,
    end: Option<E>,
}

/// Output of a running call.
pub(crate) enum StreamItem<T, E> {
    /// Next item of the stream.
    Item(T),
    /// Result.
    End(E),
}

impl<T, E> StreamingTask<T, E> {
    fn new(stream: mpsc::Receiver<T>, future: BoxFuture<'static, E>) -> Self {
        Self {
            stream,
            future: Some(future),
            end: None,
        }
    }

    /// Polls the future always, but its stream only if `listen`.
    fn poll(&mut self, cx: &mut Context<'_>, listen: bool) -> Poll<StreamItem<T, E>> {
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
            Poll::Ready(Some(item)) => Poll::Ready(StreamItem::Item(item)),
            // The channel closes when the future ends, so the whole stream has been read.
            Poll::Ready(None) => match self.end.take() {
                Some(end) => Poll::Ready(StreamItem::End(end)),
                None => Poll::Pending,
            },
            Poll::Pending => Poll::Pending,
        }
    }
}

/// Running model call.
pub(crate) struct RunningModel {
    stream: StreamingTask<ModelEvent, Result<Response, ModelError>>,
    trace: ModelCallTrace,
}

impl RunningModel {
    pub(crate) fn start(
        model: Arc<dyn Model>,
        request: ModelRequest,
        trace: ModelCallTrace,
    ) -> Self {
        let (sender, deltas) = ModelEventSender::new(DELTA_QUEUE_CAPACITY);
        let call = AssertUnwindSafe(async move { model.call(request, sender).await });
        let call = call.catch_unwind().map(|ended| {
            ended.unwrap_or_else(|_| {
                let why = "the model adapter panicked; this is a bug in turnery";
                Err(ModelError::new(ModelErrorKind::Protocol, why))
            })
        });
        let stream = StreamingTask::new(deltas, call.boxed());
        Self { stream, trace }
    }

    pub(crate) fn poll(
        &mut self,
        cx: &mut Context<'_>,
        listen: bool,
    ) -> Poll<StreamItem<ModelEvent, Result<Response, ModelError>>> {
        let item = self.stream.poll(cx, listen);
        match &item {
            Poll::Ready(StreamItem::Item(ModelEvent::Retry(retry))) => {
                self.trace.attempt_failed(retry)
            }
            Poll::Ready(StreamItem::End(end)) => self.trace.end(end),
            Poll::Ready(StreamItem::Item(ModelEvent::Delta(_) | ModelEvent::Silence(_)))
            | Poll::Pending => {}
        }
        item
    }
}

/// Report of a running tool.
pub(crate) enum ToolReport {
    Progress(Progress),
    NestedCalls(NestedCalls),
}

/// Running tool call.
pub(crate) struct RunningTool {
    pub(crate) call_id: CallId,
    pub(crate) opens_sessions: bool,
    cancel: CancellationToken,
    output_budget: OutputBudget,
    stream: StreamingTask<Progress, ToolEnvelope>,
    nested_calls: mpsc::Receiver<NestedCalls>,
    /// Takes the results of the nested calls that are running.
    pub(crate) reply: Option<oneshot::Sender<Vec<ToolEnvelope>>>,
    /// Number of ids given to nested calls.
    pub(crate) nested_count: usize,
}

impl RunningTool {
    pub(crate) fn start(
        toolbox: Toolbox,
        call: ToolCall,
        cx: ToolCx,
        reports: mpsc::Receiver<Progress>,
        nested_calls: mpsc::Receiver<NestedCalls>,
    ) -> Self {
        let call_id = call.call_id.clone();
        let tool = toolbox.get(&call.name);
        let opens_sessions = tool.is_some_and(|tool| tool.opens_sessions());
        let cancel = cx.cancel.clone();
        let run = AssertUnwindSafe(async move { toolbox.run(&call, &cx).await });
        let run = run.catch_unwind().map(|ended| {
            ended.unwrap_or_else(|_| {
                let why = "the tool panicked; this is a bug in turnery, not in the arguments";
                ToolEnvelope::failed(ToolErrorKind::Exception, why)
            })
        });
        Self {
            call_id,
            opens_sessions,
            cancel,
            output_budget: OutputBudget::default(),
            stream: StreamingTask::new(reports, run.boxed()),
            nested_calls,
            reply: None,
            nested_count: 0,
        }
    }

    /// Cancels the tool's token. The tool may still run; dropping this aborts it.
    pub(crate) fn cancel(&self) {
        self.cancel.cancel();
    }

    pub(crate) fn poll(
        &mut self,
        cx: &mut Context<'_>,
        listen: bool,
    ) -> Poll<StreamItem<ToolReport, ToolEnvelope>> {
        loop {
            match self.stream.poll(cx, listen) {
                Poll::Ready(StreamItem::Item(report)) => {
                    if let Some(report) = self.output_budget.admit(report) {
                        return Poll::Ready(StreamItem::Item(ToolReport::Progress(report)));
                    }
                }
                // What the tool reported before it called others has been read. It calls others once at a time: the
                // next request waits until the results of this one are returned.
                Poll::Pending if listen && self.reply.is_none() => {
                    let Poll::Ready(Some(calls)) = self.nested_calls.poll_recv(cx) else {
                        return Poll::Pending;
                    };
                    return Poll::Ready(StreamItem::Item(ToolReport::NestedCalls(calls)));
                }
                Poll::Pending => return Poll::Pending,
                Poll::Ready(StreamItem::End(envelope)) => {
                    return Poll::Ready(StreamItem::End(
                        self.output_budget.limit_envelope(envelope),
                    ));
                }
            }
        }
    }
}
