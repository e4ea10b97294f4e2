//! The fixed credentials of the embedded account.
//!
//! They are public: everybody who reads this file has them. They are accepted
//! for an account of the embedded provider only, whose mail is sample mail,
//! and nothing in the configuration of another account can enable them.

/// The embedded account's address.
pub const ADDRESS: &str = crate::config::EMBEDDED_ADDRESS;
/// The key of the sample person's mail client.
pub const PERSON_KEY: &str = "tg1_demoperson_thiskeyisthesameoneverymachine22";
/// The key of the sample agent.
pub const AGENT_KEY: &str = "tg1_demoagent_everyonewhoreadsthesourcehasit22";
/// The sample person's PIN on the approval page.
pub const PIN: &str = "246810";
/// The account's password at the embedded provider.
pub const PROVIDER_PASSWORD: &str = "the-embedded-provider-listens-on-loopback";

/// Id and name of each fixed key, with its text.
pub(crate) const KEYS: [(&str, &str, super::Role); 2] =
    [(PERSON_KEY, "demo person", super::Role::Person), (AGENT_KEY, "demo agent", super::Role::Agent)];

/// True when `id` names one of the fixed keys.
pub fn is_demo_key(id: &super::KeyId) -> bool {
    KEYS.iter().any(|(text, _, _)| super::key::KeyText::parse(text).is_some_and(|k| k.id == id.as_str()))
}
