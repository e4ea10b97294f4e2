//! The servers of known providers.

use super::{InitArgs, Preset};
use crate::cli::exit::{Exit, Failure};
use crate::config::{Endpoint, TlsMode};
use crate::mail::address::Address;

/// Where to log in, and what to say about it.
pub(super) struct Servers {
    pub(super) imap: Endpoint,
    pub(super) imap_user: String,
    pub(super) smtp: Endpoint,
    pub(super) smtp_user: String,
    /// The authserv-ids that the provider writes (RFC 8601), where they are known.
    pub(super) authserv: &'static [&'static str],
    /// What the provider calls the password that is needed.
    pub(super) password_name: &'static str,
    /// What to look at when the login is refused.
    pub(super) hint: &'static str,
}

struct Known {
    imap: Option<&'static str>,
    smtp: Option<&'static str>,
    smtp_tls: TlsMode,
    authserv: &'static [&'static str],
    password_name: &'static str,
    hint: &'static str,
}

fn known(preset: Preset) -> Known {
    match preset {
        Preset::Gmail => Known {
            imap: Some("imap.gmail.com"),
            smtp: Some("smtp.gmail.com"),
            smtp_tls: TlsMode::Implicit,
            authserv: &["mx.google.com"],
            password_name: "App password",
            hint: "Google takes an app password here, not the account's own; making one takes 2-step verification.",
        },
        Preset::Fastmail => Known {
            imap: Some("imap.fastmail.com"),
            smtp: Some("smtp.fastmail.com"),
            smtp_tls: TlsMode::Implicit,
            // Each of its servers writes its own name.
            authserv: &["*.messagingengine.com"],
            password_name: "App password",
            hint: "Fastmail takes an app password with access to mail (IMAP and SMTP), not the account's own.",
        },
        Preset::Icloud => Known {
            imap: Some("imap.mail.me.com"),
            smtp: Some("smtp.mail.me.com"),
            smtp_tls: TlsMode::StartTls,
            // One field for each method.
            authserv: &["dmarc.icloud.com", "dkim-verifier.icloud.com", "spf.icloud.com"],
            password_name: "App-specific password",
            hint: "iCloud takes an app-specific password; if the user name is refused, try another with --imap-user.",
        },
        Preset::Generic => Known {
            imap: None,
            smtp: None,
            smtp_tls: TlsMode::Implicit,
            authserv: &[],
            password_name: "Password",
            hint: "Some providers take an app password here, or a user name other than the address (--imap-user, --smtp-user).",
        },
    }
}

/// iCloud's own domains, whose IMAP user name is the part before the `@`.
const ICLOUD_DOMAINS: [&str; 3] = ["icloud.com", "me.com", "mac.com"];

/// The preset's servers under the flags.
pub(super) fn servers(args: &InitArgs, address: &Address) -> Result<Servers, Failure> {
    let known = known(args.preset);
    let host = |flag: &Option<String>, preset: Option<&str>, name: &str| {
        let host = flag.clone().or_else(|| preset.map(str::to_owned));
        host.ok_or_else(|| Failure::new(Exit::Usage, "server", format!("{name} is needed with --preset generic")))
    };
    let endpoint = |host: String, port: Option<u16>, tls: TlsMode, usual: (u16, u16)| Endpoint {
        host,
        port: port.unwrap_or(if tls == TlsMode::Implicit { usual.0 } else { usual.1 }),
        tls,
        ca: args.ca.clone(),
    };
    let imap_tls = args.imap_tls.map_or(TlsMode::Implicit, Into::into);
    let smtp_tls = args.smtp_tls.map_or(known.smtp_tls, Into::into);
    let imap = endpoint(host(&args.imap_host, known.imap, "--imap-host")?, args.imap_port, imap_tls, (993, 143));
    let smtp = endpoint(host(&args.smtp_host, known.smtp, "--smtp-host")?, args.smtp_port, smtp_tls, (465, 587));
    // The password must not cross a network that the configuration would refuse.
    for server in [&imap, &smtp] {
        if server.tls == TlsMode::None && !crate::config::loopback_host(&server.host) {
            return Err(Failure::new(Exit::Usage, "tls", format!("{} without TLS: loopback hosts only", server.host)));
        }
    }
    let own = args.preset == Preset::Icloud && ICLOUD_DOMAINS.contains(&address.domain.as_str());
    let imap_user = if own { address.local.clone() } else { address.to_string() };
    Ok(Servers {
        imap,
        imap_user: args.imap_user.clone().unwrap_or(imap_user),
        smtp,
        smtp_user: args.smtp_user.clone().unwrap_or_else(|| address.to_string()),
        authserv: known.authserv,
        password_name: known.password_name,
        hint: known.hint,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_known_provider_says_whose_results_are_believed() {
        for preset in [Preset::Gmail, Preset::Fastmail, Preset::Icloud] {
            assert!(!known(preset).authserv.is_empty(), "{preset:?}");
        }
        assert!(known(Preset::Generic).authserv.is_empty());
    }
}
