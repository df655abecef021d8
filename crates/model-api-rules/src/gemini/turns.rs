//! Finds turns and their parts.

use crate::{
    json::{list, text},
    request::ApiRequest,
};
use serde_json::Value;

pub(super) fn contents<'a>(request: &ApiRequest<'a>) -> &'a [Value] {
    list(request.body, "contents")
}

/// Returns each part with its place.
pub(super) fn parts<'a>(request: &ApiRequest<'a>) -> Vec<(String, &'a Value)> {
    let of_content = |(i, content): (usize, &'a Value)| {
        let parts = list(content, "parts").iter().enumerate();
        parts.map(move |(j, part)| (format!("contents[{i}].parts[{j}]"), part))
    };
    contents(request)
        .iter()
        .enumerate()
        .flat_map(of_content)
        .collect()
}

/// Returns the members of this name of a content's parts.
pub(super) fn members<'a>(content: &'a Value, name: &str) -> Vec<&'a Value> {
    list(content, "parts")
        .iter()
        .filter_map(|part| part.get(name))
        .collect()
}

pub(super) fn is_of_user(content: &Value) -> bool {
    text(content, "role") == "user"
}
