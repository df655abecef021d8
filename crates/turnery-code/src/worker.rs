//! The worker process: runs the interpreter on one thread and reads the host's frames on another.
//!
//! Invariant: the worker ends as soon as the host closes its standard input, even in the middle of a
//! computation, because the main thread only reads.

mod awaited_calls;
mod block_execution;
mod host_channel;
mod interpreter;
mod json;
mod memory_limit;
mod print_buffer;
#[cfg(target_os = "linux")]
mod system_calls;

use crate::protocol::{
    HostMessage, PANIC_EXIT, WorkerMessage, WorkerStart, invalid_data, read_frame,
};
use host_channel::{HostChannel, HostFrame, to_message};
use interpreter::Interpreter;
use memory_limit::MemoryLimit;
use std::{
    fs::File,
    io,
    os::fd::AsFd as _,
    sync::mpsc::{SyncSender, sync_channel},
    thread,
};

/// Stack of the interpreter's thread without recursion. Unit: bytes.
const BASE_STACK_BYTES: usize = 16 << 20;
/// Stack for each level of recursion. 500 levels need less than 1 MiB in an optimized build, and several times as
/// much in others. Unit: bytes.
const LEVEL_STACK_BYTES: usize = 32 << 10;
/// Largest stack, whatever the recursion limit. Unit: bytes.
const MAX_STACK_BYTES: usize = 1 << 30;

/// Frames that wait for the interpreter. The host waits for a response after at most two, so that the reading
/// thread is never held up.
const MAX_FRAMES: usize = 2;

/// Runs the worker until the host closes standard input. Returns the exit code of the process.
pub(crate) fn run() -> i32 {
    // An error means that the host is gone or sends invalid frames. Nobody reads a message about it.
    serve().unwrap_or(1)
}

fn serve() -> io::Result<i32> {
    // Wakes the worker if it was stopped (SIGSTOP), so that it sees that its input is closed. SIGKILL would be
    // sent whenever the *thread* that started this process ends.
    #[cfg(target_os = "linux")]
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::CONT))?;
    let mut input = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let output = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    let HostMessage::Start(start) = to_message(read_frame(&mut input)?)? else {
        return Err(invalid_data("expected the settings of the worker"));
    };
    let stack_bytes = LEVEL_STACK_BYTES
        .saturating_mul(start.recursion_depth)
        .saturating_add(BASE_STACK_BYTES)
        .min(MAX_STACK_BYTES);
    let (sender, receiver) = sync_channel(MAX_FRAMES);
    let (limited, is_limited) = sync_channel(1);
    let interpreter = thread::Builder::new()
        .name("interpreter".to_owned())
        .stack_size(stack_bytes)
        .spawn(move || interpret(start, HostChannel::new(receiver, output), &limited))?;
    // Ends the process if the interpreter does, also while the other thread reads.
    thread::Builder::new()
        .name("exit".to_owned())
        .spawn(move || {
            let code = match interpreter.join() {
                Ok(Ok(())) => 0,
                Ok(Err(_)) => 1,
                Err(_) => PANIC_EXIT,
            };
            std::process::exit(code);
        })?;
    // The interpreter gets nothing to run before.
    if is_limited.recv().is_ok() {
        restrict_system_calls();
        read_frames(&mut input, &sender);
    }
    Ok(0)
}

/// Restricts what the process could do if the interpreter had a hole. A kernel without such filters leaves the other
/// limits: the interpreter offers no IO, and the process can open nothing.
fn restrict_system_calls() {
    #[cfg(target_os = "linux")]
    let _ = system_calls::restrict();
}

/// Passes frames on until the host closes the input.
fn read_frames(input: &mut File, frames: &SyncSender<HostFrame>) {
    while let Ok(frame) = read_frame(input) {
        if frames.send(frame).is_err() {
            return;
        }
    }
}

/// Runs blocks until the host is gone. Sends to `limited` once the process needs no more of the system.
fn interpret(
    start: WorkerStart,
    mut channel: HostChannel,
    limited: &SyncSender<()>,
) -> io::Result<()> {
    let memory_limit = MemoryLimit::set(start.memory_bytes, start.snapshot_bytes)?;
    limited.send(()).map_err(io::Error::other)?;
    let snapshot = match start.has_snapshot {
        true => Some(channel.receive_snapshot()?),
        false => None,
    };
    let mut interpreter = match Interpreter::start(&start, snapshot.as_deref(), memory_limit) {
        Ok(interpreter) => interpreter,
        Err(reason) => return channel.send(&WorkerMessage::InvalidSnapshot(reason)),
    };
    drop(snapshot);
    channel.send(&WorkerMessage::Ready)?;
    loop {
        match channel.receive()? {
            HostMessage::Run { code, functions } => {
                interpreter.run_block(&code, &functions, &mut channel)?
            }
            HostMessage::Start(_) | HostMessage::Results(_) | HostMessage::End => {
                return Err(invalid_data("expected a block to run"));
            }
        }
    }
}
