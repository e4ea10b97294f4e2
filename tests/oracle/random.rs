//! Random messages, the same for the same seed.

/// A generator of the SplitMix kind.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        Random(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    fn one_of<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len())]
    }

    fn octets(&mut self, most: usize) -> Vec<u8> {
        let length = self.below(most + 1);
        // Mostly text, now and then anything at all.
        let anything = self.below(4) == 0;
        (0..length)
            .map(|_| if anything { self.next() as u8 } else { self.one_of(b"abc :.-\r\n\t=<>{}\"\\()%*") })
            .collect()
    }

    fn line_end(&mut self) -> &'static [u8] {
        self.one_of(&[&b"\r\n"[..], b"\r\n", b"\r\n", b"\r\n", b"\r\n", b"\n", b"\r"])
    }

    fn field(&mut self) -> Vec<u8> {
        let names: [&[u8]; 12] = [
            b"Subject",
            b"From",
            b"To",
            b"X-Tollgate-Lane",
            b"x-tollgate-scores",
            b"X-A",
            b"X-A",
            b"Content-Type",
            b"MIME-Version",
            b"X-\xc3\xa9",
            b"",
            b"odd name",
        ];
        let mut out = self.one_of(&names).to_vec();
        out.extend(self.one_of(&[&b": "[..], b": ", b": ", b":", b" : ", b"", b":\r\n "]));
        let values: [&[u8]; 8] = [
            b"push",
            b"text/plain",
            b"multipart/mixed; boundary=b",
            b"message/rfc822",
            b"1.0",
            b"a \"b\" <c@example.com>",
            b"=?utf-8?q?b=C3=A4ume?=",
            b"",
        ];
        if self.below(3) == 0 {
            let wild = self.octets(300);
            out.extend(wild);
        } else {
            out.extend(self.one_of(&values));
        }
        for _ in 0..self.below(3) {
            out.extend(self.line_end());
            out.extend(self.one_of(&[&b" folded"[..], b"\tx", b" "]));
        }
        out.extend(self.line_end());
        out
    }

    /// A message of up to some thousand octets, at times without a header,
    /// without a body, or with neither's end where it belongs.
    pub(crate) fn message(&mut self) -> Vec<u8> {
        let mut out = Vec::new();
        for _ in 0..self.below(9) {
            let field = self.field();
            out.extend(field);
        }
        if self.below(6) > 0 {
            out.extend(self.line_end());
        }
        for _ in 0..self.below(4) {
            let part = self.octets(900);
            out.extend(part);
            out.extend(self.one_of(&[&b"\r\n--b\r\n\r\n"[..], b"\r\n--b--\r\n", b"\r\n", b"\0", b""]));
        }
        out
    }
}

#[test]
fn the_same_seed_makes_the_same_messages() {
    let [mut one, mut other] = [Random::new(7), Random::new(7)];
    assert!((0..9).all(|_| one.message() == other.message()));
    assert_ne!(Random::new(7).message(), Random::new(8).message());
}
