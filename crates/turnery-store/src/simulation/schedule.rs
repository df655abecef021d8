//! Makes schedules from seeds, and shortens those that fail.

use super::promise::Violation;

/// Source of numbers that depend on a seed only (SplitMix64).
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }
}

/// Source of the decisions within a step.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Choice(u64);

impl Choice {
    /// Returns a number below `end`. Decisions with different names are independent of each other.
    pub(crate) fn below(self, name: Decision, end: usize) -> usize {
        let mut random = Random::new(self.0 ^ ((name as u64) << 32));
        random.below(end as u64) as usize
    }

    /// Returns true in one of this many cases.
    pub(crate) fn is_one_in(self, name: Decision, cases: usize) -> bool {
        self.below(name, cases) == 0
    }
}

/// Decision within a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    /// Kind of the step.
    Kind,
    /// Session, process or request of the step.
    Target,
    /// Amount of time, of events or of requests.
    Amount,
    /// Number of loops of a prompt.
    Loops,
    /// Number of effects of a commit.
    Effects,
    /// Release of the lane with a commit.
    Release,
    /// Waiting for an append.
    Await,
    /// Repetition of a request by the store.
    Repeat,
}

/// Kind of a step. A step that does not fit the state does nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StepKind {
    /// A session task goes on with its prompt.
    Prompt,
    /// A request is executed.
    Execute,
    /// A request is executed; its answer is lost.
    LoseAnswer,
    /// A request fails without being executed.
    LoseRequest,
    /// The caller of a request stops waiting; the request is executed later.
    Delay,
    /// The lease of a lane is renewed.
    Renew,
    /// A process goes on with the effects of a session.
    Effects,
    /// Time passes.
    Pass,
    /// A process is suspended.
    Suspend,
    /// A process is resumed.
    Resume,
    /// A process dies, and another one starts.
    Crash,
    /// The wall clock of a machine is set.
    SetClock,
    /// A session task uses a lane that it has lost or given up.
    UseOldLane,
    /// Somebody reads a session, after recovering its journals.
    Recover,
    /// A session is deleted.
    Delete,
}

/// Kinds of steps with their weights.
const WEIGHTS: [(StepKind, u64); 15] = [
    (StepKind::Prompt, 300),
    (StepKind::Execute, 300),
    (StepKind::LoseAnswer, 30),
    (StepKind::LoseRequest, 20),
    (StepKind::Delay, 20),
    (StepKind::Renew, 40),
    (StepKind::Effects, 80),
    (StepKind::Pass, 50),
    (StepKind::Suspend, 20),
    (StepKind::Resume, 25),
    (StepKind::Crash, 15),
    (StepKind::SetClock, 15),
    (StepKind::UseOldLane, 40),
    (StepKind::Recover, 15),
    (StepKind::Delete, 4),
];

/// A step of a schedule.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    pub(crate) kind: StepKind,
    /// Process that acts.
    pub(crate) process: usize,
    /// Session that is concerned.
    pub(crate) session: usize,
    /// Decides everything else.
    pub(crate) choice: Choice,
}

/// An interleaving, as a pure function of its seed.
#[derive(Clone, Debug)]
pub(crate) struct Schedule {
    /// Places of the processes: 0 and 1 are on one machine, 2 and 3 on another.
    pub(crate) processes: &'static [usize],
    /// True if the wall clocks of the machines may differ by more than the tolerance.
    pub(crate) has_wild_clocks: bool,
    pub(crate) steps: Vec<Step>,
}

const PLACES: [&[usize]; 5] = [&[0, 1], &[0, 2], &[0, 1, 2], &[0, 2, 3], &[0, 1, 2, 3]];

impl Schedule {
    pub(crate) fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let processes = PLACES[random.below(PLACES.len() as u64) as usize];
        let has_wild_clocks = random.below(4) == 0;
        let total: u64 = WEIGHTS.iter().map(|(_, weight)| weight).sum();
        let count = 30 + random.below(50);
        let steps = (0..count).map(|_| {
            let mut place = random.below(total);
            let kind = WEIGHTS.iter().find(|(_, weight)| {
                let is_here = place < *weight;
                place = place.saturating_sub(*weight);
                is_here
            });
            Step {
                kind: kind.map_or(StepKind::Prompt, |(kind, _)| *kind),
                process: random.below(processes.len() as u64) as usize,
                // Most of it happens in one session.
                session: usize::from(random.below(4) == 0),
                choice: Choice(random.next()),
            }
        });
        let steps = steps.collect();
        Self {
            processes,
            has_wild_clocks,
            steps,
        }
    }

    /// Leaves out steps, as long as `run` finds the same flaw.
    pub(crate) fn shrink(
        mut self,
        found: Violation,
        mut run: impl FnMut(&Self) -> Result<(), Violation>,
    ) -> (Self, Violation) {
        let mut last = found;
        let mut size = self.steps.len().div_ceil(2);
        while size > 0 {
            let mut start = 0;
            let mut was_shortened = false;
            while start < self.steps.len() {
                let mut shorter = self.clone();
                let end = (start + size).min(shorter.steps.len());
                shorter.steps.drain(start..end);
                match run(&shorter) {
                    Err(violation) if violation.check == last.check => {
                        self = shorter;
                        last = violation;
                        was_shortened = true;
                    }
                    Ok(()) | Err(_) => start += size,
                }
            }
            if !was_shortened {
                size /= 2;
            }
        }
        (self, last)
    }
}
