//! What a file is by its name, its declared type and its first octets.

/// Extensions of files that run, or that run what they hold.
const RUNNABLE: [&str; 62] = [
    "exe",
    "com",
    "scr",
    "pif",
    "bat",
    "cmd",
    "msi",
    "msp",
    "msix",
    "appx",
    "cpl",
    "dll",
    "sys",
    "ocx",
    "jar",
    "js",
    "jse",
    "mjs",
    "vbs",
    "vbe",
    "wsf",
    "wsh",
    "hta",
    "ps1",
    "psm1",
    "lnk",
    "url",
    "reg",
    "inf",
    "chm",
    "hlp",
    "gadget",
    "application",
    "scf",
    "sct",
    "sh",
    "bash",
    "command",
    "app",
    "dmg",
    "pkg",
    "deb",
    "rpm",
    "apk",
    "ipa",
    "run",
    "docm",
    "dotm",
    "xlsm",
    "xltm",
    "xlam",
    "pptm",
    "potm",
    "ppam",
    "iso",
    "img",
    "vhd",
    "vhdx",
    "html",
    "htm",
    "svg",
    "one",
];

/// Types that say the same.
const RUNNABLE_TYPES: [&str; 14] = [
    "application/x-msdownload",
    "application/x-msdos-program",
    "application/vnd.microsoft.portable-executable",
    "application/x-executable",
    "application/x-sh",
    "application/javascript",
    "text/javascript",
    "application/java-archive",
    "application/hta",
    "application/x-ms-shortcut",
    "application/x-msi",
    "application/vnd.android.package-archive",
    "image/svg+xml",
    "application/x-elf",
];

/// Extensions that make the one before them look harmless.
const HARMLESS: [&str; 20] = [
    "pdf", "doc", "docx", "xls", "xlsx", "ppt", "pptx", "odt", "ods", "txt", "csv", "rtf", "jpg", "jpeg", "png", "gif",
    "mp3", "mp4", "zip", "eml",
];

/// Whether a file of this name or type can run.
pub(super) fn runs(name: Option<&str>, content_type: &str) -> bool {
    let extension = name.and_then(extension);
    extension.is_some_and(|e| RUNNABLE.contains(&e.as_str())) || RUNNABLE_TYPES.contains(&content_type)
}

/// Whether the name has the form `name.pdf.exe`: a harmless extension, then another.
pub(super) fn double_extension(name: &str) -> bool {
    let clean = clean(name);
    let mut parts = clean.rsplit('.');
    let (Some(last), Some(before)) = (parts.next(), parts.next()) else { return false };
    parts.next().is_some()
        && HARMLESS.contains(&before.trim())
        && last.trim() != before.trim()
        && (RUNNABLE.contains(&last.trim()) || !HARMLESS.contains(&last.trim()))
        && !["gz", "bz2", "xz", "zst", "asc", "sig", "p7m", "p7s", "gpg"].contains(&last.trim())
}

fn extension(name: &str) -> Option<String> {
    clean(name).rsplit_once('.').map(|(_, e)| e.trim().to_owned())
}

/// Windows drops trailing dots and blanks; invisible characters are no letters.
fn clean(name: &str) -> String {
    let seen: String = name.chars().filter(|c| !c.is_control() && !('\u{200b}'..='\u{206f}').contains(c)).collect();
    seen.trim_end_matches(['.', ' ']).to_lowercase()
}

/// What the first octets say, where they contradict the declared type.
pub(super) fn contradicts(content_type: &str, octets: &[u8]) -> Option<&'static str> {
    const MAGIC: [(&[u8], &str, &[&str]); 7] = [
        (b"MZ", "a Windows program", &["portable-executable", "msdownload", "msdos-program", "octet-stream"]),
        (b"\x7fELF", "a Linux program", &["executable", "elf", "octet-stream", "sharedlib"]),
        (b"#!", "a script", &["x-sh", "script", "text/", "octet-stream", "python", "perl"]),
        (b"%PDF-", "a PDF", &["pdf", "octet-stream"]),
        (
            b"PK\x03\x04",
            "a ZIP archive or office document",
            &[
                "zip",
                "officedocument",
                "opendocument",
                "octet-stream",
                "java-archive",
                "epub",
                "macroenabled",
                "package",
            ],
        ),
        (b"\xd0\xcf\x11\xe0", "an old office document", &["msword", "ms-", "excel", "powerpoint", "octet-stream"]),
        (b"\x89PNG", "a PNG image", &["png", "octet-stream"]),
    ];
    let (_, found, fitting) = MAGIC.iter().find(|(magic, _, _)| octets.starts_with(magic))?;
    (!fitting.iter().any(|f| content_type.contains(f))).then_some(*found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_types_that_run_are_known() {
        assert!(runs(Some("Invoice.EXE"), "application/octet-stream"));
        assert!(runs(Some("a.exe. "), "application/pdf"));
        assert!(runs(Some("a.e\u{200b}xe"), "application/pdf"));
        assert!(runs(None, "application/x-sh"));
        assert!(!runs(Some("letter.pdf"), "application/pdf"));
        assert!(!runs(None, "text/plain"));
    }

    #[test]
    fn a_double_extension_is_one_and_a_version_is_none() {
        for name in ["invoice.pdf.exe", "a.b.docx.js", "photo.jpg.scr", "x.pdf.unknown"] {
            assert!(double_extension(name), "{name}");
        }
        for name in ["invoice.pdf", "report.v2.pdf", "a.tar.gz", "letter.pdf.asc", "2026.11.29.txt", ".pdf"] {
            assert!(!double_extension(name), "{name}");
        }
    }

    #[test]
    fn octets_that_contradict_the_type_are_named() {
        assert_eq!(contradicts("application/pdf", b"MZ\x90"), Some("a Windows program"));
        assert_eq!(contradicts("application/pdf", b"%PDF-1.7"), None);
        assert_eq!(contradicts("image/png", b"%PDF-1.7"), Some("a PDF"));
    }
}
