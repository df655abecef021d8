//! Restricts the system calls of the worker to those that an interpreter without IO needs: a hole in it then reaches
//! nothing but this process.

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, apply_filter_all_threads,
};
use std::{collections::BTreeMap, io};

/// Calls that the worker may make: memory, threads that exist, time, the pipes to the host, and its end.
const ALLOWED_CALLS: &[i64] = &[
    libc::SYS_brk,
    libc::SYS_clock_gettime,
    libc::SYS_clock_nanosleep,
    libc::SYS_close,
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_fcntl,
    libc::SYS_futex,
    libc::SYS_getpid,
    libc::SYS_getrandom,
    libc::SYS_gettid,
    libc::SYS_madvise,
    libc::SYS_mmap,
    libc::SYS_mprotect,
    libc::SYS_mremap,
    libc::SYS_munmap,
    libc::SYS_nanosleep,
    libc::SYS_ppoll,
    libc::SYS_read,
    libc::SYS_restart_syscall,
    libc::SYS_rseq,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sched_getaffinity,
    libc::SYS_sched_yield,
    libc::SYS_set_robust_list,
    libc::SYS_sigaltstack,
    libc::SYS_write,
    libc::SYS_writev,
];

/// Restricts all threads of this process, for good. Other calls fail with `EPERM`.
///
/// # Errors
///
/// Returns an error if the kernel has no such filters.
pub(super) fn restrict() -> io::Result<()> {
    apply_filter_all_threads(&build_filter()?).map_err(io::Error::other)
}

fn build_filter() -> io::Result<BpfProgram> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = ALLOWED_CALLS
        .iter()
        .map(|&call| (call, Vec::new()))
        .collect();
    // Limits of this process, and signals to it, when it aborts.
    let own = u64::from(std::process::id());
    rules.insert(libc::SYS_prlimit64, vec![first_argument_is(0)?]);
    rules.insert(libc::SYS_tgkill, vec![first_argument_is(own)?]);
    let arch = TargetArch::try_from(std::env::consts::ARCH).map_err(io::Error::other)?;
    let refused = SeccompAction::Errno(libc::EPERM.unsigned_abs());
    SeccompFilter::new(rules, refused, SeccompAction::Allow, arch)
        .and_then(TryInto::try_into)
        .map_err(io::Error::other)
}

fn first_argument_is(value: u64) -> io::Result<SeccompRule> {
    let condition = SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, value);
    condition
        .and_then(|condition| SeccompRule::new(vec![condition]))
        .map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::{
        net::{AddressFamily, SocketType, socket},
        process::{Pid, Resource, Signal, getpid, getrlimit, kill_process, setrlimit},
    };
    use std::thread;

    /// The filter applies to one thread of this process only.
    #[test]
    fn filtered_thread_reaches_nothing_outside() {
        let filter = build_filter().expect("a filter");
        let try_out = move || {
            seccompiler::apply_filter(&filter).expect("the kernel has filters");
            let mut allocated = Vec::new();
            allocated.resize(64 << 20, 1_u8);
            let limit = getrlimit(Resource::Nofile);
            let own_limit = setrlimit(Resource::Nofile, limit).is_ok();
            let refused = [
                std::fs::File::open("/proc/self/stat").err(),
                std::fs::write("/tmp/turnery-filter", "").err(),
                socket(AddressFamily::INET, SocketType::STREAM, None)
                    .err()
                    .map(Into::into),
                kill_process(getpid(), Signal::CONT).err().map(Into::into),
                rustix::process::getpriority_process(Pid::from_raw(1))
                    .err()
                    .map(Into::into),
                std::process::Command::new("true").spawn().err(),
                thread::Builder::new().spawn(|| ()).err(),
            ];
            (
                allocated.len(),
                own_limit,
                refused.map(|error| error.map(|it| it.kind())),
            )
        };
        let (allocated, own_limit, refused) = thread::spawn(try_out).join().expect("an end");
        assert_eq!((allocated, own_limit), (64 << 20, true));
        assert_eq!(refused, [Some(io::ErrorKind::PermissionDenied); 7]);
    }
}
