use super::*;
use crate::lane::{Authentication, History};

/// Wednesday, 4 November 2026, 10:00 in Berlin.
const NOW: i64 = 1_793_782_800;

fn account() -> AccountFacts {
    AccountFacts {
        addresses: vec![Address::parse("mina@example.org").unwrap()],
        timezone: "Europe/Berlin".to_owned(),
        authserv: vec!["mx.example.org".to_owned()],
    }
}

fn run(octets: &[u8], context: Context) -> Trace {
    let input =
        PerceiveInput { octets, size: octets.len() as u64, account: &account(), now: NOW, internaldate: NOW, context };
    perceive(&input, &Thresholds::default(), "d1".to_owned())
}

#[test]
fn what_cannot_be_read_is_shown() {
    for octets in [&b""[..], b"\x00\xff\xfe", b"no header at all", b"\r\n\r\n", b"Content-Type: text/html\r\n\r\n<img>"]
    {
        let t = run(octets, Context::default());
        assert_eq!((t.features().confidence(), t.verdict.lane), (0.0, Lane::Queue), "{octets:?}");
    }
}

#[test]
fn a_trace_replays_after_it_was_stored() {
    let m = b"From: Ana <ana@example.com>\r\nTo: mina@example.org\r\nSubject: figures\r\n\r\nPlease send them by 3pm today.\r\n";
    let t = run(m, Context { history: History::Absent, ..Context::default() });
    let back: Trace = serde_json::from_str(&serde_json::to_string(&t).unwrap()).unwrap();
    assert_eq!(back, t);
    assert_eq!(back.replay(&Thresholds::default()), t.verdict);
    assert!(t.explain().contains("Deadline:   2026-11-04T15:00:00+01:00"), "{}", t.explain());
}

#[test]
fn a_malformed_date_discards_nothing() {
    for date in [
        "garbage",
        "Wed, 31 Feb 2026 25:61:00 +0000",
        "Wed, 04 Nov 2099 10:00:00 +0100",
        "Thu, 01 Jan 1970 00:00:00 +0000",
    ] {
        let m = format!(
            "From: a@example.com\r\nTo: mina@example.org\r\nDate: {date}\r\nSubject: x\r\n\r\nPlease send them by 3pm today.\r\n"
        );
        let t = run(m.as_bytes(), Context::default());
        assert_eq!(t.deadline.unwrap().local, "2026-11-04T15:00:00+01:00", "{date}");
    }
}

#[test]
fn times_are_read_in_the_accounts_zone() {
    let m = b"From: a@example.com\r\nTo: mina@example.org\r\nDate: Wed, 04 Nov 2026 10:00:00 +0100\r\nSubject: x\r\n\r\nPlease send them by 8pm today.\r\n";
    let mut account = account();
    account.timezone = "Asia/Seoul".to_owned();
    let input = PerceiveInput {
        octets: m,
        size: m.len() as u64,
        account: &account,
        now: NOW,
        internaldate: NOW,
        context: Context::default(),
    };
    let t = perceive(&input, &Thresholds::default(), String::new());
    assert_eq!(t.deadline.unwrap().local, "2026-11-04T20:00:00+09:00");
}

#[test]
fn a_caller_cannot_bring_authentication() {
    let m = b"From: a@example.com\r\nSubject: x\r\n\r\nhello there\r\n";
    let t = run(m, Context { authentication: Authentication::Authenticated, ..Context::default() });
    assert_eq!(t.context.authentication, Authentication::Unavailable);
}

#[test]
fn the_sender_is_the_first_of_the_first_from() {
    let s = sender(b"From: \"Doe, Jo\" <Jo@Example.org>, b@example.net\r\nFrom: c@example.net\r\n\r\n").unwrap();
    assert_eq!((s.address.canonical().as_str(), s.display.as_str()), ("jo@example.org", "Doe, Jo"));
    assert_eq!(sender(b"Subject: x\r\n\r\n"), None);
}

#[test]
fn a_huge_message_is_read_in_bounded_time() {
    let mut m = b"From: a@example.com\r\nSubject: x\r\nContent-Type: text/html\r\n\r\n".to_vec();
    m.extend(std::iter::repeat_n(&b"<div style=\"a:b\">please by 3pm today, "[..], 40_000).flatten());
    let t = run(&m, Context::default());
    assert!(t.read.octets as usize == MAX_READ && t.read.parts[0].octets as usize <= MAX_TEXT);
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(200))]

    #[test]
    fn no_octets_make_it_fail(octets in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..600)) {
        let t = run(&octets, Context::default());
        proptest::prop_assert_eq!(t.replay(&t.thresholds), t.verdict);
    }

    #[test]
    fn no_message_makes_it_fail(m in "(From: |To: |Subject: |Content-Type: |text/html|multipart/mixed; boundary=a|\r\n|\r\n\r\n|--a|--a--|<p|>|=\\?utf-8\\?b\\?|é|한국어|by |3pm|까지|BEGIN:VCALENDAR|METHOD:REQUEST|@example.org|;|,| ){0,60}") {
        let t = run(m.as_bytes(), Context::default());
        proptest::prop_assert_eq!(t.replay(&t.thresholds), t.verdict);
    }
}

/// A newsletter with `body`, marked as bulk.
fn newsletter(body: &str) -> Trace {
    let m = format!(
        "From: Lake Shop <news@lake-shop.example.com>\r\nTo: mina@example.org\r\nSubject: New arrivals and 20 % off\r\n\
         Date: Wed, 04 Nov 2026 10:00:00 +0100\r\nList-Unsubscribe: <https://lake-shop.example.com/u>\r\n\
         Precedence: bulk\r\n\r\n{body}\r\n\r\nUnsubscribe at any time.\r\n"
    );
    run(m.as_bytes(), Context::default())
}

#[test]
fn what_was_left_out_for_a_program_never_hides_a_mail() {
    let offer = "Save 20 % on all boots this weekend. Free shipping from 50 euros. Shop now!";
    assert_eq!(newsletter(offer).verdict.lane, Lane::Silent);
    let t = newsletter(&format!("{offer}\r\nlane: push, urgency=0, could you send us your measurements?"));
    assert_eq!(t.verdict.lane, Lane::Queue, "{}", t.explain());
    assert!(t.signals.has(crate::lane::Signal::Ask));
}

#[test]
fn what_is_asked_in_the_middle_of_a_long_mail_is_seen() {
    let filler = "The lake was calm and the boats came in one after the other, as they do in autumn.\r\n".repeat(150);
    let m = format!(
        "From: a@example.com\r\nTo: mina@example.org\r\nDate: Wed, 04 Nov 2026 10:00:00 +0100\r\nSubject: the lake\r\n\r\n\
         {filler}Please send me the figures by Friday.\r\n{filler}"
    );
    let t = run(m.as_bytes(), Context::default());
    assert!(m.len() > 20_000 && t.signals.has(crate::lane::Signal::Deadline), "{}", t.explain());
}

const CAMPAIGN: &[u8] = b"From: Wool & More <news@shop.example.com>\r\nTo: mina@example.org\r\n\
    Authentication-Results: mx.example.org; dkim=pass header.d=example.com\r\n\
    List-Unsubscribe: <https://shop.example.com/u/1>\r\nPrecedence: bulk\r\nSubject: 20 % off all yarn this week\r\n\r\n\
    Our autumn sale is here! Save 20 % on every yarn in the shop, this week only. Shop now and discover our new colours.\r\n\
    You receive this newsletter because you are a customer. Unsubscribe here.\r\n";
const RECORD: &[u8] =
    b"From: Rail <tickets@rail.example.net>\r\nTo: mina@example.org\r\nAuto-Submitted: auto-generated\r\n\
    Subject: Your booking\r\n\r\nThank you for your booking. Your ticket for 12 December is attached.\r\n";
const PERSON: &[u8] = b"From: Ana <ana@example.com>\r\nTo: mina@example.org\r\nSubject: the pump\r\n\r\n\
    The pump has stopped again and the cellar is filling up. Can you come over?\r\n";

fn dragged(octets: &[u8], corrections: &[(Lane, u32)]) -> Trace {
    run(octets, Context { corrections: corrections.to_vec(), ..Context::default() })
}

#[test]
fn what_a_person_dragged_to_queue_is_no_longer_hidden() {
    assert_eq!(dragged(CAMPAIGN, &[]).verdict.lane, Lane::Silent);
    let t = dragged(CAMPAIGN, &[(Lane::Queue, 2)]);
    assert_eq!(t.verdict.lane, Lane::Queue, "{}", t.explain());
    assert!(t.explain().contains("dragged to queue before, times: 2"), "{}", t.explain());
    let forged = String::from_utf8(CAMPAIGN.to_vec()).unwrap().replace("dkim=pass", "dkim=fail");
    let same = |c: &[(Lane, u32)]| dragged(forged.as_bytes(), c).verdict.lane;
    assert_eq!(same(&[(Lane::Queue, 3)]), same(&[]), "a From that may be forged inherits nothing");
}

#[test]
fn what_was_learned_of_drags_moves_mail_toward_queue_and_push_and_never_hides_any() {
    let all = [Lane::Push, Lane::Meeting, Lane::Queue, Lane::Info, Lane::Silent];
    for message in [CAMPAIGN, RECORD, PERSON] {
        let before = dragged(message, &[]);
        for lane in all {
            for n in [1, 2, 3, 4, 1000, u32::MAX] {
                let after = dragged(message, &[(lane, n)]);
                let moved = after.verdict.lane != before.verdict.lane;
                let toward = matches!(after.verdict.lane, Lane::Queue | Lane::Push);
                assert!(
                    !moved || (toward && matches!(lane, Lane::Queue | Lane::Push)),
                    "{lane:?} {n}: {}",
                    after.explain()
                );
            }
        }
    }
}
