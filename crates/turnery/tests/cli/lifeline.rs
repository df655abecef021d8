//! Detects through a FIFO when the last of many processes has ended, even after they were reparented.

use crate::home::Home;
use rustix::fs::{CWD, FileType, Mode, mknodat};
use std::{path::Path, time::Duration};
use tokio::{
    io::AsyncReadExt as _,
    net::unix::pipe::{OpenOptions, Receiver, Sender},
    time::timeout,
};

/// Timeout; exceeded only by a process that is left behind.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Read end of a FIFO; `new` creates it as `lifeline` in the project. Every watched process inherits a write
/// end and writes one byte.
pub(crate) struct Lifeline {
    reader: Receiver,
    /// Keeps the FIFO open until the first process has opened it.
    writer: Option<Sender>,
}

/// Shell commands that start [`DETACHED_PROCESS_COUNT`] long-lived processes, detached from their parent in
/// different ways. Descriptor 9 must be the write end of the lifeline.
pub(crate) const DETACHED_PROCESSES_SCRIPT: &str = include_str!("fugitives.sh");
pub(crate) const DETACHED_PROCESS_COUNT: usize = 6;

impl Lifeline {
    pub(crate) fn new(home: &Home) -> Self {
        Self::create_at(&home.project_folder().join("lifeline"))
    }

    pub(crate) fn create_at(path: &Path) -> Self {
        mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("a FIFO");
        Self {
            reader: OpenOptions::new().open_receiver(path).expect("opened"),
            writer: Some(OpenOptions::new().open_sender(path).expect("opened")),
        }
    }

    /// Waits until `count` processes have started.
    pub(crate) async fn wait_until_started(&mut self, count: usize) {
        let mut bytes = vec![0; count];
        let read = timeout(TIMEOUT, self.reader.read_exact(&mut bytes)).await;
        read.expect("they start").expect("read");
    }

    /// Waits until all processes have ended; returns how many had started, without those that
    /// `wait_until_started` counted.
    pub(crate) async fn wait_until_gone(mut self) -> usize {
        self.writer = None;
        let mut rest = Vec::new();
        let read = timeout(TIMEOUT, self.reader.read_to_end(&mut rest)).await;
        read.expect("a process is left").expect("read")
    }
}
