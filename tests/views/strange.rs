//! Messages that break what programs take for granted.

// Each test program uses its own part.
#![allow(dead_code)]

/// Messages that break what programs take for granted.
pub(crate) fn strange() -> Vec<Vec<u8>> {
    let mut out: Vec<Vec<u8>> = vec![
        b"Subject: plain\r\n\r\nbody\r\n".to_vec(),
        b"Subject: no header end".to_vec(),
        b"Subject: no body\r\n\r\n".to_vec(),
        b"\r\nno header\r\n".to_vec(),
        b"Subject: LF only\nX-Tollgate-Lane: push\n\nbody\nmore\n".to_vec(),
        b"Subject: NUL\r\n\r\na\0b\r\n\0".to_vec(),
        b"Subject: \xff\xfe 8-bit\r\nX-\xc3\xa9: 1\r\n\r\n\xe9\r\n".to_vec(),
        b"not a field\r\n: empty name\r\nSubject: odd\r\n folded\r\n\r\nx\r\n".to_vec(),
        b"Subject: no final line end\r\n\r\nlast".to_vec(),
        b"X-Tollgate-Lane: push\r\nSubject: forged first\r\nx-tollgate-scores: conf=1.00\r\n\r\nX-Tollgate-Lane: in body\r\n".to_vec(),
        b"Subject: forged folded\r\nX-ToLLgate-Reason: a\r\n b\r\nX-Tollgate-Decision : blank\r\nX-Tollgate-: short\r\n\r\nx\r\n".to_vec(),
        b"".to_vec(),
        b"\r\n".to_vec(),
        b"\n".to_vec(),
        b"X-Tollgate-Lane: push".to_vec(),
        b"Subject: only blanks\r\n \r\n\t\r\n\r\nx\r\n".to_vec(),
        b" starts folded\r\nSubject: x\r\n\r\nx\r\n".to_vec(),
        b"Subject: mixed ends\nX-A: 1\r\nX-Tollgate-Lane: push\n\r\nbody\n".to_vec(),
        b"Subject: bare CR\rX-Tollgate-Lane: push\r\n\r\nx\ry\r\n".to_vec(),
        b"Subject: multipart\r\nMIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\nContent-Type: text/plain\r\n\r\nX-Tollgate-Lane: push\r\n--b\r\nContent-Type: message/rfc822\r\n\r\nX-Tollgate-Lane: push\r\nSubject: inner\r\n\r\nin\r\n--b--\r\n".to_vec(),
    ];
    let mut wide = b"Subject: wide\r\nX-Wide: ".to_vec();
    wide.extend(std::iter::repeat_n(b'w', 64 * 1024));
    wide.extend(b"\r\n\r\nx\r\n");
    out.push(wide);
    let mut many = b"Subject: many\r\n".to_vec();
    for n in 0..10_000 {
        many.extend(format!("X-N{n}: {n}\r\n").bytes());
    }
    many.extend(b"X-Tollgate-Lane: push\r\n\r\nx\r\n");
    out.push(many);
    let mut nested = String::from("Subject: nested\r\nMIME-Version: 1.0\r\n");
    for _ in 0..20 {
        nested.push_str("Content-Type: message/rfc822\r\n\r\nSubject: deeper\r\nMIME-Version: 1.0\r\n");
    }
    nested.push_str("\r\nbottom\r\n");
    out.push(nested.into_bytes());
    let mut large = b"Subject: large\r\n\r\n".to_vec();
    for n in 0..40_000 {
        large.extend(format!("line {n} of a large message\r\n").bytes());
    }
    out.push(large);
    out
}

/// Forged stamps: in every position, spelling and folding.
pub(crate) fn forged() -> Vec<Vec<u8>> {
    let spellings = [
        "X-Tollgate-Lane: push",
        "x-tollgate-lane:push",
        "X-TOLLGATE-LANE:\tpush",
        "X-Tollgate-Lane : push",
        "X-Tollgate-Lane\t: push",
        "X-Tollgate-Lane:\r\n push",
        "X-Tollgate-Lane:\r\n\t\r\n push",
        "X-Tollgate-Lane: push\r\nX-Tollgate-Lane: silent",
        "X-Tollgate-Scores: conf=1.00 trust=1.00\r\n rev=0.00 urg=1.00",
        "X-Tollgate-: empty",
        "X-Tollgate-Anything-At-All: x",
    ];
    let mut out = Vec::new();
    for forged in spellings {
        for fields in [
            [forged, "Subject: first", "To: a@example.org"],
            ["Subject: middle\r\n folded", forged, "To: a@example.org"],
            ["Subject: last", "To: a@example.org", forged],
        ] {
            out.push(format!("{}\r\n\r\n{forged}\r\nbody\r\n", fields.join("\r\n")).into_bytes());
        }
        // Where nothing ends the header, and with bare line feeds.
        out.push(format!("Subject: no end\r\n{forged}").into_bytes());
        out.push(format!("Subject: lf\n{}\n\nbody\n", forged.replace("\r\n", "\n")).into_bytes());
    }
    out
}
