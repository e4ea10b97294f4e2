//! Maildir clients move a message by uploading their copy of what they were
//! shown, stamps on top. The provider gets its own octets back.

use tollgate::account::AccountId;
use tollgate::account::Role;
use tollgate::lane::stamp::neutralise;
use tollgate::mail::address::Address;

use crate::client::{Client, Reply};
use crate::stand::{Stand, USER};

/// Every shape of a header that a stamp can stand before.
fn messages() -> Vec<Vec<u8>> {
    let wide = [b"Subject: wide\r\nX-Wide: ".to_vec(), vec![b'w'; 70 * 1024], b"\r\n\r\nx\r\n".to_vec()].concat();
    let large = [b"Subject: large\r\n\r\n".to_vec(), b"a line of text\r\n".repeat(20_000)].concat();
    vec![
        b"From: ann@example.com\r\nSubject: plain\r\n\r\nbody\r\n".to_vec(),
        b"Subject: no header end".to_vec(),
        b"Subject: no body\r\n\r\n".to_vec(),
        b"\r\nno header\r\n".to_vec(),
        b"Subject: LF only\nX-Tollgate-Lane: push\n\nbody\n".to_vec(),
        b"Subject: \xff\xfe 8-bit\r\n\r\n\xe9\r\n".to_vec(),
        b"not a field\r\n: no name\r\nSubject: odd\r\n folded\r\n\r\nx\r\n".to_vec(),
        b"X-Tollgate-Lane: push\r\nSubject: forged\r\n\r\nX-Tollgate-Lane: queue\r\n".to_vec(),
        b"Subject: stamps in the body\r\n\r\nX-Tollgate-Decision: 00\r\n".to_vec(),
        wide,
        large,
    ]
}

/// The message of INBOX that was delivered last, as the client sees it.
async fn shown(stand: &Stand, client: &mut Client, message: &[u8]) -> Vec<u8> {
    assert_ne!(stand.provider.deliver(USER, message), 0);
    let wanted = stand.provider.mailbox(USER, "INBOX").len();
    let began = std::time::Instant::now();
    loop {
        client.ok("NOOP").await;
        let mut bodies = client.until_ok("UID FETCH 1:* (BODY.PEEK[])").await.bodies();
        if bodies.len() == wanted && bodies[wanted - 1].starts_with(b"X-Tollgate-Lane: ") {
            return bodies.remove(wanted - 1);
        }
        assert!(began.elapsed() < crate::stand::PATIENCE, "{} of {wanted}", bodies.len());
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

/// APPEND with a literal that waits, in pieces of a size.
async fn append_slowly(client: &mut Client, mailbox: &str, octets: &[u8], piece: usize) -> Reply {
    let tag = client.tag();
    client.send(format!("{tag} APPEND {mailbox} {{{}}}\r\n", octets.len()).as_bytes()).await;
    assert!(client.line().await.unwrap().starts_with(b"+ "));
    for part in octets.chunks(piece) {
        client.send(part).await;
        tokio::task::yield_now().await;
    }
    client.send(b"\r\n").await;
    client.reply(&tag).await
}

fn newest(stand: &Stand, mailbox: &str) -> Vec<u8> {
    stand.provider.mailbox(USER, mailbox).last().unwrap().octets.to_vec()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stamped_copy_that_is_uploaded_reaches_the_provider_as_it_was() {
    let stand = Stand::new().await;
    let mut client = stand.selected("INBOX").await;
    for message in messages() {
        let copy = shown(&stand, &mut client, &message).await;
        assert!(copy.ends_with(&neutralise(&message)));
        let case = String::from_utf8_lossy(&message[..message.len().min(60)]).into_owned();
        for mailbox in ["Archive", "INBOX"] {
            for piece in [usize::MAX, 997] {
                let before = stand.provider.mailbox(USER, mailbox).len();
                let reply = if piece == usize::MAX {
                    client.append(mailbox, &copy).await
                } else {
                    append_slowly(&mut client, mailbox, &copy, piece).await
                };
                assert!(reply.is("OK [APPENDUID"), "{case}: {reply:?}");
                assert_eq!(stand.provider.mailbox(USER, mailbox).len(), before + 1, "{case}");
                assert!(newest(&stand, mailbox) == neutralise(&message), "{case} in {mailbox}");
                if mailbox == "INBOX" {
                    let uid = reply.status.as_deref().unwrap().split([' ', ']']).nth(3).unwrap().to_owned();
                    let there = client.ok(&format!("UID FETCH {uid} (RFC822.SIZE BODY.PEEK[])")).await;
                    assert!(there.bodies() == [neutralise(&message)], "unstamped under the UID that was told: {case}");
                    assert!(there.has(&format!("RFC822.SIZE {}", message.len())), "{case}");
                }
            }
        }
    }
    stand.gateway.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_client_added_stays_and_what_is_no_stamp_of_ours_too() {
    let stand = Stand::new().await;
    let mut client = stand.selected("INBOX").await;
    let original = b"From: ann@example.com\r\nSubject: two\r\n\r\nbody\r\n";
    let copy = shown(&stand, &mut client, original).await;
    let stamp = &copy[..copy.len() - original.len()];
    let text = String::from_utf8(stamp.to_vec()).unwrap();
    let upload = async |client: &mut Client, octets: &[u8]| {
        // A passed-through mailbox may be selected, or a view.
        for selected in ["Archive", "INBOX"] {
            client.ok(&format!("SELECT {selected}")).await;
            assert!(client.append("Archive", octets).await.is("OK"));
        }
        let there = stand.provider.mailbox(USER, "Archive");
        let [.., a, b] = &there[..] else { panic!("two were appended") };
        assert!(a.octets == b.octets);
        b.octets.to_vec()
    };
    for (at_top, below) in [("X-TUID: abc\r\n", ""), ("", "X-TUID: abc\r\n"), ("A: b\r\n", "C: d\r\n e\r\n")] {
        let sent = [at_top.as_bytes(), stamp, below.as_bytes(), original].concat();
        let wanted = [at_top.as_bytes(), below.as_bytes(), original].concat();
        assert_eq!(upload(&mut client, &sent).await, wanted);
    }
    // The order doesn't matter, the octets do.
    let mut fields: Vec<&str> = text.split_inclusive("\r\n").collect();
    fields.reverse();
    let reversed = [fields.concat().as_bytes(), original].concat();
    assert_eq!(upload(&mut client, &reversed).await, original);
    let scores = *fields.iter().find(|f| f.starts_with("X-Tollgate-Scores")).unwrap();
    let changed = scores.replace("conf=", "Conf=");
    let sent = [text.replace(scores, &changed).as_bytes(), original].concat();
    assert_eq!(upload(&mut client, &sent).await, [changed.as_bytes(), original].concat());
    // A decision that isn't ours, and stamps without the one that names them.
    let decision = *fields.iter().find(|f| f.starts_with("X-Tollgate-Decision")).unwrap();
    for replaced in ["X-Tollgate-Decision: 0000000000000000\r\n", ""] {
        let sent = [text.replace(decision, replaced).as_bytes(), original].concat();
        assert_eq!(upload(&mut client, &sent).await, sent);
    }
    // Past the header nothing is a stamp.
    let quoted = [b"Subject: quoted\r\n\r\n".as_slice(), stamp, original].concat();
    assert_eq!(upload(&mut client, &quoted).await, quoted);
    stand.gateway.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn stamps_of_another_account_stay_and_an_agent_s_draft_has_none() {
    let stand = Stand::new().await;
    let mut client = stand.selected("INBOX").await;
    let copy = shown(&stand, &mut client, b"Subject: three\r\n\r\nbody\r\n").await;
    let mut agent = stand.sign_in(&stand.agent).await;
    let before = stand.provider.mailbox(USER, "Drafts").len();
    assert!(agent.append("Drafts", &copy).await.is("NO [CANNOT]"));
    assert_eq!(stand.provider.mailbox(USER, "Drafts").len(), before);
    // Another gateway knows nothing of this one's decisions.
    let other = Stand::new().await;
    let mut client = other.selected("INBOX").await;
    assert!(client.append("Archive", &copy).await.is("OK"));
    assert_eq!(newest(&other, "Archive"), copy);
    let id = AccountId::of(&Address::parse(USER).unwrap());
    let again = other.gateway.core().accounts.add_key(&id, Role::Person, "second").await.unwrap();
    let mut second = other.sign_in(&again).await;
    let shown = shown(&other, &mut client, b"Subject: four\r\n\r\nbody\r\n").await;
    assert!(second.append("Archive", &shown).await.is("OK"));
    assert_eq!(newest(&other, "Archive"), b"Subject: four\r\n\r\nbody\r\n", "any of the person's clients");
    stand.gateway.shutdown().await;
    other.gateway.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_upload_leaves_the_session_in_step() {
    let stand = Stand::new().await;
    for selected in ["INBOX", "Archive"] {
        let mut client = stand.selected(selected).await;
        for message in messages() {
            for reply in [
                client.append("Nowhere", &message).await,
                append_slowly(&mut client, "Nowhere", &message, usize::MAX).await,
                append_slowly(&mut client, "Nowhere", &message, 1999).await,
            ] {
                assert!(reply.is("NO"), "{selected}: {reply:?}");
            }
            client.ok("NOOP").await;
        }
        // Nothing of an APPEND that goes on after its message is kept.
        let before = stand.provider.mailbox(USER, "Archive").len();
        let tag = client.tag();
        client.send(format!("{tag} APPEND Archive {{3+}}\r\nA:b {{3+}}\r\nC:d\r\n").as_bytes()).await;
        let reply = client.reply(&tag).await;
        assert!(reply.is("BAD") || reply.bye, "{selected}: {reply:?}");
        assert_eq!(stand.provider.mailbox(USER, "Archive").len(), before, "{selected}");
    }
    stand.gateway.shutdown().await;
}
