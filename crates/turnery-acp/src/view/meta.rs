//! `_meta` of turnery: facts that the protocol has no field for.

use agent_client_protocol_schema::v1::Meta;
use serde_json::{Map, Value};

/// Wraps `members` under the one name that turnery uses in `_meta` (EXT-1).
pub(crate) fn turnery_meta(members: Value) -> Meta {
    Map::from_iter([("turnery".to_owned(), members)])
}
