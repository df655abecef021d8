//! Rules of Gemini `generateContent`.

mod contents;
mod generation;
mod parameters;
mod turns;

use crate::rule::Rule;

pub(crate) const RULES: &[Rule] = &[
    Rule {
        name: "known fields",
        source: "https://ai.google.dev/api/generate-content",
        check: parameters::known_fields,
    },
    Rule {
        name: "known parts",
        source: "https://ai.google.dev/api/caching#Part",
        check: contents::known_parts,
    },
    Rule {
        name: "the user begins and ends",
        source: "https://github.com/crewAIInc/crewAI/pull/6973",
        check: contents::user_begins_and_ends,
    },
    Rule {
        name: "a turn of the model follows the user",
        source: "https://github.com/google-gemini/gemini-cli/issues/26486",
        check: contents::model_follows_user,
    },
    Rule {
        name: "no empty part",
        source: "https://github.com/vercel/ai/issues/3775",
        check: contents::no_empty_part,
    },
    Rule {
        name: "as many responses as calls",
        source: "https://github.com/google-gemini/gemini-cli/issues/4504",
        check: contents::as_many_responses_as_calls,
    },
    Rule {
        name: "responses after calls only",
        source: "https://github.com/langchain-ai/langchain/issues/27799",
        check: contents::responses_after_calls,
    },
    Rule {
        name: "responses in the order of calls",
        source: "https://ai.google.dev/gemini-api/docs/function-calling",
        check: contents::responses_in_order,
    },
    Rule {
        name: "arguments and responses are objects",
        source: "https://ai.google.dev/api/caching#FunctionCall",
        check: contents::structs,
    },
    Rule {
        name: "the first call is signed",
        source: "https://github.com/langgenius/dify-official-plugins/issues/2088",
        check: contents::first_call_is_signed,
    },
    Rule {
        name: "signatures of the same model",
        source: "https://github.com/decolua/9router/issues/4136",
        check: contents::signatures_were_issued,
    },
    Rule {
        name: "form of signatures",
        source: "https://github.com/google-gemini/gemini-cli/issues/13467",
        check: contents::signature_form,
    },
    Rule {
        name: "media types",
        source: "https://ai.google.dev/gemini-api/docs/image-understanding",
        check: contents::media_types,
    },
    Rule {
        name: "media in responses since Gemini 3",
        source: "https://ai.google.dev/gemini-api/docs/function-calling#multimodal",
        check: contents::media_in_responses,
    },
    Rule {
        name: "form of tool names",
        source: "https://github.com/google-gemini/gemini-cli/issues/9535",
        check: parameters::tool_names,
    },
    Rule {
        name: "names of earlier calls",
        source: "https://ai.google.dev/api/caching#FunctionCall",
        check: contents::called_names,
    },
    Rule {
        name: "root of tool schemas",
        source: "https://ai.google.dev/api/caching#FunctionDeclaration",
        check: parameters::schema_roots,
    },
    Rule {
        name: "subset of JSON Schema",
        source: "https://ai.google.dev/api/caching#Schema",
        check: parameters::schema_subset,
    },
    Rule {
        name: "choice needs tools",
        source: "https://ai.google.dev/api/caching#ToolConfig",
        check: parameters::choice_needs_tools,
    },
    Rule {
        name: "thinking of the model",
        source: "https://github.com/QwenLM/qwen-code/pull/9094",
        check: generation::thinking_of_model,
    },
    Rule {
        name: "budget or level",
        source: "https://ai.google.dev/gemini-api/docs/gemini-3",
        check: generation::budget_or_level,
    },
];
