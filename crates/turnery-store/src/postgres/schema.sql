-- Times of sessions and loops are UTC text of fixed width, so that their order is the order of time. Nested values are
-- JSON in text columns, since jsonb has no place for the character U+0000.

CREATE TABLE format (
    version integer NOT NULL               -- of these tables; one row
);

-- A process that holds lanes or delivers effects. One heartbeat keeps all its lanes alive.
CREATE TABLE hosts (
    host         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    machine      text NOT NULL,            -- whose process ids the description is about
    process      text NOT NULL,            -- description of the process
    heartbeat_at timestamptz NOT NULL,     -- by the clock of this server
    UNIQUE (machine, process)
);

-- A session, and its lane: who may commit to it. The fence rises with every new holder and is never reset.
CREATE TABLE sessions (
    session_id        text COLLATE "C" PRIMARY KEY,
    updated_at        text COLLATE "C" NOT NULL,
    parent_session_id text,                -- of spawned_by
    spawned_by        text,                -- JSON: the call that created the session; NULL: the user did
    cwd               text NOT NULL,
    folder            text NOT NULL,       -- cwd with its links resolved
    roots             text NOT NULL,       -- JSON array of paths
    title             text,
    model             text NOT NULL,
    mode              text NOT NULL,
    thinking          text,
    protocol          text,
    always            text NOT NULL DEFAULT '[]', -- JSON array of remembered approvals
    archived          boolean NOT NULL DEFAULT false,
    created_at        text NOT NULL,
    head_version      bigint NOT NULL DEFAULT 0,  -- rises by one with each commit
    loop_count        bigint NOT NULL DEFAULT 0,
    last_number       bigint NOT NULL DEFAULT 0,  -- greatest number of a loop that was stored, or shown and lost
    tip_loop_id       text,                -- the loop that the next prompt follows
    fence             bigint NOT NULL DEFAULT 0,
    owner_id          text,                -- NULL when nobody holds the lane
    host              bigint,              -- of the holder; without a row in hosts, the holder is gone
    searched_version  bigint NOT NULL DEFAULT 0,  -- head_version whose loops are in search_chunks
    searched_title    text                 -- title that is in search_chunks
);

CREATE INDEX sessions_listed ON sessions (updated_at DESC, session_id DESC);
CREATE INDEX sessions_in_folder ON sessions (folder, updated_at DESC, session_id DESC);
CREATE INDEX sessions_spawned ON sessions (parent_session_id) WHERE parent_session_id IS NOT NULL;
CREATE INDEX sessions_unsearched ON sessions (session_id)
    WHERE head_version <> searched_version OR title IS DISTINCT FROM searched_title;

-- Long texts come last, so that they are stored apart from the others.
CREATE TABLE loops (
    loop              bigint GENERATED ALWAYS AS IDENTITY, -- in the order of commits within a session
    session_id        text COLLATE "C" NOT NULL REFERENCES sessions ON DELETE CASCADE,
    version           bigint NOT NULL,     -- the head_version that its commit made
    loop_id           text NOT NULL,
    parent_loop_id    text,
    continuation_kind text NOT NULL,
    status            text NOT NULL,
    on_chain          boolean NOT NULL,    -- false: the next prompt does not see it
    started_at        text NOT NULL,
    ended_at          text,
    checksum          bigint NOT NULL,     -- of this row without log
    log_checksum      bigint NOT NULL,     -- of log
    set_aside         text,                -- why a repair took the loop out of the conversation
    record            text NOT NULL,       -- JSON: all of the record that is in no other column
    messages          text NOT NULL,       -- JSON array
    log               text NOT NULL,       -- JSON array of its events
    PRIMARY KEY (session_id, loop),
    UNIQUE (session_id, loop_id)
);

-- Events of loops that have not been committed. A row whose seq is 0 starts its loop again.
CREATE TABLE journal (
    entry      bigint GENERATED ALWAYS AS IDENTITY, -- in the order in which they were written
    session_id text COLLATE "C" NOT NULL REFERENCES sessions ON DELETE CASCADE,
    loop_id    text NOT NULL,
    seq        bigint NOT NULL,            -- of the first event
    at         text NOT NULL,              -- of the first event
    checksum   bigint NOT NULL,            -- of this row
    body       text NOT NULL,              -- JSON array: the events written together
    PRIMARY KEY (session_id, entry)
);

-- Long texts, pictures and recordings, each once for its session. In the JSON of other rows there is a reference: a
-- string '/text ' with the name of the text.
CREATE TABLE texts (
    session_id text COLLATE "C" NOT NULL REFERENCES sessions ON DELETE CASCADE,
    name       text COLLATE "C" NOT NULL,  -- SHA-256 of all its pieces
    piece      integer NOT NULL,           -- from 0
    body       text NOT NULL,              -- JSON of a string, without its quotes
    PRIMARY KEY (session_id, name, piece)
);

CREATE TABLE notes (
    note       bigint GENERATED ALWAYS AS IDENTITY, -- in the order in which they were written
    session_id text COLLATE "C" NOT NULL REFERENCES sessions ON DELETE CASCADE,
    key        text NOT NULL,              -- that no other note has
    checksum   bigint NOT NULL,            -- of this row
    set_aside  text,
    body       text NOT NULL,              -- JSON: at, message
    PRIMARY KEY (session_id, note),
    UNIQUE (session_id, key)
);

-- Effects that tools requested from the host, until it has received them.
CREATE TABLE outbox (
    outbox     bigint GENERATED ALWAYS AS IDENTITY, -- in the order in which they were requested
    session_id text COLLATE "C" NOT NULL REFERENCES sessions ON DELETE CASCADE,
    key        text NOT NULL,              -- that no other effect ever has
    tool_name  text NOT NULL,
    effect     text NOT NULL,              -- JSON
    checksum   bigint NOT NULL,            -- of the columns before it
    attempts   integer NOT NULL DEFAULT 0, -- how often the effect was taken
    taken_by   bigint,                     -- host that delivers the effect
    held_until timestamptz,                -- end of that, or of the delay after a failure
    set_aside  text,
    PRIMARY KEY (session_id, outbox),
    UNIQUE (session_id, key)
);

-- What repairs changed, and what was there before.
CREATE TABLE repairs (
    repair     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    session_id text COLLATE "C" NOT NULL REFERENCES sessions ON DELETE CASCADE,
    at         timestamptz NOT NULL,
    place      text NOT NULL,              -- a loop id, 'session', 'journal', 'texts' or 'version'
    field      text NOT NULL,              -- the column that was changed
    before     text                        -- what was in it
);

CREATE INDEX repairs_of ON repairs (session_id);

-- Sessions that somebody watches: their changes are announced on the channel of the schema.
CREATE TABLE followers (
    session_id text COLLATE "C" PRIMARY KEY REFERENCES sessions ON DELETE CASCADE,
    until      timestamptz NOT NULL
);

-- Words of prompts, answers and titles. Only searches write them.
CREATE TABLE search_chunks (
    session_id text COLLATE "C" NOT NULL REFERENCES sessions ON DELETE CASCADE,
    first_loop bigint NOT NULL,            -- 0: the title
    last_loop  bigint NOT NULL,
    words      text NOT NULL,              -- each between two spaces; a line feed in place of a word between texts
    chunk      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY
);

CREATE INDEX search_chunks_of ON search_chunks (session_id, first_loop);
CREATE INDEX search_chunks_words ON search_chunks
    USING gin (array_to_tsvector(string_to_array(btrim(words, ' '), ' ')));

-- Bloom filters of the pairs and triples of words in many chunks. Only searches for phrases write them.
CREATE TABLE search_filters (
    sessions text[] COLLATE "C" NOT NULL,  -- of the chunks
    chunks   bigint[] NOT NULL,            -- at most 256; some may be gone
    -- For each bit of a filter a slice of 32 bytes: this bit of each chunk, in their order.
    bits     bytea NOT NULL CHECK (octet_length(bits) >= 32 AND octet_length(bits) % 32 = 0)
);

-- Two searches at the same time add the same filters once.
CREATE UNIQUE INDEX search_filters_from ON search_filters ((chunks[1]));

-- Slices are read one by one.
ALTER TABLE search_filters ALTER bits SET STORAGE EXTERNAL;
