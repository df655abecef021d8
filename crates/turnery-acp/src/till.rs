//! Till: what a session has cost so far, for the updates that tell how full its context is (USAGE-1). Prices are
//! what a person wrote into the configuration; without any nothing is counted, and nothing is told.

use std::{fmt, sync::Arc};
use turnery_agent::{Agent, money};
use turnery_engine::{ChildUsage, ConfigSnapshot, SessionId, Usage};

/// What the prices in the configuration are in.
pub(crate) const CURRENCY: &str = "USD";

/// The cost of one session, over all its prompts, those of earlier times included.
#[derive(Default)]
pub(crate) struct Till {
    /// Knows the prices.
    agent: Option<Arc<Agent>>,
    /// `provider/model` that answers now.
    model: String,
    /// Unit: millionths. `None` once something was spent whose price nobody knows: a sum without it would pass for
    /// all.
    total: Option<u64>,
}

impl fmt::Debug for Till {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Till")
            .field("model", &self.model)
            .field("total", &self.total)
            .finish_non_exhaustive()
    }
}

impl Till {
    /// Of a session in which nothing was spent yet.
    pub(crate) fn empty(agent: &Arc<Agent>) -> Self {
        match agent.models().has_prices() {
            true => Self {
                agent: Some(Arc::clone(agent)),
                model: String::new(),
                total: Some(0),
            },
            false => Self::default(),
        }
    }

    /// Of a stored session.
    pub(crate) async fn of(agent: &Arc<Agent>, id: &SessionId) -> Self {
        let mut till = Self::empty(agent);
        if till.agent.is_some() {
            // Whoever cannot be read now is not known; opening it says why.
            till.total = agent.cost(id).await.ok().flatten();
        }
        till
    }

    /// A loop begins, with this model.
    pub(crate) fn begin(&mut self, config: Option<&ConfigSnapshot>) {
        if self.agent.is_some() {
            self.model = config.map_or_else(String::new, |config| {
                format!("{}/{}", config.provider, config.model)
            });
        }
    }

    /// The model that answers was called: for a turn, or for a summary.
    pub(crate) fn called(&mut self, usage: Option<&Usage>) {
        let model = std::mem::take(&mut self.model);
        self.spend(&model, usage);
        self.model = model;
    }

    /// A child session's turn has ended.
    pub(crate) fn child(&mut self, child: &ChildUsage) {
        self.spend(&child.model, child.usage.as_ref());
    }

    /// Something was spent that was not told in full: what the session costs is known again when it is opened.
    pub(crate) fn lose_count(&mut self) {
        self.total = None;
    }

    fn spend(&mut self, model: &str, usage: Option<&Usage>) {
        let (Some(agent), Some(usage)) = (&self.agent, usage) else {
            return;
        };
        if *usage != Usage::default() {
            let price = agent.models().price_of(model);
            let cost = price.map(|price| price.of(usage));
            self.total = self
                .total
                .zip(cost)
                .map(|(total, cost)| total.saturating_add(cost));
        }
    }

    /// Whether anything is counted.
    pub(crate) fn counts(&self) -> bool {
        self.agent.is_some()
    }

    /// The whole amount, if it is known.
    pub(crate) fn amount(&self) -> Option<f64> {
        self.total.map(money)
    }
}
