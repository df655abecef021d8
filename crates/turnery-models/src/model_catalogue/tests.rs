//! Tests of the data file and of the look-ups in it.

use super::*;
use crate::{ProviderConfig, anthropic::model_rules};

fn price(url: &str, model: &str) -> Option<Price> {
    price_at(url, model).map(|known| known.price)
}

fn entry(model: &CatalogueModel) -> &CatalogueEntry {
    model.entry().unwrap()
}

/// Returns a price without tiers. Unit: millionths.
fn flat(input: u64, output: u64, cache_read: u64, cache_write: u64) -> Option<Price> {
    Some(Price {
        input,
        output,
        cache_read,
        cache_write,
        tiers: &[],
    })
}

#[test]
fn file_is_read_whole() {
    assert!(CATALOGUE.providers.len() >= 15);
    let models = CATALOGUE.providers.iter().map(|it| it.models.len());
    assert!(models.clone().sum::<usize>() >= 250);
    let families = CATALOGUE.families.len();
    assert!(families >= 40);
    // The date is in a row of its own.
    let rows = models.sum::<usize>() + CATALOGUE.providers.len() + families + 1;
    assert_eq!(MODELS.lines().count(), rows);
    assert!(CATALOGUE.date.parse::<chrono::NaiveDate>().is_ok());
    for provider in &CATALOGUE.providers {
        assert!(
            provider.source.starts_with("https://"),
            "{}",
            provider.source
        );
        assert!(!provider.domains.is_empty());
        for model in &provider.models {
            assert!(model.entry().is_some(), "{}", model.name);
        }
    }
}

/// Limits, modalities and prices from the pages of the providers.
#[test]
fn well_known_rows_are_those_of_the_docs() {
    let anthropic = "https://api.anthropic.com";
    let openai = "https://api.openai.com/v1";
    let google = "https://generativelanguage.googleapis.com/v1beta";
    let limits = |model| look_up(model).map(|known| (known.context, known.output));
    assert_eq!(limits("claude-sonnet-4-5"), Some((200_000, 64_000)));
    assert_eq!(limits("claude-opus-4-8"), Some((1_000_000, 128_000)));
    assert_eq!(limits("gpt-5.1"), Some((400_000, 128_000)));
    assert_eq!(limits("gpt-4o-mini"), Some((128_000, 16_384)));
    assert_eq!(limits("gemini-2.5-pro"), Some((1_048_576, 65_536)));
    assert_eq!(
        price(anthropic, "claude-sonnet-4-5"),
        flat(3_000_000, 15_000_000, 300_000, 3_750_000)
    );
    assert_eq!(
        price(anthropic, "claude-opus-4-8"),
        flat(5_000_000, 25_000_000, 500_000, 6_250_000)
    );
    assert_eq!(
        price(anthropic, "claude-haiku-4-5-20251001"),
        flat(1_000_000, 5_000_000, 100_000, 1_250_000)
    );
    // Writing to the cache costs nothing extra.
    assert_eq!(
        price(openai, "gpt-5.1-2025-11-13"),
        flat(1_250_000, 10_000_000, 125_000, 1_250_000)
    );
    assert_eq!(
        price(openai, "gpt-4o-mini"),
        flat(150_000, 600_000, 75_000, 150_000)
    );
    let pro = price(google, "gemini-2.5-pro").unwrap();
    assert_eq!((pro.input, pro.output), (1_250_000, 10_000_000));
    let tiers: Vec<_> = pro
        .tiers
        .iter()
        .map(|it| (it.above, it.input, it.output))
        .collect();
    assert_eq!(tiers, [(200_000, 2_500_000, 15_000_000)]);
    let large = price(openai, "gpt-5.5").unwrap();
    let tiers: Vec<_> = large
        .tiers
        .iter()
        .map(|it| (it.above, it.input, it.cache_read))
        .collect();
    assert_eq!(tiers, [(272_000, 10_000_000, 1_000_000)]);
}

/// A price is that of one provider for one model: neither another server of that name nor another model of the family has
/// it, and subscriptions have none.
#[test]
fn price_needs_the_provider_and_the_model() {
    let openai = "https://api.openai.com/v1";
    assert!(price(openai, "gpt-5").is_some());
    assert!(price("https://eu.api.openai.com/v1", "gpt-5").is_some());
    for (url, model) in [
        ("http://127.0.0.1:8080/v1", "gpt-5"),
        ("https://openrouter.ai/api/v1", "openai/gpt-5"),
        ("https://notopenai.com/v1", "gpt-5"),
        (openai, "gpt-5-imagined"),
        (openai, "gpt-5-20261301"),
        (openai, "claude-sonnet-4-5"),
        (openai, "gpt-audio"),
        ("https://api.z.ai/api/coding/paas/v4", "glm-4.6"),
    ] {
        assert_eq!(price(url, model), None, "{url} {model}");
    }
    assert!(price("https://api.z.ai/api/paas/v4", "glm-4.6").is_some());
}

/// Every model that turnery lists by itself has facts, and a price where the file has prices of its provider.
#[test]
fn each_listed_model_has_facts() {
    for provider in ProviderConfig::standard_from_env(&|_| None) {
        let url = &provider.base_url;
        let in_file = |it: &&CatalogueProvider| {
            let host = host_of(url).unwrap_or_default();
            it.domains.iter().any(|domain| is_in_domain(&host, domain))
        };
        let listed = CATALOGUE.providers.iter().find(in_file);
        let has_prices =
            listed.is_some_and(|it| it.models.iter().any(|it| entry(it).price.is_some()));
        let has_prices = has_prices && !url.contains("/coding");
        for model in &provider.models {
            assert!(look_up(model).is_some(), "{}/{model}", provider.name);
            let price = price_at(url, model);
            assert!(
                price.is_some() || !has_prices,
                "no price of {}/{model}",
                provider.name
            );
        }
    }
}

#[test]
fn numbers_of_the_file_are_plausible() {
    let models = CATALOGUE.providers.iter().flat_map(|it| &it.models);
    for model in models {
        let (name, model) = (model.name, entry(model));
        let facts = &model.facts;
        assert!(facts.output > 0 && facts.output <= facts.context, "{name}");
        let Some(price) = model.price else { continue };
        // At most 1000 dollars for a million tokens, and the cache no dearer than twice the input.
        let most = 1_000_000_000;
        assert!(price.input <= most && price.output <= most, "{name}");
        assert!(price.cache_read <= price.input.max(1), "{name}");
        assert!(price.cache_write <= price.input * 2, "{name}");
        let mut above = 0;
        for tier in price.tiers {
            assert!(tier.above > above, "{name}");
            above = tier.above;
        }
    }
}

/// The rules by which requests are written agree with the file.
#[test]
fn thinking_of_claude_agrees_with_the_rules() {
    let models = CATALOGUE.providers.iter().flat_map(|it| &it.models);
    let claude = models.filter(|model| model.name.starts_with("claude-"));
    let mut count = 0;
    for model in claude {
        count += 1;
        let name = model.name;
        let thinking = &entry(model).facts.thinking;
        let is_adaptive = matches!(thinking, Some(ThinkingControl::Adaptive(_)));
        assert_eq!(is_adaptive, model_rules::is_adaptive(name), "{name}");
    }
    assert!(count > 15, "{count}");
}

#[test]
fn thinking_is_described() {
    let thinking = |model| look_up(model).and_then(|known| known.thinking.clone());
    let levels = |all: &[ThinkingLevel]| Some(ThinkingControl::Levels(all.to_vec()));
    use ThinkingLevel::{High, Low, Medium, Minimal};
    assert_eq!(thinking("gpt-5"), levels(&[Minimal, Low, Medium, High]));
    assert_eq!(thinking("gpt-4o"), None);
    // By their names: these rows of the file say nothing of it.
    assert_eq!(thinking("gemini-2.0-flash"), None);
    assert_eq!(thinking("gemini-3-pro-preview"), levels(&[Low, High]));
    let minimal = levels(&[Minimal, Low, Medium, High]);
    assert_eq!(thinking("gemini-3.1-flash-lite"), minimal);
    for (model, min, max) in [
        ("gemini-2.5-pro", 128, 32_768),
        ("gemini-2.5-flash", 0, 24_576),
    ] {
        let budget = ThinkingBudget {
            min: Some(min),
            max: Some(max),
        };
        assert_eq!(
            thinking(model),
            Some(ThinkingControl::Budget(budget)),
            "{model}"
        );
    }
    let budget = ThinkingBudget {
        min: Some(1024),
        max: None,
    };
    assert_eq!(
        thinking("claude-sonnet-4-5"),
        Some(ThinkingControl::Budget(budget))
    );
}

#[test]
fn unlisted_names_have_the_facts_of_their_family() {
    let limits = |name| look_up(name).map(|known| (known.context, known.output));
    assert_eq!(
        limits("claude-sonnet-4-5-20250929"),
        Some((200_000, 64_000))
    );
    assert_eq!(limits("claude-sonnet-4-20250514"), Some((200_000, 64_000)));
    assert_eq!(limits("claude-opus-9"), Some((1_000_000, 64_000)));
    assert_eq!(limits("anthropic/claude-3.5-haiku"), Some((200_000, 8_192)));
    assert_eq!(
        limits("openai/gpt-5.1-codex:nitro"),
        Some((400_000, 128_000))
    );
    assert_eq!(limits("gpt-4.1-mini"), Some((1_047_576, 32_768)));
    assert_eq!(limits("qwen3:8b"), None);
    assert_eq!(limits(""), None);
}

#[test]
fn only_audio_models_accept_audio() {
    let listens = |name| look_up(name).is_some_and(|known| known.audio);
    for name in [
        "gpt-audio",
        "gpt-audio-mini-2025-10-06",
        "gpt-4o-audio-preview",
        "gpt-4o-mini-audio-preview-2024-12-17",
        "openai/gpt-4o-audio-preview",
    ] {
        assert!(listens(name), "{name}");
    }
    for name in [
        "gpt-4o",
        "gpt-4o-mini",
        "gpt-5.1",
        "claude-opus-4-8",
        "x-audio",
    ] {
        assert!(!listens(name), "{name}");
    }
}
