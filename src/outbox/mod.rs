//! Holding, approving and dispatching submissions.
//!
//! Promises: what [`Outbox::hold`] returned an id for is on disk; every
//! transition is one atomic compare-and-set together with its ledger entry;
//! nothing is dispatched but the approved octets, and never twice by itself.
