//! The certificate that both faces show: the operator's own, or a leaf for
//! this machine made at first start.
//!
//! Promises: what is made is no CA, is for localhost, 127.0.0.1 and ::1 only,
//! and its key is the owner's alone from its first octet on disk. Doesn't
//! know: whether a client trusts it (certs/README.md says how to make it).

use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rcgen::{CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair, KeyUsagePurpose};
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use sha2::{Digest, Sha256};

use super::{Config, TlsFiles};

/// File name of the certificate that is made.
pub const CERT_FILE: &str = "tollgate-cert.pem";
/// File name of its key.
pub const KEY_FILE: &str = "tollgate-key.pem";
/// What the certificate is for.
pub const NAMES: [&str; 3] = ["localhost", "127.0.0.1", "::1"];
/// How long it is valid. Apple's systems refuse server certificates that are
/// valid for longer.
pub const VALID_DAYS: i64 = 825;
/// It is made anew this long before it ends.
pub const RENEW_DAYS: i64 = 30;
const DAY_SECONDS: i64 = 24 * 3600;

/// Why there is no certificate to show.
#[derive(Debug, thiserror::Error)]
pub enum CertError {
    /// A file can't be read or written.
    #[error("{path}: {source}")]
    File {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A file holds no PEM of the right kind.
    #[error("{path}: {why}")]
    Pem {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// Certificate and key don't belong together or can't be used.
    #[error("{path}: the certificate can't be used: {why}")]
    Unusable {
        /// The certificate.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// A certificate could not be made.
    #[error("a certificate can't be made: {0}")]
    Make(String),
}

/// What is shown to clients.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertInfo {
    /// The certificate, PEM.
    pub path: PathBuf,
    /// SHA-256 of the certificate, as clients show it: `AB:CD:…`.
    pub fingerprint_sha256: String,
    /// True when this call made it; clients must be told to trust it.
    pub made_now: bool,
    /// Why an earlier one was replaced by this call.
    pub replaced: Option<Replaced>,
    /// True for the operator's own certificate.
    pub own: bool,
    /// The last second of its validity, since 1970; `None` where an own
    /// certificate can't be read that far.
    pub not_after: Option<i64>,
}

impl CertInfo {
    /// True when it ends within [`RENEW_DAYS`] of `now` or has ended.
    pub fn ends_soon(&self, now: i64) -> bool {
        self.not_after.is_some_and(|end| end - now < RENEW_DAYS * DAY_SECONDS)
    }
}

/// Why a made certificate was made anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replaced {
    /// It has ended or ends within [`RENEW_DAYS`].
    Ending,
    /// It or its key was missing, damaged or not the other's.
    Damaged,
}

impl std::fmt::Display for Replaced {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Replaced::Ending => "the earlier certificate was at its end",
            Replaced::Damaged => "the earlier certificate or its key could not be used",
        })
    }
}

/// TLS for both faces; makes or renews the certificate where it is ours.
pub fn server_config(config: &Config) -> Result<(Arc<ServerConfig>, CertInfo), CertError> {
    match &config.tls {
        Some(files) => {
            let (server, der) = from_files(files)?;
            let info = info(&files.cert, &der, true);
            Ok((server, info))
        }
        None => made(&config.certs_dir, super::now()),
    }
}

/// What [`server_config`] would show, making and changing nothing: `None`
/// where the first start is yet to make a certificate.
pub fn inspect(config: &Config) -> Result<Option<CertInfo>, CertError> {
    let ours = TlsFiles { cert: config.certs_dir.join(CERT_FILE), key: config.certs_dir.join(KEY_FILE) };
    let (files, own) = match &config.tls {
        Some(files) => (files, true),
        None if !ours.cert.exists() => return Ok(None),
        None => (&ours, false),
    };
    let (_, der) = from_files(files)?;
    Ok(Some(info(&files.cert, &der, own)))
}

fn made(folder: &Path, now: i64) -> Result<(Arc<ServerConfig>, CertInfo), CertError> {
    let files = TlsFiles { cert: folder.join(CERT_FILE), key: folder.join(KEY_FILE) };
    let replaced = if files.cert.exists() || files.key.exists() {
        match from_files(&files) {
            Ok((server, der)) => {
                let info = info(&files.cert, &der, false);
                if info.not_after.is_some() && !info.ends_soon(now) {
                    private(&files.key)?;
                    return Ok((server, info));
                }
                Some(Replaced::Ending)
            }
            Err(CertError::File { path, source }) if source.kind() != io::ErrorKind::NotFound => {
                // No right to read it is not a reason to write another.
                return Err(CertError::File { path, source });
            }
            Err(_) => Some(Replaced::Damaged),
        }
    } else {
        None
    };
    make(&files, folder, now)?;
    let (server, der) = from_files(&files)?;
    Ok((server, CertInfo { made_now: true, replaced, ..info(&files.cert, &der, false) }))
}

fn info(path: &Path, der: &CertificateDer<'_>, own: bool) -> CertInfo {
    let digest = Sha256::digest(der);
    let hex: Vec<String> = digest.iter().map(|b| format!("{b:02X}")).collect();
    CertInfo {
        path: path.to_owned(),
        fingerprint_sha256: hex.join(":"),
        made_now: false,
        replaced: None,
        own,
        not_after: super::der::validity(der).map(|(_, end)| end),
    }
}

fn from_files(files: &TlsFiles) -> Result<(Arc<ServerConfig>, CertificateDer<'static>), CertError> {
    let read = |path: &Path| std::fs::read(path).map_err(|source| CertError::File { path: path.to_owned(), source });
    let pem = |path: &Path, why: String| CertError::Pem { path: path.to_owned(), why };
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(&read(&files.cert)?)
        .collect::<Result<_, _>>()
        .map_err(|e| pem(&files.cert, e.to_string()))?;
    let Some(leaf) = chain.first().cloned() else {
        return Err(pem(&files.cert, "holds no certificate".to_owned()));
    };
    let key_pem = zeroize::Zeroizing::new(read(&files.key)?);
    let key = PrivateKeyDer::from_pem_slice(&key_pem).map_err(|e| pem(&files.key, e.to_string()))?;
    let unusable = |e: rustls::Error| CertError::Unusable { path: files.cert.clone(), why: e.to_string() };
    let server = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_protocol_versions(&[&rustls::version::TLS13, &rustls::version::TLS12])
        .map_err(unusable)?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(unusable)?;
    Ok((Arc::new(server), leaf))
}

fn make(files: &TlsFiles, folder: &Path, now: i64) -> Result<(), CertError> {
    let wrong = |e: rcgen::Error| CertError::Make(e.to_string());
    // P-256 is rcgen's default and what every mail client knows.
    let key = KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256).map_err(wrong)?;
    let mut params = CertificateParams::new(NAMES.map(str::to_owned)).map_err(wrong)?;
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, "Tollgate on this machine");
    // A trusted CA could sign for any host; a trusted leaf only stands for itself.
    params.is_ca = IsCa::ExplicitNoCa;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    // A day of slack for a clock that is set back.
    let (year, month, first) = day(now - DAY_SECONDS)?;
    params.not_before = rcgen::date_time_ymd(year, month, first);
    let (year, month, last) = day(now - DAY_SECONDS + VALID_DAYS * DAY_SECONDS)?;
    params.not_after = rcgen::date_time_ymd(year, month, last);
    let cert = params.self_signed(&key).map_err(wrong)?;
    let file = |path: &Path| {
        let path = path.to_owned();
        move |source| CertError::File { path, source }
    };
    std::fs::create_dir_all(folder).map_err(file(folder))?;
    // The key goes first: a crash between the two leaves a pair that doesn't
    // fit, which the next start replaces.
    let key_pem = zeroize::Zeroizing::new(key.serialize_pem());
    super::private::write(&files.key, key_pem.as_bytes()).map_err(file(&files.key))?;
    super::private::write(&files.cert, cert.pem().as_bytes()).map_err(file(&files.cert))?;
    Ok(())
}

/// Year, month and day in UTC of a second since 1970.
fn day(second: i64) -> Result<(i32, u8, u8), CertError> {
    let at = jiff::Timestamp::from_second(second).map_err(|e| CertError::Make(e.to_string()))?;
    let date = at.to_zoned(jiff::tz::TimeZone::UTC).date();
    Ok((i32::from(date.year()), date.month().unsigned_abs(), date.day().unsigned_abs()))
}

fn private(key: &Path) -> Result<(), CertError> {
    let fail = |source| CertError::File { path: key.to_owned(), source };
    let mode = std::fs::metadata(key).map_err(fail)?.permissions().mode();
    if mode & 0o077 != 0 {
        std::fs::set_permissions(key, std::fs::Permissions::from_mode(0o600)).map_err(fail)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_800_000_000;

    fn mode(path: &Path) -> u32 {
        std::fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn the_first_call_makes_a_private_pair_and_the_next_keeps_it() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("certs");
        let (_, first) = made(&folder, NOW).unwrap();
        assert!(first.made_now && first.replaced.is_none() && !first.own);
        assert_eq!((mode(&folder.join(CERT_FILE)), mode(&folder.join(KEY_FILE))), (0o600, 0o600));
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 2);
        let (_, second) = made(&folder, NOW + DAY_SECONDS).unwrap();
        assert!(!second.made_now);
        assert_eq!(second.fingerprint_sha256, first.fingerprint_sha256);
        assert_eq!(second.fingerprint_sha256.len(), 32 * 3 - 1);
    }

    #[test]
    fn a_client_that_trusts_it_can_use_each_name_and_no_other() {
        let dir = tempfile::tempdir().unwrap();
        let now = super::super::now();
        made(dir.path(), now).unwrap();
        let pem = std::fs::read(dir.path().join(CERT_FILE)).unwrap();
        let der = CertificateDer::from_pem_slice(&pem).unwrap();
        let mut roots = rustls::RootCertStore::empty();
        roots.add(der.clone()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier =
            rustls::client::WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build().unwrap();
        let check = |name: &str| {
            let name = rustls::pki_types::ServerName::try_from(name.to_owned()).unwrap();
            use rustls::client::danger::ServerCertVerifier;
            verifier.verify_server_cert(&der, &[], &name, &[], rustls::pki_types::UnixTime::now()).is_ok()
        };
        for name in NAMES {
            assert!(check(name), "{name}");
        }
        assert!(!check("example.org") && !check("127.0.0.2"));
    }

    #[test]
    fn it_is_no_ca() {
        let dir = tempfile::tempdir().unwrap();
        made(dir.path(), NOW).unwrap();
        let pem = std::fs::read(dir.path().join(CERT_FILE)).unwrap();
        let der = CertificateDer::from_pem_slice(&pem).unwrap();
        // RFC 5280 §4.2.1.9: basicConstraints, critical, an empty sequence
        // (cA FALSE is the default and left out in DER).
        let extension = [0x06, 0x03, 0x55, 0x1d, 0x13, 0x01, 0x01, 0xff, 0x04, 0x02, 0x30, 0x00];
        assert!(der.windows(extension.len()).any(|w| w == extension));
    }

    #[test]
    fn it_is_made_anew_at_its_end_and_not_before() {
        let dir = tempfile::tempdir().unwrap();
        let (_, first) = made(dir.path(), NOW).unwrap();
        let end = first.not_after.unwrap();
        assert!(end - NOW <= VALID_DAYS * DAY_SECONDS);
        let (_, kept) = made(dir.path(), end - RENEW_DAYS * DAY_SECONDS).unwrap();
        assert!(!kept.made_now);
        let (_, anew) = made(dir.path(), end - RENEW_DAYS * DAY_SECONDS + 1).unwrap();
        assert_eq!((anew.made_now, anew.replaced), (true, Some(Replaced::Ending)));
        assert_ne!(anew.fingerprint_sha256, first.fingerprint_sha256);
    }

    #[test]
    fn a_pair_that_does_not_fit_is_made_anew() {
        let dir = tempfile::tempdir().unwrap();
        let other = tempfile::tempdir().unwrap();
        made(dir.path(), NOW).unwrap();
        made(other.path(), NOW).unwrap();
        std::fs::copy(other.path().join(KEY_FILE), dir.path().join(KEY_FILE)).unwrap();
        let (_, anew) = made(dir.path(), NOW).unwrap();
        assert_eq!(anew.replaced, Some(Replaced::Damaged));
        std::fs::remove_file(dir.path().join(KEY_FILE)).unwrap();
        assert_eq!(made(dir.path(), NOW).unwrap().1.replaced, Some(Replaced::Damaged));
    }

    #[test]
    fn a_key_that_others_can_read_is_made_private_again() {
        let dir = tempfile::tempdir().unwrap();
        made(dir.path(), NOW).unwrap();
        let key = dir.path().join(KEY_FILE);
        std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o644)).unwrap();
        made(dir.path(), NOW).unwrap();
        assert_eq!(mode(&key), 0o600);
    }

    #[test]
    fn own_files_are_used_and_never_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let long_ago = made(dir.path(), 1_000_000_000).unwrap().1;
        let mut config = Config::embedded(dir.path());
        config.tls = Some(TlsFiles { cert: dir.path().join(CERT_FILE), key: dir.path().join(KEY_FILE) });
        let (_, info) = server_config(&config).unwrap();
        assert!(info.own && !info.made_now && info.ends_soon(NOW));
        assert_eq!(info.fingerprint_sha256, long_ago.fingerprint_sha256);
        std::fs::write(dir.path().join(KEY_FILE), "no key").unwrap();
        assert!(matches!(server_config(&config), Err(CertError::Pem { .. })));
    }
}
