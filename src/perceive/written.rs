//! What a message says of its own and what it carries of others': for telling
//! whose words they are, and whether earlier mail goes on to others.
//!
//! Promises: total and bounded as all of perception. Doesn't know: who wrote
//! it, who receives it.

use std::collections::BTreeSet;

use sha2::{Digest, Sha256};

use super::body;
use super::doc::bare_subject;
use super::fields::Fields;
use super::parts::Parts;

/// Most files of one message that are told apart.
const MAX_FILES: usize = 200;

/// A message by whose it is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Written {
    /// The subject in lower case, without `Re:` and the like.
    pub subject: String,
    /// The new words.
    pub own: String,
    /// Earlier mail: quoted, forwarded or enclosed.
    pub quoted: String,
    /// SHA-256 of each file that it carries, decoded.
    pub files: BTreeSet<[u8; 32]>,
    /// It encloses a whole message (`message/rfc822`, or a file that is one).
    pub encloses: bool,
    /// Addresses of To, Cc and Bcc, canonical.
    pub recipients: BTreeSet<String>,
    /// Addresses of From, Sender and Reply-To, canonical.
    pub senders: BTreeSet<String>,
}

/// Reads a message.
pub fn written(octets: &[u8]) -> Written {
    let fields = Fields::new(octets);
    let reading = body::read(octets, &fields);
    let parts = Parts::of(octets);
    let mut encloses = !parts.enclosed().is_empty();
    let mut files = BTreeSet::new();
    let bodies: BTreeSet<usize> = parts.bodies(0, super::parts::Form::Html).into_iter().collect();
    let plain: BTreeSet<usize> = parts.bodies(0, super::parts::Form::Plain).into_iter().collect();
    for at in parts.own_parts() {
        let media_type = parts.media_type(at);
        let name = parts.file_name(at).to_lowercase();
        encloses |= name.ends_with(".eml") || name.ends_with(".msg") || name.ends_with(".mbox");
        let container = media_type.starts_with("multipart/") || media_type == "message/rfc822";
        if !container && !bodies.contains(&at) && !plain.contains(&at) && files.len() < MAX_FILES {
            files.insert(Sha256::digest(parts.decoded(at)).into());
        }
    }
    let addresses = |names: &[&str]| {
        let mailboxes = names.iter().flat_map(|name| fields.mailboxes(name));
        mailboxes.map(|m| m.address.canonical()).collect::<BTreeSet<String>>()
    };
    Written {
        subject: bare_subject(&reading.subject).trim().to_lowercase(),
        own: reading.own,
        quoted: reading.quoted,
        files,
        encloses,
        recipients: addresses(&["To", "Cc", "Bcc"]),
        senders: addresses(&["From", "Sender", "Reply-To"]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_files_and_enclosed_mail_are_told_apart() {
        let w = written(
            b"To: Ann <Ann@EXAMPLE.org>\r\nCc: bo@example.com\r\nSubject: Re: The Oak Table\r\n\
            Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n\r\nMine.\r\n\r\nOn 2 Nov 2026, Ann <ann@example.org> \
            wrote:\r\n> hers\r\n--b\r\nContent-Type: application/pdf; name=a.pdf\r\nContent-Transfer-Encoding: base64\r\n\
            \r\nJVBERg==\r\n--b--\r\n",
        );
        assert_eq!((w.subject.as_str(), w.own.trim()), ("the oak table", "Mine."));
        assert!(w.quoted.contains("hers") && !w.encloses);
        assert_eq!(w.files, BTreeSet::from([Sha256::digest(b"%PDF").into()]));
        assert_eq!(w.recipients, ["ann@example.org", "bo@example.com"].map(str::to_owned).into());
    }

    #[test]
    fn a_message_inside_is_enclosed_whatever_its_form() {
        for part in [
            "Content-Type: message/rfc822\r\n\r\nSubject: x\r\n\r\ny\r\n",
            "Content-Type: application/octet-stream; name=\"a.EML\"\r\n\r\nSubject: x\r\n\r\ny\r\n",
            "Content-Type: message/rfc822\r\nContent-Transfer-Encoding: base64\r\n\r\nU3ViamVjdDogYg==\r\n",
        ] {
            let m =
                format!("Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n\r\nlook\r\n--b\r\n{part}--b--\r\n");
            assert!(written(m.as_bytes()).encloses, "{part}");
        }
    }
}
