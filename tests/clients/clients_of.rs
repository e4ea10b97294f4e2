//! Where clients sign in: through the gateway, or at Dovecot directly.

use std::path::PathBuf;

use crate::common::dovecot::USERS;
use crate::common::world::World;

/// What a client needs to know.
#[derive(Debug, Clone)]
pub(crate) struct Login {
    /// IMAP over TLS, on localhost.
    pub(crate) imaps: u16,
    pub(crate) user: String,
    pub(crate) password: String,
    /// The certificate to trust.
    pub(crate) trusts: PathBuf,
}

/// Alice, with the key of her mail client.
pub(crate) fn through(world: &World) -> Login {
    Login {
        imaps: world.gateway.imaps,
        user: world.alice.address.clone(),
        password: world.alice.person.clone(),
        trusts: world.gateway.certificate(),
    }
}

/// A user of Dovecot, without the gateway.
#[track_caller]
pub(crate) fn direct(world: &World, user: &str) -> Login {
    let (user, password) = USERS.iter().find(|(u, _)| *u == user).expect("a user");
    Login {
        imaps: world.dovecot.imaps,
        user: (*user).to_owned(),
        password: (*password).to_owned(),
        trusts: world.dovecot.authority.ca.clone(),
    }
}
