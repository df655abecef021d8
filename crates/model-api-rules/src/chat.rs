//! Rules of Chat Completions: those that servers share, and those of single hosts.

mod calls;
mod host;
mod messages;
mod parameters;

pub(crate) use parameters::{is_openai_reasoning, require_effort};

use crate::rule::Rule;

pub(crate) const RULES: &[Rule] = &[
    Rule {
        name: "known fields",
        source: "https://platform.openai.com/docs/api-reference/chat/create",
        check: parameters::known_fields,
    },
    Rule {
        name: "roles",
        source: "https://platform.openai.com/docs/api-reference/chat/create",
        check: messages::roles,
    },
    Rule {
        name: "one system message",
        source: "https://github.com/moltis-org/moltis/issues/317",
        check: messages::one_system_message,
    },
    Rule {
        name: "content is there",
        source: "https://github.com/docker/docker-agent/issues/63",
        check: messages::has_content,
    },
    Rule {
        name: "no empty list",
        source: "https://github.com/openai/openai-node/pull/1341",
        check: messages::no_empty_list,
    },
    Rule {
        name: "results follow calls",
        source: "https://github.com/agno-agi/agno/issues/3105",
        check: messages::results_follow_calls,
    },
    Rule {
        name: "unique call ids",
        source: "https://platform.openai.com/docs/guides/function-calling",
        check: messages::unique_call_ids,
    },
    Rule {
        name: "arguments are JSON objects",
        source: "https://platform.openai.com/docs/guides/function-calling",
        check: messages::arguments_are_json,
    },
    Rule {
        name: "names of earlier calls",
        source: "https://github.com/mcp-use/mcp-use/issues/90",
        check: messages::called_names,
    },
    Rule {
        name: "pictures of the user only",
        source: "https://github.com/OpenHands/OpenHands/issues/7700",
        check: messages::media_of_user_only,
    },
    Rule {
        name: "media types",
        source: "https://platform.openai.com/docs/guides/images-vision",
        check: messages::media_types,
    },
    Rule {
        name: "form of tool names",
        source: "https://github.com/coinbase/agentkit/pull/217",
        check: parameters::tool_names,
    },
    Rule {
        name: "root of tool schemas",
        source: "https://github.com/nspady/google-calendar-mcp/issues/39",
        check: parameters::schema_roots,
    },
    Rule {
        name: "strict schemas",
        source: "https://platform.openai.com/docs/guides/structured-outputs",
        check: parameters::strict_schemas,
    },
    Rule {
        name: "choice needs tools",
        source: "https://platform.openai.com/docs/api-reference/chat/create",
        check: parameters::choice_needs_tools,
    },
    Rule {
        name: "tools for calls",
        source: "https://github.com/anthropics/anthropic-sdk-python/issues/494",
        check: parameters::tools_for_calls,
    },
    Rule {
        name: "one output limit",
        source: "https://platform.openai.com/docs/api-reference/chat/create",
        check: parameters::one_output_limit,
    },
    Rule {
        name: "limit of reasoning models",
        source: "https://github.com/fish2018/YPrompt/issues/26",
        check: parameters::limit_of_reasoning_models,
    },
    Rule {
        name: "no temperature for reasoning models",
        source: "https://github.com/ThinkInAIXYZ/deepchat/issues/713",
        check: parameters::no_temperature,
    },
    Rule {
        name: "reasoning effort of the model",
        source: "https://github.com/openai/openai-agents-python/issues/2089",
        check: parameters::effort_of_model,
    },
    Rule {
        name: "four cache marks",
        source: "https://github.com/tghamm/Anthropic.SDK/issues/50",
        check: messages::four_cache_marks,
    },
    Rule {
        name: "OpenAI: call ids up to 40 characters",
        source: "https://github.com/agno-agi/agno/issues/5382",
        check: host::openai_call_ids,
    },
    Rule {
        name: "OpenAI: own fields of messages only",
        source: "https://platform.openai.com/docs/api-reference/chat/create",
        check: host::openai_message_fields,
    },
    Rule {
        name: "OpenAI: no reasoning with tools",
        source: "https://github.com/openai/openai-openapi/issues/541",
        check: host::openai_no_reasoning_with_tools,
    },
    Rule {
        name: "Groq: own fields only",
        source: "https://github.com/SimonSchubert/Kai/issues/265",
        check: host::groq_fields,
    },
    Rule {
        name: "Cerebras: own fields only",
        source: "https://github.com/Kilo-Org/kilocode/issues/10375",
        check: host::cerebras_fields,
    },
    Rule {
        name: "Mistral: form of call ids",
        source: "https://github.com/anomalyco/opencode/issues/1680",
        check: host::mistral_call_ids,
    },
    Rule {
        name: "Mistral: no user after a tool",
        source: "https://github.com/NousResearch/hermes-agent/issues/20154",
        check: host::mistral_no_user_after_tool,
    },
    Rule {
        name: "Mistral: the user or a tool comes last",
        source: "https://github.com/huggingface/smolagents/issues/757",
        check: host::mistral_last_role,
    },
    Rule {
        name: "DeepSeek: reasoning of calls",
        source: "https://github.com/continuedev/continue/issues/10193",
        check: host::deepseek_reasoning,
    },
    Rule {
        name: "Kimi: reasoning of calls",
        source: "https://github.com/continuedev/continue/issues/11527",
        check: host::kimi_reasoning,
    },
    Rule {
        name: "cache marks for Claude only",
        source: "https://openrouter.ai/docs/features/prompt-caching",
        check: host::cache_marks_for_claude,
    },
];
