//! Parses single values of the configuration, as written in files, variables and on the command line.

use super::{
    rules::parse_rule,
    store_location::{StoreSetting, store},
    suggestion::alternatives,
};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, de::Error as _};
use std::str::FromStr;
use turnery_agent::Protocol;
use turnery_models::{ModelName, Thinking};
use turnery_store::Durability;
use turnery_tools::{Mode, Rule, SandboxMode};

/// A value that is written as a text.
pub(super) trait FromText: Sized {
    /// Parses the text; the error says what to write instead.
    fn parse(text: &str) -> Result<Self, String>;
}

impl<T: FromText> FromText for Option<T> {
    fn parse(text: &str) -> Result<Self, String> {
        T::parse(text).map(Some)
    }
}

macro_rules! impl_from_text {
    ($($value:ty: $parse:path,)*) => {$(
        impl FromText for $value {
            fn parse(text: &str) -> Result<Self, String> {
                $parse(text)
            }
        }
    )*};
}

impl_from_text! {
    Durability: durability,
    Mode: mode,
    ModelName: model,
    Protocol: protocol,
    Rule: parse_rule,
    SandboxMode: sandbox,
    StoreSetting: store,
    Thinking: thinking,
}

/// Reads a [`FromText`].
struct ParsedText<T>(T);

impl<'de, T: FromText> Deserialize<'de> for ParsedText<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        T::parse(&text).map(ParsedText).map_err(D::Error::custom)
    }
}

/// Reads a text with [`FromText::parse`].
pub(super) fn deserialize_text<'de, D: Deserializer<'de>, T: FromText>(
    deserializer: D,
) -> Result<T, D::Error> {
    Ok(ParsedText::deserialize(deserializer)?.0)
}

/// Reads a list of texts with [`FromText::parse`].
pub(super) fn deserialize_texts<'de, D: Deserializer<'de>, T: FromText>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    let all = Vec::<ParsedText<T>>::deserialize(deserializer)?;
    Ok(all.into_iter().map(|word| word.0).collect())
}

/// Reads a percentage.
pub(super) fn percent<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u8>, D::Error> {
    let number = i64::deserialize(deserializer)?;
    match u8::try_from(number) {
        Ok(percent @ 0..=100) => Ok(Some(percent)),
        _ => Err(D::Error::custom(format!(
            "{number} is no whole number from 0 to 100"
        ))),
    }
}

/// An amount of money. Unit: millionths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, JsonSchema)]
#[schemars(inline)]
pub(crate) struct Money(#[schemars(with = "f64", range(min = 0))] pub(crate) u64);

impl<'de> Deserialize<'de> for Money {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let amount = f64::deserialize(deserializer)?;
        let money = to_millionths(amount).map(Money);
        money.ok_or_else(|| D::Error::custom(format!("{amount} is no amount of money")))
    }
}

/// Returns an amount of money in millionths.
fn to_millionths(amount: f64) -> Option<u64> {
    /// Upper bound, far below the amounts at which a float loses millionths.
    const MOST: f64 = 1e9;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "not below zero, and bounded"
    )]
    (0.0..=MOST)
        .contains(&amount)
        .then(|| (amount * 1e6).round() as u64)
}

/// Checks the name of an environment variable.
pub(super) fn check_variable_name(text: &str) -> Result<(), String> {
    match text.is_empty() || text.contains(['=', '*', '\0']) {
        true => Err(format!(
            "{text:?} is no name of a variable: write it whole, without * or ="
        )),
        false => Ok(()),
    }
}

/// Parses a mode; the error lists the valid names.
pub(crate) fn mode(text: &str) -> Result<Mode, String> {
    parse_named(text, "mode", Mode::ALL, Mode::as_str)
}

/// Parses a sandbox mode; the error lists the valid names.
pub(crate) fn sandbox(text: &str) -> Result<SandboxMode, String> {
    parse_named(text, "sandbox mode", SandboxMode::ALL, SandboxMode::as_str)
}

/// Parses a thinking level; the error lists the valid names.
pub(crate) fn thinking(text: &str) -> Result<Thinking, String> {
    let all = [
        Thinking::Default,
        Thinking::Off,
        Thinking::Low,
        Thinking::Medium,
        Thinking::High,
    ];
    parse_named(text, "thinking level", all, Thinking::as_str)
}

/// Parses what stored writes survive; the error lists the valid names.
pub(crate) fn durability(text: &str) -> Result<Durability, String> {
    parse_named(text, "durability", Durability::ALL, Durability::as_str)
}

/// Parses how the model acts; the error lists the valid names.
pub(crate) fn protocol(text: &str) -> Result<Protocol, String> {
    parse_named(text, "protocol", Protocol::ALL, Protocol::as_str)
}

/// Returns the value with the name `text`. `what` says for the error what kind of value it is.
pub(super) fn parse_named<T: Copy, const N: usize>(
    text: &str,
    what: &str,
    all: [T; N],
    name: impl Fn(T) -> &'static str,
) -> Result<T, String> {
    let found = all.into_iter().find(|value| name(*value) == text);
    found.ok_or_else(|| {
        let others = alternatives(text, &all.map(name));
        format!("{text:?} is no {what}; write {others}")
    })
}

/// Parses the name of a model.
pub(crate) fn model(text: &str) -> Result<ModelName, String> {
    text.parse().map_err(|error| format!("{error}"))
}

/// Parses a number of at least one, into one of the types that cannot be zero.
pub(crate) fn parse_positive<N: FromStr>(text: &str) -> Result<N, String> {
    let number = text.parse();
    number.map_err(|_| format!("{text:?} is no whole number from 1 on"))
}

/// Parses a positive amount of money.
pub(crate) fn cost(text: &str) -> Result<Money, String> {
    let amount: Option<f64> = text.replace('_', "").parse().ok();
    match amount.and_then(to_millionths) {
        Some(0) | None => Err(format!("{text:?} is no amount of money above 0")),
        Some(cost) => Ok(Money(cost)),
    }
}

/// Length of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Age(pub(crate) chrono::TimeDelta);

/// Parses a length of time: a whole number of weeks, days, hours or minutes.
pub(crate) fn age(text: &str) -> Result<Age, String> {
    let units = [("w", 7 * 24 * 60), ("d", 24 * 60), ("h", 60), ("m", 1)];
    let minutes = units.iter().find_map(|(unit, minutes)| {
        let number: i64 = text.strip_suffix(unit)?.parse().ok()?;
        number.checked_mul(*minutes).filter(|_| number >= 0)
    });
    let age = minutes.and_then(chrono::TimeDelta::try_minutes);
    age.map(Age)
        .ok_or_else(|| format!("{text:?} is no length of time such as 30d, 12h or 45m"))
}

/// Start of a period that goes on until now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Since {
    /// So long ago.
    Ago(Age),
    /// The start of this day in UTC.
    Day(chrono::NaiveDate),
}

impl Since {
    /// Returns the start of the period.
    pub(crate) fn start(self) -> anyhow::Result<turnery_engine::Timestamp> {
        let start = match self {
            Self::Ago(Age(age)) => turnery_store::now().checked_sub_signed(age),
            Self::Day(day) => day.and_hms_opt(0, 0, 0).map(|start| start.and_utc()),
        };
        start.ok_or_else(|| anyhow::anyhow!("--since is before all time"))
    }
}

/// Parses a day or an age.
pub(crate) fn since(text: &str) -> Result<Since, String> {
    match text.parse() {
        Ok(day) => Ok(Since::Day(day)),
        Err(_) => age(text).map(Since::Ago).map_err(|_| {
            format!("{text:?} is neither a day such as 2026-11-21 nor an age such as 7d")
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misspelt_sandbox_mode_is_answered_with_the_choices() {
        assert_eq!(sandbox("read-only"), Ok(SandboxMode::ReadOnly));
        assert_eq!(
            sandbox("readonly"),
            Err(
                "\"readonly\" is no sandbox mode; write \"read-only\" (or off, workspace)"
                    .to_owned()
            )
        );
        assert!(sandbox("none").is_err());
    }

    #[test]
    fn unknown_mode_or_level_suggests_nearest() {
        assert_eq!(
            mode("atuo"),
            Err("\"atuo\" is no mode; write \"auto\" (or ask, edit, plan)".to_owned())
        );
        assert_eq!(
            thinking("extreme"),
            Err(
                "\"extreme\" is no thinking level; write default, off, low, medium or high"
                    .to_owned()
            )
        );
    }

    #[test]
    fn amounts_parse_to_millionths() {
        let millionths = |text: &str| cost(text).ok().map(|cost| cost.0);
        assert_eq!(millionths("3"), Some(3_000_000));
        assert_eq!(millionths("0.075"), Some(75_000));
        assert_eq!(millionths("1_000.5"), Some(1_000_500_000));
        assert_eq!(to_millionths(0.000_000_1), Some(0));
        for wrong in ["-1", "inf", "nan", "1e12", "3 EUR", "", "0"] {
            assert_eq!(millionths(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn age_is_a_number_with_its_unit() {
        assert_eq!(age("30d"), Ok(Age(chrono::TimeDelta::days(30))));
        assert_eq!(age("2w"), Ok(Age(chrono::TimeDelta::days(14))));
        assert_eq!(age("0m"), Ok(Age(chrono::TimeDelta::zero())));
        for wrong in [
            "",
            "d",
            "30",
            "-1d",
            "1.5h",
            "9223372036854775807w",
            "30 days",
        ] {
            assert!(
                age(wrong).is_err_and(|error| error.contains("30d")),
                "{wrong}"
            );
        }
    }

    #[test]
    fn period_starts_at_a_day_or_an_age_ago() {
        let start = since("2026-11-21").unwrap().start().unwrap();
        assert_eq!(start.to_rfc3339(), "2026-11-21T00:00:00+00:00");
        assert_eq!(since("7d"), Ok(Since::Ago(Age(chrono::TimeDelta::days(7)))));
        assert!(since("yesterday").is_err());
    }
}
