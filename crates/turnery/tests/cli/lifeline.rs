//! A FIFO that tells when the last of many processes has ended, whoever their parent is by then.

use crate::home::Home;
use rustix::fs::{CWD, FileType, Mode, mknodat};
use std::{path::Path, time::Duration};
use tokio::{
    io::AsyncReadExt as _,
    net::unix::pipe::{OpenOptions, Receiver, Sender},
    time::timeout,
};

/// Only a process that was left behind takes this long.
const BOUND: Duration = Duration::from_secs(60);

/// Read end of a FIFO named `lifeline` in the project. Every process that is to be watched inherits a
/// write end and writes one byte to it.
pub(crate) struct Lifeline {
    reader: Receiver,
    /// Keeps the FIFO open until the first process has it.
    writer: Option<Sender>,
}

/// Shell commands that leave processes behind in every way there is, and how many. Descriptor 9 must be
/// the lifeline.
pub(crate) const FUGITIVES: &str = include_str!("fugitives.sh");
pub(crate) const FUGITIVE_COUNT: usize = 6;

impl Lifeline {
    pub(crate) fn new(home: &Home) -> Self {
        Self::at(&home.project().join("lifeline"))
    }

    pub(crate) fn at(path: &Path) -> Self {
        mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("a FIFO");
        Self {
            reader: OpenOptions::new().open_receiver(path).expect("opened"),
            writer: Some(OpenOptions::new().open_sender(path).expect("opened")),
        }
    }

    /// Waits until this many processes run.
    pub(crate) async fn up(&mut self, count: usize) {
        let mut bytes = vec![0; count];
        let read = timeout(BOUND, self.reader.read_exact(&mut bytes)).await;
        read.expect("they start").expect("read");
    }

    /// Waits until none of them runs. Returns how many have started since `up`.
    pub(crate) async fn all_gone(mut self) -> usize {
        self.writer = None;
        let mut rest = Vec::new();
        let read = timeout(BOUND, self.reader.read_to_end(&mut rest)).await;
        read.expect("a process is left").expect("read")
    }
}
