//! Suggests the valid word that was most likely meant.

use turnery_models::{ModelName, ProviderConfig, is_listed_model};

/// Returns a text that lists all valid words; if one is near, it comes first, in quotes.
pub(crate) fn alternatives(wrong: &str, all: &[&str]) -> String {
    match nearest(wrong, all) {
        Some(near) => {
            let others: Vec<&str> = all.iter().copied().filter(|name| *name != near).collect();
            match others.is_empty() {
                true => format!("{near:?}"),
                false => format!("{near:?} (or {})", others.join(", ")),
            }
        }
        None => match all {
            [] => "nothing".to_owned(),
            [only] => (*only).to_owned(),
            [most @ .., last] => format!("{} or {last}", most.join(", ")),
        },
    }
}

/// Returns what is wrong with the name of a model that is probably misspelt. Most models are not known, so an unknown
/// name alone is not wrong.
pub(crate) fn describe_unknown_model(
    name: &ModelName,
    providers: &[ProviderConfig],
) -> Option<String> {
    let Some(provider) = providers.iter().find(|it| it.name == name.provider) else {
        if ["offline", "scripted"].contains(&name.provider.as_str()) {
            return None;
        }
        let all: Vec<&str> = providers.iter().map(|it| it.name.as_str()).collect();
        return Some(match nearest(&name.provider, &all) {
            Some(near) => format!(
                "but there is no provider {:?}: write {near}/{}",
                name.provider, name.model
            ),
            None => format!(
                "but there is no provider {:?}: write one of {}",
                name.provider,
                all.join(", ")
            ),
        });
    };
    let known: Vec<&str> = provider.models.iter().map(String::as_str).collect();
    if known.contains(&name.model.as_str()) || is_listed_model(&name.model) {
        return None;
    }
    let near = nearest(&name.model, &known)?;
    Some(format!(
        "which is not a known model of {0}: did you mean {0}/{near}?",
        provider.name
    ))
}

/// Returns the word that was most likely meant.
fn nearest<'a>(wrong: &str, all: &[&'a str]) -> Option<&'a str> {
    all.iter()
        .map(|name| (strsim::damerau_levenshtein(wrong, name), *name))
        .filter(|(distance, name)| *distance <= 1 + name.len() / 4)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misspelt_models_are_recognized() {
        let providers = ProviderConfig::standard_from_env(&|_| None);
        let said = |name: &str| describe_unknown_model(&name.parse().unwrap(), &providers);
        for (name, expected) in [
            ("opneai/gpt-5.1", "write openai/gpt-5.1"),
            ("nowhere/gpt-5.1", "write one of anthropic, openai, "),
            ("openai/gtp-5.1", "did you mean openai/gpt-5.1?"),
        ] {
            let said = said(name).unwrap();
            assert!(said.contains(expected), "{name}: {said}");
        }
        for name in [
            "openai/gpt-5.1",
            "openai/gpt-4o-mini",
            "openai/my-own-thing",
            "offline",
        ] {
            assert_eq!(said(name), None, "{name}");
        }
    }
}
