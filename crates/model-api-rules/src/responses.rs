//! Rules of OpenAI Responses.

mod input;
mod items;
mod parameters;

use crate::rule::Rule;

pub(crate) const RULES: &[Rule] = &[
    Rule {
        name: "known fields",
        source: "https://platform.openai.com/docs/api-reference/responses/create",
        check: parameters::known_fields,
    },
    Rule {
        name: "known items",
        source: "https://platform.openai.com/docs/api-reference/responses/create",
        check: input::known_items,
    },
    Rule {
        name: "content of messages",
        source: "https://platform.openai.com/docs/api-reference/responses/create",
        check: input::message_content,
    },
    Rule {
        name: "media types",
        source: "https://platform.openai.com/docs/guides/images-vision",
        check: input::media_types,
    },
    Rule {
        name: "outputs follow calls",
        source: "https://github.com/router-for-me/CLIProxyAPI/issues/2368",
        check: input::outputs_follow_calls,
    },
    Rule {
        name: "outputs answer calls",
        source: "https://github.com/microsoft/vscode/issues/320060",
        check: input::outputs_answer_calls,
    },
    Rule {
        name: "unique call ids",
        source: "https://github.com/openai/gpt-oss/pull/309",
        check: input::unique_call_ids,
    },
    Rule {
        name: "form of call ids",
        source: "https://github.com/decolua/9router/issues/393",
        check: input::call_id_form,
    },
    Rule {
        name: "arguments are JSON objects",
        source: "https://platform.openai.com/docs/guides/function-calling",
        check: input::arguments_are_json,
    },
    Rule {
        name: "names of earlier calls",
        source: "https://platform.openai.com/docs/api-reference/responses/create",
        check: input::called_names,
    },
    Rule {
        name: "no ids without a store",
        source: "https://github.com/openai/openai-agents-js/issues/546",
        check: input::no_stored_ids,
    },
    Rule {
        name: "encrypted reasoning without a store",
        source: "https://github.com/earendil-works/pi/issues/5059",
        check: input::reasoning_is_encrypted,
    },
    Rule {
        name: "reasoning asks to be encrypted",
        source: "https://github.com/can1357/oh-my-pi/pull/50",
        check: parameters::asks_for_encrypted_reasoning,
    },
    Rule {
        name: "an item follows reasoning",
        source: "https://github.com/openai/openai-agents-python/issues/1611",
        check: input::item_follows_reasoning,
    },
    Rule {
        name: "reasoning of the same model",
        source: "https://github.com/openai/codex/issues/8145",
        check: input::reasoning_was_issued,
    },
    Rule {
        name: "form of tool names",
        source: "https://github.com/coinbase/agentkit/pull/217",
        check: parameters::tool_names,
    },
    Rule {
        name: "root of tool schemas",
        source: "https://github.com/langchain-ai/langchainjs/issues/9804",
        check: parameters::schema_roots,
    },
    Rule {
        name: "strict schemas",
        source: "https://platform.openai.com/docs/guides/structured-outputs",
        check: parameters::strict_schemas,
    },
    Rule {
        name: "choice needs tools",
        source: "https://platform.openai.com/docs/api-reference/responses/create",
        check: parameters::choice_needs_tools,
    },
    Rule {
        name: "smallest output limit",
        source: "https://platform.openai.com/docs/api-reference/responses/create",
        check: parameters::output_limit,
    },
    Rule {
        name: "length of the cache key",
        source: "https://platform.openai.com/docs/guides/prompt-caching",
        check: parameters::cache_key,
    },
    Rule {
        name: "no temperature for reasoning models",
        source: "https://github.com/ThinkInAIXYZ/deepchat/issues/713",
        check: parameters::no_temperature,
    },
    Rule {
        name: "reasoning effort of the model",
        source: "https://github.com/BoundaryML/baml/pull/2708",
        check: parameters::effort_of_model,
    },
];
