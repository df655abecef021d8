//! Lists the capabilities of a server: when it connects and whenever it reports a change.

use super::errors;
use rmcp::{
    RoleClient, ServiceError,
    model::{PaginatedRequestParams, Prompt, Tool},
    service::Peer,
};
use serde_json::{Map, Value, json};
use turnery_engine::ToolSchema;

/// Maximum number of tools, resources or prompts of one server, and of tools of all servers together; all
/// model APIs limit the number of tools.
pub(super) const MAX_LISTED: usize = 100;
/// Maximum number of pages read of one list.
const MAX_PAGES: usize = 20;
/// A longer description is cut. Unit: bytes.
const MAX_DESCRIPTION_BYTES: usize = 4096;
/// A prompt is omitted if its name or an argument's name is longer, since nobody types it. Unit: bytes.
const MAX_NAME_BYTES: usize = 200;
/// A tool with a larger schema is omitted. Unit: bytes of JSON.
const MAX_SCHEMA_BYTES: usize = 64 << 10;

/// Tools and prompts that a server has listed, and whether it has resources.
#[derive(Debug, Default, PartialEq)]
pub(super) struct McpServerCapabilities {
    pub(super) tools: Vec<McpToolInfo>,
    pub(super) prompts: Vec<Prompt>,
    /// The server has resources.
    pub(super) has_resources: bool,
    /// Number of tools that cannot be offered to the model.
    pub(super) omitted_tools: usize,
}

/// A tool as its server describes it.
#[derive(Debug, PartialEq)]
pub(super) struct McpToolInfo {
    pub(super) name: String,
    /// Title for display.
    pub(super) title: String,
    /// Description for the model.
    pub(super) description: String,
    pub(super) schema: ToolSchema,
    /// The server declares the tool read-only and not destructive. Unverified.
    pub(super) is_read_only: bool,
    /// The server declares the tool destructive.
    pub(super) is_destructive: bool,
}

/// Requests the lists of tools and prompts that a server advertises, and notes whether it has resources.
pub(super) async fn list_capabilities(
    peer: &Peer<RoleClient>,
) -> Result<McpServerCapabilities, String> {
    let Some(info) = peer.peer_info() else {
        return Ok(McpServerCapabilities::default());
    };
    let has = &info.capabilities;
    let mut offer = McpServerCapabilities {
        has_resources: has.resources.is_some(),
        ..McpServerCapabilities::default()
    };
    if has.tools.is_some() {
        let tools = fetch_all_pages(|page| async move {
            let list = peer.list_tools(page).await?;
            Ok((list.tools, list.next_cursor))
        });
        let tools = tools.await.map_err(|error| list_error("tools", &error))?;
        let count = tools.len();
        offer.tools = tools
            .into_iter()
            .filter_map(to_tool_info)
            .take(MAX_LISTED)
            .collect();
        offer.omitted_tools = count - offer.tools.len();
    }
    if has.prompts.is_some() {
        let prompts = fetch_all_pages(|page| async move {
            let list = peer.list_prompts(page).await?;
            Ok((list.prompts, list.next_cursor))
        });
        offer.prompts = prompts
            .await
            .map_err(|error| list_error("prompts", &error))?;
        offer.prompts.retain(can_be_typed);
        offer.prompts.truncate(MAX_LISTED);
    }
    Ok(offer)
}

fn can_be_typed(prompt: &Prompt) -> bool {
    let arguments = prompt.arguments.iter().flatten();
    let mut names = arguments.map(|it| &it.name).chain([&prompt.name]);
    names.all(|name| (1..=MAX_NAME_BYTES).contains(&name.len()))
}

fn list_error(what: &str, error: &ServiceError) -> String {
    let (_, why) = errors::describe_request_error(error);
    format!("its list of {what} cannot be read: {why}")
}

/// Returns the items of all pages, up to `MAX_PAGES`.
pub(super) async fn fetch_all_pages<T, F>(
    mut page: impl FnMut(Option<PaginatedRequestParams>) -> F,
) -> Result<Vec<T>, ServiceError>
where
    F: Future<Output = Result<(Vec<T>, Option<String>), ServiceError>>,
{
    let mut all = Vec::new();
    let mut cursor = None;
    for _ in 0..MAX_PAGES {
        let asked =
            cursor.map(|cursor| PaginatedRequestParams::default().with_cursor(Some(cursor)));
        let (items, next) = page(asked).await?;
        all.extend(items);
        cursor = next;
        if cursor.is_none() || all.len() > 10 * MAX_LISTED {
            break;
        }
    }
    Ok(all)
}

/// Converts a tool; `None` if it cannot be offered to a model.
fn to_tool_info(tool: Tool) -> Option<McpToolInfo> {
    let schema = normalise_schema(&tool.input_schema);
    if tool.name.is_empty() || schema.to_string().len() > MAX_SCHEMA_BYTES {
        return None;
    }
    let hints = tool.annotations.unwrap_or_default();
    let title = tool.title.or(hints.title).filter(|title| !title.is_empty());
    let description = tool.description.unwrap_or_default();
    let cut = description.floor_char_boundary(MAX_DESCRIPTION_BYTES);
    // If a server's hints contradict each other, the stricter one applies.
    let destroys = hints.destructive_hint == Some(true);
    Some(McpToolInfo {
        title: truncate_name(title.as_deref().unwrap_or(&tool.name)).to_owned(),
        description: description[..cut].to_owned(),
        schema: schema.into(),
        is_read_only: hints.read_only_hint == Some(true) && !destroys,
        is_destructive: destroys,
        name: tool.name.into_owned(),
    })
}

/// Returns the schema in the form that all model APIs accept: its type is `object` and it has `properties`.
fn normalise_schema(given: &Map<String, Value>) -> Value {
    let mut schema = given.clone();
    schema.remove("$schema");
    schema.insert("type".to_owned(), json!("object"));
    schema
        .entry("properties")
        .or_insert_with(|| Value::Object(Map::new()));
    Value::Object(schema)
}

/// Returns the beginning of an external name or description, with control characters replaced by spaces. At
/// most 120 bytes.
pub(super) fn single_line(text: &str) -> String {
    let text: String = text
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    truncate_name(&text).to_owned()
}

/// Cuts an external name or URI to 120 bytes, without surrounding whitespace.
pub(super) fn truncate_name(text: &str) -> &str {
    let cut = text.floor_char_boundary(120);
    text[..cut].trim()
}
