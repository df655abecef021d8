-- Times are UTC text of fixed width, so that their order is the order of time.
-- Columns that hold nested things are JSON: read them with json_extract or ->>.

-- A session, and its lane: who may commit to it. The fence rises with every new holder and is never
-- reset. In one row, so that a commit touches one page for both.
CREATE TABLE sessions (
    session_id   TEXT PRIMARY KEY,
    cwd          TEXT NOT NULL,
    roots        TEXT NOT NULL,              -- JSON array of paths
    title        TEXT,
    model        TEXT NOT NULL,
    mode         TEXT NOT NULL,
    created_at   TEXT NOT NULL,
    updated_at   TEXT NOT NULL,
    head_version INTEGER NOT NULL DEFAULT 0, -- rises by one with each loop
    tip_loop_id  TEXT,                       -- the loop that the next prompt follows
    fence        INTEGER NOT NULL DEFAULT 0,
    owner_id     TEXT,                       -- NULL when nobody holds the lane
    process      TEXT,
    expires_at   TEXT
) STRICT, WITHOUT ROWID;

CREATE INDEX sessions_by_time ON sessions (updated_at, session_id);

CREATE TABLE loops (
    loop              INTEGER PRIMARY KEY,   -- short, for the tables below; in the order of commits
    session_id        TEXT NOT NULL REFERENCES sessions ON DELETE CASCADE,
    version           INTEGER NOT NULL,      -- the head_version that its commit made
    loop_id           TEXT NOT NULL,
    hash              BLOB NOT NULL,         -- SHA-256 of the content: tells a retry from a mix-up
    agent_id          TEXT NOT NULL,
    prompt_id         TEXT,
    status            TEXT NOT NULL,
    outcome           TEXT,                  -- JSON
    detail            TEXT,                  -- JSON
    continuation_kind TEXT NOT NULL,
    parent_loop_id    TEXT,
    started_at        TEXT NOT NULL,
    ended_at          TEXT,
    rejection         TEXT,
    config            TEXT,                  -- JSON
    usage             TEXT NOT NULL,         -- JSON: the sum over its turns
    on_chain          INTEGER NOT NULL,      -- 0: the next prompt does not see it
    log               TEXT NOT NULL,         -- JSON array of its events; read it through the view `events`
    UNIQUE (session_id, loop_id)
) STRICT;

CREATE TABLE turns (
    loop           INTEGER NOT NULL REFERENCES loops ON DELETE CASCADE,
    turn           INTEGER NOT NULL,
    triggered_by   TEXT NOT NULL,
    input_messages TEXT NOT NULL,            -- JSON array of message ids
    output_message TEXT,
    tool_results   TEXT NOT NULL,            -- JSON array of message ids
    started_at     TEXT NOT NULL,
    ended_at       TEXT,
    input          INTEGER,                  -- tokens; uncached input only; NULL: the provider did not say
    output         INTEGER,                  -- reasoning included
    reasoning      INTEGER,
    cache_read     INTEGER,
    cache_write    INTEGER,
    PRIMARY KEY (loop, turn)
) STRICT, WITHOUT ROWID;

-- The ledger: one row for each turn whose provider said what it cost.
CREATE VIEW usage AS
SELECT loops.session_id, loop, turn, loops.config ->> 'provider' AS provider,
       loops.config ->> 'model' AS model, coalesce(turns.ended_at, turns.started_at) AS at,
       input, output, reasoning, cache_read, cache_write
FROM turns JOIN loops USING (loop) WHERE input IS NOT NULL;

CREATE TABLE messages (
    loop       INTEGER NOT NULL REFERENCES loops ON DELETE CASCADE,
    place      INTEGER NOT NULL,             -- from 0, in the order of the conversation
    message_id TEXT NOT NULL,
    turn       INTEGER,                      -- NULL: outside any turn
    turn_of    TEXT,                         -- the loop of that turn, if it is another one
    body       TEXT NOT NULL,                -- JSON; the role is body ->> 'role'
    PRIMARY KEY (loop, place)
) STRICT, WITHOUT ROWID;

-- A gap in seq is where the model's text streamed. A settled message is its place in `messages`.
CREATE VIEW events AS
SELECT loops.session_id, loops.loop, event.value ->> 'seq' AS seq, event.value ->> 'turn' AS turn,
       event.value ->> 'at' AS at, event.value ->> 'message' AS message,
       event.value -> 'body' AS body,
       coalesce(event.value ->> '$.body.event', 'message_end') AS event
FROM loops, json_each(loops.log) AS event;

-- Events of loops that have not been committed: evidence against a crash, not history.
CREATE TABLE journal (
    session_id TEXT NOT NULL REFERENCES sessions ON DELETE CASCADE,
    loop_id    TEXT NOT NULL,
    seq        INTEGER NOT NULL,
    at         TEXT NOT NULL,
    body       TEXT NOT NULL,                -- JSON: the whole event; its kind is body ->> 'event'
    PRIMARY KEY (session_id, loop_id, seq)
) STRICT, WITHOUT ROWID;
