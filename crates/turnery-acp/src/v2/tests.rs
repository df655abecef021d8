//! Tests of the parts of v2 that need no connection.
