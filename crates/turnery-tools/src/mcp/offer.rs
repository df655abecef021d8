//! Offer: what a server has, listed when it is connected and whenever it says that this has changed.

use super::fault;
use rmcp::{
    RoleClient, ServiceError,
    model::{PaginatedRequestParams, Prompt, Tool},
    service::Peer,
};
use serde_json::{Map, Value, json};
use turnery_engine::Schema;

/// What one server may offer of each sort. All model APIs bound what they take.
pub(super) const MOST: usize = 100;
/// Pages that are read of one list.
const PAGES: usize = 20;
/// A longer description is cut. Unit: bytes.
const LONGEST_TEXT: usize = 4096;
/// A prompt with a longer name, or an argument's, is left out: nobody types it. Unit: bytes.
const LONGEST_NAME: usize = 200;
/// A tool with a larger schema is left out. Unit: bytes of JSON.
const LARGEST_SCHEMA: usize = 64 << 10;

/// What a server has.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Offer {
    pub(super) tools: Vec<ToolOffer>,
    pub(super) prompts: Vec<Prompt>,
    /// Whether it has resources.
    pub(super) resources: bool,
    /// Tools that it has and that cannot be offered.
    pub(super) left_out: usize,
}

/// A tool as its server describes it.
#[derive(Debug, PartialEq)]
pub(super) struct ToolOffer {
    pub(super) name: String,
    /// For people.
    pub(super) title: String,
    /// For the model.
    pub(super) description: String,
    pub(super) schema: Schema,
    /// It says that it changes nothing, and not that it may destroy. Nobody has checked.
    pub(super) reads_only: bool,
    /// It says that it may destroy.
    pub(super) destroys: bool,
}

/// Ask a server for all of it.
pub(super) async fn list(peer: &Peer<RoleClient>) -> Result<Offer, String> {
    let Some(info) = peer.peer_info() else {
        return Ok(Offer::default());
    };
    let has = &info.capabilities;
    let mut offer = Offer {
        resources: has.resources.is_some(),
        ..Offer::default()
    };
    if has.tools.is_some() {
        let tools = pages(|page| async move {
            let list = peer.list_tools(page).await?;
            Ok((list.tools, list.next_cursor))
        });
        let tools = tools.await.map_err(|error| not_read("tools", &error))?;
        let count = tools.len();
        offer.tools = tools.into_iter().filter_map(tool).take(MOST).collect();
        offer.left_out = count - offer.tools.len();
    }
    if has.prompts.is_some() {
        let prompts = pages(|page| async move {
            let list = peer.list_prompts(page).await?;
            Ok((list.prompts, list.next_cursor))
        });
        offer.prompts = prompts.await.map_err(|error| not_read("prompts", &error))?;
        offer.prompts.retain(can_be_typed);
        offer.prompts.truncate(MOST);
    }
    Ok(offer)
}

fn can_be_typed(prompt: &Prompt) -> bool {
    let arguments = prompt.arguments.iter().flatten();
    let mut names = arguments.map(|it| &it.name).chain([&prompt.name]);
    names.all(|name| (1..=LONGEST_NAME).contains(&name.len()))
}

fn not_read(what: &str, error: &ServiceError) -> String {
    let (_, why) = fault::of_request(error);
    format!("its list of {what} cannot be read: {why}")
}

/// The items of all pages, as far as they are read.
pub(super) async fn pages<T, F>(
    mut page: impl FnMut(Option<PaginatedRequestParams>) -> F,
) -> Result<Vec<T>, ServiceError>
where
    F: Future<Output = Result<(Vec<T>, Option<String>), ServiceError>>,
{
    let mut all = Vec::new();
    let mut cursor = None;
    for _ in 0..PAGES {
        let asked =
            cursor.map(|cursor| PaginatedRequestParams::default().with_cursor(Some(cursor)));
        let (items, next) = page(asked).await?;
        all.extend(items);
        cursor = next;
        if cursor.is_none() || all.len() > 10 * MOST {
            break;
        }
    }
    Ok(all)
}

/// None for a tool that no model could be told of.
fn tool(tool: Tool) -> Option<ToolOffer> {
    let schema = schema(&tool.input_schema);
    if tool.name.is_empty() || schema.to_string().len() > LARGEST_SCHEMA {
        return None;
    }
    let hints = tool.annotations.unwrap_or_default();
    let title = tool.title.or(hints.title).filter(|title| !title.is_empty());
    let description = tool.description.unwrap_or_default();
    let cut = description.floor_char_boundary(LONGEST_TEXT);
    // A server whose hints contradict each other gets the stricter reading.
    let destroys = hints.destructive_hint == Some(true);
    Some(ToolOffer {
        title: short(title.as_deref().unwrap_or(&tool.name)).to_owned(),
        description: description[..cut].to_owned(),
        schema: schema.into(),
        reads_only: hints.read_only_hint == Some(true) && !destroys,
        destroys,
        name: tool.name.into_owned(),
    })
}

/// The schema, as all model APIs take it: an object that says so, and names its properties.
fn schema(given: &Map<String, Value>) -> Value {
    let mut schema = given.clone();
    schema.remove("$schema");
    schema.insert("type".to_owned(), json!("object"));
    schema
        .entry("properties")
        .or_insert_with(|| Value::Object(Map::new()));
    Value::Object(schema)
}

/// A name for one line.
pub(super) fn line(text: &str) -> String {
    let text: String = text
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    short(&text).to_owned()
}

/// The beginning of a name that somebody else chose.
pub(super) fn short(text: &str) -> &str {
    let cut = text.floor_char_boundary(120);
    text[..cut].trim()
}
