//! Local: runs a command line on this machine, shows what it prints, and stops it when it is time.

use super::{ending::Ending, group::Group, kept::Kept, stream::Stream};
use crate::{Progress, ToolCx, grace};
use std::{io, path::Path, time::Duration};
use tokio::{
    io::AsyncReadExt,
    net::unix::pipe,
    time::{Instant, sleep_until},
};

/// Read at once.
const CHUNK: usize = 32 * 1024;
/// A pipe holds no more than this, unless somebody raised the system's limit.
const PIPE: usize = 1024 * 1024;

/// Run it to its end, whichever that is. Dropping the future kills it and all that it started.
///
/// Two tiers: a cancel or the timeout asks the group to end (SIGTERM), [`grace::COMMAND`] later it is killed.
/// When the leader is gone nothing of the group stays, so a process that it left in the background
/// neither lives on nor keeps the call waiting.
pub(super) async fn run(
    line: &str,
    cwd: &Path,
    limit: Duration,
    hidden: &[String],
    cx: &ToolCx,
) -> io::Result<(Ending, String)> {
    let (mut group, mut output) = Group::start(line, cwd, hidden)?;
    let mut kept = Kept::default();
    let mut stream = Stream::default();
    let mut chunk = vec![0; CHUNK];
    let mut is_open = true;
    let mut stopped = None;
    let alarm = sleep_until(Instant::now() + limit);
    tokio::pin!(alarm);
    loop {
        tokio::select! {
            biased;
            () = cx.cancel.cancelled(), if stopped.is_none() => {
                stopped = Some(Ending::Cancelled);
                group.ask();
                alarm.as_mut().reset(Instant::now() + grace::COMMAND);
            }
            () = &mut alarm => {
                if stopped.is_none() {
                    stopped = Some(Ending::TimedOut(limit));
                    group.ask();
                } else {
                    group.kill();
                }
                alarm.as_mut().reset(Instant::now() + grace::COMMAND);
            }
            over = group.over() => break over?,
            permit = cx.progress.reserve(), if stream.has_text() => match permit {
                Ok(permit) => permit.send(Progress::Printed(stream.take())),
                Err(_) => stream.close(),
            },
            // A command that winds up is not held back by a client that has stopped reading.
            read = output.read(&mut chunk), if is_open && (stream.has_room() || stopped.is_some()) => {
                match read {
                    Ok(0) | Err(_) => is_open = false,
                    Ok(count) => {
                        kept.add(&chunk[..count]);
                        if stream.has_room() {
                            stream.add(&chunk[..count]);
                        }
                    }
                }
            }
        }
    }
    let ended = group.bury().await?;
    drain(&output, &mut chunk, |bytes| {
        kept.add(bytes);
        stream.add(bytes);
    });
    stream.end();
    if stream.has_text() {
        tokio::select! {
            biased;
            () = cx.cancel.cancelled() => {}
            // Nobody watches: then nobody misses it.
            _ = cx.progress.send(Progress::Printed(stream.take())) => {}
        }
    }
    Ok((stopped.unwrap_or_else(|| ended.into()), kept.into_text()))
}

/// Take what the pipe holds by now: all that the leader wrote is in it. What fled from the group
/// and still holds the other end is not waited for.
fn drain(output: &pipe::Receiver, chunk: &mut [u8], mut each: impl FnMut(&[u8])) {
    let mut total = 0;
    while total < PIPE {
        match output.try_read(chunk) {
            Ok(0) | Err(_) => return,
            Ok(count) => {
                total += count;
                each(&chunk[..count]);
            }
        }
    }
}
