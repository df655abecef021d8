//! Parses the parameters of requests.

use crate::server::rpc_error::RpcError;
use jsonrpsee::types::Params;
use serde::de::DeserializeOwned;
use std::path::Path;

/// Parses the parameters of a request. Absent and `null` count as `{}` (RPC-11); a list is invalid (RPC-10).
pub(crate) fn parse_params<T: DeserializeOwned>(params: &Params<'_>) -> Result<T, RpcError> {
    let text = match params.as_str() {
        None | Some("null") => "{}",
        Some(text) => text,
    };
    if !text.starts_with('{') {
        return Err(RpcError::invalid_params("params must be an object."));
    }
    let fault = |error: serde_json::Error| {
        RpcError::invalid_params(format!("params: {}.", describe_json_error(&error)))
    };
    serde_json::from_str(text).map_err(fault)
}

/// Describes a JSON error for the client's author, without the Rust type names serde mentions for untagged
/// enums.
fn describe_json_error(error: &serde_json::Error) -> String {
    const UNKNOWN: &str = "data did not match any variant of untagged enum ";
    let text = error.to_string();
    let Some((name, place)) = text.strip_prefix(UNKNOWN).and_then(|it| it.split_once(' ')) else {
        return text;
    };
    match name {
        "McpServer" => format!(
            "an MCP server needs name, command, args and env, or type (\"http\" or \"sse\"), name, url and headers; one does not have them {place}"
        ),
        _ => format!("a value has none of the forms that the protocol allows {place}"),
    }
}

/// Checks that a path is absolute and can exist.
pub(crate) fn check_absolute(name: &str, path: &Path) -> Result<(), RpcError> {
    if path.as_os_str().as_encoded_bytes().contains(&0) {
        return Err(RpcError::invalid_params(format!(
            "{name}: {:?} has a NUL character in it, which no path can have.",
            path.display().to_string()
        )));
    }
    if path.is_absolute() {
        return Ok(());
    }
    Err(RpcError::invalid_params(format!(
        "{name}: {:?} is not an absolute path.",
        path.display().to_string()
    )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use agent_client_protocol_schema::v1::NewSessionRequest;
    use jsonrpsee::types::ErrorObjectOwned;

    #[test]
    fn untagged_enum_error_names_no_rust_type() {
        for (server, expected) in [
            (
                r#"{"name": "x"}"#,
                "an MCP server needs name, command, args and env",
            ),
            ("7", "an MCP server needs name, command, args and env"),
        ] {
            let text = format!(r#"{{"cwd": "/", "mcpServers": [{server}]}}"#);
            let params = Params::new(Some(&text));
            let fault = parse_params::<NewSessionRequest>(&params).unwrap_err();
            let fault = ErrorObjectOwned::from(fault);
            let told = format!("{} {:?}", fault.message(), fault.data());
            assert!(told.contains(expected), "{told}");
            assert!(
                told.contains("line 1") && !told.contains("untagged"),
                "{told}"
            );
        }
    }
}
