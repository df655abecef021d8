//! Tests several processes on one database; the test binary starts itself as the other process.

mod crash;
mod frozen;
mod pair;
mod role;

use std::{
    io::{BufRead, BufReader, Read, Write},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    sync::Arc,
};
use turnery_store::{SqliteStore, Store};

/// Environment variable with the role of the other process.
const ROLE: &str = "TURNERY_STORE_TEST_ROLE";
/// Environment variable with the path or the address of the database.
const DATABASE: &str = "TURNERY_STORE_TEST_DATABASE";
/// Separates the test's own output from that of the test harness.
const LINE_MARK: char = '@';

/// A database that several processes share, in a file or on a server.
#[derive(Clone, Debug)]
struct SharedDatabase {
    /// Path of a file, or address on a server.
    place: PathBuf,
    _folder: Option<Arc<tempfile::TempDir>>,
}

impl SharedDatabase {
    fn sqlite() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        Self {
            place: folder.path().join("sessions.db"),
            _folder: Some(Arc::new(folder)),
        }
    }

    /// Names a new schema. The name of its connections is the name of the schema.
    #[cfg(feature = "postgres")]
    fn postgres() -> Self {
        let schema = turnery_store::new_uuid().to_string();
        let address = format!("{}&application_name={schema}", crate::postgres_url(&schema));
        Self {
            place: address.into(),
            _folder: None,
        }
    }

    fn at(place: PathBuf) -> Self {
        Self {
            place,
            _folder: None,
        }
    }

    /// Returns the database of this name in the same folder.
    fn beside(&self, name: &str) -> Self {
        Self::at(self.place.with_file_name(name))
    }

    /// Returns the path; `None` for a server.
    fn path(&self) -> Option<&Path> {
        self.address().is_none().then_some(&self.place)
    }

    /// Returns the address on a server.
    fn address(&self) -> Option<&str> {
        self.place.to_str().filter(|it| it.starts_with("postgres:"))
    }

    fn open(&self) -> Arc<dyn Store> {
        match self.address() {
            #[cfg(feature = "postgres")]
            Some(address) => {
                let address = turnery_store::PostgresAddress::parse(address, |_| None);
                Arc::new(turnery_store::PostgresStore::open(address.expect("valid")))
            }
            #[cfg(not(feature = "postgres"))]
            Some(address) => panic!("{address} needs the feature `postgres`"),
            None => Arc::new(SqliteStore::open(self.place.clone())),
        }
    }

    /// Returns the name of the schema on a server.
    #[cfg(feature = "postgres")]
    fn schema(&self) -> &str {
        let name = self.address().and_then(|it| it.rsplit_once('='));
        name.expect("the name of the connections").1
    }

    /// Connects without a store.
    #[cfg(feature = "postgres")]
    async fn connect(&self) -> tokio_postgres::Client {
        let address = self.address().expect("a server");
        crate::connect(address).await
    }
}

/// Creates a test of each case for each database that processes can share.
macro_rules! process_battery {
    ($($case:ident),+ $(,)?) => {
        mod sqlite {
            $(#[tokio::test]
            async fn $case() {
                super::$case(super::SharedDatabase::sqlite).await;
            })+
        }
        #[cfg(feature = "postgres")]
        mod postgres {
            $(#[tokio::test]
            async fn $case() {
                super::$case(super::SharedDatabase::postgres).await;
            })+
        }
    };
}
use process_battery;

/// Another running process. Killed when dropped.
struct OtherProcess {
    process: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl OtherProcess {
    fn start(role: &str, database: &SharedDatabase) -> Self {
        Self::start_with(role, database, [])
    }

    /// Starts a process with more environment variables.
    fn start_with<const N: usize>(
        role: &str,
        database: &SharedDatabase,
        variables: [(&str, String); N],
    ) -> Self {
        let program = std::env::current_exe().expect("this binary");
        let mut process = Command::new(program)
            .args(["--exact", "--nocapture", "processes::role::another_process"])
            .env(ROLE, role)
            .env(DATABASE, &database.place)
            .envs(variables)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("another process");
        let (to, from) = (process.stdin.take(), process.stdout.take());
        Self {
            stdin: to.expect("its input"),
            stdout: BufReader::with_capacity(512, from.expect("its output")),
            process,
        }
    }

    fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Sends a line to the process.
    fn send_line(&mut self, line: &str) {
        writeln!(self.stdin, "{line}").expect("it listens");
    }

    /// Returns the next line meant for the test; `None` once the process has ended.
    fn read_line(&mut self) -> Option<String> {
        let mut line = String::new();
        while self.stdout.read_line(&mut line).expect("its words") > 0 {
            if let Some((_, ours)) = line.trim_end().split_once(LINE_MARK) {
                return Some(ours.to_owned());
            }
            line.clear();
        }
        None
    }

    fn request(&mut self, line: &str) -> String {
        self.send_line(line);
        self.read_line().expect("an answer")
    }

    /// Reads this many more bytes.
    fn read_bytes(&mut self, bytes: usize) -> Vec<u8> {
        let mut skipped = Vec::new();
        let from = self.stdout.by_ref().take(bytes as u64);
        { from }.read_to_end(&mut skipped).expect("its words");
        skipped
    }

    /// Kills the process with SIGKILL, and returns its remaining output.
    fn kill(&mut self) -> Vec<u8> {
        self.process.kill().expect("killed");
        let mut last = Vec::new();
        self.stdout.read_to_end(&mut last).expect("its last words");
        self.process.wait().expect("it has ended");
        last
    }
}

impl Drop for OtherProcess {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
