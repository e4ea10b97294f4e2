//! A CA and a leaf for the peers.

use std::fs;
use std::path::{Path, PathBuf};

use rcgen::{BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair};

/// PEM files of a CA and of a server under it.
#[derive(Debug)]
pub(crate) struct Authority {
    pub(crate) ca: PathBuf,
    pub(crate) cert: PathBuf,
    pub(crate) key: PathBuf,
}

/// Makes both in `folder`. The leaf says CA:FALSE; rustls refuses a CA's
/// certificate as a server's.
pub(crate) fn authority(folder: &Path) -> Authority {
    let mut ca = CertificateParams::default();
    ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    ca.distinguished_name.push(DnType::CommonName, "Test CA");
    let ca_key = KeyPair::generate().unwrap();
    let ca_pem = ca.self_signed(&ca_key).unwrap().pem();
    let issuer = Issuer::new(ca, ca_key);
    let mut leaf = CertificateParams::new(["localhost".to_owned(), "127.0.0.1".to_owned()]).unwrap();
    leaf.is_ca = IsCa::ExplicitNoCa;
    leaf.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    leaf.distinguished_name.push(DnType::CommonName, "localhost");
    let leaf_key = KeyPair::generate().unwrap();
    let leaf_pem = leaf.signed_by(&leaf_key, &issuer).unwrap().pem();
    let made = Authority { ca: folder.join("ca.pem"), cert: folder.join("cert.pem"), key: folder.join("key.pem") };
    fs::write(&made.ca, ca_pem).unwrap();
    fs::write(&made.cert, leaf_pem).unwrap();
    fs::write(&made.key, leaf_key.serialize_pem()).unwrap();
    made
}
