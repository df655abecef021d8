//! SQLite VFS that passes calls on to the platform's own, records them and makes some fail.
//!
//! Flushes are recorded but not passed on: a test does not wait for a real disk. Locks and shared memory are those of the
//! platform.

use crate::disk::{Call, Disk, FileId, LogEntry};
use rusqlite::ffi;
use std::{
    ffi::{CStr, c_char, c_int, c_void},
    mem,
    path::PathBuf,
    ptr, slice,
    sync::{Arc, Once},
};

/// What SQLite holds of an open file, followed by the file of the platform's VFS.
#[repr(C)]
struct RecordedFile {
    base: ffi::sqlite3_file,
    /// Null for files on no simulated disk.
    handle: *mut Handle,
}

/// An open file on a simulated disk.
struct Handle {
    disk: Arc<Disk>,
    file: FileId,
    /// Failed flushes that this handle has reported.
    seen_failures: usize,
    /// The next flush also flushes the folder, as SQLite does for new journals and logs.
    flushes_folder: bool,
}

/// Makes the recording VFS SQLite's default in this process. Has no effect on files on no simulated disk.
pub fn install() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        // SAFETY: SQLite initializes itself; a null name asks for the default VFS, which is never freed.
        let platform = unsafe {
            ffi::sqlite3_initialize();
            ffi::sqlite3_vfs_find(ptr::null())
        };
        assert!(!platform.is_null(), "SQLite has no VFS");
        // SAFETY: a VFS is plain data. The functions that stay are those of the platform; on Unix they do not use the
        // VFS that they are called with, except for `mxPathname`, which stays too.
        let mut vfs = unsafe { ptr::read(platform) };
        vfs.szOsFile += c_int::try_from(size_of::<RecordedFile>()).unwrap_or(c_int::MAX);
        vfs.zName = c"faulty-disk".as_ptr();
        vfs.pNext = ptr::null_mut();
        vfs.pAppData = platform.cast();
        vfs.xOpen = Some(open);
        vfs.xDelete = Some(delete);
        // SAFETY: the VFS is never freed.
        let code = unsafe { ffi::sqlite3_vfs_register(Box::into_raw(Box::new(vfs)), 1) };
        assert_eq!(code, ffi::SQLITE_OK);
    });
}

/// Methods of recorded files. Version 2 has shared memory, but no memory-mapped reads and writes, which could not be
/// recorded.
static METHODS: ffi::sqlite3_io_methods = ffi::sqlite3_io_methods {
    iVersion: 2,
    xClose: Some(close),
    xRead: Some(read),
    xWrite: Some(write),
    xTruncate: Some(truncate),
    xSync: Some(sync),
    xFileSize: Some(file_size),
    xLock: Some(lock),
    xUnlock: Some(unlock),
    xCheckReservedLock: Some(check_reserved_lock),
    xFileControl: Some(file_control),
    xSectorSize: Some(sector_size),
    xDeviceCharacteristics: Some(device_characteristics),
    xShmMap: Some(shm_map),
    xShmLock: Some(shm_lock),
    xShmBarrier: Some(shm_barrier),
    xShmUnmap: Some(shm_unmap),
    xFetch: None,
    xUnfetch: None,
};

/// Returns the platform's file behind a recorded one.
///
/// # Safety
/// `file` is a file that [`open`] has opened, or is opening.
unsafe fn platform_file(file: *mut ffi::sqlite3_file) -> *mut ffi::sqlite3_file {
    // SAFETY: SQLite allocates `szOsFile` bytes, which is the sum of both.
    unsafe { file.cast::<u8>().add(size_of::<RecordedFile>()).cast() }
}

/// # Safety
/// `file` is an open recorded file, and no other reference to its handle exists: SQLite calls the methods of a file one
/// at a time.
unsafe fn handle_of<'a>(file: *mut ffi::sqlite3_file) -> Option<&'a mut Handle> {
    // SAFETY: the handle lives until `close`.
    unsafe { (*file.cast::<RecordedFile>()).handle.as_mut() }
}

/// Returns the path of a file; `None` for temporary files.
///
/// # Safety
/// `name` is null or a C string.
unsafe fn path_of(name: *const c_char) -> Option<PathBuf> {
    // SAFETY: as the caller promises.
    let name = (!name.is_null()).then(|| unsafe { CStr::from_ptr(name) });
    Some(PathBuf::from(name?.to_str().ok()?))
}

/// Calls a method of the platform's file.
macro_rules! call_platform {
    ($method:ident, $file:expr $(, $argument:expr)*) => {{
        // SAFETY: the file is open, so it has methods; the arguments are those of SQLite.
        unsafe {
            let file = platform_file($file);
            match (*(*file).pMethods).$method {
                Some(method) => method(file $(, $argument)*),
                None => ffi::SQLITE_ERROR,
            }
        }
    }};
}

unsafe extern "C" fn open(
    vfs: *mut ffi::sqlite3_vfs,
    name: ffi::sqlite3_filename,
    file: *mut ffi::sqlite3_file,
    flags: c_int,
    out_flags: *mut c_int,
) -> c_int {
    let recorded = file.cast::<RecordedFile>();
    // SAFETY: SQLite has allocated the file, and passes the VFS that `install` has registered.
    let (path, platform) = unsafe {
        (*recorded).base.pMethods = ptr::null();
        (*recorded).handle = ptr::null_mut();
        (path_of(name), (*vfs).pAppData.cast::<ffi::sqlite3_vfs>())
    };
    let disk = path.as_deref().and_then(Disk::of);
    let is_new = path.as_deref().is_some_and(|path| !path.exists());
    let creates = flags & ffi::SQLITE_OPEN_CREATE != 0;
    if let Some(disk) = &disk {
        let call = match is_new && creates {
            true => Call::Create,
            false => Call::Open,
        };
        if disk.fails(call) {
            return ffi::SQLITE_CANTOPEN;
        }
    }
    // SAFETY: the platform's file has its own part of the allocation.
    let code = unsafe {
        match (*platform).xOpen {
            Some(open) => open(platform, name, platform_file(file), flags, out_flags),
            None => ffi::SQLITE_CANTOPEN,
        }
    };
    if code != ffi::SQLITE_OK {
        return code;
    }
    let with_folder =
        ffi::SQLITE_OPEN_MAIN_JOURNAL | ffi::SQLITE_OPEN_SUPER_JOURNAL | ffi::SQLITE_OPEN_WAL;
    let handle = disk.zip(path).map(|(disk, path)| {
        let file = disk.open_file(&path);
        Box::new(Handle {
            file,
            seen_failures: disk.sync_failures(file),
            disk,
            flushes_folder: creates && flags & with_folder != 0,
        })
    });
    // SAFETY: as above.
    unsafe {
        (*recorded).handle = handle.map_or(ptr::null_mut(), Box::into_raw);
        (*recorded).base.pMethods = &raw const METHODS;
    }
    ffi::SQLITE_OK
}

unsafe extern "C" fn delete(
    vfs: *mut ffi::sqlite3_vfs,
    name: *const c_char,
    sync_folder: c_int,
) -> c_int {
    // SAFETY: SQLite passes a name, and the VFS that `install` has registered.
    let (path, platform) = unsafe { (path_of(name), (*vfs).pAppData.cast::<ffi::sqlite3_vfs>()) };
    // SAFETY: the platform's VFS is never freed.
    let run = || unsafe {
        match (*platform).xDelete {
            Some(delete) => delete(platform, name, 0),
            None => ffi::SQLITE_IOERR_DELETE,
        }
    };
    let Some((path, disk)) = path.and_then(|path| Some((path.clone(), Disk::of(&path)?))) else {
        return run();
    };
    if disk.fails(Call::Remove) {
        return ffi::SQLITE_IOERR_DELETE;
    }
    let mut code = ffi::SQLITE_OK;
    disk.remove(&path, || {
        code = run();
        code == ffi::SQLITE_OK
    });
    if code == ffi::SQLITE_OK && sync_folder != 0 {
        disk.record_folder_sync();
    }
    code
}

unsafe extern "C" fn close(file: *mut ffi::sqlite3_file) -> c_int {
    let code = call_platform!(xClose, file);
    // SAFETY: the file is closed once; `open` has made the handle from a box.
    unsafe {
        let handle = mem::replace(&mut (*file.cast::<RecordedFile>()).handle, ptr::null_mut());
        if !handle.is_null() {
            drop(Box::from_raw(handle));
        }
    }
    code
}

/// Returns true if a call must fail.
///
/// # Safety
/// As for [`handle_of`].
unsafe fn fails(file: *mut ffi::sqlite3_file, call: Call) -> bool {
    // SAFETY: as the caller promises.
    unsafe { handle_of(file) }.is_some_and(|handle| handle.disk.fails(call))
}

unsafe extern "C" fn read(
    file: *mut ffi::sqlite3_file,
    buffer: *mut c_void,
    count: c_int,
    offset: i64,
) -> c_int {
    // SAFETY: SQLite passes an open file.
    if unsafe { fails(file, Call::Read) } {
        return ffi::SQLITE_IOERR_READ;
    }
    call_platform!(xRead, file, buffer, count, offset)
}

unsafe extern "C" fn write(
    file: *mut ffi::sqlite3_file,
    buffer: *const c_void,
    count: c_int,
    offset: i64,
) -> c_int {
    // SAFETY: SQLite passes an open file.
    let Some(handle) = (unsafe { handle_of(file) }) else {
        return call_platform!(xWrite, file, buffer, count, offset);
    };
    let (code, count) = match handle.disk.fails(Call::Write) {
        false => (ffi::SQLITE_OK, count),
        true if handle.disk.is_full() => (ffi::SQLITE_FULL, count / 2),
        true => return ffi::SQLITE_IOERR_WRITE,
    };
    let length = usize::try_from(count).unwrap_or_default();
    // SAFETY: SQLite passes a buffer of at least this many bytes.
    let bytes = unsafe { slice::from_raw_parts(buffer.cast::<u8>(), length) };
    let start = u64::try_from(offset).unwrap_or_default();
    let entry = LogEntry::Write(handle.file, start, bytes.to_vec());
    let written = handle.disk.record(entry, || {
        let written = call_platform!(xWrite, file, buffer, count, offset);
        (written == ffi::SQLITE_OK, written)
    });
    if written == ffi::SQLITE_OK {
        code
    } else {
        written
    }
}

unsafe extern "C" fn truncate(file: *mut ffi::sqlite3_file, size: i64) -> c_int {
    // SAFETY: SQLite passes an open file.
    let Some(handle) = (unsafe { handle_of(file) }) else {
        return call_platform!(xTruncate, file, size);
    };
    if handle.disk.fails(Call::Truncate) {
        return ffi::SQLITE_IOERR_TRUNCATE;
    }
    let entry = LogEntry::Truncate(handle.file, u64::try_from(size).unwrap_or_default());
    handle.disk.record(entry, || {
        let code = call_platform!(xTruncate, file, size);
        (code == ffi::SQLITE_OK, code)
    })
}

unsafe extern "C" fn sync(file: *mut ffi::sqlite3_file, flags: c_int) -> c_int {
    // SAFETY: SQLite passes an open file.
    let Some(handle) = (unsafe { handle_of(file) }) else {
        return call_platform!(xSync, file, flags);
    };
    if !handle.disk.sync(handle.file, &mut handle.seen_failures) {
        return ffi::SQLITE_IOERR_FSYNC;
    }
    if mem::take(&mut handle.flushes_folder) {
        handle.disk.record_folder_sync();
    }
    ffi::SQLITE_OK
}

unsafe extern "C" fn file_size(file: *mut ffi::sqlite3_file, size: *mut i64) -> c_int {
    // SAFETY: SQLite passes an open file.
    if unsafe { fails(file, Call::Size) } {
        return ffi::SQLITE_IOERR_FSTAT;
    }
    call_platform!(xFileSize, file, size)
}

unsafe extern "C" fn lock(file: *mut ffi::sqlite3_file, level: c_int) -> c_int {
    // SAFETY: SQLite passes an open file.
    if unsafe { fails(file, Call::Lock) } {
        return ffi::SQLITE_IOERR_LOCK;
    }
    call_platform!(xLock, file, level)
}

unsafe extern "C" fn unlock(file: *mut ffi::sqlite3_file, level: c_int) -> c_int {
    call_platform!(xUnlock, file, level)
}

unsafe extern "C" fn check_reserved_lock(file: *mut ffi::sqlite3_file, out: *mut c_int) -> c_int {
    call_platform!(xCheckReservedLock, file, out)
}

unsafe extern "C" fn file_control(
    file: *mut ffi::sqlite3_file,
    operation: c_int,
    argument: *mut c_void,
) -> c_int {
    // Growing a file ahead of its writes would not be recorded.
    if operation == ffi::SQLITE_FCNTL_SIZE_HINT || operation == ffi::SQLITE_FCNTL_CHUNK_SIZE {
        return ffi::SQLITE_OK;
    }
    call_platform!(xFileControl, file, operation, argument)
}

unsafe extern "C" fn sector_size(file: *mut ffi::sqlite3_file) -> c_int {
    call_platform!(xSectorSize, file)
}

unsafe extern "C" fn device_characteristics(file: *mut ffi::sqlite3_file) -> c_int {
    call_platform!(xDeviceCharacteristics, file)
}

unsafe extern "C" fn shm_map(
    file: *mut ffi::sqlite3_file,
    region: c_int,
    size: c_int,
    extends: c_int,
    memory: *mut *mut c_void,
) -> c_int {
    // SAFETY: SQLite passes an open file.
    if unsafe { fails(file, Call::Map) } {
        return ffi::SQLITE_IOERR_SHMSIZE;
    }
    call_platform!(xShmMap, file, region, size, extends, memory.cast())
}

unsafe extern "C" fn shm_lock(
    file: *mut ffi::sqlite3_file,
    offset: c_int,
    count: c_int,
    flags: c_int,
) -> c_int {
    // SAFETY: SQLite passes an open file.
    if flags & ffi::SQLITE_SHM_LOCK != 0 && unsafe { fails(file, Call::Lock) } {
        return ffi::SQLITE_IOERR_SHMLOCK;
    }
    call_platform!(xShmLock, file, offset, count, flags)
}

unsafe extern "C" fn shm_barrier(file: *mut ffi::sqlite3_file) {
    // SAFETY: as in `call_platform!`.
    unsafe {
        let file = platform_file(file);
        if let Some(barrier) = (*(*file).pMethods).xShmBarrier {
            barrier(file);
        }
    }
}

unsafe extern "C" fn shm_unmap(file: *mut ffi::sqlite3_file, delete: c_int) -> c_int {
    call_platform!(xShmUnmap, file, delete)
}
