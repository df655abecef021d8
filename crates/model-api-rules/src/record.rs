//! Records requests, so that they can be checked against the types of the official SDKs too.

use crate::request::{ApiFormat, ApiRequest};
use std::{
    env, fs,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    io,
    path::PathBuf,
};

/// Variable that names the folder for requests. Without it nothing is recorded.
const FOLDER_VARIABLE: &str = "MODEL_REQUESTS";

/// Writes the body of a request to a file whose name begins with the format. Equal bodies share a file.
///
/// # Errors
/// The file cannot be written.
pub fn record(request: &ApiRequest<'_>) -> io::Result<()> {
    let Some(folder) = env::var_os(FOLDER_VARIABLE) else {
        return Ok(());
    };
    let body = request.body.to_string();
    let mut hash = DefaultHasher::new();
    body.hash(&mut hash);
    let format = match request.format {
        ApiFormat::Anthropic => "anthropic",
        ApiFormat::Chat => "chat",
        ApiFormat::Responses => "responses",
        ApiFormat::Gemini => "gemini",
    };
    let name = format!("{format}-{:016x}.json", hash.finish());
    fs::write(PathBuf::from(folder).join(name), body)
}
