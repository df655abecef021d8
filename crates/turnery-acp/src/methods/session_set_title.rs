//! `session/set_title` (unstable, behind `sessionCapabilities.title`): names a session, open or not. The name
//! stays: no prompt gives it another one.

use super::Call;
use crate::fault::{Fault, parse};
use agent_client_protocol_schema::v1::{SetSessionTitleRequest, SetSessionTitleResponse};
use turnery_engine::SessionId;

/// What is longer is cut off. Unit: characters.
const LONGEST: usize = 200;

pub(super) async fn answer(call: Call) -> Result<SetSessionTitleResponse, Fault> {
    let request: SetSessionTitleRequest = parse(&call.params)?;
    let title = normal(&request.title);
    if title.is_empty() {
        return Err(Fault::params("title: it is empty; name the session."));
    }
    let id = SessionId::from(&*request.session_id.0);
    match call.connection.session(id.as_str()) {
        Ok(session) => session.set_title(&title).await?,
        Err(_) => {
            let kept = call.connection.agent.set_title(&id, &title).await;
            kept.map_err(|error| Fault::store(&error))?;
        }
    }
    Ok(SetSessionTitleResponse::new(title))
}

/// One line, without blanks around it.
fn normal(title: &str) -> String {
    let gap = |char: char| char.is_whitespace() || char.is_control();
    let words: Vec<&str> = title.split(gap).filter(|word| !word.is_empty()).collect();
    let line: String = words.join(" ").chars().take(LONGEST).collect();
    line.trim_end().to_owned()
}
