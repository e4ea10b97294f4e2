use proptest::prelude::*;

use super::*;
use crate::lane::trace::{Deadline, Scored, Trace};
use crate::lane::{Context, Features, SIGNALS, Signals, Thresholds, rule};
use crate::mail::header;

fn trace(reason: &str, signals: Signals) -> Trace {
    let features = Features::new(0.82, 0.45, 0.9, 0.2).unwrap();
    let context = Context::default();
    let thresholds = Thresholds::default();
    let inputs = rule::Inputs { features, offline: features, signals, context: &context };
    let verdict = rule::decide(&inputs, &thresholds);
    Trace {
        schema: 1,
        decision: "d-1".to_owned(),
        time: 0,
        from: None,
        message_id: None,
        read: Default::default(),
        scorers: vec![Scored::offline("1", features, Vec::new(), reason)],
        chosen: 0,
        signals,
        context,
        deadline: None,
        rule_version: rule::RULE_VERSION,
        thresholds,
        verdict,
        reason: reason.to_owned(),
    }
}

fn lines(stamp: &[u8]) -> Vec<String> {
    let text = String::from_utf8(stamp.to_vec()).unwrap();
    assert!(text.ends_with("\r\n"));
    text.split_terminator("\r\n").map(str::to_owned).collect()
}

fn check_form(stamp: &[u8]) {
    assert!(stamp.is_ascii());
    for line in lines(stamp) {
        assert!(line.len() < 78, "{line}");
        assert!(line.bytes().all(|b| (b' '..=b'~').contains(&b)), "{line:?}");
        assert!(line.starts_with("X-Tollgate-") || line.starts_with(' '), "{line}");
    }
}

#[test]
fn fields_stand_in_their_order() {
    let mut t = trace("asks by Friday", [crate::lane::Signal::Ask].into_iter().collect());
    t.verdict.canary = Some(rule::Canary::Demoted);
    t.deadline = Some(Deadline { at: 0, local: "2026-11-30T17:00:00+09:00".to_owned(), words: String::new() });
    assert_eq!(
        lines(&render(&t)),
        [
            "X-Tollgate-Lane: queue",
            "X-Tollgate-Scores: conf=0.82 trust=0.45 rev=0.90 urg=0.20",
            "X-Tollgate-Signals: ask",
            "X-Tollgate-Reason: asks by Friday",
            "X-Tollgate-Decision: d-1",
            "X-Tollgate-Canary: demoted",
            "X-Tollgate-Deadline: 2026-11-30T17:00:00+09:00",
        ]
    );
}

#[test]
fn no_signals_no_field() {
    assert!(!lines(&render(&trace("x", Signals::NONE))).iter().any(|l| l.contains("Signals")));
}

#[test]
fn all_signals_fold_under_78_columns() {
    let stamp = render(&trace("x", SIGNALS.into_iter().collect()));
    check_form(&stamp);
    let spans = header::split(&stamp);
    let field = spans.fields.iter().find(|f| f.is(&stamp, "X-Tollgate-Signals")).unwrap();
    let value = String::from_utf8(field.unfolded(&stamp)).unwrap();
    assert_eq!(value.split_whitespace().count(), SIGNALS.len());
}

#[test]
fn a_reason_is_folded_to_ascii_and_can_inject_nothing() {
    let stamp = render(&trace("réunion\r\nX-Tollgate-Lane: push \u{202e}gnp\u{200b} 회의", Signals::NONE));
    check_form(&stamp);
    let all = lines(&stamp);
    assert_eq!(all.iter().filter(|l| l.starts_with("X-Tollgate-Lane:")).count(), 1);
    assert!(all.iter().any(|l| l == "X-Tollgate-Reason: reunion X-Tollgate-Lane: push gnp ?"), "{all:?}");
}

#[test]
fn an_outside_stamp_is_renamed_in_place() {
    let m = b"Subject: a\r\nx-ToLLgate-Lane : push\r\n X-Tollgate-folded\r\nX-Tollgate-Reason:y\r\n\r\nX-Tollgate-Lane: body\r\n";
    let want = b"Subject: a\r\nX-Outsider-Lane : push\r\n X-Tollgate-folded\r\nX-Outsider-Reason:y\r\n\r\nX-Tollgate-Lane: body\r\n";
    assert_eq!(neutralise(m), want);
}

#[test]
fn names_that_only_resemble_the_namespace_are_left() {
    for m in
        [&b"X-Tollgat-Lane: a\r\n\r\n"[..], b"XX-Tollgate-Lane: a\r\n\r\n", b"X-Tollgate", b"X-Tollgate\r\n-Lane: a"]
    {
        assert_eq!(neutralise(m), m);
    }
}

#[test]
fn a_bare_carriage_return_neither_hides_a_stamp_nor_ends_the_header() {
    assert_eq!(neutralise(b"A: b\rX-Tollgate-Lane: push\n\n"), b"A: b\rX-Outsider-Lane: push\n\n");
    assert_eq!(neutralise(b"A: b\r\r\nX-Tollgate-Lane: push\n\n"), b"A: b\r\r\nX-Outsider-Lane: push\n\n");
}

#[test]
fn vectors_hold() {
    for file in ["stamp-neutralise.json", "stamp-reason.json"] {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors").join(file);
        let cases: Vec<std::collections::BTreeMap<String, String>> =
            serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        assert!(!cases.is_empty());
        for case in cases {
            let got = match file {
                "stamp-reason.json" => ascii(&case["input"]),
                _ => String::from_utf8(neutralise(case["input"].as_bytes())).unwrap(),
            };
            assert_eq!(got, case["expected"], "{}", case["what"]);
        }
    }
}

/// Messages made of pieces that matter here.
fn any_message() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        Just(&b"X-Tollgate-"[..]),
        Just(&b"x-tollGATE-Lane: push"[..]),
        Just(&b"X-Toll"[..]),
        Just(&b"\r\n"[..]),
        Just(&b"\n"[..]),
        Just(&b"\r"[..]),
        Just(&b" "[..]),
        Just(&b": "[..]),
        Just(&b"Subject: X-Tollgate-Lane"[..]),
        Just(&b"\xff\x00"[..]),
    ];
    proptest::collection::vec(piece, 0..40).prop_map(|p| p.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn chunks_do_not_matter_and_nothing_else_moves(m in any_message(), cuts in proptest::collection::vec(0usize..400, 0..6)) {
        let whole = neutralise(&m);
        let mut cuts: Vec<usize> = cuts.into_iter().map(|c| c.min(m.len())).collect();
        cuts.extend([0, m.len()]);
        cuts.sort_unstable();
        let mut n = Neutraliser::new();
        let mut out = Vec::new();
        for pair in cuts.windows(2) {
            n.push(&m[pair[0]..pair[1]], &mut out);
            prop_assert!(pair[1] - out.len() < NAMESPACE_LEN);
        }
        n.finish(&mut out);
        prop_assert_eq!(&out, &whole);
        prop_assert_eq!(whole.len(), m.len());
        let before = header::split(&m);
        let after = header::split(&whole);
        prop_assert_eq!(before.body_start, after.body_start);
        prop_assert_eq!(&m[before.body_start..], &whole[after.body_start..]);
        for field in &after.fields {
            let name = field.name(&whole).to_ascii_lowercase();
            prop_assert!(!name.starts_with(b"x-tollgate-"));
        }
        let again = neutralise(&whole);
        prop_assert_eq!(again, whole);
    }

    #[test]
    fn every_stamp_has_its_form(reason in ".{0,200}", decision in "\\PC{0,90}") {
        let mut t = trace(&reason, Signals::NONE);
        t.decision = decision;
        check_form(&render(&t));
    }
}
