//! Writes a prompt's output on a separate thread. All output goes through one bounded queue, so that a question
//! appears after the text before it, and a slow reader of stdout slows the model but not Ctrl-C.

use super::{progress::ProgressWriter, text_writer::TextWriter};
use crate::args::OutputFormat;
use serde::Serialize;
use std::{
    io::{self, IsTerminal as _, Write as _},
    task::{Context, Poll},
};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::PollSender;
use turnery_agent::{
    CancellationToken, Outbox, OutboxItem,
    view::{SessionView, ViewChange},
};
use turnery_engine::{Event, LlmMessage, Message, render_value};

/// Capacity of the output queue; the session waits while it is full.
const QUEUE_CAPACITY: usize = 256;

/// Item of the output queue.
#[derive(Debug)]
enum OutputItem {
    Event(Box<Event>),
    Question(String, oneshot::Sender<()>),
}

/// Sender of the output queue for the session.
pub(crate) struct QueueOutbox(PollSender<OutputItem>);

/// Sender of the output queue for everything that the session does not send.
#[derive(Clone)]
pub(crate) struct OutputSender(mpsc::WeakSender<OutputItem>);

impl OutputSender {
    /// Shows an event of a loop that another process has run.
    pub(crate) async fn show_event(&self, event: Event) {
        if let Some(sender) = self.0.upgrade() {
            // If the output thread has ended, it reports why.
            let _ = sender.send(OutputItem::Event(Box::new(event))).await;
        }
    }

    /// Prints a question on stderr after all earlier output. Returns false if nothing can be printed.
    pub(crate) async fn show_question(&self, text: String) -> bool {
        let (shown, seen) = oneshot::channel();
        let Some(sender) = self.0.upgrade() else {
            return false;
        };
        sender.send(OutputItem::Question(text, shown)).await.is_ok() && seen.await.is_ok()
    }
}

impl Outbox for QueueOutbox {
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.0.poll_reserve(cx).map(|_| ())
    }

    fn push(&mut self, item: OutboxItem<'_>) {
        match item {
            // If the output thread has ended, it has already cancelled the prompt.
            OutboxItem::Live(event) => {
                let _ = self.0.send_item(OutputItem::Event(Box::new(event.clone())));
            }
            OutboxItem::Replay(_)
            | OutboxItem::ReplayEnd
            | OutboxItem::Info { .. }
            | OutboxItem::PromptEnd(_) => self.release_slot(),
        }
    }

    fn release_slot(&mut self) {
        self.0.abort_send();
    }
}

/// Starts the output thread. The thread ends when the session drops its outbox, and cancels `cancel` if stdout is
/// closed. `writes_text` is false if stdout is reserved for a value. The receiver gets the prompt's final text: the
/// model's last message, or the value it ended with.
pub(crate) fn start(
    format: OutputFormat,
    writes_text: bool,
    cancel: CancellationToken,
) -> io::Result<(
    QueueOutbox,
    OutputSender,
    oneshot::Receiver<io::Result<String>>,
)> {
    let (sender, receiver) = mpsc::channel(QUEUE_CAPACITY);
    let (done, end) = oneshot::channel();
    let questions = OutputSender(sender.downgrade());
    std::thread::Builder::new()
        .name("output".to_owned())
        .spawn(move || {
            let written = write_output(format, writes_text, receiver);
            if written.is_err() {
                cancel.cancel();
            }
            let _ = done.send(written);
        })?;
    Ok((QueueOutbox(PollSender::new(sender)), questions, end))
}

/// A line of `--format stream-json`.
#[derive(Serialize)]
struct JsonEvent<'a> {
    r#type: &'static str,
    #[serde(flatten)]
    event: &'a Event,
}

fn write_output(
    format: OutputFormat,
    writes_text: bool,
    mut queue: mpsc::Receiver<OutputItem>,
) -> io::Result<String> {
    let mut out = io::stdout();
    let mut final_text = String::new();
    let mut text = TextWriter::new(out.is_terminal());
    let mut progress = ProgressWriter::new(crate::logs::is_colour_enabled());
    let mut view = SessionView::default();
    while let Some(shown) = queue.blocking_recv() {
        let event = match shown {
            OutputItem::Event(event) => event,
            OutputItem::Question(question, shown) => {
                io::stderr().lock().write_all(question.as_bytes())?;
                let _ = shown.send(());
                continue;
            }
        };
        if format == OutputFormat::StreamJson {
            let line = JsonEvent {
                r#type: "event",
                event: &event,
            };
            write_json_line(&mut out, &line)?;
        }
        let mut write = |change: &ViewChange<'_>| -> io::Result<()> {
            update_final_text(&mut final_text, change);
            match format {
                OutputFormat::Text => {
                    if writes_text {
                        text.write_change(change, &mut out)?;
                    }
                    progress.write_change(change, &mut io::stderr().lock())
                }
                OutputFormat::Json => progress.write_change(change, &mut io::stderr().lock()),
                OutputFormat::StreamJson => Ok(()),
            }
        };
        let mut written = Ok(());
        view.apply(OutboxItem::Live(&event), &mut |change| {
            if written.is_ok() {
                written = write(&change);
            }
        });
        written?;
        // Output appears at once, but a burst is written in one go.
        if queue.is_empty() {
            out.flush()?;
        }
    }
    out.flush()?;
    Ok(final_text)
}

/// Writes a JSON object as one line.
pub(crate) fn write_json_line(out: &mut impl io::Write, value: &impl Serialize) -> io::Result<()> {
    let mut bytes = serde_json::to_vec(value)?;
    bytes.push(b'\n');
    out.write_all(&bytes)?;
    out.flush()
}

fn update_final_text(final_text: &mut String, change: &ViewChange<'_>) {
    if let ViewChange::Message { message, .. } = change
        && let Some(text) = assistant_text(message)
    {
        *final_text = text;
    }
    if let ViewChange::LoopEnded(outcome) = change
        && let Some(value) = outcome.value()
    {
        *final_text = render_value(value);
    }
}

/// Returns the text of an assistant message, if it has any.
pub(crate) fn assistant_text(message: &LlmMessage) -> Option<String> {
    match &message.message {
        Message::Assistant { .. } => Some(message.message.text()).filter(|text| !text.is_empty()),
        Message::System { .. } | Message::User { .. } | Message::ToolResult { .. } => None,
    }
}

/// Applies events to a new view and passes each change to `show`.
#[cfg(test)]
pub(super) fn show_events(
    kinds: Vec<turnery_engine::EventKind>,
    mut show: impl FnMut(&ViewChange<'_>),
) {
    let mut view = SessionView::default();
    for kind in kinds {
        let event = Event {
            session_id: "s1".into(),
            loop_id: "s1.m.1".into(),
            seq: 0,
            turn_index: None,
            at: turnery_engine::Timestamp::UNIX_EPOCH,
            kind,
        };
        view.apply(OutboxItem::Live(&event), &mut |change| show(&change));
    }
}
