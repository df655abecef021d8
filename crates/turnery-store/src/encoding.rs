//! Encodes loops, events and long texts as rows, and decodes them: the form that all databases share.

pub(crate) mod checksum;
pub(crate) mod event_log;
pub(crate) mod journal_events;
pub(crate) mod long_texts;
pub(crate) mod loop_columns;
pub(crate) mod loop_row;
pub(crate) mod omit_fields;
pub(crate) mod row_error;
pub(crate) mod survey;
pub(crate) mod version_counts;
