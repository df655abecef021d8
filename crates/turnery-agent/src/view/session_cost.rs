//! Keeps the running cost of a session (USAGE-1).

use crate::{
    cost_report::{CostReport, millionths_to_units},
    usage_report::UsageReport,
};
use std::{fmt, sync::Arc};
use turnery_engine::{ChildUsage, ConfigSnapshot, Price, Usage};
use turnery_models::{ModelName, ModelRegistry};

/// Currency of the prices.
pub const CURRENCY: &str = "USD";

/// Cost of one session over all its prompts, including stored ones.
#[derive(Default)]
pub struct SessionCost {
    /// Source of the prices; `None` if there are none.
    models: Option<Arc<ModelRegistry>>,
    /// Current model, as `provider/model`.
    model: String,
    /// Total so far; `None` once usage without a known price was recorded, since a partial sum would pass for
    /// the total. Unit: millionths of [`CURRENCY`].
    total_micros: Option<u64>,
    /// True while the cost of the stored prompts is missing.
    lacks_stored_cost: bool,
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
    pub fn new(models: &Arc<ModelRegistry>) -> Self {
        Self {
            models: Some(Arc::clone(models)),
            model: String::new(),
            total_micros: Some(0),
            lacks_stored_cost: false,
        }
    }

    /// Returns the cost of a stored session. Not shown until [`Agent::open`](crate::Agent::open) has added the cost of the
    /// stored prompts.
    #[must_use]
    pub fn for_stored_session(models: &Arc<ModelRegistry>) -> Self {
        Self {
            lacks_stored_cost: true,
            ..Self::new(models)
        }
    }

    /// Adds the cost of the stored prompts; `None` if they cannot be read.
    pub(crate) fn add_stored_cost(&mut self, report: Option<&UsageReport>) {
        let Some(models) = &self.models else {
            return;
        };
        let price = |model: &str| models.recorded_price(model);
        let stored = report.and_then(|report| CostReport::new(report, price).total_cost());
        self.add_cost(stored);
        self.lacks_stored_cost = false;
    }

    fn add_cost(&mut self, cost: Option<u64>) {
        let sum = self.total_micros.zip(cost);
        self.total_micros = sum.map(|(total, cost)| total.saturating_add(cost));
    }

    /// Starts a loop with the model of `config`.
    pub(super) fn begin_loop(&mut self, config: Option<&ConfigSnapshot>) {
        if self.models.is_some() {
            self.model = config.map_or_else(String::new, |config| {
                format!("{}/{}", config.provider, config.model)
            });
        }
    }

    /// Sets the model that has answered the current turn, if its price is known. Some servers report other names than the
    /// configured one, whose configured price then stays.
    pub(super) fn set_answering_model(&mut self, provider: &str, model: &str) {
        let Some(models) = &self.models else {
            return;
        };
        if self.model.split_once('/') == Some((provider, model)) {
            return;
        }
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
        let (Some(models), Some(usage)) = (&self.models, usage) else {
            return;
        };
        if *usage != Usage::default() {
            let price = models.recorded_price(model);
            self.add_cost(price.map(|price| adapt(price).cost_of(usage)));
        }
    }

    /// Returns true while the cost of the stored prompts is missing.
    pub(crate) fn lacks_stored_cost(&self) -> bool {
        self.lacks_stored_cost
    }

    /// Returns true if costs are counted, and those of the stored prompts are included.
    #[must_use]
    pub fn is_shown(&self) -> bool {
        self.models.is_some() && !self.lacks_stored_cost
    }

    /// Returns the total, if shown and known.
    #[must_use]
    pub fn amount(&self) -> Option<f64> {
        let total = self.total_micros.filter(|_| self.is_shown());
        total.map(millionths_to_units)
    }
}
