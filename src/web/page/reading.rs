//! What a careful person must know before they decide: recipients with their
//! marks, and every warning.

use crate::account::Accounts;
use crate::mail::mime::visible::{Shape, reveal};
use crate::mail::mime::{Level, MessageView, Warning, domain_forms};
use crate::outbox::Hold;
use crate::web::facts::Facts;

/// One recipient of the envelope.
pub(in crate::web) struct Recipient {
    pub(in crate::web) address: String,
    /// Not at a domain of the account.
    pub(in crate::web) outside: bool,
    /// Nobody wrote to it before.
    pub(in crate::web) new: bool,
    /// No header field names it.
    pub(in crate::web) unnamed: bool,
    /// As it is seen and as it is sent, where these differ.
    pub(in crate::web) forms: Option<(String, String)>,
}

/// A message beside its envelope and what is known.
pub(in crate::web) struct Reading {
    pub(in crate::web) recipients: Vec<Recipient>,
    pub(in crate::web) warnings: Vec<(Level, String)>,
}

impl Reading {
    pub(in crate::web) fn of(accounts: &Accounts, hold: &Hold, view: &MessageView, facts: &Facts) -> Reading {
        let own: Vec<String> = accounts.account(&hold.account).map_or_else(Vec::new, |a| {
            std::iter::once(&a.address).chain(&a.aliases).map(|a| a.domain.clone()).collect()
        });
        let each = hold.envelope.forward_paths.iter().map(|path| Recipient {
            address: reveal(path.as_str(), Shape::Line).text,
            outside: !own.iter().any(|d| d.eq_ignore_ascii_case(path.domain())),
            new: !facts.known.contains(path.as_str()),
            unnamed: !view.names_recipient(path.as_str()),
            forms: domain_forms(path.domain()),
        });
        let recipients: Vec<Recipient> = each.collect();
        let warnings = warnings(hold, view, &recipients);
        Reading { recipients, warnings }
    }

    /// Whether it may be approved among others: no warning, no attachment, no
    /// new recipient.
    pub(in crate::web) fn is_calm(&self, view: &MessageView) -> bool {
        let files = view.parts.iter().any(|p| p.is_attachment() || p.damaged || p.cut);
        let marked = self.recipients.iter().any(|r| r.new || r.unnamed || r.forms.is_some());
        self.warnings.is_empty() && view.differences.is_empty() && !files && !marked
    }
}

fn warnings(hold: &Hold, view: &MessageView, recipients: &[Recipient]) -> Vec<(Level, String)> {
    let mut all: Vec<(Level, String)> = view
        .against(&hold.envelope.reverse_path)
        .iter()
        .chain(&view.warnings)
        .map(|w: &Warning| (w.level(), w.to_string()))
        .collect();
    let unnamed: Vec<&str> = recipients.iter().filter(|r| r.unnamed).map(|r| r.address.as_str()).collect();
    if !unnamed.is_empty() {
        let who = unnamed.join(", ");
        all.insert(0, (Level::Danger, format!("Also sent to {who}, whom no header field names (a blind copy).")));
    }
    all.sort_by_key(|(level, _)| std::cmp::Reverse(*level));
    all
}
