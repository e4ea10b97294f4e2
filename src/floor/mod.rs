//! What never happens for an agent without a receipt.
//!
//! Promises: a [`release::Release`] can be had only from a verified, unexpired
//! receipt whose payload names these octets and this envelope, or from the
//! decision that no hold applies to a person's own mail. Pure: time and
//! nonces are arguments. Doesn't know: sockets, files, pages.
