//! Tests what a confined command can and cannot do on the running kernel.
//!
//! Each attempt is first made unconfined and must succeed there, so that the test is meaningful.

mod git_folders;
mod links;

use super::{
    Confinement, SandboxSupport,
    settings::{find_projects, find_work_trees},
    start_confined, temp_folder_outside_sandbox,
};
use rustix::thread::{CapabilitySet, capabilities, set_capabilities};
use std::{
    fs,
    net::TcpListener,
    path::PathBuf,
    process::{Command, Output},
    thread,
};

/// A home folder with a project in it and a key beside it.
struct SandboxFixture {
    folder: tempfile::TempDir,
}

/// Runs `run` without root's capability to enter folders that are closed to their owner.
pub(super) fn without_root_capabilities<T: Send>(run: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| {
        let run = || {
            let mut sets = capabilities(None).expect("capabilities");
            let beyond = CapabilitySet::DAC_OVERRIDE | CapabilitySet::DAC_READ_SEARCH;
            sets.effective -= beyond;
            sets.permitted -= beyond;
            set_capabilities(None, sets).expect("fewer capabilities");
            run()
        };
        scope.spawn(run).join().expect("an end")
    })
}

impl SandboxFixture {
    fn new() -> Self {
        let folder = temp_folder_outside_sandbox();
        let world = Self { folder };
        for name in [
            "project",
            ".ssh",
            ".turnery",
            ".cargo/bin",
            "Documents",
            "tmp",
        ] {
            fs::create_dir_all(world.home().join(name)).expect("a world to test in");
        }
        for name in [
            "project/a.txt",
            ".ssh/id_rsa",
            ".turnery/keys.toml",
            "Documents/tax.txt",
        ] {
            fs::write(world.home().join(name), "content\n").expect("a world to test in");
        }
        fs::write(world.home().join(".cargo/config.toml"), "").expect("a world to test in");
        world
    }

    fn home(&self) -> PathBuf {
        self.folder
            .path()
            .canonicalize()
            .expect("a world to test in")
    }

    fn confinement(&self, writes: bool) -> Confinement {
        Confinement {
            writes,
            network: false,
            roots: vec![self.home().join("project")],
            work_trees: find_work_trees(&[self.home().join("project")]),
            projects: find_projects(&[self.home().join("project")], Some(&self.home())),
            home: Some(self.home()),
            temporary: vec![self.home().join("tmp")],
            scratch: None,
            toolchains: Vec::new(),
            caches: Vec::new(),
            private: vec![self.home().join(".turnery")],
            is_git_folder_read_only: false,
            hidden: Vec::new(),
        }
    }

    fn workspace(&self) -> Confinement {
        self.confinement(true)
    }

    fn read_only(&self) -> Confinement {
        self.confinement(false)
    }

    /// Runs a line in the project; `$HOME` is the home folder.
    fn run(&self, confinement: Option<&Confinement>, line: &str) -> Output {
        let mut command = Command::new("bash");
        command
            .args(["-c", line])
            .current_dir(self.home().join("project"))
            .env("HOME", self.home())
            .env("LC_ALL", "C");
        match confinement {
            Some(confinement) => {
                start_confined(confinement, || command.output()).expect("a world to test in")
            }
            None => command.output().expect("a world to test in"),
        }
    }

    /// Asserts that the line works, but fails with `words` under this confinement.
    fn assert_refused(&self, confinement: &Confinement, line: &str, words: &str) {
        let free = self.run(None, line);
        assert!(free.status.success(), "{line}: {free:?}");
        let confined = self.run(Some(confinement), line);
        assert!(!confined.status.success(), "{line}: {confined:?}");
        let said = String::from_utf8_lossy(&confined.stderr).into_owned();
        assert!(said.contains(words), "{line}: {said}");
    }

    fn assert_allowed(&self, confinement: &Confinement, line: &str) {
        let output = self.run(Some(confinement), line);
        assert!(output.status.success(), "{line}: {output:?}");
    }
}

const DENIED: &str = "Permission denied";
const NOT_PERMITTED: &str = "Operation not permitted";

/// Returns true if the kernel confines commands. If not, checks that turnery reports so.
fn is_confining() -> bool {
    let support = SandboxSupport::detect();
    if !support.is_usable() {
        assert!(support.describe().contains("cannot be confined here"));
    }
    support.is_usable()
}

#[test]
fn write_outside_the_roots_is_refused() {
    let world = SandboxFixture::new();
    if !is_confining() {
        return;
    }
    let line = "touch ../Documents/new && rm ../Documents/new";
    world.assert_refused(&world.workspace(), line, DENIED);
    world.assert_refused(&world.read_only(), line, DENIED);
    for line in [
        "echo x >> ../Documents/tax.txt",
        "echo x >> ../.cargo/config.toml",
        "mv a.txt ../Documents/a && mv ../Documents/a a.txt",
        "ln -s a.txt ../link && rm ../link",
        "mkdir ../new && rmdir ../new",
        "echo x >> ../.bashrc",
    ] {
        world.assert_refused(&world.workspace(), line, DENIED);
    }
}

/// Programs that users start by hand, or shells at startup, may be beside build caches.
#[test]
fn build_caches_are_writable_but_programs_are_not() {
    let world = SandboxFixture::new();
    if !is_confining() {
        return;
    }
    for (folder, is_writable) in [
        (".cache/pip", true),
        (".cache/uv/simple", true),
        (".npm/_cacache", true),
        (".yarn/berry/cache", true),
        (".cache", false),
        (".cache/node/corepack", false),
        (".cache/pnpm/dlx", false),
        (".cache/pre-commit", false),
        (".cache/pypoetry/virtualenvs", false),
        (".npm/_npx", false),
        (".yarn/bin", false),
    ] {
        let path = world.home().join(folder);
        fs::create_dir_all(&path).unwrap();
        let line = format!("echo x > {0}/a && rm {0}/a", path.display());
        match is_writable {
            true => world.assert_allowed(&world.workspace(), &line),
            false => world.assert_refused(&world.workspace(), &line, DENIED),
        }
    }
}

#[test]
fn write_inside_is_refused_to_readers_only() {
    let world = SandboxFixture::new();
    if !is_confining() {
        return;
    }
    for line in [
        "echo x > b.txt",
        "mkdir d && rmdir d",
        "echo x > $HOME/tmp/b",
    ] {
        world.assert_refused(&world.read_only(), line, DENIED);
        world.assert_allowed(&world.workspace(), line);
    }
    world.assert_refused(&world.read_only(), "chmod +x a.txt", NOT_PERMITTED);
    world.assert_refused(&world.read_only(), "touch -d @0 a.txt", "");
    // Not every file system has flags.
    let flags = "chattr +d a.txt && chattr -d a.txt";
    if world.run(None, flags).status.success() {
        world.assert_refused(&world.read_only(), flags, NOT_PERMITTED);
    }
    world.assert_allowed(&world.workspace(), "chmod +x a.txt; echo x > /dev/null");
}

#[test]
fn keys_cannot_be_read() {
    let world = SandboxFixture::new();
    if !is_confining() {
        return;
    }
    std::os::unix::fs::symlink("../.ssh/id_rsa", world.home().join("project/link")).unwrap();
    for line in [
        "cat ../.ssh/id_rsa",
        "cat link",
        "cat ../.turnery/keys.toml",
    ] {
        world.assert_refused(&world.workspace(), line, DENIED);
        world.assert_refused(&world.read_only(), line, DENIED);
    }
    world.assert_allowed(&world.workspace(), "cat ../Documents/tax.txt a.txt; ls ..");
    world.assert_refused(&world.read_only(), "cat ../Documents/tax.txt", DENIED);
    world.assert_allowed(&world.read_only(), "cat a.txt ../.cargo/config.toml");
}

/// Keys that tools keep among their other files, and browser profiles.
#[test]
fn tool_keys_cannot_be_read() {
    let world = SandboxFixture::new();
    if !is_confining() {
        return;
    }
    for key in [
        ".boto",
        ".claude/.credentials.json",
        ".codex/auth.json",
        ".config/containers/auth.json",
        ".config/doctl/config.yaml",
        ".config/github-copilot/apps.json",
        ".config/google-chrome-beta/Cookies",
        ".config/sops/age/keys.txt",
        ".librewolf/key4.db",
        ".local/share/fish/fish_history",
        ".python_history",
        ".s3cfg",
        ".zen/key4.db",
        "snap/brave/Cookies",
    ] {
        let path = world.home().join(key);
        let folder = path.parent().unwrap();
        fs::create_dir_all(folder).unwrap();
        fs::write(&path, "content\n").unwrap();
        let line = format!("cat {}", path.display());
        world.assert_refused(&world.workspace(), &line, DENIED);
        world.assert_refused(&world.read_only(), &line, DENIED);
    }
}

/// A home folder as root contains keys, and programs that start with the user's rights.
#[test]
fn keys_below_a_root_stay_closed() {
    let world = SandboxFixture::new();
    if !is_confining() {
        return;
    }
    let mut confinement = world.workspace();
    confinement.roots = vec![world.home()];
    world.assert_refused(&confinement, "cat ../.ssh/id_rsa", DENIED);
    world.assert_refused(&confinement, "echo x >> ../.ssh/authorized_keys", DENIED);
    world.assert_refused(&confinement, "echo x >> ../.bashrc", DENIED);
    world.assert_allowed(&confinement, "echo x >> ../Documents/tax.txt");
}

#[test]
fn sockets_are_refused_without_network() {
    let world = SandboxFixture::new();
    if !is_confining() {
        return;
    }
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let connect = format!("exec 3<>/dev/tcp/127.0.0.1/{port}");
    world.assert_refused(&world.workspace(), &connect, NOT_PERMITTED);
    world.assert_refused(&world.read_only(), &connect, NOT_PERMITTED);
    let mut with_network = world.workspace();
    with_network.network = true;
    world.assert_allowed(&with_network, &connect);
    let local = "python3 -c 'import socket; socket.socket(socket.AF_UNIX)'";
    world.assert_refused(&with_network, local, NOT_PERMITTED);
    // Only for addresses and routes.
    let netlink = |protocol: u8| {
        format!("python3 -c 'from socket import *; socket(AF_NETLINK, SOCK_RAW, {protocol})'")
    };
    world.assert_allowed(&with_network, &netlink(0));
    for protocol in [4, 15, 16] {
        world.assert_refused(&with_network, &netlink(protocol), NOT_PERMITTED);
    }
    let pair = |kind: &str| {
        format!("python3 -c 'from socket import *; socketpair(AF_UNIX, {kind} | SOCK_CLOEXEC)'")
    };
    for kind in ["SOCK_STREAM", "SOCK_SEQPACKET"] {
        world.assert_allowed(&world.workspace(), &pair(kind));
    }
    // Its datagrams could be sent to the path of any daemon's socket.
    for kind in ["SOCK_DGRAM", "SOCK_RAW"] {
        for confinement in [&world.workspace(), &with_network] {
            world.assert_refused(confinement, &pair(kind), NOT_PERMITTED);
        }
    }
}

#[test]
fn other_processes_are_out_of_reach() {
    let world = SandboxFixture::new();
    if !is_confining() {
        return;
    }
    let agent = std::process::id();
    let environment = format!("cat /proc/{agent}/environ > /dev/null");
    world.assert_refused(&world.workspace(), &environment, DENIED);
    world.assert_refused(&world.read_only(), &environment, DENIED);
    if SandboxSupport::detect().landlock >= Some(6) {
        let signal = format!("kill -0 {agent}");
        world.assert_refused(&world.workspace(), &signal, NOT_PERMITTED);
    }
    // A process over its limit of processor time is killed.
    let limit = format!("prlimit --pid {agent} --core=0:0");
    world.assert_refused(&world.workspace(), &limit, NOT_PERMITTED);
    world.assert_allowed(&world.workspace(), "ulimit -c 0");
    world.assert_allowed(&world.workspace(), "sleep 60 & kill $! && ! wait $!");
}

/// A supervisor that is never scheduled kills nothing. A command may still change itself.
#[test]
fn scheduling_of_other_processes_is_out_of_reach() {
    let world = SandboxFixture::new();
    if !is_confining() {
        return;
    }
    // Sets the current values again, in a new group, so that no scheduling changes.
    let script = "import ctypes, os, sys\n\
        libc = ctypes.CDLL(None, use_errno=True)\n\
        name, who = sys.argv[1], int(sys.argv[2])\n\
        os.setpgid(0, 0)\n\
        zero = ctypes.create_string_buffer(4)\n\
        attributes = ctypes.create_string_buffer(48)\n\
        libc.syscall(GET_ATTR, who, attributes, 48, 0)\n\
        def nice(which): os.setpriority(which, who, os.getpriority(which, who))\n\
        def ionice(which): libc.syscall(SET_IO, which, who, libc.syscall(GET_IO, which, who))\n\
        calls = {\n\
        'affinity': lambda: os.sched_setaffinity(who, os.sched_getaffinity(who)),\n\
        'scheduler': lambda: libc.sched_setscheduler(who, os.sched_getscheduler(who), zero),\n\
        'param': lambda: libc.sched_setparam(who, zero),\n\
        'attr': lambda: libc.syscall(SET_ATTR, who, attributes, 0),\n\
        'nice': lambda: nice(os.PRIO_PROCESS),\n\
        'ionice': lambda: ionice(1),\n\
        'nice of a group': lambda: nice(os.PRIO_PGRP),\n\
        'ionice of a group': lambda: ionice(2),\n\
        }\n\
        calls[name]()\n\
        sys.exit(os.strerror(ctypes.get_errno()) if ctypes.get_errno() else 0)\n"
        .replace("GET_ATTR", &libc::SYS_sched_getattr.to_string())
        .replace("SET_ATTR", &libc::SYS_sched_setattr.to_string())
        .replace("GET_IO", &libc::SYS_ioprio_get.to_string())
        .replace("SET_IO", &libc::SYS_ioprio_set.to_string());
    fs::write(world.home().join("project/set.py"), script).unwrap();
    let set = |name: &str, who: &str| format!("python3 set.py '{name}' {who}");
    // A process with the same rights; the kernel may protect others because of their capabilities.
    let set_other = |name: &str| {
        let set = set(name, "$!");
        format!("sleep 60 & {set}; status=$?; kill $!; exit $status")
    };
    for name in ["affinity", "scheduler", "param", "attr", "nice", "ionice"] {
        world.assert_refused(&world.workspace(), &set_other(name), NOT_PERMITTED);
        world.assert_allowed(&world.workspace(), &set(name, "0"));
    }
    // The caller's group may contain other processes.
    for name in ["nice of a group", "ionice of a group"] {
        world.assert_refused(&world.workspace(), &set(name, "0"), NOT_PERMITTED);
    }
    let own = "nice true && ionice -c 3 true && chrt --idle 0 true && taskset 1 true";
    if world.run(None, own).status.success() {
        world.assert_allowed(&world.workspace(), own);
    }
}

#[test]
fn sandbox_escape_calls_are_refused() {
    let world = SandboxFixture::new();
    if !is_confining() {
        return;
    }
    world.assert_refused(&world.workspace(), "unshare --user true", NOT_PERMITTED);
    let call = |number: i64, arguments: &str| {
        format!(
            "python3 -c 'import ctypes, sys\nlibc = ctypes.CDLL(None, use_errno=True)\n\
             got = libc.syscall({number}{arguments})\n\
             sys.exit(\"Operation not permitted\" if ctypes.get_errno() == 1 else 0)'"
        )
    };
    // With arguments that the kernel refuses for another reason.
    for number in [
        libc::SYS_ptrace,
        libc::SYS_keyctl,
        libc::SYS_mq_open,
        libc::SYS_mq_unlink,
        libc::SYS_process_vm_readv,
        // `open_tree_attr`.
        467,
    ] {
        world.assert_refused(
            &world.workspace(),
            &call(number, ", -1, 0, 0, 0, 0, 0"),
            NOT_PERMITTED,
        );
    }
    world.assert_refused(
        &world.workspace(),
        &call(libc::SYS_io_uring_setup, ", 0, 0"),
        NOT_PERMITTED,
    );
    let request = |number: u32| call(libc::SYS_ioctl, &format!(", 0, {number:#x}, 0"));
    // Terminal input, and creating a snapshot or a subvolume or deleting one on btrfs.
    for number in [0x5412, 0x5000_9401, 0x5000_9418, 0x5000_943F] {
        world.assert_refused(&world.workspace(), &request(number), NOT_PERMITTED);
    }
    // Changes of a file through a read-only descriptor. Python may be installed anywhere.
    let mut reader = world.read_only();
    reader.roots = vec!["/".into()];
    for number in [0x4008_6604, 0x6609, 0x660C, 0x800C_6613, 0xC040_6618] {
        world.assert_refused(&reader, &request(number), NOT_PERMITTED);
        world.assert_allowed(&world.workspace(), &request(number));
    }
    world.assert_allowed(
        &world.workspace(),
        "grep -q 'NoNewPrivs:.1' /proc/self/status",
    );
}

/// A session may have the whole system as its folder.
#[test]
fn top_folder_opens_no_devices() {
    let world = SandboxFixture::new();
    if !is_confining() {
        return;
    }
    for writes in [true, false] {
        let mut confinement = world.confinement(writes);
        confinement.roots = vec!["/".into()];
        world.assert_refused(&confinement, ": < /dev/ptmx", DENIED);
        world.assert_refused(&confinement, "echo 900 > /proc/self/oom_score_adj", DENIED);
        world.assert_allowed(&confinement, "cat $HOME/Documents/tax.txt > /dev/null");
    }
}

#[test]
fn common_development_commands_work() {
    let world = SandboxFixture::new();
    if !is_confining() {
        return;
    }
    let workspace = world.workspace();
    let author = "-c user.name=a -c user.email=a@b";
    world.assert_allowed(
        &workspace,
        &format!("git init -q && git add . && git {author} commit -qm x"),
    );
    world.assert_allowed(
        &world.read_only(),
        "GIT_OPTIONAL_LOCKS=0 git status && git log && git diff",
    );
    world.assert_allowed(&workspace, &format!("git worktree add -q ../project/tree && cd tree && echo y > y && git add y && git {author} commit -qm y"));
    world.assert_allowed(
        &workspace,
        "mkdir -p sub/deep && echo m > m && git add m && git mv m sub/m && ln sub/m sub/deep/n && \
         python3 -c 'import os; os.rename(\"sub/m\", \"sub/deep/m\")'",
    );
    // A work tree whose repository is elsewhere.
    let mut linked = world.workspace();
    linked.roots = vec![world.home().join("project/tree")];
    world.assert_allowed(
        &linked,
        &format!("cd tree && echo z > z && git add z && git {author} commit -qm z"),
    );
    fs::write(
        world.home().join("project/Makefile"),
        "a:\n\techo x > made\n",
    )
    .unwrap();
    world.assert_allowed(&workspace, "make && test -f made");
    world.assert_allowed(&workspace, "python3 -c 'import tempfile, subprocess, multiprocessing; subprocess.run([\"ls\"], check=True); open(\"p\", \"w\").write(\"x\")'");
    world.assert_allowed(
        &world.read_only(),
        "ls -la | sort | head -1; find . -name '*.txt' | xargs wc -l",
    );
}

/// A build needs the compiler, the linker and cargo's locks.
#[test]
fn cargo_builds_in_the_workspace() {
    let world = SandboxFixture::new();
    if !is_confining() {
        return;
    }
    let cargo = PathBuf::from(env!("CARGO"));
    let rustc = cargo.with_file_name("rustc");
    let line = format!(
        "mkdir -p p/src && cd p && printf '[package]\nname = \"p\"\nedition = \"2024\"\n[workspace]\n' > Cargo.toml && \
         echo 'fn main() {{}}' > src/main.rs && \
         TMPDIR=$HOME/tmp CARGO_HOME=$HOME/.cargo RUSTC={} {} build -q --offline --target-dir target && target/debug/p",
        rustc.display(),
        cargo.display()
    );
    world.assert_allowed(&world.workspace(), &line);
}

/// Where node is not installed, bash writes the same file.
#[test]
fn node_runs_in_the_workspace() {
    let world = SandboxFixture::new();
    if !is_confining() {
        return;
    }
    let script = "require('fs').writeFileSync('n', require('child_process').execSync('echo x'))";
    let line = format!(
        "if command -v node > /dev/null; then node -e \"{script}\"; else echo x > n; fi; grep -q x n"
    );
    world.assert_allowed(&world.workspace(), &line);
}

#[test]
fn reader_writes_only_its_scratch_folder() {
    let world = SandboxFixture::new();
    if !is_confining() {
        return;
    }
    let mut confinement = world.read_only();
    let line = "echo x > $HOME/tmp/b && cat $HOME/tmp/b";
    world.assert_refused(&confinement, line, DENIED);
    confinement.scratch = Some(world.home().join("tmp"));
    world.assert_allowed(&confinement, line);
    world.assert_refused(&confinement, "echo x > b.txt", DENIED);
}

#[test]
fn missing_support_is_described() {
    let none = SandboxSupport {
        landlock: None,
        filter: true,
    };
    assert!(!none.is_usable());
    assert_eq!(
        none.describe(),
        "Commands cannot be confined here: the kernel has no landlock, or it is switched off"
    );
    let old = SandboxSupport {
        landlock: Some(4),
        filter: true,
    };
    assert!(old.is_usable());
    assert!(
        old.describe()
            .contains("signals to other processes are not confined")
    );
}

#[test]
fn confinement_without_home_works() {
    let world = SandboxFixture::new();
    if !is_confining() {
        return;
    }
    let mut confinement = world.workspace();
    confinement.home = None;
    world.assert_allowed(&confinement, "cat a.txt");
}
