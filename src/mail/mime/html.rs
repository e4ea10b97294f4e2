//! What an HTML text says, links to and tries, read by the tokenizer of the
//! HTML standard.
//!
//! Promises: linear in the text; reports what would run, load, submit or hide
//! in a client that shows HTML. Doesn't know: style sheets beyond their words;
//! it looks for the usual ways of hiding and says so.

use std::cell::RefCell;
use std::collections::BTreeSet;

use html5ever::tendril::StrTendril;
use html5ever::tokenizer::states::RawKind;
use html5ever::tokenizer::{BufferQueue, Tag, TagKind, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts};

/// Most links that are kept.
const MAX_LINKS: usize = 500;

/// A link and the words that stand on it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Link {
    /// The target as written.
    pub target: String,
    /// The text of the link.
    pub text: String,
}

/// What was found in one HTML text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Scan {
    /// All text, blocks separated by line ends; hidden text is text.
    pub text: String,
    /// Links in order.
    pub links: Vec<Link>,
    /// What runs or submits: `script`, `form`, `on…`, …
    pub active: BTreeSet<String>,
    /// What loads from elsewhere: `img`, `css`, …
    pub remote: BTreeSet<String>,
    /// How text is hidden: `display:none`, `font-size:0`, …
    pub hiding: BTreeSet<String>,
    /// Whether comments hold markup that some clients show (`<!--[if mso]>`).
    pub conditional: bool,
}

/// Reads `html`.
pub fn scan(html: &str) -> Scan {
    let tokenizer = Tokenizer::new(Sink::default(), TokenizerOpts::default());
    let input = BufferQueue::default();
    input.push_back(StrTendril::from_slice(html));
    // The sink answers no token with `Script`, so one call takes everything.
    let _ = tokenizer.feed(&input);
    tokenizer.end();
    let mut state = tokenizer.sink.state.into_inner();
    state.close_link();
    state.scan
}

/// Tells the tokenizer which elements hold no markup.
pub fn raw_kind(tag: &str) -> Option<RawKind> {
    match tag {
        "title" | "textarea" => Some(RawKind::Rcdata),
        "style" | "xmp" | "iframe" | "noembed" | "noframes" => Some(RawKind::Rawtext),
        "script" => Some(RawKind::ScriptData),
        _ => None,
    }
}

#[derive(Default)]
struct Sink {
    state: RefCell<State>,
}

#[derive(Default)]
struct State {
    scan: Scan,
    link: Option<Link>,
    raw: Option<String>,
}

impl TokenSink for Sink {
    type Handle = ();

    fn process_token(&self, token: Token, _line: u64) -> TokenSinkResult<()> {
        let mut state = self.state.borrow_mut();
        match token {
            Token::TagToken(tag) if tag.kind == TagKind::StartTag => {
                state.start(&tag);
                if let Some(kind) = raw_kind(&tag.name) {
                    state.raw = Some(tag.name.to_string());
                    return TokenSinkResult::RawData(kind);
                }
                if &*tag.name == "plaintext" {
                    return TokenSinkResult::Plaintext;
                }
            }
            Token::TagToken(tag) => state.end(&tag),
            Token::CharacterTokens(text) => state.text(&text),
            Token::CommentToken(text) => state.scan.conditional |= text.trim_start().starts_with("[if"),
            Token::DoctypeToken(_) | Token::NullCharacterToken | Token::EOFToken | Token::ParseError(_) => {}
        }
        TokenSinkResult::Continue
    }
}

impl State {
    fn start(&mut self, tag: &Tag) {
        let name: &str = &tag.name;
        match name {
            "script" | "form" | "object" | "embed" | "applet" | "iframe" | "frame" | "base" | "svg" | "math"
            | "input" | "button" | "textarea" | "select" => {
                self.scan.active.insert(name.to_owned());
            }
            "meta" if tag.attrs.iter().any(|a| &*a.name.local == "http-equiv") => {
                self.scan.active.insert("meta http-equiv".to_owned());
            }
            _ => {}
        }
        if BLOCKS.contains(&name) && !self.scan.text.ends_with('\n') {
            self.scan.text.push('\n');
        }
        for attribute in &tag.attrs {
            self.attribute(name, &attribute.name.local, &attribute.value);
        }
    }

    fn attribute(&mut self, element: &str, name: &str, value: &str) {
        let scheme = value.trim_start().to_ascii_lowercase();
        match name {
            _ if name.starts_with("on") => {
                self.scan.active.insert(format!("{name}="));
            }
            "href" | "xlink:href" if element == "a" || element == "area" => {
                self.close_link();
                self.link = Some(Link { target: value.trim().to_owned(), text: String::new() });
                if scheme.starts_with("javascript:") || scheme.starts_with("vbscript:") || scheme.starts_with("data:") {
                    self.scan.active.insert(format!("link to {}", scheme.split(':').next().unwrap_or_default()));
                }
            }
            "src" | "srcset" | "background" | "poster" | "href" | "data" | "lowsrc" | "dynsrc"
                if !scheme.starts_with("cid:") && !scheme.starts_with("data:") && !scheme.is_empty() =>
            {
                self.scan.remote.insert(element.to_owned());
            }
            "alt" => self.text(&format!(" {value} ")),
            "hidden" => {
                self.scan.hiding.insert("hidden".to_owned());
            }
            "style" => self.css(value),
            _ => {}
        }
    }

    /// Looks for the usual ways of loading and hiding.
    fn css(&mut self, css: &str) {
        let flat: String = css.chars().filter(|c| !c.is_whitespace()).collect::<String>().to_ascii_lowercase();
        if flat.contains("url(") || flat.contains("@import") {
            self.scan.remote.insert("css".to_owned());
        }
        for way in HIDING {
            // `opacity:0.9` hides nothing; what follows a bare 0 decides.
            let hit = flat.match_indices(way).any(|(at, _)| {
                let after = flat[at + way.len()..].chars().next();
                !way.ends_with('0') || !after.is_some_and(|c| c == '.' || c.is_ascii_digit())
            });
            if hit {
                self.scan.hiding.insert((*way).to_owned());
            }
        }
    }

    fn end(&mut self, tag: &Tag) {
        let name: &str = &tag.name;
        if self.raw.as_deref() == Some(name) {
            self.raw = None;
        }
        if name == "a" {
            self.close_link();
        }
        if BLOCKS.contains(&name) && !self.scan.text.ends_with('\n') {
            self.scan.text.push('\n');
        }
    }

    fn text(&mut self, text: &str) {
        match self.raw.as_deref() {
            Some("style") => self.css(text),
            Some("script") => {}
            _ => {
                self.scan.text.push_str(text);
                if let Some(link) = &mut self.link {
                    link.text.push_str(text);
                }
            }
        }
    }

    fn close_link(&mut self) {
        if let Some(mut link) = self.link.take()
            && self.scan.links.len() < MAX_LINKS
        {
            link.text = link.text.split_whitespace().collect::<Vec<_>>().join(" ");
            self.scan.links.push(link);
        }
    }
}

/// Elements that start a new line.
const BLOCKS: [&str; 22] = [
    "p",
    "div",
    "br",
    "tr",
    "td",
    "th",
    "li",
    "ul",
    "ol",
    "table",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "blockquote",
    "pre",
    "hr",
    "title",
    "section",
    "article",
];

/// The usual ways of hiding text, blanks removed.
const HIDING: [&str; 12] = [
    "display:none",
    "visibility:hidden",
    "font-size:0",
    "font-size:1px",
    "line-height:0",
    "max-height:0",
    "opacity:0",
    "mso-hide:all",
    "color:transparent",
    "text-indent:-",
    "left:-",
    "clip:rect(0",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_links_and_alt_are_read() {
        let s = scan(
            "<p>Hello <b>you</b><p>Pay <a href=' https://evil.example/x '>https://bank.example</a><img alt='now'>",
        );
        assert_eq!(s.links, [Link { target: "https://evil.example/x".into(), text: "https://bank.example".into() }]);
        assert!(s.text.contains("Hello you\nPay"), "{:?}", s.text);
        assert!(s.text.contains("now"));
    }

    #[test]
    fn what_runs_and_loads_is_named() {
        let s = scan(
            "<script>alert(1)</script><img src=http://t.example/p onerror=x()><form action=/x><svg onload=1>\
             <meta http-equiv=refresh content='0;url=http://e'><a href='JavaScript:x'>y</a><style>@import 'x'</style>",
        );
        for active in ["script", "onerror=", "form", "svg", "onload=", "meta http-equiv", "link to javascript"] {
            assert!(s.active.contains(active), "{active} in {:?}", s.active);
        }
        assert!(s.remote.contains("img") && s.remote.contains("css"), "{:?}", s.remote);
        assert!(!s.text.contains("alert"));
    }

    #[test]
    fn hiding_is_named_and_half_opacity_is_not() {
        let s = scan("<div style='DISPLAY : none'>x</div><i style='opacity:0.5'>y</i><style>.a{font-size:0}</style>");
        assert_eq!(s.hiding.iter().map(String::as_str).collect::<Vec<_>>(), ["display:none", "font-size:0"]);
        assert!(scan("<!--[if mso]><p>only there</p><![endif]-->").conditional);
    }
}
