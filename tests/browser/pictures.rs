//! Pictures for docs/, on request.

use std::path::Path;

use tollgate::account::demo::{ADDRESS, PIN};

use crate::driver::Chromium;
use crate::{CALM, ODD, gateway, origin, submit};

/// Names the folder into which pictures go; without, none is kept.
const PICTURES: &str = "TOLLGATE_TEST_SCREENSHOTS";

#[test]
fn the_pages_on_phone_and_desktop_in_light_and_dark() {
    let gateway = gateway("passkey");
    let chromium = Chromium::start();
    chromium.authenticator();
    chromium.sign_in(&origin(&gateway), ADDRESS, PIN);
    chromium.open(&format!("{}/approvers", origin(&gateway)));
    chromium.type_into("#name-by-pin", "This computer");
    chromium.type_into("#pin-add", PIN);
    chromium.click("form[action='/approvers/add'] button");
    chromium.wait_for("This computer");
    let odd = submit(&gateway, &["bo@example.com", "secret@example.net"], ODD);
    submit(&gateway, &["bo@example.com"], CALM);
    let odd = format!("/held/{odd}");
    let wanted = std::env::var_os(PICTURES);
    for (device, size, mobile) in [("desktop", (1280, 900), false), ("phone", (390, 844), true)] {
        for (scheme, dark) in [("light", false), ("dark", true)] {
            chromium.device(size, mobile, dark);
            for (name, path) in [("held", "/"), ("message", odd.as_str()), ("approvers", "/approvers")] {
                chromium.open(&format!("{}{path}", origin(&gateway)));
                let paper = chromium.run("return getComputedStyle(document.body).backgroundColor");
                assert_eq!(paper == "rgb(17, 21, 26)", dark, "{name} {scheme}: {paper}");
                // The list and the approvers look alike on a phone; two of each are enough.
                if let Some(folder) = wanted.as_ref().filter(|_| name == "message" || device == "desktop") {
                    chromium.picture(&Path::new(folder).join(format!("approval-{name}-{device}-{scheme}.png")));
                }
            }
        }
    }
}
