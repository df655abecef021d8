//! The interpreter's connection to the host.

use crate::protocol::{
    FrameKind, HostMessage, WorkerMessage, decode_message, encode_frame, encode_message,
    invalid_data,
};
use std::{
    fs::File,
    io::{self, Write as _},
    sync::mpsc::Receiver,
};

/// Frame of the host, as the reading thread passes it on.
pub(super) type HostFrame = (FrameKind, Vec<u8>);

/// Connection of the interpreter to the host.
pub(super) struct HostChannel {
    frames: Receiver<HostFrame>,
    output: File,
}

impl HostChannel {
    pub(super) fn new(frames: Receiver<HostFrame>, output: File) -> Self {
        Self { frames, output }
    }

    /// Waits for the next message.
    ///
    /// # Errors
    ///
    /// Returns an error if the host is gone or the frame is no message.
    pub(super) fn receive(&mut self) -> io::Result<HostMessage> {
        to_message(self.receive_frame()?)
    }

    /// Waits for the next frame, a snapshot.
    ///
    /// # Errors
    ///
    /// Returns an error if the host is gone or the frame is no snapshot.
    pub(super) fn receive_snapshot(&mut self) -> io::Result<Vec<u8>> {
        match self.receive_frame()? {
            (FrameKind::Snapshot, content) => Ok(content),
            (FrameKind::Message, _) => Err(invalid_data("expected a snapshot")),
        }
    }

    /// Sends a message.
    ///
    /// # Errors
    ///
    /// Returns an error if the host is gone.
    pub(super) fn send(&mut self, message: &WorkerMessage) -> io::Result<()> {
        self.output.write_all(&encode_message(message)?)
    }

    /// Sends a snapshot.
    ///
    /// # Errors
    ///
    /// Returns an error if the host is gone.
    pub(super) fn send_snapshot(&mut self, snapshot: &[u8]) -> io::Result<()> {
        let frame = encode_frame(FrameKind::Snapshot, snapshot)?;
        self.output.write_all(&frame)
    }

    fn receive_frame(&mut self) -> io::Result<HostFrame> {
        self.frames.recv().map_err(io::Error::other)
    }
}

/// Decodes the message in a frame.
///
/// # Errors
///
/// Returns an error if the frame is no message.
pub(super) fn to_message((kind, content): HostFrame) -> io::Result<HostMessage> {
    match kind {
        FrameKind::Message => decode_message(&content),
        FrameKind::Snapshot => Err(invalid_data("expected a message")),
    }
}
