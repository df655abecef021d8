//! Requests to the client: questions to its user, files and terminals.

pub(crate) mod editor_files;
pub(crate) mod elicitation;
pub(crate) mod features;
pub(crate) mod key_page;
pub(crate) mod peer;
pub(crate) mod permission;
pub(crate) mod quirks;
pub(crate) mod terminals;
