//! Separate home folder for each test: configuration, sessions and a project folder.

use serde_json::Value;
use signal_hook::{
    consts::{SIGHUP, SIGINT, SIGTERM},
    flag,
};
use std::{
    fs,
    io::ErrorKind,
    path::{Path, PathBuf},
    process::{Output, Stdio},
    sync::{Arc, Once},
    time::Duration,
};
use tempfile::TempDir;
use tokio::{
    io::AsyncWriteExt as _,
    process::{Child, Command},
};
use turnery_store::{ListQuery, SqliteStore, Store as _, new_uuid, oracle::OracleGuard};

/// Timeout after which a test counts as hanging.
const TIMEOUT: Duration = Duration::from_secs(120);

/// Makes child processes handle signals that this process ignores, as under `nohup` or in a background shell.
/// Children inherit ignored signals; signals with a handler return to the default in them.
fn unignore_signals() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
        let mask = mask.map_or(0, |mask| {
            u64::from_str_radix(mask.trim(), 16).expect("a mask of signals")
        });
        for signal in [SIGHUP, SIGINT, SIGTERM] {
            if mask & (1 << (signal - 1)) != 0 {
                flag::register(signal, Arc::default()).expect("a signal to handle");
            }
        }
    });
}

/// Home folder of one test.
pub(crate) struct Home {
    /// Checks at the end of every test that all stored messages follow the grammar.
    _guard: OracleGuard,
    store: Arc<SqliteStore>,
    folder: TempDir,
}

/// Result of a command.
#[derive(Debug)]
pub(crate) struct CommandOutput {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Home {
    pub(crate) fn new() -> Self {
        let folder = TempDir::new().expect("a temporary folder");
        fs::create_dir(folder.path().join("project")).expect("project");
        let sessions = folder.path().join("turnery").join("sessions.db");
        let store = Arc::new(SqliteStore::open(sessions));
        Self {
            _guard: OracleGuard::new(store.clone()),
            store,
            folder,
        }
    }

    /// Returns the session store of all commands.
    pub(crate) fn store(&self) -> &SqliteStore {
        &self.store
    }

    /// Returns the path of the session database, which exists once something has been stored.
    pub(crate) fn database_path(&self) -> PathBuf {
        self.folder.path().join("turnery").join("sessions.db")
    }

    /// Returns the working directory of all commands.
    pub(crate) fn project_folder(&self) -> PathBuf {
        self.folder.path().join("project")
    }

    /// Writes a file; relative paths are resolved against the home folder.
    pub(crate) fn write_file(&self, path: impl AsRef<Path>, text: &str) -> PathBuf {
        let path = self.folder.path().join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("folders");
        fs::write(&path, text).expect("written");
        path
    }

    /// Creates a scripted model; returns its name for `--model`.
    pub(crate) fn scripted_model(&self, answers: Value) -> String {
        let scenario = serde_json::json!({ "answers": answers });
        let path = self.write_file("scenario.json", &scenario.to_string());
        format!("scripted:{}", path.display())
    }

    /// Returns a command that is isolated from the machine's configuration and model servers.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        unignore_signals();
        let mut command = Command::new(env!("CARGO_BIN_EXE_turnery"));
        command
            .args(args)
            .current_dir(self.project_folder())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.folder.path())
            .env("TURNERY_HOME", self.folder.path().join("turnery"))
            .env("TURNERY_LOCAL_SERVERS", "off")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        command
    }

    /// Runs a command to its end.
    pub(crate) async fn run(&self, args: &[&str]) -> CommandOutput {
        wait_with_output(self.command(args).spawn().expect("started")).await
    }

    /// Runs a command to its end, with `TURNERY_STORE`.
    pub(crate) async fn run_in_store(&self, store: &str, args: &[&str]) -> CommandOutput {
        let mut command = self.command(args);
        command.env("TURNERY_STORE", store);
        wait_with_output(command.spawn().expect("started")).await
    }

    /// Runs a command with `stdin` as its input.
    pub(crate) async fn run_with_stdin(&self, args: &[&str], stdin: &str) -> CommandOutput {
        let mut child = self
            .command(args)
            .stdin(Stdio::piped())
            .spawn()
            .expect("started");
        let mut pipe = child.stdin.take().expect("piped");
        match pipe.write_all(stdin.as_bytes()).await {
            // A command may end without reading its input.
            Err(error) if error.kind() == ErrorKind::BrokenPipe => {}
            written => written.expect("written"),
        }
        drop(pipe);
        wait_with_output(child).await
    }
}

/// Returns the address of a new schema on the server that `cargo xtask postgres` has started.
pub(crate) fn new_postgres_schema() -> String {
    let url = std::env::var("POSTGRES_TEST_URL")
        .expect("run the tests with `cargo xtask postgres -- cargo test ...`");
    format!("{url}?schema=cli_{}", new_uuid().simple())
}

/// Waits for the end of a command.
pub(crate) async fn wait_with_output(child: Child) -> CommandOutput {
    let output = tokio::time::timeout(TIMEOUT, child.wait_with_output())
        .await
        .expect("ended in time")
        .expect("waited");
    let Output {
        status,
        stdout,
        stderr,
    } = output;
    CommandOutput {
        code: status.code(),
        stdout: String::from_utf8(stdout).expect("UTF-8"),
        stderr: String::from_utf8(stderr).expect("UTF-8"),
    }
}

/// Waits until a file is there. No event reports that a program has written one.
pub(crate) async fn wait_for_file(path: &Path) {
    let mut tries = 0;
    while !path.exists() {
        tokio::time::sleep(Duration::from_millis(10)).await;
        tries += 1;
        assert!(tries < 6000, "{} is not there", path.display());
    }
}

/// Sends a signal to a command.
pub(crate) fn send_signal(child: &Child, signal: rustix::process::Signal) {
    let id = child.id().expect("still there");
    let id = i32::try_from(id)
        .ok()
        .and_then(rustix::process::Pid::from_raw);
    rustix::process::kill_process(id.expect("an id"), signal).expect("sent");
}

impl CommandOutput {
    /// Parses stdout as one JSON value.
    pub(crate) fn stdout_json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error} in {self:?}"))
    }
}

#[tokio::test]
async fn home_opens_the_store_that_commands_write() {
    let home = Home::new();
    home.run(&["run", "--model", "offline", "hi"]).await;
    let listed = home.store.list(ListQuery::default()).await.expect("read");
    assert_eq!(listed.sessions.len(), 1);
}
