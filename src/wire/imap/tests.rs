//! Both readers with the octets cut everywhere, and the traps.

use proptest::prelude::*;

use super::*;

type Events = Result<Vec<CommandEvent>, FrameError>;

/// Feeds `chunks`; neighbouring parts of one APPEND message are joined, since
/// where they are cut depends on the reads.
fn commands(chunks: &[&[u8]], authenticated: bool, limits: Limits) -> Events {
    let mut reader = CommandReader::new(limits);
    if authenticated {
        reader.set_authenticated();
    }
    let mut events: Vec<CommandEvent> = Vec::new();
    for chunk in chunks {
        reader.push(chunk);
        while let Some(event) = reader.next()? {
            match (events.last_mut(), event) {
                (Some(CommandEvent::AppendChunk(before)), CommandEvent::AppendChunk(more)) => {
                    *before = [&before[..], &more[..]].concat().into();
                }
                (_, event) => events.push(event),
            }
        }
    }
    Ok(events)
}

/// What `input` amounts to, proved to be the same wherever it is cut.
fn read(input: &[u8]) -> Events {
    read_with(input, true, Limits::default())
}

fn read_with(input: &[u8], authenticated: bool, limits: Limits) -> Events {
    let whole = commands(&[input], authenticated, limits);
    for at in 0..=input.len() {
        assert_eq!(commands(&[&input[..at], &input[at..]], authenticated, limits), whole, "cut at {at}");
    }
    let single: Vec<&[u8]> = input.chunks(1).collect();
    assert_eq!(commands(&single, authenticated, limits), whole, "octet by octet");
    whole
}

fn command(octets: &[u8]) -> CommandEvent {
    CommandEvent::Command(octets.to_vec().into())
}

fn continuation(tag: &[u8], len: u64) -> CommandEvent {
    CommandEvent::NeedContinuation { tag: tag.to_vec().into(), len }
}

fn refused(tag: &[u8], len: u64, sync: bool) -> CommandEvent {
    CommandEvent::LiteralRefused { tag: tag.to_vec().into(), len, sync }
}

fn append_head(line: &[u8], len: u64, sync: bool) -> CommandEvent {
    CommandEvent::AppendHead { line: line.to_vec().into(), len, sync }
}

fn chunk(octets: &[u8]) -> CommandEvent {
    CommandEvent::AppendChunk(octets.to_vec().into())
}

fn tail(octets: &[u8]) -> CommandEvent {
    CommandEvent::AppendTail(octets.to_vec().into())
}

#[test]
fn commands_come_whole_with_their_literals() {
    assert_eq!(read(b"a NOOP\r\nb CHECK\r\n").unwrap(), [command(b"a NOOP\r\n"), command(b"b CHECK\r\n")]);
    assert_eq!(
        read_with(b"a LOGIN {5}\r\nalice {3+}\r\n\r\n \r\nb NOOP\r\n", false, Limits::default()).unwrap(),
        [continuation(b"a", 5), command(b"a LOGIN {5}\r\nalice {3+}\r\n\r\n \r\n"), command(b"b NOOP\r\n")]
    );
    // An Outlook of old: credentials in literals must not run as commands.
    assert_eq!(
        read_with(b"a LOGIN {29+}\r\nx NOOP\r\ny NOOP\r\nz NOOP\r\nuser {2+}\r\npw\r\n", false, Limits::default())
            .unwrap()
            .len(),
        1
    );
    assert_eq!(read(b"a SEARCH TEXT ~{0+}\r\n\r\n").unwrap(), [command(b"a SEARCH TEXT ~{0+}\r\n\r\n")]);
}

#[test]
fn braces_inside_quotes_or_in_the_middle_announce_nothing() {
    for line in [
        &b"a CREATE \"{50}\"\r\n"[..],
        b"a CREATE \"x {50}\\\"\" (y)\r\n",
        b"a SEARCH SUBJECT {5} ALL\r\n",
        b"a SEARCH SUBJECT {}\r\n",
        b"a SEARCH SUBJECT {-5}\r\n",
        b"a SEARCH SUBJECT {5-}\r\n",
        b"a SEARCH SUBJECT {5 }\r\n",
        b"a SEARCH SUBJECT {x5}\r\n",
    ] {
        assert_eq!(read(line).unwrap(), [command(line)]);
    }
    // After an escaped backslash the string is over.
    let line = b"a SEARCH SUBJECT \"x\\\\\" TEXT {3+}\r\nabc\r\n";
    assert_eq!(read(line).unwrap(), [command(line)]);
}

#[test]
fn a_literal_announced_in_an_unfinished_string_is_refused() {
    assert_eq!(read(b"a SEARCH SUBJECT \"x {3+}\r\nabc\r\n"), Err(FrameError::Ambiguous));
    assert_eq!(read(b"a SEARCH SUBJECT \"x\\\" {3}\r\nabc\r\n"), Err(FrameError::Ambiguous));
}

#[test]
fn numbers_too_large_are_refused_and_never_overlooked() {
    let huge = b"a SEARCH TEXT {99999999999999999999999}\r\nb NOOP\r\n";
    assert_eq!(read(huge).unwrap(), [refused(b"a", u64::MAX, true), command(b"b NOOP\r\n")]);
    let huge = b"a SEARCH TEXT {99999999999999999999999+}\r\nb NOOP\r\n";
    assert_eq!(read(huge), Err(FrameError::LiteralTooLarge));
    let beyond_32_bits = b"a SEARCH TEXT {4294967299}\r\nb NOOP\r\n";
    assert_eq!(read(beyond_32_bits).unwrap(), [refused(b"a", 4_294_967_299, true), command(b"b NOOP\r\n")]);
}

#[test]
fn a_refused_literal_that_is_sent_anyway_is_dropped_with_its_command() {
    let limits = Limits { literals: 4, ..Limits::default() };
    assert_eq!(
        read_with(b"a SEARCH TEXT {8+}\r\nx NOOP\r\n TEXT {10+}\r\ny LOGOUT\r\n\r\nb NOOP\r\n", true, limits).unwrap(),
        [refused(b"a", 8, false), command(b"b NOOP\r\n")]
    );
    // The limit is for all literals of a command together.
    assert_eq!(
        read_with(b"a SEARCH TEXT {3+}\r\nabc TEXT {2}\r\nb NOOP\r\n", true, limits).unwrap(),
        [refused(b"a", 2, true), command(b"b NOOP\r\n")]
    );
}

#[test]
fn literals_are_smaller_before_login() {
    let large = MAX_LITERALS_BEFORE_AUTH + 1;
    let line = format!("a LOGIN {{{large}}}\r\n");
    assert_eq!(commands(&[line.as_bytes()], false, Limits::default()).unwrap(), [refused(b"a", large, true)]);
    assert_eq!(commands(&[line.as_bytes()], true, Limits::default()).unwrap(), [continuation(b"a", large)]);
}

#[test]
fn nothing_is_allocated_on_a_promise() {
    let limits = Limits { literals: u64::MAX, append: u64::MAX, ..Limits::default() };
    let mut reader = CommandReader::new(limits);
    reader.set_authenticated();
    reader.push(b"a SEARCH TEXT {18446744073709551615}\r\n");
    assert_eq!(reader.next().unwrap(), Some(continuation(b"a", u64::MAX)));
    assert_eq!(reader.next().unwrap(), None);
    reader.push(b"abc");
    assert_eq!(reader.next().unwrap(), None);
    // And the sum of several promises doesn't wrap around.
    let limits = Limits { literals: u64::MAX - 1, ..limits };
    assert_eq!(
        commands(&[b"a SEARCH TEXT {1+}\r\nx TEXT {18446744073709551615}\r\n"], true, limits).unwrap(),
        [refused(b"a", u64::MAX, true)]
    );
}

#[test]
fn the_message_of_an_append_is_streamed() {
    assert_eq!(
        read(b"a APPEND INBOX (\\Seen) \"01-Jan-2026 00:00:00 +0000\" {4}\r\n\r\nhi\r\nb NOOP\r\n").unwrap(),
        [
            append_head(b"a APPEND INBOX (\\Seen) \"01-Jan-2026 00:00:00 +0000\" {4}\r\n", 4, true),
            chunk(b"\r\nhi"),
            tail(b"\r\n"),
            command(b"b NOOP\r\n"),
        ]
    );
    // The mailbox may itself be a literal, and so looks like the message.
    assert_eq!(
        read(b"a append {5}\r\nINBOX UTF8 (~{2+}\r\nhi)\r\n").unwrap(),
        [
            continuation(b"a", 5),
            append_head(b"a append {5}\r\nINBOX UTF8 (~{2+}\r\n", 2, false),
            chunk(b"hi"),
            tail(b")\r\n")
        ]
    );
    assert_eq!(
        read(b"a APPEND \"A {3}\" {0+}\r\n\r\n").unwrap(),
        [append_head(b"a APPEND \"A {3}\" {0+}\r\n", 0, false), tail(b"\r\n")]
    );
}

#[test]
fn a_second_message_of_an_append_is_never_read_as_commands() {
    let head = append_head(b"a APPEND INBOX {2+}\r\n", 2, false);
    assert_eq!(
        read(b"a APPEND INBOX {2+}\r\nhi {8+}\r\nx NOOP\r\n {1}\r\nb NOOP\r\n").unwrap(),
        [head, chunk(b"hi"), tail(b" {8+}\r\n"), command(b"b NOOP\r\n")]
    );
}

#[test]
fn an_append_can_be_refused_for_its_size_or_by_the_caller() {
    let limits = Limits { append: 3, ..Limits::default() };
    assert_eq!(
        read_with(b"a APPEND INBOX {8+}\r\nx NOOP\r\n\r\nb APPEND INBOX {4}\r\nc NOOP\r\n", true, limits).unwrap(),
        [refused(b"a", 8, false), refused(b"b", 4, true), command(b"c NOOP\r\n")]
    );
    for (sync, rest) in [(false, &b"x NOOP\r\n\r\nb NOOP\r\n"[..]), (true, b"b NOOP\r\n")] {
        let mut reader = CommandReader::new(Limits::default());
        reader.set_authenticated();
        reader.push(if sync { b"a APPEND INBOX {8}\r\n" } else { b"a APPEND INBOX {8+}\r\n" });
        assert!(matches!(reader.next().unwrap(), Some(CommandEvent::AppendHead { .. })));
        reader.refuse_append(sync);
        reader.push(rest);
        assert_eq!(reader.next().unwrap(), Some(command(b"b NOOP\r\n")));
    }
}

#[test]
fn before_login_an_append_has_no_message_to_stream() {
    assert_eq!(
        read_with(b"a APPEND INBOX {2+}\r\nhi\r\n", false, Limits::default()).unwrap(),
        [command(b"a APPEND INBOX {2+}\r\nhi\r\n")]
    );
}

#[test]
fn bare_line_ends_are_refused() {
    assert_eq!(read(b"a NOOP\nb NOOP\r\n"), Err(FrameError::BareLf));
    assert_eq!(read(b"\n"), Err(FrameError::BareLf));
    assert_eq!(read(b"a NO\rOP\r\n"), Err(FrameError::BareCr));
    assert_eq!(read(b"a SEARCH TEXT {3+}\nabc\r\n"), Err(FrameError::BareLf));
    let mut reader = CommandReader::new(Limits::default());
    reader.push(b"a\nb NOOP\r\n");
    assert!(reader.next().is_err());
    assert!(reader.next().is_err(), "an error stays");
}

#[test]
fn overlong_lines_are_refused_with_and_without_their_end() {
    let limits = Limits { line: 16, ..Limits::default() };
    assert!(read_with(b"a 456789012345\r\n", true, limits).is_ok());
    assert_eq!(read_with(b"a 4567890123456\r\n", true, limits), Err(FrameError::LineTooLong));
    assert_eq!(read_with(b"a 45678901234567890", true, limits), Err(FrameError::LineTooLong));
    // Empty literals don't start the count again.
    assert_eq!(read_with(b"a X {0+}\r\n {0+}\r\n {0+}\r\n", true, limits), Err(FrameError::LineTooLong));
}

#[test]
fn lines_between_commands_can_be_read() {
    let mut reader = CommandReader::new(Limits::default());
    reader.push(b"AGEAYg=");
    assert_eq!(reader.next_line().unwrap(), None);
    reader.push(b"=\r\nDONE {3}\r\nb NOOP\r\n");
    assert_eq!(reader.next_line().unwrap().unwrap(), &b"AGEAYg=="[..]);
    assert_eq!(reader.next_line().unwrap().unwrap(), &b"DONE {3}"[..]);
    assert_eq!(reader.next().unwrap(), Some(command(b"b NOOP\r\n")));
    reader.push(b"xyz");
    assert_eq!((reader.buffered(), reader.take_buffered(), reader.buffered()), (3, 3, 0));
}

/// Pieces of `input` with neighbouring chunks joined; the same wherever cut.
fn pieces(input: &[u8]) -> Result<Vec<Piece>, FrameError> {
    let run = |chunks: &[&[u8]]| -> Result<Vec<Piece>, FrameError> {
        let mut reader = ResponseReader::new();
        let mut all: Vec<Piece> = Vec::new();
        for part in chunks {
            reader.push(part);
            while let Some(piece) = reader.next()? {
                match (all.last_mut(), piece) {
                    (Some(Piece::Chunk(before)), Piece::Chunk(more)) => {
                        *before = [&before[..], &more[..]].concat().into();
                    }
                    (_, piece) => all.push(piece),
                }
            }
        }
        Ok(all)
    };
    let whole = run(&[input]);
    for at in 0..=input.len() {
        assert_eq!(run(&[&input[..at], &input[at..]]), whole, "cut at {at}");
    }
    whole
}

fn joined(pieces: &[Piece]) -> Vec<u8> {
    let mut out = Vec::new();
    for piece in pieces {
        match piece {
            Piece::Text(octets) | Piece::Chunk(octets) => out.extend_from_slice(octets),
            Piece::Literal { .. } | Piece::End => out.extend_from_slice(b"\r\n"),
        }
    }
    out
}

fn text(octets: &[u8]) -> Piece {
    Piece::Text(octets.to_vec().into())
}

#[test]
fn responses_come_in_pieces() {
    let input = b"* 1 FETCH (BODY[] {6}\r\na\0\r\nb) UID 3)\r\n* 2 EXISTS\r\n";
    let found = pieces(input).unwrap();
    assert_eq!(
        found,
        [
            text(b"* 1 FETCH (BODY[] {6}"),
            Piece::Literal { len: 6 },
            Piece::Chunk(b"a\0\r\nb)".to_vec().into()),
            text(b" UID 3)"),
            Piece::End,
            text(b"* 2 EXISTS"),
            Piece::End,
        ]
    );
    assert_eq!(joined(&found), input);
    let empty = b"* LIST () \"/\" {0}\r\n\r\n";
    assert_eq!(pieces(empty).unwrap(), [text(b"* LIST () \"/\" {0}"), Piece::Literal { len: 0 }, Piece::End]);
}

#[test]
fn free_text_announces_nothing() {
    for line in [
        &b"* OK hello {5}\r\n"[..],
        b"* ok [ALERT] hello {5}\r\n",
        b"*  NO {5}\r\n",
        b"* BAD {5}\r\n",
        b"* BYE {5}\r\n",
        b"* PREAUTH {5}\r\n",
        b"t1 OK done {5}\r\n",
        b"t1 NO [X {5}] {5}\r\n",
        b"+ go {5}\r\n",
        b"+ {5}\r\n",
    ] {
        let input = [line, b"* 1 EXISTS\r\n"].concat();
        let end = line.len() - 2;
        assert_eq!(pieces(&input).unwrap(), [text(&line[..end]), Piece::End, text(b"* 1 EXISTS"), Piece::End]);
    }
}

#[test]
fn quoted_braces_and_names_that_look_like_announcements_are_text() {
    for line in [
        &b"* LIST () \"/\" \"a {50}\"\r\n"[..],
        b"* 1 FETCH (ENVELOPE (\"{50}\" \"x\"))\r\n",
        b"* LIST () \"/\" a{50}\r\n",
        b"* 1 FETCH (X {5} Y)\r\n",
    ] {
        assert_eq!(pieces(line).unwrap().len(), 2, "{}", String::from_utf8_lossy(line));
    }
}

#[test]
fn an_unescaped_quote_before_a_literal_does_not_hide_it() {
    let input = b"* 1 FETCH (ENVELOPE (\"a\" \"b\"c\") BODY[] {12}\r\n* 9 EXISTS\r\n)\r\n";
    let found = pieces(input).unwrap();
    assert_eq!(found[1], Piece::Literal { len: 12 });
    assert_eq!(joined(&found), input);
}

#[test]
fn what_cannot_be_framed_from_the_server_is_an_error() {
    assert_eq!(pieces(b"* 1 EXISTS\n"), Err(FrameError::BareLf));
    assert_eq!(pieces(b"* 1 FETCH (BODY[] {99999999999999999999}\r\n"), Err(FrameError::LiteralTooLarge));
    let mut reader = ResponseReader::with_max_text(10);
    reader.push(b"* 123456789");
    assert_eq!(reader.next(), Err(FrameError::LineTooLong));
    let mut reader = ResponseReader::with_max_text(10);
    reader.push(b"* 1234567\r\n");
    assert_eq!(reader.next(), Err(FrameError::LineTooLong));
}

#[test]
fn a_section_is_one_token() {
    let input = b"(BODY[HEADER.FIELDS (\"a b\" {2}\r\n]] c)]<0> {3}\r\n) ( FLAGS (\\Seen foo[bar x]) X \"a\\\"b\" nil)";
    let tokens: Vec<Token> = Scanner::new(input).collect();
    let shown: Vec<_> = tokens.iter().map(|t| String::from_utf8_lossy(&t.content(input)).into_owned()).collect();
    assert_eq!(
        shown,
        [
            "(",
            "BODY[HEADER.FIELDS (\"a b\" {2}\r\n]] c)]<0>",
            ") (",
            "FLAGS",
            "(",
            "\\Seen",
            "foo[bar",
            "x]",
            ")",
            "X",
            "a\"b",
            "",
            ")"
        ]
    );
    assert_eq!(tokens[11].kind, Kind::Nil);
}

#[test]
fn quotes_that_nobody_escaped_stay_in_their_string() {
    let input = b"(\"a \"b\" c\" NIL \"d\\e\")";
    let tokens: Vec<Token> = Scanner::new(input).collect();
    let shown: Vec<_> = tokens.iter().map(|t| t.content(input).into_owned()).collect();
    // `"b" c` can't be told from a string and an atom; the list stays whole.
    assert_eq!(shown.last().unwrap(), b")");
    assert_eq!(shown[shown.len() - 2], b"d\\e");
}

#[test]
fn a_value_is_a_token_or_a_whole_list() {
    let input = b"a (b (c) {2}\r\n)) ) \"d)\") e";
    let mut scanner = Scanner::new(input);
    assert_eq!(scanner.value().unwrap().span, 0..1);
    let list = scanner.value().unwrap();
    assert_eq!(&input[list.span], b"(b (c) {2}\r\n)) )");
    assert_eq!(&input[scanner.value().unwrap().span], b"\"d)\"");
    assert_eq!(scanner.value(), None);
    assert_eq!(scanner.next().unwrap().kind, Kind::Close);
}

#[test]
fn astrings_take_the_shortest_safe_form() {
    let plain = |octets: &[u8]| Quoted::Plain(octets.to_vec());
    assert_eq!(encode_astring(b"INBOX"), plain(b"INBOX"));
    assert_eq!(encode_astring(b"Lanes/&AOk-]"), plain(b"Lanes/&AOk-]"));
    assert_eq!(encode_astring(b""), plain(b"\"\""));
    assert_eq!(encode_astring(b"nil"), plain(b"\"nil\""));
    assert_eq!(encode_astring(b"a \"\\%*{5}"), plain(b"\"a \\\"\\\\%*{5}\""));
    for octets in [&b"a\r\nb NOOP"[..], b"a\0", b"caf\xc3\xa9"] {
        assert_eq!(encode_astring(octets), Quoted::NeedsLiteral(octets.to_vec()));
    }
}

/// Octets that often make announcements, quotes and line ends.
fn mail_like() -> impl Strategy<Value = Vec<u8>> {
    let words = prop::sample::select(vec![
        &b"\r\n"[..],
        b"* ",
        b"a ",
        b"APPEND ",
        b"X ",
        b"{3}",
        b"{2+}",
        b"~{1}",
        b"{0}",
        b" ",
        b"\"",
        b"\\",
        b"(",
        b")",
        b"BODY[",
        b"]",
        b"OK ",
        b"NIL",
        b"abc",
        b"\0",
        b"{99999999999999999999}",
    ]);
    prop::collection::vec(words, 0..24).prop_map(|words| words.concat())
}

proptest! {
    #[test]
    fn command_events_are_the_same_wherever_cut(input in mail_like()) {
        let _ = read(&input);
    }

    #[test]
    fn unrefused_command_events_are_the_octets_that_came(input in mail_like()) {
        let Ok(events) = commands(&[&input], true, Limits::default()) else { return Ok(()) };
        let mut out = Vec::new();
        for event in events {
            match event {
                CommandEvent::Command(octets) | CommandEvent::AppendHead { line: octets, .. }
                | CommandEvent::AppendChunk(octets) => out.extend_from_slice(&octets),
                CommandEvent::AppendTail(octets) if octets.ends_with(b"}\r\n") => return Ok(()),
                CommandEvent::AppendTail(octets) => out.extend_from_slice(&octets),
                CommandEvent::NeedContinuation { .. } => {}
                CommandEvent::LiteralRefused { .. } => return Ok(()),
            }
        }
        prop_assert!(input.starts_with(&out));
    }

    #[test]
    fn pieces_are_the_octets_that_came(input in mail_like()) {
        if let Ok(found) = pieces(&input) {
            prop_assert!(input.starts_with(&joined(&found)));
        }
    }

    #[test]
    fn the_scanner_ends_and_its_spans_ascend(input in mail_like()) {
        let mut at = 0;
        for token in Scanner::new(&input) {
            prop_assert!(token.span.start >= at && token.span.end > token.span.start);
            prop_assert!(token.span.end <= input.len());
            let _ = token.content(&input);
            at = token.span.end;
        }
    }
}
