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
    words      text NOT NULL               -- each between two spaces; a line feed in place of a word between texts
);

CREATE INDEX search_chunks_of ON search_chunks (session_id, first_loop);
CREATE INDEX search_chunks_words ON search_chunks
    USING gin (array_to_tsvector(string_to_array(btrim(words, ' '), ' ')));

INSERT INTO format (version) VALUES
    (2);
INSERT INTO hosts (host, machine, process, heartbeat_at) OVERRIDING SYSTEM VALUE VALUES
    (1, 'elsewhere', 'pid=1', '2000-01-01T00:00:00Z');
INSERT INTO sessions (session_id, updated_at, parent_session_id, spawned_by, cwd, folder, roots, title, model, mode, thinking, protocol, always, archived, created_at, head_version, loop_count, last_number, tip_loop_id, fence, owner_id, host) VALUES
    ('s1', '2026-11-21T05:03:28.000000001Z', NULL, NULL, '/home/ann/project', '/home/ann/project', '["/home/ann/library"]', 'Old', 'offline/echo', 'ask', NULL, NULL, '[]', false, '2026-11-21T05:00:00.000000001Z', 2, 2, 2, 's1.cfg.2', 1, 'a', 1);
INSERT INTO loops (loop, session_id, version, loop_id, parent_loop_id, continuation_kind, status, on_chain, started_at, ended_at, checksum, log_checksum, set_aside, record, messages, log) OVERRIDING SYSTEM VALUE VALUES
    (1, 's1', 1, 's1.cfg.1', NULL, 'initial', 'completed', true, '2026-11-21T05:01:40.000000001Z', '2026-11-21T05:01:48.000000001Z', 3904507852, 2937521009, NULL, '{"agent_id":"turnery","prompt_id":"prompt-1","outcome":{"finished":{"assistant_message":{"text":"All is well."}}},"config":{"model":"echo","provider":"offline","config_id":"cfg","reasoning":false,"context_window":200000,"temperature":0.7},"usage":{"input":10,"output":5,"reasoning":0,"cache_read":0,"cache_write":0,"total_tokens":15},"turns":[{"turn_id":{"loop_id":"s1.cfg.1","turn_index":0},"triggered_by":"user","usage":{"input":10,"output":5,"reasoning":0,"cache_read":0,"cache_write":0,"total_tokens":15},"input_messages":["s1.cfg.1.ask"],"output_message":"s1.cfg.1.answer","tool_results":[],"started_at":"2026-11-21T05:01:41.000000001Z","ended_at":"2026-11-21T05:01:47.000000001Z"}]}', '[{"message_id":"s1.cfg.1.ask","turn_id":{"loop_id":"s1.cfg.1","turn_index":0},"message":{"role":"user","content":[{"type":"text","text":"How is it?"}]}},{"message_id":"s1.cfg.1.answer","turn_id":{"loop_id":"s1.cfg.1","turn_index":0},"message":{"role":"assistant","content":[{"type":"text","text":"All is well."}],"stop":"stop","model":"echo","provider":"offline","usage":{"input":10,"output":5,"reasoning":0,"cache_read":0,"cache_write":0,"total_tokens":15}}}]', '[{"seq":0,"at":0,"start":{"event":"loop_start","agent_id":"turnery","prompt_id":"prompt-1","continuation_kind":"initial"}},{"seq":1,"turn":0,"at":1000000000,"body":{"event":"turn_start","trigger":"user"}},{"seq":2,"turn":0,"at":2000000000,"body":{"event":"message_start","message_id":"s1.cfg.1.ask"}},{"seq":3,"turn":0,"at":3000000000,"message":0},{"seq":4,"turn":0,"at":4000000000,"body":{"event":"message_start","message_id":"s1.cfg.1.answer"}},{"seq":5,"turn":0,"at":5000000000,"message":1},{"seq":6,"turn":0,"at":6000000000,"body":{"event":"usage_reported","usage":{"input":10,"output":5,"reasoning":0,"cache_read":0,"cache_write":0,"total_tokens":15},"cumulative":{"input":10,"output":5,"reasoning":0,"cache_read":0,"cache_write":0,"total_tokens":15}}},{"seq":7,"turn":0,"at":7000000000,"body":{"event":"turn_end","usage":{"input":10,"output":5,"reasoning":0,"cache_read":0,"cache_write":0,"total_tokens":15},"tool_results":[]}},{"seq":8,"at":8000000000,"end":{"event":"loop_end","usage":{"input":10,"output":5,"reasoning":0,"cache_read":0,"cache_write":0,"total_tokens":15}}}]');
INSERT INTO loops (loop, session_id, version, loop_id, parent_loop_id, continuation_kind, status, on_chain, started_at, ended_at, checksum, log_checksum, set_aside, record, messages, log) OVERRIDING SYSTEM VALUE VALUES
    (2, 's1', 2, 's1.cfg.2', 's1.cfg.1', 'initial', 'completed', true, '2026-11-21T05:03:20.000000001Z', '2026-11-21T05:03:28.000000001Z', 3641363390, 1113181680, NULL, '{"agent_id":"turnery","prompt_id":"prompt-2","outcome":{"finished":{"assistant_message":{"text":"All is well."}}},"config":{"model":"echo","provider":"offline","config_id":"cfg","reasoning":false,"context_window":200000,"temperature":0.7},"usage":{"input":10,"output":5,"reasoning":0,"cache_read":0,"cache_write":0,"total_tokens":15},"turns":[{"turn_id":{"loop_id":"s1.cfg.2","turn_index":0},"triggered_by":"user","usage":{"input":10,"output":5,"reasoning":0,"cache_read":0,"cache_write":0,"total_tokens":15},"input_messages":["s1.cfg.2.ask"],"output_message":"s1.cfg.2.answer","tool_results":[],"started_at":"2026-11-21T05:03:21.000000001Z","ended_at":"2026-11-21T05:03:27.000000001Z"}]}', '[{"message_id":"s1.cfg.2.ask","turn_id":{"loop_id":"s1.cfg.2","turn_index":0},"message":{"role":"user","content":[{"type":"text","text":"Why?"}]}},{"message_id":"s1.cfg.2.answer","turn_id":{"loop_id":"s1.cfg.2","turn_index":0},"message":{"role":"assistant","content":[{"type":"text","text":"All is well."}],"stop":"stop","model":"echo","provider":"offline","usage":{"input":10,"output":5,"reasoning":0,"cache_read":0,"cache_write":0,"total_tokens":15}}}]', '[{"seq":0,"at":0,"start":{"event":"loop_start","agent_id":"turnery","prompt_id":"prompt-2","parent_loop_id":"s1.cfg.1","continuation_kind":"initial"}},{"seq":1,"turn":0,"at":1000000000,"body":{"event":"turn_start","trigger":"user"}},{"seq":2,"turn":0,"at":2000000000,"body":{"event":"message_start","message_id":"s1.cfg.2.ask"}},{"seq":3,"turn":0,"at":3000000000,"message":0},{"seq":4,"turn":0,"at":4000000000,"body":{"event":"message_start","message_id":"s1.cfg.2.answer"}},{"seq":5,"turn":0,"at":5000000000,"message":1},{"seq":6,"turn":0,"at":5000000000,"body":{"event":"tool_call_requested","call":{"call_id":"s1.cfg.2.call-0","name":"read","args":{"path":"/home/ann/project/a.txt"}},"detail":{"title":"Read a.txt","kind":"read"}}},{"seq":7,"turn":0,"at":5000000000,"body":{"event":"tool_execution_start","call_id":"s1.cfg.2.call-0","tool_name":"read","runs":true}},{"seq":8,"turn":0,"at":5000000000,"body":{"event":"tool_execution_end","call_id":"s1.cfg.2.call-0","tool_name":"read","envelope":{"result":{"Ok":[{"type":"text","text":"out"}]}},"disposition":"executed"}},{"seq":9,"turn":0,"at":6000000000,"body":{"event":"usage_reported","usage":{"input":10,"output":5,"reasoning":0,"cache_read":0,"cache_write":0,"total_tokens":15},"cumulative":{"input":10,"output":5,"reasoning":0,"cache_read":0,"cache_write":0,"total_tokens":15}}},{"seq":10,"turn":0,"at":7000000000,"body":{"event":"turn_end","usage":{"input":10,"output":5,"reasoning":0,"cache_read":0,"cache_write":0,"total_tokens":15},"tool_results":[]}},{"seq":11,"at":8000000000,"end":{"event":"loop_end","usage":{"input":10,"output":5,"reasoning":0,"cache_read":0,"cache_write":0,"total_tokens":15}}}]');
INSERT INTO journal (entry, session_id, loop_id, seq, at, checksum, body) OVERRIDING SYSTEM VALUE VALUES
    (1, 's1', 's1.cfg.3', 0, '2026-11-21T05:05:00.000000001Z', 1753783402, '[{"seq":0,"at":"2026-11-21T05:05:00.000000001Z","event":"loop_start","agent_id":"turnery","prompt_id":"prompt-3","parent_loop_id":"s1.cfg.2","continuation_kind":"initial","config":{"model":"echo","provider":"offline","config_id":"cfg","reasoning":false,"context_window":200000,"temperature":0.7}},{"seq":1,"turn_index":0,"at":"2026-11-21T05:05:01.000000001Z","event":"turn_start","trigger":"user"},{"seq":2,"turn_index":0,"at":"2026-11-21T05:05:02.000000001Z","event":"message_start","message_id":"s1.cfg.3.ask"},{"seq":3,"turn_index":0,"at":"2026-11-21T05:05:03.000000001Z","event":"message_end","message":{"message_id":"s1.cfg.3.ask","turn_id":{"loop_id":"s1.cfg.3","turn_index":0},"message":{"role":"user","content":[{"type":"text","text":"And then?"}]}}}]');
INSERT INTO notes (note, session_id, key, checksum, set_aside, body) OVERRIDING SYSTEM VALUE VALUES
    (1, 's1', '01a2212f-d733-70df-98af-edd9589e484c', 4016091730, NULL, '{"at":"2026-11-21T05:00:05.000000001Z","message":{"message_id":"s1.cfg.1.m1","turn_id":{"loop_id":"s1.cfg.1","turn_index":0},"message":{"role":"user","content":[{"type":"text","text":"/help"}]}}}');
INSERT INTO search_chunks (session_id, first_loop, last_loop, words) VALUES
    ('s1', 0, 0, E' old \n ');
UPDATE sessions SET searched_title = title;
SELECT setval(pg_get_serial_sequence('hosts', 'host'), 1), setval(pg_get_serial_sequence('loops', 'loop'), 2),
    setval(pg_get_serial_sequence('journal', 'entry'), 1), setval(pg_get_serial_sequence('notes', 'note'), 1);
