-- From version 6: a session keeps how its model acts, by tool calls or by code.
ALTER TABLE sessions ADD COLUMN protocol TEXT;
