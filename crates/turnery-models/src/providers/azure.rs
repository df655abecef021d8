//! Azure OpenAI, by its API without versions, which names a deployment as the model:
//! <https://learn.microsoft.com/azure/ai-foundry/openai/api-version-lifecycle>.

use super::{KnownProvider, openai, without_trailing_slash};
use crate::{
    openai::{
        model_families::is_mistral,
        quirks::{LimitField, Quirks},
    },
    provider::Api,
};

pub(super) const PROVIDER: KnownProvider = KnownProvider {
    name: "azure",
    api: Api::OpenAiResponses,
    base_url: "https://YOUR-RESOURCE.openai.azure.com/openai/v1",
    url_variable: "AZURE_OPENAI_ENDPOINT",
    read_url: azure_url,
    key_variable: "AZURE_OPENAI_API_KEY",
    // A deployment is named after its model unless its owner chose another name. A list of deployments does not exist.
    models: openai::MODELS,
    domain: "azure.com",
    other_domains: &["azure.us", "azure.cn"],
    enforces_schemas: true,
    quirks: openai::QUIRKS,
    for_model,
    ..KnownProvider::DEFAULT
};

/// Returns the URL for `AZURE_OPENAI_ENDPOINT`, which is that of the resource or of the API.
fn azure_url(endpoint: &str) -> String {
    let endpoint = without_trailing_slash(endpoint);
    match endpoint.ends_with("/v1") {
        true => endpoint,
        false => format!("{}/openai/v1", endpoint.trim_end_matches("/openai")),
    }
}

fn for_model(name: &str, quirks: Quirks) -> Quirks {
    match is_mistral(name) {
        true => Quirks {
            limit: LimitField::MaxTokens,
            ..quirks
        },
        false => quirks,
    }
}
