-- From version 2: what a session was set to is kept, and commands are.
ALTER TABLE sessions ADD COLUMN folder TEXT NOT NULL DEFAULT '';
ALTER TABLE sessions ADD COLUMN thinking TEXT;
ALTER TABLE sessions ADD COLUMN always TEXT NOT NULL DEFAULT '[]';
ALTER TABLE sessions ADD COLUMN archived INTEGER NOT NULL DEFAULT 0;
UPDATE sessions SET folder = cwd;

CREATE TABLE remarks (
    remark     INTEGER PRIMARY KEY,
    session_id TEXT NOT NULL REFERENCES sessions ON DELETE CASCADE,
    body       TEXT NOT NULL
) STRICT;

CREATE INDEX remarks_of ON remarks (session_id);
