//! `tollgate eval` with models: a measurement, or none.

use serde_json::Value;

use crate::common::gateway::Gateway;
use crate::endpoint::{Endpoint, answers, numbers, says, status};
use crate::stand::{account, model, provider};

/// Three items that ask for nothing.
fn set() -> String {
    let item = |id: &str| {
        format!(
            "{{\"id\":\"{id}\",\"lane\":\"queue\",\"from\":\"a@example.com\",\"to\":\"jo@example.org\",\
             \"subject\":\"{id}\",\"date\":\"Mon, 30 Nov 2026 10:00:00 +0000\",\
             \"text\":\"A few words about the garden and the weather.\"}}\n"
        )
    };
    ["one", "two", "three"].map(item).concat()
}

fn report(gateway: &Gateway, scorer: &str) -> (Option<i32>, Value) {
    let set = gateway.scratch.file("set.jsonl", set());
    let set = set.to_str().expect("a path in UTF-8");
    let ran = gateway.tollgate(&["--json", "eval", "--set", set, "--scorer", scorer]);
    (ran.code, serde_json::from_slice(&ran.stdout).unwrap_or_else(|e| panic!("{e}: {}", ran.text())))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_run_in_which_an_item_fell_back_is_no_measurement() {
    let first = Endpoint::start(|_| says(&numbers(0.9, 0.5, 0.5, 0.3, "by the first"))).await;
    let second = Endpoint::start(|asked| match asked.subject().as_str() {
        "two" => status(400, "no"),
        _ => answers("by the second"),
    })
    .await;
    let provider = provider().await;
    let gateway = Gateway::prepare(&format!(
        "[[price]]\nmodel = \"*\"\ninput = 10\noutput = 10\n{}{}{}",
        model("first", &first.url(), ""),
        model("second", &second.url(), ""),
        account(&provider)
    ));
    tokio::task::block_in_place(|| {
        let (code, v) = report(&gateway, "chain");
        assert_eq!((code, &v["scorer"], &v["models"]["measurement"]), (Some(0), &"chain".into(), &true.into()), "{v}");
        assert_eq!((&v["models"]["asked"], &v["models"]["input_tokens"]), (&3.into(), &900.into()));
        assert!((v["models"]["cost"].as_f64().unwrap() - 3.0 * 0.0035).abs() < 1e-9, "{v}");
        assert_eq!(v["accuracy"], 1.0);
        assert!(second.asked().is_empty());

        let (code, v) = report(&gateway, "second");
        assert_eq!((code, &v["models"]["measurement"]), (Some(65), &false.into()), "{v}");
        assert_eq!((&v["models"]["asked"], &v["models"]["fell_back"]), (&3.into(), &1.into()));
        assert_ne!(v["scorer"], "second");
        assert_eq!(v["models"]["errors"]["second: refused"], 1, "{v}");

        let unknown = gateway.tollgate(&["eval", "--set", "/dev/null", "--scorer", "third"]);
        assert_eq!(unknown.code, Some(64), "{}", unknown.text());
        let (code, v) = report(&gateway, "offline");
        assert_eq!((code, &v["scorer"], &v["models"]), (Some(0), &"offline".into(), &Value::Null));

        // A floor that doesn't hold leaves one value on standard output too.
        let floors = gateway.scratch.file("floors.toml", "accuracy = 1.01\n");
        let set = gateway.scratch.file("set.jsonl", set());
        let (set, floors) = (set.to_str().expect("a path in UTF-8"), floors.to_str().expect("a path in UTF-8"));
        let ran = gateway.tollgate(&["--json", "eval", "--set", set, "--floors", floors]);
        let v: Value = serde_json::from_slice(&ran.stdout).expect("one value");
        assert_eq!((ran.code, v["broken_floors"].as_array().map(Vec::len)), (Some(65), Some(1)));
    });
}
