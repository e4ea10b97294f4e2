//! How a form asks for the approver's proof.

use maud::{Markup, html};

use super::Frame;
use crate::config::ApprovalMode;
use crate::floor::passkey::encode;
use crate::web::passkey::Passkey;

/// The proof that a form asks for.
pub(in crate::web) enum Ask<'a> {
    /// The PIN.
    Pin,
    /// A passkey's signature over this challenge.
    Passkey {
        /// What it signs.
        challenge: [u8; 32],
        /// The host name of the pages.
        rp_id: &'a str,
        /// Which passkeys may answer.
        allow: &'a [Passkey],
    },
    /// Nothing more than the link.
    Link,
}

/// Credential ids with blanks between.
pub(super) fn ids(passkeys: &[Passkey]) -> String {
    passkeys.iter().map(|p| p.key.credential.as_str()).collect::<Vec<_>>().join(" ")
}

impl<'a> Ask<'a> {
    /// What decides in this mode.
    pub(super) fn deciding(frame: &'a Frame<'_>, challenge: [u8; 32]) -> Ask<'a> {
        match (&frame.link, frame.mode) {
            (Some(_), _) => Ask::Link,
            (None, ApprovalMode::Pin | ApprovalMode::Link) => Ask::Pin,
            (None, ApprovalMode::Passkey) => Ask::Passkey { challenge, rp_id: frame.rp_id, allow: &frame.passkeys },
        }
    }

    /// A form that posts `fields` to `action` with this proof. `id` tells its
    /// inputs from those of other forms on the page.
    pub(super) fn form(&self, action: &str, id: &str, fields: &Markup, button: (&str, &str)) -> Markup {
        let (class, text) = button;
        let button = |off: bool| html! { button class=(class) type="submit" disabled[off] { (text) } };
        match self {
            Ask::Pin => html! {
                form method="post" action=(action) {
                    (fields)
                    label for={ "pin-" (id) } { "Your PIN" }
                    input id={ "pin-" (id) } type="password" name="pin" required autocomplete="off";
                    (button(false))
                }
            },
            Ask::Link => html! {
                form method="post" action=(action) { (fields) (button(false)) }
            },
            Ask::Passkey { challenge, rp_id, allow } => html! {
                form method="post" action=(action) data-passkey="get" data-challenge=(encode(challenge))
                    data-rp=(rp_id) data-allow=(ids(allow)) {
                    (fields)
                    input type="hidden" name="assertion" value="";
                    (button(true))
                    (below())
                }
            },
        }
    }
}

/// Where the script says what went wrong, and what stands there without it.
pub(super) fn below() -> Markup {
    html! {
        p.small role="alert" {}
        noscript { p.note { "A passkey needs JavaScript on this page." } }
    }
}

/// Loads the script on pages that ask for a passkey.
pub(super) fn script() -> Markup {
    html! { script src=(crate::web::SCRIPT_PATH) defer {} }
}
