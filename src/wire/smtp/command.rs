//! Client commands (RFC 5321 §4.1.1, AUTH by RFC 4954 §4), strictly.

use super::path::{Path, PathError, parse_path};

/// Longest client name of EHLO and HELO that is taken.
const MAX_CLIENT_NAME: usize = 255;
/// Most parameters of one MAIL or RCPT.
const MAX_PARAMETERS: usize = 10;

/// A parameter of MAIL or RCPT: keyword in upper case, value as written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parameter {
    /// The keyword in upper case.
    pub keyword: String,
    /// What stands behind `=`.
    pub value: Option<String>,
}

/// One command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// `EHLO` and the client's name.
    Ehlo(String),
    /// `HELO` and the client's name.
    Helo(String),
    /// `AUTH`: mechanism in upper case, initial response as written (`=` is empty).
    Auth {
        /// Mechanism in upper case.
        mechanism: String,
        /// Initial response in base64; `=` stands for an empty one.
        initial: Option<String>,
    },
    /// `MAIL FROM:`.
    Mail {
        /// The reverse-path; may be null.
        from: Path,
        /// Parameters in the order given.
        parameters: Vec<Parameter>,
    },
    /// `RCPT TO:`.
    Rcpt {
        /// The forward-path; never null.
        to: Path,
        /// Parameters in the order given.
        parameters: Vec<Parameter>,
    },
    /// `DATA`.
    Data,
    /// `RSET`.
    Rset,
    /// `NOOP`.
    Noop,
    /// STARTTLS (RFC 3207).
    StartTls,
    /// `VRFY`.
    Vrfy,
    /// `HELP`.
    Help,
    /// `QUIT`.
    Quit,
}

/// Why a line is no command that we take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CommandError {
    /// No command of that name.
    #[error("command not recognised")]
    Unknown,
    /// A command of RFC 5321 or an extension that is not offered here.
    #[error("command not implemented")]
    NotImplemented,
    /// The arguments are wrong; the text says which are wanted.
    #[error("{0}")]
    Syntax(&'static str),
    /// The path of MAIL.
    #[error("{0}")]
    ReversePath(PathError),
    /// The path of RCPT.
    #[error("{0}")]
    ForwardPath(PathError),
}

/// Reads one line, given without its CRLF.
pub fn parse_command(line: &[u8]) -> Result<Command, CommandError> {
    let verb_len = line.iter().position(|b| *b == b' ').unwrap_or(line.len());
    let (verb, rest) = line.split_at(verb_len);
    let verb = verb.to_ascii_uppercase();
    // RFC 5321 §4.1.1: trailing white space is tolerated.
    let rest = rest.trim_ascii();
    let bare = |command: Command| match rest {
        [] => Ok(command),
        _ => Err(CommandError::Syntax("the command takes no argument")),
    };
    match verb.as_slice() {
        b"EHLO" => Ok(Command::Ehlo(client_name(rest)?)),
        b"HELO" => Ok(Command::Helo(client_name(rest)?)),
        b"AUTH" => auth(rest),
        b"MAIL" => mail(rest),
        b"RCPT" => rcpt(rest),
        b"DATA" => bare(Command::Data),
        b"RSET" => bare(Command::Rset),
        b"QUIT" => bare(Command::Quit),
        b"NOOP" => Ok(Command::Noop),
        b"STARTTLS" => bare(Command::StartTls),
        b"VRFY" if !rest.is_empty() => Ok(Command::Vrfy),
        b"VRFY" => Err(CommandError::Syntax("VRFY needs an argument")),
        b"HELP" => Ok(Command::Help),
        b"BDAT" | b"EXPN" | b"TURN" | b"ETRN" | b"BURL" => Err(CommandError::NotImplemented),
        _ => Err(CommandError::Unknown),
    }
}

/// A name that can be logged; whether it is a domain is nobody's concern.
fn client_name(rest: &[u8]) -> Result<String, CommandError> {
    let good = !rest.is_empty() && rest.len() <= MAX_CLIENT_NAME;
    let name = std::str::from_utf8(rest).ok().filter(|name| good && !name.contains(|c: char| c.is_control()));
    name.map(str::to_owned).ok_or(CommandError::Syntax("a client name is needed"))
}

fn auth(rest: &[u8]) -> Result<Command, CommandError> {
    const WANTED: CommandError = CommandError::Syntax("AUTH needs a mechanism and at most one initial response");
    let text = std::str::from_utf8(rest).map_err(|_| WANTED)?;
    let mut words = text.split(' ');
    let mechanism = words.next().filter(|m| !m.is_empty()).ok_or(WANTED)?.to_ascii_uppercase();
    let initial = words.next().map(str::to_owned);
    if words.next().is_some() { Err(WANTED) } else { Ok(Command::Auth { mechanism, initial }) }
}

fn mail(rest: &[u8]) -> Result<Command, CommandError> {
    let path = after_keyword(rest, b"FROM:").ok_or(CommandError::Syntax("MAIL FROM:<address> is needed"))?;
    let (from, rest) = parse_path(path).map_err(CommandError::ReversePath)?;
    Ok(Command::Mail { from, parameters: parameters(rest)? })
}

fn rcpt(rest: &[u8]) -> Result<Command, CommandError> {
    let path = after_keyword(rest, b"TO:").ok_or(CommandError::Syntax("RCPT TO:<address> is needed"))?;
    let (to, rest) = parse_path(path).map_err(CommandError::ForwardPath)?;
    if to.is_null() {
        return Err(CommandError::ForwardPath(PathError::Syntax));
    }
    Ok(Command::Rcpt { to, parameters: parameters(rest)? })
}

/// What follows `FROM:` or `TO:`. RFC 5321 §3.3 allows no blank there; some
/// clients send one, and it can't change what is meant.
fn after_keyword<'a>(rest: &'a [u8], keyword: &[u8]) -> Option<&'a [u8]> {
    let (head, tail) = rest.split_at_checked(keyword.len())?;
    head.eq_ignore_ascii_case(keyword).then(|| tail.trim_ascii_start())
}

/// `SP esmtp-param *(SP esmtp-param)` (RFC 5321 §4.1.2).
fn parameters(rest: &[u8]) -> Result<Vec<Parameter>, CommandError> {
    const WANTED: CommandError = CommandError::Syntax("the parameters are not valid");
    if rest.is_empty() {
        return Ok(Vec::new());
    }
    let text = std::str::from_utf8(rest).map_err(|_| WANTED)?;
    let text = text.strip_prefix(' ').ok_or(WANTED)?;
    let mut out: Vec<Parameter> = Vec::new();
    for word in text.split(' ') {
        let (keyword, value) = match word.split_once('=') {
            Some((keyword, value)) => (keyword, Some(value)),
            None => (word, None),
        };
        let good_value = |v: &str| !v.is_empty() && v.chars().all(|c| !c.is_control() && c != '=');
        let good = keyword.starts_with(|c: char| c.is_ascii_alphanumeric())
            && keyword.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
            && value.is_none_or(good_value);
        let keyword = keyword.to_ascii_uppercase();
        if !good || out.len() == MAX_PARAMETERS || out.iter().any(|p| p.keyword == keyword) {
            return Err(WANTED);
        }
        out.push(Parameter { keyword, value: value.map(str::to_owned) });
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_read_in_any_case() {
        assert_eq!(parse_command(b"ehlo client.example"), Ok(Command::Ehlo("client.example".into())));
        assert_eq!(parse_command(b"DATA "), Ok(Command::Data));
        assert_eq!(parse_command(b"starttls"), Ok(Command::StartTls));
        assert_eq!(parse_command(b"NOOP whatever"), Ok(Command::Noop));
        let initial = Some("=".to_owned());
        assert_eq!(parse_command(b"auth plain ="), Ok(Command::Auth { mechanism: "PLAIN".into(), initial }));
        let Ok(Command::Mail { from, parameters }) = parse_command(b"Mail From:<a@example.org> size=10 SMTPUTF8")
        else {
            panic!()
        };
        assert_eq!(from.as_str(), "a@example.org");
        assert_eq!(parameters[0], Parameter { keyword: "SIZE".into(), value: Some("10".into()) });
        assert_eq!(parameters[1], Parameter { keyword: "SMTPUTF8".into(), value: None });
        assert!(matches!(parse_command(b"MAIL FROM: <>"), Ok(Command::Mail { from, .. }) if from.is_null()));
    }

    #[test]
    fn what_is_no_command_is_refused() {
        use CommandError::*;
        for (line, want) in [
            (&b"FROB x"[..], Unknown),
            (b"", Unknown),
            (b"DATAX", Unknown),
            (b"STARTTLS now", Syntax("the command takes no argument")),
            (b"EXPN list", NotImplemented),
            (b"BDAT 10 LAST", NotImplemented),
            (b"DATA x", Syntax("the command takes no argument")),
            (b"EHLO", Syntax("a client name is needed")),
            (b"EHLO a\0b", Syntax("a client name is needed")),
            (b"MAIL TO:<a@example.org>", Syntax("MAIL FROM:<address> is needed")),
            (b"MAIL FROM:<a@example.org>SIZE=1", Syntax("the parameters are not valid")),
            (b"MAIL FROM:<a@example.org> BODY=7BIT BODY=8BITMIME", Syntax("the parameters are not valid")),
            (b"MAIL FROM:<a@example.org> SIZE=", Syntax("the parameters are not valid")),
            (b"MAIL FROM:<a@example.org> =1", Syntax("the parameters are not valid")),
            (b"RCPT TO:<>", ForwardPath(PathError::Syntax)),
            (b"RCPT TO:<Postmaster>", ForwardPath(PathError::NoDomain)),
            (b"MAIL FROM:a@example.org", ReversePath(PathError::Syntax)),
        ] {
            assert_eq!(parse_command(line), Err(want), "{:?}", String::from_utf8_lossy(line));
        }
    }
}
