-- From version 6: a session keeps how its model acts, by tool calls or by code, and the effects that tools requested.
ALTER TABLE sessions ADD COLUMN protocol TEXT;

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
