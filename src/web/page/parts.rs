//! What a message says and carries.

use maud::{Markup, html};

use super::{count, octets};
use crate::mail::mime::{Difference, FieldView, MessageView, PartView};
use crate::web::sanitise;

/// The texts of the message: text as text, HTML in a frame that can nothing.
pub(super) fn content(view: &MessageView) -> Markup {
    html! {
        section.card aria-labelledby="says" {
            h2 #says { "What it says" }
            (texts(view))
            @for difference in &view.differences { (differs(difference)) }
        }
    }
}

/// Every text of the message.
pub(super) fn texts(view: &MessageView) -> Markup {
    html! {
        @if !view.parts.iter().any(|p| p.text.is_some() || p.html.is_some()) {
            p { "There is no text to read." }
        }
        @for part in &view.parts { (text(part)) }
    }
}

fn text(part: &PartView) -> Markup {
    html! {
        @if let Some(text) = &part.text {
            h3 { (label(part)) }
            pre.mail tabindex="0" role="region" aria-label=(label(part)) { (text) }
        }
        @if let Some(html) = &part.html {
            h3 { (label(part)) }
            p.small { "Shown without the sender's styles, pictures and links, so that nothing hides or loads; targets "
                "stand in ⟨ ⟩." }
            iframe class={ "mail " (height(html)) } title={ "HTML of part " (part.path) } sandbox="" referrerpolicy="no-referrer"
                srcdoc=(sanitise::document(html)) {}
        }
        @if part.cut { p.small { "Only the beginning is shown; the rest is in the raw source." } }
        @if !part.fields.is_empty() {
            h3 { "Part " (part.path) ", header of the attached message" }
            (table(&part.fields))
        }
    }
}

/// A frame without script can't grow with its content, so its height is a guess.
fn height(html: &str) -> &'static str {
    match html.len() {
        0..600 => "short",
        600..6_000 => "middle",
        _ => "long",
    }
}

fn label(part: &PartView) -> String {
    let kind = match part.content_type.as_str() {
        "text/plain" => "plain text",
        "text/html" => "HTML",
        other => other,
    };
    let charset = part.charset.as_deref().map(|c| format!(", {c}")).unwrap_or_default();
    format!("Part {}, {kind}{charset}", part.path)
}

fn differs(difference: &Difference) -> Markup {
    let list = |what: &str, words: &[String]| {
        html! { @if !words.is_empty() { dt { (what) } dd { (words.join(" · ")) } } }
    };
    html! {
        h3 { (difference.place) ": what only one side says" }
        dl.short {
            (list("Words only in the plain text", &difference.only_text))
            (list("Words only in the HTML", &difference.only_html))
            (list("Links only in the plain text", &difference.links_only_text))
            (list("Links only in the HTML", &difference.links_only_html))
        }
    }
}

/// Every part that is a file to the recipient.
pub(super) fn attachments(view: &MessageView) -> Markup {
    let files: Vec<&PartView> = view.parts.iter().filter(|p| p.is_attachment()).collect();
    html! {
        @if !files.is_empty() {
            section.card aria-labelledby="files" {
                h2 #files { (count(files.len(), "attachment")) }
                ul.files {
                    @for part in files {
                        li {
                            span.address { (part.filename.as_deref().unwrap_or("(no name)")) }
                            " "
                            span.meta { (part.content_type) @if !part.declared { " (not declared)" } " · "
                                (octets(part.size)) " · part " (part.path) }
                            @if part.damaged { span.tag.hidden { "damaged" } }
                            code.hash { (part.sha256) }
                        }
                    }
                }
            }
        }
    }
}

/// Every field of the header.
pub(super) fn fields(view: &MessageView) -> Markup {
    html! {
        section.card aria-labelledby="fields" {
            h2 #fields { "Every header field" }
            details {
                summary { (count(view.fields.len(), "field")) }
                (table(&view.fields))
            }
        }
    }
}

fn table(fields: &[FieldView]) -> Markup {
    html! {
        dl.fields {
            @for field in fields {
                dt { (field.name) }
                dd {
                    (field.decoded)
                    @if field.decoded != field.raw { span.raw { (field.raw) } }
                }
            }
        }
    }
}
