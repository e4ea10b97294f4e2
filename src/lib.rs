//! Tollgate: an SMTP and IMAP gateway between a person's mail client and
//! their provider.
//!
//! # Words
//! - **lane**: one of five places that an inbound message can belong to.
//! - **feature**: one of four numbers in `0..=1` that a scorer returns.
//! - **signal**: a fact about a message, named by a short code.
//! - **stamp**: the header fields that the gateway prepends to what it shows.
//! - **floor**: what never happens for an agent without a receipt.
//! - **receipt**: a signed record that a person approved these very octets.
//! - **release**: the value that opens the provider's DATA; only `floor` makes one.
//! - **key**: an app password that only this gateway understands.
//! - **grant**: what a key may do, per verb.
//!
//! # The invariants
//! See `SECURITY.md`: each is a claim there, with the test that tries to break it.
//!
//! # The modules, in dependency order
//! An arrow runs downward only; `tests/architecture.rs` reads the `use` lines
//! and fails on one that runs up.
//!
//! | level | module | what it knows |
//! |---|---|---|
//! | 0 | [`mail`] | addresses, header fields, MIME for showing, canonical forms; pure |
//! | 0 | [`wire`] | IMAP and SMTP framing over bytes; pure |
//! | 1 | [`lane`] | features, signals, rule, guards, trace; pure |
//! | 1 | [`floor`] | actions, payload, receipt, ledger, states, release; pure |
//! | 2 | [`perceive`] | extraction, deadlines, context, offline scorer, models; pure but for `model.rs` |
//! | 2 | [`store`] | the `Store` trait, redb, content-addressed files |
//! | 3 | [`config`] | `gateway.toml` into typed values |
//! | 4 | [`account`] | accounts, keys, grants, secrets, authentication |
//! | 5 | [`downstream`] | connections of clients: TLS, STARTTLS |
//! | 5 | [`upstream`] | connections to the provider |
//! | 6 | [`outbox`] | holding, approving, dispatching |
//! | 7 | [`imap`] | the mirror, views, and the IMAP face |
//! | 7 | [`smtp`] | the SMTP face |
//! | 7 | [`web`] | the approval page |
//! | 8 | [`demo`] | the embedded provider and its sample mail |
//! | 9 | [`gateway`] | wiring, supervision, shutdown |
//! | 10 | [`cli`] | one file per verb |

pub mod account;
pub mod cli;
pub mod config;
pub mod demo;
pub mod downstream;
pub mod floor;
pub mod gateway;
pub mod imap;
pub mod lane;
pub mod mail;
pub mod outbox;
pub mod perceive;
pub mod smtp;
pub mod store;
pub mod upstream;
pub mod web;
pub mod wire;
