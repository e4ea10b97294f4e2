//! A message for showing: every field, every part, and what could mislead.
//!
//! Promises: reads the very octets that are hashed and sent, by spans; shows
//! every field and every part up to the named limits and says where a limit
//! cut; whatever can't be seen, can't be decoded or is read differently by
//! clients becomes a [`Warning`]. Never panics, never recurses deeper than
//! [`MAX_DEPTH`]. Doesn't know: the envelope (but see
//! [`MessageView::against`]), who the recipients are, or whether the mail is
//! a good idea.

mod compare;
pub mod decode;
mod files;
pub mod html;
mod links;
pub(crate) mod split;
pub mod visible;
mod warning;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use mail_parser::HeaderValue;
use mail_parser::parsers::MessageStream;
use sha2::{Digest, Sha256};

use crate::mail::address::Address;
use crate::mail::header::Field;

pub use compare::Difference;
use decode::{CharsetProblem, TransferEncoding};
use split::{Entity, Kind, Oddity};
pub use split::{MAX_DEPTH, MAX_FIELDS, MAX_PARTS};
use visible::{Shape, reveal};
pub use warning::{Level, Warning};

/// Most octets of decoded text that a view holds, over all parts.
pub const MAX_TEXT: usize = 1024 * 1024;
/// Most warnings; past it, one says that there are more.
pub const MAX_WARNINGS: usize = 200;
/// Longest line without its line end (RFC 5322 §2.1.1).
const MAX_LINE: usize = 998;
/// Octets of file content that are compared with the declared type.
const MAGIC: usize = 16;

/// Fields that may stand once (RFC 5322 §3.6, RFC 2045 §3).
const SINGULAR: [&str; 15] = [
    "Date",
    "From",
    "Sender",
    "Reply-To",
    "To",
    "Cc",
    "Bcc",
    "Message-ID",
    "In-Reply-To",
    "References",
    "Subject",
    "MIME-Version",
    "Content-ID",
    "Content-Description",
    "Return-Path",
];
/// Fields whose addresses are recipients.
const RECIPIENTS: [&str; 6] = ["To", "Cc", "Bcc", "Resent-To", "Resent-Cc", "Resent-Bcc"];
/// Fields that ask the recipient's client for something.
const RECEIPTS: [&str; 4] =
    ["Disposition-Notification-To", "Return-Receipt-To", "X-Confirm-Reading-To", "Read-Receipt-To"];

/// One header field for showing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldView {
    /// Its name, nothing hidden.
    pub name: String,
    /// The unfolded value as it stands, nothing hidden.
    pub raw: String,
    /// The value with its encoded words decoded, nothing hidden.
    pub decoded: String,
}

/// One part for showing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartView {
    /// Number as in IMAP; the text of a message without parts is `1`.
    pub path: String,
    /// `text/plain`, …, in lower case; nothing hidden.
    pub content_type: String,
    /// Whether the message says so, or it is what the RFCs imply.
    pub declared: bool,
    /// `inline`, `attachment`, ….
    pub disposition: Option<String>,
    /// File name, decoded, nothing hidden.
    pub filename: Option<String>,
    /// Declared charset.
    pub charset: Option<String>,
    /// Decoded size in octets.
    pub size: u64,
    /// SHA-256 of the decoded octets, hex.
    pub sha256: String,
    /// Decoded text with nothing hidden: `text/*` but HTML.
    pub text: Option<String>,
    /// Decoded HTML as it is. It must be sanitised before it is shown.
    pub html: Option<String>,
    /// Whether it could not be decoded as declared.
    pub damaged: bool,
    /// Whether `text` or `html` is only the beginning.
    pub cut: bool,
    /// The header of a nested message.
    pub fields: Vec<FieldView>,
}

impl PartView {
    /// Whether the part is a file to the recipient rather than text to read.
    pub fn is_attachment(&self) -> bool {
        self.disposition.as_deref() == Some("attachment")
            || self.filename.is_some()
            || (self.text.is_none() && self.html.is_none())
    }
}

/// A message for showing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MessageView {
    /// The header, in order.
    pub fields: Vec<FieldView>,
    /// The parts, in order; multiparts themselves are left out.
    pub parts: Vec<PartView>,
    /// Where alternatives say different things.
    pub differences: Vec<Difference>,
    /// What could mislead, dangers first.
    pub warnings: Vec<Warning>,
    /// Addresses in From, as written.
    pub from: Vec<String>,
    /// Canonical addresses in To, Cc and Bcc (and their Resent forms).
    recipients: BTreeSet<String>,
}

impl MessageView {
    /// Reads `octets`.
    pub fn of(octets: &[u8]) -> MessageView {
        let mut builder = Builder { octets, view: MessageView::default(), text_left: MAX_TEXT, scans: BTreeMap::new() };
        builder.lines();
        let structure = split::split(octets);
        if structure.more {
            builder.warn(Warning::TooManyParts);
        }
        if let Some(root) = structure.entities.first() {
            builder.header(root);
        }
        for (at, entity) in structure.entities.iter().enumerate() {
            builder.part(entity, structure.entities.get(at + 1));
        }
        builder.compare_alternatives();
        let mut view = builder.view;
        view.warnings.dedup();
        view.warnings.sort_by_key(|w| std::cmp::Reverse(w.level()));
        view
    }

    /// The decoded value of the first field of that name, nothing hidden.
    pub fn field(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|f| f.name.eq_ignore_ascii_case(name)).map(|f| f.decoded.as_str())
    }

    /// Whether `recipient` stands in To, Cc or Bcc.
    pub fn names_recipient(&self, recipient: &str) -> bool {
        Address::parse(recipient).is_ok_and(|a| self.recipients.contains(&a.canonical()))
    }

    /// What misleads only beside the envelope.
    pub fn against(&self, reverse_path: &str) -> Vec<Warning> {
        let path = Address::parse(reverse_path).map(|a| a.canonical()).ok();
        let from: Vec<Option<String>> =
            self.from.iter().map(|f| Address::parse(f).ok().map(|a| a.canonical())).collect();
        if from.len() == 1 && path.is_some() && from[0] == path {
            return Vec::new();
        }
        let reverse_path = if reverse_path.is_empty() { "nobody (<>)" } else { reverse_path };
        vec![Warning::FromDiffers {
            from: if self.from.is_empty() { "nobody".into() } else { self.from.join(", ") },
            reverse_path: reveal(reverse_path, Shape::Line).text,
        }]
    }
}

/// Both forms of a domain that isn't plain ASCII: as it is seen, as it is sent.
pub fn domain_forms(domain: &str) -> Option<(String, String)> {
    let ascii = idna::domain_to_ascii(domain).ok()?;
    if !ascii.split('.').any(|label| label.starts_with("xn--")) {
        return None;
    }
    let (unicode, _) = idna::domain_to_unicode(&ascii);
    Some((reveal(&unicode, Shape::Line).text, ascii))
}

struct Builder<'a> {
    octets: &'a [u8],
    view: MessageView,
    text_left: usize,
    /// By part that holds the alternatives: the plain texts and the HTML.
    scans: BTreeMap<String, (Option<String>, Option<html::Scan>)>,
}

impl Builder<'_> {
    fn warn(&mut self, warning: Warning) {
        let warnings = &mut self.view.warnings;
        if warnings.len() < MAX_WARNINGS {
            warnings.push(warning);
        } else if warnings.len() == MAX_WARNINGS {
            let what = "there are more warnings than are listed";
            warnings.push(Warning::Structure { place: "message".into(), what });
        }
    }

    /// Reveals, and warns of what was hidden.
    fn reveal(&mut self, place: &str, text: &str, shape: Shape) -> String {
        let revealed = reveal(text, shape);
        if !revealed.found.is_empty() {
            let each = revealed.found.iter().take(8);
            let each = each.map(|(c, n)| format!("U+{:04X} {} ({n}×)", u32::from(*c), visible::name(*c)));
            let what = each.collect::<Vec<_>>().join(", ");
            self.warn(Warning::Invisible { place: place.to_owned(), what });
        }
        revealed.text
    }

    /// Lines and octets that some server would change or refuse.
    fn lines(&mut self) {
        let (mut count, mut first) = (0, 0);
        let (mut bare_cr, mut bare_lf) = (false, false);
        for (n, line) in self.octets.split_inclusive(|b| *b == b'\n').enumerate() {
            let content = line.strip_suffix(b"\r\n").unwrap_or_else(|| line.strip_suffix(b"\n").unwrap_or(line));
            bare_lf |= line.ends_with(b"\n") && !line.ends_with(b"\r\n");
            bare_cr |= memchr::memchr(b'\r', content).is_some();
            if content.len() > MAX_LINE {
                count += 1;
                first = if first == 0 { n + 1 } else { first };
            }
        }
        if count > 0 {
            self.warn(Warning::LongLines { count, first });
        }
        let nul = memchr::memchr(0, self.octets).is_some();
        for (there, what) in [(bare_cr, "CR"), (bare_lf, "LF"), (nul, "NUL")] {
            if there {
                self.warn(Warning::BareControl { what });
            }
        }
    }

    fn header(&mut self, root: &Entity) {
        self.view.fields = self.fields(&root.fields, "");
        for name in SINGULAR {
            self.duplicate(&root.fields, name, "Header");
        }
        for name in ["From", "Date"] {
            if !root.fields.iter().any(|f| f.is(self.octets, name)) {
                self.warn(Warning::MissingField { name: name.into() });
            }
        }
        for name in RECEIPTS {
            if root.fields.iter().any(|f| f.is(self.octets, name)) {
                self.warn(Warning::ReceiptRequest { name: name.into() });
            }
        }
        if stray_line(&self.octets[..root.body.start]) {
            self.warn(Warning::StrayHeaderLine);
        }
        let from = self.addresses(&root.fields, "From");
        let reply_to = self.addresses(&root.fields, "Reply-To");
        let canonical = |a: &str| Address::parse(a).map_or_else(|_| a.to_lowercase(), |a| a.canonical());
        let known: BTreeSet<String> = from.iter().map(|a| canonical(a)).collect();
        let elsewhere: Vec<String> = reply_to.into_iter().filter(|a| !known.contains(&canonical(a))).collect();
        if !elsewhere.is_empty() {
            self.warn(Warning::ReplyElsewhere { reply_to: elsewhere.join(", ") });
        }
        self.view.from = from;
        for name in RECIPIENTS {
            for address in self.addresses(&root.fields, name) {
                if let Ok(address) = Address::parse(&address) {
                    self.view.recipients.insert(address.canonical());
                }
            }
        }
        self.addresses(&root.fields, "Sender");
    }

    fn duplicate(&mut self, fields: &[Field], name: &str, place: &str) {
        if fields.iter().filter(|f| f.is(self.octets, name)).count() > 1 {
            self.warn(Warning::DuplicateField { place: place.to_owned(), name: name.to_owned() });
        }
    }

    /// Fields for showing; `prefix` names the nested message.
    fn fields(&mut self, fields: &[Field], prefix: &str) -> Vec<FieldView> {
        let mut out = Vec::with_capacity(fields.len());
        for field in fields {
            let name = reveal(&String::from_utf8_lossy(field.name(self.octets)), Shape::Line).text;
            let place = format!("{prefix}{name}");
            let value = field.unfolded(self.octets);
            if !value.is_ascii() {
                self.warn(Warning::EightBitHeader { name: place.clone() });
            }
            let words = decode::words(&value);
            if words.damaged {
                self.warn(Warning::Damaged { place: place.clone(), what: "encoded words or octets".into() });
            }
            let raw = reveal(&String::from_utf8_lossy(&value), Shape::Line).text;
            let decoded = self.reveal(&place, &words.value, Shape::Line);
            out.push(FieldView { name, raw, decoded });
        }
        out
    }

    /// Addresses in every field of that name; warns of what they hide.
    fn addresses(&mut self, fields: &[Field], name: &str) -> Vec<String> {
        let mut out = Vec::new();
        for field in fields.iter().filter(|f| f.is(self.octets, name)) {
            // The parser wants the final line end, which the span holds but for the last line of all.
            let mut value = self.octets[field.value.clone()].to_vec();
            value.extend_from_slice(b"\r\n");
            let HeaderValue::Address(list) = MessageStream::new(&value).parse_address() else { continue };
            for entry in list.iter() {
                let Some(address) = entry.address.as_deref() else { continue };
                let address = reveal(address, Shape::Line).text;
                if let Some(display) = entry.name.as_deref() {
                    self.name_is_address(name, display, &address);
                }
                if let Some((unicode, ascii)) = address.rsplit_once('@').and_then(|(_, d)| domain_forms(d)) {
                    self.warn(Warning::InternationalDomain { place: name.to_owned(), unicode, ascii });
                }
                out.push(address);
            }
        }
        out
    }

    fn name_is_address(&mut self, place: &str, display: &str, address: &str) {
        let inside = display.split(|c: char| c.is_whitespace() || "<>()\"',;".contains(c)).find_map(|w| {
            let parsed = Address::parse(w).ok()?;
            parsed.domain.contains('.').then(|| parsed.canonical())
        });
        if inside.is_some_and(|i| Address::parse(address).map(|a| a.canonical()).ok() != Some(i)) {
            let name = reveal(display, Shape::Line).text;
            self.warn(Warning::NameIsAddress { place: place.to_owned(), name, address: address.to_owned() });
        }
    }

    /// `next` is the entity behind it: for a nested message, its root.
    fn part(&mut self, entity: &Entity, next: Option<&Entity>) {
        let place = place_of(&entity.path);
        for oddity in &entity.oddities {
            self.warn(oddity_warning(&place, oddity));
        }
        if entity.kind == Kind::Multipart {
            return;
        }
        let body = &self.octets[entity.body.clone()];
        let (octets, damaged) = if entity.kind == Kind::Message || entity.encoding == TransferEncoding::Identity {
            (Cow::Borrowed(body), false)
        } else {
            let decoded = entity.encoding.decode(body);
            (Cow::Owned(decoded.value), decoded.damaged)
        };
        let filename = self.names(entity, &place);
        let content_type = self.reveal(&place, &entity.content.name, Shape::Line);
        let disposition = entity.disposition.as_ref().map(|d| reveal(&d.name, Shape::Line).text);
        let mut part = PartView {
            path: if entity.path.is_empty() { "1".into() } else { entity.path.clone() },
            content_type,
            declared: entity.content.declared,
            disposition,
            filename,
            charset: entity.content.parameter("charset").map(|c| reveal(c, Shape::Line).text),
            size: octets.len() as u64,
            sha256: hex(&Sha256::digest(&octets)),
            text: None,
            html: None,
            damaged,
            cut: false,
            fields: Vec::new(),
        };
        self.encoding_warnings(entity, &place, damaged);
        self.content_warnings(entity, &part, &place, &octets);
        if entity.kind == Kind::Message {
            part.fields = next.map(|n| self.fields(&n.fields, &format!("{place}: "))).unwrap_or_default();
        } else if entity.content.name.starts_with("text/") {
            self.text(entity, &mut part, &place, &octets);
        }
        self.view.parts.push(part);
    }

    /// The file name; two different ones are said.
    fn names(&mut self, entity: &Entity, place: &str) -> Option<String> {
        let decode = |v: &str| decode::words(v.as_bytes()).value;
        let outer = entity.disposition.as_ref().and_then(|d| d.parameter("filename")).map(decode);
        let inner = entity.content.parameter("name").map(decode);
        if let (Some(disposition), Some(content_type)) = (&outer, &inner)
            && disposition != content_type
        {
            self.warn(Warning::TwoNames {
                place: place.to_owned(),
                disposition: reveal(disposition, Shape::Line).text,
                content_type: reveal(content_type, Shape::Line).text,
            });
        }
        let name = outer.or(inner)?;
        if files::double_extension(&name) {
            let name = reveal(&name, Shape::Line).text;
            self.warn(Warning::DoubleExtension { place: place.to_owned(), name });
        }
        if files::runs(Some(&name), "") {
            let what = reveal(&name, Shape::Line).text;
            self.warn(Warning::RunnableAttachment { place: place.to_owned(), what });
        }
        Some(self.reveal(&format!("{place}, file name"), &name, Shape::Line))
    }

    fn encoding_warnings(&mut self, entity: &Entity, place: &str, damaged: bool) {
        let what = match &entity.encoding {
            TransferEncoding::Unknown(name) => {
                let encoding = reveal(name, Shape::Line).text;
                self.warn(Warning::UnknownEncoding { place: place.to_owned(), encoding });
                return;
            }
            TransferEncoding::Identity => return,
            TransferEncoding::Base64 => "base64",
            TransferEncoding::QuotedPrintable => "quoted-printable",
        };
        if damaged {
            self.warn(Warning::Damaged { place: place.to_owned(), what: what.into() });
        }
    }

    fn content_warnings(&mut self, entity: &Entity, part: &PartView, place: &str, octets: &[u8]) {
        let place = || place.to_owned();
        let name = entity.content.name.as_str();
        if entity.kind == Kind::Message || name == "message/rfc822" || name == "message/global" {
            self.warn(Warning::NestedMessage { place: place() });
        }
        if name == "message/external-body" {
            self.warn(Warning::ExternalBody { place: place() });
        }
        if name == "text/calendar"
            && let Some(method) = entity.content.parameter("method")
        {
            let method = reveal(method, Shape::Line).text;
            self.warn(Warning::CalendarMethod { place: place(), method });
        }
        if files::runs(None, name) {
            self.warn(Warning::RunnableAttachment { place: place(), what: part.content_type.clone() });
        }
        if let Some(found) = files::contradicts(name, &octets[..octets.len().min(MAGIC)])
            && entity.kind == Kind::Leaf
        {
            self.warn(Warning::OtherKind { place: place(), declared: part.content_type.clone(), found });
        }
    }

    fn text(&mut self, entity: &Entity, part: &mut PartView, place: &str, octets: &[u8]) {
        let keep = octets.len().min(self.text_left);
        self.text_left -= keep;
        part.cut = keep < octets.len();
        if part.cut {
            self.warn(Warning::TextCut { place: place.to_owned(), shown: keep });
        }
        let (text, problem) = decode::charset(&octets[..keep], entity.content.parameter("charset"));
        match problem {
            // A cut may fall inside a character.
            Some(CharsetProblem::Damaged) if part.cut => {}
            Some(CharsetProblem::Damaged) => {
                let charset = part.charset.clone().unwrap_or_else(|| "UTF-8".into());
                self.warn(Warning::Damaged { place: place.to_owned(), what: format!("{charset} text") });
            }
            Some(CharsetProblem::Unknown) => {
                let charset = part.charset.clone().unwrap_or_default();
                self.warn(Warning::UnknownCharset { place: place.to_owned(), charset });
            }
            None => {}
        }
        part.damaged |= problem.is_some() && !part.cut;
        let alternative = entity.alternative.clone();
        if entity.content.name == "text/html" {
            let scan = html::scan(&text);
            self.html_warnings(place, &scan);
            part.html = Some(text);
            if let Some(at) = alternative {
                self.scans.entry(at).or_default().1 = Some(scan);
            }
        } else {
            part.text = Some(self.reveal(place, &text, Shape::Lines));
            if let Some(at) = alternative.filter(|_| entity.content.name == "text/plain") {
                self.scans.entry(at).or_default().0 = Some(text);
            }
        }
    }

    fn html_warnings(&mut self, place: &str, scan: &html::Scan) {
        let place = || place.to_owned();
        let list = |set: &BTreeSet<String>| set.iter().cloned().collect::<Vec<_>>().join(", ");
        if !scan.active.is_empty() {
            self.warn(Warning::ActiveContent { place: place(), what: list(&scan.active) });
        }
        if !scan.remote.is_empty() {
            self.warn(Warning::RemoteContent { place: place(), what: list(&scan.remote) });
        }
        let mut hiding = scan.hiding.clone();
        if scan.conditional {
            hiding.insert("conditional comments, which only some clients show".into());
        }
        if !hiding.is_empty() {
            self.warn(Warning::HiddenText { place: place(), what: list(&hiding) });
        }
        self.reveal(&place(), &scan.text, Shape::Lines);
        let mut seen = BTreeSet::new();
        for link in &scan.links {
            let target = reveal(&link.target, Shape::Line).text;
            if links::leads_elsewhere(link) && seen.insert((link.text.clone(), target.clone())) {
                let text = reveal(&link.text, Shape::Line).text;
                self.warn(Warning::LinkElsewhere { place: place(), text, target: target.clone() });
            }
            if let Some((unicode, ascii)) = links::host(&link.target).and_then(|h| domain_forms(&h))
                && seen.insert((ascii.clone(), String::new()))
            {
                self.warn(Warning::InternationalDomain { place: place(), unicode, ascii });
            }
        }
    }

    fn compare_alternatives(&mut self) {
        for (path, (text, scan)) in std::mem::take(&mut self.scans) {
            let place = place_of(&path);
            let (Some(text), Some(scan)) = (text, scan) else { continue };
            let difference = compare::compare(&place, &text, &scan);
            if difference.is_empty() {
                continue;
            }
            let links = difference.links_only_text.len() + difference.links_only_html.len();
            let what = format!("{} word(s) and {links} link(s) stand on one side only", difference.words);
            self.warn(Warning::AlternativesDiffer { place, what });
            self.view.differences.push(difference);
        }
    }
}

fn place_of(path: &str) -> String {
    if path.is_empty() { "Message".into() } else { format!("Part {path}") }
}

fn oddity_warning(place: &str, oddity: &Oddity) -> Warning {
    let what = match oddity {
        Oddity::DuplicateField(name) => {
            return Warning::DuplicateField { place: place.to_owned(), name: name.clone() };
        }
        Oddity::BoundaryUnusable => "a multipart without a usable boundary; its parts are shown as one file",
        Oddity::NotClosed => "a multipart without its closing boundary",
        Oddity::OutsideParts => "text outside the parts, which most clients don't show; it is in the raw source",
        Oddity::TooDeep => "nested deeper than is followed here; it is in the raw source",
        Oddity::HeaderTooLong => "a header so long that only its beginning is shown; it is in the raw source",
        Oddity::EncodedContainer => "a message or multipart in a transfer encoding, which only some clients open",
    };
    Warning::Structure { place: place.to_owned(), what }
}

/// Whether a line of the header is neither a field nor belongs to one.
fn stray_line(head: &[u8]) -> bool {
    let mut open = false;
    for line in head.split_inclusive(|b| *b == b'\n') {
        let text = line.trim_ascii_end();
        if text.is_empty() && line.len() <= 2 {
            continue;
        }
        let continues = line[0] == b' ' || line[0] == b'\t';
        let field =
            memchr::memchr(b':', line).is_some_and(|at| at > 0 && line[..at].iter().all(|b| (33..127).contains(b)));
        if (continues && !open) || (!continues && !field) {
            return true;
        }
        open = true;
    }
    false
}

fn hex(octets: &[u8]) -> String {
    octets.iter().map(|b| format!("{b:02x}")).collect()
}

#[cfg(test)]
mod tests;
