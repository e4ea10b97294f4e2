//! From octets to what a reader would see, and the facts of its structure.
//!
//! Promises: total; at most [`MAX_TEXT`] octets of text; the visible form is
//! preferred, so that what a reader never sees steers nothing. Doesn't know:
//! what the words mean.

use mail_parser::{MessageParser, MessagePart, MimeHeaders, PartType};

use super::calendar::Calendar;
use super::fields::{Fields, base64_lenient, decode_charset};
use super::{MAX_TEXT, html, quote};
use crate::lane::trace::PartRead;

/// What was read of a message.
#[derive(Debug, Default, Clone)]
pub(super) struct Reading {
    /// The decoded subject.
    pub(super) subject: String,
    /// What the sender wrote now.
    pub(super) own: String,
    /// Earlier mail, quoted or forwarded.
    pub(super) quoted: String,
    /// Characters that a reader wouldn't see.
    pub(super) hidden: u64,
    /// Targets of links.
    pub(super) links: Vec<String>,
    /// Calendar parts.
    pub(super) calendars: Vec<Calendar>,
    /// The report that it is, if it is one.
    pub(super) report: Option<Report>,
    /// Parts that are offered as files.
    pub(super) attachments: usize,
    /// The parts that text was taken from.
    pub(super) parts: Vec<PartRead>,
}

/// Kinds of multipart/report (RFC 6522).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Report {
    /// RFC 3464.
    Delivery,
    /// RFC 8098.
    Disposition,
}

/// Fewer visible characters than this in the HTML form: the plain form is read instead.
const LEAST_VISIBLE: usize = 8;
/// Attached messages that are looked into.
const MAX_ATTACHED: usize = 4;

/// Reads a message.
pub(super) fn read(octets: &[u8], fields: &Fields<'_>) -> Reading {
    let mut out = Reading { subject: fields.text("Subject").unwrap_or_default(), ..Reading::default() };
    let mut left = MAX_TEXT;
    let parsed = MessageParser::new().parse(octets);
    let Some(message) = parsed else {
        raw_text(fields.body(), &mut left, &mut out);
        return out;
    };
    structure(&message.parts, &mut out);
    take_bodies(&message, &message.html_body, &mut left, &mut out);
    if visible(&out.own) < LEAST_VISIBLE {
        // An HTML form of pictures only, or none: what the plain form says.
        let plain: Vec<u32> = message.text_body.iter().copied().filter(|id| !message.html_body.contains(id)).collect();
        take_bodies(&message, &plain, &mut left, &mut out);
    }
    for part in message.parts.iter().filter_map(|p| p.message()).take(MAX_ATTACHED) {
        let mut inner = Reading::default();
        take_bodies(part, &part.html_body, &mut left, &mut inner);
        out.quoted.push_str(part.subject().unwrap_or_default());
        out.quoted.push('\n');
        out.quoted.push_str(&inner.own);
        out.quoted.push_str(&inner.quoted);
    }
    if out.parts.is_empty() && out.calendars.is_empty() && out.attachments == 0 {
        raw_text(fields.body(), &mut left, &mut out);
    }
    out
}

fn visible(text: &str) -> usize {
    text.chars().filter(|c| c.is_alphanumeric()).count()
}

fn structure(parts: &[MessagePart<'_>], out: &mut Reading) {
    for part in parts {
        let kind = media_type(part);
        let name = part.attachment_name().unwrap_or_default().to_ascii_lowercase();
        if kind == "text/calendar" || kind == "application/ics" || name.ends_with(".ics") {
            let declared = part.content_type().and_then(|c| c.attribute("method"));
            out.calendars.push(Calendar::parse(&String::from_utf8_lossy(part.contents()), declared));
        } else if kind == "message/delivery-status" {
            out.report = Some(Report::Delivery);
        } else if kind == "message/disposition-notification" {
            out.report = Some(Report::Disposition);
        } else if !name.is_empty() {
            out.attachments += 1;
        }
    }
}

fn media_type(part: &MessagePart<'_>) -> String {
    match part.content_type() {
        Some(c) => format!("{}/{}", c.ctype(), c.subtype().unwrap_or_default()).to_ascii_lowercase(),
        None => "text/plain".to_owned(),
    }
}

fn take_bodies(message: &mail_parser::Message<'_>, ids: &[u32], left: &mut usize, out: &mut Reading) {
    for id in ids {
        let Some(part) = message.parts.get(*id as usize) else { continue };
        let kind = media_type(part);
        if *left == 0 || !matches!(kind.as_str(), "text/plain" | "text/html" | "text/enriched") {
            continue;
        }
        let text = part_text(message, part);
        let text = cut(&text, *left);
        *left -= text.len();
        out.parts.push(PartRead { part: *id, media_type: kind.clone(), octets: text.len() as u64 });
        take_text(text, kind == "text/html" || looks_like_html(text), out);
    }
}

/// A part's text; where its base64 is damaged, what can be decoded of it.
fn part_text(message: &mail_parser::Message<'_>, part: &MessagePart<'_>) -> String {
    let charset = part.content_type().and_then(|c| c.attribute("charset")).unwrap_or_default();
    if part.is_encoding_problem && part.content_transfer_encoding().is_some_and(|e| e.eq_ignore_ascii_case("base64")) {
        let raw = message.raw_message.get(part.offset_body as usize..part.offset_end as usize).unwrap_or_default();
        return decode_charset(charset, &base64_lenient(raw));
    }
    match &part.body {
        PartType::Text(text) | PartType::Html(text) => text.clone().into_owned(),
        PartType::Binary(octets) | PartType::InlineBinary(octets) => decode_charset(charset, octets),
        PartType::Message(_) | PartType::Multipart(_) => String::new(),
    }
}

fn take_text(text: &str, is_html: bool, out: &mut Reading) {
    let plain;
    let text = if is_html {
        let seen = html::to_text(text);
        out.hidden += seen.hidden;
        out.links.extend(seen.links);
        out.quoted.push_str(&seen.quoted);
        out.quoted.push('\n');
        plain = seen.text;
        plain.as_str()
    } else {
        text
    };
    let split = quote::split(text);
    out.own.push_str(&split.own);
    out.own.push('\n');
    out.quoted.push_str(&split.quoted);
}

/// Programs send HTML labelled as plain text; a reader's program may show it so or so.
fn looks_like_html(text: &str) -> bool {
    let start = text.trim_start().get(..64).unwrap_or(text.trim_start()).to_ascii_lowercase();
    start.starts_with("<!doctype html") || start.starts_with("<html") || start.starts_with("<body") || {
        let head = cut(text, 4096).to_ascii_lowercase();
        head.matches("</").count() >= 3 && (head.contains("<div") || head.contains("<p>") || head.contains("<td"))
    }
}

/// What can be read where the structure can't.
fn raw_text(body: &[u8], left: &mut usize, out: &mut Reading) {
    let text = String::from_utf8_lossy(&body[..body.len().min(*left)]).into_owned();
    let text = cut(&text, *left);
    if visible(text) == 0 {
        return;
    }
    *left -= text.len();
    out.parts.push(PartRead { part: 0, media_type: "text/plain".to_owned(), octets: text.len() as u64 });
    take_text(text, looks_like_html(text), out);
}

/// The longest prefix of at most `most` octets that ends on a character.
pub(super) fn cut(text: &str, most: usize) -> &str {
    if text.len() <= most {
        return text;
    }
    let mut end = most;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own(message: &str) -> String {
        let r = read(message.as_bytes(), &Fields::new(message.as_bytes()));
        r.own.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn text_in_nested_multiparts_is_found() {
        let m = "Content-Type: multipart/mixed; boundary=a\r\n\r\n--a\r\nContent-Type: multipart/related; boundary=b\r\n\r\n--b\r\nContent-Type: multipart/alternative; boundary=c\r\n\r\n--c\r\nContent-Type: text/plain\r\n\r\ndeep text\r\n--c--\r\n--b--\r\n--a--\r\n";
        assert_eq!(own(m), "deep text");
    }

    #[test]
    fn html_alone_is_read() {
        assert_eq!(own("Content-Type: text/html\r\n\r\n<p>Could you call?</p>"), "Could you call?");
        assert_eq!(
            own("Content-Type: text/plain\r\n\r\n<html><body><p>Could you call?</p></body></html>"),
            "Could you call?"
        );
    }

    #[test]
    fn of_alternatives_the_one_a_reader_sees_is_read() {
        let m = "Content-Type: multipart/alternative; boundary=c\r\n\r\n--c\r\nContent-Type: text/plain\r\n\r\nunseen words here\r\n--c\r\nContent-Type: text/html\r\n\r\n<p>seen words here</p>\r\n--c--\r\n";
        assert_eq!(own(m), "seen words here");
        let m = m.replace("<p>seen words here</p>", "<img src=a>");
        assert_eq!(own(&m), "unseen words here");
    }

    #[test]
    fn charsets_are_decoded() {
        let mut m = b"Content-Type: text/plain; charset=euc-kr\r\n\r\n".to_vec();
        m.extend_from_slice(&[0xc8, 0xb8, 0xc0, 0xc7]);
        assert_eq!(read(&m, &Fields::new(&m)).own.trim(), "회의");
        let m = "Content-Type: text/plain; charset=iso-2022-jp\r\n\r\n\x1b$B2q5D\x1b(B\r\n";
        assert_eq!(own(m), "会議");
    }

    #[test]
    fn damaged_base64_is_read_as_far_as_it_goes() {
        let m = "Content-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: base64\r\n\r\nQ291bGQg!!!eW91IGNhbGw/\r\n";
        assert_eq!(own(m), "Could you call?");
    }

    #[test]
    fn a_multipart_without_boundary_still_says_something() {
        assert!(own("Content-Type: multipart/mixed\r\n\r\nhello there\r\n").contains("hello there"));
    }

    #[test]
    fn calendars_and_reports_are_facts() {
        let m = "Content-Type: multipart/report; report-type=delivery-status; boundary=a\r\n\r\n--a\r\n\r\nfailed\r\n--a\r\nContent-Type: message/delivery-status\r\n\r\nAction: failed\r\n--a--\r\n";
        assert_eq!(read(m.as_bytes(), &Fields::new(m.as_bytes())).report, Some(Report::Delivery));
        let m = "Content-Type: text/calendar; method=REPLY\r\n\r\nBEGIN:VCALENDAR\r\nEND:VCALENDAR\r\n";
        assert!(read(m.as_bytes(), &Fields::new(m.as_bytes())).calendars[0].records());
    }

    #[test]
    fn text_is_bounded() {
        let m = format!("Subject: x\r\n\r\n{}", "é".repeat(MAX_TEXT));
        let r = read(m.as_bytes(), &Fields::new(m.as_bytes()));
        assert!(r.own.len() <= MAX_TEXT + 2);
    }
}
