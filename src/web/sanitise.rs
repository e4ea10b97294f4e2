//! HTML of a mail, made harmless and shown for what it is.
//!
//! Promises: what [`sanitise`] returns holds only elements of [`KEPT`], no
//! attribute but our own class names and `colspan`/`rowspan`; nothing in it
//! runs, loads, submits or navigates; the target of every link and image
//! stands there as text; text that the sender's styles hide is shown; what
//! can't be seen is marked. Two independent passes must agree: our own, which
//! writes only what it knows, and ammonia over its result. Doesn't know: how
//! the sender meant it to look; no style of theirs survives.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use base64::Engine;
use html5ever::tendril::StrTendril;
use html5ever::tokenizer::{BufferQueue, Tag, TagKind, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts};
use sha2::{Digest, Sha256};

use crate::mail::mime::html::raw_kind;
use crate::mail::mime::visible::{Shape, reveal};

/// Elements that are kept.
pub const KEPT: [&str; 43] = [
    "p",
    "div",
    "br",
    "hr",
    "span",
    "b",
    "strong",
    "i",
    "em",
    "u",
    "s",
    "del",
    "ins",
    "sub",
    "sup",
    "small",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "ul",
    "ol",
    "li",
    "dl",
    "dt",
    "dd",
    "table",
    "thead",
    "tbody",
    "tfoot",
    "tr",
    "td",
    "th",
    "caption",
    "blockquote",
    "pre",
    "code",
    "cite",
    "abbr",
    "q",
    "center",
];
/// Deepest nesting that is written; deeper elements lose their tags, not their text.
const MAX_OPEN: usize = 100;
/// Most octets that are written.
const MAX_OUTPUT: usize = 4 * 1024 * 1024;
/// Longest target that is shown whole.
const MAX_TARGET_CHARS: usize = 300;
/// Largest column or row span.
const MAX_SPAN: u32 = 100;

/// The only style inside the frame. It stands in the frame itself; the page
/// allows it by its hash.
pub const FRAME_STYLE: &str = include_str!("frame.css");

/// `'sha256-…'` of [`FRAME_STYLE`] for a content security policy.
pub static FRAME_STYLE_SOURCE: LazyLock<String> = LazyLock::new(|| {
    let hash = base64::engine::general_purpose::STANDARD.encode(Sha256::digest(FRAME_STYLE));
    format!("'sha256-{hash}'")
});

/// A whole document for `srcdoc`, without network by its own policy too.
pub(super) fn document(html: &str) -> String {
    let policy = format!("default-src 'none'; style-src {}", *FRAME_STYLE_SOURCE);
    let body = sanitise(html);
    format!(
        "<!doctype html><html><head><meta charset=\"utf-8\"><meta http-equiv=\"Content-Security-Policy\" \
         content=\"{policy}\"><meta name=\"referrer\" content=\"no-referrer\"><title>Message</title>\
         <style>{FRAME_STYLE}</style></head><body>{body}</body></html>"
    )
}

/// The harmless form of `html`.
pub fn sanitise(html: &str) -> String {
    static SECOND: LazyLock<ammonia::Builder<'static>> = LazyLock::new(second_pass);
    SECOND.clean(&first_pass(html)).to_string()
}

fn second_pass() -> ammonia::Builder<'static> {
    let mut builder = ammonia::Builder::empty();
    let span = HashSet::from(["colspan", "rowspan"]);
    builder
        .tags(HashSet::from(KEPT))
        .tag_attributes(HashMap::from([("td", span.clone()), ("th", span)]))
        .allowed_classes(HashMap::from([("span", HashSet::from(["link", "target", "image"]))]))
        .link_rel(None);
    builder
}

fn first_pass(html: &str) -> String {
    let tokenizer = Tokenizer::new(Sink::default(), TokenizerOpts::default());
    let input = BufferQueue::default();
    input.push_back(StrTendril::from_slice(html));
    // The sink answers no token with `Script`, so one call takes everything.
    let _ = tokenizer.feed(&input);
    tokenizer.end();
    let mut out = tokenizer.sink.0.into_inner();
    while let Some(open) = out.open.pop() {
        out.close(&open);
    }
    out.html
}

#[derive(Default)]
struct Sink(RefCell<Output>);

#[derive(Default)]
struct Output {
    html: String,
    open: Vec<Open>,
    /// The raw-text element that is open.
    raw: Option<String>,
}

struct Open {
    name: String,
    /// What is written when it closes.
    end: String,
}

impl TokenSink for Sink {
    type Handle = ();

    fn process_token(&self, token: Token, _line: u64) -> TokenSinkResult<()> {
        let mut out = self.0.borrow_mut();
        match token {
            Token::TagToken(tag) if tag.kind == TagKind::StartTag => {
                out.start(&tag);
                if let Some(kind) = raw_kind(&tag.name) {
                    out.raw = Some(tag.name.to_string());
                    return TokenSinkResult::RawData(kind);
                }
            }
            Token::TagToken(tag) => out.end(&tag),
            Token::CharacterTokens(text) => out.characters(&text),
            Token::CommentToken(_)
            | Token::DoctypeToken(_)
            | Token::NullCharacterToken
            | Token::EOFToken
            | Token::ParseError(_) => {}
        }
        TokenSinkResult::Continue
    }
}

impl Output {
    fn start(&mut self, tag: &Tag) {
        let name: &str = &tag.name;
        let attribute = |n: &str| tag.attrs.iter().find(|a| &*a.name.local == n).map(|a| a.value.trim().to_owned());
        match name {
            "br" | "hr" => self.write(&format!("<{name}>")),
            "img" | "input" | "button" | "video" | "audio" | "object" | "embed" | "iframe" => {
                let shown = attribute("alt").or_else(|| attribute("value")).unwrap_or_default();
                let source = attribute("src").or_else(|| attribute("data")).unwrap_or_default();
                self.write(" <span class=\"image\">[");
                self.text(&format!("{name}{}{shown}", if shown.is_empty() { "" } else { ": " }));
                self.write("]</span>");
                self.target(&source);
            }
            "a" | "area" => {
                let target = attribute("href").unwrap_or_default();
                // A link inside a link doesn't exist; the first one ends here.
                self.end_named("a");
                self.open("a", "<span class=\"link\">", format!("</span>{}", target_html(&target)));
            }
            "td" | "th" => {
                let span = |n: &str| {
                    let value: u32 = attribute(n)?.parse().ok()?;
                    (2..=MAX_SPAN).contains(&value).then(|| format!(" {n}=\"{value}\""))
                };
                let spans = ["colspan", "rowspan"].into_iter().filter_map(span).collect::<String>();
                self.open(name, &format!("<{name}{spans}>"), format!("</{name}>"));
            }
            _ if KEPT.contains(&name) => self.open(name, &format!("<{name}>"), format!("</{name}>")),
            _ => {}
        }
    }

    fn open(&mut self, name: &str, start: &str, end: String) {
        if self.open.len() < MAX_OPEN && self.html.len() < MAX_OUTPUT {
            self.write(start);
            self.open.push(Open { name: name.to_owned(), end });
        }
    }

    fn end(&mut self, tag: &Tag) {
        if self.raw.as_deref() == Some(&*tag.name) {
            self.raw = None;
        }
        self.end_named(&tag.name);
    }

    /// Closes the innermost element of that name and what is open inside it.
    fn end_named(&mut self, name: &str) {
        let Some(at) = self.open.iter().rposition(|o| o.name == name) else { return };
        for open in self.open.split_off(at).iter().rev() {
            self.close(open);
        }
    }

    fn close(&mut self, open: &Open) {
        // Written even past the limit: what is open must be closed.
        self.html.push_str(&open.end);
    }

    fn characters(&mut self, text: &str) {
        match self.raw.as_deref() {
            Some("script" | "style" | "title" | "iframe" | "noembed" | "noframes") => {}
            _ => self.text(text),
        }
    }

    fn text(&mut self, text: &str) {
        let escaped = escape(&reveal(text, Shape::Lines).text);
        self.write(&escaped);
    }

    fn target(&mut self, target: &str) {
        let html = target_html(target);
        self.write(&html);
    }

    fn write(&mut self, html: &str) {
        if self.html.len() < MAX_OUTPUT {
            self.html.push_str(html);
        }
    }
}

fn target_html(target: &str) -> String {
    if target.is_empty() {
        return String::new();
    }
    let revealed = reveal(target, Shape::Line).text;
    let mut shown: String = revealed.chars().take(MAX_TARGET_CHARS).collect();
    if shown.len() < revealed.len() {
        shown.push('…');
    }
    format!(" <span class=\"target\">⟨{}⟩</span>", escape(&shown))
}

fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What must not stand in any result as markup.
    fn harmless(html: &str) {
        let out = sanitise(html);
        let mut rest = out.as_str();
        while let Some(at) = rest.find('<') {
            rest = &rest[at + 1..];
            let tag: &str = &rest[..rest.find('>').expect("a tag ends")];
            let mut words = tag.trim_start_matches('/').split(' ');
            let name = words.next().unwrap_or_default();
            assert!(KEPT.contains(&name), "{name:?} in {out}");
            for attribute in words {
                let known = ["class=\"link\"", "class=\"target\"", "class=\"image\""].contains(&attribute)
                    || attribute.starts_with("colspan=\"")
                    || attribute.starts_with("rowspan=\"");
                assert!(known, "{attribute:?} in {out}");
            }
        }
    }

    const HOSTILE: [&str; 24] = [
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "<img src=\"http://tracker.example/p.gif\">",
        "<meta http-equiv=refresh content=\"0;url=http://evil.example\">",
        "<form action=http://evil.example><input name=pin><button>ok</button></form>",
        "<svg onload=alert(1)><script>x</script><a xlink:href=javascript:x>y</a></svg>",
        "<a href=\"javascript:alert(1)\">x</a>",
        "<a href=\"data:text/html,<script>x</script>\" onclick=x target=_top>x</a>",
        "<iframe src=http://evil.example></iframe><object data=x></object><embed src=x>",
        "<style>*{display:none}</style><p style=\"position:fixed\">x",
        "<base href=http://evil.example><link rel=stylesheet href=http://evil.example/x.css>",
        "<math><mtext><table><mglyph><style><!--</style><img title=\"--&gt;&lt;img src=1 onerror=alert(1)&gt;\">",
        "<noscript><p title=\"</noscript><img src=x onerror=alert(1)>\">",
        "<textarea></textarea><script>x</script>",
        "<template><script>x</script></template>",
        "<p title=\"<script>\">x</p><p/onclick=x>",
        "<svg><style><img src=x onerror=alert(1)></style></svg>",
        "<xmp><script>alert(1)</script></xmp><plaintext><script>x",
        "</body></html><script>x</script>",
        "\u{0}<scr\u{0}ipt>x</script>",
        "<td colspan=9999999 rowspan=\"2\" bgcolor=x>x",
        "<!--[if mso]><script>x</script><![endif]--><![CDATA[<script>x</script>]]>",
        "<video src=x autoplay><source src=x></video><audio src=x>",
        "<select><option><style></option></select><img src=x onerror=1></style>",
    ];

    #[test]
    fn nothing_hostile_survives() {
        for html in HOSTILE {
            harmless(html);
            harmless(&format!("<div>{html}</div>{html}"));
            for at in (0..html.len()).filter(|at| html.is_char_boundary(*at)) {
                harmless(&html[..at]);
                harmless(&format!("<table><a><b>{}", &html[at..]));
            }
        }
    }

    #[test]
    fn links_and_images_are_shown_with_their_target() {
        let out =
            sanitise("<p>See <a href=\"https://evil.example/?a=1&b\">bank</a><img src=http://t.example/1 alt=logo>");
        assert!(
            out.contains("<span class=\"link\">bank</span> <span class=\"target\">⟨https://evil.example/?a=1&amp;b⟩")
        );
        assert!(out.contains("[img: logo]") && out.contains("⟨http://t.example/1⟩"), "{out}");
        assert!(sanitise("<a href=javascript:x>y</a>").contains("⟨javascript:x⟩"));
    }

    #[test]
    fn hidden_text_is_shown_and_invisible_characters_are_marked() {
        let out = sanitise("<div style='display:none'>secret</div>a&#x202e;b<textarea>typed</textarea>");
        assert!(out.contains("secret") && out.contains("a⟦U+202E⟧b") && out.contains("typed"));
    }

    #[test]
    fn harmless_markup_stays() {
        let html = "<h1>Hi</h1><p>a <b>b</b> &amp; c<br>d</p><ul><li>e</li></ul><table><tbody><tr><td colspan=\"2\">f</td></tr></tbody></table>";
        assert_eq!(sanitise(html), html);
    }

    #[test]
    fn deep_and_long_markup_is_bounded_in_time_and_size() {
        for piece in ["<div>", "<b>", "<table><tr><td>", "<a href=x>", "<b><p>", "<i><div></i>", "</p>", "<ul><li>"] {
            let started = std::time::Instant::now();
            let html = piece.repeat(1024 * 1024 / piece.len());
            let out = sanitise(&html);
            assert!(out.len() <= 6 * MAX_OUTPUT, "{piece} {}", out.len());
            assert!(started.elapsed().as_secs() < 20, "{piece} took {:?}", started.elapsed());
        }
    }

    #[test]
    fn the_frame_allows_only_its_own_style() {
        let doc = document("<p>x</p>");
        assert!(doc.contains("default-src 'none'; style-src 'sha256-"));
        assert!(!FRAME_STYLE.contains("url(") && !FRAME_STYLE.contains('<'));
        assert_eq!(doc.matches("<style>").count(), 1);
    }
}
