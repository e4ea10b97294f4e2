//! The sign-in form.

use maud::{Markup, html};

use super::ask::{below, script};
use super::shell;
use crate::config::ApprovalMode;
use crate::floor::passkey::encode;
use crate::web::ticket::Issued;

/// The form; `only` is the account where there is one, `by_passkey` a
/// challenge where any passkey is registered.
pub(in crate::web) fn page(
    only: Option<&str>,
    next: Option<&str>,
    without_pin: bool,
    mode: ApprovalMode,
    by_passkey: Option<(&Issued, &str)>,
) -> Markup {
    let proof = match mode {
        ApprovalMode::Pin | ApprovalMode::Link => "the PIN again",
        ApprovalMode::Passkey => "a passkey",
    };
    let next = html! { @if let Some(next) = next { input type="hidden" name="next" value=(next); } };
    let body = html! {
        main #main .narrow {
            p.mark { "Tollgate" }
            h1 { "Sign in" }
            p { "Here a person reads what an AI drafted, and decides whether it is sent." }
            @if without_pin && mode != ApprovalMode::Passkey {
                p.note role="status" {
                    "No PIN is set yet. Set one at the console: " code { "tollgate pin set" }
                }
            }
            @if let Some((ticket, rp_id)) = by_passkey {
                form.card method="post" action="/sign-in/passkey" data-passkey="get" data-rp=(rp_id)
                    data-challenge=(encode(&ticket.challenge)) {
                    (next)
                    input type="hidden" name="ticket" value=(ticket.nonce);
                    input type="hidden" name="assertion" value="";
                    button.primary type="submit" disabled { "Sign in with a passkey" }
                    (below())
                }
            }
            form.card method="post" action="/sign-in" {
                (next)
                label for="account" { "Account" }
                input #account type="email" name="account" value=[only] required autocomplete="username"
                    autocapitalize="none" spellcheck="false" autofocus[only.is_none()];
                label for="pin" { "PIN" }
                input #pin type="password" name="pin" required autocomplete="off" autofocus[only.is_some()];
                button.primary[by_passkey.is_none()] type="submit" { "Sign in" }
            }
            p.small { "A sign-in shows held mail for 12 hours. Every approval asks for " (proof) "." }
            @if mode == ApprovalMode::Passkey { p.small { a href="/enrol" { "Register a passkey with a code" } } }
        }
        @if by_passkey.is_some() { (script()) }
    };
    shell("Sign in", &body)
}
