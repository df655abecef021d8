//! Rules of single hosts.

use super::{
    calls::{calls, function, messages, of_role},
    parameters,
};
use crate::{
    check::{Check, require},
    json::{has, list, only_fields, require_form, text},
    request::ApiRequest,
};
use serde_json::Value;

/// Server of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Host {
    OpenAi,
    Groq,
    Cerebras,
    Mistral,
    DeepSeek,
    Moonshot,
    Other,
}

impl Host {
    pub(super) fn of(request: &ApiRequest<'_>) -> Self {
        let host = request.host.unwrap_or_default();
        let is = |domain: &str| host == domain || host.ends_with(&format!(".{domain}"));
        match () {
            () if is("openai.com") || is("azure.com") => Self::OpenAi,
            () if is("groq.com") => Self::Groq,
            () if is("cerebras.ai") => Self::Cerebras,
            () if is("mistral.ai") => Self::Mistral,
            () if is("deepseek.com") => Self::DeepSeek,
            () if is("moonshot.ai") || is("moonshot.cn") => Self::Moonshot,
            () => Self::Other,
        }
    }
}

/// OpenAI's call ids have at most 40 characters.
pub(super) fn openai_call_ids(request: &ApiRequest<'_>) -> Check {
    if Host::of(request) != Host::OpenAi {
        return Ok(());
    }
    for (at, call) in calls(request) {
        require_form(&format!("{at}.id"), text(call, "id"), 1..=40, |_| true)?;
    }
    Ok(())
}

fn own_message_fields(request: &ApiRequest<'_>) -> Check {
    for (i, message) in messages(request).iter().enumerate() {
        only_fields(
            &format!("messages[{i}]"),
            message,
            parameters::message_fields(message),
        )?;
    }
    Ok(())
}

/// OpenAI knows no fields of other servers.
pub(super) fn openai_message_fields(request: &ApiRequest<'_>) -> Check {
    match Host::of(request) {
        Host::OpenAi => {
            own_message_fields(request)?;
            only_fields("request", request.body, parameters::TOP)
        }
        _ => Ok(()),
    }
}

/// Models since GPT-5.4 reason with tools in Responses only. Those since GPT-5.6 need an explicit `none`.
pub(super) fn openai_no_reasoning_with_tools(request: &ApiRequest<'_>) -> Check {
    let version = request.model().strip_prefix("gpt-5.");
    let digits = version.map(|rest| {
        rest.chars()
            .take_while(char::is_ascii_digit)
            .collect::<String>()
    });
    let minor: u32 = digits.and_then(|digits| digits.parse().ok()).unwrap_or(0);
    let effort = text(request.body, "reasoning_effort");
    let is_accepted = effort == "none" || (effort.is_empty() && minor < 6);
    let applies = Host::of(request) == Host::OpenAi && minor >= 4 && has(request.body, "tools");
    require(!applies || is_accepted, || {
        "Function tools with reasoning_effort are not supported in /v1/chat/completions. To use function tools, use /v1/responses or set reasoning_effort to 'none'.".to_owned()
    })
}

/// Groq refuses fields of messages that it does not know, reasoning among them.
pub(super) fn groq_fields(request: &ApiRequest<'_>) -> Check {
    match Host::of(request) {
        Host::Groq => own_message_fields(request),
        _ => Ok(()),
    }
}

/// Cerebras refuses fields of messages that it does not know, reasoning content among them.
pub(super) fn cerebras_fields(request: &ApiRequest<'_>) -> Check {
    match Host::of(request) {
        Host::Cerebras => own_message_fields(request),
        _ => Ok(()),
    }
}

/// Mistral's call ids are nine letters and digits.
pub(super) fn mistral_call_ids(request: &ApiRequest<'_>) -> Check {
    if Host::of(request) != Host::Mistral {
        return Ok(());
    }
    let results = of_role(request, "tool");
    let results = results
        .iter()
        .map(|(i, message)| (format!("messages[{i}]"), text(message, "tool_call_id")));
    let calls = calls(request)
        .into_iter()
        .map(|(at, call)| (at, text(call, "id")));
    for (at, id) in calls.chain(results) {
        require_form(&at, id, 9..=9, |c| c.is_ascii_alphanumeric())?;
    }
    Ok(())
}

/// Mistral wants an answer of the model between a tool's message and one of the user.
pub(super) fn mistral_no_user_after_tool(request: &ApiRequest<'_>) -> Check {
    let mut pairs = messages(request).windows(2);
    let is_refused = |pair: &[Value]| match pair {
        [before, after] => text(before, "role") == "tool" && text(after, "role") == "user",
        _ => false,
    };
    let applies = Host::of(request) == Host::Mistral;
    require(!applies || !pairs.any(is_refused), || {
        "Unexpected role 'user' after role 'tool'".to_owned()
    })
}

/// Mistral answers the user or a tool.
pub(super) fn mistral_last_role(request: &ApiRequest<'_>) -> Check {
    let last = messages(request)
        .last()
        .map_or("", |last| text(last, "role"));
    let applies = Host::of(request) == Host::Mistral;
    require(!applies || matches!(last, "user" | "tool"), || {
        format!(
            "Expected last role User or Tool (or Assistant with prefix True) for serving but got {last}"
        )
    })
}

/// Returns the first message with calls that lacks its reasoning.
fn lacks_reasoning(request: &ApiRequest<'_>) -> Option<usize> {
    let thinking = request.body.get("thinking").unwrap_or(&Value::Null);
    if text(thinking, "type") == "disabled" {
        return None;
    }
    let lacks = |message: &Value| {
        !list(message, "tool_calls").is_empty()
            && !message
                .get("reasoning_content")
                .is_some_and(Value::is_string)
    };
    let all = of_role(request, "assistant");
    all.into_iter()
        .find(|(_, message)| lacks(message))
        .map(|(i, _)| i)
}

/// DeepSeek V4 wants the reasoning of each message with calls while it thinks; it may be empty.
pub(super) fn deepseek_reasoning(request: &ApiRequest<'_>) -> Check {
    let applies = Host::of(request) == Host::DeepSeek && request.model().starts_with("deepseek-v4");
    match lacks_reasoning(request) {
        Some(i) if applies => Err(format!(
            "Missing `reasoning_content` field in the assistant message at message index {i}."
        )),
        _ => Ok(()),
    }
}

/// Kimi wants the reasoning of each message with calls while it thinks.
pub(super) fn kimi_reasoning(request: &ApiRequest<'_>) -> Check {
    let model = request.model();
    let thinks = ["kimi-k2.", "kimi-k2-thinking", "kimi-k3"]
        .iter()
        .any(|name| model.starts_with(name));
    match lacks_reasoning(request) {
        Some(i) if Host::of(request) == Host::Moonshot && thinks => Err(format!(
            "thinking is enabled but reasoning_content is missing in assistant tool call message at index {i}"
        )),
        _ => Ok(()),
    }
}

/// Cache marks of models other than Claude fail on Bedrock and elsewhere.
pub(super) fn cache_marks_for_claude(request: &ApiRequest<'_>) -> Check {
    let mut parts = messages(request)
        .iter()
        .flat_map(|message| list(message, "content"));
    let is_marked = parts.any(|part| has(part, "cache_control"));
    require(!is_marked || request.model().starts_with("claude"), || {
        format!("cache_control is not supported by {}", request.model())
    })?;
    let tools = list(request.body, "tools");
    require(
        !tools
            .iter()
            .any(|tool| has(function(tool), "cache_control")),
        || "cache_control is not supported on functions".to_owned(),
    )
}
