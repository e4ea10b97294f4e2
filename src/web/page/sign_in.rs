//! The sign-in form.

use maud::{Markup, html};

use super::shell;

/// The form; `only` is the account where there is one.
pub(in crate::web) fn page(only: Option<&str>, next: Option<&str>, without_pin: bool) -> Markup {
    let body = html! {
        main #main .narrow {
            p.mark { "Tollgate" }
            h1 { "Sign in" }
            p { "Here a person reads what an AI drafted, and decides whether it is sent." }
            @if without_pin {
                p.note role="status" {
                    "No PIN is set yet. Set one at the console: " code { "tollgate pin set" }
                }
            }
            form.card method="post" action="/sign-in" {
                @if let Some(next) = next { input type="hidden" name="next" value=(next); }
                label for="account" { "Account" }
                input #account type="email" name="account" value=[only] required autocomplete="username"
                    autocapitalize="none" spellcheck="false" autofocus[only.is_none()];
                label for="pin" { "PIN" }
                input #pin type="password" name="pin" required autocomplete="off" autofocus[only.is_some()];
                button.primary type="submit" { "Sign in" }
            }
            p.small { "A sign-in shows held mail for 12 hours. Every approval asks for the PIN again." }
        }
    };
    shell("Sign in", &body)
}
