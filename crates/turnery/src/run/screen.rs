//! Screen: the thread that writes what a prompt shows. All of it goes through one bounded queue, so
//! a question comes after the text before it, and a slow reader of stdout slows the model, not Ctrl-C.

use super::{progress::Progress, text::Text};
use crate::args::Format;
use serde::Serialize;
use std::{
    io::{self, IsTerminal as _, Write as _},
    task::{Context, Poll},
};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::PollSender;
use turnery_agent::{CancellationToken, Item, Outbox};
use turnery_engine::{Event, EventKind, LlmMessage, Message, render};

/// Items that wait to be written. When it is full, the session waits.
const QUEUE: usize = 256;

/// What the screen is given.
#[derive(Debug)]
enum Shown {
    Event(Box<Event>),
    Question(String, oneshot::Sender<()>),
}

/// What the screen has seen.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    /// The text of the model's last message, or the value that the prompt ended with.
    pub(crate) text: String,
}

/// The session's end of the queue.
pub(crate) struct ScreenOutbox(PollSender<Shown>);

/// The asker's end of the queue.
#[derive(Clone)]
pub(crate) struct Notices(mpsc::WeakSender<Shown>);

impl Notices {
    /// Show a question on stderr, after everything that came before it. False when nothing can be shown.
    pub(crate) async fn show(&self, text: String) -> bool {
        let (shown, seen) = oneshot::channel();
        let Some(sender) = self.0.upgrade() else {
            return false;
        };
        sender.send(Shown::Question(text, shown)).await.is_ok() && seen.await.is_ok()
    }
}

impl Outbox for ScreenOutbox {
    fn poll_room(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.0.poll_reserve(cx).map(|_| ())
    }

    fn push(&mut self, item: Item<'_>) {
        match item {
            // A screen that is gone has cancelled the prompt already.
            Item::Live(event) => {
                let _ = self.0.send_item(Shown::Event(Box::new(event.clone())));
            }
            Item::Replay(_) | Item::Info { .. } | Item::Ended(_) => self.release_room(),
        }
    }

    fn release_room(&mut self) {
        self.0.abort_send();
    }
}

/// Start the thread. It ends when the session has let go of its outbox, and cancels `cancel` if
/// stdout is gone.
pub(crate) fn start(
    format: Format,
    cancel: CancellationToken,
) -> io::Result<(ScreenOutbox, Notices, oneshot::Receiver<io::Result<Seen>>)> {
    let (sender, receiver) = mpsc::channel(QUEUE);
    let (done, end) = oneshot::channel();
    let notices = Notices(sender.downgrade());
    std::thread::Builder::new()
        .name("screen".to_owned())
        .spawn(move || {
            let written = write(format, receiver);
            if written.is_err() {
                cancel.cancel();
            }
            let _ = done.send(written);
        })?;
    Ok((ScreenOutbox(PollSender::new(sender)), notices, end))
}

/// One line of `--format stream-json`.
#[derive(Serialize)]
struct EventLine<'a> {
    r#type: &'static str,
    #[serde(flatten)]
    event: &'a Event,
}

fn write(format: Format, mut queue: mpsc::Receiver<Shown>) -> io::Result<Seen> {
    let mut out = io::stdout();
    let mut seen = Seen::default();
    let mut text = Text::new(out.is_terminal());
    let mut progress = Progress::new(crate::logs::colour());
    while let Some(shown) = queue.blocking_recv() {
        let event = match shown {
            Shown::Event(event) => event,
            Shown::Question(question, shown) => {
                io::stderr().lock().write_all(question.as_bytes())?;
                let _ = shown.send(());
                continue;
            }
        };
        seen.note(&event.kind);
        match format {
            Format::Text => {
                text.show(&event.kind, &mut out)?;
                progress.show(&event.kind, &mut io::stderr().lock())?;
            }
            Format::Json => progress.show(&event.kind, &mut io::stderr().lock())?,
            Format::StreamJson => line(
                &mut out,
                &EventLine {
                    r#type: "event",
                    event: &event,
                },
            )?,
        }
        // What has been said is seen at once, but a burst is written in one go.
        if queue.is_empty() {
            out.flush()?;
        }
    }
    out.flush()?;
    Ok(seen)
}

/// Write one JSON object as one line.
pub(crate) fn line(out: &mut impl io::Write, value: &impl Serialize) -> io::Result<()> {
    let mut bytes = serde_json::to_vec(value)?;
    bytes.push(b'\n');
    out.write_all(&bytes)?;
    out.flush()
}

impl Seen {
    fn note(&mut self, kind: &EventKind) {
        match kind {
            EventKind::MessageEnd { message } => {
                if let Some(text) = answer(message) {
                    self.text = text;
                }
            }
            EventKind::LoopEnd { outcome, .. } => {
                if let Some(value) = outcome.value() {
                    self.text = render(value);
                }
            }
            EventKind::TurnEnd { .. }
            | EventKind::ParallelStart { .. }
            | EventKind::ParallelEnd { .. }
            | EventKind::LoopStart { .. }
            | EventKind::InputRejected { .. }
            | EventKind::TurnStart { .. }
            | EventKind::MessageStart { .. }
            | EventKind::Delta { .. }
            | EventKind::UsageReported { .. }
            | EventKind::ToolCallRequested { .. }
            | EventKind::PermissionRequested { .. }
            | EventKind::PermissionResolved { .. }
            | EventKind::ToolExecutionStart { .. }
            | EventKind::ToolExecutionUpdate { .. }
            | EventKind::ToolExecutionOutput { .. }
            | EventKind::ToolExecutionEnd { .. }
            | EventKind::PlanUpdated { .. }
            | EventKind::CompactionStarted { .. }
            | EventKind::CompactionEnded { .. }
            | EventKind::ModelRetried { .. }
            | EventKind::ModelSilent { .. }
            | EventKind::Issue { .. }
            | EventKind::ToolProgress { .. }
            | EventKind::ChildUsageReported { .. }
            | EventKind::FinalValue { .. }
            | EventKind::ToolValue { .. } => {}
        }
    }
}

/// The text of a message of the model's, if it has any.
pub(crate) fn answer(message: &LlmMessage) -> Option<String> {
    match &message.message {
        Message::Assistant { .. } => Some(message.message.text()).filter(|text| !text.is_empty()),
        Message::System { .. } | Message::User { .. } | Message::ToolResult { .. } => None,
    }
}
