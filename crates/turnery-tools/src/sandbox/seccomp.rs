//! Applies a seccomp filter to the calling thread, which blocks ways around landlock and the network.
//!
//! Refused calls fail with `EPERM`, where landlock returns `EACCES`. A process of another architecture is
//! killed by its first call.

use super::confinement::Confinement;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, apply_filter,
};
use std::{collections::BTreeMap, io, path::Path};

/// Calls that affect other processes, the kernel or its view of the files.
const REFUSED_CALLS: &[i64] = &[
    libc::SYS_acct,
    libc::SYS_add_key,
    libc::SYS_bpf,
    libc::SYS_chroot,
    libc::SYS_clock_settime,
    libc::SYS_delete_module,
    libc::SYS_finit_module,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fsopen,
    libc::SYS_fspick,
    libc::SYS_init_module,
    libc::SYS_io_uring_setup,
    libc::SYS_kexec_load,
    libc::SYS_keyctl,
    libc::SYS_mount,
    libc::SYS_mount_setattr,
    libc::SYS_move_mount,
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
    libc::SYS_open_by_handle_at,
    libc::SYS_open_tree,
    OPEN_TREE_ATTR,
    libc::SYS_perf_event_open,
    libc::SYS_pidfd_getfd,
    libc::SYS_pivot_root,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_ptrace,
    libc::SYS_quotactl,
    libc::SYS_reboot,
    libc::SYS_request_key,
    libc::SYS_setdomainname,
    libc::SYS_sethostname,
    libc::SYS_setns,
    libc::SYS_settimeofday,
    libc::SYS_swapoff,
    libc::SYS_swapon,
    libc::SYS_umount2,
    libc::SYS_unshare,
    libc::SYS_userfaultfd,
];

/// Calls that change what landlock does not control: permissions, owners, times and attributes.
const METADATA_WRITES: &[i64] = &[
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    FCHMODAT2,
    FILE_SETATTR,
    libc::SYS_fchown,
    libc::SYS_fchownat,
    libc::SYS_fremovexattr,
    libc::SYS_fsetxattr,
    libc::SYS_lremovexattr,
    libc::SYS_lsetxattr,
    libc::SYS_removexattr,
    libc::SYS_setxattr,
    REMOVEXATTRAT,
    SETXATTRAT,
    libc::SYS_truncate,
    libc::SYS_utimensat,
];
#[cfg(target_arch = "x86_64")]
const LEGACY_METADATA_WRITES: &[i64] = &[
    libc::SYS_chmod,
    libc::SYS_chown,
    libc::SYS_futimesat,
    libc::SYS_lchown,
    libc::SYS_utime,
    libc::SYS_utimes,
];
#[cfg(not(target_arch = "x86_64"))]
const LEGACY_METADATA_WRITES: &[i64] = &[];
/// These numbers are the same on all architectures, but `libc` does not define them for all.
const FCHMODAT2: i64 = 452;
const SETXATTRAT: i64 = 463;
const REMOVEXATTRAT: i64 = 466;
const OPEN_TREE_ATTR: i64 = 467;
const FILE_SETATTR: i64 = 469;

/// Calls whose first argument is a process; only 0, the caller, is allowed. With them a command could have
/// another process killed through a limit on processor time, or starve the process that enforces the
/// command's time limit.
const PROCESS_CALLS: &[i64] = &[
    libc::SYS_prlimit64,
    libc::SYS_sched_setaffinity,
    libc::SYS_sched_setattr,
    libc::SYS_sched_setparam,
    libc::SYS_sched_setscheduler,
];
/// Calls whose first two arguments are a kind of target and its number, with the kind that is a single
/// process (`PRIO_PROCESS`, `IOPRIO_WHO_PROCESS`). Only the caller is allowed.
const PRIORITY_CALLS: [(i64, u64); 2] = [(libc::SYS_setpriority, 0), (libc::SYS_ioprio_set, 1)];

/// Flags of `clone` that create a namespace, in which a process has additional rights.
const NAMESPACE_FLAGS: [libc::c_int; 7] = [
    libc::CLONE_NEWCGROUP,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWNET,
    libc::CLONE_NEWNS,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWUTS,
];
/// Bits of a socket's type that name its kind; others are flags such as `SOCK_CLOEXEC`.
const SOCKET_KIND_MASK: u64 = 0xF;
/// `ioctl` requests that type into a terminal.
const TERMINAL_INPUT_REQUESTS: [u32; 2] = [0x5412, 0x541C];
/// `ioctl` requests that change a file's flags, version, attributes, format or encryption, or seal or pin it
/// (`FS_IOC_SETFLAGS` for 64 and 32 bits, `FS_IOC_SETVERSION`, `FS_IOC_FSSETXATTR`, `FS_IOC_ENABLE_VERITY`,
/// `EXT4_IOC_SETVERSION` for 64 and 32 bits, `EXT4_IOC_MIGRATE`, `EXT4_IOC_ALLOC_DA_BLKS`,
/// `FS_IOC_SET_ENCRYPTION_POLICY`, `FS_IOC_REMOVE_ENCRYPTION_KEY`, `FAT_IOCTL_SET_ATTRIBUTES`,
/// `F2FS_IOC_SET_PIN_FILE`). They need no writable descriptor.
const FILE_ATTRIBUTE_REQUESTS: [u32; 13] = [
    0x4008_6602,
    0x4004_6602,
    0x4008_7602,
    0x401C_5820,
    0x4080_6685,
    0x4008_6604,
    0x4004_6604,
    0x6609,
    0x660C,
    0x800C_6613,
    0xC040_6618,
    0x4004_7211,
    0x4004_F50D,
];
/// `ioctl` requests to btrfs and bcachefs that create, remove or change a subvolume, or name a device. Only
/// their lower half is given, since the rest depends on the argument's size. They need no writable
/// descriptor, and landlock does not control them.
const SUBVOLUME_REQUESTS: [u16; 11] = [
    0x9401, 0x9404, 0x940E, 0x940F, 0x9417, 0x9418, 0x941A, 0x9425, 0x943F, 0xBC10, 0xBC11,
];
/// Bits of a request that [`SUBVOLUME_REQUESTS`] gives.
const REQUEST_LOWER_HALF: u64 = 0xFFFF;

/// Bit that marks calls by their x32 numbers, which any process may use; x32 also has some numbers of its
/// own.
#[cfg(target_arch = "x86_64")]
const X32_CALL_BIT: i64 = 0x4000_0000;
/// x32 numbers of `ioctl`, `ptrace`, `kexec_load`, `process_vm_readv` and `process_vm_writev`.
#[cfg(target_arch = "x86_64")]
const X32_ONLY_CALLS: [i64; 5] = [514, 521, 528, 539, 540];

/// First version of landlock that controls `truncate`.
const LANDLOCK_WITH_TRUNCATE: u32 = 3;

/// Returns true if the kernel filters system calls and this crate can build filters for its architecture.
pub(super) fn is_supported() -> bool {
    TargetArch::try_from(std::env::consts::ARCH).is_ok()
        && Path::new("/proc/sys/kernel/seccomp/actions_avail").exists()
}

/// Confines the calling thread, which is already confined by this version of landlock.
pub(super) fn restrict(confinement: &Confinement, landlock: Option<u32>) -> io::Result<()> {
    // The C library falls back to `clone`, whose flags can be checked.
    let clone3 = [(libc::SYS_clone3, Vec::new())];
    install_filter(BTreeMap::from(clone3), libc::ENOSYS)?;
    let rules = build_rules(confinement, landlock).map_err(io::Error::other)?;
    install_filter(rules, libc::EPERM)
}

fn install_filter(rules: BTreeMap<i64, Vec<SeccompRule>>, errno: libc::c_int) -> io::Result<()> {
    #[cfg(target_arch = "x86_64")]
    let rules = with_x32(rules);
    let arch = TargetArch::try_from(std::env::consts::ARCH).map_err(io::Error::other)?;
    let refused = SeccompAction::Errno(errno.unsigned_abs());
    let program: BpfProgram = SeccompFilter::new(rules, SeccompAction::Allow, refused, arch)
        .and_then(TryInto::try_into)
        .map_err(io::Error::other)?;
    apply_filter(&program).map_err(io::Error::other)
}

type SeccompRules = BTreeMap<i64, Vec<SeccompRule>>;

fn build_rules(
    confinement: &Confinement,
    landlock: Option<u32>,
) -> Result<SeccompRules, seccompiler::BackendError> {
    let mut refused: Vec<i64> = REFUSED_CALLS.to_vec();
    if !confinement.writes {
        refused.extend(METADATA_WRITES.iter().chain(LEGACY_METADATA_WRITES));
    }
    if landlock < Some(LANDLOCK_WITH_TRUNCATE) {
        refused.push(libc::SYS_truncate);
    }
    let mut rules: SeccompRules = refused.into_iter().map(|call| (call, Vec::new())).collect();
    let argument = |index, operator, value: u64| {
        SeccompCondition::new(index, SeccompCmpArgLen::Dword, operator, value)
    };
    let refuse = |index, operator, value| SeccompRule::new(vec![argument(index, operator, value)?]);
    // A local socket would reach daemons that act for any caller, such as Docker's, systemd's and the ssh
    // agent; landlock does not control their paths.
    let sockets = match confinement.network {
        false => Vec::new(),
        true => {
            let netlink = u64::from(libc::AF_NETLINK.unsigned_abs());
            let routes = u64::from(libc::NETLINK_ROUTE.unsigned_abs());
            let families = [libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK];
            let is_other = |family: libc::c_int| {
                argument(0, SeccompCmpOp::Ne, u64::from(family.unsigned_abs()))
            };
            let other_families = families
                .map(is_other)
                .into_iter()
                .collect::<Result<_, _>>()?;
            vec![
                SeccompRule::new(other_families)?,
                // Addresses and routes, which the C library looks up. Other protocols reach the rest of the
                // kernel.
                SeccompRule::new(vec![
                    argument(0, SeccompCmpOp::Eq, netlink)?,
                    argument(2, SeccompCmpOp::Ne, routes)?,
                ])?,
            ]
        }
    };
    rules.insert(libc::SYS_socket, sockets);
    // Ends of a stream pair reach only each other, but datagrams of a pair may be sent to any path.
    let local = u64::from(libc::AF_UNIX.unsigned_abs());
    let mut pairs = vec![refuse(0, SeccompCmpOp::Ne, local)?];
    for kind in [libc::SOCK_DGRAM, libc::SOCK_RAW] {
        let is_kind = SeccompCmpOp::MaskedEq(SOCKET_KIND_MASK);
        pairs.push(refuse(1, is_kind, u64::from(kind.unsigned_abs()))?);
    }
    rules.insert(libc::SYS_socketpair, pairs);
    let mut clones = Vec::new();
    for flag in NAMESPACE_FLAGS {
        let flag = u64::from(flag.unsigned_abs());
        clones.push(refuse(0, SeccompCmpOp::MaskedEq(flag), flag)?);
    }
    rules.insert(libc::SYS_clone, clones);
    let mut requests = Vec::new();
    let changing: &[u32] = match confinement.writes {
        true => &[],
        false => &FILE_ATTRIBUTE_REQUESTS,
    };
    for &request in TERMINAL_INPUT_REQUESTS.iter().chain(changing) {
        requests.push(refuse(1, SeccompCmpOp::Eq, u64::from(request))?);
    }
    for request in SUBVOLUME_REQUESTS {
        let is_request = SeccompCmpOp::MaskedEq(REQUEST_LOWER_HALF);
        requests.push(refuse(1, is_request, u64::from(request))?);
    }
    rules.insert(libc::SYS_ioctl, requests);
    for &call in PROCESS_CALLS {
        rules.insert(call, vec![refuse(0, SeccompCmpOp::Ne, 0)?]);
    }
    for (call, process) in PRIORITY_CALLS {
        let not_process = refuse(0, SeccompCmpOp::Ne, process)?;
        let other_process = refuse(1, SeccompCmpOp::Ne, 0)?;
        rules.insert(call, vec![not_process, other_process]);
    }
    Ok(rules)
}

#[cfg(target_arch = "x86_64")]
fn with_x32(rules: SeccompRules) -> SeccompRules {
    let mut all = rules.clone();
    if rules.len() > 1 {
        all.extend(X32_ONLY_CALLS.map(|call| (call | X32_CALL_BIT, Vec::new())));
    }
    all.extend(
        rules
            .into_iter()
            .map(|(call, rules)| (call | X32_CALL_BIT, rules)),
    );
    all
}
