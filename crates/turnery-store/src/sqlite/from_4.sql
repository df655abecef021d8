-- From version 4: long texts are stored once, and numbers of loops that are gone are kept.
CREATE TABLE texts (
    text       INTEGER PRIMARY KEY,
    session_id TEXT NOT NULL REFERENCES sessions ON DELETE CASCADE,
    name       TEXT NOT NULL,
    piece      INTEGER NOT NULL,
    body       TEXT NOT NULL,
    UNIQUE (session_id, name, piece)
) STRICT;

CREATE VIEW long_texts AS
SELECT session_id, name, '/text ' || name AS reference,
       json_extract('["' || group_concat(body, '') || '"]', '$[0]') AS text
FROM (SELECT * FROM texts ORDER BY session_id, name, piece) GROUP BY session_id, name;

ALTER TABLE sessions ADD COLUMN lost_number INTEGER NOT NULL DEFAULT 0;
