//! Machines, processes and the requests between them and a store.

mod end;

use super::{
    agent::Agent,
    backend::{Backend, ProcessTime},
    coverage::Coverage,
    flaws::Flaw,
    history::{Caller, History, SKEW},
    machine::SimulatedMachine,
    promise::{Check, Violation, require},
    request::{Progress, Request, Response},
    schedule::{Choice, Decision, Schedule, Step, StepKind},
};
use crate::{Lane, NextEffect, Owner, TakenEffect, samples};
use std::{sync::Arc, time::Duration};
use turnery_engine::SessionId;

/// Number of sessions of a schedule.
const SESSIONS: usize = 2;

/// Periods that pass in one step. Unit: milliseconds.
const PERIODS: [u64; 9] = [
    500, 3_000, 6_000, 20_000, 29_000, 31_000, 61_000, 91_000, 151_000,
];

/// Longer than any lease. Unit: milliseconds.
const LONG: u64 = 7_200_000;

thread_local! {
    /// Machines of all schedules that a thread runs, since a store may remember its machine.
    static MACHINES: [Arc<SimulatedMachine>; 2] =
        ["boot=one ns=pid:[1]", "boot=two ns=pid:[2]"].map(SimulatedMachine::new);
}

struct Machine {
    processes: Arc<SimulatedMachine>,
    /// Difference of its wall clock to the true time. Unit: milliseconds.
    clock_offset: i64,
}

struct Process {
    place: usize,
    machine: usize,
    pid: u32,
    is_suspended: bool,
    agents: Vec<Agent>,
    /// Answers that arrived while it was suspended.
    inbox: Vec<(Flight, Option<Response>)>,
}

/// Order in which the requests of a process are executed, and who awaits them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Channel {
    /// One after the other.
    Prompt,
    Renewal,
    Effects,
    /// Nobody awaits the answer.
    Other,
}

/// A request that is not answered yet.
#[derive(Clone, Debug)]
struct Flight {
    process: usize,
    pid: u32,
    session: usize,
    channel: Channel,
    request: Request,
    progress: Progress,
    /// True if the caller does not wait any more.
    is_abandoned: bool,
}

/// A simulation of one schedule.
pub(crate) struct World<'a> {
    backend: &'a mut dyn Backend,
    flaw: Option<Flaw>,
    history: History,
    /// True time. Unit: milliseconds.
    now: u64,
    has_wild_clocks: bool,
    machines: [Machine; 2],
    processes: Vec<Process>,
    sessions: Vec<SessionId>,
    flights: Vec<Flight>,
    next_pid: u32,
    marks: u32,
    coverage: Coverage,
    /// What happened, if somebody wants to read it.
    trace: Option<Vec<String>>,
}

/// Runs a schedule.
pub(crate) fn run(
    backend: &mut dyn Backend,
    flaw: Option<Flaw>,
    schedule: &Schedule,
) -> Result<Coverage, Violation> {
    let mut world = World::new(backend, flaw, schedule);
    world.run(schedule)?;
    Ok(std::mem::take(&mut world.coverage))
}

/// Runs a schedule, and tells what happened.
pub(crate) fn trace(backend: &mut dyn Backend, schedule: &Schedule) -> Vec<String> {
    let mut world = World::new(backend, None, schedule);
    world.trace = Some(Vec::new());
    // The violation is known.
    let _ = world.run(schedule);
    world.trace.take().unwrap_or_default()
}

impl<'a> World<'a> {
    fn new(backend: &'a mut dyn Backend, flaw: Option<Flaw>, schedule: &Schedule) -> Self {
        backend.set_flaw(flaw);
        let serial = backend.begin_schedule();
        let sessions: Vec<SessionId> = (0..SESSIONS)
            .map(|number| format!("s{serial}-{number}").into())
            .collect();
        let history = History::new(backend.kind(), schedule.has_wild_clocks, &sessions);
        let machines = MACHINES.with(Clone::clone).map(|processes| {
            processes.end_all();
            Machine {
                processes,
                clock_offset: 0,
            }
        });
        machines[0].processes.enter();
        for id in &sessions {
            let created = backend.create(samples::new_session(id.as_str()));
            created.expect("a new session");
        }
        let mut world = Self {
            backend,
            flaw,
            history,
            now: 10_000_000,
            has_wild_clocks: schedule.has_wild_clocks,
            machines,
            processes: Vec::new(),
            sessions,
            flights: Vec::new(),
            // The processes of earlier schedules may still be known.
            next_pid: 100 + u32::try_from(serial).expect("small") * 100,
            marks: 0,
            coverage: Coverage::default(),
            trace: None,
        };
        for place in schedule.processes {
            let process = world.start_process(*place);
            world.processes.push(process);
        }
        world
    }

    fn note(&mut self, text: impl FnOnce() -> String) {
        if let Some(trace) = &mut self.trace {
            let seconds = (self.now - 10_000_000) as f64 / 1000.0;
            trace.push(format!("{seconds:>8.1} s  {}", text()));
        }
    }

    fn start_process(&mut self, place: usize) -> Process {
        let pid = self.next_pid;
        self.next_pid += 1;
        let machine = place / 2;
        let processes = &self.machines[machine].processes;
        processes.start_process(pid);
        self.history.start_process(pid);
        let description = processes.describe_process(pid);
        let agents = self.sessions.iter().enumerate().map(|(number, id)| {
            let owner = Owner {
                id: format!("{}{number}", name_of(pid)),
                process: description.clone(),
            };
            Agent::new(id.clone(), owner, self.history.state(number))
        });
        Process {
            place,
            machine,
            pid,
            is_suspended: false,
            agents: agents.collect(),
            inbox: Vec::new(),
        }
    }

    fn run(&mut self, schedule: &Schedule) -> Result<(), Violation> {
        for step in &schedule.steps {
            if step.process < self.processes.len() {
                self.step(*step)?;
            }
        }
        self.finish()
    }

    fn step(&mut self, step: Step) -> Result<(), Violation> {
        let Step {
            kind,
            process,
            session,
            choice,
        } = step;
        let is_suspended = self.processes[process].is_suspended;
        match kind {
            StepKind::Prompt if !is_suspended => {
                let agent = &mut self.processes[process].agents[session];
                let request = agent.go_on(choice, &mut self.marks);
                self.send(process, session, Channel::Prompt, request);
            }
            StepKind::Renew if !is_suspended => {
                let request = self.processes[process].agents[session].renew();
                self.send(process, session, Channel::Renewal, request);
            }
            StepKind::Effects if !is_suspended => {
                let request = self.processes[process].agents[session].deliver(choice);
                self.send(process, session, Channel::Effects, request);
            }
            StepKind::UseOldLane if !is_suspended => {
                let id = &self.sessions[session];
                let (head, lane) = (self.history.head(id), self.history.lane(id));
                let agent = &mut self.processes[process].agents[session];
                let request = agent.use_old_lane(choice, lane.as_ref(), head, &mut self.marks);
                self.send(process, session, Channel::Other, request);
            }
            StepKind::Recover if !is_suspended => {
                let request = Request::Recover(self.sessions[session].clone());
                self.send(process, session, Channel::Other, Some(request));
            }
            StepKind::Delete if !is_suspended => {
                let request = Request::Delete {
                    session: self.sessions[session].clone(),
                    is_forced: choice.is_one_in(Decision::Kind, 3),
                };
                self.send(process, session, Channel::Other, Some(request));
            }
            StepKind::Prompt
            | StepKind::Renew
            | StepKind::Effects
            | StepKind::UseOldLane
            | StepKind::Recover
            | StepKind::Delete => {}
            StepKind::Execute | StepKind::LoseAnswer | StepKind::LoseRequest | StepKind::Delay => {
                if let Some(place) = self.choose_flight(choice) {
                    return self.handle_flight(place, kind, choice);
                }
            }
            StepKind::Pass => {
                self.now += PERIODS[choice.below(Decision::Amount, PERIODS.len())];
            }
            StepKind::Suspend => {
                let pid = self.processes[process].pid;
                self.note(|| format!("process {pid} is suspended"));
                self.processes[process].is_suspended = true;
            }
            StepKind::Resume => self.resume(process),
            StepKind::Crash => self.crash(process, choice),
            StepKind::SetClock => {
                let range = match self.has_wild_clocks {
                    true => 40_000_000,
                    false => SKEW as usize / 2,
                };
                let offset = choice.below(Decision::Amount, 2 * range) as i64;
                let offset = offset - range as i64;
                let machine = self.processes[process].machine;
                self.machines[machine].clock_offset = offset;
                self.note(|| format!("the clock of machine {machine} is set to {offset} ms"));
            }
        }
        Ok(())
    }

    fn send(&mut self, process: usize, session: usize, channel: Channel, request: Option<Request>) {
        let Some(request) = request else {
            return;
        };
        let pid = self.processes[process].pid;
        self.note(|| format!("process {pid} sends: {}", request.describe()));
        self.flights.push(Flight {
            process,
            pid,
            session,
            channel,
            request,
            progress: Progress::Start,
            is_abandoned: channel == Channel::Other,
        });
    }

    /// Chooses one of the requests that may be executed next.
    fn choose_flight(&self, choice: Choice) -> Option<usize> {
        let has_server = self.backend.kind().has_server;
        let may_be_next = |place: usize| {
            let flight = &self.flights[place];
            let process = &self.processes[flight.process];
            let earlier = &self.flights[..place];
            if !has_server {
                // The thread of the process executes one after the other.
                return !process.is_suspended
                    && earlier.iter().all(|other| other.process != flight.process);
            }
            if process.is_suspended && flight.progress != Progress::Start {
                return false;
            }
            let is_before = |other: &Flight| {
                other.pid == flight.pid
                    && other.session == flight.session
                    && other.channel == Channel::Prompt
                    && !other.is_abandoned
            };
            flight.channel != Channel::Prompt
                || flight.is_abandoned
                || !earlier.iter().any(is_before)
        };
        let places: Vec<usize> = (0..self.flights.len())
            .filter(|it| may_be_next(*it))
            .collect();
        let place = choice.below(Decision::Target, places.len().max(1));
        places.get(place).copied()
    }

    fn handle_flight(
        &mut self,
        place: usize,
        kind: StepKind,
        choice: Choice,
    ) -> Result<(), Violation> {
        let has_server = self.backend.kind().has_server;
        // A store that has a server repeats what may not have arrived.
        let is_repeated = has_server && choice.is_one_in(Decision::Repeat, 2);
        let flight = self.flights.remove(place);
        let what = flight.request.clone();
        match kind {
            StepKind::LoseRequest if flight.progress == Progress::Start => {
                self.note(|| format!("request fails: {}", what.describe()));
                self.fail(flight, choice);
            }
            StepKind::Delay if flight.progress == Progress::Start && !flight.is_abandoned => {
                self.note(|| format!("request is delayed: {}", what.describe()));
                let delayed = Flight {
                    is_abandoned: true,
                    ..flight.clone()
                };
                self.flights.insert(place, delayed);
                match is_repeated {
                    true => self.flights.insert(place, flight),
                    false => self.fail(flight, choice),
                }
            }
            _ => {
                let mut flight = flight;
                let Some(response) = self.execute(&mut flight)? else {
                    // Without its client, a request of several statements ends with the first.
                    if !flight.is_abandoned || flight.channel == Channel::Other {
                        self.flights.insert(place, flight);
                    }
                    return Ok(());
                };
                let is_lost = kind == StepKind::LoseAnswer && !flight.is_abandoned;
                if is_lost {
                    self.note(|| format!("answer is lost: {}", what.describe()));
                }
                if is_lost && is_repeated {
                    flight.progress = Progress::Start;
                    self.flights.insert(place, flight);
                } else {
                    self.answer(flight, Some(response).filter(|_| !is_lost), choice);
                }
            }
        }
        Ok(())
    }

    /// Answers a request with an error. Events that follow those of a failed append fail too: a journal must not have a
    /// gap.
    fn fail(&mut self, flight: Flight, choice: Choice) {
        let mut failed = vec![flight.clone()];
        if let Request::Append { lane, loop_id, .. } = &flight.request {
            let lane_and_loop = (lane, loop_id);
            let followers = self.flights.extract_if(.., |other| {
                let is_follower = matches!(
                    &other.request,
                    Request::Append { lane, loop_id, .. } if (lane, loop_id) == lane_and_loop
                );
                is_follower && other.channel == Channel::Prompt && !other.is_abandoned
            });
            failed.extend(followers);
        }
        for flight in failed {
            self.answer(flight, None, choice);
        }
    }

    fn time_of(&self, process: &Process) -> ProcessTime {
        let machine = &self.machines[process.machine];
        let offset = match self.backend.kind().has_server {
            true => 0,
            false => machine.clock_offset,
        };
        let wall = i64::try_from(self.now).expect("small") + offset;
        ProcessTime {
            process: process.place,
            wall: samples::at(0) + chrono::TimeDelta::milliseconds(wall),
            monotonic: Duration::from_millis(self.now + 1_000_000 * process.machine as u64),
        }
    }

    /// Executes the next part of a request. Returns its answer after the last part.
    fn execute(&mut self, flight: &mut Flight) -> Result<Option<Response>, Violation> {
        let process = &self.processes[flight.process];
        let machine = process.machine;
        let time = self.time_of(process);
        let caller = Caller {
            now: self.now,
            pid: flight.pid,
            machine,
        };
        self.machines[machine].processes.enter();
        let before = flight.progress.clone();
        if let Request::Claim { .. } | Request::TakeEffect { .. } = &flight.request {
            self.history.note_possible_heartbeat(caller);
        }
        let response = match self.flaw {
            None => self
                .backend
                .perform(time, &flight.request, &mut flight.progress),
            Some(flaw) => flaw.perform(
                self.backend,
                &self.history,
                time,
                &flight.request,
                &mut flight.progress,
            ),
        };
        let (pid, request) = (flight.pid, &flight.request);
        let Some(response) = response else {
            let progress = flight.progress.clone();
            self.note(|| {
                format!(
                    "process {pid}: {}: {before:?} {progress:?}",
                    request.describe()
                )
            });
            if let (Progress::FoundJournal, Progress::Start, Request::Claim { owner, .. }) =
                (&before, &flight.progress, request)
            {
                let session = flight.session;
                self.coverage.note_journal();
                self.history
                    .observe_recovery_of_claim(caller, session, owner, self.backend)?;
            }
            return Ok(None);
        };
        self.note(|| {
            format!(
                "process {pid}: {}: {}",
                request.describe(),
                response.describe()
            )
        });
        self.coverage.note(&self.history, request, &response);
        let observed = self
            .history
            .observe(caller, request, &response, self.backend);
        self.check_difference()?;
        observed?;
        Ok(Some(response))
    }

    fn check_difference(&mut self) -> Result<(), Violation> {
        let difference = self.backend.take_difference();
        require(difference.is_none(), Check::ModelIsTrue, || {
            difference.unwrap_or_default()
        })
    }

    /// Gives an answer to the agent that waits for it; `None` if the request failed.
    fn answer(&mut self, flight: Flight, response: Option<Response>, choice: Choice) {
        let process = &mut self.processes[flight.process];
        if flight.is_abandoned || process.pid != flight.pid {
            return;
        }
        if process.is_suspended {
            process.inbox.push((flight, response));
            return;
        }
        let agent = &mut process.agents[flight.session];
        let (request, response) = (&flight.request, response.as_ref());
        match flight.channel {
            Channel::Prompt => agent.take_answer(request, response, choice, &mut self.marks),
            Channel::Renewal => agent.take_renewal(request, response),
            Channel::Effects => agent.take_effect_answer(response),
            Channel::Other => {}
        }
    }

    fn resume(&mut self, process: usize) {
        let pid = self.processes[process].pid;
        if std::mem::take(&mut self.processes[process].is_suspended) {
            self.note(|| format!("process {pid} is resumed"));
        }
        for (flight, response) in std::mem::take(&mut self.processes[process].inbox) {
            self.answer(flight, response, Choice::default());
        }
    }

    fn crash(&mut self, process: usize, choice: Choice) {
        let Process {
            place,
            machine,
            pid,
            ..
        } = self.processes[process];
        if self.flaw != Some(Flaw::DeathIgnored) {
            self.machines[machine].processes.end_process(pid);
        }
        self.history.end_process(pid);
        // What was sent to a server may arrive.
        let has_server = self.backend.kind().has_server;
        let arrive = choice.below(Decision::Amount, 1 << 16);
        let mut number = 0;
        self.flights.retain_mut(|flight| {
            if flight.pid != pid {
                return true;
            }
            flight.is_abandoned = true;
            number = (number + 1) % 16;
            has_server && flight.progress == Progress::Start && (arrive >> number) & 1 == 1
        });
        self.backend.crash(place);
        let next = self.start_process(place);
        let next_pid = next.pid;
        self.note(|| format!("process {pid} crashes, and {next_pid} starts in its place"));
        self.processes[process] = next;
    }
}

impl Drop for World<'_> {
    fn drop(&mut self) {
        SimulatedMachine::leave();
    }
}

/// Returns a short name for the owners of a process.
fn name_of(pid: u32) -> String {
    format!("p{pid}-")
}
