//! Maps each model API to its descriptor and to its models.

use crate::{
    anthropic::Anthropic,
    dialect::{ApiDescriptor, ApiDialect as _},
    endpoint::Endpoint,
    model::{Model, ModelInfo},
    openai::OpenAi,
    provider::{Api, CallLimits},
    remote_model::RemoteModel,
};
use std::sync::Arc;

impl Api {
    /// Returns the paths and headers of the API.
    pub(crate) const fn descriptor(self) -> ApiDescriptor {
        match self {
            Self::Anthropic => Anthropic::API,
            Self::OpenAi => OpenAi::API,
        }
    }

    /// Creates the model at `endpoint`. `is_limit_chosen`: the user configured the output limit.
    pub(crate) fn model(
        self,
        info: ModelInfo,
        endpoint: Endpoint,
        limits: &CallLimits,
        base_url: &str,
        is_limit_chosen: bool,
    ) -> Arc<dyn Model> {
        match self {
            Self::Anthropic => {
                let dialect = Anthropic::new(base_url);
                Arc::new(RemoteModel::new(info, endpoint, limits, dialect))
            }
            Self::OpenAi => {
                let dialect = OpenAi::new(base_url, is_limit_chosen);
                Arc::new(RemoteModel::new(info, endpoint, limits, dialect))
            }
        }
    }
}
