//! Ends a schedule, and looks at everything that is stored.

use super::{
    Channel, Check, Choice, Flight, LONG, Lane, NextEffect, Progress, Request, Response,
    TakenEffect, Violation, World, require,
};

impl World<'_> {
    /// Executes what is under way, and then looks at everything that is stored, once all leases are over.
    pub(super) fn finish(&mut self) -> Result<(), Violation> {
        for process in 0..self.processes.len() {
            self.resume(process);
        }
        for mut flight in std::mem::take(&mut self.flights) {
            while self.execute(&mut flight)?.is_none() && !flight.is_abandoned {}
        }
        self.now += LONG;
        self.crash(0, Choice::default());
        self.flights.clear();
        for session in 0..self.sessions.len() {
            if !self.history.is_deleted(session) {
                self.finish_session(session)?;
            }
        }
        let checked = self.history.check_end(self.backend);
        self.check_difference()?;
        checked
    }

    pub(super) fn finish_session(&mut self, session: usize) -> Result<(), Violation> {
        let id = self.sessions[session].clone();
        let owner = self.processes[0].agents[session].owner.clone();
        let claimed = self.request(
            session,
            Request::Claim {
                session: id.clone(),
                owner: owner.clone(),
                beginning: None,
            },
        )?;
        if let Response::Claimed(Ok(outcome)) = claimed {
            let lane: Lane = outcome.claimed_lane.lane;
            self.request(session, Request::Release(lane))?;
        }
        for _ in 0..20 {
            let take = Request::TakeEffect {
                session: id.clone(),
                owner: owner.clone(),
            };
            match self.request(session, take)? {
                Response::Effect(Ok(NextEffect::Taken(taken))) => {
                    let taken: TakenEffect = taken;
                    self.request(session, Request::FinishEffect(taken))?;
                }
                Response::Effect(Ok(NextEffect::Later(_))) => self.now += LONG,
                _ => break,
            }
        }
        let is_kept = self.has_wild_clocks && !self.backend.kind().has_server;
        let has_effects = self.history.has_effects(session);
        require(is_kept || !has_effects, Check::EffectIsKept, || {
            "an effect is never delivered".to_owned()
        })
    }

    /// Executes a request of the first process.
    pub(super) fn request(
        &mut self,
        session: usize,
        request: Request,
    ) -> Result<Response, Violation> {
        let mut flight = Flight {
            process: 0,
            pid: self.processes[0].pid,
            session,
            channel: Channel::Other,
            request,
            progress: Progress::Start,
            is_abandoned: false,
        };
        loop {
            if let Some(response) = self.execute(&mut flight)? {
                return Ok(response);
            }
        }
    }
}
