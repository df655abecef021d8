//! Parses `[models."provider/model"]`: facts that a model's name does not tell.

use super::{
    layer::model,
    reader::{Section, boolean, money, number},
};
use toml::de::DeValue;
use turnery_engine::Price;
use turnery_models::{ModelName, ModelOverride};

/// Reads a `[models."provider/model"]` table.
pub(super) fn read_entry(
    name: &str,
    section: &mut Section<'_, '_>,
) -> Option<(ModelName, ModelOverride)> {
    let mut facts = ModelOverride {
        context_window: section.get("context_window", tokens),
        max_output: section.get("max_output", tokens),
        images: section.get("images", boolean),
        audio: section.get("audio", boolean),
        reasoning: section.get("reasoning", boolean),
        price: None,
    };
    section.table("price", |section| facts.price = price(section));
    match model(name) {
        Ok(name) => Some((name, facts)),
        Err(error) => {
            section.wrong(&error);
            None
        }
    }
}

fn tokens(value: &DeValue<'_>) -> Result<u32, String> {
    let tokens = number(value)?;
    u32::try_from(tokens).map_err(|_| format!("{tokens} is too many"))
}

/// Reads the price of a million tokens. Cached input costs as much as other input unless given.
fn price(section: &mut Section<'_, '_>) -> Option<Price> {
    let input = section.get("input", money);
    let output = section.get("output", money);
    let cache_read = section.get("cache_read", money);
    let cache_write = section.get("cache_write", money);
    let (Some(input), Some(output)) = (input, output) else {
        section.wrong("a price needs input and output, each for a million tokens");
        return None;
    };
    Some(Price {
        input,
        output,
        cache_read: cache_read.unwrap_or(input),
        cache_write: cache_write.unwrap_or(input),
    })
}

/// Parses an amount of money. Unit: millionths.
pub(super) fn parse_millionths(text: &str) -> Option<u64> {
    /// Upper bound, far below the amounts at which a float loses millionths.
    const MOST: f64 = 1e9;
    let amount: f64 = text.replace('_', "").parse().ok()?;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "not below zero, and bounded"
    )]
    (0.0..=MOST)
        .contains(&amount)
        .then(|| (amount * 1e6).round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_parse_to_millionths() {
        assert_eq!(parse_millionths("3"), Some(3_000_000));
        assert_eq!(parse_millionths("0.075"), Some(75_000));
        assert_eq!(parse_millionths("1_000.5"), Some(1_000_500_000));
        assert_eq!(parse_millionths("0.0000001"), Some(0));
        for wrong in ["-1", "inf", "nan", "1e12", "3 EUR", ""] {
            assert_eq!(parse_millionths(wrong), None, "{wrong}");
        }
    }
}
