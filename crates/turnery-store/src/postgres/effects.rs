//! Hands out the effects of tools until the host has received them.

use super::{
    connection::Connection, engine::Shared, hosts::HostHold, listener::tell_followers,
    pg_error::PgError, rows::Columns,
};
use crate::{
    Damage, DamagedPart, LEASE_DURATION, MAX_EFFECT_DELAY, NextEffect, Owner, PendingEffect,
    PromptRemoval, QueuedPrompt, StoreError, TakenEffect,
    effect_hold::TAKEN_EFFECT_RECHECK,
    encoding::{
        checksum::{Checksum, ChecksumVerdict},
        row_error::RowError,
    },
    queued_prompt::PROMPT_TOOL,
};
use std::time::Duration;
use turnery_engine::{PromptId, SessionId, Timestamp};

const SELECT: &str = "SELECT o.outbox, o.key, o.tool_name, o.effect, o.checksum, o.attempts::bigint, h.machine, \
     h.process, o.held_until, coalesce($2::timestamptz, clock_timestamp()), o.taken_by FROM outbox o \
     LEFT JOIN hosts h ON h.host = o.taken_by WHERE o.session_id = $1 AND o.set_aside IS NULL ORDER BY o.outbox";

/// Takes an effect unless somebody has taken or postponed it meanwhile.
const TAKE: &str = "UPDATE outbox SET attempts = attempts + 1, taken_by = $4, held_until = $5 \
     WHERE session_id = $1 AND outbox = $2 AND attempts = $3::bigint AND held_until IS NOT DISTINCT FROM $6";

const FINISH: &str = "DELETE FROM outbox WHERE session_id = $1 AND key = $2";

const POSTPONE: &str = "UPDATE outbox SET taken_by = NULL, \
     held_until = coalesce($4::timestamptz, clock_timestamp()) + $5::bigint * interval '1 microsecond' \
     WHERE session_id = $1 AND key = $2 AND attempts = $3::bigint";

/// Stores a prompt that waits. Returns a row if the session exists.
const QUEUE_PROMPT: &str = "WITH seen AS (SELECT session_id FROM sessions WHERE session_id = $1), \
     added AS ( \
         INSERT INTO outbox (session_id, key, tool_name, effect, checksum) \
         SELECT session_id, $2, $3, $4, $5 FROM seen ON CONFLICT DO NOTHING) \
     SELECT 1 FROM seen";

const START_PROMPT: &str = "UPDATE outbox SET attempts = attempts + 1 WHERE session_id = $1 AND key = $2 AND tool_name = $3";

/// Removes a prompt, and announces that. Returns a row if there was one.
const REMOVE_PROMPT: &str = concat!(
    "WITH removed AS (DELETE FROM outbox WHERE session_id = $1 AND key = $2 AND tool_name = $3 \
         AND (attempts = 0 OR NOT $4::boolean) RETURNING session_id), \
     told AS (",
    tell_followers!("removed"),
    ") SELECT removed.session_id, (SELECT count(*) FROM told) FROM removed"
);

const SET_ASIDE: &str = "UPDATE outbox SET set_aside = $3 WHERE session_id = $1 AND outbox = $2";

/// Attempt to take an effect, whose answer may be lost.
#[derive(PartialEq)]
pub(super) struct Taking {
    outbox: i64,
    attempts: i64,
    host: Option<i64>,
    until: Option<Timestamp>,
}

/// Takes the first free effect for a process of `owner`, and counts the attempt. `taking` is kept between the attempts
/// of one call.
pub(super) async fn take(
    shared: &Shared,
    connection: &Connection,
    session: &SessionId,
    owner: &Owner,
    taking: &mut Option<Taking>,
) -> Result<NextEffect, PgError> {
    let now = shared.now();
    let rows = connection.query(SELECT, &[&session.as_str(), &now]).await?;
    let mut soonest = None;
    for row in rows.iter().map(Columns) {
        let pending = match read_effect(session, row)? {
            Ok(pending) => pending,
            Err(reason) => {
                tracing::warn!(%session, %reason, "an effect is not delivered");
                continue;
            }
        };
        if pending.tool_name == PROMPT_TOOL {
            continue;
        }
        let found = Taking {
            outbox: row.integer(0)?,
            attempts: row.integer(5)?,
            host: row.optional_integer(10)?,
            until: row.optional_time(8)?,
        };
        if taking.as_ref() == Some(&found) {
            return Ok(taken(pending, found.attempts));
        }
        let now_there = row.time(9)?;
        if let Some(left) = time_left(row, now_there)? {
            soonest = Some(soonest.map_or(left, |sooner: Duration| sooner.min(left)));
            continue;
        }
        let host = shared.hosts.register(connection, owner, now).await?;
        let Taking {
            outbox,
            attempts,
            until: seen,
            ..
        } = found;
        let until = now_there + LEASE_DURATION;
        let next = Taking {
            attempts: attempts.saturating_add(1),
            host: Some(host),
            until: Some(until),
            ..found
        };
        let next = taking.insert(next).attempts;
        let changed = connection
            .execute(
                TAKE,
                &[&session.as_str(), &outbox, &attempts, &host, &until, &seen],
            )
            .await?;
        if changed == 0 {
            *taking = None;
            return Err(PgError::Raced);
        }
        return Ok(taken(pending, next));
    }
    Ok(soonest.map_or(NextEffect::Empty, NextEffect::Later))
}

fn taken(pending: PendingEffect, attempts: i64) -> NextEffect {
    let attempt = u32::try_from(attempts).unwrap_or(u32::MAX);
    NextEffect::Taken(TakenEffect { pending, attempt })
}

/// Stores a prompt that waits.
pub(super) async fn queue_prompt(
    connection: &Connection,
    pending: &PendingEffect,
) -> Result<(), PgError> {
    let session = &pending.session_id;
    let effect = pending.effect.to_string();
    let sum = checksum(session, &pending.key, &pending.tool_name, &effect).finish();
    let seen = connection
        .query_optional(
            QUEUE_PROMPT,
            &[
                &session.as_str(),
                &pending.key,
                &pending.tool_name,
                &effect,
                &sum,
            ],
        )
        .await?;
    seen.ok_or_else(|| StoreError::NotFound(session.clone()))?;
    Ok(())
}

/// Returns the prompts that wait, in their order. Damaged ones are left out.
pub(super) async fn prompts(
    connection: &Connection,
    session: &SessionId,
) -> Result<Vec<QueuedPrompt>, PgError> {
    let rows = connection
        .query(SELECT, &[&session.as_str(), &None::<Timestamp>])
        .await?;
    let mut prompts = Vec::new();
    for row in rows.iter().map(Columns) {
        if let Ok(pending) = read_effect(session, row)?
            && let Some(prompt) = QueuedPrompt::decode(&pending)
        {
            prompts.push(prompt);
        }
    }
    Ok(prompts)
}

/// Counts an attempt to run a prompt. Returns true if it waits.
pub(super) async fn start_prompt(
    connection: &Connection,
    session: &SessionId,
    prompt: &PromptId,
) -> Result<bool, PgError> {
    let started = connection
        .execute(
            START_PROMPT,
            &[&session.as_str(), &prompt.as_str(), &PROMPT_TOOL],
        )
        .await?;
    Ok(started > 0)
}

/// Removes a prompt that waits. Returns true if there was one.
pub(super) async fn remove_prompt(
    connection: &Connection,
    session: &SessionId,
    prompt: &PromptId,
    removal: PromptRemoval,
) -> Result<bool, PgError> {
    let keeps_started = removal == PromptRemoval::Withdrawn;
    let removed = connection
        .query_optional(
            REMOVE_PROMPT,
            &[
                &session.as_str(),
                &prompt.as_str(),
                &PROMPT_TOOL,
                &keeps_started,
            ],
        )
        .await?;
    Ok(removed.is_some())
}

/// Returns the time after which it is worth looking again; `None` if the effect is free.
fn time_left(row: Columns<'_>, now: Timestamp) -> Result<Option<Duration>, PgError> {
    let Some(until) = row.optional_time(8)? else {
        return Ok(None);
    };
    if row.optional_integer(10)?.is_some() {
        let hold = match (row.optional_text(6)?, row.optional_text(7)?) {
            (Some(machine), Some(process)) => HostHold {
                machine: machine.to_owned(),
                process: process.to_owned(),
                until,
            },
            _ => return Ok(None),
        };
        return Ok(hold.is_held(now).then_some(TAKEN_EFFECT_RECHECK));
    }
    let left = (until - now).to_std().unwrap_or_default();
    Ok((!left.is_zero() && left <= MAX_EFFECT_DELAY).then_some(left))
}

pub(super) async fn finish(connection: &Connection, taken: &TakenEffect) -> Result<(), PgError> {
    let pending = &taken.pending;
    connection
        .execute(FINISH, &[&pending.session_id.as_str(), &pending.key])
        .await?;
    Ok(())
}

/// Frees an effect after `delay`, unless it was taken again since.
pub(super) async fn postpone(
    connection: &Connection,
    taken: &TakenEffect,
    delay: Duration,
    now: Option<Timestamp>,
) -> Result<(), PgError> {
    let TakenEffect { pending, attempt } = taken;
    let delay = i64::try_from(delay.min(MAX_EFFECT_DELAY).as_micros()).unwrap_or(i64::MAX);
    connection
        .execute(
            POSTPONE,
            &[
                &pending.session_id.as_str(),
                &pending.key,
                &i64::from(*attempt),
                &now,
                &delay,
            ],
        )
        .await?;
    Ok(())
}

/// Returns the damage in the effects of a session.
pub(super) async fn check(
    connection: &Connection,
    session: &SessionId,
) -> Result<Vec<Damage>, PgError> {
    let rows = connection
        .query(SELECT, &[&session.as_str(), &None::<Timestamp>])
        .await?;
    let mut damage = Vec::new();
    for row in rows.iter().map(Columns) {
        if let Err(reason) = read_effect(session, row)? {
            let effect = row.integer(0)?;
            let reason = format!("cannot be delivered: {reason}");
            damage.push(Damage::new(session, DamagedPart::Effect { effect }, reason));
        }
    }
    Ok(damage)
}

/// Sets a damaged effect aside.
pub(super) async fn set_aside(
    connection: &Connection,
    session: &SessionId,
    effect: i64,
    reason: &str,
) -> Result<(), PgError> {
    connection
        .execute(SET_ASIDE, &[&session.as_str(), &effect, &reason])
        .await?;
    Ok(())
}

/// Returns the checksum of an effect.
pub(super) fn checksum(session: &SessionId, key: &str, tool_name: &str, effect: &str) -> Checksum {
    let head = Checksum::default().text(session.as_str()).text(key);
    head.text(tool_name).text(effect)
}

fn read_effect(
    session: &SessionId,
    row: Columns<'_>,
) -> Result<Result<PendingEffect, RowError>, PgError> {
    let (key, tool_name, effect) = (row.text(1)?, row.text(2)?, row.text(3)?);
    let sum = checksum(session, key, tool_name, effect);
    if sum.verify_integer(Some(row.integer(4)?)) != ChecksumVerdict::Matches {
        let reason = "it differs from what was written: its checksum does not match";
        return Ok(Err(RowError::Invalid(reason.to_owned())));
    }
    Ok(match serde_json::from_str(effect) {
        Ok(effect) => Ok(PendingEffect {
            session_id: session.clone(),
            key: key.to_owned(),
            tool_name: tool_name.to_owned(),
            effect,
        }),
        Err(error) => Err(error.into()),
    })
}
