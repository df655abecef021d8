//! Holds the state of the fake model: the scripts with their positions, and all requests.

use super::{
    exchange::{Exchange, ExchangeRole, ExchangeState},
    request::{MessageRole, ModelRequest},
    schema_instance::minimal_instance,
    script::ScriptedResponse,
    tool_resolution::ToolCandidates,
};
use serde::Deserialize;
use std::sync::Arc;
use tokio::sync::watch;

/// Configuration of the fake model for one agent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FakeModelConfig {
    /// Candidates for script tools.
    pub tools: ToolCandidates,
    /// Rules that classify requests.
    pub requests: RequestRules,
}

/// Rules that classify requests to the model.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields, default)]
pub struct RequestRules {
    /// Texts that mark a side request, outside the conversation, if its system prompt or last message contains one of
    /// them.
    #[serde(rename = "side")]
    pub side_markers: Vec<String>,
    /// True if every request of a conversation offers tools, so that a request without tools is a side
    /// request.
    pub offers_tools: bool,
    /// Names of the models that the fake model lists; default: `fake-model`.
    pub models: Vec<String>,
}

impl Default for RequestRules {
    fn default() -> Self {
        Self {
            side_markers: Vec::new(),
            offers_tools: true,
            models: vec!["fake-model".to_owned()],
        }
    }
}

/// Response to requests outside the conversation that give no schema.
pub(super) const SIDE_RESPONSE: &str = "Conformance";
/// Response after the end of a script whose last response cannot be repeated.
pub(super) const AFTER_SCRIPT_RESPONSE: &str = "The script is at its end.";

/// Script for the prompts with a certain text.
#[derive(Debug)]
pub(super) struct PromptScript {
    /// Text that identifies the prompts; `None` for all others.
    pub(super) prompt_text: Option<String>,
    pub(super) responses: Vec<ScriptedResponse>,
    pub(super) next_index: usize,
}

#[derive(Debug)]
pub(super) struct FakeModelState {
    pub(super) config: FakeModelConfig,
    pub(super) scripts: Vec<PromptScript>,
    pub(super) exchanges: Vec<Exchange>,
    /// Number of releases of hanging responses.
    pub(super) release_count: u64,
}

/// Shared state, whose watchers are notified of every change.
pub(super) type SharedState = Arc<watch::Sender<FakeModelState>>;

impl FakeModelState {
    pub(super) fn new(config: FakeModelConfig) -> Self {
        Self {
            config,
            scripts: Vec::new(),
            exchanges: Vec::new(),
            release_count: 0,
        }
    }

    /// Sets the responses for prompts with this text, starting with the first.
    pub(super) fn set_script(&mut self, prompt: Option<&str>, answers: Vec<ScriptedResponse>) {
        let prompt = prompt.map(str::to_owned);
        self.scripts.retain(|script| script.prompt_text != prompt);
        self.scripts.push(PromptScript {
            prompt_text: prompt,
            responses: answers,
            next_index: 0,
        });
    }

    /// Restarts the scripts whose prompt text satisfies `holds`.
    pub(super) fn restart_scripts(&mut self, holds: impl Fn(&str) -> bool) {
        for thread in &mut self.scripts {
            if thread.prompt_text.as_deref().is_some_and(&holds) {
                thread.next_index = 0;
            }
        }
    }

    /// Returns the role of a request and the response that is due.
    pub(super) fn next_response(
        &mut self,
        request: &ModelRequest,
    ) -> (ExchangeRole, ScriptedResponse) {
        if self.is_side_request(request) {
            let json = request
                .schema
                .as_ref()
                .map(|schema| minimal_instance(schema).to_string());
            return (
                ExchangeRole::Side,
                ScriptedResponse::from_text(json.as_deref().unwrap_or(SIDE_RESPONSE)),
            );
        }
        let Some(thread) = self.script_for(request) else {
            return (
                ExchangeRole::AfterScript,
                ScriptedResponse::from_text(AFTER_SCRIPT_RESPONSE),
            );
        };
        if let Some(answer) = thread.responses.get(thread.next_index) {
            thread.next_index += 1;
            return (ExchangeRole::Main(thread.next_index - 1), answer.clone());
        }
        let last = thread.responses.last().filter(|last| !last.has_tool_call());
        let again = || ScriptedResponse::from_text(AFTER_SCRIPT_RESPONSE);
        (
            ExchangeRole::AfterScript,
            last.cloned().unwrap_or_else(again),
        )
    }

    fn is_side_request(&self, request: &ModelRequest) -> bool {
        let last = request
            .messages
            .last()
            .filter(|message| message.role == MessageRole::User);
        let last = last.map_or("", |message| message.text.as_str());
        let known = |text: &String| request.system_prompt.contains(text) || last.contains(text);
        let rules = &self.config.requests;
        request.tools.is_empty() && rules.offers_tools || rules.side_markers.iter().any(known)
    }

    /// Returns the script for the newest user text that has one, or else the script for all others.
    fn script_for(&mut self, request: &ModelRequest) -> Option<&mut PromptScript> {
        // Agents may join a prompt to the previous one, so the last match within a text wins.
        let latest = |text: &str| {
            let found = self
                .scripts
                .iter()
                .enumerate()
                .filter_map(|(index, thread)| {
                    let prompt = thread.prompt_text.as_ref()?;
                    Some((text.rfind(prompt.as_str())?, prompt.len(), index))
                });
            found.max().map(|(.., index)| index)
        };
        let texts: Vec<&str> = request.user_texts().collect();
        let newest = texts.into_iter().rev().find_map(latest);
        let index = newest.or_else(|| self.scripts.iter().position(|t| t.prompt_text.is_none()))?;
        self.scripts.get_mut(index)
    }
}

/// Guard that settles an exchange once: as dropped, unless settled before the guard is dropped.
#[derive(Debug)]
pub(super) struct ExchangeGuard {
    state: SharedState,
    exchange_index: usize,
    is_settled: bool,
}

impl ExchangeGuard {
    /// Adds an exchange and returns its guard.
    pub(super) fn new(state: &SharedState, exchange: Exchange) -> Self {
        let mut number = 0;
        state.send_modify(|state| {
            number = state.exchanges.len();
            state.exchanges.push(exchange);
        });
        Self {
            state: Arc::clone(state),
            exchange_index: number,
            is_settled: false,
        }
    }

    pub(super) fn exchange_index(&self) -> usize {
        self.exchange_index
    }

    pub(super) fn update_exchange(&self, note: impl FnOnce(&mut Exchange)) {
        self.state.send_modify(|stage| {
            if let Some(exchange) = stage.exchanges.get_mut(self.exchange_index) {
                note(exchange);
            }
        });
    }

    pub(super) fn settle(&mut self, fate: ExchangeState) {
        if !self.is_settled {
            self.is_settled = true;
            self.update_exchange(|exchange| exchange.state = fate);
        }
    }
}

impl Drop for ExchangeGuard {
    fn drop(&mut self) {
        self.settle(ExchangeState::Dropped);
    }
}
