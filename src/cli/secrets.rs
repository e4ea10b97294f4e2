//! Secrets from a terminal or a file, never from an argument.

use std::io::{BufRead, IsTerminal, Read};
use std::path::Path;

use zeroize::Zeroizing;

use super::exit::{Exit, Failure};

/// Fewest digits of a PIN.
pub(super) const MIN_PIN_DIGITS: usize = 6;
/// Most characters of a PIN.
const MAX_PIN_CHARS: usize = 64;
/// Most octets read of a file's first line.
const MAX_LINE: u64 = 4096;

/// A PIN, from `file` or asked twice.
pub(super) fn pin(file: Option<&Path>) -> Result<Zeroizing<String>, Failure> {
    let pin = match file {
        Some(file) => first_line(file)?,
        None => {
            let pin = ask(&format!("PIN for approvals ({MIN_PIN_DIGITS} digits or more): "))?;
            if *ask("The PIN again: ")? != *pin {
                return Err(Failure::new(Exit::Data, "pin", "the two PINs differ"));
            }
            pin
        }
    };
    check_pin(&pin)?;
    Ok(pin)
}

fn check_pin(pin: &str) -> Result<(), Failure> {
    let weak = |why: String| Err(Failure::new(Exit::Data, "pin", why));
    if pin.len() < MIN_PIN_DIGITS || pin.len() > MAX_PIN_CHARS || !pin.bytes().all(|b| b.is_ascii_digit()) {
        return weak(format!("a PIN is {MIN_PIN_DIGITS} to {MAX_PIN_CHARS} digits"));
    }
    let steps: Vec<i16> = pin.as_bytes().windows(2).map(|w| i16::from(w[1]) - i16::from(w[0])).collect();
    if steps.iter().all(|s| *s == 0) || steps.iter().all(|s| *s == 1) || steps.iter().all(|s| *s == -1) {
        return weak("a PIN of equal or counting digits is the first that is tried".to_owned());
    }
    Ok(())
}

/// A password, from `file` or asked.
pub(super) fn password(file: Option<&Path>, prompt: &str) -> Result<Zeroizing<String>, Failure> {
    let password = match file {
        Some(file) => first_line(file)?,
        None => ask(prompt)?,
    };
    if password.is_empty() {
        return Err(Failure::new(Exit::Data, "password", "the password is empty"));
    }
    Ok(password)
}

/// The first line of a file, or of standard input for `-`.
fn first_line(file: &Path) -> Result<Zeroizing<String>, Failure> {
    let unreadable = |e: std::io::Error| Failure::new(Exit::NoInput, "input", format!("{}: {e}", file.display()));
    let mut line = Zeroizing::new(String::new());
    if file == Path::new("-") {
        // Locked and unbuffered beyond the line, so that a second secret can follow.
        std::io::stdin().lock().take(MAX_LINE).read_line(&mut line).map_err(unreadable)?;
    } else {
        let opened = std::fs::File::open(file).map_err(unreadable)?;
        std::io::BufReader::new(opened.take(MAX_LINE)).read_line(&mut line).map_err(unreadable)?;
    }
    let end = line.trim_end_matches(['\r', '\n']).len();
    line.truncate(end);
    Ok(line)
}

fn ask(prompt: &str) -> Result<Zeroizing<String>, Failure> {
    if !std::io::stdin().is_terminal() {
        let message = "no terminal to ask on; name a file (`-` for standard input)";
        return Err(Failure::new(Exit::Usage, "terminal", message));
    }
    rpassword::prompt_password(prompt)
        .map(Zeroizing::new)
        .map_err(|e| Failure::new(Exit::NoInput, "terminal", format!("the terminal can't be read: {e}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pins_are_six_digits_or_more_and_not_the_first_guess() {
        for good in ["246810", "805173", "9081726354"] {
            check_pin(good).unwrap();
        }
        for bad in ["", "24681", "abcdef", "2468 0", "000000", "123456", "987654"] {
            assert!(check_pin(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_file_gives_its_first_line() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("pin");
        std::fs::write(&file, "246810\r\nmore").unwrap();
        assert_eq!(*pin(Some(&file)).unwrap(), "246810");
        assert!(pin(Some(&dir.path().join("none"))).is_err());
    }
}
