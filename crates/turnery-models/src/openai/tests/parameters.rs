//! Tests the parameters of requests, host by host.

use super::*;

/// Returns the fields of a request other than those that all hosts get.
fn parameters(host: &str, model: &str, request: &ModelRequest) -> Value {
    let mut body = body(host, model, request);
    let fields = body.as_object_mut().unwrap();
    for common in [
        "model",
        "messages",
        "stream",
        "stream_options",
        "tools",
        "prompt_cache_key",
        "max_tokens",
        "max_completion_tokens",
    ] {
        fields.remove(common);
    }
    body
}

fn at_level(level: Thinking) -> ModelRequest {
    let mut request = request(vec![user("one")]);
    request.thinking = level;
    request.tools = Arc::new([]);
    request
}

/// Quirks 28, 33 and 34: the thinking level in the words of each host, from its documentation.
// proves: CHAT-21, CHAT-33, CHAT-34, CHAT-81
#[test]
fn thinking_level_is_said_in_the_host_s_words() {
    let effort = |word: &str| json!({"reasoning_effort": word});
    let nothing = json!({});
    let template = |is_on: bool| json!({"chat_template_kwargs": {"enable_thinking": is_on}});
    let cases = [
        // host, model, default, off, low, high
        (
            UNKNOWN,
            "Qwen/Qwen3-8B",
            [
                nothing.clone(),
                template(false),
                template(true),
                template(true),
            ],
        ),
        (
            UNKNOWN,
            "qwen3-coder-30b",
            [const { Value::Null }; 4].map(|_| json!({})),
        ),
        (
            "http://127.0.0.1:11434/v1",
            "qwen3:8b",
            [
                nothing.clone(),
                effort("none"),
                effort("low"),
                effort("high"),
            ],
        ),
        (
            OPENAI,
            "my-model",
            [
                nothing.clone(),
                effort("none"),
                effort("low"),
                effort("high"),
            ],
        ),
        (
            AZURE,
            "o3",
            [
                nothing.clone(),
                effort("low"),
                effort("low"),
                effort("high"),
            ],
        ),
        (
            OPENROUTER,
            "z-ai/glm-5.2",
            [
                nothing.clone(),
                json!({"reasoning": {"effort": "none"}}),
                json!({"reasoning": {"effort": "low"}}),
                json!({"reasoning": {"effort": "high"}}),
            ],
        ),
        (
            OPENROUTER,
            "openai/gpt-5",
            [
                nothing.clone(),
                json!({"reasoning": {"effort": "minimal"}}),
                json!({"reasoning": {"effort": "low"}}),
                json!({"reasoning": {"effort": "high"}}),
            ],
        ),
        (
            DEEPSEEK,
            "deepseek-v4-pro",
            [
                nothing.clone(),
                json!({"thinking": {"type": "disabled"}}),
                json!({"thinking": {"type": "enabled"}, "reasoning_effort": "low"}),
                json!({"thinking": {"type": "enabled"}, "reasoning_effort": "high"}),
            ],
        ),
        (
            DEEPSEEK,
            "deepseek-chat",
            [const { Value::Null }; 4].map(|_| json!({})),
        ),
        (
            MOONSHOT,
            "kimi-k2.5",
            [
                nothing.clone(),
                json!({"thinking": {"type": "disabled"}}),
                json!({"thinking": {"type": "enabled"}}),
                json!({"thinking": {"type": "enabled"}}),
            ],
        ),
        (
            MOONSHOT,
            "kimi-k2.6",
            [
                json!({"thinking": {"type": "enabled", "keep": "all"}}),
                json!({"thinking": {"type": "disabled"}}),
                json!({"thinking": {"type": "enabled", "keep": "all"}}),
                json!({"thinking": {"type": "enabled", "keep": "all"}}),
            ],
        ),
        // Rejects `disabled`.
        (
            MOONSHOT,
            "kimi-k2.7-code",
            [(); 4].map(|()| json!({"thinking": {"type": "enabled", "keep": "all"}})),
        ),
        // Rejects `thinking` beside an effort.
        (
            MOONSHOT,
            "kimi-k3",
            [nothing.clone(), effort("low"), effort("low"), effort("max")],
        ),
        (
            MOONSHOT,
            "kimi-k2-0905-preview",
            [(); 4].map(|()| json!({})),
        ),
        (
            "https://api.z.ai/api/coding/paas/v4",
            "glm-4.7",
            [
                json!({"thinking": {"type": "enabled", "clear_thinking": false}}),
                json!({"thinking": {"type": "disabled"}}),
                json!({"thinking": {"type": "enabled", "clear_thinking": false}}),
                json!({"thinking": {"type": "enabled", "clear_thinking": false}}),
            ],
        ),
        (
            "https://open.bigmodel.cn/api/paas/v4",
            "glm-5.3",
            [
                json!({"thinking": {"type": "enabled", "clear_thinking": false}}),
                json!({"thinking": {"type": "enabled", "clear_thinking": false}, "reasoning_effort": "low"}),
                json!({"thinking": {"type": "enabled", "clear_thinking": false}, "reasoning_effort": "low"}),
                json!({"thinking": {"type": "enabled", "clear_thinking": false}, "reasoning_effort": "max"}),
            ],
        ),
        (
            "https://dashscope.aliyuncs.com/compatible-mode/v1",
            "qwen3.7-plus",
            [
                nothing.clone(),
                json!({"enable_thinking": false}),
                json!({"enable_thinking": true}),
                json!({"enable_thinking": true}),
            ],
        ),
        (
            "https://dashscope-intl.aliyuncs.com/compatible-mode/v1",
            "qwen3-coder-plus",
            [(); 4].map(|()| json!({})),
        ),
        (
            "https://api.together.xyz/v1",
            "moonshotai/Kimi-K2.6",
            [
                nothing.clone(),
                json!({"reasoning": {"enabled": false}}),
                json!({"reasoning": {"enabled": true}}),
                json!({"reasoning": {"enabled": true}}),
            ],
        ),
        (
            "https://api.together.ai/v1",
            "openai/gpt-oss-20b",
            [
                nothing.clone(),
                effort("low"),
                effort("low"),
                effort("high"),
            ],
        ),
        (
            "https://integrate.api.nvidia.com/v1",
            "nvidia/nemotron-3-super-120b-a12b",
            [
                nothing.clone(),
                json!({"chat_template_kwargs": {"enable_thinking": false}}),
                json!({"chat_template_kwargs": {"enable_thinking": true}}),
                json!({"chat_template_kwargs": {"enable_thinking": true}}),
            ],
        ),
        (
            "https://integrate.api.nvidia.com/v1",
            "deepseek-ai/deepseek-v4-pro",
            [
                nothing.clone(),
                effort("none"),
                effort("high"),
                effort("max"),
            ],
        ),
        (
            GROQ,
            "openai/gpt-oss-120b",
            [
                nothing.clone(),
                effort("low"),
                effort("low"),
                effort("high"),
            ],
        ),
        (
            GROQ,
            "qwen/qwen3-32b",
            [
                json!({"reasoning_format": "parsed"}),
                json!({"reasoning_format": "parsed", "reasoning_effort": "none"}),
                json!({"reasoning_format": "parsed", "reasoning_effort": "default"}),
                json!({"reasoning_format": "parsed", "reasoning_effort": "default"}),
            ],
        ),
        (GROQ, "llama-3.3-70b-versatile", [(); 4].map(|()| json!({}))),
        (
            CEREBRAS,
            "gpt-oss-120b",
            [
                nothing.clone(),
                effort("low"),
                effort("low"),
                effort("high"),
            ],
        ),
        (
            CEREBRAS,
            "zai-glm-4.7",
            [
                nothing.clone(),
                effort("none"),
                nothing.clone(),
                nothing.clone(),
            ],
        ),
        (
            "https://api.x.ai/v1",
            "grok-4.3",
            [
                nothing.clone(),
                effort("none"),
                effort("low"),
                effort("high"),
            ],
        ),
        (
            "https://api.x.ai/v1",
            "grok-4.5",
            [
                nothing.clone(),
                effort("low"),
                effort("low"),
                effort("high"),
            ],
        ),
        (
            "https://api.x.ai/v1",
            "grok-build-0.1",
            [(); 4].map(|()| json!({})),
        ),
        (
            MISTRAL,
            "mistral-medium-latest",
            [
                nothing.clone(),
                effort("none"),
                effort("high"),
                effort("high"),
            ],
        ),
        (
            MISTRAL,
            "devstral-medium-latest",
            [(); 4].map(|()| json!({})),
        ),
        (
            "https://api.fireworks.ai/inference/v1",
            "accounts/fireworks/models/glm-5p2",
            [
                nothing.clone(),
                effort("none"),
                effort("low"),
                effort("high"),
            ],
        ),
        (
            "https://api.perplexity.ai",
            "sonar-pro",
            [(); 4].map(|()| json!({})),
        ),
        (
            "https://notgroq.com/openai/v1",
            "qwen/qwen3-32b",
            [
                nothing.clone(),
                template(false),
                template(true),
                template(true),
            ],
        ),
    ];
    let levels = [
        Thinking::Default,
        Thinking::Off,
        Thinking::Low,
        Thinking::High,
    ];
    for (host, model, expected) in cases {
        for (level, expected) in levels.into_iter().zip(expected) {
            let sent = parameters(host, model, &at_level(level));
            assert_eq!(sent, expected, "{host} {model} {level:?}");
        }
    }
}

/// Quirk 36.
// proves: CHAT-36
#[test]
fn newer_openai_models_do_not_think_beside_tools() {
    let mut with_tools = request(vec![user("one")]);
    with_tools.thinking = Thinking::High;
    for (host, model, effort) in [
        (OPENAI, "gpt-5.1", "high"),
        (OPENAI, "gpt-5.3", "high"),
        (OPENAI, "gpt-5.4", "none"),
        (AZURE, "gpt-5.6-terra", "none"),
    ] {
        let sent = body(host, model, &with_tools);
        assert_eq!(sent["reasoning_effort"], effort, "{model}");
        let without = body(host, model, &at_level(Thinking::High));
        assert_eq!(without["reasoning_effort"], "high", "{model}");
    }
    // They think at their default level too.
    with_tools.thinking = Thinking::Default;
    assert_eq!(
        body(OPENAI, "gpt-5.6", &with_tools)["reasoning_effort"],
        "none"
    );
    assert_eq!(
        body(OPENAI, "gpt-5.1", &with_tools)["reasoning_effort"],
        json!(null)
    );
    assert_eq!(
        body(OPENROUTER, "openai/gpt-5.6", &with_tools)["reasoning"],
        json!(null)
    );
}

/// Quirk 53.
// proves: CHAT-53, CHAT-82
#[test]
fn output_limit_is_sent_in_the_host_s_field() {
    for (host, field) in [
        (OPENAI, "max_completion_tokens"),
        (AZURE, "max_completion_tokens"),
        (GROQ, "max_completion_tokens"),
        (CEREBRAS, "max_completion_tokens"),
        ("https://api.x.ai/v1", "max_completion_tokens"),
        (DEEPSEEK, "max_tokens"),
        (MISTRAL, "max_tokens"),
        (MOONSHOT, "max_tokens"),
        ("https://api.z.ai/api/paas/v4", "max_tokens"),
        ("https://router.huggingface.co/v1", "max_tokens"),
        ("https://api.deepinfra.com/v1/openai", "max_tokens"),
        ("https://api.sambanova.ai/v1", "max_tokens"),
        ("https://api.tokenfactory.nebius.com/v1", "max_tokens"),
    ] {
        let sent = body(host, "gpt-oss-120b", &request(vec![user("one")]));
        assert_eq!(sent[field], 1000, "{host}");
        let other = ["max_tokens", "max_completion_tokens"]
            .into_iter()
            .find(|it| *it != field);
        assert_eq!(sent[other.unwrap()], json!(null), "{host}");
    }
    // These reserve credit or context for the whole limit.
    for host in [OPENROUTER, "https://ai-gateway.vercel.sh/v1", UNKNOWN] {
        let sent = body(host, "gpt-oss-120b", &request(vec![user("one")])).to_string();
        assert!(!sent.contains("max_"), "{host}: {sent}");
    }
    let sent = body(
        "https://acme.services.ai.azure.com/openai/v1",
        "mistral-medium-latest",
        &request(vec![user("one")]),
    );
    assert!(sent["max_tokens"].is_u64(), "Mistral's models on Azure");
}

/// Quirk 54: no host gets `store`, `developer` or `parallel_tool_calls`, and Mistral no `stream_options`.
// proves: CHAT-54
#[test]
fn no_parameter_is_sent_that_some_host_rejects() {
    let usage = json!({"include_usage": true});
    for (host, model, stream_options) in [
        (OPENAI, "gpt-5", &usage),
        (GROQ, "openai/gpt-oss-20b", &usage),
        (CEREBRAS, "gpt-oss-120b", &usage),
        (MISTRAL, "mistral-large-latest", &json!(null)),
        (UNKNOWN, "m1", &usage),
    ] {
        let sent = body(host, model, &request(vec![user("one")]));
        assert_eq!(sent["stream_options"], *stream_options, "{host}");
        for refused in ["store", "parallel_tool_calls", "metadata", "n"] {
            assert_eq!(sent[refused], json!(null), "{host}");
        }
        assert_eq!(sent["messages"][0]["role"], "system", "{host}");
        assert_eq!(
            sent["tools"][0]["function"]["strict"],
            json!(null),
            "{host}"
        );
    }
}

/// Quirk 19: a temperature is sent only where it is accepted.
// proves: CHAT-19
#[test]
fn temperature_is_not_sent_where_it_is_refused() {
    let cases = [
        // host, model, level, is sent
        (OPENAI, "gpt-4.1", Thinking::Default, true),
        (OPENAI, "gpt-5", Thinking::Off, false),
        (OPENAI, "o4-mini", Thinking::Default, false),
        (OPENROUTER, "openai/o3", Thinking::Default, false),
        (OPENAI, "gpt-5-chat-latest", Thinking::Default, true),
        (MOONSHOT, "kimi-k2.5", Thinking::Off, false),
        (MOONSHOT, "kimi-k2-0905-preview", Thinking::Default, true),
        (
            OPENROUTER,
            "anthropic/claude-opus-4.8",
            Thinking::Default,
            false,
        ),
        (
            OPENROUTER,
            "anthropic/claude-sonnet-4.5",
            Thinking::Default,
            true,
        ),
        (
            OPENROUTER,
            "anthropic/claude-sonnet-4.5",
            Thinking::Low,
            false,
        ),
        (DEEPSEEK, "deepseek-v4-pro", Thinking::High, true),
        (UNKNOWN, "m1", Thinking::High, true),
    ];
    for (host, model, level, is_sent) in cases {
        let mut request = at_level(level);
        request.temperature = Some(0.25);
        let sent = &body(host, model, &request)["temperature"];
        let expected = if is_sent { json!(0.25) } else { json!(null) };
        assert_eq!(*sent, expected, "{host} {model} {level:?}");
    }
}

/// Quirks 12 and 22: tools stay in the request, and a call is forced or forbidden where the host can do so.
// proves: CHAT-12, CHAT-22
#[test]
fn tool_choice_is_sent_where_it_is_accepted() {
    let (none, required) = (json!("none"), json!("required"));
    let cases = [
        // host, model, level, for `None`, for `Required`
        (OPENAI, "gpt-5", Thinking::High, &none, &required),
        (
            DEEPSEEK,
            "deepseek-v4-pro",
            Thinking::Default,
            &none,
            &json!(null),
        ),
        (DEEPSEEK, "deepseek-v4-pro", Thinking::Off, &none, &required),
        (
            DEEPSEEK,
            "deepseek-chat",
            Thinking::Default,
            &none,
            &required,
        ),
        (
            DEEPSEEK,
            "deepseek-reasoner",
            Thinking::Default,
            &none,
            &json!(null),
        ),
        (
            MOONSHOT,
            "kimi-k2.6",
            Thinking::Default,
            &none,
            &json!(null),
        ),
        (MOONSHOT, "kimi-k2.6", Thinking::Off, &none, &required),
        (
            MOONSHOT,
            "kimi-k2.7-code",
            Thinking::Off,
            &none,
            &json!(null),
        ),
        (
            "https://api.z.ai/api/paas/v4",
            "glm-4.7",
            Thinking::Off,
            &json!(null),
            &json!(null),
        ),
        (
            CEREBRAS,
            "gpt-oss-120b",
            Thinking::Default,
            &none,
            &json!(null),
        ),
        (UNKNOWN, "m1", Thinking::Default, &none, &required),
    ];
    for (host, model, level, for_none, for_required) in cases {
        for (choice, expected) in [
            (ToolChoice::Auto, &json!(null)),
            (ToolChoice::None, for_none),
            (ToolChoice::Required, for_required),
        ] {
            let mut request = request(vec![user("one")]);
            request.thinking = level;
            request.tool_choice = choice;
            let sent = body(host, model, &request);
            assert_eq!(sent["tool_choice"], *expected, "{host} {model} {choice:?}");
            assert_eq!(sent["tools"][0]["function"]["name"], "read");
        }
    }
}
