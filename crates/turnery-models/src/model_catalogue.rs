//! Built-in facts about models and their prices, looked up by name without a request.
//!
//! The facts are in `data/models.json`, by the domain of the provider's servers. They were collected from the pages named
//! there at the date of the file; the user's configuration and what a server reports take precedence.

use crate::{model_overrides::strip_date, providers::is_host_in};
use serde::{Deserialize, Serialize};
use std::{
    collections::{BTreeMap, HashMap},
    sync::LazyLock,
};
use turnery_engine::{Price, PriceTier};

/// Text of the catalogue.
const MODELS: &str = include_str!("../data/models.json");

static CATALOGUE: LazyLock<Catalogue> = LazyLock::new(|| Catalogue::parse(MODELS));

/// Facts about a model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ModelFacts {
    /// Size of the context window. Unit: tokens.
    pub context: u32,
    /// Largest response. Unit: tokens.
    pub output: u32,
    /// True if the model accepts images.
    pub images: bool,
    /// True if the model accepts audio.
    pub audio: bool,
    /// True if the model accepts documents (PDF).
    pub documents: bool,
    /// True if the model can think.
    pub reasoning: bool,
    /// How the model's thinking is controlled; `None` if it does not think.
    pub thinking: Option<ThinkingControl>,
}

/// How a model's thinking is controlled.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ThinkingControl {
    /// The model always thinks, and there is no control.
    Always,
    /// Thinking is switched on and off.
    Toggle,
    /// Thinking takes one of these levels.
    Levels(Vec<ThinkingLevel>),
    /// The model decides itself how long it thinks; the level guides it.
    Adaptive(Vec<ThinkingLevel>),
    /// Thinking takes a budget of tokens.
    Budget(ThinkingBudget),
}

/// Level of thinking as providers name it, from none to most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names say it")]
pub enum ThinkingLevel {
    None,
    Minimal,
    Low,
    Medium,
    High,
    Xhigh,
    Max,
}

/// Limits of a thinking budget. Unit: tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ThinkingBudget {
    /// Smallest budget; 0 switches thinking off.
    pub min: Option<u32>,
    /// Largest budget.
    pub max: Option<u32>,
}

/// A built-in price, with its origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CataloguePrice {
    /// The price.
    pub price: Price,
    /// Page of the provider that states its prices.
    pub source: &'static str,
    /// Date of the price, as `YYYY-MM-DD`.
    pub date: &'static str,
}

/// The parsed catalogue.
#[derive(Default)]
struct Catalogue {
    date: &'static str,
    providers: Vec<CatalogueProvider>,
    /// Index into `providers`, and the key of the model there, by normalized name. Providers are listed with the makers
    /// of models first, so a name that several serve has the maker's facts.
    names: HashMap<String, (usize, String)>,
    /// Prefixes of normalized names, and the model whose facts apply to unlisted names with that prefix.
    families: Vec<(&'static str, &'static str)>,
}

struct CatalogueProvider {
    domains: Vec<&'static str>,
    source: &'static str,
    /// By normalized name.
    models: HashMap<String, CatalogueModel>,
}

struct CatalogueModel {
    facts: ModelFacts,
    price: Option<Price>,
}

/// The file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CatalogueFile<'a> {
    #[serde(borrow)]
    date: &'a str,
    #[serde(borrow)]
    providers: Vec<ProviderRow<'a>>,
    #[serde(borrow)]
    families: Vec<(&'a str, &'a str)>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ProviderRow<'a> {
    #[serde(borrow)]
    domains: Vec<&'a str>,
    #[serde(borrow)]
    source: &'a str,
    #[serde(borrow)]
    models: BTreeMap<&'a str, ModelRow>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ModelRow {
    context: u32,
    output: u32,
    #[serde(default)]
    images: bool,
    #[serde(default)]
    audio: bool,
    #[serde(default)]
    documents: bool,
    thinking: Option<ThinkingControl>,
    price: Option<PriceRow>,
}

/// Price of a million tokens. Unit: US dollars. The cache costs as much as other input unless it has a price.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PriceRow {
    input: f64,
    output: f64,
    cache_read: Option<f64>,
    cache_write: Option<f64>,
    #[serde(default)]
    above: Vec<TierRow>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TierRow {
    tokens: u64,
    input: f64,
    output: f64,
    cache_read: Option<f64>,
    cache_write: Option<f64>,
}

impl Catalogue {
    /// Parses the file. A file that cannot be read leaves the catalogue empty; a test prevents that.
    fn parse(text: &'static str) -> Self {
        let Ok(file) = serde_json::from_str::<CatalogueFile>(text) else {
            return Self::default();
        };
        let mut names = HashMap::new();
        let providers = file.providers.into_iter().enumerate();
        let providers = providers
            .map(|(at, row)| CatalogueProvider {
                domains: row.domains,
                source: row.source,
                models: row
                    .models
                    .into_iter()
                    .map(|(name, row)| {
                        let key = normalize(name);
                        names
                            .entry(bare_name(&key).to_owned())
                            .or_insert_with(|| (at, key.clone()));
                        (key, row.into())
                    })
                    .collect(),
            })
            .collect();
        Self {
            date: file.date,
            providers,
            names,
            families: file.families,
        }
    }

    fn facts(&self, name: &str) -> Option<&ModelFacts> {
        let (at, key) = self.names.get(name)?;
        Some(&self.providers.get(*at)?.models.get(key)?.facts)
    }
}

impl From<ModelRow> for CatalogueModel {
    fn from(row: ModelRow) -> Self {
        Self {
            facts: ModelFacts {
                context: row.context,
                output: row.output,
                images: row.images,
                audio: row.audio,
                documents: row.documents,
                reasoning: row.thinking.is_some(),
                thinking: row.thinking,
            },
            price: row.price.map(Price::from),
        }
    }
}

impl From<PriceRow> for Price {
    fn from(row: PriceRow) -> Self {
        let tiers = row.above.into_iter().map(|tier| PriceTier {
            above: tier.tokens,
            input: millionths(tier.input),
            output: millionths(tier.output),
            cache_read: millionths(tier.cache_read.unwrap_or(tier.input)),
            cache_write: millionths(tier.cache_write.unwrap_or(tier.input)),
        });
        let tiers: Vec<PriceTier> = tiers.collect();
        Self {
            input: millionths(row.input),
            output: millionths(row.output),
            cache_read: millionths(row.cache_read.unwrap_or(row.input)),
            cache_write: millionths(row.cache_write.unwrap_or(row.input)),
            // The catalogue is parsed once and lives as long as the process.
            tiers: Vec::leak(tiers),
        }
    }
}

/// Converts currency units to millionths.
fn millionths(units: f64) -> u64 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "saturates; prices are small and not negative"
    )]
    let millionths = (units * 1e6).round() as u64;
    millionths
}

/// Returns a name in the form in which names are compared: providers disagree on case and on dots in versions.
fn normalize(model: &str) -> String {
    model.to_ascii_lowercase().replace('.', "-")
}

/// Returns the name without the path of its maker (`anthropic/`) and without a variant (`:free`).
fn bare_name(name: &str) -> &str {
    let last = name.rsplit('/').next().unwrap_or(name);
    last.split(':').next().unwrap_or(last)
}

/// Returns the facts about `model`; accepts names of resellers (`anthropic/claude-sonnet-4.5`) and of releases. Unlisted
/// models have the facts of their family.
pub(crate) fn look_up(model: &str) -> Option<&'static ModelFacts> {
    let name = normalize(bare_name(model));
    let undated = strip_date(&name);
    let listed = CATALOGUE.facts(&name);
    listed.or_else(|| CATALOGUE.facts(undated?)).or_else(|| {
        let mut families = CATALOGUE.families.iter();
        let (_, model) = families.find(|(prefix, _)| name.starts_with(prefix))?;
        CATALOGUE.facts(bare_name(&normalize(model)))
    })
}

/// Returns true if the catalogue lists exactly this model, or the model that it is a release of.
#[must_use]
pub fn is_listed_model(model: &str) -> bool {
    let name = normalize(bare_name(model));
    let listed = |name: &str| CATALOGUE.names.contains_key(name);
    listed(&name) || strip_date(&name).is_some_and(listed)
}

/// Returns the price of exactly this model, or of the model that it is a release of, at the server at `base_url`.
pub(crate) fn price_at(base_url: &str, model: &str) -> Option<CataloguePrice> {
    let provider = CATALOGUE
        .providers
        .iter()
        .find(|it| it.domains.iter().any(|domain| is_host_in(base_url, domain)))?;
    // Subscriptions (GLM and Kimi coding plans) are served by the same hosts, but are not paid by the token.
    if base_url.contains("/coding") {
        return None;
    }
    let name = normalize(model);
    let undated = strip_date(&name).and_then(|name| provider.models.get(name));
    let found = provider.models.get(&name).or(undated)?;
    Some(CataloguePrice {
        price: found.price?,
        source: provider.source,
        date: CATALOGUE.date,
    })
}

/// Returns true if a Claude model can be made to call a tool with arguments that fit its schema (since 4.5).
pub(crate) fn enforces_schemas(model: &str) -> bool {
    is_claude_since(model, (4, 5))
}

/// Returns true for Claude models of this version (major, minor) or a later one, or whose name has no version.
fn is_claude_since(model: &str, first: (u32, u32)) -> bool {
    let Some(rest) = model
        .rsplit('/')
        .next()
        .and_then(|m| m.strip_prefix("claude-"))
    else {
        return false;
    };
    let mut version = rest
        .split(['-', '.', '@'])
        .filter(|word| word.len() <= 2)
        .filter_map(|word| word.parse::<u32>().ok());
    match (version.next(), version.next()) {
        (Some(major), minor) => (major, minor.unwrap_or(0)) >= first,
        (None, _) => true,
    }
}

#[cfg(test)]
mod tests;
