//! Prints a session while it runs, in this process or another one.

use super::transcript::write_message;
use crate::{
    logs::print_message,
    run::loop_number,
    terminal_text::{first_line, replace_control_chars},
};
use serde::Serialize;
use std::{
    io::{self, Write},
    process::ExitCode,
    time::Duration,
};
use tokio::time::sleep;
use turnery_engine::{ContinuationKind, Event, EventKind, LoopStatus};
use turnery_store::{FollowCursor, FollowItem, FollowUpdate, SessionFollower, StoreError};

/// Delay after an error of the store.
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// Longest notice about a loop. Unit: characters.
const NOTICE_WIDTH: usize = 400;

/// Line of JSON output.
#[derive(Serialize)]
struct FollowLine<'a> {
    /// Cursor behind the update.
    cursor: &'a FollowCursor,
    #[serde(flatten)]
    update: &'a FollowUpdate,
}

/// Prints updates for ever, or until no loop is running. Goes on once the store answers again.
pub(super) async fn follow(
    mut follower: SessionFollower,
    until_idle: bool,
    json: bool,
    out: &mut impl Write,
) -> anyhow::Result<ExitCode> {
    let mut is_failing = false;
    loop {
        let next = match follower.next_ready().await {
            Ok(None) if until_idle && !follower.has_open_loops() => return Ok(ExitCode::SUCCESS),
            Ok(None) => follower.wait().await.map(|()| None),
            next => next,
        };
        match next {
            Ok(item) => {
                is_failing = false;
                if let Some(item) = item {
                    write_item(&item, json, out)?;
                }
            }
            Err(error @ StoreError::Broken(_)) => {
                if !std::mem::replace(&mut is_failing, true) {
                    print_message(&format!("{error}; waiting for it"));
                }
                sleep(RETRY_DELAY).await;
            }
            Err(error) => return Err(error.into()),
        }
    }
}

fn write_item(item: &FollowItem, json: bool, out: &mut impl Write) -> io::Result<()> {
    let FollowItem { update, cursor } = item;
    if json {
        serde_json::to_writer(&mut *out, &FollowLine { cursor, update })?;
        writeln!(out)?;
    } else {
        write_update(update, out)?;
    }
    out.flush()
}

/// Writes what `sessions show` prints of an update.
fn write_update(update: &FollowUpdate, out: &mut impl Write) -> io::Result<()> {
    match update {
        FollowUpdate::Event(event) => write_event(event, out),
        FollowUpdate::LoopStored {
            loop_id,
            status: LoopStatus::Aborted,
            ..
        } => writeln!(out, "· loop {} was interrupted", loop_number(loop_id)),
        FollowUpdate::LoopStored { .. } => Ok(()),
        FollowUpdate::Withdrawn { loop_id } => writeln!(
            out,
            "· what was shown of loop {} does not count: the prompt was given up, or has begun again",
            loop_number(loop_id)
        ),
        FollowUpdate::Damaged(damage) => {
            writeln!(out, "✗ {}", replace_control_chars(&damage.to_string()))
        }
    }
}

fn write_event(event: &Event, out: &mut impl Write) -> io::Result<()> {
    match &event.kind {
        EventKind::LoopStart {
            continuation_kind: ContinuationKind::Rerun,
            ..
        } => writeln!(out, "\n· the last prompt is run again"),
        EventKind::MessageEnd { message } => write_message(&message.message, &[], false, out),
        EventKind::Issue { text } => writeln!(out, "· {}", first_line(text, NOTICE_WIDTH)),
        EventKind::InputRejected { reason } => {
            writeln!(out, "✗ {}", replace_control_chars(reason))
        }
        // The rest is in messages, or not shown by `sessions show` either.
        _ => Ok(()),
    }
}
