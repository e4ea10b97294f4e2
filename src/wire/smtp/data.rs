//! Message data: the end mark and dot transparency (RFC 5321 §4.1.1.4, §4.5.2).

/// A line end that is none. What holds one can mean different messages to
/// different servers ("SMTP smuggling"), so nothing of it is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// A CR without LF behind it.
    #[error("a bare CR stands in the message")]
    BareCr,
    /// An LF without CR before it.
    #[error("a bare LF stands in the message")]
    BareLf,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    /// Right after a CRLF, or before the first octet: the CRLF that ended
    /// the DATA command counts (RFC 5321 §4.1.1.4).
    LineStart,
    /// Inside a line.
    Text,
    /// After a CR.
    Cr,
    /// After a dot at the start of a line; the dot is not text.
    Dot,
    /// After a dot and a CR at the start of a line.
    DotCr,
    /// After the end mark.
    End,
}

/// What [`DataDecoder::feed`] did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fed {
    /// Octets of the input that belong to the data; what follows is commands.
    pub consumed: usize,
    /// Whether the end mark was among them.
    pub ended: bool,
}

/// Decodes the octets between 354 and the end mark, as they come.
///
/// Only CRLF `.` CRLF ends the data. After a [`Fault`] the decoder goes on to
/// the true end, so that the session stays in step, and the caller refuses
/// the whole.
#[derive(Debug)]
pub struct DataDecoder {
    at: At,
    fault: Option<Fault>,
}

impl Default for DataDecoder {
    fn default() -> Self {
        Self::new()
    }
}

impl DataDecoder {
    /// At the start of the data.
    pub fn new() -> Self {
        DataDecoder { at: At::LineStart, fault: None }
    }

    /// The first fault found so far.
    pub fn fault(&self) -> Option<Fault> {
        self.fault
    }

    /// Decodes `input` up to the end mark and appends the text to `out`.
    pub fn feed(&mut self, input: &[u8], out: &mut Vec<u8>) -> Fed {
        let mut i = 0;
        while i < input.len() && self.at != At::End {
            if self.at == At::Text {
                let run = memchr::memchr2(b'\r', b'\n', &input[i..]).unwrap_or(input.len() - i);
                out.extend_from_slice(&input[i..i + run]);
                i += run;
                if i == input.len() {
                    break;
                }
            }
            self.step(input[i], out);
            i += 1;
        }
        Fed { consumed: i, ended: self.at == At::End }
    }

    fn step(&mut self, octet: u8, out: &mut Vec<u8>) {
        self.at = match (self.at, octet) {
            (At::LineStart, b'.') => At::Dot,
            (At::Dot, b'\r') => At::DotCr,
            (At::DotCr, b'\n') => At::End,
            (At::DotCr, b'\r') => {
                self.bare(Fault::BareCr);
                At::Cr
            }
            (At::DotCr, _) => {
                self.bare(Fault::BareCr);
                return self.text(octet, out);
            }
            (At::Cr, b'\n') => {
                out.extend_from_slice(b"\r\n");
                At::LineStart
            }
            (At::Cr, _) => {
                self.bare(Fault::BareCr);
                out.push(b'\r');
                return self.text(octet, out);
            }
            (At::LineStart | At::Text | At::Dot, _) => return self.text(octet, out),
            (At::End, _) => At::End,
        };
    }

    /// An octet inside a line.
    fn text(&mut self, octet: u8, out: &mut Vec<u8>) {
        self.at = match octet {
            b'\r' => At::Cr,
            b'\n' => {
                self.bare(Fault::BareLf);
                out.push(b'\n');
                At::Text
            }
            other => {
                out.push(other);
                At::Text
            }
        };
    }

    fn bare(&mut self, fault: Fault) {
        self.fault.get_or_insert(fault);
    }
}

/// Why text can't be sent as message data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum EncodeError {
    /// A bare CR or LF.
    #[error(transparent)]
    Bare(#[from] Fault),
    /// The text doesn't end in CRLF: an end mark would add octets to it.
    #[error("the message doesn't end in CRLF")]
    Unfinished,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sent {
    /// Nothing was given yet.
    Nothing,
    /// Inside a line.
    Text,
    /// A CR is held back.
    Cr,
    /// A CRLF is held back.
    CrLf,
}

/// Encodes text as message data, as it comes; the inverse of [`DataDecoder`].
///
/// A line end is held back until something follows it, so that the last CRLF
/// of the message leaves only together with the end mark.
#[derive(Debug)]
pub struct DotEncoder {
    at: Sent,
}

impl Default for DotEncoder {
    fn default() -> Self {
        Self::new()
    }
}

impl DotEncoder {
    /// At the start of the data.
    pub fn new() -> Self {
        DotEncoder { at: Sent::Nothing }
    }

    /// Encodes `text` and appends it to `out`. After an error nothing more
    /// may be sent: the caller closes the connection.
    pub fn encode(&mut self, text: &[u8], out: &mut Vec<u8>) -> Result<(), Fault> {
        let mut i = 0;
        while i < text.len() {
            if self.at == Sent::Text {
                let run = memchr::memchr2(b'\r', b'\n', &text[i..]).unwrap_or(text.len() - i);
                out.extend_from_slice(&text[i..i + run]);
                i += run;
                if i == text.len() {
                    break;
                }
            }
            self.step(text[i], out)?;
            i += 1;
        }
        Ok(())
    }

    fn step(&mut self, octet: u8, out: &mut Vec<u8>) -> Result<(), Fault> {
        self.at = match (self.at, octet) {
            (Sent::Cr, b'\n') => Sent::CrLf,
            (Sent::Cr, _) => return Err(Fault::BareCr),
            (_, b'\n') => return Err(Fault::BareLf),
            (at, octet) => {
                if at == Sent::CrLf {
                    out.extend_from_slice(b"\r\n");
                }
                match octet {
                    b'\r' => Sent::Cr,
                    b'.' if at != Sent::Text => {
                        out.extend_from_slice(b"..");
                        Sent::Text
                    }
                    other => {
                        out.push(other);
                        Sent::Text
                    }
                }
            }
        };
        Ok(())
    }

    /// The last octets: the CRLF that was held back and the end mark.
    pub fn finish(self) -> Result<&'static [u8], EncodeError> {
        match self.at {
            Sent::Nothing => Ok(b".\r\n"),
            Sent::CrLf => Ok(b"\r\n.\r\n"),
            Sent::Cr => Err(EncodeError::Bare(Fault::BareCr)),
            Sent::Text => Err(EncodeError::Unfinished),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Decodes under a split into pieces of `step`; text, octets used, fault.
    fn decode(wire: &[u8], step: usize) -> (Vec<u8>, Option<usize>, Option<Fault>) {
        let mut decoder = DataDecoder::new();
        let mut text = Vec::new();
        let mut used = 0;
        for part in wire.chunks(step) {
            let fed = decoder.feed(part, &mut text);
            used += fed.consumed;
            if fed.ended {
                return (text, Some(used), decoder.fault());
            }
        }
        (text, None, decoder.fault())
    }

    fn encode(text: &[u8], step: usize) -> Result<Vec<u8>, EncodeError> {
        let mut encoder = DotEncoder::new();
        let mut wire = Vec::new();
        for part in text.chunks(step) {
            encoder.encode(part, &mut wire)?;
        }
        wire.extend_from_slice(encoder.finish()?);
        Ok(wire)
    }

    #[test]
    fn dots_are_unstuffed_on_every_line_and_on_the_first() {
        let wire = b"..a\r\n...\r\n.b\r\nc.\r\n..\r\n.\r\nQUIT\r\n";
        for step in 1..wire.len() {
            let (text, used, fault) = decode(wire, step);
            assert_eq!(text, b".a\r\n..\r\nb\r\nc.\r\n.\r\n", "step {step}");
            assert_eq!(used, Some(wire.len() - 6));
            assert_eq!(fault, None);
        }
    }

    #[test]
    fn a_message_of_nothing_ends_at_its_first_line() {
        assert_eq!(decode(b".\r\n", 1), (Vec::new(), Some(3), None));
    }

    #[test]
    fn only_the_true_mark_ends_the_data_and_bare_line_ends_are_found() {
        let cases: [(&[u8], Fault); 12] = [
            (b"a\n.\nb", Fault::BareLf),
            (b"a\n.\r\nb", Fault::BareLf),
            (b"a\r\n.\nb", Fault::BareLf),
            (b"a\r.\r\nb", Fault::BareCr),
            (b"a\r\n.\rb", Fault::BareCr),
            (b"a\r\n.\r.\r\nb", Fault::BareCr),
            (b"a\r\n.\r\r\nb", Fault::BareCr),
            (b"a\r.\rb", Fault::BareCr),
            (b"a\n\n.\r\nb", Fault::BareLf),
            (b"a\r\r\nb", Fault::BareCr),
            (b"\nb", Fault::BareLf),
            (b".\nb", Fault::BareLf),
        ];
        for (body, want) in cases {
            let mut wire = body.to_vec();
            wire.extend_from_slice(b"\r\n.\r\nNOOP\r\n");
            for step in 1..wire.len() {
                let (_, used, fault) = decode(&wire, step);
                assert_eq!(fault, Some(want), "{body:?} step {step}");
                assert_eq!(used, Some(wire.len() - 6), "{body:?} step {step}");
            }
        }
    }

    #[test]
    fn the_encoder_refuses_what_could_be_read_two_ways() {
        assert_eq!(encode(b"a\n.\r\n", 1), Err(Fault::BareLf.into()));
        assert_eq!(encode(b"a\rb\r\n", 2), Err(Fault::BareCr.into()));
        assert_eq!(encode(b"a\r", 1), Err(Fault::BareCr.into()));
        assert_eq!(encode(b"a", 1), Err(EncodeError::Unfinished));
    }

    #[test]
    fn the_last_line_end_leaves_only_with_the_mark() {
        let mut encoder = DotEncoder::new();
        let mut wire = Vec::new();
        encoder.encode(b"a\r\nb\r\n", &mut wire).unwrap();
        assert_eq!(wire, b"a\r\nb");
        assert_eq!(encoder.finish().unwrap(), b"\r\n.\r\n");
    }

    /// Lines out of the octets that matter most, and any other.
    fn text() -> impl Strategy<Value = Vec<u8>> {
        let octet = prop_oneof![Just(b'.'), Just(b'a'), any::<u8>().prop_filter("line end", |b| !b"\r\n".contains(b))];
        proptest::collection::vec(proptest::collection::vec(octet, 0..6), 0..12).prop_map(|lines| {
            lines.into_iter().fold(Vec::new(), |mut all, line| {
                all.extend_from_slice(&line);
                all.extend_from_slice(b"\r\n");
                all
            })
        })
    }

    proptest! {
        #[test]
        fn decoding_undoes_encoding_under_any_split(text in text(), a in 1usize..20, b in 1usize..20) {
            let wire = encode(&text, a).unwrap();
            prop_assert_eq!(decode(&wire, b), (text, Some(wire.len()), None));
        }

        #[test]
        fn any_split_of_any_octets_is_read_the_same(
            wire in proptest::collection::vec(prop_oneof![Just(b'\r'), Just(b'\n'), Just(b'.'), Just(b'x')], 0..40),
            step in 1usize..9,
        ) {
            prop_assert_eq!(decode(&wire, step), decode(&wire, 40));
        }
    }
}
