-- Chunks have keys, and filters of their phrases. The next search fills them again.
DROP TABLE search_chunks;

CREATE TABLE search_chunks (
    session_id text COLLATE "C" NOT NULL REFERENCES sessions ON DELETE CASCADE,
    first_loop bigint NOT NULL,
    last_loop  bigint NOT NULL,
    words      text NOT NULL,
    chunk      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY
);

CREATE INDEX search_chunks_of ON search_chunks (session_id, first_loop);
CREATE INDEX search_chunks_words ON search_chunks
    USING gin (array_to_tsvector(string_to_array(btrim(words, ' '), ' ')));

DROP INDEX sessions_unsearched;
ALTER TABLE sessions
    DROP COLUMN searched_version,
    DROP COLUMN searched_title,
    ADD COLUMN searched_version bigint NOT NULL DEFAULT 0,
    ADD COLUMN searched_title text;

CREATE INDEX sessions_unsearched ON sessions (session_id)
    WHERE head_version <> searched_version OR title IS DISTINCT FROM searched_title;

CREATE TABLE search_filters (
    sessions text[] COLLATE "C" NOT NULL,
    chunks   bigint[] NOT NULL,
    bits     bytea NOT NULL CHECK (octet_length(bits) >= 32 AND octet_length(bits) % 32 = 0)
);

CREATE UNIQUE INDEX search_filters_from ON search_filters ((chunks[1]));

ALTER TABLE search_filters ALTER bits SET STORAGE EXTERNAL;
