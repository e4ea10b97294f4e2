use super::*;

fn view(message: &str) -> MessageView {
    MessageView::of(message.replace('\n', "\r\n").as_bytes())
}

fn says(view: &MessageView, part: &str) -> bool {
    view.warnings.iter().any(|w| w.to_string().contains(part))
}

const CALM: &str = "From: Ada <ada@example.org>\nTo: Bo <bo@example.com>, c@example.net\nDate: Sun, 29 Nov 2026 10:00:00 \
    +0000\nSubject: =?utf-8?q?Gr=C3=BC=C3=9Fe?=\nMessage-ID: <1@example.org>\nMIME-Version: 1.0\nContent-Type: \
    text/plain; charset=utf-8\nContent-Transfer-Encoding: 8bit\n\nHello Bo,\nsee you – Ada\n";

#[test]
fn a_calm_message_has_no_warning_and_everything_is_shown() {
    let v = view(CALM);
    assert_eq!(v.warnings, []);
    assert_eq!(v.field("subject"), Some("Grüße"));
    assert_eq!(v.fields.len(), 8);
    assert_eq!(v.parts[0].text.as_deref(), Some("Hello Bo,\nsee you – Ada\n"));
    assert_eq!(v.from, ["ada@example.org"]);
    assert!(v.names_recipient("BO@example.com") && v.names_recipient("c@example.net"));
    assert!(!v.names_recipient("xbo@example.com") && !v.names_recipient("d@example.net"));
    assert_eq!(v.against("ada@example.org"), []);
    assert_eq!(v.against("eve@example.org").len(), 1);
    assert_eq!(v.against("").len(), 1);
}

#[test]
fn duplicate_singular_fields_are_said_and_both_are_shown() {
    let v = view(&CALM.replace("Subject:", "From: Eve <eve@example.net>\nSubject: other\nSubject:"));
    assert!(says(&v, "field From stands more than once") && says(&v, "field Subject stands more than once"));
    assert_eq!(v.fields.iter().filter(|f| f.name == "From").count(), 2);
    assert_eq!(v.against("ada@example.org").len(), 1, "two authors are not the one sender");
}

#[test]
fn invisible_characters_are_seen_in_fields_names_and_text() {
    let v = view(&CALM.replace("Hello Bo", "Pay\u{200b}Pal \u{202e}oB").replace("Ada <", "A\u{200d}da <"));
    assert!(says(&v, "U+202E") && says(&v, "U+200B") && says(&v, "U+200D"));
    assert!(v.parts[0].text.as_ref().unwrap().contains("⟦U+202E⟧oB"));
    assert!(v.fields[0].decoded.contains("A⟦U+200D⟧da"));
    assert!(says(&v, "raw 8-bit"));
}

#[test]
fn damaged_base64_is_decoded_and_said() {
    let v = view(&CALM.replace("8bit\n\nHello Bo,\nsee you – Ada\n", "base64\n\naGVs*bG8=\n"));
    assert!(says(&v, "damaged base64"));
    assert!(v.parts[0].damaged);
    assert_eq!(v.parts[0].text.as_deref(), Some("hello"));
}

#[test]
fn unknown_charsets_and_encodings_are_said() {
    assert!(says(&view(&CALM.replace("charset=utf-8", "charset=x-klingon")), "charset \"x-klingon\" is unknown"));
    assert!(says(&view(&CALM.replace("8bit", "uuencode")), "encoding \"uuencode\" is unknown"));
    assert!(says(&view(&CALM.replace("charset=utf-8", "charset=us-ascii")), "damaged us-ascii text"));
}

#[test]
fn an_address_in_a_name_and_a_domain_in_another_script_are_said() {
    let v = view(&CALM.replace("Bo <bo@example.com>", "\"bo@bank.example\" <bo@xn--pypal-4ve.example>"));
    assert!(says(&v, "hides the address bo@xn--pypal-4ve.example"), "{:?}", v.warnings);
    assert!(says(&v, "is xn--pypal-4ve.example"), "{:?}", v.warnings);
    assert_eq!(domain_forms("bücher.example"), Some(("bücher.example".into(), "xn--bcher-kva.example".into())));
    assert_eq!(domain_forms("example.org"), None);
}

#[test]
fn long_lines_bare_line_ends_and_stray_lines_are_said() {
    assert!(says(&view(&CALM.replace("see you", &"x".repeat(999))), "over 998"));
    assert!(!says(&view(&CALM.replace("Hello Bo,", &"x".repeat(998))), "over 998"));
    let mut raw = CALM.replace('\n', "\r\n");
    raw.push('\n');
    assert!(says(&MessageView::of(raw.as_bytes()), "a LF that stands alone"));
    assert!(says(&MessageView::of(raw.replace("see", "s\ree").as_bytes()), "a CR that stands alone"));
    assert!(says(&view(&CALM.replace("Subject:", "this is no field\nSubject:")), "a line that is no field"));
}

fn mixed(part: &str) -> MessageView {
    view(&format!(
        "From: a@example.org\nDate: x\nContent-Type: multipart/mixed; boundary=b\n\n--b\n\ntext\n--b\n{part}\n--b--\n"
    ))
}

#[test]
fn files_that_run_lie_or_have_two_names_are_said() {
    let v = mixed(
        "Content-Type: application/pdf; name=\"other.pdf\"\nContent-Disposition: attachment; \
        filename=\"invoice.pdf.exe\"\nContent-Transfer-Encoding: base64\n\nTVqQAA==",
    );
    for what in ["double extension", "can run", "two names", "look like a Windows program"] {
        assert!(says(&v, what), "{what}: {:?}", v.warnings);
    }
    let part = &v.parts[1];
    assert!(part.is_attachment());
    assert_eq!((part.size, part.filename.as_deref()), (4, Some("invoice.pdf.exe")));
    assert_eq!(part.sha256, hex(&Sha256::digest(b"MZ\x90\0")));
    let hidden = mixed("Content-Disposition: attachment; filename*=utf-8''a%E2%80%AEfdp.exe\n\nx");
    assert_eq!(hidden.parts[1].filename.as_deref(), Some("a⟦U+202E⟧fdp.exe"));
}

#[test]
fn a_harmless_file_is_listed_without_a_warning() {
    let v = mixed(
        "Content-Type: application/pdf\nContent-Disposition: attachment; filename=\"letter.pdf\"\n\
        Content-Transfer-Encoding: base64\n\nJVBERi0xLjcK",
    );
    assert_eq!(v.warnings, []);
    assert_eq!(v.parts[1].content_type, "application/pdf");
}

#[test]
fn nested_messages_are_shown_with_their_header() {
    let v = mixed("Content-Type: message/rfc822\n\nSubject: inner\nFrom: x@example.net\n\ninner text");
    assert!(says(&v, "a whole message is attached"));
    let paths: Vec<&str> = v.parts.iter().map(|p| p.path.as_str()).collect();
    assert_eq!(paths, ["1", "2", "2.1"]);
    assert_eq!(v.parts[1].fields[0].decoded, "inner");
    assert_eq!(v.parts[2].text.as_deref(), Some("inner text"));
    let encoded = mixed("Content-Type: message/rfc822\nContent-Transfer-Encoding: base64\n\naGk=");
    assert!(says(&encoded, "only some clients open"));
}

#[test]
fn html_that_hides_runs_and_leads_elsewhere_is_said() {
    let v = view(
        "From: a@example.org\nDate: x\nContent-Type: multipart/alternative; boundary=b\n\n--b\n\nPay 10 at \
         https://bank.example\n--b\nContent-Type: text/html\n\n<p>Pay 9000 <a href=\"https://evil.example/x\">\
         www.bank.example</a><img src=http://t.example/1.gif><span style='display:none'>secret</span><script>x</script>\
         &#x202e;\n--b--\n",
    );
    for what in
        ["leads to https://evil.example/x", "load from elsewhere: img", "display:none", "script", "differ", "U+202E"]
    {
        assert!(says(&v, what), "{what}: {:?}", v.warnings);
    }
    assert!(v.differences[0].only_html.contains(&"9000".to_owned()));
    let level: Vec<Level> = v.warnings.iter().map(Warning::level).collect();
    assert!(level.is_sorted_by(|a, b| a >= b), "dangers stand first");
    let honest = view(
        "From: a@example.org\nDate: x\nContent-Type: text/html\n\n<a href='https://example.org/a'>\
        example.org</a> <a href='https://www.example.org'>here</a>\n",
    );
    assert_eq!(honest.warnings, []);
}

#[test]
fn what_is_shown_is_bounded_and_said() {
    let v = view(&CALM.replace("see you", &"word \n".repeat(400_000)));
    assert!(v.parts[0].cut && says(&v, "only the first"));
    assert!(v.parts[0].text.as_ref().unwrap().len() <= MAX_TEXT);
    let many = MessageView::of(
        &[b"Content-Type: multipart/mixed; boundary=b\r\n\r\n", &b"--b\r\n\r\nx\r\n".repeat(3000)[..]].concat(),
    );
    assert!(says(&many, "more parts") && many.parts.len() <= MAX_PARTS);
    let noisy = "X\u{200b}: \u{200b}\n".repeat(5000);
    assert!(view(&noisy).warnings.len() <= MAX_WARNINGS + 1);
}

#[test]
fn no_octets_make_it_panic() {
    for octets in [&b""[..], b"\r\n", b":", b"a:\r\n b", b"From: <\r\n\r\n", b"\0\0", b"To: =?utf-8?q?=?=\r\n"] {
        MessageView::of(octets);
    }
    let base = CALM.replace('\n', "\r\n").into_bytes();
    for at in 0..base.len() {
        let mut changed = base.clone();
        changed[at] = 0xff;
        MessageView::of(&changed);
        MessageView::of(&base[..at]);
    }
}
