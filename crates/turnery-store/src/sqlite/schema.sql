-- Times are UTC text of fixed width, so that their order is the order of time.
-- Columns that hold nested things are JSON: read them with json_extract or ->>.

-- A session, and its lane: who may commit to it. The fence rises with every new holder and is never
-- reset. In one row, so that a commit touches one page for both.
CREATE TABLE sessions (
    session_id   TEXT PRIMARY KEY,
    updated_at   TEXT NOT NULL,
    spawned_by   TEXT,                       -- JSON: the call that made it; NULL: a person did
    cwd          TEXT NOT NULL,
    folder       TEXT NOT NULL,              -- the same with its links resolved
    roots        TEXT NOT NULL,              -- JSON array of paths
    title        TEXT,
    model        TEXT NOT NULL,
    mode         TEXT NOT NULL,
    thinking     TEXT,                       -- NULL: as configured
    protocol     TEXT,                       -- NULL: as configured
    always       TEXT NOT NULL DEFAULT '[]', -- JSON array: what the person has answered for good
    archived     INTEGER NOT NULL DEFAULT 0, -- 1: put away, and listed only when asked for
    created_at   TEXT NOT NULL,
    head_version INTEGER NOT NULL DEFAULT 0, -- rises by one with each commit
    loop_count   INTEGER NOT NULL DEFAULT 0,
    tip_loop_id  TEXT,                       -- the loop that the next prompt follows
    fence        INTEGER NOT NULL DEFAULT 0,
    owner_id     TEXT,                       -- NULL when nobody holds the lane
    process      TEXT,
    expires_at   TEXT,
    lost_number  INTEGER NOT NULL DEFAULT 0, -- greatest number of a loop that was shown and not stored
    -- The first events of the loop that the lane was claimed for, until a commit: part of the journal. Here, so that
    -- a claim writes one page for both.
    begun_loop_id  TEXT,
    begun_fence    INTEGER,                  -- of that claim; less than fence if an earlier version has claimed since
    begun_checksum INTEGER,                  -- of these columns
    begun_events   TEXT                      -- JSON array, as in journal.body
) STRICT, WITHOUT ROWID;

-- The list in its order, with all that it is filtered by: a page is found without reading the table.
-- A second index by folder would find some pages faster, and each commit would have to write it.
CREATE INDEX sessions_listed ON sessions (updated_at, session_id, folder, archived, spawned_by);

-- Commands that a person typed, and what answered them: shown by their time, seen by no model.
CREATE TABLE remarks (
    remark     INTEGER PRIMARY KEY,          -- in the order in which they were kept
    session_id TEXT NOT NULL REFERENCES sessions ON DELETE CASCADE,
    body       TEXT NOT NULL,                -- JSON: at, message
    checksum   INTEGER,                      -- of this row; NULL in rows from before version 4
    set_aside  TEXT                          -- why a repair took the row out of the transcript
) STRICT;

CREATE INDEX remarks_of ON remarks (session_id);

-- A loop is one row, so that a commit touches few pages. What is long comes last: whoever looks for a
-- loop does not read it. Read it through the views below.
CREATE TABLE loops (
    loop              INTEGER PRIMARY KEY,   -- in the order of commits
    session_id        TEXT NOT NULL REFERENCES sessions ON DELETE CASCADE,
    version           INTEGER NOT NULL,      -- the head_version that its commit made
    loop_id           TEXT NOT NULL,
    parent_loop_id    TEXT,
    continuation_kind TEXT NOT NULL,
    status            TEXT NOT NULL,
    on_chain          INTEGER NOT NULL,      -- 0: the next prompt does not see it
    started_at        TEXT NOT NULL,
    ended_at          TEXT,
    record            TEXT NOT NULL,         -- JSON: all of the record that is in no other column
    messages          TEXT NOT NULL,         -- JSON array
    log               TEXT NOT NULL,         -- JSON array of its events
    checksum          INTEGER,               -- of this row; NULL in rows from before version 4
    set_aside         TEXT,                  -- why a repair took the loop out of the conversation
    UNIQUE (session_id, loop_id)
) STRICT;

-- What repairs changed, and what was there before.
CREATE TABLE repairs (
    repair     INTEGER PRIMARY KEY,          -- in order
    session_id TEXT NOT NULL REFERENCES sessions ON DELETE CASCADE,
    at         TEXT NOT NULL,
    place      TEXT NOT NULL,                -- a loop id, 'session', 'journal' or 'version'
    field      TEXT NOT NULL,                -- the column that was changed
    before     ANY                           -- what was in it
) STRICT;

CREATE INDEX repairs_of ON repairs (session_id);

-- Texts of rows that would be larger than 64 KiB, from 8 KiB on, and pictures and recordings of any size, each once
-- for its session. In the JSON of such a row there is a reference: a string '/text ' with the text's name.
CREATE TABLE texts (
    text       INTEGER PRIMARY KEY,
    session_id TEXT NOT NULL REFERENCES sessions ON DELETE CASCADE,
    name       TEXT NOT NULL,                -- SHA-256 of all its pieces
    piece      INTEGER NOT NULL,             -- from 0
    body       TEXT NOT NULL,                -- JSON of a string, without its quotes
    UNIQUE (session_id, name, piece)
) STRICT;

CREATE VIEW long_texts AS
SELECT session_id, name, '/text ' || name AS reference,
       json_extract('["' || group_concat(body, '') || '"]', '$[0]') AS text
FROM (SELECT * FROM texts ORDER BY session_id, name, piece) GROUP BY session_id, name;

CREATE VIEW turns AS
SELECT loops.session_id, loops.loop, turn.value ->> '$.turn_id.turn_index' AS turn,
       turn.value ->> 'triggered_by' AS triggered_by,
       turn.value -> 'input_messages' AS input_messages,
       turn.value ->> 'output_message' AS output_message,
       turn.value -> 'tool_results' AS tool_results,
       -- Padded to fixed width.
       substr(rtrim(turn.value ->> 'started_at', 'Z') ||
              iif(instr(turn.value ->> 'started_at', '.'), '', '.') || '000000000', 1, 29) || 'Z' AS started_at,
       substr(rtrim(turn.value ->> 'ended_at', 'Z') ||
              iif(instr(turn.value ->> 'ended_at', '.'), '', '.') || '000000000', 1, 29) || 'Z' AS ended_at,
       -- In tokens; `input` is uncached input only, `output` has the reasoning in it. NULL: the
       -- provider did not say.
       turn.value ->> '$.usage.input' AS input,
       turn.value ->> '$.usage.output' AS output,
       turn.value ->> '$.usage.reasoning' AS reasoning,
       turn.value ->> '$.usage.cache_read' AS cache_read,
       turn.value ->> '$.usage.cache_write' AS cache_write
FROM loops, json_each(loops.record, '$.turns') AS turn;

-- The ledger: one row for each turn whose provider said what it cost, and one for each of a loop's
-- summaries and judgements. Child sessions have rows of their own.
CREATE VIEW usage AS
SELECT turns.session_id, loop, 'turn' AS source, turn, loops.record ->> '$.config.provider' AS provider,
       loops.record ->> '$.config.model' AS model, coalesce(turns.ended_at, turns.started_at) AS at,
       input, output, reasoning, cache_read, cache_write
FROM turns JOIN loops USING (loop) WHERE input IS NOT NULL
UNION ALL
SELECT session_id, loop, source, NULL,
       iif(source = 'compaction', record ->> '$.config.provider', substr(judge, 1, instr(judge, '/') - 1)),
       iif(source = 'compaction', record ->> '$.config.model', substr(judge, instr(judge, '/') + 1)),
       coalesce(ended_at, started_at), spent ->> 'input', spent ->> 'output', spent ->> 'reasoning',
       spent ->> 'cache_read', spent ->> 'cache_write'
FROM (SELECT *, 'compaction' AS source, record -> 'compaction_usage' AS spent, NULL AS judge FROM loops
      UNION ALL
      -- Each branch of a group says what the judge cost; zero without a judge.
      SELECT *, 'evaluation', record -> '$.parallel_group.evaluation_usage',
             record ->> '$.parallel_group.judge' FROM loops
      WHERE record ->> '$.parallel_group.is_selected')
WHERE spent ->> 'input' + (spent ->> 'output') + (spent ->> 'cache_read') + (spent ->> 'cache_write') > 0;

CREATE VIEW messages AS
SELECT loops.session_id, loops.loop,
       message.key AS place,                                -- from 0, in the order of the conversation
       message.value ->> 'message_id' AS message_id,
       message.value ->> '$.turn_id.turn_index' AS turn,    -- NULL: outside any turn
       nullif(message.value ->> '$.turn_id.loop_id', loops.loop_id) AS turn_of, -- if another loop's
       message.value -> 'message' AS body                   -- JSON; the role is body ->> 'role'
FROM loops, json_each(loops.messages) AS message;

-- A gap in seq is where the model's text streamed. A settled message is its place in `messages`. A
-- time is stored as nanoseconds since the loop began; what the record says, `start` and `end` leave out.
CREATE VIEW events AS
SELECT session_id, loop, seq, turn,
       strftime('%Y-%m-%dT%H:%M:%S', unixepoch(substr(started_at, 1, 19)) + (nanos - within) / 1000000000,
                'unixepoch') || printf('.%09dZ', within) AS at,
       message, body, coalesce(body ->> 'event', 'message_end') AS event
FROM (SELECT *, (nanos % 1000000000 + 1000000000) % 1000000000 AS within
      FROM (SELECT loops.session_id, loops.loop, loops.started_at,
                   entry.value ->> 'seq' AS seq, entry.value ->> 'turn' AS turn,
                   CAST(substr(loops.started_at, 21, 9) AS INTEGER) + (entry.value ->> 'at') AS nanos,
                   entry.value ->> 'message' AS message,
                   CASE WHEN entry.value -> 'start' IS NOT NULL
                        THEN json_set(entry.value -> 'start', '$.config', loops.record -> 'config')
                        WHEN entry.value -> 'end' IS NOT NULL
                        THEN json_set(entry.value -> 'end', '$.outcome', loops.record -> 'outcome')
                        ELSE entry.value -> 'body' END AS body
            FROM loops, json_each(loops.log) AS entry));

-- Events of loops that have not been committed: evidence against a crash, not history.
CREATE TABLE journal (
    session_id TEXT NOT NULL REFERENCES sessions ON DELETE CASCADE,
    loop_id    TEXT NOT NULL,
    seq        INTEGER NOT NULL,
    at         TEXT NOT NULL,
    body       TEXT NOT NULL,                -- JSON array: the events written together, from seq on
    checksum   INTEGER,                      -- of this row; NULL in rows from before version 4
    PRIMARY KEY (session_id, loop_id, seq)
) STRICT, WITHOUT ROWID;

-- Effects that tools requested from the host, until it has received them.
CREATE TABLE outbox (
    outbox     INTEGER PRIMARY KEY,          -- in the order in which they were requested
    session_id TEXT NOT NULL REFERENCES sessions ON DELETE CASCADE,
    key        TEXT NOT NULL,                -- that no other effect ever has
    tool_name  TEXT NOT NULL,
    effect     TEXT NOT NULL,                -- JSON
    checksum   INTEGER,                      -- of the columns before it
    attempts   INTEGER NOT NULL DEFAULT 0,   -- how often the effect was taken
    taken_by   TEXT,                         -- as sessions.process; NULL: nobody delivers it now
    held_until TEXT,                         -- end of that, or of the delay after a failure
    set_aside  TEXT,                         -- why a repair took the effect out
    UNIQUE (session_id, key)
) STRICT;
