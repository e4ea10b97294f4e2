//! Why a message is in its lane.

use super::house::{House, OTHER, OTHER_PIN, me};
use crate::lane::trace::{Read, Scored, TRACE_SCHEMA, Trace};
use crate::lane::{Context, Features, Lane, Signals, Thresholds, rule};
use crate::store::{StoreError, Table, decision_key, put_json, write};

/// A decision whose every text is hostile.
fn trace() -> Trace {
    let evil = "<script>alert(1)</script>\u{202e}txt.exe";
    let mut trace = Trace {
        schema: TRACE_SCHEMA,
        decision: "00c0ffee00c0ffee".to_owned(),
        time: 1_793_782_800,
        from: Some(format!("{evil}@example.com")),
        message_id: Some(format!("<{evil}>")),
        read: Read::default(),
        scorers: vec![Scored::offline("1", Features::new(0.9, 0.5, 0.5, 0.2).unwrap(), Vec::new(), evil)],
        chosen: 0,
        signals: Signals::NONE,
        context: Context::default(),
        deadline: None,
        rule_version: rule::RULE_VERSION,
        thresholds: Thresholds::default(),
        verdict: rule::Verdict {
            lane: Lane::Queue,
            branch: rule::Branch::Otherwise,
            guards: Vec::new(),
            canary: None,
            auto_eligible: false,
            overridden: None,
        },
        reason: evil.to_owned(),
    };
    trace.verdict = trace.replay(&Thresholds::default());
    trace
}

#[tokio::test]
async fn a_decision_is_shown_to_its_account_alone_and_escaped() {
    let house = House::new().await;
    let (trace, key) = (trace(), decision_key(me().as_str(), "00c0ffee00c0ffee"));
    write::<_, StoreError>(house.services.store.as_ref(), move |w| put_json(w, Table::Decision, &key, &trace))
        .await
        .unwrap();
    let path = "/decision/00c0ffee00c0ffee";
    let cookie = house.me().await;
    let page = house.get(path, &cookie).await;
    assert_eq!(page.status, 200, "{}", page.body);
    for part in
        ["Why this is in queue", "confidence 0.90", "&lt;script&gt;alert(1)&lt;/script&gt;\u{27e6}U+202E\u{27e7}"]
    {
        assert!(page.body.contains(part), "{part}: {}", page.body);
    }
    assert!(!page.body.contains("<script>") && !page.body.contains('\u{202e}'));
    let other = house.sign_in(OTHER, OTHER_PIN).await;
    assert_eq!(house.get(path, &other).await.status, 404, "another account's");
    let stranger = house.get(path, "").await;
    assert!(stranger.status == 403 && !stranger.body.contains("queue"), "{}", stranger.status);
    for none in ["/decision/00", "/decision/..%2f", "/decision/zz", "/decision/%00"] {
        assert_eq!(house.get(none, &cookie).await.status, 404, "{none}");
    }
}
