//! Delivers the stored effects of a session's tools to the host.

use super::env::SessionEnv;
use crate::effect_handler::{CommittedEffect, EffectHandler};
use futures_util::FutureExt as _;
use std::{future::pending, panic::AssertUnwindSafe, sync::Arc, time::Duration};
use tokio::{
    sync::Notify,
    task::JoinHandle,
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;
use turnery_engine::{LoopId, LoopRecord, SessionId};
use turnery_store::{NextEffect, Owner, PendingEffect, Store, StoreError, TakenEffect};
use turnery_tools::EffectPolicy;

/// Time limit of one delivery.
const DELIVERY_TIMEOUT: Duration = Duration::from_secs(20);

/// Delays after failed deliveries. An effect is dropped after as many failures and one more.
const RETRY_DELAYS: [Duration; 4] = [
    Duration::from_secs(5),
    Duration::from_secs(30),
    Duration::from_secs(120),
    Duration::from_secs(600),
];

/// Delay after an error of the store.
const STORE_RETRY_DELAY: Duration = Duration::from_secs(30);

/// Time in which deliveries still begin once the session is closed.
const CLOSING_TIME: Duration = Duration::from_secs(5);

/// Way of the effects from the loops of a session, its candidates and sub-agents to their delivery.
#[derive(Clone, Debug)]
pub(crate) struct EffectOutbox {
    /// Session that delivers the effects.
    session_id: SessionId,
    policy: Arc<EffectPolicy>,
    stored: Arc<Notify>,
}

impl EffectOutbox {
    pub(crate) fn new(session_id: SessionId, policy: EffectPolicy) -> Self {
        Self {
            session_id,
            policy: Arc::new(policy),
            stored: Arc::default(),
        }
    }

    /// Returns the effects of a loop that the policy allows.
    pub(super) fn allowed_effects(&self, record: &LoopRecord) -> Vec<PendingEffect> {
        let requested = record.requested_effects();
        let allowed = requested.filter(|requested| self.policy.allows(requested.effect));
        let pending = allowed.map(|requested| PendingEffect {
            session_id: self.session_id.clone(),
            key: requested.key,
            tool_name: requested.tool_name.to_owned(),
            effect: requested.effect.clone(),
        });
        pending.collect()
    }

    /// Reads the effects of these loops that the policy allows, in the order of the loops in the store.
    pub(super) async fn read_effects(
        &self,
        store: &dyn Store,
        loops: &[LoopId],
    ) -> Result<Vec<PendingEffect>, StoreError> {
        let Some(session) = loops.first().map(LoopId::session_id) else {
            return Ok(Vec::new());
        };
        let records = store.loops(&session, 0).await?;
        let wanted = records.iter().filter(|it| loops.contains(&it.loop_id));
        Ok(wanted.flat_map(|it| self.allowed_effects(it)).collect())
    }

    /// Reports that effects were stored.
    pub(super) fn notify_stored(&self) {
        self.stored.notify_one();
    }
}

/// Task that delivers the effects of an open session.
pub(super) struct EffectDelivery {
    task: JoinHandle<()>,
    /// Cancelled when the session is closed: the task ends once nothing can be delivered at once.
    closing: CancellationToken,
    /// Cancelled when no delivery may begin any more.
    closed: CancellationToken,
}

impl EffectDelivery {
    /// Starts to deliver, beginning with what is left over; `None` if this session has no handler, or is a
    /// sub-agent's, whose effects its topmost parent delivers.
    pub(super) fn start(env: &SessionEnv) -> Option<Self> {
        let outbox = env.effect_outbox.clone().filter(|_| env.depth == 0)?;
        let (closing, closed) = (CancellationToken::new(), CancellationToken::new());
        let work = DeliveryWork {
            store: Arc::clone(&env.store),
            handler: env.settings.effect_handler.clone()?,
            owner: Owner::for_this_process(),
            outbox,
            closing: closing.clone(),
            closed: closed.clone(),
        };
        Some(Self {
            task: tokio::spawn(work.run()),
            closing,
            closed,
        })
    }

    /// Ends the task. Waits for deliveries of effects that are free, which begin within [`CLOSING_TIME`].
    pub(super) async fn close(mut self) {
        self.closing.cancel();
        if timeout(CLOSING_TIME, &mut self.task).await.is_ok() {
            return;
        }
        self.closed.cancel();
        // A little more for the store, which is told of the last delivery.
        let limit = DELIVERY_TIMEOUT + CLOSING_TIME;
        if timeout(limit, &mut self.task).await.is_err() {
            self.task.abort();
        }
    }
}

struct DeliveryWork {
    store: Arc<dyn Store>,
    handler: Arc<dyn EffectHandler>,
    owner: Owner,
    outbox: EffectOutbox,
    closing: CancellationToken,
    closed: CancellationToken,
}

impl DeliveryWork {
    async fn run(self) {
        while !self.closed.is_cancelled() {
            let session_id = &self.outbox.session_id;
            let wait = match self.store.take_effect(session_id, &self.owner).await {
                Ok(NextEffect::Taken(taken)) => {
                    self.deliver(taken).await;
                    continue;
                }
                Ok(NextEffect::Later(wait)) => Some(wait),
                Ok(NextEffect::Empty) => None,
                Err(error) => {
                    tracing::warn!(session = %session_id, %error, "failed to read the effects to deliver");
                    Some(STORE_RETRY_DELAY)
                }
            };
            let wait = async {
                match wait {
                    Some(wait) => sleep(wait).await,
                    None => pending().await,
                }
            };
            tokio::select! {
                biased;
                () = self.outbox.stored.notified() => {}
                () = self.closing.cancelled() => return,
                () = wait => {}
            }
        }
    }

    /// Delivers an effect and settles it: it is removed, or postponed after a failure.
    async fn deliver(&self, taken: TakenEffect) {
        let (name, key) = (self.handler.name(), &taken.pending.key);
        let settled = match self.call_handler(&taken).await {
            Ok(()) => self.store.finish_effect(&taken).await,
            Err(reason) => match retry_delay(taken.attempt) {
                Some(delay) => {
                    tracing::warn!(
                        key,
                        "{name} failed, and is tried again in {} s, or when the session is opened: {reason}",
                        delay.as_secs()
                    );
                    self.store.postpone_effect(&taken, delay).await
                }
                None => {
                    let attempt = taken.attempt;
                    tracing::warn!(
                        key,
                        "{name} failed {attempt} times, and is not tried again: {reason}"
                    );
                    self.store.finish_effect(&taken).await
                }
            },
        };
        if let Err(error) = settled {
            tracing::warn!(key, %error, "failed to store the result of a delivery, which may be repeated");
        }
    }

    /// Delivers an effect, with a time limit. An effect that was taken too often, and whose delivery has never come to
    /// an end, is not delivered once more.
    async fn call_handler(&self, taken: &TakenEffect) -> Result<(), String> {
        let TakenEffect { pending, attempt } = taken.clone();
        if attempt > 1 && retry_delay(attempt - 1).is_none() {
            return Err("turnery ended during each attempt".to_owned());
        }
        let effect = CommittedEffect {
            key: pending.key,
            session_id: pending.session_id,
            tool_name: pending.tool_name,
            effect: pending.effect,
            attempt,
        };
        let delivery = async { self.handler.deliver(effect).await };
        match timeout(DELIVERY_TIMEOUT, AssertUnwindSafe(delivery).catch_unwind()).await {
            Ok(Ok(delivered)) => delivered,
            Ok(Err(_)) => Err("it panicked".to_owned()),
            Err(_) => Err(format!(
                "it did not end within {} s",
                DELIVERY_TIMEOUT.as_secs()
            )),
        }
    }
}

/// Returns the delay after this attempt has failed; `None` if it was the last one.
fn retry_delay(attempt: u32) -> Option<Duration> {
    let index = usize::try_from(attempt).ok()?.checked_sub(1)?;
    RETRY_DELAYS.get(index).copied()
}
