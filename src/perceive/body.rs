//! From octets to what a reader would see, and the facts of its structure.
//!
//! Promises: total; at most [`MAX_TEXT`] octets of text; the visible form is
//! preferred, so that what a reader never sees steers nothing. Doesn't know:
//! what the words mean.

use super::calendar::Calendar;
use super::fields::Fields;
use super::parts::{Enclosed, Form, Parts};
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
    let parts = Parts::of(octets);
    structure(&parts, &mut out);
    let shown = parts.bodies(0, Form::Html);
    take_bodies(&parts, &shown, &mut left, &mut out);
    if !is_visible(&out.own, LEAST_VISIBLE) {
        // An HTML form of pictures only, or none: what the plain form says.
        let plain: Vec<usize> = parts.bodies(0, Form::Plain).into_iter().filter(|id| !shown.contains(id)).collect();
        take_bodies(&parts, &plain, &mut left, &mut out);
    }
    for enclosed in parts.enclosed().into_iter().take(MAX_ATTACHED) {
        take_enclosed(&parts, &enclosed, &mut left, &mut out);
    }
    if out.parts.is_empty() && out.calendars.is_empty() && out.attachments == 0 {
        raw_text(fields.body(), &mut left, &mut out);
    }
    out
}

/// Someone else's mail inside this one: its words are as good as quoted.
fn take_enclosed(parts: &Parts<'_>, enclosed: &Enclosed, left: &mut usize, out: &mut Reading) {
    let decoded;
    let inside;
    let (parts, root) = match enclosed {
        Enclosed::Here(root) => (parts, *root),
        Enclosed::Encoded(at) => {
            decoded = parts.decoded(*at);
            inside = Parts::of(&decoded);
            (&inside, 0)
        }
    };
    let mut inner = Reading::default();
    take_bodies(parts, &parts.bodies(root, Form::Html), left, &mut inner);
    out.quoted.push_str(&parts.subject(root));
    out.quoted.push('\n');
    out.quoted.push_str(&inner.own);
    out.quoted.push_str(&inner.quoted);
}

/// Whether a text has this many letters and digits.
fn is_visible(text: &str, least: usize) -> bool {
    text.chars().filter(|c| super::text::is_word(*c)).take(least).count() == least
}

fn structure(parts: &Parts<'_>, out: &mut Reading) {
    for at in parts.own_parts() {
        let kind = parts.media_type(at);
        let name = parts.file_name(at).to_ascii_lowercase();
        if kind == "text/calendar" || kind == "application/ics" || name.ends_with(".ics") {
            out.calendars.push(Calendar::parse(&parts.text(at), parts.parameter(at, "method")));
        } else if kind == "message/delivery-status" {
            out.report = Some(Report::Delivery);
        } else if kind == "message/disposition-notification" {
            out.report = Some(Report::Disposition);
        } else if !name.is_empty() {
            out.attachments += 1;
        }
    }
}

fn take_bodies(parts: &Parts<'_>, ids: &[usize], left: &mut usize, out: &mut Reading) {
    for id in ids {
        if *left == 0 {
            break;
        }
        let kind = parts.media_type(*id);
        let text = parts.text(*id);
        let text = cut(&text, *left);
        *left -= text.len();
        let part = u32::try_from(*id).unwrap_or(u32::MAX);
        out.parts.push(PartRead { part, media_type: kind.to_owned(), octets: text.len() as u64 });
        take_text(text, kind == "text/html" || looks_like_html(text), out);
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
    if !is_visible(text, 1) {
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
