use proptest::prelude::*;

use super::*;
use crate::lane::{Authentication, Correspondence, History, SIGNALS};

fn f(c: f64, t: f64, r: f64, u: f64) -> Features {
    Features::new(c, t, r, u).unwrap()
}

fn run(features: Features, signals: &[Signal], context: &Context) -> Verdict {
    let signals = signals.iter().copied().collect();
    decide(&Inputs { features, offline: features, signals, context }, &Thresholds::default())
}

fn lane(features: Features, signals: &[Signal], context: &Context) -> Lane {
    run(features, signals, context).lane
}

fn known() -> Context {
    let c = Correspondence { sent_to: 2, replied: 1, received: 4, ..Correspondence::default() };
    Context { history: History::Present(c), ..Context::default() }
}

fn absent() -> Context {
    Context { history: History::Absent, ..Context::default() }
}

fn bulk() -> Features {
    f(0.9, 0.1, 0.95, 0.05)
}

fn urgent() -> Features {
    f(0.8, 0.5, 0.3, 0.8)
}

#[test]
fn each_row_has_its_lane() {
    let c = Context::default();
    let v = run(f(0.2, 0.5, 0.5, 0.2), &[Signal::Invitation], &c);
    assert_eq!((v.lane, v.branch), (Lane::Meeting, Branch::Invitation));
    let v = run(f(0.2, 0.5, 0.5, 0.2), &[Signal::Code, Signal::Automated], &c);
    assert_eq!((v.lane, v.branch), (Lane::Push, Branch::Code));
    let v = run(f(0.49, 0.1, 0.95, 0.05), &[Signal::Campaign], &c);
    assert_eq!((v.lane, v.branch), (Lane::Queue, Branch::Unsure));
    let v = run(urgent(), &[Signal::Ask], &c);
    assert_eq!((v.lane, v.branch), (Lane::Push, Branch::Urgent));
    let v = run(f(0.8, 0.5, 0.5, 0.3), &[Signal::Scheduling], &c);
    assert_eq!((v.lane, v.branch), (Lane::Meeting, Branch::Scheduling));
    let v = run(bulk(), &[Signal::Campaign], &c);
    assert_eq!((v.lane, v.branch), (Lane::Silent, Branch::Campaign));
    let v = run(f(0.8, 0.4, 0.8, 0.1), &[Signal::Transactional, Signal::Automated], &c);
    assert_eq!((v.lane, v.branch), (Lane::Info, Branch::Record));
    let v = run(f(0.8, 0.4, 0.8, 0.1), &[], &c);
    assert_eq!((v.lane, v.branch), (Lane::Queue, Branch::Otherwise));
}

#[test]
fn an_unknown_sender_calls_no_meeting_and_neither_does_spam() {
    let v = run(f(0.9, 0.5, 0.5, 0.2), &[Signal::Invitation], &absent());
    assert_eq!(v.lane, Lane::Queue);
    assert_eq!(v.guards, [Guard::MeetingStranger]);
    assert_eq!(v.canary, Some(Canary::Demoted));
    for bad in [Signal::Spam, Signal::Spoofed] {
        assert_eq!(lane(f(0.9, 0.5, 0.5, 0.2), &[Signal::Invitation, bad], &known()), Lane::Queue);
        assert_eq!(lane(f(0.9, 0.5, 0.5, 0.2), &[Signal::Scheduling, bad], &known()), Lane::Queue);
        assert_eq!(lane(f(0.9, 0.5, 0.5, 0.2), &[Signal::Code, bad], &known()), Lane::Queue);
        assert_eq!(lane(urgent(), &[Signal::Ask, bad], &known()), Lane::Queue);
        assert_eq!(lane(f(0.8, 0.4, 0.8, 0.1), &[Signal::Transactional, bad], &known()), Lane::Queue);
    }
}

#[test]
fn a_code_needs_authentication_only_where_it_is_available() {
    let mut c = Context::default();
    assert_eq!(lane(bulk(), &[Signal::Code], &c), Lane::Push);
    c.authentication = Authentication::Authenticated;
    assert_eq!(lane(bulk(), &[Signal::Code], &c), Lane::Push);
    for bad in [Authentication::NotAligned, Authentication::Failed] {
        c.authentication = bad;
        let v = run(bulk(), &[Signal::Code], &c);
        assert_eq!((v.lane, v.guards[0]), (Lane::Queue, Guard::CodeUnauthenticated));
    }
}

#[test]
fn a_machine_pushes_with_an_ask_by_a_time_or_much_urgency() {
    let all = [Signal::Automated, Signal::Ask, Signal::Deadline];
    let alarm = f(0.9, 0.4, 0.3, 0.80);
    assert_eq!(lane(alarm, &all[..1], &Context::default()), Lane::Push);
    assert_eq!(lane(f(0.9, 0.4, 0.3, 0.99), &all[..1], &absent()), Lane::Queue);
    assert_eq!(lane(urgent(), &all, &Context::default()), Lane::Push);
    assert_eq!(lane(urgent(), &all, &known()), Lane::Push);
    assert_eq!(lane(f(0.9, 0.4, 0.3, 0.95), &all, &absent()), Lane::Queue);
    let v = run(f(0.9, 0.4, 0.3, 0.79), &all[..2], &known());
    assert_eq!((v.lane, v.guards[0]), (Lane::Queue, Guard::PushAutomated));
    let mut failed = known();
    failed.authentication = Authentication::Failed;
    assert_eq!(lane(urgent(), &all, &failed), Lane::Queue);
    assert_eq!(lane(alarm, &all, &failed), Lane::Queue);
}

#[test]
fn a_stranger_must_be_more_urgent() {
    let v = run(f(0.8, 0.4, 0.3, 0.89), &[Signal::Ask], &absent());
    assert_eq!((v.lane, v.guards[0]), (Lane::Queue, Guard::PushStranger));
    assert_eq!(lane(f(0.8, 0.4, 0.3, 0.90), &[Signal::Ask], &absent()), Lane::Push);
    assert_eq!(lane(f(0.8, 0.4, 0.3, 0.89), &[Signal::Ask], &Context::default()), Lane::Push);
}

#[test]
fn silence_gives_way_to_each_guard() {
    for (signal, guard) in
        [(Signal::Ask, Guard::Asks), (Signal::Deadline, Guard::HasDeadline), (Signal::Code, Guard::HasCode)]
    {
        let c = Context { authentication: Authentication::Failed, ..Context::default() };
        let v = run(bulk(), &[Signal::Campaign, signal], &c);
        assert_eq!(v.lane, Lane::Queue);
        assert!(v.guards.contains(&guard));
    }
    // A known correspondent's trust floor keeps row 6 from matching at all;
    // where the From may be forged the floor is gone and the guard stands.
    assert_eq!(lane(bulk(), &[Signal::Campaign], &known()), Lane::Queue);
    let mut forged = known();
    forged.authentication = Authentication::Failed;
    let v = run(bulk(), &[Signal::Campaign], &forged);
    assert_eq!((v.lane, v.guards), (Lane::Queue, vec![Guard::KnownCorrespondent]));
}

#[test]
fn the_larger_urgency_counts_where_mail_could_be_hidden() {
    let c = Context::default();
    let offline = f(0.8, 0.4, 0.5, 0.6);
    for (chosen, signal) in [(bulk(), Signal::Campaign), (f(0.9, 0.4, 0.9, 0.1), Signal::Transactional)] {
        let signals = [signal].into_iter().collect();
        let v = decide(&Inputs { features: chosen, offline, signals, context: &c }, &Thresholds::default());
        assert_eq!((v.lane, v.guards), (Lane::Queue, vec![Guard::OfflineUrgency]));
    }
}

#[test]
fn a_pin_stands_before_the_rule_unless_the_sender_may_be_forged() {
    let mut c = known();
    c.pinned = Some(Lane::Push);
    let v = run(f(0.1, 0.1, 0.1, 0.1), &[], &c);
    assert_eq!((v.lane, v.branch, v.overridden), (Lane::Push, Branch::Pin, Some(Override::Pin)));
    c.authentication = Authentication::Authenticated;
    assert_eq!(lane(bulk(), &[], &c), Lane::Push);
    c.authentication = Authentication::NotAligned;
    let v = run(f(0.9, 0.1, 0.1, 0.1), &[], &c);
    assert_eq!((v.lane, v.overridden), (Lane::Queue, None));
    assert_eq!((v.guards, v.canary), (vec![Guard::PinUnauthenticated], Some(Canary::Demoted)));
}

#[test]
fn a_correction_stands_before_a_pin() {
    let mut c = known();
    c.pinned = Some(Lane::Push);
    c.correction = Some(Lane::Info);
    let v = run(urgent(), &[], &c);
    assert_eq!((v.lane, v.overridden), (Lane::Info, Some(Override::Correction)));
}

#[test]
fn a_sure_scorer_without_corroboration_is_a_canary() {
    assert_eq!(run(f(0.85, 0.4, 0.8, 0.1), &[], &absent()).canary, Some(Canary::Uncorroborated));
    assert_eq!(run(f(0.84, 0.4, 0.8, 0.1), &[], &absent()).canary, None);
    assert_eq!(run(f(0.99, 0.4, 0.8, 0.1), &[], &Context::default()).canary, None);
}

#[test]
fn auto_eligible_takes_trust_from_the_context_alone() {
    assert!(run(f(0.6, 0.0, 0.9, 0.1), &[], &known()).auto_eligible);
    assert!(!run(f(0.6, 1.0, 0.9, 0.1), &[], &Context::default()).auto_eligible);
    assert!(!run(f(0.6, 1.0, 0.84, 0.1), &[], &known()).auto_eligible);
    assert!(!run(f(0.6, 1.0, 0.9, 0.5), &[], &known()).auto_eligible);
}

fn any_features() -> impl Strategy<Value = Features> {
    let n = prop_oneof![0.0..=1.0f64, Just(0.0), Just(0.2), Just(0.5), Just(0.7), Just(0.9), Just(1.0)];
    (n.clone(), n.clone(), n.clone(), n).prop_map(|(c, t, r, u)| f(c, t, r, u))
}

fn any_signals() -> impl Strategy<Value = Signals> {
    proptest::collection::vec(any::<bool>(), SIGNALS.len())
        .prop_map(|on| SIGNALS.into_iter().zip(on).filter_map(|(s, on)| on.then_some(s)).collect())
}

fn any_context() -> impl Strategy<Value = Context> {
    let history = prop_oneof![
        Just(History::Unavailable),
        Just(History::Absent),
        (0..3u32, 0..3u32, 0..3u32).prop_map(|(sent_to, replied, received)| {
            History::Present(Correspondence { sent_to, replied, received, ..Correspondence::default() })
        }),
    ];
    let authentication = prop_oneof![
        Just(Authentication::Unavailable),
        Just(Authentication::Authenticated),
        Just(Authentication::NotAligned),
        Just(Authentication::Failed),
    ];
    (history, authentication, any::<bool>()).prop_map(|(history, authentication, organisation)| Context {
        history,
        authentication,
        organisation,
        ..Context::default()
    })
}

fn any_thresholds() -> impl Strategy<Value = Thresholds> {
    proptest::collection::vec(0.0..=1.0f64, 9)
        .prop_map(|v| Thresholds {
            confidence_min: v[0],
            push_urgency: v[1],
            push_confidence: v[2],
            stranger_urgency: v[3],
            silent_trust: v[4],
            silent_urgency: v[5],
            silent_reversibility: v[6],
            info_urgency: v[7],
            machine_urgency: v[8],
        })
        .prop_map(|t| if t.check().is_ok() { t } else { Thresholds::default() })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn wanted_mail_is_never_silent_whatever_a_scorer_says(
        features in any_features(),
        offline in any_features(),
        signals in any_signals(),
        context in any_context(),
        thresholds in any_thresholds(),
    ) {
        let v = decide(&Inputs { features, offline, signals, context: &context }, &thresholds);
        if v.lane == Lane::Silent {
            prop_assert!(!signals.any(&[Signal::Ask, Signal::Deadline, Signal::Code]));
            prop_assert!(!context.is_known());
            prop_assert!(signals.has(Signal::Campaign));
        }
        if v.lane == Lane::Info {
            prop_assert!(!signals.any(&[Signal::Ask, Signal::Deadline, Signal::Failure]));
        }
        if features.confidence() == 0.0 || features.confidence() < thresholds.confidence_min {
            prop_assert!(!matches!(v.lane, Lane::Silent | Lane::Info));
        }
        if matches!(v.lane, Lane::Push | Lane::Meeting | Lane::Info) {
            prop_assert!(!signals.any(&[Signal::Spam, Signal::Spoofed]));
        }
        if v.lane == Lane::Push && v.branch != Branch::Code {
            prop_assert!(!signals.has(Signal::Campaign));
        }
        if context.is_absent() {
            prop_assert!(v.lane != Lane::Meeting);
        }
    }

    #[test]
    fn deciding_twice_is_deciding_once(features in any_features(), signals in any_signals(), context in any_context()) {
        let x = Inputs { features, offline: features, signals, context: &context };
        prop_assert_eq!(decide(&x, &Thresholds::default()), decide(&x, &Thresholds::default()));
    }

    #[test]
    fn more_urgency_never_hides(
        c in 0.0..=1.0f64, t in 0.0..=1.0f64, r in 0.0..=1.0f64,
        low in 0.0..=1.0f64, high in 0.0..=1.0f64,
        signals in any_signals(), context in any_context(),
    ) {
        let (low, high) = if low < high { (low, high) } else { (high, low) };
        let hidden = |u| matches!(lane(f(c, t, r, u), &signals.iter().collect::<Vec<_>>(), &context), Lane::Silent | Lane::Info);
        prop_assert!(!hidden(high) || hidden(low));
    }
}
