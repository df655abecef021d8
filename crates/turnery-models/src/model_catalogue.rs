//! Built-in facts about models and their prices, looked up by name without a request.
//!
//! The facts are in `data/models.jsonl`, by the domain of the provider's servers. They were collected from the pages named
//! there at the date of the file; the user's configuration and what a server reports take precedence.

use crate::{
    gemini::generation,
    model_overrides::strip_date,
    providers::{host_of, is_in_domain},
};
use serde::{Deserialize, Serialize, de::IgnoredAny};
use std::sync::{LazyLock, OnceLock};
use turnery_engine::{Price, PriceTier};

/// Text of the catalogue.
const MODELS: &str = include_str!("../data/models.jsonl");

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

/// The catalogue. The first look-up finds the rows of the file, and only those that are looked up are parsed: a process
/// needs few of the models.
struct Catalogue {
    date: &'static str,
    /// The makers of models come first, so a name that several serve has the maker's facts.
    providers: Vec<CatalogueProvider>,
    /// Prefixes of normalized names, and the model whose facts apply to unlisted names with that prefix.
    families: Vec<(&'static str, &'static str)>,
}

struct CatalogueProvider {
    domains: Vec<&'static str>,
    source: &'static str,
    models: Vec<CatalogueModel>,
}

/// Model of the catalogue, parsed when it is needed.
struct CatalogueModel {
    name: &'static str,
    /// Name without path and variant.
    bare_name: &'static str,
    row: &'static str,
    entry: OnceLock<Option<CatalogueEntry>>,
}

struct CatalogueEntry {
    facts: ModelFacts,
    price: Option<Price>,
}

/// Any row but a model's: a date, a provider whose models follow, or a family.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OutlineRow<'a> {
    date: Option<&'a str>,
    #[serde(borrow)]
    domains: Option<Vec<&'a str>>,
    source: Option<&'a str>,
    family: Option<&'a str>,
    like: Option<&'a str>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ModelRow {
    #[serde(rename = "model")]
    _model: IgnoredAny,
    context: u32,
    output: u32,
    #[serde(default)]
    images: bool,
    #[serde(default)]
    audio: bool,
    #[serde(default)]
    documents: bool,
    /// Left out for Gemini, whose models are told by their names.
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
    /// Finds the rows of the file. A row that cannot be read is left out; a test prevents that.
    fn parse(text: &'static str) -> Self {
        let mut date = "";
        let mut providers: Vec<CatalogueProvider> = Vec::new();
        let mut families = Vec::new();
        for line in text.lines() {
            if let Some(model) = CatalogueModel::find(line) {
                if let Some(provider) = providers.last_mut() {
                    provider.models.push(model);
                }
                continue;
            }
            match serde_json::from_str(line) {
                Ok(OutlineRow {
                    date: Some(read), ..
                }) => date = read,
                Ok(OutlineRow {
                    domains: Some(domains),
                    source: Some(source),
                    ..
                }) => providers.push(CatalogueProvider {
                    domains,
                    source,
                    models: Vec::new(),
                }),
                Ok(OutlineRow {
                    family: Some(family),
                    like: Some(like),
                    ..
                }) => families.push((family, like)),
                Ok(_) | Err(_) => {}
            }
        }
        Self {
            date,
            providers,
            families,
        }
    }

    /// Returns the model with this bare name.
    fn model(&self, name: &str) -> Option<&CatalogueModel> {
        let mut models = self.providers.iter().flat_map(|it| &it.models);
        models.find(|it| are_same_names(it.bare_name, name))
    }

    fn facts(&self, name: &str) -> Option<&ModelFacts> {
        Some(&self.model(name)?.entry()?.facts)
    }
}

impl CatalogueModel {
    /// Returns the model of a row; `None` if the row is another's.
    fn find(row: &'static str) -> Option<Self> {
        let rest = row.strip_prefix(r#"{"model": ""#)?;
        let name = rest.get(..rest.bytes().position(|byte| byte == b'"')?)?;
        Some(Self {
            name,
            bare_name: bare_name(name),
            row,
            entry: OnceLock::new(),
        })
    }

    /// Returns what the file says of the model. A row that cannot be read counts as missing; a test prevents that.
    fn entry(&self) -> Option<&CatalogueEntry> {
        let parse = || {
            let row: ModelRow = serde_json::from_str(self.row).ok()?;
            Some(row.into_entry(self.name))
        };
        self.entry.get_or_init(parse).as_ref()
    }
}

impl ModelRow {
    fn into_entry(self, name: &str) -> CatalogueEntry {
        let thinking = self.thinking.or_else(|| generation::thinking_control(name));
        CatalogueEntry {
            facts: ModelFacts {
                context: self.context,
                output: self.output,
                images: self.images,
                audio: self.audio,
                documents: self.documents,
                reasoning: thinking.is_some(),
                thinking,
            },
            price: self.price.map(Price::from),
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
            // Each row is parsed once, and lives as long as the process.
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

/// Returns the bytes of a name in the form in which names are compared: providers disagree on case and on dots in
/// versions.
fn normalized(name: &str) -> impl Iterator<Item = u8> {
    name.bytes().map(|byte| match byte {
        b'.' => b'-',
        byte => byte.to_ascii_lowercase(),
    })
}

fn are_same_names(a: &str, b: &str) -> bool {
    normalized(a).eq(normalized(b))
}

/// Returns the name without the path of its maker (`anthropic/`) and without a variant (`:free`).
fn bare_name(name: &str) -> &str {
    let start = name.bytes().rposition(|byte| byte == b'/');
    let last = start.and_then(|at| name.get(at + 1..)).unwrap_or(name);
    let end = last.bytes().position(|byte| byte == b':');
    end.and_then(|at| last.get(..at)).unwrap_or(last)
}

/// Returns the facts about `model`; accepts names of resellers (`anthropic/claude-sonnet-4.5`) and of releases. Unlisted
/// models have the facts of their family.
pub(crate) fn look_up(model: &str) -> Option<&'static ModelFacts> {
    let name = bare_name(model);
    let listed = CATALOGUE.facts(name);
    listed
        .or_else(|| CATALOGUE.facts(strip_date(name)?))
        .or_else(|| {
            let mut families = CATALOGUE.families.iter();
            let (_, model) = families.find(|(prefix, _)| starts_with(name, prefix))?;
            CATALOGUE.facts(bare_name(model))
        })
}

/// Returns true if `name` starts with `prefix`, as names are compared.
fn starts_with(name: &str, prefix: &str) -> bool {
    normalized(name).take(prefix.len()).eq(normalized(prefix))
}

/// Returns true if the catalogue lists exactly this model, or the model that it is a release of.
#[must_use]
pub fn is_listed_model(model: &str) -> bool {
    let name = bare_name(model);
    let listed = |name: &str| CATALOGUE.model(name).is_some();
    listed(name) || strip_date(name).is_some_and(listed)
}

/// Returns the price of exactly this model, or of the model that it is a release of, at the server at `base_url`.
pub(crate) fn price_at(base_url: &str, model: &str) -> Option<CataloguePrice> {
    let host = host_of(base_url)?;
    let provider = CATALOGUE
        .providers
        .iter()
        .find(|it| it.domains.iter().any(|domain| is_in_domain(&host, domain)))?;
    // Subscriptions (GLM and Kimi coding plans) are served by the same hosts, but are not paid by the token.
    if base_url.contains("/coding") {
        return None;
    }
    let listed = |name: &str| {
        let mut models = provider.models.iter();
        models.find(|it| are_same_names(it.name, name))
    };
    let found = listed(model).or_else(|| listed(strip_date(model)?))?;
    Some(CataloguePrice {
        price: found.entry()?.price?,
        source: provider.source,
        date: CATALOGUE.date,
    })
}

#[cfg(test)]
mod tests;
