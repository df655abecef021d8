//! Repairs damaged sessions. Nothing is deleted: unreadable loops stay in their rows, marked as set aside, and
//! overwritten values are kept in the table `repairs`.

use super::{
    check,
    connection::{Connection, Parameters},
    effects, journal,
    lanes::{self, PgLaneRow},
    loop_rows::{LoopRows, Selection},
    notes,
    pg_error::PgError,
    rows::{Columns, to_integer},
};
use crate::{
    Damage, DamagedPart, RepairReport,
    encoding::{checksum::ChecksumVerdict, row_error::RowError, survey::SurveyedLoop},
    list_cursor::format_time,
};
use turnery_engine::{LoopId, SessionId, Timestamp};

const KEEP: &str = "INSERT INTO repairs (session_id, at, place, field, before) \
     VALUES ($1, clock_timestamp(), $2, $3, $4)";

const KEEP_LOOP: &str = "INSERT INTO repairs (session_id, at, place, field, before) \
     SELECT l.session_id, clock_timestamp(), l.loop_id, v.field, v.before FROM loops l, \
     LATERAL (VALUES ('parent_loop_id', l.parent_loop_id), ('continuation_kind', l.continuation_kind), \
         ('on_chain', l.on_chain::text), ('checksum', l.checksum::text), ('log_checksum', l.log_checksum::text), \
         ('log', CASE WHEN $3 THEN l.log END)) AS v (field, before) \
     WHERE l.session_id = $1 AND l.loop = $2 AND v.before IS NOT NULL";

const SET_ASIDE: &str = "UPDATE loops SET set_aside = $3 WHERE session_id = $1 AND loop = $2";

const CORRECT: &str = "UPDATE loops SET parent_loop_id = $3, continuation_kind = $4, on_chain = $5, \
     log = CASE WHEN $6 THEN '[]' ELSE log END WHERE session_id = $1 AND loop = $2";

const SEAL: &str =
    "UPDATE loops SET checksum = $3, log_checksum = $4 WHERE session_id = $1 AND loop = $2";

const SET_TIP: &str = "UPDATE sessions SET tip_loop_id = $2 WHERE session_id = $1";

const SET_COUNTS: &str = "UPDATE sessions SET head_version = greatest(head_version, $2), \
     loop_count = greatest(loop_count, $3) WHERE session_id = $1";

const RAISE_HEAD: &str = "UPDATE sessions SET head_version = head_version + 1 WHERE session_id = $1 \
     RETURNING head_version";

const RESET_COLUMNS: &str = "UPDATE sessions SET roots = coalesce($2, roots), always = coalesce($3, always), \
     created_at = coalesce($4, created_at), updated_at = coalesce($5, updated_at), \
     spawned_by = CASE WHEN $6 THEN NULL ELSE spawned_by END WHERE session_id = $1";

const MOVE_TEXTS: &str = "WITH gone AS ( \
         DELETE FROM texts t USING ( \
             SELECT name FROM texts WHERE session_id = $1 GROUP BY name \
             HAVING encode(sha256(convert_to(string_agg(body, '' ORDER BY piece), 'UTF8')), 'hex') <> name) d \
         WHERE t.session_id = $1 AND t.name = d.name RETURNING t.session_id, t.name, t.piece, t.body) \
     INSERT INTO repairs (session_id, at, place, field, before) \
     SELECT session_id, clock_timestamp(), 'texts', name || ' ' || piece, body FROM gone";

pub(super) async fn repair(
    connection: &Connection,
    id: &SessionId,
    now: Option<Timestamp>,
) -> Result<RepairReport, PgError> {
    let damage = check::check_session(connection, id).await?;
    if damage.is_empty() {
        return Ok(RepairReport::default());
    }
    let lane = lanes::lock(connection, id, now).await?;
    if let Some(busy) = lane.active_refusal() {
        connection.commit().await?;
        return Err(busy.into());
    }
    let mut work = PgSessionRepair {
        connection,
        id,
        changes: Vec::new(),
    };
    work.repair_columns(&lane, &damage).await?;
    work.repair_loops(&lane).await?;
    let mut changes = notes::repair(connection, id).await?;
    work.changes.append(&mut changes);
    work.repair_effects(&damage).await?;
    work.repair_journal().await?;
    let moved = connection.execute(MOVE_TEXTS, &[&id.as_str()]).await?;
    if moved > 0 {
        work.changes
            .push("long texts that differ from what was written are set aside".to_owned());
    }
    if !work.changes.is_empty() {
        work.raise_head().await?;
    }
    let changes = work.changes;
    connection.commit().await?;
    Ok(RepairReport {
        backup: None,
        changes,
        left: check::check_session(connection, id).await?,
    })
}

struct PgSessionRepair<'a> {
    connection: &'a Connection,
    id: &'a SessionId,
    changes: Vec<String>,
}

impl PgSessionRepair<'_> {
    async fn execute(&self, sql: &'static str, parameters: Parameters<'_>) -> Result<u64, PgError> {
        self.connection.execute(sql, parameters).await
    }

    /// Stores a value in `repairs` before it is overwritten.
    async fn keep(&self, place: &str, field: &str, before: Option<&str>) -> Result<(), PgError> {
        let id = self.id.as_str();
        self.execute(KEEP, &[&id, &place, &field, &before]).await?;
        Ok(())
    }

    /// Overwrites unreadable columns of the session with the values that readers substitute.
    async fn repair_columns(&mut self, lane: &PgLaneRow, damage: &[Damage]) -> Result<(), PgError> {
        let is_bad = |column: &str| {
            let bad = format!("has {column} that cannot be read");
            let of_session = |it: &&Damage| it.part == DamagedPart::Session;
            damage
                .iter()
                .filter(of_session)
                .any(|it| it.reason.starts_with(&bad))
        };
        let columns = ["roots", "always", "created_at", "updated_at", "spawned_by"];
        let [roots, always, created_at, updated_at, spawned_by] = columns.map(is_bad);
        let info = &lane.info;
        let bad = columns.into_iter().filter(|column| is_bad(column));
        let bad: Vec<&str> = bad.collect();
        if bad.is_empty() {
            return Ok(());
        }
        let before = sessions_row_json(self.connection, self.id).await?;
        self.keep("session", &bad.join(" "), before.as_deref())
            .await?;
        let id = self.id.as_str();
        self.execute(
            RESET_COLUMNS,
            &[
                &id,
                &roots.then_some("[]"),
                &always.then_some("[]"),
                &created_at.then(|| format_time(info.created_at)),
                &updated_at.then(|| format_time(info.updated_at)),
                &spawned_by,
            ],
        )
        .await?;
        for column in bad {
            let change = format!("{column} of the session is emptied: it could not be read");
            self.changes.push(change);
        }
        Ok(())
    }

    async fn repair_loops(&mut self, lane: &PgLaneRow) -> Result<(), PgError> {
        let survey = check::read_survey(self.connection, self.id).await?;
        let counts = check::read_counts(self.connection, lane, &survey).await?;
        // References before a loop that only a newer version can read are left for that version to repair.
        let has_newer = survey.rows.iter().any(|row| row.is_from_newer_version);
        let mut corrected = Vec::new();
        for row in &survey.rows {
            let is_left = has_newer && row.is_relinked && row.record.is_some();
            if row.is_set_aside || is_left {
                continue;
            }
            if row.record.is_some() {
                if row.verdict == ChecksumVerdict::Differs || row.is_relinked {
                    self.correct(row).await?;
                    corrected.push(row.key);
                }
            } else if !row.is_from_newer_version {
                let reason = survey.damage.iter().find_map(|damage| match &damage.part {
                    DamagedPart::Loop { loop_id } if *loop_id == row.loop_id => {
                        Some(damage.reason.as_str())
                    }
                    _ => None,
                });
                let reason = reason.unwrap_or("cannot be read");
                let id = self.id.as_str();
                self.execute(SET_ASIDE, &[&id, &row.key, &reason]).await?;
                let change = format!("loop {} is set aside; it {reason}", row.loop_id);
                self.changes.push(change);
            }
        }
        self.seal(&corrected).await?;
        if has_newer {
            self.changes.push(
                "the order of the loops is left as it is where a newer turnery has written some of them; repair the \
                 session with that version"
                    .to_owned(),
            );
        } else {
            let tip = survey
                .readable_tip()
                .and_then(|place| survey.rows.get(place));
            self.repair_tip(lane, tip.map(|row| &row.loop_id)).await?;
        }
        if counts.is_head_wrong() || counts.is_count_wrong() {
            let (head, loops) = (
                to_integer(counts.newest_version),
                to_integer(counts.stored_loops),
            );
            let id = self.id.as_str();
            self.execute(SET_COUNTS, &[&id, &head, &loops]).await?;
            let change = "the session's version and count of loops are put right".to_owned();
            self.changes.push(change);
        }
        for version in &counts.lost_versions {
            let version = version.to_string();
            self.keep("version", "version", Some(&version)).await?;
        }
        if !counts.lost_versions.is_empty() {
            self.changes.push(format!(
                "{} lost versions are noted: no loop is stored for them",
                counts.lost_versions.len()
            ));
        }
        Ok(())
    }

    /// Writes the corrected columns of a readable loop; [`seal`](Self::seal) updates its checksums.
    async fn correct(&mut self, row: &SurveyedLoop) -> Result<(), PgError> {
        let Some(record) = &row.record else {
            return Ok(());
        };
        let id = self.id.as_str();
        self.execute(KEEP_LOOP, &[&id, &row.key, &row.is_log_broken])
            .await?;
        let kind = serde_json::to_value(record.continuation_kind).map_err(RowError::from)?;
        let kind = kind
            .as_str()
            .map_or_else(|| kind.to_string(), str::to_owned);
        let parent = record.parent_loop_id.as_ref().map(LoopId::as_str);
        self.execute(
            CORRECT,
            &[
                &id,
                &row.key,
                &parent,
                &kind,
                &record.on_chain,
                &row.is_log_broken,
            ],
        )
        .await?;
        let loop_id = &row.loop_id;
        self.changes
            .push(match (row.is_relinked, &record.parent_loop_id) {
                (true, Some(parent)) => format!("loop {loop_id} follows loop {parent} now"),
                (true, None) => format!("loop {loop_id} begins the conversation now"),
                (false, _) => {
                    format!("loop {loop_id} is kept as it reads; its checksum did not match")
                }
            });
        if row.is_log_broken {
            self.changes.push(format!(
                "loop {loop_id} is kept without its events, which cannot be read"
            ));
        }
        Ok(())
    }

    /// Updates the checksums of loops.
    async fn seal(&self, keys: &[i64]) -> Result<(), PgError> {
        if keys.is_empty() {
            return Ok(());
        }
        let rows = LoopRows::read(self.connection, self.id, Selection::Keys(keys)).await?;
        for row in rows.iter() {
            let (key, (head, log)) = (row.key()?, row.actual_checksums()?);
            let id = self.id.as_str();
            self.execute(SEAL, &[&id, &key, &head, &log]).await?;
        }
        Ok(())
    }

    /// Corrects the reference to the loop that the next prompt follows.
    async fn repair_tip(&mut self, lane: &PgLaneRow, tip: Option<&LoopId>) -> Result<(), PgError> {
        if lane.info.tip_loop_id.as_ref() == tip {
            return Ok(());
        }
        let before = lane.info.tip_loop_id.as_ref().map(LoopId::as_str);
        self.keep("session", "tip_loop_id", before).await?;
        let id = self.id.as_str();
        self.execute(SET_TIP, &[&id, &tip.map(LoopId::as_str)])
            .await?;
        self.changes.push(match tip {
            Some(tip) => format!("the next prompt follows loop {tip} now"),
            None => "the next prompt begins the conversation anew".to_owned(),
        });
        Ok(())
    }

    /// Sets damaged effects aside, even readable ones: what is delivered must be what was requested.
    async fn repair_effects(&mut self, damage: &[Damage]) -> Result<(), PgError> {
        for damage in damage {
            if let DamagedPart::Effect { effect } = damage.part {
                effects::set_aside(self.connection, self.id, effect, &damage.reason).await?;
                let reason = &damage.reason;
                let change = format!("effect {effect} is set aside; it {reason}");
                self.changes.push(change);
            }
        }
        Ok(())
    }

    /// Moves unreadable rows of the journal to `repairs`.
    async fn repair_journal(&mut self) -> Result<(), PgError> {
        let moved = journal::move_damaged(self.connection, self.id).await?;
        if moved > 0 {
            self.changes.push(format!(
                "rows of the journal that cannot be read and are set aside: {moved}"
            ));
        }
        Ok(())
    }

    /// Adds a version without a loop, so that clients with the session open reload it at the next claim.
    async fn raise_head(&self) -> Result<(), PgError> {
        let id = self.id.as_str();
        let raised = self.connection.query_optional(RAISE_HEAD, &[&id]).await?;
        let Some(row) = raised else {
            return Ok(());
        };
        let version = Columns(&row).integer(0)?;
        let version = version.to_string();
        self.keep("version", "version", Some(&version)).await
    }
}

const SELECT_JSON: &str = "SELECT row_to_json(s)::text FROM sessions s WHERE session_id = $1";

/// Returns the row of a session as JSON.
async fn sessions_row_json(
    connection: &Connection,
    id: &SessionId,
) -> Result<Option<String>, PgError> {
    let row = connection
        .query_optional(SELECT_JSON, &[&id.as_str()])
        .await?;
    let json = row.map(|row| Columns(&row).text(0).map(str::to_owned));
    json.transpose()
}
