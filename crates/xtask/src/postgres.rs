//! Runs commands beside a scratch PostgreSQL server, which is stopped and removed afterwards.

use crate::workspace::remove_package_variables;
use anyhow::{Context, Result, bail, ensure};
use std::{
    collections::hash_map::RandomState,
    env, fs,
    hash::{BuildHasher, Hasher},
    io::{self, Write as _},
    net::{Ipv4Addr, TcpListener},
    path::PathBuf,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

/// Variable with the address of the server, for tests.
const ADDRESS: &str = "POSTGRES_TEST_URL";

/// Variable with the file of the certificate that signed the server's, for tests.
const CERTIFICATE: &str = "POSTGRES_TEST_CA";

/// Variable with this program, whose argument [`CONTROL`] starts a server that a test may kill.
const PROGRAM: &str = "POSTGRES_TEST_PROGRAM";

/// Argument for a server without a command, which takes orders from standard input.
const CONTROL: &str = "--control";

/// Variable that names the folder of PostgreSQL's programs, where they are not at Debian's place.
const PROGRAMS: &str = "POSTGRES_BIN";

/// Folder in which Debian installs a folder for each version.
const DEBIAN_FOLDER: &str = "/usr/lib/postgresql";

/// Longest time until a new server accepts connections.
const START_TIMEOUT: Duration = Duration::from_secs(60);

/// Shell script that runs the server.
const SCRIPT: &str = include_str!("postgres_server.sh");

/// A server in a folder of its own. Dropping it stops and removes it; so does the end of this process, however it ends.
pub(crate) struct PostgresServer {
    shell: Child,
    address: String,
    certificate: PathBuf,
    program: PathBuf,
}

/// Runs `cargo xtask postgres -- COMMAND ARGUMENT...`.
pub(crate) fn run(args: &[String]) -> Result<()> {
    if args == [CONTROL] {
        return run_orders();
    }
    let args = args.strip_prefix(&["--".to_owned()]).unwrap_or(args);
    let Some((program, rest)) = args.split_first() else {
        bail!("missing command: cargo xtask postgres -- COMMAND [ARGUMENT ...]");
    };
    let server = PostgresServer::start()?;
    let mut command = Command::new(program);
    command.args(rest).envs(server.variables());
    remove_package_variables(&mut command);
    let status = command
        .status()
        .with_context(|| format!("could not start {program}"))?;
    drop(server);
    ensure!(status.success(), "{program} ended with {status}");
    Ok(())
}

/// Prints the address of a server, and passes lines of standard input on to it: `kill` and `start`. Each is confirmed
/// with a line.
fn run_orders() -> Result<()> {
    // After a kill, the system still has what the server wrote. Without this, each start would flush all files.
    let mut server = PostgresServer::start_with(&["-c", "fsync=off"])?;
    println!("{}", server.address);
    let shell = server.shell.stdin.as_mut();
    io::copy(&mut io::stdin(), shell.context("the shell has no input")?)?;
    Ok(())
}

impl PostgresServer {
    /// Starts a server on a free port of this machine.
    pub(crate) fn start() -> Result<Self> {
        Self::start_with(&[])
    }

    /// Starts a server with these further options.
    fn start_with(options: &[&str]) -> Result<Self> {
        let programs = find_programs()?;
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?
            .local_addr()?
            .port();
        let word = || RandomState::new().build_hasher().finish();
        let folder = env::temp_dir().join(format!("turnery-postgres-{:016x}", word()));
        let password = format!("{:016x}{:016x}", word(), word());
        let mut shell = Command::new("sh");
        shell.args(["-c", SCRIPT, "sh"]).arg(programs).arg(&folder);
        shell.arg(port.to_string()).args(options);
        shell.stdin(Stdio::piped());
        run_unprivileged(&mut shell)?;
        let mut shell = shell.spawn().context("could not start a shell")?;
        let stdin = shell.stdin.as_mut().context("the shell has no input")?;
        writeln!(stdin, "{password}")?;
        let mut server = Self {
            shell,
            address: format!("postgres://turnery:{password}@127.0.0.1:{port}/postgres"),
            certificate: folder.join("ca.crt"),
            program: env::current_exe()?,
        };
        server.wait_until_ready(port)?;
        Ok(server)
    }

    /// Returns the variables that tell tests about the server.
    pub(crate) fn variables(&self) -> [(&'static str, String); 3] {
        let certificate = self.certificate.display().to_string();
        let program = self.program.display().to_string();
        [
            (ADDRESS, self.address.clone()),
            (CERTIFICATE, certificate),
            (PROGRAM, program),
        ]
    }

    fn wait_until_ready(&mut self, port: u16) -> Result<()> {
        let deadline = Instant::now() + START_TIMEOUT;
        // The port is open before the server takes connections.
        let mut probe = Command::new(find_programs()?.join("pg_isready"));
        probe.args(["--quiet", "--host=127.0.0.1", "--port"]);
        probe.arg(port.to_string());
        while Instant::now() < deadline {
            if let Some(status) = self.shell.try_wait()? {
                bail!("the PostgreSQL server did not start: {status}");
            }
            if probe
                .status()
                .context("could not start pg_isready")?
                .success()
            {
                return Ok(());
            }
            thread::sleep(Duration::from_millis(50));
        }
        bail!(
            "the PostgreSQL server did not accept connections within {} s",
            START_TIMEOUT.as_secs()
        )
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        drop(self.shell.stdin.take());
        if let Err(error) = self.shell.wait() {
            println!("== the PostgreSQL server may still run: {error}");
        }
    }
}

/// Returns the folder with the newest installed version of PostgreSQL's programs.
fn find_programs() -> Result<PathBuf> {
    if let Some(folder) = env::var_os(PROGRAMS) {
        return Ok(folder.into());
    }
    let versions = fs::read_dir(DEBIAN_FOLDER).into_iter().flatten().flatten();
    let mut versions: Vec<(u32, PathBuf)> = versions
        .filter_map(|entry| {
            let version = entry.file_name().to_str()?.parse().ok()?;
            let programs = entry.path().join("bin");
            programs
                .join("postgres")
                .exists()
                .then_some((version, programs))
        })
        .collect();
    versions.sort();
    versions.pop().map(|(_, programs)| programs).with_context(|| {
        format!(
            "PostgreSQL is not installed in {DEBIAN_FOLDER}: install the package `postgresql` or set {PROGRAMS} to the \
             folder of `initdb` and `postgres`"
        )
    })
}

/// Runs a command as the user `postgres` if this process runs as root, which PostgreSQL refuses. Signals of the terminal
/// do not reach it.
#[cfg(unix)]
fn run_unprivileged(command: &mut Command) -> Result<()> {
    use std::os::unix::{fs::MetadataExt as _, process::CommandExt as _};
    command.current_dir("/").process_group(0);
    let own = fs::metadata("/proc/self").map(|it| it.uid());
    if !matches!(own, Ok(0)) {
        return Ok(());
    }
    let users = fs::read_to_string("/etc/passwd").context("/etc/passwd")?;
    let ids = users.lines().find_map(|line| {
        let mut fields = line.strip_prefix("postgres:")?.split(':').skip(1);
        Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
    });
    let (user, group) =
        ids.context("PostgreSQL does not run as root, and there is no user postgres")?;
    command.uid(user).gid(group);
    Ok(())
}

#[cfg(not(unix))]
fn run_unprivileged(_command: &mut Command) -> Result<()> {
    bail!("the scratch server needs a Unix system")
}
