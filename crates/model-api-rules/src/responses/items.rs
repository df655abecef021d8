//! Finds items.

use crate::{
    json::{list, text},
    request::ApiRequest,
};
use serde_json::Value;

/// Returns the items with their places and types. An item without a type is a message.
pub(super) fn items<'a>(request: &ApiRequest<'a>) -> Vec<(String, &'a str, &'a Value)> {
    let items = list(request.body, "input").iter().enumerate();
    let with_type = |(i, item): (usize, &'a Value)| {
        let kind = match text(item, "type") {
            "" => "message",
            kind => kind,
        };
        (format!("input[{i}]"), kind, item)
    };
    items.map(with_type).collect()
}

pub(super) fn is_stored(request: &ApiRequest<'_>) -> bool {
    request.body.get("store") != Some(&Value::Bool(false))
}
