//! HTML to the text that a reader sees.
//!
//! Promises: linear in the input; what common clients don't show is dropped
//! and counted. Doesn't know: style sheets, scripts, colours.

use mail_parser::decoders::html::add_html_token;

/// What an HTML part says.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct HtmlText {
    /// Text a reader sees, blocks on lines of their own.
    pub(super) text: String,
    /// Text inside quotations of earlier mail.
    pub(super) quoted: String,
    /// Characters that a reader doesn't see.
    pub(super) hidden: u64,
    /// Targets of links, in order.
    pub(super) links: Vec<String>,
}

/// Links that are kept.
const MAX_LINKS: usize = 200;
/// Deepest nesting that is followed; what lies deeper counts as its parent.
const MAX_DEPTH: usize = 256;
/// Longest entity name that is looked up.
const MAX_ENTITY: usize = 32;

const VOID: &[&str] =
    &["area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"];
const BLOCK: &[&str] = &[
    "address",
    "article",
    "blockquote",
    "body",
    "center",
    "dd",
    "div",
    "dl",
    "dt",
    "footer",
    "form",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "header",
    "hr",
    "html",
    "li",
    "main",
    "ol",
    "p",
    "pre",
    "section",
    "table",
    "tbody",
    "td",
    "th",
    "tr",
    "ul",
];
const DROPPED: &[&str] = &["head", "script", "style", "template", "noscript", "title", "object", "svg", "select"];

struct Open {
    tag: String,
    hidden: bool,
    quoted: bool,
}

/// Reads an HTML part.
pub(super) fn to_text(html: &str) -> HtmlText {
    let mut out = HtmlText::default();
    let mut stack: Vec<Open> = Vec::new();
    let mut at = 0;
    while at < html.len() {
        let rest = &html[at..];
        if let Some(comment) = rest.strip_prefix("<!--") {
            at += 4 + comment.find("-->").map_or(comment.len(), |n| n + 3);
        } else if rest.starts_with('<')
            && rest[1..].starts_with(|c: char| c.is_ascii_alphabetic() || matches!(c, '/' | '!' | '?'))
        {
            let end = tag_end(rest);
            tag(&rest[1..end], &mut stack, &mut out);
            at += (end + 1).min(rest.len());
            if let Some(raw) = stack.last().filter(|o| o.tag == "script" || o.tag == "style") {
                at += raw_end(&html[at..], &raw.tag);
            }
        } else {
            // `<` is ASCII, so its offset is a character boundary.
            let end = memchr::memchr(b'<', &rest.as_bytes()[1..]).map_or(rest.len(), |n| n + 1);
            say(&rest[..end], &stack, &mut out);
            at += end;
        }
    }
    out
}

/// Offset of the `>` that closes a tag, quotes respected.
fn tag_end(rest: &str) -> usize {
    let mut quote = None;
    for (n, b) in rest.bytes().enumerate().skip(1) {
        match (quote, b) {
            (None, b'>') => return n,
            // A quote opens only after `=`, as in attributes.
            (None, b'"' | b'\'') if rest.as_bytes()[n - 1] == b'=' => quote = Some(b),
            (Some(q), b) if q == b => quote = None,
            _ => {}
        }
    }
    // A quote that never closes: the first `>` after all.
    rest.find('>').unwrap_or(rest.len())
}

fn raw_end(rest: &str, tag: &str) -> usize {
    let close = format!("</{tag}");
    let bytes = rest.as_bytes();
    memchr::memchr_iter(b'<', bytes)
        .find(|n| {
            bytes[*n..].len() >= close.len() && bytes[*n..*n + close.len()].eq_ignore_ascii_case(close.as_bytes())
        })
        .unwrap_or(rest.len())
}

fn tag(inside: &str, stack: &mut Vec<Open>, out: &mut HtmlText) {
    let (closing, inside) = match inside.strip_prefix('/') {
        Some(rest) => (true, rest),
        None => (false, inside),
    };
    let name_end = inside.find(|c: char| !c.is_ascii_alphanumeric() && c != ':' && c != '-').unwrap_or(inside.len());
    let name = inside[..name_end].to_ascii_lowercase();
    let attributes = &inside[name_end..];
    if BLOCK.contains(&name.as_str()) || name == "br" {
        line_break(name == "p" || name == "table" || name.starts_with('h'), stack, out);
    }
    if closing {
        // Unmatched closings close nothing.
        if let Some(n) = stack.iter().rposition(|o| o.tag == name) {
            stack.truncate(n);
        }
        return;
    }
    if name == "a"
        && let Some(href) = attribute(attributes, "href")
        && out.links.len() < MAX_LINKS
    {
        out.links.push(href.trim().to_owned());
    }
    if VOID.contains(&name.as_str()) || attributes.ends_with('/') || stack.len() >= MAX_DEPTH {
        return;
    }
    let (hidden, quoted) = stack.last().map_or((false, false), |o| (o.hidden, o.quoted));
    stack.push(Open {
        hidden: hidden || DROPPED.contains(&name.as_str()) || is_hidden(attributes),
        quoted: quoted || is_quote(&name, attributes),
        tag: name,
    });
}

fn line_break(paragraph: bool, stack: &[Open], out: &mut HtmlText) {
    let to = if stack.last().is_some_and(|o| o.quoted) { &mut out.quoted } else { &mut out.text };
    to.truncate(to.trim_end_matches(' ').len());
    let wanted = if paragraph { "\n\n" } else { "\n" };
    while !to.is_empty() && !to.ends_with(wanted) {
        to.push('\n');
    }
}

fn say(raw: &str, stack: &[Open], out: &mut HtmlText) {
    let (hidden, quoted) = stack.last().map_or((false, false), |o| (o.hidden, o.quoted));
    if hidden {
        let dropped = stack.iter().any(|o| DROPPED.contains(&o.tag.as_str()));
        if !dropped {
            out.hidden += raw.chars().filter(|c| !c.is_whitespace()).count() as u64;
        }
        return;
    }
    let to = if quoted { &mut out.quoted } else { &mut out.text };
    let mut rest = raw;
    while let Some(amp) = rest.find('&') {
        words(&rest[..amp], to);
        rest = &rest[amp..];
        let end = rest.bytes().take(MAX_ENTITY).position(|b| b == b';');
        match end.filter(|e| *e > 1 && rest[1..*e].bytes().all(|b| b.is_ascii_alphanumeric() || b == b'#')) {
            Some(end) => {
                let mut decoded = String::new();
                add_html_token(&mut decoded, &rest.as_bytes()[..=end], false);
                words(&decoded, to);
                rest = &rest[end + 1..];
            }
            None => {
                words("&", to);
                rest = &rest[1..];
            }
        }
    }
    words(rest, to);
}

/// Adds text with runs of blanks as one blank.
fn words(text: &str, to: &mut String) {
    for c in text.chars() {
        if c.is_whitespace() || c.is_control() {
            if !to.is_empty() && !to.ends_with([' ', '\n']) {
                to.push(' ');
            }
        } else {
            to.push(c);
        }
    }
}

/// The value of an attribute, quotes taken off.
fn attribute<'a>(attributes: &'a str, name: &str) -> Option<&'a str> {
    let bytes = attributes.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        while at < bytes.len() && (bytes[at].is_ascii_whitespace() || bytes[at] == b'/') {
            at += 1;
        }
        let start = at;
        while at < bytes.len() && !bytes[at].is_ascii_whitespace() && bytes[at] != b'=' {
            at += 1;
        }
        let found = &bytes[start..at];
        while at < bytes.len() && bytes[at].is_ascii_whitespace() {
            at += 1;
        }
        let mut value = "";
        if at < bytes.len() && bytes[at] == b'=' {
            at += 1;
            while at < bytes.len() && bytes[at].is_ascii_whitespace() {
                at += 1;
            }
            let from;
            (from, at) = value_span(bytes, at);
            value = attributes.get(from..at).unwrap_or("");
            if at < bytes.len() && matches!(bytes[at], b'"' | b'\'') {
                at += 1;
            }
        } else if start == at {
            at += 1;
        }
        if found.eq_ignore_ascii_case(name.as_bytes()) {
            return Some(value);
        }
    }
    None
}

fn value_span(bytes: &[u8], at: usize) -> (usize, usize) {
    match bytes.get(at) {
        Some(q @ (b'"' | b'\'')) => {
            let end = memchr::memchr(*q, &bytes[at + 1..]).map_or(bytes.len(), |n| at + 1 + n);
            (at + 1, end)
        }
        _ => {
            let end = bytes[at..].iter().position(u8::is_ascii_whitespace).map_or(bytes.len(), |n| at + n);
            (at, end)
        }
    }
}

fn is_hidden(attributes: &str) -> bool {
    if attributes.is_empty() {
        return false;
    }
    if attribute(attributes, "hidden").is_some() {
        return true;
    }
    let Some(style) = attribute(attributes, "style") else { return false };
    let style: String = style.chars().filter(|c| !c.is_whitespace()).collect::<String>().to_ascii_lowercase();
    style.split(';').any(|rule| {
        let Some((key, value)) = rule.split_once(':') else { return false };
        let value = value.trim_end_matches("!important");
        let zero = || {
            let digits = value.trim_end_matches(|c: char| c.is_ascii_alphabetic() || c == '%');
            !digits.is_empty() && digits.parse::<f64>() == Ok(0.0)
        };
        match key {
            "display" => value == "none",
            "visibility" => value == "hidden" || value == "collapse",
            "opacity" | "font-size" | "max-height" | "max-width" => zero(),
            "font" => value.starts_with("0/") || value.starts_with("0px"),
            "text-indent" | "left" | "top" => value.starts_with("-9"),
            _ => false,
        }
    })
}

fn is_quote(name: &str, attributes: &str) -> bool {
    if name == "blockquote" {
        return true;
    }
    let marks = ["gmail_quote", "yahoo_quoted", "moz-cite-prefix", "protonmail_quote", "divrplyfwdmsg", "appendonsend"];
    [attribute(attributes, "class"), attribute(attributes, "id")].into_iter().flatten().any(|v| {
        let v = v.to_ascii_lowercase();
        marks.iter().any(|m| v.contains(m))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(html: &str) -> String {
        to_text(html).text.trim().to_owned()
    }

    #[test]
    fn blocks_stand_on_lines_and_entities_are_read() {
        assert_eq!(
            seen("<p>Gr&uuml;&#223;e&nbsp;&amp;  mehr</p><div>zwei<br>drei</div>"),
            "Grüße & mehr\n\nzwei\ndrei"
        );
        assert_eq!(seen("a &nosuch b & c &#xD83D; d"), "a &nosuch b & c \u{fffd} d");
    }

    #[test]
    fn what_is_not_shown_is_dropped_and_counted() {
        for hide in [
            "style=\"display: none\"",
            "style='DISPLAY:NONE !important'",
            "style=\"font-size:0px;color:#fff\"",
            "style=\"max-height:0;overflow:hidden\"",
            "style=\"opacity: 0.0\"",
            "style=visibility:hidden",
            "hidden",
        ] {
            let t = to_text(&format!("<div {hide}>secret <b>text</b></div><p>shown</p>"));
            assert_eq!((t.text.trim(), t.hidden), ("shown", 10), "{hide}");
        }
        assert_eq!(seen("<div style=\"opacity:0.9;font-size:10px\">shown</div>"), "shown");
    }

    #[test]
    fn head_script_and_style_say_nothing() {
        let t = to_text(
            "<html><head><title>T</title><style>p{color:red}</style></head><body><script>if(a<b){}</script>x</body></html>",
        );
        assert_eq!((t.text.trim(), t.hidden), ("x", 0));
    }

    #[test]
    fn quotations_stand_apart() {
        let t = to_text("<div>new</div><div class=\"gmail_quote\">On … wrote:<blockquote>old</blockquote></div>");
        assert_eq!(t.text.trim(), "new");
        assert!(t.quoted.contains("old"));
    }

    #[test]
    fn links_are_collected() {
        assert_eq!(to_text("<a class=x href='https://example.org/a?b=1'>go</a>").links, ["https://example.org/a?b=1"]);
    }

    #[test]
    fn broken_markup_is_read_to_its_end() {
        assert_eq!(seen("a < b and c > d"), "a < b and c > d");
        assert_eq!(seen("<p title=\"un>closed>text</p>tail"), "closed>text\n\ntail");
        assert_eq!(seen("é<é"), "é<é");
        let _ = to_text("<");
        let _ = to_text("<a href=");
        let _ = to_text("<!--");
        let _ = to_text(&"<div>".repeat(100_000));
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_read(s in "(<|>|/|a|é|\"|'|=| |&|;|#|!|-|div|style){0,60}") {
            let _ = to_text(&s);
        }
    }
}
