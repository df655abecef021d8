-- Keeps the sessions of several owners apart in one schema, with row-level security. By an administrator:
--
--     createdb turnery
--     psql turnery --command 'CREATE ROLE turnery_admin LOGIN' --command 'CREATE ROLE turnery_owners NOLOGIN' \
--         --command 'CREATE SCHEMA team AUTHORIZATION turnery_admin' --command '\password turnery_admin'
--     turnery store check --store 'postgres://turnery_admin@db.example.org/turnery?schema=team'
--     psql turnery --set ON_ERROR_STOP=1 --set schema=team --set owners=turnery_owners --file row_security.sql
--
-- The third step creates the tables, which belong to turnery_admin. After an update of turnery that changes them, repeat
-- it and the last one: owners may use the tables, but not migrate them. For each owner:
--
--     psql turnery --command 'CREATE ROLE ann LOGIN IN ROLE turnery_owners' --command '\password ann'
--
-- The store of the owner is then postgres://ann@db.example.org/turnery?schema=team
--
-- The role that owns the tables sees all sessions, as do superusers. An owner learns two things about others: that an id
-- is taken, and, if it listens to the notifications of the database, the ids of sessions that somebody follows.

BEGIN;
REVOKE ALL ON DATABASE :"DBNAME" FROM PUBLIC;
REVOKE ALL ON SCHEMA public FROM PUBLIC;
GRANT CONNECT ON DATABASE :"DBNAME" TO :"owners";
GRANT USAGE ON SCHEMA :"schema" TO :"owners";
SET LOCAL search_path = :"schema";

-- The least rights with which all but a migration and a vacuum works. With a session, the server deletes its rows in
-- other tables but search_filters by itself.
GRANT SELECT ON format TO :"owners";
GRANT SELECT, INSERT, UPDATE, DELETE ON hosts, sessions, outbox, followers TO :"owners";
GRANT SELECT, INSERT, UPDATE ON loops, notes TO :"owners";
GRANT SELECT, INSERT, DELETE ON journal, texts, search_chunks, search_filters TO :"owners";
GRANT SELECT, INSERT ON repairs TO :"owners";

-- What is stored before belongs to the role that runs this.
ALTER TABLE sessions ADD COLUMN IF NOT EXISTS owner name NOT NULL DEFAULT current_user;
ALTER TABLE hosts ADD COLUMN IF NOT EXISTS owner name NOT NULL DEFAULT current_user;
CREATE INDEX IF NOT EXISTS sessions_of_owner ON sessions (owner, updated_at DESC, session_id DESC);

ALTER TABLE sessions ENABLE ROW LEVEL SECURITY;
DROP POLICY IF EXISTS own ON sessions;
CREATE POLICY own ON sessions TO :"owners" USING (owner = current_user) WITH CHECK (owner = current_user);

ALTER TABLE hosts ENABLE ROW LEVEL SECURITY;
DROP POLICY IF EXISTS own ON hosts;
CREATE POLICY own ON hosts TO :"owners" USING (owner = current_user) WITH CHECK (owner = current_user);

-- A row belongs to the owner of its session: the subquery sees only sessions of the own role.
ALTER TABLE loops ENABLE ROW LEVEL SECURITY;
DROP POLICY IF EXISTS own ON loops;
CREATE POLICY own ON loops TO :"owners"
    USING (EXISTS (SELECT FROM sessions s WHERE s.session_id = loops.session_id));

ALTER TABLE journal ENABLE ROW LEVEL SECURITY;
DROP POLICY IF EXISTS own ON journal;
CREATE POLICY own ON journal TO :"owners"
    USING (EXISTS (SELECT FROM sessions s WHERE s.session_id = journal.session_id));

ALTER TABLE texts ENABLE ROW LEVEL SECURITY;
DROP POLICY IF EXISTS own ON texts;
CREATE POLICY own ON texts TO :"owners"
    USING (EXISTS (SELECT FROM sessions s WHERE s.session_id = texts.session_id));

ALTER TABLE notes ENABLE ROW LEVEL SECURITY;
DROP POLICY IF EXISTS own ON notes;
CREATE POLICY own ON notes TO :"owners"
    USING (EXISTS (SELECT FROM sessions s WHERE s.session_id = notes.session_id));

ALTER TABLE outbox ENABLE ROW LEVEL SECURITY;
DROP POLICY IF EXISTS own ON outbox;
CREATE POLICY own ON outbox TO :"owners"
    USING (EXISTS (SELECT FROM sessions s WHERE s.session_id = outbox.session_id));

ALTER TABLE repairs ENABLE ROW LEVEL SECURITY;
DROP POLICY IF EXISTS own ON repairs;
CREATE POLICY own ON repairs TO :"owners"
    USING (EXISTS (SELECT FROM sessions s WHERE s.session_id = repairs.session_id));

ALTER TABLE followers ENABLE ROW LEVEL SECURITY;
DROP POLICY IF EXISTS own ON followers;
CREATE POLICY own ON followers TO :"owners"
    USING (EXISTS (SELECT FROM sessions s WHERE s.session_id = followers.session_id));

ALTER TABLE search_chunks ENABLE ROW LEVEL SECURITY;
DROP POLICY IF EXISTS own ON search_chunks;
CREATE POLICY own ON search_chunks TO :"owners"
    USING (EXISTS (SELECT FROM sessions s WHERE s.session_id = search_chunks.session_id));

-- An owner's search adds filters of its own chunks only; those of the administrator adds none.
ALTER TABLE search_filters ENABLE ROW LEVEL SECURITY;
DROP POLICY IF EXISTS own ON search_filters;
CREATE POLICY own ON search_filters TO :"owners"
    USING (NOT EXISTS (
        SELECT FROM unnest(search_filters.sessions) AS u (id)
        WHERE NOT EXISTS (SELECT FROM sessions s WHERE s.session_id = u.id)));

COMMIT;
