//! Recognises errors that say that a conversation does not fit into the context window.

/// Parts of a message, in lower case, that all occur in this order.
type Phrase = &'static [&'static str];

/// Phrases by which providers and servers report that a conversation is too long.
const OVERFLOW_PHRASES: &[Phrase] = &[
    // Code of OpenAI, Azure, Groq, Together and others; the same in words.
    &["context_length_exceeded"],
    &["context length exceeded"],
    // OpenAI (GPT-5, Responses); OpenAI behind gateways, by configured limit.
    &["exceeds the context window"],
    &["input tokens exceed the configured limit"],
    // OpenAI, by the field: parts of the conversation only, not ids or descriptions of tools.
    &["invalid 'input': string too long"],
    &[".content': string too long"],
    &[".text': string too long"],
    &[".output': string too long"],
    &[".arguments': string too long"],
    // OpenAI, OpenRouter, Azure, DeepSeek, vLLM, SGLang, DeepInfra, Fireworks, Mistral.
    &["maximum context length"],
    // OpenAI, Groq, Cerebras.
    &["reduce the length of the messages"],
    // Anthropic, Vertex AI, Fireworks; input together with `max_tokens`; body above 32 MB.
    &["prompt is too long"],
    &["exceed context limit"],
    &["request_too_large"],
    // Ollama, z.ai.
    &["prompt too long"],
    // Amazon Bedrock: Claude, Titan, Llama, Nova.
    &["input is too long"],
    &["too many input tokens"],
    &["malformed input request: expected maxlength"],
    &["number of input tokens exceeds maximum length"],
    // Gemini, Vertex AI.
    &["input token count", "exceeds the maximum"],
    // xAI.
    &["maximum prompt length is"],
    // GitHub Copilot; GitHub Models.
    &["prompt token count", "exceeds the limit of"],
    &["tokens_limit_reached"],
    &["request body too large for", "max size"],
    // llama.cpp: code and message; the same while generating (and LM Studio).
    &["exceed_context_size"],
    &["exceeds the available context size"],
    &["context size has been exceeded"],
    // LM Studio.
    &["greater than the context length"],
    &["when context the overflows"],
    // MiniMax.
    &["context window exceeds limit"],
    // Kimi.
    &["exceeded model token limit"],
    // z.ai (codes 1210 and 1261, and its finish reason), Anthropic.
    &["tokens in request more than max tokens allowed"],
    &["prompt exceeds max length"],
    &["prompt 超长"],
    &["model_context_window_exceeded"],
    // Qwen (DashScope), Xunfei.
    &["range of input length should be"],
    // Together, SGLang, Novita.
    &["longer than the model's context length"],
    // Text Generation Inference (Hugging Face, Together).
    &["`inputs` tokens + `max_new_tokens` must be"],
    // Mistral.
    &["too large for model with"],
    // vLLM.
    &["longer than the maximum model length"],
    &["context length is only"],
    // SGLang, Poolside.
    &["exceeds the maximum allowed input length"],
    &["exceeds the maximum allowed length", "tokens"],
    // DeepInfra, Ollama's runner.
    &["input length", "exceeds maximum input length"],
    &["input length", "exceeds the context length"],
    // ds4.
    &["but the configured context size is"],
    &["exceeds context size"],
    // Cohere.
    &["too many tokens: size limit exceeded"],
    &["too many tokens: total number of tokens"],
    // Cloudflare Workers AI.
    &["exceeded this model context window limit"],
    // SiliconFlow.
    &["must be less than max_seq_len"],
    // IBM watsonx.
    &["input tokens", "cannot exceed the total tokens limit"],
    // Volcengine Ark (Doubao).
    &["exceed max message tokens"],
    // TabbyAPI.
    &["prompt length", "greater than max_seq_len"],
    // Baidu Qianfan.
    &["prompt tokens too long"],
    // Gateways: LiteLLM, and those that do not say more.
    &["contextwindowexceedederror"],
    &["token limit exceeded"],
    // Reverse proxies (nginx, Express).
    &["request entity too large"],
    &["payload too large"],
];

/// Phrases of messages about too many requests or tokens per time. They mention tokens and limits too.
const RATE_PHRASES: &[Phrase] = &[
    &["rate limit"],
    &["rate_limit"],
    &["rate-limit"],
    &["too many requests"],
    &["tokens per min"],
    &["requests per min"],
    &["tokens per day"],
    &["(tpm)"],
    &["throttl"],
    // Amazon Bedrock.
    &["too many tokens, please wait"],
    &["too many tokens per"],
];

/// Phrases about one request that exceeds a limit per time by itself: it fits only once the conversation is shorter
/// (OpenAI and Groq: "Request too large for model ... on tokens per minute (TPM): Limit 6000, Requested 7000").
const TOO_LARGE_FOR_RATE: Phrase = &["request too large for", "requested"];

/// Returns true if `text`, in lower case, says that the conversation is too long.
pub(super) fn is_overflow(text: &str) -> bool {
    is_too_large_for_rate(text) || (!is_rate_limit(text) && contains_any(text, OVERFLOW_PHRASES))
}

/// Returns true if `text`, in lower case, is about one request that exceeds a limit per time by itself.
pub(super) fn is_too_large_for_rate(text: &str) -> bool {
    contains(text, TOO_LARGE_FOR_RATE)
}

/// Returns true if `text`, in lower case, is about too many requests or tokens per time.
pub(super) fn is_rate_limit(text: &str) -> bool {
    contains_any(text, RATE_PHRASES)
}

fn contains_any(text: &str, phrases: &[Phrase]) -> bool {
    phrases.iter().any(|phrase| contains(text, phrase))
}

fn contains(text: &str, phrase: Phrase) -> bool {
    let mut rest = text;
    phrase.iter().all(|part| match rest.split_once(part) {
        Some((_, after)) => {
            rest = after;
            true
        }
        None => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Messages as the servers word them. Sources: the providers' error references, and public issues that quote them.
    const OVERFLOWS: &[(&str, &str)] = &[
        (
            "OpenAI Chat",
            "This model's maximum context length is 4097 tokens. However, your messages resulted in 6988 tokens. Please reduce the length of the messages.",
        ),
        (
            "OpenAI Responses",
            "Your input exceeds the context window of this model. Please adjust your input and try again.",
        ),
        (
            "OpenAI limit",
            "Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 300001 tokens.",
        ),
        (
            "OpenAI string",
            "Invalid 'input': string too long. Expected a string with maximum length 10485760, but got a string with length 10485999 instead.",
        ),
        (
            "OpenAI content",
            "Invalid 'messages[3].content': string too long. Expected a string with maximum length 10485760, but got a string with length 10485999 instead.",
        ),
        (
            "OpenAI text",
            "Invalid 'input[5].content[0].text': string too long. Expected a string with maximum length 10485760, but got a string with length 10485999 instead.",
        ),
        (
            "OpenAI output",
            "Invalid 'input[7].output': string too long. Expected a string with maximum length 10485760, but got a string with length 10485999 instead.",
        ),
        (
            "OpenAI arguments",
            "Invalid 'messages[2].tool_calls[0].function.arguments': string too long. Expected a string with maximum length 1048576, but got a string with length 1048999 instead.",
        ),
        (
            "OpenAI code",
            "invalid_request_error context_length_exceeded",
        ),
        (
            "OpenAI TPM",
            "Request too large for gpt-5.1 in organization org-1 on tokens per min (TPM): Limit 30000, Requested 31000. The input or output tokens must be reduced in order to run successfully.",
        ),
        (
            "Azure OpenAI",
            "This model's maximum context length is 128000 tokens, however you requested 130000 tokens (129000 in your prompt; 1000 for the completion). Please reduce your prompt; or completion length.",
        ),
        (
            "Anthropic",
            "prompt is too long: 200005 tokens > 200000 maximum",
        ),
        (
            "Anthropic output",
            "input length and `max_tokens` exceed context limit: 174167 + 64000 > 200000, decrease input length or `max_tokens` and try again",
        ),
        (
            "Anthropic bytes",
            "request_too_large Request exceeds the maximum size",
        ),
        ("Bedrock Claude", "Input is too long for requested model."),
        (
            "Bedrock Titan",
            "400 Bad Request: Too many input tokens. Max input tokens: 8192, request input token count: 9279",
        ),
        (
            "Bedrock length",
            "Malformed input request: expected maxLength: 50000, actual: 52611, please reformat your input and try again.",
        ),
        (
            "Bedrock Nova",
            "Input Tokens Exceeded: Number of input tokens exceeds maximum length. Please update the input to try again.",
        ),
        (
            "Gemini",
            "The input token count (1196265) exceeds the maximum number of tokens allowed (1048576).",
        ),
        (
            "Vertex AI",
            "The input token count is 1100000 but model only supports up to 1048576; it exceeds the maximum",
        ),
        (
            "xAI",
            "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
        ),
        (
            "Groq",
            "Please reduce the length of the messages or completion.",
        ),
        (
            "Groq TPM",
            "Request too large for model `openai/gpt-oss-120b` in organization `org_1` service tier `on_demand` on tokens per minute (TPM): Limit 8000, Requested 9120, please reduce your message size and try again.",
        ),
        (
            "Cerebras",
            "Please reduce the length of the messages or completion. Current length is 12000 while limit is 8192",
        ),
        (
            "OpenRouter",
            "This endpoint's maximum context length is 131072 tokens. However, you requested about 200000 tokens (199000 of text input, 1000 in the output).",
        ),
        (
            "DeepSeek",
            "This model's maximum context length is 131072 tokens. However, you requested 1008004 tokens (1000004 in the messages, 8000 in the completion).",
        ),
        (
            "Fireworks",
            "The prompt is too long: 1000008, model maximum context length: 131071",
        ),
        (
            "Together",
            "The input (516368 tokens) is longer than the model's context length (262144 tokens).",
        ),
        (
            "Hugging Face",
            "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 16384. Given: 21790 `inputs` tokens and 1024 `max_new_tokens`",
        ),
        (
            "Mistral",
            "Prompt contains 1000172 tokens and 0 draft tokens, too large for model with 40960 maximum context length",
        ),
        (
            "Cohere",
            "too many tokens: size limit exceeded by 713295 tokens. Try using shorter or fewer inputs. The limit for this model is 288000 tokens.",
        ),
        (
            "Cohere prompt",
            "too many tokens: total number of tokens in the prompt cannot exceed 4081 - received 5000.",
        ),
        (
            "GitHub Copilot",
            "prompt token count of 200000 exceeds the limit of 128000",
        ),
        (
            "GitHub Models",
            "Request body too large for gpt-4o model. Max size: 8000 tokens.",
        ),
        ("GitHub Models code", " tokens_limit_reached"),
        (
            "llama.cpp",
            "the request exceeds the available context size, try increasing it",
        ),
        ("llama.cpp type", "exceed_context_size_error 400"),
        ("llama.cpp slot", "Context size has been exceeded."),
        (
            "LM Studio",
            "The number of tokens to keep from the initial prompt is greater than the context length.",
        ),
        (
            "LM Studio load",
            "Trying to keep the first 6269 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens, which is not enough.",
        ),
        (
            "Ollama",
            "prompt too long; exceeded max context length by 100918 tokens",
        ),
        (
            "Ollama runner",
            "the input length exceeds the context length",
        ),
        (
            "vLLM",
            "The decoder prompt (length 88049) is longer than the maximum model length of 32768.",
        ),
        (
            "vLLM request",
            "You passed 30001 input tokens and requested 4000 output tokens. However, the model's context length is only 32768 tokens, resulting in a maximum input length of 28768 tokens.",
        ),
        (
            "SGLang",
            "Requested token count exceeds the model's maximum context length of 131072 tokens. You requested a total of 140000 tokens.",
        ),
        (
            "SGLang input",
            "Input length (265330 tokens) exceeds the maximum allowed length (262138 tokens). Use a shorter input.",
        ),
        (
            "Poolside",
            "Input length 131393 exceeds the maximum allowed input length of 131040 tokens.",
        ),
        (
            "DeepInfra",
            "Requested input length 140000 exceeds maximum input length 131071",
        ),
        (
            "MiniMax",
            "invalid params, context window exceeds limit (2013)",
        ),
        (
            "Kimi",
            "Invalid request: Your request exceeded model token limit: 262144 (requested: 300000)",
        ),
        (
            "z.ai 1210",
            "tokens in request more than max tokens allowed",
        ),
        ("z.ai 1261", "Prompt exceeds max length"),
        ("z.ai short", "Prompt 超长"),
        ("z.ai finish", "model_context_window_exceeded"),
        (
            "Qwen",
            "<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 258048]",
        ),
        (
            "Novita",
            "The input is longer than the model's context length",
        ),
        (
            "Cloudflare",
            "AiError: The estimated number of input and maximum output tokens (35000) exceeded this model context window limit (24000)",
        ),
        (
            "SiliconFlow",
            "length of prompt_tokens (140000) must be less than max_seq_len (131072).",
        ),
        (
            "watsonx",
            "the number of input tokens 9000 cannot exceed the total tokens limit 8192 for this model",
        ),
        (
            "Doubao",
            "Total tokens of image and text exceed max message tokens. Request id: 0217",
        ),
        (
            "ds4",
            "Prompt has 32769 tokens, but the configured context size is 32768 tokens",
        ),
        (
            "ds4 code",
            "Prompt tokens (40000) exceeds context size (32768)",
        ),
        (
            "TabbyAPI",
            "Prompt length 5000 is greater than max_seq_len 4096",
        ),
        ("Qianfan", "prompt tokens too long"),
        (
            "LiteLLM",
            "litellm.ContextWindowExceededError: litellm.BadRequestError: too long",
        ),
        ("Perplexity", "Context length exceeded"),
        ("nginx", "Request Entity Too Large"),
        ("Express", "Payload Too Large"),
        ("gateway", "Max token limit exceeded"),
    ];

    /// Messages with similar words that compaction does not help.
    const OTHERS: &[(&str, &str)] = &[
        (
            "OpenAI rate",
            "Rate limit reached for gpt-5.1 in organization org-1 on tokens per min (TPM): Limit 30000, Used 29000, Requested 2000. Please try again in 2s.",
        ),
        (
            "Anthropic rate",
            "This request would exceed your organization's rate limit of 30,000 input tokens per minute. Please reduce the prompt length or try again later.",
        ),
        (
            "Bedrock rate",
            "Throttling error: Too many tokens, please wait before trying again.",
        ),
        (
            "Bedrock day",
            "Too many tokens per day, please wait before trying again.",
        ),
        (
            "Groq day",
            "Rate limit reached for model `x` on tokens per day (TPD): Limit 100000, Used 99000, Requested 3000.",
        ),
        (
            "plain rate",
            "Too many requests: token limit exceeded for this minute",
        ),
        (
            "Cohere output",
            "too many tokens: max tokens must be less than or equal to 4096, the maximum output for this model - received 8192.",
        ),
        (
            "output limit",
            "max_tokens: 64000 > 8192, which is the maximum allowed number of output tokens for this model",
        ),
        (
            "OpenAI tool",
            "Invalid 'tools[0].function.description': string too long. Expected a string with maximum length 1024, but got a string with length 1100 instead.",
        ),
        (
            "OpenAI id",
            "Invalid 'messages[1].tool_calls[0].id': string too long. Expected a string with maximum length 40, but got a string with length 51 instead.",
        ),
        (
            "OpenAI cache key",
            "Invalid 'prompt_cache_key': string too long. Expected a string with maximum length 64, but got a string with length 80 instead.",
        ),
        (
            "Bedrock tool",
            "Malformed input request: #/tools/0/name: expected maxLength: 64, actual: 80, please reformat your input and try again.",
        ),
        (
            "images",
            "At most 1 image(s) may be provided in one request.",
        ),
        ("crash", "model runner has unexpectedly stopped"),
        ("none", ""),
    ];

    /// Quirk 57: one message of each provider and server.
    // proves: ANTHROPIC-57, CHAT-57, RESPONSES-57, GEMINI-57
    #[test]
    fn overflow_texts_of_all_servers_are_recognised() {
        for (server, text) in OVERFLOWS {
            assert!(is_overflow(&text.to_lowercase()), "{server}: {text}");
        }
        let servers: std::collections::BTreeSet<_> = OVERFLOWS
            .iter()
            .filter_map(|(server, _)| server.split(' ').next())
            .collect();
        assert!(servers.len() >= 38, "{} servers", servers.len());
    }

    /// Quirk 57: limits per time are not the context window.
    #[test]
    fn rate_limits_are_not_overflows() {
        for (server, text) in OTHERS {
            assert!(!is_overflow(&text.to_lowercase()), "{server}: {text}");
        }
        let rates = OTHERS
            .iter()
            .filter(|(server, _)| server.ends_with("rate") || server.ends_with("day"));
        for (server, text) in rates {
            assert!(is_rate_limit(&text.to_lowercase()), "{server}: {text}");
        }
    }

    /// Every phrase is needed by at least one message.
    #[test]
    fn every_phrase_matches_a_message() {
        for phrase in OVERFLOW_PHRASES {
            let texts = OVERFLOWS.iter().map(|(_, text)| text.to_lowercase());
            let uses = texts.filter(|text| contains(text, phrase)).count();
            assert!(uses > 0, "{phrase:?}");
        }
    }
}
