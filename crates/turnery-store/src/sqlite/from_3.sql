-- From version 3: rows have checksums, what a repair sets aside is kept, and the list has an index.
ALTER TABLE loops ADD COLUMN checksum INTEGER;
ALTER TABLE loops ADD COLUMN set_aside TEXT;
ALTER TABLE remarks ADD COLUMN checksum INTEGER;
ALTER TABLE remarks ADD COLUMN set_aside TEXT;
ALTER TABLE journal ADD COLUMN checksum INTEGER;

CREATE TABLE repairs (
    repair     INTEGER PRIMARY KEY,
    session_id TEXT NOT NULL REFERENCES sessions ON DELETE CASCADE,
    at         TEXT NOT NULL,
    place      TEXT NOT NULL,
    field      TEXT NOT NULL,
    before     ANY
) STRICT;

CREATE INDEX repairs_of ON repairs (session_id);

CREATE INDEX sessions_listed ON sessions (updated_at, session_id, folder, archived, spawned_by);
