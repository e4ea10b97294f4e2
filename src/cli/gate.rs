//! A request to the running gateway, or to its state where none runs.

use std::time::Duration;

use serde_json::Value;

use super::exit::{Exit, Failure};
use crate::config::Config;
use crate::gateway::control::{self, CallError, ControlError, Request};
use crate::gateway::core::{Core, CoreError};
use crate::store::StoreError;

/// How often a state is tried that another process holds without answering:
/// a gateway that is just starting, or another verb.
const TRIES: u32 = 60;
/// The pause between two tries.
const PAUSE: Duration = Duration::from_millis(50);

/// Runs `request`; returns its answer.
pub(super) fn ask(config: Config, request: Request) -> Result<Value, Failure> {
    runtime()?.block_on(async {
        let mut tries = 0;
        loop {
            tries += 1;
            match control::call(&config.state_dir, &request).await {
                Ok(answer) => return Ok(answer),
                Err(CallError::NotRunning) => match Core::open(config.clone()).await {
                    Ok(core) => return control::execute(&core, request).await.map_err(|e| refused(&e)),
                    Err(CoreError::Store(StoreError::InUse(_))) if tries < TRIES => tokio::time::sleep(PAUSE).await,
                    Err(error) => return Err(core_failure(error)),
                },
                Err(CallError::Refused { name, message }) => return Err(Failure::new(exit_of(&name), &name, message)),
                Err(e @ (CallError::Io(_) | CallError::Protocol(_))) => {
                    return Err(Failure::new(Exit::Io, "control", e));
                }
            }
        }
    })
}

/// A runtime for one verb.
pub(super) fn runtime() -> Result<tokio::runtime::Runtime, Failure> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|e| Failure::new(Exit::Software, "runtime", e))
}

/// The failure of a core that can't be opened.
pub(super) fn core_failure(error: CoreError) -> Failure {
    let exit = match &error {
        CoreError::Store(StoreError::InUse(_)) => Exit::Temp,
        CoreError::Store(StoreError::Newer { .. }) => Exit::Config,
        CoreError::Store(_)
        | CoreError::Accounts(_)
        | CoreError::Outbox(_)
        | CoreError::Pin(_)
        | CoreError::PublicKey(..) => Exit::Io,
    };
    Failure::new(exit, "state", error)
}

/// The failure of a request.
pub(super) fn refused(error: &ControlError) -> Failure {
    Failure::new(exit_of(error.name()), error.name(), error)
}

fn exit_of(name: &str) -> Exit {
    match name {
        control::names::NO_ACCOUNT
        | control::names::NO_KEY
        | control::names::NO_HOLD
        | control::names::NO_RECEIPT
        | control::names::NO_DECISION
        | control::names::NO_PASSKEY
        | control::names::INVALID
        | control::names::STATE => Exit::Data,
        control::names::NOT_RUNNING => Exit::Unavailable,
        control::names::CHAIN => Exit::Chain,
        control::names::IO => Exit::Io,
        _ => Exit::Software,
    }
}
