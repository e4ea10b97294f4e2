//! One case for each refusal, and its twin that passes.

use super::*;

const HEADER: &str = "From: Demo <demo@example.org>\r\nDate: Mon, 30 Nov 2026 00:00:00 +0000\r\n";

fn rules(eight_bit: bool, smtputf8: bool) -> Rules {
    let addresses = ["demo@example.org", "alias@example.org"].map(str::to_owned).into();
    Rules { addresses, eight_bit, smtputf8 }
}

fn check_with(message: &[u8], rules: &Rules) -> Result<Passed, Refusal> {
    let verdict = |step: usize| {
        let mut checker = Checker::new(rules.clone());
        message.chunks(step).for_each(|chunk| checker.feed(chunk));
        checker.finish()
    };
    let whole = verdict(message.len().max(1));
    for step in [1, 3, 64] {
        assert_eq!(verdict(step), whole, "step {step}");
    }
    whole
}

fn check(message: &str) -> Result<Passed, Refusal> {
    check_with(message.as_bytes(), &rules(false, false))
}

/// With fields behind the needed ones.
fn fields(more: &str) -> Result<Passed, Refusal> {
    check(&format!("{HEADER}{more}\r\nbody\r\n"))
}

#[test]
fn an_ordinary_message_passes() {
    let passed =
        fields("To: b@example.com\r\nSubject: =?utf-8?q?=C3=BC?=\r\n folded\r\nMessage-ID: <1@x>\r\n").unwrap();
    assert_eq!(passed.subject.as_deref(), Some("=?utf-8?q?=C3=BC?= folded"));
    assert_eq!(passed.message_id.as_deref(), Some("<1@x>"));
    assert!(check(HEADER).is_ok(), "a header alone is a message");
}

#[test]
fn fields_are_refused_with_their_reason() {
    let named = |name: &str| name.to_owned();
    for (more, want) in [
        ("From: demo@example.org\r\n", Refusal::Repeated(named("From"))),
        ("Subject: a\r\nSUBJECT: b\r\n", Refusal::Repeated(named("SUBJECT"))),
        ("To: a@example.com\r\nTo: b@example.com\r\n", Refusal::Repeated(named("To"))),
        ("Bcc: c@example.com\r\n", Refusal::Bcc),
        ("X-Mailgun-Deliver-By: x\r\n", Refusal::Instruction(named("X-Mailgun-Deliver-By"))),
        ("X-SMTPAPI: {}\r\n", Refusal::Instruction(named("X-SMTPAPI"))),
        ("X-MC-SendAt: x\r\n", Refusal::Instruction(named("X-MC-SendAt"))),
        ("Resent-To: x@example.com\r\n", Refusal::Instruction(named("Resent-To"))),
        ("Return-Receipt-To: x@example.com\r\n", Refusal::Instruction(named("Return-Receipt-To"))),
        ("Disposition-Notification-To: x@x\r\n", Refusal::Instruction(named("Disposition-Notification-To"))),
        ("X-Tollgate-Lane: push\r\n", Refusal::Instruction(named("X-Tollgate-Lane"))),
        ("X-Whatever: 1\r\n", Refusal::FieldNotAllowed(named("X-Whatever"))),
        ("Sender: else@example.org\r\n", Refusal::ForeignAddress("Sender")),
        ("MIME-Version: 2.0\r\n", Refusal::MimeVersion),
        ("no colon\r\n", Refusal::FieldSyntax),
        ("To : b@example.com\r\n", Refusal::FieldSyntax),
        ("Subject: a\r\n \t\r\n", Refusal::FieldSyntax),
        ("Subject: a\u{7}\r\n", Refusal::FieldSyntax),
        ("Subject: \u{fc}\r\n", Refusal::NeedsSmtputf8),
        ("Subject: a\0\r\n", Refusal::Nul),
    ] {
        assert_eq!(fields(more), Err(want), "{more}");
    }
    let many = "Keywords: x\r\n".repeat(MAX_FIELDS);
    assert_eq!(fields(&many), Err(Refusal::LongHeader));
    assert_eq!(
        check_with(format!("{HEADER}Subject: \u{fc}\r\n\r\n").as_bytes(), &rules(false, true)).map(drop),
        Ok(())
    );
    let latin1 = [HEADER.as_bytes(), b"Subject: \xfc\r\n\r\n"].concat();
    assert_eq!(check_with(&latin1, &rules(false, true)), Err(Refusal::HeaderNotUtf8));
    assert_eq!(check(" folded first\r\n\r\n"), Err(Refusal::FieldSyntax));
}

#[test]
fn the_sender_is_one_of_the_accounts_addresses() {
    let from = |value: &str| check(&format!("From: {value}\r\nDate: x\r\n\r\n")).map(drop);
    assert_eq!(from("DEMO@Example.ORG"), Ok(()));
    assert_eq!(from("A <alias@example.org>, demo@example.org"), Ok(()));
    for value in ["x@example.org", "demo@example.org, x@example.com", "\"demo@example.org\" <x@example.com>"] {
        assert_eq!(from(value), Err(Refusal::ForeignAddress("From")), "{value}");
    }
    assert_eq!(from("undisclosed:;"), Err(Refusal::Addresses("From")));
    assert_eq!(from(""), Err(Refusal::Addresses("From")));
    assert_eq!(check("Date: x\r\n\r\n"), Err(Refusal::Missing("From")));
    assert_eq!(check("From: demo@example.org\r\n\r\n"), Err(Refusal::Missing("Date")));
}

#[test]
fn long_lines_are_refused_anywhere() {
    let line = |n: usize| format!("{HEADER}\r\n{}\r\n", "a".repeat(n));
    assert!(check(&line(MAX_LINE)).is_ok());
    assert_eq!(check(&line(MAX_LINE + 1)), Err(Refusal::LongLine));
    let header = |n: usize| format!("{HEADER}Subject: {}\r\n\r\n", "a".repeat(n - 9));
    assert!(check(&header(MAX_LINE)).is_ok());
    assert_eq!(check(&header(MAX_LINE + 1)), Err(Refusal::LongLine));
    assert_eq!(check(&format!("{HEADER}\r\n{}", "a".repeat(5000))), Err(Refusal::LongLine));
}

/// A message of one part.
fn leaf(kind: &str, encoding: &str, body: &[u8]) -> Vec<u8> {
    let head =
        format!("{HEADER}MIME-Version: 1.0\r\nContent-Type: {kind}\r\nContent-Transfer-Encoding: {encoding}\r\n\r\n");
    [head.as_bytes(), body].concat()
}

#[test]
fn encodings_are_what_they_say() {
    let text = "text/plain; charset=utf-8";
    for (encoding, body, good) in [
        ("base64", "aGVsbG8=\r\n", true),
        ("base64", "aGVs\r\n\r\nbG8=\r\n", true),
        ("BASE64", "", true),
        ("base64", "aGVsbG8\r\n", false),
        ("base64", "aGVsbG8=\r\naGVs\r\n", false),
        ("base64", "aGVs bG8=\r\n", false),
        ("base64", "=\r\n", false),
        ("base64", "a===\r\n", false),
        ("base64", "aGVs*G8=\r\n", false),
        ("quoted-printable", "a=C3=BC=\r\nb=3d\r\n", true),
        ("quoted-printable", "a=ZZ\r\n", false),
        ("quoted-printable", "a=4\r\n", false),
        ("quoted-printable", "blank \r\n", false),
        ("quoted-printable", "open=\r\n", false),
        ("7bit", "plain\r\n", true),
    ] {
        let verdict = check_with(&leaf(text, encoding, body.as_bytes()), &rules(false, false)).map(drop);
        assert_eq!(verdict, if good { Ok(()) } else { Err(Refusal::BadlyEncoded) }, "{encoding} {body:?}");
    }
    for encoding in ["binary", "x-uuencode", "base64 7bit", ""] {
        let verdict = check_with(&leaf(text, encoding, b""), &rules(true, false));
        assert_eq!(verdict, Err(Refusal::Encoding), "{encoding}");
    }
}

#[test]
fn eight_bit_text_needs_its_parameter_its_encoding_and_its_charset() {
    let utf8 = "text/plain; charset=\"UTF-8\"";
    let umlaut = "\u{fc}\r\n".as_bytes();
    let run = |message: &[u8], eight_bit| check_with(message, &rules(eight_bit, false)).map(drop);
    assert_eq!(run(&leaf(utf8, "8bit", umlaut), true), Ok(()));
    assert_eq!(run(&leaf(utf8, "8bit", umlaut), false), Err(Refusal::NeedsEightBit));
    assert_eq!(run(&leaf(utf8, "7bit", umlaut), true), Err(Refusal::BadlyEncoded));
    assert_eq!(run(&leaf(utf8, "8bit", b"\xfc\r\n"), true), Err(Refusal::BadlyEncoded));
    assert_eq!(run(&leaf("text/plain; charset=iso-8859-1", "8bit", b"\xfc\r\n"), true), Ok(()));
    assert_eq!(run(&leaf("text/plain", "8bit", umlaut), true), Err(Refusal::BadlyEncoded));
    assert_eq!(run(&leaf("text/plain; charset=utf-7", "7bit", b""), true), Err(Refusal::Charset("utf-7".into())));
}

#[test]
fn content_types_have_one_reading() {
    let run = |kind: &str| check_with(&leaf(kind, "7bit", b"x\r\n"), &rules(false, false)).map(drop);
    for kind in ["text/html; charset=us-ascii;", "application/pdf; name=\"a;b=\\\"c\"", "image/png"] {
        assert_eq!(run(kind), Ok(()), "{kind}");
    }
    for kind in [
        "text",
        "text/",
        "text/plain; charset",
        "text/plain; charset=utf-8; charset=us-ascii",
        "text/plain; charset*=utf-8''us-ascii",
        "text/plain; charset=\"utf-8",
        "text/plain charset=utf-8",
        "text/plain; charset=\"utf-8\" x",
        "text/plain (comment); charset=utf-8",
        "multipart/mixed; boundary*=utf-8''b",
    ] {
        assert_eq!(run(kind), Err(Refusal::ContentType), "{kind}");
    }
    assert_eq!(
        run("message/external-body; access-type=URL"),
        Err(Refusal::TypeNotAllowed("message/external-body".into()))
    );
    assert_eq!(run("message/partial"), Err(Refusal::TypeNotAllowed("message/partial".into())));
    for kind in ["multipart/mixed", "multipart/mixed; boundary=\"\"", "multipart/mixed; boundary=\"a \""] {
        assert_eq!(run(kind), Err(Refusal::Boundary), "{kind}");
    }
}

/// A multipart with boundary `b` around `body`.
fn multipart(body: &str) -> Result<(), Refusal> {
    let message = format!("{HEADER}Content-Type: multipart/mixed; boundary=b\r\n\r\n{body}");
    check(&message).map(drop)
}

#[test]
fn multiparts_are_closed_and_boundaries_can_not_be_mistaken() {
    assert_eq!(
        multipart("pre\r\n--b\r\n\r\none\r\n--b \r\nContent-Type: text/html\r\n\r\n<p>\r\n--b--\r\npost\r\n"),
        Ok(())
    );
    let inner = "--b\r\nContent-Type: multipart/alternative; boundary=c\r\n\r\n--c\r\n\r\nx\r\n";
    assert_eq!(multipart(&format!("{inner}--c--\r\n--b--\r\n")), Ok(()));
    assert_eq!(multipart(&format!("{inner}--b--\r\n")), Err(Refusal::Unclosed));
    assert_eq!(multipart(&format!("{inner}--c--\r\n")), Err(Refusal::Unclosed));
    assert_eq!(multipart("--b\r\n\r\none\r\n"), Err(Refusal::Unclosed));
    assert_eq!(multipart(""), Err(Refusal::Unclosed));
    assert_eq!(multipart("--b--\r\n"), Err(Refusal::Unclosed));
    assert_eq!(multipart("--b\r\n\r\none\r\n--bx\r\n--b--\r\n"), Err(Refusal::Boundary));
    assert_eq!(multipart("--b\r\n\r\none\r\n--b--x\r\n--b--\r\n"), Err(Refusal::Boundary));
    let same = "--b\r\nContent-Type: multipart/mixed; boundary=bb\r\n\r\n";
    assert_eq!(multipart(same), Err(Refusal::Boundary));
    assert_eq!(multipart("--b\r\nX-Odd: 1\r\n\r\n--b--\r\n"), Err(Refusal::FieldNotAllowed("X-Odd".into())));
    let twice = "--b\r\nContent-Type: text/plain\r\nContent-Type: text/html\r\n\r\n--b--\r\n";
    assert_eq!(multipart(twice), Err(Refusal::Repeated("Content-Type".into())));
    assert_eq!(
        multipart("--b\r\nContent-Transfer-Encoding: base64\r\n\r\nabc\r\n--b--\r\n"),
        Err(Refusal::BadlyEncoded)
    );
    let encoded =
        format!("{HEADER}Content-Type: multipart/mixed; boundary=b\r\nContent-Transfer-Encoding: base64\r\n\r\n");
    assert_eq!(check(&encoded), Err(Refusal::Encoding));
}

#[test]
fn depth_and_number_of_parts_are_bounded() {
    let mut deep = String::new();
    for n in 0..=MAX_DEPTH {
        deep.push_str(&format!("--{}\r\n", if n == 0 { "b".to_owned() } else { format!("x{n}x") }));
        deep.push_str(&format!("Content-Type: multipart/mixed; boundary=x{}x\r\n\r\n", n + 1));
    }
    assert_eq!(multipart(&deep), Err(Refusal::TooManyParts));
    assert_eq!(multipart(&"--b\r\n\r\n".repeat(MAX_PARTS + 1)), Err(Refusal::TooManyParts));
}

#[test]
fn every_refusal_has_its_reply() {
    assert_eq!(Refusal::Bcc.reply().to_bytes()[..9], *b"550 5.7.1");
    assert_eq!(Refusal::NeedsEightBit.reply().to_bytes()[..9], *b"554 5.6.3");
    assert_eq!(Refusal::NeedsSmtputf8.reply().to_bytes()[..9], *b"550 5.6.7");
    assert_eq!(Refusal::Unclosed.reply().to_bytes()[..9], *b"550 5.6.0");
    let evil = Refusal::FieldNotAllowed("a\r\n250 ok".into()).reply().to_bytes();
    assert_eq!(evil.iter().filter(|b| **b == b'\n').count(), 2);
    assert!(String::from_utf8(evil).unwrap().lines().all(|line| line.starts_with("550")));
}

/// Fields by which providers add recipients or send to somebody else, as they
/// stand in the providers' manuals, and neighbours of them in case and form.
#[test]
fn fields_that_would_add_recipients_are_refused_by_name() {
    for name in [
        "X-SMTPAPI",
        "x-smtpapi",
        "X-Mailgun-Recipient-Variables",
        "X-Mailgun-Variables",
        "X-MC-BccAddress",
        "X-MC-PreserveRecipients",
        "X-MC-MergeVars",
        "X-Mandrill-BccAddress",
        "X-MSYS-API",
        "X-Mailjet-Campaign",
        "X-MJ-CustomID",
        "X-SES-CONFIGURATION-SET",
        "X-PM-Message-Stream",
        "X-Postmark-Server-Token",
        "X-SIB-API",
        "X-Sparkpost-Options",
        "Resent-To",
        "Resent-Cc",
        "Resent-Bcc",
        "RESENT-FROM",
        "Apparently-To",
        "Delivered-To",
        "Errors-To",
        "Return-Path",
    ] {
        let refused = fields(&format!("{name}: eve@example.com\r\n"));
        assert_eq!(refused, Err(Refusal::Instruction(name.to_owned())), "{name}");
    }
    for form in ["Bcc", "BCC", "bcc"] {
        assert_eq!(fields(&format!("{form}: eve@example.com\r\n")), Err(Refusal::Bcc), "{form}");
    }
    // Folded, or behind another field's folding, it is the same field.
    assert!(fields("To: b@example.com,\r\n c@example.com\r\nX-SMTPAPI:\r\n {}\r\n").is_err());
}
