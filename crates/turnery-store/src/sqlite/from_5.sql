-- From version 5: a claim keeps the first events of its loop beside the lane.
ALTER TABLE sessions ADD COLUMN begun_loop_id TEXT;
ALTER TABLE sessions ADD COLUMN begun_fence INTEGER;
ALTER TABLE sessions ADD COLUMN begun_checksum INTEGER;
ALTER TABLE sessions ADD COLUMN begun_events TEXT;
