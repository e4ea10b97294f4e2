//! Field rules: which fields an agent's message may have, and how often.

use super::{MAX_FIELDS, Passed, Refusal, Rules};
use crate::mail::address::Address;
use crate::mail::header::{self, Field};

/// Fields that may stand once in a message (RFC 5322 §3.6, RFC 2045 §3).
const ONCE: [&str; 29] = [
    "from",
    "sender",
    "reply-to",
    "to",
    "cc",
    "subject",
    "date",
    "message-id",
    "in-reply-to",
    "references",
    "mime-version",
    "content-type",
    "content-transfer-encoding",
    "content-disposition",
    "content-id",
    "content-description",
    "content-language",
    "content-location",
    "user-agent",
    "x-mailer",
    "organization",
    "importance",
    "priority",
    "x-priority",
    "auto-submitted",
    "x-ai-drafted",
    "thread-topic",
    "thread-index",
    "accept-language",
];

/// Fields that may stand more than once.
const MANY: [&str; 2] = ["comments", "keywords"];

/// Fields of a part.
const PART_ONCE: [&str; 9] = [
    "content-type",
    "content-transfer-encoding",
    "content-disposition",
    "content-id",
    "content-description",
    "content-language",
    "content-location",
    "mime-version",
    "x-attachment-id",
];

/// Fields, and beginnings of fields, by which providers and relays are told
/// to do something that nobody approved: send later, send to more, track,
/// report, sign, route.
const INSTRUCTIONS: [&str; 28] = [
    "x-mailgun-",
    "x-smtpapi",
    "x-mc-",
    "x-mandrill-",
    "x-mj-",
    "x-mailjet-",
    "x-ses-",
    "x-msys-",
    "x-pm-",
    "x-postmark",
    "x-sib-",
    "x-sparkpost",
    "x-sendgrid-",
    "x-campaign",
    "x-tollgate-",
    "resent-",
    "return-path",
    "return-receipt-to",
    "disposition-notification-",
    "x-confirm-reading-to",
    "errors-to",
    "delivered-to",
    "apparently-to",
    "received",
    "dkim-signature",
    "authentication-results",
    "arc-",
    "original-recipient",
];

/// What the header says of the content.
#[derive(Debug, Clone, Default)]
pub(super) struct ContentFields {
    pub(super) content_type: Option<String>,
    pub(super) encoding: Option<String>,
}

/// Checks the header of the message itself.
pub(super) fn message(header: &[u8], rules: &Rules) -> Result<(Passed, ContentFields), Refusal> {
    let fields = fields(header, rules)?;
    for field in &fields {
        let name = field.name.to_ascii_lowercase();
        if name == "bcc" {
            return Err(Refusal::Bcc);
        }
        if INSTRUCTIONS.iter().any(|start| name.starts_with(start)) {
            return Err(Refusal::Instruction(field.name.clone()));
        }
        if !ONCE.contains(&name.as_str()) && !MANY.contains(&name.as_str()) {
            return Err(Refusal::FieldNotAllowed(field.name.clone()));
        }
    }
    once(&fields, &MANY)?;
    let get = |name: &str| fields.iter().find(|f| f.name.eq_ignore_ascii_case(name)).map(|f| f.value.clone());
    let from = get("From").ok_or(Refusal::Missing("From"))?;
    get("Date").ok_or(Refusal::Missing("Date"))?;
    own_addresses("From", &from, rules)?;
    if let Some(sender) = get("Sender") {
        own_addresses("Sender", &sender, rules)?;
    }
    if get("MIME-Version").is_some_and(|v| v != "1.0") {
        return Err(Refusal::MimeVersion);
    }
    let content = ContentFields { content_type: get("Content-Type"), encoding: get("Content-Transfer-Encoding") };
    Ok((Passed { message_id: get("Message-ID"), subject: get("Subject") }, content))
}

/// Checks the header of a part.
pub(super) fn part(header: &[u8], rules: &Rules) -> Result<ContentFields, Refusal> {
    let fields = fields(header, rules)?;
    for field in &fields {
        if !PART_ONCE.contains(&field.name.to_ascii_lowercase().as_str()) {
            return Err(Refusal::FieldNotAllowed(field.name.clone()));
        }
    }
    once(&fields, &[])?;
    let get = |name: &str| fields.iter().find(|f| f.name.eq_ignore_ascii_case(name)).map(|f| f.value.clone());
    Ok(ContentFields { content_type: get("Content-Type"), encoding: get("Content-Transfer-Encoding") })
}

/// A field as text.
struct Text {
    name: String,
    value: String,
}

fn fields(header: &[u8], rules: &Rules) -> Result<Vec<Text>, Refusal> {
    let text = std::str::from_utf8(header).map_err(|_| Refusal::HeaderNotUtf8)?;
    if !text.is_ascii() && !rules.smtputf8 {
        return Err(Refusal::NeedsSmtputf8);
    }
    let mut first = true;
    for line in text.split_terminator("\r\n") {
        let folded = line.starts_with([' ', '\t']);
        // RFC 5322 §2.2.3: a fold has text; §4.2 allows others, readers differ.
        if (folded && (first || line.trim().is_empty())) || (!folded && !is_field_start(line)) {
            return Err(Refusal::FieldSyntax);
        }
        if line.chars().any(|c| c.is_control() && c != '\t') {
            return Err(Refusal::FieldSyntax);
        }
        first = false;
    }
    let spans = header::split(header);
    if spans.fields.len() > MAX_FIELDS {
        return Err(Refusal::LongHeader);
    }
    Ok(spans.fields.iter().map(|f| as_text(f, header)).collect())
}

fn as_text(field: &Field, header: &[u8]) -> Text {
    let text = |octets: &[u8]| String::from_utf8_lossy(octets).into_owned();
    Text { name: text(field.name(header)), value: text(&field.unfolded(header)) }
}

/// RFC 5322 §2.2: printable ASCII without the colon, then the colon; no blank
/// between them (§4.5.8 allowed it, and readers differ on it).
fn is_field_start(line: &str) -> bool {
    line.split_once(':').is_some_and(|(name, _)| !name.is_empty() && name.bytes().all(|b| b.is_ascii_graphic()))
}

fn once(fields: &[Text], but: &[&str]) -> Result<(), Refusal> {
    for (n, field) in fields.iter().enumerate() {
        let free = but.iter().any(|b| field.name.eq_ignore_ascii_case(b));
        if !free && fields[..n].iter().any(|earlier| earlier.name.eq_ignore_ascii_case(&field.name)) {
            return Err(Refusal::Repeated(field.name.clone()));
        }
    }
    Ok(())
}

fn own_addresses(name: &'static str, value: &str, rules: &Rules) -> Result<(), Refusal> {
    let found = address_list(value).ok_or(Refusal::Addresses(name))?;
    if found.is_empty() {
        return Err(Refusal::Addresses(name));
    }
    for text in found {
        let address = Address::parse(&text).map_err(|_| Refusal::Addresses(name))?;
        if !rules.addresses.contains(&address.canonical()) {
            return Err(Refusal::ForeignAddress(name));
        }
    }
    Ok(())
}

/// The addresses of `mailbox-list` (RFC 5322 §3.4). Comments, groups, routes
/// and quoted local parts are not taken: readers disagree on them, and a
/// From that two readers see differently is what this check is against.
fn address_list(value: &str) -> Option<Vec<String>> {
    split_list(value)?.iter().map(|item| mailbox(item.trim())).collect()
}

/// Splits at commas outside quoted strings.
fn split_list(value: &str) -> Option<Vec<String>> {
    let mut items = vec![String::new()];
    let (mut quoted, mut escaped) = (false, false);
    for c in value.chars() {
        let item = items.last_mut()?;
        match c {
            _ if escaped => {
                escaped = false;
                item.push(c);
            }
            '\\' if quoted => {
                escaped = true;
                item.push(c);
            }
            '"' => {
                quoted = !quoted;
                item.push(c);
            }
            ',' if !quoted => items.push(String::new()),
            '(' | ')' | ';' | ':' | '\\' if !quoted => return None,
            c => item.push(c),
        }
    }
    (!quoted).then_some(items)
}

/// `addr-spec`, or a display name and `<addr-spec>`.
fn mailbox(item: &str) -> Option<String> {
    if item.is_empty() {
        return None;
    }
    let Some(inner) = item.strip_suffix('>') else {
        return (!item.contains(['"', '<', ' ', '\t'])).then(|| item.to_owned());
    };
    let open = inner.rfind('<')?;
    let (name, address) = (inner[..open].trim(), &inner[open + 1..]);
    let quoted = name.len() >= 2 && name.starts_with('"') && name.ends_with('"');
    let inside = if quoted { &name[1..name.len() - 1] } else { name };
    // A quote that ends early would leave a second display name, or an
    // address, between the two.
    let mut rest = inside.chars();
    while let Some(c) = rest.next() {
        match c {
            '\\' if quoted => drop(rest.next()?),
            '"' => return None,
            '<' | '>' | '@' if !quoted => return None,
            _ => {}
        }
    }
    (!address.contains(['"', ' ', '\t', '<', '>'])).then(|| address.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_lists_are_read_in_one_way_or_not_at_all() {
        let read = |s: &str| address_list(s).map(|v| v.join(" "));
        assert_eq!(read("a@example.org").as_deref(), Some("a@example.org"));
        assert_eq!(
            read("A B <a@example.org>, \"c, \\\"d\" <b@example.org>").as_deref(),
            Some("a@example.org b@example.org")
        );
        assert_eq!(read("=?utf-8?q?J=C3=B6?= <a@example.org>").as_deref(), Some("a@example.org"));
        assert_eq!(read("<a@example.org>").as_deref(), Some("a@example.org"));
        for text in [
            "",
            "a@example.org,",
            "a@example.org (b@example.com)",
            "grp: a@example.org;",
            "<@x.example:a@example.org>",
            "b@example.com <a@example.org>",
            "<b@example.com> <a@example.org>",
            "\"x\" <b@example.com> \"y\" <a@example.org>",
            "\"open <a@example.org>",
            "a b@example.org",
            "<a@example.org> x",
            "\"a b\"@example.org",
        ] {
            assert_eq!(read(text), None, "{text:?}");
        }
    }
}
