//! Mail that is built to exhaust the reader: each is read to the end, on a
//! small stack, in time that follows its size.

use std::time::Duration;

use base64::Engine as _;

use super::*;

/// As in tokio's workers.
const STACK: usize = 2 * 1024 * 1024;
/// Unoptimised; of the processor's time, since a busy machine is no fault.
const LONGEST: Duration = Duration::from_secs(2);

/// What this thread has had of the processor (Documentation/scheduler/sched-stats
/// of the kernel: nanoseconds come first).
fn busy() -> Duration {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").expect("a kernel with schedstat");
    Duration::from_nanos(stat.split(' ').next().and_then(|n| n.parse().ok()).expect("nanoseconds"))
}

fn read_in_time(name: &'static str, message: Vec<u8>) {
    let run = move || {
        let account = AccountFacts {
            addresses: vec![Address::parse("mina@example.org").unwrap()],
            timezone: "Europe/Berlin".to_owned(),
            authserv: vec!["mx.example.org".to_owned()],
        };
        let now = 1_793_782_800;
        let size = message.len() as u64;
        let start = busy();
        let input = PerceiveInput {
            octets: &message,
            size,
            account: &account,
            now,
            internaldate: now,
            context: Context::default(),
        };
        let trace = perceive(&input, &Thresholds::default(), "d".to_owned());
        // What the gateway does with it next must end, too.
        assert!(sender(&message).is_none_or(|s| !s.address.domain.is_empty()));
        (trace.verdict.lane, busy() - start)
    };
    warm();
    let thread = std::thread::Builder::new().stack_size(STACK).spawn(run).unwrap();
    let (lane, took) = thread.join().unwrap();
    println!("{name}: {took:?} {lane:?}");
    assert_ne!(lane, Lane::Silent, "{name}");
    assert!(took < LONGEST, "{name} took {took:?}");
}

const HEAD: &str = "From: a@example.com\r\nTo: mina@example.org\r\nSubject: x\r\n";

fn mail(rest: &str) -> Vec<u8> {
    format!("{HEAD}{rest}").into_bytes()
}

fn encoded(content_type: &str, body: &str) -> Vec<u8> {
    let text = base64::engine::general_purpose::STANDARD.encode(body);
    mail(&format!("Content-Type: {content_type}\r\nContent-Transfer-Encoding: base64\r\n\r\n{text}\r\n"))
}

fn multiparts(levels: usize, between: &str) -> String {
    (0..levels).map(|n| format!("Content-Type: multipart/mixed; boundary={n}\r\n\r\n--{n}\r\n{between}")).collect()
}

#[test]
fn nested_messages_are_read_in_bounded_depth() {
    let nested = "Content-Type: message/rfc822\r\n\r\n".repeat(100_000);
    read_in_time("nested messages", mail(&nested));
    read_in_time("nested messages in base64", encoded("message/rfc822", &nested));
    let twice = String::from_utf8(encoded("message/rfc822", &nested)).unwrap();
    read_in_time("nested messages in base64 twice", encoded("message/rfc822", &twice));
    read_in_time("messages in multiparts", mail(&multiparts(100_000, "Content-Type: message/rfc822\r\n\r\n")));
    let one = "--b\r\nContent-Type: message/rfc822\r\n\r\nContent-Type: multipart/digest; boundary=b\r\n\r\n";
    let digests = format!("Content-Type: multipart/digest; boundary=b\r\n\r\n{}", one.repeat(100_000));
    read_in_time("digests that share a boundary", mail(&digests));
}

#[test]
fn nested_and_many_parts_are_read_in_bounded_time() {
    read_in_time("nested multiparts", mail(&multiparts(100_000, "")));
    read_in_time("nested multiparts in base64", encoded("multipart/mixed; boundary=x", &multiparts(100_000, "")));
    let many = |part: &str, n| format!("Content-Type: multipart/mixed; boundary=b\r\n\r\n{}", part.repeat(n));
    read_in_time("empty parts", mail(&many("--b\r\n\r\n", 200_000)));
    read_in_time("delimiters", mail(&many("--b\r\n", 200_000)));
    read_in_time("unfinished delimiters", mail(&many("--bx\r\n", 200_000)));
    let same = "Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n";
    read_in_time("multiparts that share a boundary", mail(&same.repeat(20_000)));
}

#[test]
fn endless_headers_are_read_in_bounded_time() {
    read_in_time("one header line", mail(&format!("X-Long: {}\r\n\r\nhello\r\n", "a".repeat(512 * 1024))));
    read_in_time("one long subject", format!("Subject: {}\r\n\r\nhello\r\n", "a ".repeat(256 * 1024)).into_bytes());
    for name in ["X", "To", "From", "Received", "Authentication-Results", "Content-Type", "Auto-Submitted"] {
        read_in_time("fields", mail(&format!("{}\r\nhello\r\n", format!("{name}: a;b=c\r\n").repeat(100_000))));
    }
    let trusted = format!("Authentication-Results: mx.example.org; dkim=pass {}\r\n", "(".repeat(400_000));
    read_in_time("comments", mail(&format!("{trusted}\r\nhello\r\n")));
    read_in_time(
        "comments in a type",
        mail(&format!("Content-Type: text/plain {}\r\n\r\nhi\r\n", "(a".repeat(200_000))),
    );
    let parameters = "; a=b".repeat(100_000);
    read_in_time("parameters", mail(&format!("Content-Type: text/plain{parameters}\r\n\r\nhi\r\n")));
    let continued: String = (0..20_000).map(|n| format!("; name*{n}=b")).collect();
    read_in_time("continued parameters", mail(&format!("Content-Type: text/plain{continued}\r\n\r\nhi\r\n")));
}

#[test]
fn encoded_words_of_every_shape_are_read_in_bounded_time() {
    for word in ["=?", "=?utf-8?q?", "=?utf-8?b? ", "=?a?q?=?a?q?", "=?utf-8?q?a?= ", "=?iso-2022-jp?b?GyRC?= ", "=?x*"]
    {
        for name in ["Subject", "From", "To", "X", "Content-Type"] {
            let deep = word.repeat(512 * 1024 / word.len());
            read_in_time("one field", format!("{name}: {deep}\r\n\r\nhello\r\n").into_bytes());
            let lines = format!("{name}: {}\r\n", word.repeat(8 * 1024 / word.len()));
            read_in_time("many fields", format!("{}\r\nhello\r\n", lines.repeat(60)).into_bytes());
        }
    }
}

#[test]
fn endless_texts_are_read_in_bounded_time() {
    for piece in [
        "\r\n",
        " \r\n",
        ">\r\n",
        "> a\r\n",
        "a 2026@example.org wrote:\r\n",
        "-- \r\n",
        "from: a\r\n",
        "?",
        "www.",
        "http://",
        "e\u{301}",
        "\u{301}",
        "a. ",
        "by 3pm ",
        "please ",
        "12:30 ",
        "1",
        "까지",
        "請",
        "(",
        "한",
    ] {
        let text = piece.repeat(400 * 1024 / piece.len());
        read_in_time("text", mail(&format!("Content-Type: text/plain; charset=utf-8\r\n\r\n{text}")));
        read_in_time("text and a quotation", mail(&format!("\r\n{text}\r\n> quoted\r\n")));
    }
}

#[test]
fn endless_markup_is_read_in_bounded_time() {
    for piece in [
        "<",
        "<a",
        "<div>",
        "</x>",
        "<div></x>",
        "<a href=\"",
        "<a ='>",
        "<!--",
        "<script>",
        "<style></x>",
        "&",
        "&#",
        "&amp;",
        "<br>",
        "<p>a",
        "<a href=x>",
        "<blockquote>a",
        "<div style=\"display:none\">a",
        "<p a=b c=d e f g>",
        "<title>a",
        "<svg>a<br>",
    ] {
        let text = piece.repeat(400 * 1024 / piece.len());
        read_in_time("markup", mail(&format!("Content-Type: text/html; charset=utf-8\r\n\r\n{text}")));
        let deep = format!("{}{text}", "<svg>".repeat(300));
        read_in_time("deep markup", mail(&format!("Content-Type: text/html; charset=utf-8\r\n\r\n{deep}")));
    }
}

#[test]
fn endless_calendars_are_read_in_bounded_time() {
    for piece in ["ATTENDEE:mailto:a@example.org\r\n", "\r\n ", "\"", "METHOD", ":", ";", "BEGIN:VCALENDAR\r\n"] {
        let text = piece.repeat(400 * 1024 / piece.len());
        read_in_time("calendar", mail(&format!("Content-Type: text/calendar\r\n\r\n{text}")));
    }
}
