//! Maps each model API to its descriptor and to its models.

use crate::{
    anthropic::{self, Anthropic},
    dialect::ApiDescriptor,
    endpoint::Endpoint,
    model::{Model, ModelInfo},
    openai::{self, OpenAi},
    provider::{Api, CallLimits},
    remote_model::RemoteModel,
};
use std::sync::Arc;

impl Api {
    /// Returns the paths and headers of the API.
    pub(crate) const fn descriptor(self) -> ApiDescriptor {
        match self {
            Self::Anthropic => anthropic::API,
            Self::OpenAi => openai::API,
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
            Self::Anthropic => Arc::new(RemoteModel::new(info, endpoint, limits, Anthropic)),
            Self::OpenAi => {
                let mut dialect = OpenAi::new(base_url);
                if is_limit_chosen {
                    dialect = dialect.choosing_limit();
                }
                Arc::new(RemoteModel::new(info, endpoint, limits, dialect))
            }
        }
    }
}
