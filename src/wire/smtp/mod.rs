//! SMTP framing over bytes (RFC 5321), in both directions.
//!
//! Promises: a line ends at CRLF and nowhere else; message data ends at
//! CRLF `.` CRLF and nowhere else; dot transparency is exact under any split
//! of the input; a reply that we format can't be made to hold a second one;
//! paths keep the octets that they came with. Doesn't know: sockets, time,
//! sessions, what a command is answered with.
//!
//! Why smtp-proto doesn't parse here: it takes a bare LF for a line end,
//! ignores what follows `DATA`, drops a bare CR out of an address, replaces
//! invalid UTF-8 by U+FFFD, unquotes local parts and forgets source routes.
//! Each of these lets the address or the framing that we checked differ from
//! the one that goes on, so every command is read by rules of our own.

mod command;
mod data;
mod line;
mod path;
mod reply;

pub use command::{Command, CommandError, Parameter, parse_command};
pub use data::{DataDecoder, DotEncoder, EncodeError, Fault, Fed};
pub use line::{LineError, LineReader, MAX_COMMAND_LINE};
pub use path::{MAX_PATH, Path, PathError, parse_mailbox, parse_path};
pub use reply::{MAX_REPLY_LINES, MAX_REPLY_OCTETS, Reply, ReplyError, ReplyReader};
