-- Times are UTC text of fixed width, so that their order is the order of time.
-- Columns that hold nested things are JSON: read them with json_extract or ->>.

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
    tip_loop_id  TEXT                        -- the loop that the next prompt follows
) STRICT, WITHOUT ROWID;

CREATE INDEX sessions_by_time ON sessions (updated_at, session_id);
CREATE INDEX sessions_by_folder ON sessions (cwd, updated_at, session_id);

-- Who may commit to a session. The fence rises with every new holder and is never reset.
CREATE TABLE lanes (
    session_id TEXT PRIMARY KEY REFERENCES sessions ON DELETE CASCADE,
    fence      INTEGER NOT NULL,
    owner_id   TEXT,                         -- NULL when nobody holds it
    process    TEXT,
    expires_at TEXT
) STRICT, WITHOUT ROWID;

CREATE TABLE loops (
    loop              INTEGER PRIMARY KEY,   -- short, for the tables below
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
    UNIQUE (session_id, version),
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
    PRIMARY KEY (loop, turn)
) STRICT, WITHOUT ROWID;

-- The ledger: one row for each turn whose provider said what it cost.
CREATE TABLE usage (
    loop        INTEGER NOT NULL REFERENCES loops ON DELETE CASCADE,
    turn        INTEGER NOT NULL,
    provider    TEXT,
    model       TEXT,
    at          TEXT NOT NULL,
    input       INTEGER NOT NULL,            -- tokens; uncached input only
    output      INTEGER NOT NULL,            -- reasoning included
    reasoning   INTEGER NOT NULL,
    cache_read  INTEGER NOT NULL,
    cache_write INTEGER NOT NULL,
    PRIMARY KEY (loop, turn)
) STRICT, WITHOUT ROWID;

CREATE TABLE messages (
    loop       INTEGER NOT NULL REFERENCES loops ON DELETE CASCADE,
    place      INTEGER NOT NULL,             -- from 0, in the order of the conversation
    message_id TEXT NOT NULL,
    turn       INTEGER,                      -- NULL: outside any turn
    turn_of    TEXT,                         -- the loop of that turn, if it is another one
    body       TEXT NOT NULL,                -- JSON
    role       TEXT GENERATED ALWAYS AS (body ->> 'role') VIRTUAL,
    PRIMARY KEY (loop, place)
) STRICT, WITHOUT ROWID;

CREATE TABLE events (
    loop    INTEGER NOT NULL REFERENCES loops ON DELETE CASCADE,
    seq     INTEGER NOT NULL,                -- a gap is where the model's text streamed
    turn    INTEGER,
    at      TEXT NOT NULL,
    message INTEGER,                         -- a settled message: its place in messages
    body    TEXT,                            -- JSON; NULL for a settled message
    event   TEXT GENERATED ALWAYS AS (coalesce(body ->> 'event', 'message_end')) VIRTUAL,
    PRIMARY KEY (loop, seq)
) STRICT, WITHOUT ROWID;

-- Events of loops that have not been committed: evidence against a crash, not history.
CREATE TABLE journal (
    session_id TEXT NOT NULL REFERENCES sessions ON DELETE CASCADE,
    loop_id    TEXT NOT NULL,
    seq        INTEGER NOT NULL,
    at         TEXT NOT NULL,
    body       TEXT NOT NULL,                -- JSON: the whole event
    event      TEXT GENERATED ALWAYS AS (body ->> 'event') VIRTUAL,
    PRIMARY KEY (session_id, loop_id, seq)
) STRICT, WITHOUT ROWID;
