//! Rules of Anthropic Messages.

mod blocks;
mod content;
mod fields;
mod model;
mod thinking;
mod tools;

use crate::{
    check::{Check, require},
    request::ApiRequest,
    rule::Rule,
};

pub(crate) const RULES: &[Rule] = &[
    Rule {
        name: "version header",
        source: "https://platform.claude.com/docs/en/api/versioning",
        check: version_header,
    },
    Rule {
        name: "known fields",
        source: "https://platform.claude.com/docs/en/api/messages/create",
        check: fields::known_fields,
    },
    Rule {
        name: "required fields",
        source: "https://platform.claude.com/docs/en/api/messages/create",
        check: fields::required_fields,
    },
    Rule {
        name: "the user begins",
        source: "https://platform.claude.com/docs/en/api/messages/create",
        check: content::begins_with_user,
    },
    Rule {
        name: "roles alternate",
        source: "https://github.com/anthropics/claude-code/issues/1162",
        check: content::roles_alternate,
    },
    Rule {
        name: "no prefilled answer",
        source: "https://platform.claude.com/docs/en/about-claude/models/migration-guide",
        check: content::ends_with_user,
    },
    Rule {
        name: "no empty text",
        source: "https://github.com/anthropics/claude-code/issues/23369",
        check: content::no_empty_text,
    },
    Rule {
        name: "media types",
        source: "https://platform.claude.com/docs/en/build-with-claude/vision",
        check: content::media_types,
    },
    Rule {
        name: "results follow calls",
        source: "https://github.com/anthropics/claude-code/issues/7929",
        check: content::results_follow_calls,
    },
    Rule {
        name: "results answer calls",
        source: "https://github.com/anthropics/claude-code/issues/13460",
        check: content::results_answer_calls,
    },
    Rule {
        name: "results come first",
        source: "https://platform.claude.com/docs/en/agents-and-tools/tool-use/handle-tool-calls",
        check: content::results_come_first,
    },
    Rule {
        name: "form of call ids",
        source: "https://github.com/tailcallhq/forgecode/issues/1142",
        check: content::call_id_form,
    },
    Rule {
        name: "unique call ids",
        source: "https://github.com/anthropics/claude-code/issues/28515",
        check: content::unique_call_ids,
    },
    Rule {
        name: "tools for calls",
        source: "https://github.com/anthropics/anthropic-sdk-python/issues/494",
        check: tools::tools_for_calls,
    },
    Rule {
        name: "form of tool names",
        source: "https://platform.claude.com/docs/en/agents-and-tools/tool-use/implement-tool-use",
        check: tools::tool_names,
    },
    Rule {
        name: "names of earlier calls",
        source: "https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ToolUseBlock.html",
        check: tools::called_names,
    },
    Rule {
        name: "root of tool schemas",
        source: "https://github.com/anthropics/claude-code/issues/5319",
        check: tools::schema_roots,
    },
    Rule {
        name: "property names",
        source: "https://github.com/diegosouzapw/OmniRoute/issues/13552",
        check: tools::property_names,
    },
    Rule {
        name: "choice needs tools",
        source: "https://platform.claude.com/docs/en/agents-and-tools/tool-use/implement-tool-use",
        check: tools::choice_needs_tools,
    },
    Rule {
        name: "four cache marks",
        source: "https://github.com/tghamm/Anthropic.SDK/issues/50",
        check: content::four_cache_marks,
    },
    Rule {
        name: "thinking of the model",
        source: "https://platform.claude.com/docs/en/build-with-claude/adaptive-thinking",
        check: thinking::kind_of_model,
    },
    Rule {
        name: "thinking budget",
        source: "https://platform.claude.com/docs/en/build-with-claude/extended-thinking",
        check: thinking::budget_fits,
    },
    Rule {
        name: "no temperature with thinking",
        source: "https://github.com/MartialBE/one-hub/issues/529",
        check: thinking::no_temperature,
    },
    Rule {
        name: "no forced call with thinking",
        source: "https://github.com/mastra-ai/mastra/issues/7507",
        check: thinking::no_forced_call,
    },
    Rule {
        name: "thinking is signed",
        source: "https://platform.claude.com/docs/en/build-with-claude/extended-thinking",
        check: thinking::is_signed,
    },
    Rule {
        name: "thinking is not last",
        source: "https://github.com/tailcallhq/forgecode/issues/2107",
        check: thinking::is_not_last,
    },
    Rule {
        name: "a round begins with thinking",
        source: "https://github.com/anomalyco/opencode/issues/3077",
        check: thinking::round_begins_with_thinking,
    },
    Rule {
        name: "no thinking after switching it off",
        source: "https://github.com/tailcallhq/forgecode/issues/1853",
        check: thinking::not_in_last_when_off,
    },
    Rule {
        name: "thinking of the same model",
        source: "https://platform.claude.com/docs/en/build-with-claude/preserved-thinking",
        check: thinking::was_issued,
    },
    Rule {
        name: "thinking of the same conversation",
        source: "https://platform.claude.com/docs/en/build-with-claude/preserved-thinking/prefix-checks",
        check: thinking::is_bound_to_conversation,
    },
];

fn version_header(request: &ApiRequest<'_>) -> Check {
    let mut lines = request.headers.lines();
    let is_there = lines.any(|line| line.starts_with("anthropic-version: 2023-"));
    require(is_there, || {
        "anthropic-version: header is required".to_owned()
    })
}
