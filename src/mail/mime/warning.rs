//! What could mislead a person who reads a message before it is sent.

use std::fmt;

/// How loudly a warning is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Worth knowing.
    Note,
    /// Likely to mislead the approver or the recipient.
    Danger,
}

/// One thing that could mislead. `place` is a field (`Subject`) or a part
/// (`part 1.2`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Warning {
    /// A field that may stand once stands more often (RFC 5322 §3.6).
    DuplicateField {
        /// Where.
        place: String,
        /// The field.
        name: String,
    },
    /// There is no such field, though there must be one.
    MissingField {
        /// The field.
        name: String,
    },
    /// A header line that is no field; clients differ about it.
    StrayHeaderLine,
    /// Characters that can't be seen or that reorder others.
    Invisible {
        /// Where.
        place: String,
        /// Each kind of character: code point, name, how often.
        what: String,
    },
    /// Octets that can't be decoded as declared.
    Damaged {
        /// Where.
        place: String,
        /// Which encoding or charset.
        what: String,
    },
    /// A charset that no decoder knows.
    UnknownCharset {
        /// Where.
        place: String,
        /// Its name.
        charset: String,
    },
    /// A transfer encoding that no client agrees about.
    UnknownEncoding {
        /// Where.
        place: String,
        /// Its name.
        encoding: String,
    },
    /// Lines over 998 octets (RFC 5322 §2.1.1).
    LongLines {
        /// How many.
        count: usize,
        /// The first one, from 1.
        first: usize,
    },
    /// CR or LF alone, or NUL.
    BareControl {
        /// `CR`, `LF` or `NUL`.
        what: &'static str,
    },
    /// 8-bit octets in the header without SMTPUTF8's rules being certain.
    EightBitHeader {
        /// The field.
        name: String,
    },
    /// A file that runs, or whose kind often carries what runs.
    RunnableAttachment {
        /// Where.
        place: String,
        /// Its name or type.
        what: String,
    },
    /// A name such as `invoice.pdf.exe`.
    DoubleExtension {
        /// Where.
        place: String,
        /// The name.
        name: String,
    },
    /// The two fields that name a file disagree.
    TwoNames {
        /// Where.
        place: String,
        /// Name in Content-Disposition.
        disposition: String,
        /// Name in Content-Type.
        content_type: String,
    },
    /// The octets are of another kind than is declared.
    OtherKind {
        /// Where.
        place: String,
        /// What is declared.
        declared: String,
        /// What the octets look like.
        found: &'static str,
    },
    /// A whole message inside.
    NestedMessage {
        /// Where.
        place: String,
    },
    /// A part whose text stands elsewhere (RFC 2046 §5.2.3).
    ExternalBody {
        /// Where.
        place: String,
    },
    /// A calendar part that acts on the recipient's calendar.
    CalendarMethod {
        /// Where.
        place: String,
        /// The METHOD.
        method: String,
    },
    /// A structure that clients read differently.
    Structure {
        /// Where.
        place: String,
        /// What is wrong.
        what: &'static str,
    },
    /// More parts than are shown.
    TooManyParts,
    /// Text that is longer than what is shown.
    TextCut {
        /// Where.
        place: String,
        /// How many octets are shown.
        shown: usize,
    },
    /// Markup that runs or submits.
    ActiveContent {
        /// Where.
        place: String,
        /// Which.
        what: String,
    },
    /// Markup that makes the recipient's client load something.
    RemoteContent {
        /// Where.
        place: String,
        /// Which.
        what: String,
    },
    /// Markup that hides text from the recipient.
    HiddenText {
        /// Where.
        place: String,
        /// How.
        what: String,
    },
    /// A link whose text names another place than its target.
    LinkElsewhere {
        /// Where.
        place: String,
        /// What it says.
        text: String,
        /// Where it leads.
        target: String,
    },
    /// Text and HTML of one message say different things.
    AlternativesDiffer {
        /// Where.
        place: String,
        /// In short.
        what: String,
    },
    /// A domain outside ASCII, in both forms.
    InternationalDomain {
        /// Where.
        place: String,
        /// As the recipient sees it.
        unicode: String,
        /// As it is dispatched.
        ascii: String,
    },
    /// From names another address than the reverse-path.
    FromDiffers {
        /// Addresses in From.
        from: String,
        /// The reverse-path.
        reverse_path: String,
    },
    /// Answers go elsewhere.
    ReplyElsewhere {
        /// Addresses in Reply-To that aren't in From.
        reply_to: String,
    },
    /// A display name that is itself an address, another one.
    NameIsAddress {
        /// Where.
        place: String,
        /// The name.
        name: String,
        /// The address behind it.
        address: String,
    },
    /// The recipient's client is asked for a receipt.
    ReceiptRequest {
        /// The field.
        name: String,
    },
}

impl Warning {
    /// How loudly it is said.
    pub fn level(&self) -> Level {
        match self {
            Warning::DuplicateField { .. }
            | Warning::StrayHeaderLine
            | Warning::Invisible { .. }
            | Warning::Damaged { .. }
            | Warning::UnknownCharset { .. }
            | Warning::UnknownEncoding { .. }
            | Warning::BareControl { .. }
            | Warning::RunnableAttachment { .. }
            | Warning::DoubleExtension { .. }
            | Warning::TwoNames { .. }
            | Warning::OtherKind { .. }
            | Warning::ExternalBody { .. }
            | Warning::Structure { .. }
            | Warning::TooManyParts
            | Warning::ActiveContent { .. }
            | Warning::HiddenText { .. }
            | Warning::LinkElsewhere { .. }
            | Warning::AlternativesDiffer { .. }
            | Warning::FromDiffers { .. }
            | Warning::NameIsAddress { .. } => Level::Danger,
            Warning::MissingField { .. }
            | Warning::LongLines { .. }
            | Warning::EightBitHeader { .. }
            | Warning::NestedMessage { .. }
            | Warning::CalendarMethod { .. }
            | Warning::TextCut { .. }
            | Warning::RemoteContent { .. }
            | Warning::InternationalDomain { .. }
            | Warning::ReplyElsewhere { .. }
            | Warning::ReceiptRequest { .. } => Level::Note,
        }
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Warning::DuplicateField { place, name } => {
                write!(f, "{place}: the field {name} stands more than once; clients differ about which one counts.")
            }
            Warning::MissingField { name } => write!(f, "There is no {name} field."),
            Warning::StrayHeaderLine => write!(f, "The header holds a line that is no field; it is in the raw source."),
            Warning::Invisible { place, what } => write!(f, "{place}: characters that can't be seen: {what}."),
            Warning::Damaged { place, what } => {
                write!(f, "{place}: damaged {what}; another client may read something else.")
            }
            Warning::UnknownCharset { place, charset } => {
                write!(f, "{place}: the charset {charset:?} is unknown; read as UTF-8.")
            }
            Warning::UnknownEncoding { place, encoding } => {
                write!(f, "{place}: the transfer encoding {encoding:?} is unknown; shown undecoded.")
            }
            Warning::LongLines { count, first } => {
                write!(f, "{count} line(s) over 998 octets, the first is line {first}; some servers cut or fold them.")
            }
            Warning::BareControl { what } => write!(f, "The message holds a {what} that stands alone."),
            Warning::EightBitHeader { name } => write!(f, "The field {name} holds raw 8-bit octets."),
            Warning::RunnableAttachment { place, what } => {
                write!(f, "{place}: {what} is a kind of file that can run on the recipient's computer.")
            }
            Warning::DoubleExtension { place, name } => write!(f, "{place}: the name {name} has a double extension."),
            Warning::TwoNames { place, disposition, content_type } => {
                write!(f, "{place}: the file has two names: {disposition} and {content_type}.")
            }
            Warning::OtherKind { place, declared, found } => {
                write!(f, "{place}: declared as {declared}, but the octets look like {found}.")
            }
            Warning::NestedMessage { place } => write!(f, "{place}: a whole message is attached."),
            Warning::ExternalBody { place } => write!(f, "{place}: the content stands elsewhere and can change."),
            Warning::CalendarMethod { place, method } => {
                write!(f, "{place}: a calendar part with METHOD {method} acts on the recipient's calendar.")
            }
            Warning::Structure { place, what } => write!(f, "{place}: {what}."),
            Warning::TooManyParts => write!(f, "The message has more parts than are shown here."),
            Warning::TextCut { place, shown } => {
                write!(f, "{place}: only the first {shown} octets are shown; the rest is in the raw source.")
            }
            Warning::ActiveContent { place, what } => write!(f, "{place}: markup that runs or submits: {what}."),
            Warning::RemoteContent { place, what } => {
                write!(f, "{place}: makes the recipient's client load from elsewhere: {what}.")
            }
            Warning::HiddenText { place, what } => {
                write!(f, "{place}: markup that can hide text from the recipient: {what}. It is shown here.")
            }
            Warning::LinkElsewhere { place, text, target } => {
                write!(f, "{place}: a link says {text} and leads to {target}.")
            }
            Warning::AlternativesDiffer { place, what } => {
                write!(f, "{place}: the plain text and the HTML differ: {what}.")
            }
            Warning::InternationalDomain { place, unicode, ascii } => {
                write!(f, "{place}: the domain {unicode} is {ascii}.")
            }
            Warning::FromDiffers { from, reverse_path } => {
                write!(f, "From says {from}, the envelope says {reverse_path}.")
            }
            Warning::ReplyElsewhere { reply_to } => write!(f, "Answers go to {reply_to}, not to the sender."),
            Warning::NameIsAddress { place, name, address } => {
                write!(f, "{place}: the name {name} hides the address {address}.")
            }
            Warning::ReceiptRequest { name } => write!(f, "{name} asks the recipient's client for a receipt."),
        }
    }
}
