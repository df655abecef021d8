//! Tests of compaction: how large messages are, what is summarised and what stays.

mod size;
