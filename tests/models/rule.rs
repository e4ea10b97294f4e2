//! Whatever a model answers, the rule hides no mail that a person needs.

use proptest::prelude::*;

use tollgate::lane::trace::{Scored, Trace};
use tollgate::lane::{Context, Correspondence, Features, History, Lane, SIGNALS, Signal, Signals, Thresholds};
use tollgate::mail::address::Address;
use tollgate::perceive::answer;
use tollgate::perceive::prompt::prompt;
use tollgate::perceive::{AccountFacts, PerceiveInput, perceive};

use crate::endpoint::{Endpoint, numbers, says};
use crate::stand::{FREE, Stand, field, model};

const MAIL: &[u8] = b"From: Ann <ann@example.com>\r\nTo: jo@example.org\r\nSubject: hello\r\n\r\nA few words.\r\n";

fn perceived(context: Context) -> Trace {
    let account = AccountFacts {
        addresses: vec![Address::parse("jo@example.org").unwrap()],
        timezone: "UTC".to_owned(),
        authserv: Vec::new(),
    };
    let input = PerceiveInput {
        octets: MAIL,
        size: MAIL.len() as u64,
        account: &account,
        now: 1_767_225_600,
        internaldate: 1_767_225_600,
        context,
    };
    perceive(&input, &Thresholds::default(), "0".to_owned())
}

fn said(features: Features) -> Scored {
    Scored { error: None, features: Some(features), ..Scored::failed("m", "lab", String::new()) }
}

/// Numbers, the thresholds and their neighbours among them.
fn number() -> impl Strategy<Value = f64> {
    let edges = [0.0, 0.05, 0.1999, 0.2, 0.2001, 0.4999, 0.5, 0.6999, 0.7, 0.8999, 0.9, 0.9001, 0.95, 1.0];
    prop_oneof![proptest::sample::select(edges.to_vec()), 0.0..=1.0f64]
}

fn features() -> impl Strategy<Value = Features> {
    (number(), number(), number(), number()).prop_map(|(c, t, r, u)| Features::new(c, t, r, u).unwrap())
}

fn history() -> impl Strategy<Value = History<Correspondence>> {
    prop_oneof![
        Just(History::Unavailable),
        Just(History::Absent),
        (0..4u32, 0..4u32, 0..4u32).prop_map(|(sent_to, replied, received)| {
            History::Present(Correspondence { sent_to, replied, received, ..Correspondence::default() })
        }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn no_answer_of_a_model_hides_mail_that_asks_or_has_a_deadline_or_comes_from_someone_known(
        model in features(),
        offline in features(),
        on in proptest::collection::vec(any::<bool>(), SIGNALS.len()),
        history in history(),
    ) {
        let mut trace = perceived(Context { history, ..Context::default() });
        trace.signals = SIGNALS.into_iter().zip(on).filter_map(|(s, on)| on.then_some(s)).collect::<Signals>();
        trace.scorers[0].features = Some(offline);
        trace.choose(vec![said(model)], Some(0));
        let lane = trace.verdict.lane;
        prop_assert_eq!(trace.features(), model);
        if trace.signals.any(&[Signal::Ask, Signal::Deadline]) {
            prop_assert!(!matches!(lane, Lane::Silent | Lane::Info), "{:?}", trace.verdict);
        }
        if trace.context.is_known() {
            prop_assert!(lane != Lane::Silent, "{:?}", trace.verdict);
        }
        // The larger urgency counts wherever it could hide mail.
        if model.urgency().max(offline.urgency()) >= 0.5 {
            prop_assert!(!matches!(lane, Lane::Silent | Lane::Info), "{:?}", trace.verdict);
        }
        // The record alone gives the same lane.
        prop_assert_eq!(trace.replay(&trace.thresholds), trace.verdict.clone());
    }

    #[test]
    fn no_text_of_a_model_becomes_numbers_outside_the_range(text in ".{0,80}", n in any::<f64>()) {
        let asked = prompt(MAIL, &perceived(Context::default()), &[]);
        let texts = [
            text.clone(),
            format!(r#"{{"confidence":{n},"sender_trust":0,"reversibility":0,"urgency":0,"reason":"x"}}"#),
        ];
        for text in texts {
            if let Ok(answer) = answer::parse(&text, &asked) {
                let f = answer.features;
                for value in [f.confidence(), f.sender_trust(), f.reversibility(), f.urgency()] {
                    prop_assert!((0.0..=1.0).contains(&value));
                }
            }
        }
    }
}

#[test]
fn a_model_that_failed_leaves_the_offline_scorer_chosen() {
    let mut trace = perceived(Context::default());
    let before = trace.verdict.clone();
    trace.choose(vec![Scored::failed("m", "lab", "slow: x".to_owned())], Some(0));
    assert_eq!((trace.chosen, trace.verdict), (0, before));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_steered_model_hides_nothing_that_asks_or_has_a_deadline() {
    // Sure, trustless, reversible, never urgent: everything for silent.
    let first = Endpoint::start(|_| says(&numbers(1.0, 0.0, 1.0, 0.0, "nothing of interest"))).await;
    let stand = Stand::start(&format!("{FREE}{}", model("first", &first.url(), ""))).await;
    let bulk = "List-Unsubscribe: <https://example.com/u>\r\nPrecedence: bulk\r\n";
    for (n, (fields, text)) in [
        ("", "Could you send me the signed contract by tomorrow noon? I need it for the notary."),
        (bulk, "Please confirm your registration by Friday, otherwise the place is given away."),
        ("", "Can you call me back today at 030 1234567?"),
    ]
    .into_iter()
    .enumerate()
    {
        let mail = format!(
            "From: Ann <ann{n}@example.com>\r\nTo: jo@example.org\r\nSubject: number {n}\r\n{fields}\r\n{text}\r\n"
        );
        let (header, _) = stand.shown(mail.as_bytes(), n + 1).await;
        let lane = field(&header, "X-Tollgate-Lane");
        assert_eq!(field(&header, "X-Tollgate-Reason"), "nothing of interest");
        assert!(lane != "silent" && lane != "info", "{text}: {lane}");
    }
    stand.gateway.shutdown().await;
}
