//! A real model end to end: a llama.cpp server on 127.0.0.1 with a small
//! instruct model judges mail. This shows the path, not that it judges well.
//!
//! `bash tests/run model` installs both and says where they are.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use nix::sys::signal::Signal;

#[path = "../common/mod.rs"]
mod common;
#[allow(dead_code)] // the scripted tests use all of it
#[path = "../models/stand.rs"]
mod stand;

use common::daemon::Daemon;
use common::gateway::Gateway;
use common::scratch::{Scratch, free_port};
use stand::{FREE, Stand, USER, account, field, model, provider};

/// A machine that builds something beside it takes a while for a prompt.
const LIMIT_MS: u64 = 240_000;
const LIMIT: Duration = Duration::from_millis(LIMIT_MS);

fn named(variable: &str) -> PathBuf {
    let value = std::env::var_os(variable);
    value.unwrap_or_else(|| panic!("{variable} is not set: `bash tests/run model` sets it")).into()
}

fn serve(scratch: &Scratch) -> (Daemon, u16) {
    let port = free_port();
    let mut command = Command::new(named("TOLLGATE_TEST_LLAMA_PYTHON"));
    command.args(["-m", "llama_cpp.server", "--host", "127.0.0.1", "--n_ctx", "4096", "--n_threads", "2"]);
    command.args(["--model_alias", "lab", "--port", &port.to_string(), "--model"]);
    command.arg(named("TOLLGATE_TEST_LLAMA_MODEL"));
    let mut daemon = Daemon::start("llama_cpp.server", command, &scratch.path().join("llama.log"), Signal::SIGTERM);
    daemon.wait_for_port(port);
    (daemon, port)
}

fn tables(port: u16) -> String {
    let more = format!("timeout_ms = {LIMIT_MS}\nconcurrency = 1\n");
    let url = format!("http://127.0.0.1:{port}/v1");
    format!("[perception]\ndeadline_ms = {LIMIT_MS}\n{FREE}{}", model("llama", &url, &more))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_real_model_judges_mail_and_is_measured() {
    let scratch = Scratch::new();
    let (_server, port) = tokio::task::block_in_place(|| serve(&scratch));
    let models = tables(port);

    let stand = Stand::start(&models).await;
    let mail = "From: Billing <billing@partner.example>\r\nTo: jo@example.org\r\nSubject: Invoice 4711 overdue\r\n\r\n\
                Dear customer, invoice 4711 of 12 Nov is overdue. Please transfer 1,240.00 EUR by Friday.\r\n";
    stand.provider.deliver(USER, mail);
    let mut client = stand.client().await;
    let began = std::time::Instant::now();
    loop {
        client.command("SELECT Lanes/All").await.unwrap().ok().unwrap();
        if client.command("UID SEARCH ALL").await.unwrap().found().len() == 1 {
            break;
        }
        assert!(began.elapsed() < LIMIT + Duration::from_secs(10), "not shown in time");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let header = stand::header(&mut client, 1).await;
    let trace = stand.trace(&header);
    let scored = &trace.scorers[trace.chosen];
    println!("{}\n{}", header.lines().take(4).collect::<Vec<_>>().join("\n"), trace.explain());
    assert_eq!(scored.scorer, "llama", "{:?}", trace.scorers);
    assert!(scored.input_tokens.is_some_and(|n| n > 100) && scored.output_tokens.is_some_and(|n| n > 10));
    assert!(scored.prompt_sha256.is_some() && scored.features.is_some());
    // It asks by a time: whatever was answered, it is visible.
    assert!(!["silent", "info"].contains(&field(&header, "X-Tollgate-Lane").as_str()));
    stand.gateway.shutdown().await;

    // The same model, measured. What it says is worth nothing; that each item
    // was answered is what makes it a measurement.
    let provider = provider().await;
    tokio::task::block_in_place(|| {
        let gateway = Gateway::prepare(&format!("{models}\n{}", account(&provider)));
        let set = gateway.scratch.file(
            "set.jsonl",
            "{\"id\":\"a\",\"lane\":\"any\",\"from\":\"a@example.com\",\"to\":\"jo@example.org\",\"subject\":\"Lunch\",\
             \"date\":\"Mon, 30 Nov 2026 10:00:00 +0000\",\"text\":\"Are you free for lunch on Thursday?\"}\n",
        );
        let set = set.to_str().expect("a path in UTF-8").to_owned();
        let mut command = gateway.command(&["--json", "eval", "--set", &set, "--scorer", "llama"]);
        let ran = command.output().expect("the binary runs");
        let report: serde_json::Value = serde_json::from_slice(&ran.stdout).expect("a report");
        println!("{}", report["models"]);
        assert!(ran.status.success(), "{report}");
        assert_eq!((&report["scorer"], &report["models"]["measurement"]), (&"llama".into(), &true.into()), "{report}");
    });
}
