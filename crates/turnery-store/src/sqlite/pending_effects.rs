//! Stores effects of tools until the host has received them.

use super::{
    checksum::{Checksum, ChecksumVerdict},
    columns::{optional_text_column, text, time},
    job_error::{JobError, reason_if_damaged},
    sessions,
    transaction::write,
};
use crate::{
    Damage, DamagedPart, NextEffect, Owner, PendingEffect, PromptRemoval, QueuedPrompt,
    TakenEffect, clock::ClockReading, effect_hold::EffectHold, list_cursor::format_time,
    queued_prompt::PROMPT_TOOL,
};
use rusqlite::{Connection, Row, params};
use std::time::Duration;
use turnery_engine::{PromptId, SessionId};

const SELECT_EFFECTS: &str = "SELECT outbox, key, tool_name, effect, checksum, attempts, taken_by, held_until \
     FROM outbox WHERE session_id = ?1 AND set_aside IS NULL ORDER BY outbox";

/// Stores the effects of a commit, in its transaction.
pub(super) fn add(db: &Connection, effects: &[PendingEffect]) -> Result<(), JobError> {
    if effects.is_empty() {
        return Ok(());
    }
    // A key that is stored already is that of the same effect.
    let mut insert = db.prepare_cached(
        "INSERT OR IGNORE INTO outbox (session_id, key, tool_name, effect, checksum) \
         VALUES (?1, ?2, ?3, ?4, ?5)",
    )?;
    for pending in effects {
        let (session, effect) = (pending.session_id.as_str(), pending.effect.to_string());
        let sum = Checksum::default().text(session).text(&pending.key);
        let sum = sum.text(&pending.tool_name).text(&effect).finish();
        insert.execute((session, &pending.key, &pending.tool_name, effect, sum))?;
    }
    Ok(())
}

/// Takes the first free effect for a process of `owner`, and counts the attempt.
pub(super) fn take(
    db: &Connection,
    session: &SessionId,
    owner: &Owner,
    now: ClockReading,
) -> Result<NextEffect, JobError> {
    // Most sessions have no effects, and need no write transaction.
    if !db
        .prepare_cached(SELECT_EFFECTS)?
        .exists((session.as_str(),))?
    {
        return Ok(NextEffect::Empty);
    }
    write(db, |db| {
        let mut soonest = None;
        let mut select = db.prepare_cached(SELECT_EFFECTS)?;
        let mut rows = select.query((session.as_str(),))?;
        while let Some(row) = rows.next()? {
            let pending = match reason_if_damaged(read_effect(session, row))? {
                Ok(pending) => pending,
                Err(reason) => {
                    tracing::warn!(%session, reason, "an effect is not delivered");
                    continue;
                }
            };
            if pending.tool_name == PROMPT_TOOL {
                continue;
            }
            if let Some(left) = read_hold(row).time_left(now) {
                soonest = Some(soonest.map_or(left, |sooner: Duration| sooner.min(left)));
                continue;
            }
            let attempt = row.get::<_, u32>(5).unwrap_or_default().saturating_add(1);
            let hold = EffectHold::take(owner, now);
            let mut update = db.prepare_cached(
                "UPDATE outbox SET attempts = ?2, taken_by = ?3, held_until = ?4 WHERE outbox = ?1",
            )?;
            let until = hold.until.map(format_time);
            update.execute(params![row.get::<_, i64>(0)?, attempt, hold.process, until])?;
            return Ok(NextEffect::Taken(TakenEffect { pending, attempt }));
        }
        Ok(soonest.map_or(NextEffect::Empty, NextEffect::Later))
    })
}

/// Stores a prompt that waits.
pub(super) fn queue_prompt(
    db: &Connection,
    session: &SessionId,
    prompt: QueuedPrompt,
) -> Result<(), JobError> {
    let pending = prompt.encode(session)?;
    write(db, |db| {
        sessions::get(db, session)?;
        add(db, &[pending])
    })
}

/// Returns the prompts that wait, in their order. Damaged ones are left out.
pub(super) fn prompts(db: &Connection, session: &SessionId) -> Result<Vec<QueuedPrompt>, JobError> {
    let mut select = db.prepare_cached(SELECT_EFFECTS)?;
    let mut rows = select.query((session.as_str(),))?;
    let mut prompts = Vec::new();
    while let Some(row) = rows.next()? {
        if let Ok(pending) = reason_if_damaged(read_effect(session, row))?
            && let Some(prompt) = QueuedPrompt::decode(&pending)
        {
            prompts.push(prompt);
        }
    }
    Ok(prompts)
}

/// Counts an attempt to run a prompt. Returns true if it waits.
pub(super) fn start_prompt(
    db: &Connection,
    session: &SessionId,
    prompt: &PromptId,
) -> Result<bool, JobError> {
    let mut update = db.prepare_cached(
        "UPDATE outbox SET attempts = attempts + 1 WHERE session_id = ?1 AND key = ?2 AND tool_name = ?3",
    )?;
    Ok(update.execute((session.as_str(), prompt.as_str(), PROMPT_TOOL))? > 0)
}

/// Removes a prompt that waits. Returns true if there was one.
pub(super) fn remove_prompt(
    db: &Connection,
    session: &SessionId,
    prompt: &PromptId,
    removal: PromptRemoval,
) -> Result<bool, JobError> {
    let mut delete = db.prepare_cached(
        "DELETE FROM outbox WHERE session_id = ?1 AND key = ?2 AND tool_name = ?3 AND (attempts = 0 OR NOT ?4)",
    )?;
    let keeps_started = removal == PromptRemoval::Withdrawn;
    let removed = delete.execute((
        session.as_str(),
        prompt.as_str(),
        PROMPT_TOOL,
        keeps_started,
    ))?;
    Ok(removed > 0)
}

/// Removes an effect.
pub(super) fn finish(db: &Connection, taken: &TakenEffect) -> Result<(), JobError> {
    let mut delete = db.prepare_cached("DELETE FROM outbox WHERE session_id = ?1 AND key = ?2")?;
    delete.execute((taken.pending.session_id.as_str(), &taken.pending.key))?;
    Ok(())
}

/// Frees an effect after `delay`, unless it was taken again since.
pub(super) fn postpone(
    db: &Connection,
    taken: &TakenEffect,
    delay: Duration,
    now: ClockReading,
) -> Result<(), JobError> {
    let mut update = db.prepare_cached(
        "UPDATE outbox SET taken_by = NULL, held_until = ?4 \
         WHERE session_id = ?1 AND key = ?2 AND attempts = ?3",
    )?;
    let TakenEffect { pending, attempt } = taken;
    let until = EffectHold::postpone(delay, now).until.map(format_time);
    update.execute(params![
        pending.session_id.as_str(),
        pending.key,
        attempt,
        until
    ])?;
    Ok(())
}

/// Returns the damage in the effects of a session.
pub(super) fn check(db: &Connection, session: &SessionId) -> Result<Vec<Damage>, JobError> {
    let damaged = damaged_effects(db, session)?.into_iter();
    Ok(damaged
        .map(|(effect, reason)| Damage::new(session, DamagedPart::Effect { effect }, reason))
        .collect())
}

/// Sets damaged effects aside, even readable ones: what is delivered must be what was requested. Returns the changes.
pub(super) fn repair(db: &Connection, session: &SessionId) -> Result<Vec<String>, JobError> {
    let mut changes = Vec::new();
    for (effect, reason) in damaged_effects(db, session)? {
        db.execute(
            "UPDATE outbox SET set_aside = ?2 WHERE outbox = ?1",
            (effect, &reason),
        )?;
        changes.push(format!("effect {effect} is set aside; it {reason}"));
    }
    Ok(changes)
}

/// Returns the keys of damaged rows, with the damage of each.
fn damaged_effects(db: &Connection, session: &SessionId) -> Result<Vec<(i64, String)>, JobError> {
    let mut select = db.prepare_cached(SELECT_EFFECTS)?;
    let mut rows = select.query((session.as_str(),))?;
    let mut damaged = Vec::new();
    while let Some(row) = rows.next()? {
        if let Err(reason) = reason_if_damaged(read_effect(session, row))? {
            damaged.push((row.get(0)?, format!("cannot be delivered: {reason}")));
        }
    }
    Ok(damaged)
}

fn read_effect(session: &SessionId, row: &Row<'_>) -> Result<PendingEffect, JobError> {
    let sum = Checksum::default().text(session.as_str());
    if sum.columns(row, 1..=3)?.verify(row.get_ref(4)?) == ChecksumVerdict::Differs {
        let reason = "it differs from what was written: its checksum does not match";
        return Err(JobError::InvalidRow(reason.to_owned()));
    }
    Ok(PendingEffect {
        session_id: session.clone(),
        key: text(row, 1)?.to_owned(),
        tool_name: text(row, 2)?.to_owned(),
        effect: serde_json::from_str(text(row, 3)?)?,
    })
}

/// Reads who has an effect. Unreadable columns make it free.
fn read_hold(row: &Row<'_>) -> EffectHold {
    let read = |column| optional_text_column(row, column).ok().flatten();
    EffectHold {
        process: read(6).map(str::to_owned),
        until: read(7).and_then(|until| time(until).ok()),
    }
}
