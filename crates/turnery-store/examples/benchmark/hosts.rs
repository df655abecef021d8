//! Measures the commits of many hosts on one PostgreSQL beside `pgbench`.

use crate::{
    Outcome, postgres_address, record_of_turn,
    samples::{commit_of, new_session, owner},
};
use std::{
    process::Command,
    time::{Duration, Instant},
};
use turnery_store::{Owner, PostgresStore, Store};

/// Duration of each measurement.
const DURATION: Duration = Duration::from_secs(15);

const ROUNDS: u32 = 2;

/// Each host has a store of its own, and commits to its sessions in turn; so as many commits run at once as there are
/// clients of `pgbench`.
pub(crate) async fn measure(hosts: u32, sessions: u32) -> Outcome {
    let url = std::env::var("POSTGRES_TEST_URL")?;
    let scale = hosts.to_string();
    pgbench(&["--initialize", "--quiet", "--scale", &scale, &url])?;
    let mut running = Vec::new();
    for host in 0..hosts {
        running.push(Host::start(host, sessions).await?);
    }
    for _ in 0..ROUNDS {
        let since = Instant::now();
        let commits = running
            .iter_mut()
            .map(|host| host.commit_until(since + DURATION));
        let commits = futures_util::future::try_join_all(commits).await?;
        let commits: u32 = commits.into_iter().sum();
        let own = f64::from(commits) / since.elapsed().as_secs_f64();
        let seconds = DURATION.as_secs().to_string();
        let report = pgbench(&[
            "--skip-some-updates",
            "--protocol=prepared",
            "--no-vacuum",
            "--jobs=2",
            "--client",
            &scale,
            "--time",
            &seconds,
            &url,
        ])?;
        let plain = report.lines().find_map(|line| {
            let rate = line.strip_prefix("tps = ")?;
            rate.split_whitespace().next()?.parse::<f64>().ok()
        });
        let plain = plain.ok_or("pgbench reports no rate")?;
        println!(
            "{hosts} hosts with {sessions} sessions: {own:.0} commits a second; pgbench -N: {plain:.0}; ratio {:.2}",
            own / plain
        );
    }
    Ok(())
}

fn pgbench(args: &[&str]) -> Outcome<String> {
    let output = Command::new("pgbench").args(args).output()?;
    match output.status.success() {
        true => Ok(String::from_utf8(output.stdout)?),
        false => Err(String::from_utf8_lossy(&output.stderr).into()),
    }
}

struct Host {
    store: PostgresStore,
    lanes: Vec<turnery_store::Lane>,
    /// Commits to each session.
    head: u32,
}

impl Host {
    async fn start(host: u32, sessions: u32) -> Outcome<Self> {
        let store = PostgresStore::open(postgres_address("hosts", "")?);
        let owner = Owner {
            process: format!("pid={host}"),
            ..owner("a")
        };
        let mut lanes = Vec::new();
        for session in 0..sessions {
            let id = format!("h{host}-{session}");
            store.create(new_session(&id)).await?;
            lanes.push(store.claim(&id.as_str().into(), &owner).await?.lane);
        }
        Ok(Self {
            store,
            lanes,
            head: 0,
        })
    }

    /// Commits one turn to each session, again and again. Returns the number of commits.
    async fn commit_until(&mut self, end: Instant) -> Outcome<u32> {
        let mut commits = 0;
        while Instant::now() < end {
            for lane in &self.lanes {
                let record = record_of_turn(lane.session_id.as_str(), self.head + 1);
                let commit = commit_of(lane, self.head.into(), &record);
                self.store.commit(commit).await?;
                commits += 1;
            }
            self.head += 1;
        }
        Ok(commits)
    }
}
