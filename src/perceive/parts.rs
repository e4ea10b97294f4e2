//! Which parts of a message a reader sees.
//!
//! Promises: rests on the bounded splitter of [`crate::mail::mime`], so that
//! neither depth nor number of parts follows the sender; every part's text is
//! had whatever its encoding or charset says. Doesn't know: what is in it.

use std::borrow::Cow;

use super::fields::{decode_charset, decode_words, eight_bit};
use crate::mail::mime::decode::TransferEncoding;
use crate::mail::mime::split::{Entity, Kind, Structure, split_as_read};

/// Which of alternatives is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// What clients show.
    Html,
    /// What stands beside it.
    Plain,
}

/// A message inside the message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Enclosed {
    /// Split along with the rest; where its own header stands.
    Here(usize),
    /// In a transfer encoding, which RFC 2046 §5.2.1 forbids and clients undo.
    Encoded(usize),
}

/// The parts of a message, in order.
pub(super) struct Parts<'a> {
    octets: &'a [u8],
    structure: Structure,
    children: Vec<Vec<usize>>,
}

impl<'a> Parts<'a> {
    /// Splits a message; there is always a part 0, the message itself.
    pub(super) fn of(octets: &'a [u8]) -> Parts<'a> {
        let structure = split_as_read(octets);
        let mut children = vec![Vec::new(); structure.entities.len()];
        for (at, entity) in structure.entities.iter().enumerate() {
            if let Some(parent) = entity.parent {
                children[parent].push(at);
            }
        }
        Parts { octets, structure, children }
    }

    fn entity(&self, at: usize) -> &Entity {
        &self.structure.entities[at]
    }

    /// Lower case, with its subtype.
    pub(super) fn media_type(&self, at: usize) -> &str {
        &self.entity(at).content.name
    }

    /// A parameter of its Content-Type.
    pub(super) fn parameter(&self, at: usize, name: &str) -> Option<&str> {
        self.entity(at).content.parameter(name)
    }

    /// The name under which it is offered as a file; empty where there is none.
    pub(super) fn file_name(&self, at: usize) -> String {
        let entity = self.entity(at);
        let named = entity.disposition.as_ref().and_then(|d| d.parameter("filename"));
        named.or_else(|| entity.content.parameter("name")).map(decode_words).unwrap_or_default()
    }

    /// The decoded Subject of the header that stands there.
    pub(super) fn subject(&self, at: usize) -> String {
        let entity = self.entity(at);
        let field = entity.fields.iter().find(|f| f.is(self.octets, "Subject"));
        field.map(|f| decode_words(&eight_bit(&f.unfolded(self.octets)))).unwrap_or_default()
    }

    /// Its octets without their transfer encoding.
    pub(super) fn decoded(&self, at: usize) -> Cow<'a, [u8]> {
        let entity = self.entity(at);
        let body = &self.octets[entity.body.clone()];
        match entity.encoding {
            TransferEncoding::Identity | TransferEncoding::Unknown(_) => Cow::Borrowed(body),
            TransferEncoding::QuotedPrintable | TransferEncoding::Base64 => {
                Cow::Owned(entity.encoding.decode(body).value)
            }
        }
    }

    /// Its text.
    pub(super) fn text(&self, at: usize) -> String {
        decode_charset(self.parameter(at, "charset").unwrap_or_default(), &self.decoded(at))
    }

    /// The parts of this message that aren't of one inside it.
    pub(super) fn own_parts(&self) -> Vec<usize> {
        let mut own = Vec::new();
        let mut inside = vec![false; self.structure.entities.len()];
        for (at, entity) in self.structure.entities.iter().enumerate() {
            // A parent always stands before its children.
            inside[at] = entity.parent.is_some_and(|p| inside[p] || self.entity(p).kind == Kind::Message);
            if !inside[at] {
                own.push(at);
            }
        }
        own
    }

    /// The messages directly inside this one.
    pub(super) fn enclosed(&self) -> Vec<Enclosed> {
        let found = self.own_parts().into_iter().filter_map(|at| {
            let entity = self.entity(at);
            let message = matches!(entity.content.name.as_str(), "message/rfc822" | "message/global");
            match entity.kind {
                Kind::Message => self.children[at].first().map(|root| Enclosed::Here(*root)),
                Kind::Leaf if message && entity.encoding != TransferEncoding::Identity => Some(Enclosed::Encoded(at)),
                Kind::Leaf | Kind::Multipart => None,
            }
        });
        found.collect()
    }

    /// The text parts that a reader of this form sees, from `root` down.
    pub(super) fn bodies(&self, root: usize, form: Form) -> Vec<usize> {
        let mut out = Vec::new();
        self.collect(root, form, &mut out);
        out
    }

    /// Recurses as deep as the splitter went, which is bounded.
    fn collect(&self, at: usize, form: Form, out: &mut Vec<usize>) {
        let entity = self.entity(at);
        match entity.kind {
            Kind::Message => {}
            Kind::Leaf if self.is_body(at) => out.push(at),
            Kind::Leaf => {}
            Kind::Multipart => match entity.content.name.as_str() {
                "multipart/alternative" => self.alternative(at, form, out),
                // RFC 2387: the first is the document, the others are what it shows.
                "multipart/related" => {
                    let before = out.len();
                    for child in &self.children[at] {
                        self.collect(*child, form, out);
                        if out.len() > before {
                            break;
                        }
                    }
                }
                _ => self.children[at].iter().for_each(|child| self.collect(*child, form, out)),
            },
        }
    }

    /// The last alternative of the wanted form (RFC 2046 §5.1.4), else any.
    fn alternative(&self, at: usize, form: Form, out: &mut Vec<usize>) {
        let (wanted, mut other) = (if form == Form::Html { "text/html" } else { "text/plain" }, None);
        for child in self.children[at].iter().rev() {
            let mut found = Vec::new();
            self.collect(*child, form, &mut found);
            if found.iter().any(|f| self.media_type(*f) == wanted) {
                out.append(&mut found);
                return;
            }
            if !found.is_empty() {
                other = Some(found);
            }
        }
        out.extend(other.into_iter().flatten());
    }

    /// Whether a leaf is text to read rather than a file.
    fn is_body(&self, at: usize) -> bool {
        let entity = self.entity(at);
        let text = matches!(entity.content.name.as_str(), "text/plain" | "text/html" | "text/enriched");
        let attached = entity.disposition.as_ref().is_some_and(|d| d.name == "attachment");
        let first = entity.parent.is_none_or(|p| self.children[p].first() == Some(&at));
        text && !attached && (first || entity.content.parameter("name").is_none())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bodies(message: &str, form: Form) -> Vec<String> {
        let parts = Parts::of(message.as_bytes());
        parts.bodies(0, form).into_iter().map(|at| parts.text(at).trim().to_owned()).collect()
    }

    const ALTERNATIVES: &str = "Content-Type: multipart/mixed; boundary=a\r\n\r\n--a\r\n\
        Content-Type: multipart/alternative; boundary=b\r\n\r\n--b\r\n\r\nplain\r\n--b\r\n\
        Content-Type: multipart/related; boundary=c\r\n\r\n--c\r\nContent-Type: text/html\r\n\r\nhtml\r\n--c\r\n\
        Content-Type: text/plain; name=x.txt\r\n\r\nshown in it\r\n--c--\r\n--b--\r\n--a\r\n\r\nfooter\r\n--a\r\n\
        Content-Type: text/plain\r\nContent-Disposition: attachment; filename=n.txt\r\n\r\nfile\r\n--a--\r\n";

    #[test]
    fn a_form_is_read_to_the_end_and_files_are_left() {
        assert_eq!(bodies(ALTERNATIVES, Form::Html), ["html", "footer"]);
        assert_eq!(bodies(ALTERNATIVES, Form::Plain), ["plain", "footer"]);
    }

    #[test]
    fn an_alternative_of_one_form_serves_for_both() {
        let m = "Content-Type: multipart/alternative; boundary=b\r\n\r\n--b\r\n\r\nonly plain\r\n--b--\r\n";
        assert_eq!(bodies(m, Form::Html), ["only plain"]);
    }

    #[test]
    fn an_encoded_multipart_is_a_multipart() {
        let m = "Content-Type: multipart/mixed; boundary=a\r\nContent-Transfer-Encoding: base64\r\n\r\n--a\r\n\
            Content-Transfer-Encoding: base64\r\n\r\naGVsbG8=\r\n--a--\r\n";
        assert_eq!(bodies(m, Form::Html), ["hello"]);
    }

    #[test]
    fn messages_inside_are_found_plain_and_encoded_but_not_theirs() {
        let inner = "Content-Type: message/rfc822\r\n\r\nSubject: two\r\n\r\nx\r\n";
        let m = format!(
            "Content-Type: multipart/mixed; boundary=a\r\n\r\n--a\r\nContent-Type: message/rfc822\r\n\r\n{inner}\
             --a\r\nContent-Type: message/rfc822\r\nContent-Transfer-Encoding: base64\r\n\r\nU3ViamVjdDogYg==\r\n--a--\r\n"
        );
        let parts = Parts::of(m.as_bytes());
        assert_eq!(parts.enclosed(), [Enclosed::Here(2), Enclosed::Encoded(4)]);
        assert_eq!(parts.own_parts(), [0, 1, 4]);
    }
}
