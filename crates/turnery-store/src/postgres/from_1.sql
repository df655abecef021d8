-- The search has an index.
ALTER TABLE sessions
    ADD COLUMN searched_version bigint NOT NULL DEFAULT 0,
    ADD COLUMN searched_title text;

CREATE INDEX sessions_unsearched ON sessions (session_id)
    WHERE head_version <> searched_version OR title IS DISTINCT FROM searched_title;

CREATE TABLE search_chunks (
    session_id text COLLATE "C" NOT NULL REFERENCES sessions ON DELETE CASCADE,
    first_loop bigint NOT NULL,
    last_loop  bigint NOT NULL,
    words      text NOT NULL
);

CREATE INDEX search_chunks_of ON search_chunks (session_id, first_loop);
CREATE INDEX search_chunks_words ON search_chunks
    USING gin (array_to_tsvector(string_to_array(btrim(words, ' '), ' ')));
