//! Keys against a store on disk.

use std::path::Path;

use super::*;
use crate::config::{Endpoint, Network, SecretSource, TlsMode};
use crate::store::redb::RedbStore;

fn real(address: &str) -> AccountConfig {
    let endpoint = |port| Endpoint { host: "mail.example.com".into(), port, tls: TlsMode::Implicit, ca: None };
    let network = Network {
        imap: endpoint(993),
        imap_user: address.into(),
        smtp: endpoint(465),
        smtp_user: address.into(),
        secret: SecretSource::Inline("provider password".into()),
    };
    let mut account = Config::embedded(Path::new("/nowhere")).accounts.remove(0);
    account.address = Address::parse(address).unwrap();
    account.provider = Provider::Network(Box::new(network));
    account
}

fn config(folder: &Path, others: &[&str]) -> Arc<Config> {
    let mut config = Config::embedded(folder);
    config.accounts.extend(others.iter().map(|a| real(a)));
    Arc::new(config)
}

fn open(folder: &Path, config: &Arc<Config>) -> Arc<Accounts> {
    let store = Arc::new(RedbStore::open(&folder.join("state")).unwrap());
    Accounts::new(config.clone(), store).unwrap()
}

#[tokio::test]
async fn a_key_opens_its_own_account_by_any_writing_of_its_address() {
    let dir = tempfile::tempdir().unwrap();
    let accounts = open(dir.path(), &config(dir.path(), &["jo@example.com"]));
    let jo = accounts.find("Jo@EXAMPLE.com").unwrap();
    let key = accounts.add_key(&jo, Role::Agent, " helper ").await.unwrap();
    let principal = accounts.authenticate("JO@example.com", &key).unwrap();
    assert_eq!((principal.account, principal.role, principal.key_name.as_str()), (jo, Role::Agent, "helper"));
    assert_eq!(principal.grants, Grants::default_agent());
    assert!(!*principal.revoked.borrow());
}

#[tokio::test]
async fn everything_else_is_refused_in_the_same_way() {
    let dir = tempfile::tempdir().unwrap();
    let accounts = open(dir.path(), &config(dir.path(), &["jo@example.com"]));
    let jo = accounts.find("jo@example.com").unwrap();
    let key = accounts.add_key(&jo, Role::Person, "mail client").await.unwrap();
    let mut wrong = key.clone();
    wrong.pop();
    wrong.push(if key.ends_with('a') { 'b' } else { 'a' });
    let unknown = key.replacen(key.split('_').nth(1).unwrap(), "aaaaaaaaaa", 1);
    for (user, password) in [
        ("jo@example.com", wrong.as_str()),
        ("jo@example.com", unknown.as_str()),
        ("jo@example.com", ""),
        ("jo@example.com", "provider password"),
        ("demo@example.org", key.as_str()),
        ("nobody@example.org", key.as_str()),
        ("", key.as_str()),
        ("jo@example.com", demo::PERSON_KEY),
    ] {
        assert_eq!(accounts.authenticate(user, password).unwrap_err(), AuthError, "{user} {password}");
    }
    accounts.authenticate("jo@example.com", &key).unwrap();
}

#[tokio::test]
async fn a_revoked_key_ends_its_sessions_and_stays_revoked_after_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let config = config(dir.path(), &["jo@example.com"]);
    let accounts = open(dir.path(), &config);
    let jo = accounts.find("jo@example.com").unwrap();
    let key = accounts.add_key(&jo, Role::Agent, "one").await.unwrap();
    let other = accounts.add_key(&jo, Role::Agent, "two").await.unwrap();
    let mut session = accounts.authenticate("jo@example.com", &key).unwrap();
    let unharmed = accounts.authenticate("jo@example.com", &other).unwrap();
    let info = accounts.revoke(&session.key).await.unwrap();
    assert!(info.revoked_at.is_some());
    session.revoked.changed().await.unwrap();
    assert!(*session.revoked.borrow() && !*unharmed.revoked.borrow());
    assert_eq!(accounts.authenticate("jo@example.com", &key).unwrap_err(), AuthError);
    assert_eq!(accounts.revoke(&session.key).await.unwrap().revoked_at, info.revoked_at);

    drop(accounts);
    let accounts = open(dir.path(), &config);
    assert_eq!(accounts.authenticate("jo@example.com", &key).unwrap_err(), AuthError);
    accounts.authenticate("jo@example.com", &other).unwrap();
    assert_eq!(accounts.list_keys(Some(&jo)).len(), 2);
    assert_eq!(accounts.list_keys(accounts.find("demo@example.org").as_ref()).len(), 0);
    let unknown = accounts.revoke(&KeyId("nosuchkey".into())).await;
    assert!(matches!(unknown, Err(AccountsError::NoKey(_))));
}

#[tokio::test]
async fn demo_keys_open_the_embedded_account_and_no_real_one() {
    let dir = tempfile::tempdir().unwrap();
    let with_demo = config(dir.path(), &["jo@example.com"]);
    let accounts = open(dir.path(), &with_demo);
    accounts.ensure_demo_keys().await.unwrap();
    let person = accounts.authenticate(demo::ADDRESS, demo::PERSON_KEY).unwrap();
    let agent = accounts.authenticate(demo::ADDRESS, demo::AGENT_KEY).unwrap();
    assert_eq!((person.role, agent.role), (Role::Person, Role::Agent));
    assert_eq!(accounts.authenticate("jo@example.com", demo::PERSON_KEY).unwrap_err(), AuthError);
    accounts.ensure_demo_keys().await.unwrap();
    assert_eq!(accounts.list_keys(None).len(), 2);

    // The same state, and the address now at a real provider.
    drop(accounts);
    let mut without = Config::embedded(dir.path());
    without.accounts = vec![real(demo::ADDRESS)];
    let accounts = open(dir.path(), &Arc::new(without));
    accounts.ensure_demo_keys().await.unwrap();
    for key in [demo::PERSON_KEY, demo::AGENT_KEY] {
        assert_eq!(accounts.authenticate(demo::ADDRESS, key).unwrap_err(), AuthError);
    }
}

#[tokio::test]
async fn a_revoked_demo_key_is_not_made_again() {
    let dir = tempfile::tempdir().unwrap();
    let accounts = open(dir.path(), &config(dir.path(), &[]));
    accounts.ensure_demo_keys().await.unwrap();
    let agent = accounts.authenticate(demo::ADDRESS, demo::AGENT_KEY).unwrap();
    accounts.revoke(&agent.key).await.unwrap();
    accounts.ensure_demo_keys().await.unwrap();
    assert_eq!(accounts.authenticate(demo::ADDRESS, demo::AGENT_KEY).unwrap_err(), AuthError);
}

#[tokio::test]
async fn keys_of_an_account_that_is_no_longer_configured_open_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let accounts = open(dir.path(), &config(dir.path(), &["jo@example.com"]));
    let jo = accounts.find("jo@example.com").unwrap();
    let key = accounts.add_key(&jo, Role::Person, "x").await.unwrap();
    drop(accounts);
    let accounts = open(dir.path(), &config(dir.path(), &[]));
    assert_eq!(accounts.authenticate("jo@example.com", &key).unwrap_err(), AuthError);
    assert!(matches!(accounts.add_key(&jo, Role::Person, "x").await, Err(AccountsError::NoAccount(_))));
}

#[tokio::test]
async fn the_store_holds_no_key_that_could_be_presented() {
    let dir = tempfile::tempdir().unwrap();
    let accounts = open(dir.path(), &config(dir.path(), &[]));
    let demo = accounts.find(demo::ADDRESS).unwrap();
    let key = accounts.add_key(&demo, Role::Person, "x").await.unwrap();
    let secret = key.rsplit('_').next().unwrap().as_bytes().to_vec();
    drop(accounts);
    let mut files = vec![dir.path().join("state")];
    while let Some(path) = files.pop() {
        if path.is_dir() {
            files.extend(std::fs::read_dir(&path).unwrap().map(|e| e.unwrap().path()));
        } else {
            let octets = std::fs::read(&path).unwrap();
            assert!(!octets.windows(secret.len()).any(|w| w == secret), "{}", path.display());
        }
    }
}

#[tokio::test]
async fn names_are_bounded_and_passwords_come_from_the_configured_place() {
    let dir = tempfile::tempdir().unwrap();
    let accounts = open(dir.path(), &config(dir.path(), &["jo@example.com"]));
    let jo = accounts.find("jo@example.com").unwrap();
    for name in ["", "  ", "a\nb", &"x".repeat(MAX_KEY_NAME_CHARS + 1)] {
        assert!(matches!(accounts.add_key(&jo, Role::Agent, name).await, Err(AccountsError::Name)), "{name:?}");
    }
    assert_eq!(accounts.password(&jo).await.unwrap(), "provider password");
    let demo = accounts.find(demo::ADDRESS).unwrap();
    assert_eq!(accounts.password(&demo).await.unwrap(), demo::PROVIDER_PASSWORD);
    let nobody = AccountId("nobody@example.org".into());
    assert!(matches!(accounts.password(&nobody).await, Err(SecretError::NoAccount)));
}

/// An account that stores no password, and one with keys from before it did.
async fn own_login_account(folder: &Path) -> (Arc<Accounts>, String) {
    let stored = config(folder, &["jo@example.com", "kim@example.com"]);
    let key = {
        let accounts = open(folder, &stored);
        let jo = accounts.find("jo@example.com").unwrap();
        accounts.add_key(&jo, Role::Person, "from before").await.unwrap()
    };
    let mut config = Config::clone(&stored);
    let Provider::Network(network) = &mut config.accounts[1].provider else { panic!() };
    network.secret = SecretSource::Login;
    (open(folder, &Arc::new(config)), key)
}

#[tokio::test]
async fn without_a_stored_password_there_are_no_keys() {
    let dir = tempfile::tempdir().unwrap();
    let (accounts, key) = own_login_account(dir.path()).await;
    let jo = accounts.find("jo@example.com").unwrap();
    for role in [Role::Person, Role::Agent] {
        let refused = accounts.add_key(&jo, role, "new").await.unwrap_err();
        assert!(matches!(&refused, AccountsError::NoSecret(id) if *id == jo), "{refused}");
    }
    assert_eq!(accounts.authenticate("jo@example.com", &key).unwrap_err(), AuthError, "a key from before");
    assert!(matches!(accounts.password(&jo).await, Err(SecretError::OwnLogin)));
}

#[tokio::test]
async fn only_a_password_for_the_account_itself_is_tried_at_a_provider() {
    let dir = tempfile::tempdir().unwrap();
    let (accounts, key) = own_login_account(dir.path()).await;
    let own = accounts.own_login("Jo@EXAMPLE.com", "its own").unwrap();
    assert_eq!((own.account().as_str(), own.password().as_str()), ("jo@example.com", "its own"));
    // Keys never go upstream, whosever they are.
    for password in ["", key.as_str(), demo::PERSON_KEY] {
        assert!(accounts.own_login("jo@example.com", password).is_none(), "{password}");
    }
    for user in ["kim@example.com", "demo@example.org", "jo", "nobody@example.com", ""] {
        assert!(accounts.own_login(user, "its own").is_none(), "{user}");
    }
}
