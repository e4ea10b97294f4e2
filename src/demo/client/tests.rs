//! The clients against the embedded provider.

use super::imap::ImapClient;
use super::smtp::SmtpClient;
use crate::config::{Endpoint, TlsMode};
use crate::demo::provider::{Options, Provider};

fn plain(address: std::net::SocketAddr) -> Endpoint {
    Endpoint { host: address.ip().to_string(), port: address.port(), tls: TlsMode::None, ca: None }
}

#[tokio::test]
async fn the_clients_say_what_the_server_holds() {
    let users = vec![("a@example.org".to_owned(), "se\"cret".to_owned())];
    let provider = Provider::start(Options { users, ..Options::default() }).await.unwrap();
    let mut smtp = SmtpClient::sign_in(&plain(provider.smtp_addr()), "a@example.org", "se\"cret").await.unwrap();
    let octets = b"Subject: x\r\n\r\n.\r\n\xff\r\n";
    let reply = smtp.submit("a@example.org", &["a@example.org", "b@example.net"], octets).await.unwrap();
    assert_eq!(reply.code(), 250);
    assert_eq!(provider.accepted()[0].octets, octets);
    assert!(smtp.submit("a@example.org", &[""], octets).await.is_err());

    let mut imap = ImapClient::sign_in(&plain(provider.imap_addr()), "a@example.org", "se\"cret").await.unwrap();
    assert!(imap.command("LIST \"\" *").await.unwrap().mailboxes().contains(&"INBOX".to_owned()));
    imap.command("SELECT INBOX").await.unwrap().ok().unwrap();
    assert_eq!(imap.command("UID SEARCH ALL").await.unwrap().found(), [1]);
    let answer = imap.command("UID FETCH 1 (RFC822.SIZE BODY.PEEK[])").await.unwrap();
    let fetched = answer.fetched().next().unwrap();
    assert_eq!(fetched.literals, [octets.to_vec()]);
    assert_eq!(fetched.number("RFC822.SIZE"), Some(octets.len() as u64));
    assert!(imap.append("Drafts", "\\Draft", b"x\r\n").await.unwrap().is_ok());
    assert!(!imap.append("Nowhere", "", b"x\r\n").await.unwrap().is_ok());
    imap.idle().await.unwrap();
    provider.deliver("a@example.org", "y\r\n");
    assert_eq!(imap.told().await.unwrap().text, "2 EXISTS");
    assert!(imap.done().await.unwrap().is_ok());
}
