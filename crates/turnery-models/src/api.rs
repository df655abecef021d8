//! Maps each model API to its descriptor and to its models.

use crate::{
    anthropic::Anthropic,
    dialect::{ApiDescriptor, ApiDialect as _},
    endpoint::Endpoint,
    gemini::Gemini,
    model::{Model, ModelInfo},
    openai::OpenAi,
    provider::{Api, CallLimits},
    providers,
    remote_model::RemoteModel,
    responses::Responses,
};
use std::sync::Arc;

impl Api {
    /// Returns the paths and headers of the API.
    pub(crate) const fn descriptor(self) -> ApiDescriptor {
        match self {
            Self::Anthropic => Anthropic::API,
            Self::OpenAi => OpenAi::API,
            Self::OpenAiResponses => Responses::API,
            Self::Gemini => Gemini::API,
        }
    }

    /// Returns true if the server at `base_url` accepts documents.
    pub(crate) fn takes_documents(self, base_url: &str) -> bool {
        match self {
            Self::Anthropic | Self::Gemini => true,
            Self::OpenAi => providers::takes_documents_at(base_url),
            Self::OpenAiResponses => {
                providers::is_openai_at(base_url) || providers::takes_documents_at(base_url)
            }
        }
    }

    /// Creates the model at `endpoint`. `has_user_limit`: the user configured the output limit.
    pub(crate) fn model(
        self,
        info: ModelInfo,
        endpoint: Endpoint,
        limits: &CallLimits,
        base_url: &str,
        has_user_limit: bool,
    ) -> Arc<dyn Model> {
        match self {
            Self::Anthropic => {
                let dialect = Anthropic::new(base_url);
                Arc::new(RemoteModel::new(info, endpoint, limits, dialect))
            }
            Self::OpenAi => {
                let model = &info.name.model;
                let dialect = OpenAi::new(base_url, model, has_user_limit);
                let dialect = match info.name.provider.as_str() {
                    "ollama" => dialect.for_ollama(model),
                    _ => dialect,
                };
                Arc::new(RemoteModel::new(info, endpoint, limits, dialect))
            }
            Self::OpenAiResponses => {
                let dialect = Responses::new(base_url, has_user_limit);
                Arc::new(RemoteModel::new(info, endpoint, limits, dialect))
            }
            Self::Gemini => {
                let dialect = Gemini::new(has_user_limit);
                Arc::new(RemoteModel::new(info, endpoint, limits, dialect))
            }
        }
    }
}
