//! Test support: a folder with a shell, and a search for running processes.

use crate::tools::Shell;
use crate::{HiddenFiles, LocalFiles, Origin, Progress, Terminals, Tool, ToolCx, Workspace};
use serde_json::Value;
use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use turnery_engine::{CallId, Content, ToolEnvelope};

pub(super) struct ShellFixture {
    folder: tempfile::TempDir,
    pub(super) shell: Shell,
    pub(super) cx: ToolCx,
    pub(super) progress: mpsc::Receiver<Progress>,
}

impl ShellFixture {
    pub(super) fn new() -> Self {
        Self::with_terminals(None)
    }

    pub(super) fn with_terminals(terminals: Option<Arc<dyn Terminals>>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let workspace = Workspace::new(root, Vec::new(), Arc::new(LocalFiles), terminals).unwrap();
        let (sender, progress) = mpsc::channel(4);
        Self {
            folder,
            shell: Shell::default(),
            cx: ToolCx {
                call_id: CallId::from("c1"),
                origin: Origin::default(),
                workspace: Arc::new(workspace),
                hidden: HiddenFiles::default(),
                line_limits: crate::CommandLineLimits::default(),
                progress: sender,
                cancel: CancellationToken::new(),
                trace: crate::TraceContext::default(),
                caller: None,
                host: None,
            },
            progress,
        }
    }

    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Runs a call to its end. Returns the result and the progress reports.
    pub(super) async fn run(self, args: Value) -> (ToolEnvelope, Vec<Progress>) {
        self.run_with_reports(args, |_, _| {}).await
    }

    /// Runs a call to its end, with a callback for each report.
    pub(super) async fn run_with_reports(
        mut self,
        args: Value,
        mut each: impl FnMut(&Progress, &CancellationToken),
    ) -> (ToolEnvelope, Vec<Progress>) {
        let mut reports = Vec::new();
        let running = self.shell.run(&args, &self.cx);
        tokio::pin!(running);
        let envelope = loop {
            tokio::select! {
                biased;
                Some(report) = self.progress.recv() => {
                    each(&report, &self.cx.cancel);
                    reports.push(report);
                }
                envelope = &mut running => break envelope,
            }
        };
        while let Ok(report) = self.progress.try_recv() {
            reports.push(report);
        }
        (envelope, reports)
    }
}

/// Returns the text of a result, successful or not.
pub(super) fn envelope_text(envelope: &ToolEnvelope) -> String {
    match &envelope.result {
        Ok(content) => content.iter().filter_map(Content::as_text).collect(),
        Err(failure) => failure.message.clone(),
    }
}

/// Returns all output reported while the call ran.
pub(super) fn printed_output(reports: &[Progress]) -> String {
    let text = |report: &Progress| match report {
        Progress::Output(text) => text.clone(),
        Progress::Detail(_)
        | Progress::Plan(_)
        | Progress::Message(_)
        | Progress::ChildUsage(_) => String::new(),
    };
    reports.iter().map(text).collect()
}

/// Returns a unique number of seconds to sleep, by which a process can be found.
pub(super) fn unique_marker() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    format!("3000.{:07}{count:03}", std::process::id())
}

/// Returns how many processes have the mark in their command line.
pub(super) fn count_processes(mark: &str) -> usize {
    let processes = std::fs::read_dir("/proc").unwrap();
    processes
        .filter_map(|process| std::fs::read(process.ok()?.path().join("cmdline")).ok())
        .filter(|line| line.windows(mark.len()).any(|part| part == mark.as_bytes()))
        .count()
}

/// Waits until no process with the mark is left. Returns false on timeout.
pub(super) fn wait_until_gone(mark: &str) -> bool {
    let patience = Instant::now() + Duration::from_secs(120);
    while count_processes(mark) > 0 {
        if Instant::now() > patience {
            return false;
        }
        std::thread::yield_now();
    }
    true
}
