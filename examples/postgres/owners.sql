-- Gives one owner of sessions a schema of its own in the database in which it runs. By an administrator, for each owner:
--
--     createdb turnery
--     psql turnery --set ON_ERROR_STOP=1 --set owner=ann --file owners.sql
--     psql turnery --command '\password ann'
--
-- The store of the owner is then
--
--     export TURNERY_STORE='postgres://ann@db.example.org/turnery?schema=ann'
--
-- Its first use creates the tables. The role owns them, so that it also migrates them after an update of turnery, and
-- has no other right in this database. Other owners can neither read nor change anything in the schema.

BEGIN;
-- Without this, every role of the server may connect and create temporary tables, and, up to PostgreSQL 14, tables in
-- the schema public.
REVOKE ALL ON DATABASE :"DBNAME" FROM PUBLIC;
REVOKE ALL ON SCHEMA public FROM PUBLIC;

CREATE ROLE :"owner" LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS;
GRANT CONNECT ON DATABASE :"DBNAME" TO :"owner";
CREATE SCHEMA :"owner" AUTHORIZATION :"owner";
COMMIT;
