//! The text of the configuration that `init` writes.

use std::path::{Path, PathBuf};

use super::{InitArgs, Servers};
use crate::cli::Globals;
use crate::config::{Endpoint, TlsMode};
use crate::mail::address::Address;

/// The password file beside the configuration.
pub(super) fn password_path(output: &Path, address: &Address) -> PathBuf {
    // A local part may hold a slash or a dot alone; a file name may not.
    let safe = |c: char| if c.is_ascii_alphanumeric() || "@.-_+".contains(c) { c } else { '_' };
    let name: String = address.canonical().chars().map(safe).collect();
    output.with_file_name(format!("{name}.password"))
}

/// A TOML basic string.
fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

fn quoted_path(path: &Path) -> String {
    // A path that isn't UTF-8 can't stand in TOML; its lossy form is then
    // refused as unreadable.
    quoted(&std::path::absolute(path).unwrap_or_else(|_| path.to_owned()).to_string_lossy())
}

fn timezone(args: &InitArgs) -> String {
    let system = || jiff::tz::TimeZone::system().iana_name().map(str::to_owned);
    args.timezone.clone().or_else(system).unwrap_or_else(|| "UTC".to_owned())
}

fn server(name: &str, e: &Endpoint) -> String {
    let tls = match e.tls {
        TlsMode::Implicit => "implicit",
        TlsMode::StartTls => "starttls",
        TlsMode::None => "none",
    };
    format!("{name}.host = {}\n{name}.port = {}\n{name}.tls = \"{tls}\"\n", quoted(&e.host), e.port)
}

/// The whole file; every default is left out.
pub(super) fn configuration(
    globals: &Globals,
    args: &InitArgs,
    address: &Address,
    servers: &Servers,
    password_path: &Path,
) -> String {
    let mut text = String::from(
        "# Written by `tollgate init`. The gateway.toml of the source says every key;\n\
         # `tollgate check` prints what this one means.\n\n",
    );
    for (key, path) in [("state_dir", &globals.state_dir), ("certs_dir", &globals.certs_dir)] {
        if let Some(path) = path {
            text += &format!("{key} = {}\n", quoted_path(path));
        }
    }
    text += "[lanes]\n\
             # push, meeting and queue in INBOX; Lanes/Info and Lanes/Silent apart.\n\
             preset = \"calm\"\n\n[[account]]\n";
    text += &format!("address = {}\nprovider = \"imap\"\n", quoted(&address.to_string()));
    text += &server("imap", &servers.imap);
    text += &format!("imap_user = {}\n", quoted(&servers.imap_user));
    text += &server("smtp", &servers.smtp);
    text += &format!("smtp_user = {}\n", quoted(&servers.smtp_user));
    if let Some(ca) = &args.ca {
        text += &format!("ca = {}\n", quoted_path(ca));
    }
    // Beside this file, so that both can be moved together.
    let name = password_path.file_name().unwrap_or_default().to_string_lossy();
    text += &format!("password_file = {}\n", quoted(&name));
    text += &format!("timezone = {}\n", quoted(&timezone(args)));
    match servers.authserv {
        [_, ..] => {
            let ids: Vec<String> = servers.authserv.iter().map(|id| quoted(id)).collect();
            text += &format!("authserv = [{}]\n", ids.join(", "));
        }
        [] => {
            text += "# The authserv-id of your provider, if you know it; see Authentication-Results in your mail.\nauthserv = []\n"
        }
    }
    text
}
