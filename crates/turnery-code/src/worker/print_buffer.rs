//! Sends printed text to the host in chunks.

use super::host_channel::HostChannel;
use crate::protocol::WorkerMessage;
use monty_types::{ExcType, MontyException, PrintWriterCallback};
use std::{
    borrow::Cow,
    io,
    time::{Duration, Instant},
};

/// Size at which text is sent. Unit: bytes.
const CHUNK_BYTES: usize = 16 << 10;
/// Time after which text is sent, if the interpreter asks.
const FLUSH_INTERVAL: Duration = Duration::from_millis(50);

/// Printed text on its way to the host.
pub(super) struct PrintBuffer<'a> {
    channel: &'a mut HostChannel,
    text: String,
    sent_at: Instant,
    /// Error of the connection, after which nothing is sent.
    error: Option<io::Error>,
}

impl<'a> PrintBuffer<'a> {
    pub(super) fn new(channel: &'a mut HostChannel) -> Self {
        Self {
            channel,
            text: String::new(),
            sent_at: Instant::now(),
            error: None,
        }
    }

    /// Sends all text and returns the connection.
    ///
    /// # Errors
    ///
    /// Returns the error of the connection, also an earlier one.
    pub(super) fn flush(&mut self) -> io::Result<&mut HostChannel> {
        if let Some(error) = self.error.take() {
            return Err(error);
        }
        if !self.text.is_empty() {
            let text = std::mem::take(&mut self.text);
            self.channel.send(&WorkerMessage::Print(text))?;
        }
        self.sent_at = Instant::now();
        Ok(self.channel)
    }

    /// Like [`flush`](Self::flush), but keeps the error and makes the interpreter stop.
    fn flush_in_code(&mut self) -> Result<(), MontyException> {
        match self.flush() {
            Ok(_) => Ok(()),
            Err(error) => {
                self.error = Some(error);
                let message = Some("the host is gone".to_owned());
                Err(MontyException::new(ExcType::SystemExit, message))
            }
        }
    }
}

impl PrintWriterCallback for PrintBuffer<'_> {
    fn stdout_write(&mut self, output: Cow<'_, str>) -> Result<(), MontyException> {
        let mut rest = output.as_ref();
        while !rest.is_empty() {
            // At least one character, which takes up to 4 bytes.
            let room = CHUNK_BYTES.saturating_sub(self.text.len()).max(4);
            let (chunk, later) = rest.split_at(rest.floor_char_boundary(room));
            self.text.push_str(chunk);
            if self.text.len() >= CHUNK_BYTES {
                self.flush_in_code()?;
            }
            rest = later;
        }
        Ok(())
    }

    fn stdout_push(&mut self, end: char) -> Result<(), MontyException> {
        self.text.push(end);
        Ok(())
    }

    fn poll_flush(&mut self) -> Result<(), MontyException> {
        match !self.text.is_empty() && self.sent_at.elapsed() >= FLUSH_INTERVAL {
            true => self.flush_in_code(),
            false => Ok(()),
        }
    }
}
