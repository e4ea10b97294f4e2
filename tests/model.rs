//! The seeded model test: sessions of people and of an agent, and another
//! client at the provider, work at once on one account; whenever all are done
//! every view has to equal a model in memory and the provider's own truth.
//!
//! Each message belongs to one actor, so that the order of the actors doesn't
//! matter to the model; the views, the mirror and the UIDs are everyone's.
//! `TOLLGATE_MODEL_SECONDS` makes it run longer, `TOLLGATE_MODEL_SEED` again.

#[path = "model/actor.rs"]
mod actor;
#[path = "model/check.rs"]
mod check;
#[path = "views/gate.rs"]
mod gate;
#[path = "model/world.rs"]
mod world;

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use actor::{Agent, Person, Stranger};
use world::{Random, World};

/// How long it runs unless the environment says otherwise, in seconds.
const SECONDS: u64 = 10;
/// Sessions of people.
const PEOPLE: usize = 3;
/// What each actor does between two checks.
const STEPS: usize = 8;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn every_view_equals_the_model_and_the_provider() {
    let by_clock = SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |d| d.as_nanos() as u64);
    let seed = number("TOLLGATE_MODEL_SEED").unwrap_or(by_clock);
    let time = Duration::from_secs(number("TOLLGATE_MODEL_SECONDS").unwrap_or(SECONDS));
    println!("model: seed {seed}, {} s", time.as_secs());
    let folder = tempfile::tempdir().unwrap();
    let world = Arc::new(World::new(gate::start(folder.path(), false, "folders").await));
    let mut random = Random::new(seed);
    let mut people = Vec::new();
    for n in 0..PEOPLE {
        people.push(Person::new(&world, n, random.fork()).await);
    }
    let mut agent = Agent::new(&world, random.fork()).await;
    let mut stranger = Stranger::new(&world, PEOPLE, random.fork()).await;
    let (began, mut rounds) = (Instant::now(), 0u64);
    while began.elapsed() < time {
        let mut tasks = tokio::task::JoinSet::new();
        for mut person in people.drain(..) {
            tasks.spawn(async move {
                person.work(STEPS).await;
                person
            });
        }
        let working = async {
            agent.work(STEPS).await;
        };
        tokio::join!(working, stranger.work(STEPS));
        while let Some(done) = tasks.join_next().await {
            people.push(done.unwrap());
        }
        for person in &mut people {
            person.agrees().await;
        }
        check::agree(&world).await;
        rounds += 1;
    }
    let counts = world.counts();
    println!("model: seed {seed}, {rounds} rounds, {counts}");
    // What was true stays true after a restart, under the same UIDs.
    let before = check::uids(&world).await;
    drop((people, agent, stranger));
    let world = Arc::into_inner(world).expect("every actor is gone");
    let (gateway, state) = world.into_parts();
    gateway.shutdown().await;
    let world = World::again(gate::start(folder.path(), true, "folders").await, state);
    check::agree(&world).await;
    assert_eq!(check::uids(&world).await, before, "seed {seed}");
    let (gateway, _) = world.into_parts();
    gateway.shutdown().await;
}
