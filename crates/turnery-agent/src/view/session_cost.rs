//! Keeps the running cost of a session (USAGE-1).

use crate::{agent::Agent, cost_report::millionths_to_units};
use std::{fmt, sync::Arc};
use turnery_engine::{ChildUsage, ConfigSnapshot, Price, SessionId, Usage};
use turnery_models::ModelName;

/// Currency of the prices.
pub const CURRENCY: &str = "USD";

/// Cost of one session over all its prompts, including stored ones.
#[derive(Default)]
pub struct SessionCost {
    /// Source of the prices; `None` if there are none.
    agent: Option<Arc<Agent>>,
    /// Current model, as `provider/model`.
    model: String,
    /// Total so far; `None` once usage without a known price was recorded, since a partial sum would pass for
    /// the total. Unit: millionths of [`CURRENCY`].
    total_micros: Option<u64>,
}

impl fmt::Debug for SessionCost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionCost")
            .field("model", &self.model)
            .field("total", &self.total_micros)
            .finish_non_exhaustive()
    }
}

impl SessionCost {
    /// Returns a cost of zero, for a new session.
    #[must_use]
    pub fn new(agent: &Arc<Agent>) -> Self {
        Self {
            agent: Some(Arc::clone(agent)),
            model: String::new(),
            total_micros: Some(0),
        }
    }

    /// Loads the cost of a stored session.
    pub async fn load(agent: &Arc<Agent>, id: &SessionId) -> Self {
        Self {
            // A session that cannot be read has no known cost; opening it reports the error.
            total_micros: agent.total_cost(id).await.ok().flatten(),
            ..Self::new(agent)
        }
    }

    /// Starts a loop with the model of `config`.
    pub(super) fn begin_loop(&mut self, config: Option<&ConfigSnapshot>) {
        if self.agent.is_some() {
            self.model = config.map_or_else(String::new, |config| {
                format!("{}/{}", config.provider, config.model)
            });
        }
    }

    /// Sets the model that has answered the current turn, if its price is known. Some servers report other names than the
    /// configured one, whose configured price then stays.
    pub(super) fn set_answering_model(&mut self, provider: &str, model: &str) {
        let Some(agent) = &self.agent else { return };
        if self.model.split_once('/') == Some((provider, model)) {
            return;
        }
        let models = agent.models();
        let is_configured = self.model.split_once('/').is_some_and(|(own, model)| {
            own == provider && models.is_price_configured(&ModelName::new(own, model))
        });
        let name = format!("{provider}/{model}");
        if !is_configured && models.recorded_price(&name).is_some() {
            self.model = name;
        }
    }

    /// Records a call of the current model, for a turn or a summary.
    pub(super) fn record_call(&mut self, usage: Option<&Usage>) {
        let model = std::mem::take(&mut self.model);
        self.add_usage(&model, usage, |price| price);
        self.model = model;
    }

    /// Records a turn of a child session, at the base price: only the sum of its turns is stored.
    pub(super) fn record_child(&mut self, child: &ChildUsage) {
        self.add_usage(&child.model, child.usage.as_ref(), Price::without_tiers);
    }

    /// Marks the total as unknown after usage that was not reported in full. Reopening the session recomputes
    /// it.
    pub(super) fn invalidate(&mut self) {
        self.total_micros = None;
    }

    fn add_usage(&mut self, model: &str, usage: Option<&Usage>, adapt: fn(Price) -> Price) {
        let (Some(agent), Some(usage)) = (&self.agent, usage) else {
            return;
        };
        if *usage != Usage::default() {
            let price = agent.models().recorded_price(model);
            let cost = price.map(|price| adapt(price).cost_of(usage));
            self.total_micros = self
                .total_micros
                .zip(cost)
                .map(|(total, cost)| total.saturating_add(cost));
        }
    }

    /// Returns true if costs are counted.
    #[must_use]
    pub fn is_enabled(&self) -> bool {
        self.agent.is_some()
    }

    /// Returns the total, if known.
    #[must_use]
    pub fn amount(&self) -> Option<f64> {
        self.total_micros.map(millionths_to_units)
    }
}
