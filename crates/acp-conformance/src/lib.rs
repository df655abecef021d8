//! acp-conformance: plays protocol cases, written as text files, against any agent command.
