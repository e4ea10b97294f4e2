//! One decision, as `tollgate explain` tells it.

use maud::{Markup, html};

use super::{Frame, Here};
use crate::lane::trace::Trace;
use crate::mail::mime::visible::{Shape, reveal};

/// The page.
pub(in crate::web) fn page(frame: &Frame<'_>, trace: &Trace) -> Markup {
    let title = format!("Why this is in {}", trace.verdict.lane.name());
    // Our own lines, which quote what others wrote.
    let lines: Vec<String> = trace.explain().lines().map(|line| reveal(line, Shape::Line).text).collect();
    let body = html! {
        h1 { (title) }
        p.lead { "Decided " (frame.time(trace.time)) ". A correction is a drag to another lane's mailbox; "
            code { "tollgate pin sender" } " decides for every later message of an address." }
        pre { (lines.join("\n")) }
    };
    frame.layout(&title, Here::Decision, &body)
}
