//! The IMAP face for the operator, over the control socket.
//!
//! Promises: what people's sessions are shown is shown, to the octet; nothing
//! is changed, whatever is said: mailboxes open by EXAMINE only, and every
//! command outside of reading is refused. Doesn't know: who may come; the
//! socket does.

use std::sync::Arc;

use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;
use tokio::sync::watch;

use crate::account::{AccountId, Principal};
use crate::downstream::Stream;

use super::session::{Services, Session, Signed};
use super::view::Audience;

/// Serves one session of an account until it or we end. It is greeted with
/// PREAUTH (RFC 9051 §7.1.4): there is no sign-in.
pub async fn serve(stream: UnixStream, account: AccountId, services: Arc<Services>, shutdown: watch::Receiver<bool>) {
    let Some(mirror) = services.mirrors.get(&account).cloned() else { return };
    // Its end ends no session; it has to live as long as this one.
    let (_kept, revoked) = watch::channel(false);
    let principal = Principal::console(account, revoked);
    let mut session = Session::new(Stream::local(stream), false, services, shutdown);
    session.signed = Some(Signed { principal, mirror, audience: Audience::People });
    session.reader.set_authenticated();
    session.await_offers().await;
    if let Err(e) = session.run("PREAUTH").await {
        tracing::debug!("a console session ended: {e}");
    }
    let _ = session.out.shutdown().await;
}
