//! Thunderbird: lanes in INBOX, stamps, a drag between lanes, a notice.

use serde_json::{Value, json};

use crate::clients_of;
use crate::common::eventually;
use crate::common::mail::{Message, message, stamp, unstamped, with_fields};
use crate::common::world::World;
use crate::holdings::{at_the_provider, with_crlf};
use crate::marionette::Thunderbird;
use crate::table;

const DRAGGED: &str = "Question about your oak tables";
const APPROVER_SUBJECT: &str = "Approval";

/// Mail for a picture.
fn mails(to: &str) -> Vec<Message> {
    let plain = |from: &str, subject: &str, text: &str| message(from, to, subject, text);
    vec![
        plain("Priya Raman <priya.raman@example.net>", DRAGGED, "Hello Alice,\r\n\r\ndo you make them in other sizes?"),
        plain(
            "Jonas Weber <jonas.weber@example.org>",
            "Could we move Thursday's meeting?",
            "Hi Alice,\r\n\r\ncan we move our meeting from Thursday to Friday at 14:00?\r\n\r\nJonas",
        ),
        plain(
            "Example Accounts <no-reply@accounts.example.com>",
            "481 207 is your sign-in code",
            "Your sign-in code is 481 207. It is valid for ten minutes.",
        ),
        plain(
            "Mina Okafor <mina.okafor@example.org>",
            "Urgent: the board needs your answer today",
            "Alice, please confirm the figures by 17:00 today. The board meets at 18:00.",
        ),
        plain(
            "Example Store <orders@store.example.com>",
            "Your receipt 4711",
            "Thank you for your order. You paid 23.50 EUR. This is your receipt, nothing is left to do.",
        ),
        with_fields(
            &format!(
                "From: Shop <news@shop.example.net>\r\nTo: {to}\r\nSubject: Sale: 50 % off everything\r\n\
                 List-Unsubscribe: <https://shop.example.net/u>\r\nPrecedence: bulk\r\n"
            ),
            "Only this week. Unsubscribe at any time.",
        ),
        plain(
            "Camille Laurent <camille.laurent@example.net>",
            "Notes from the workshop",
            "Here are my notes, as promised.",
        ),
    ]
}

/// Subject, Message-ID and UID of what INBOX shows to a session.
#[track_caller]
fn inbox(world: &World) -> Vec<(u32, Vec<u8>)> {
    let mut session = world.person(&world.alice);
    session.ok("EXAMINE INBOX");
    session.search("ALL").into_iter().map(|uid| (uid, session.body(uid))).collect()
}

fn position(value: &Value) -> (i64, i64) {
    (value[0].as_i64().unwrap(), value[1].as_i64().unwrap())
}

#[test]
fn thunderbird_shows_lanes_and_stamps_drags_and_dismisses_a_notice() {
    let world = World::with_preset("calm");
    let mails = mails(&world.alice.address);
    for mail in &mails {
        world.dovecot.deliver("alice", "ann@example.com", &mail.octets);
    }
    let mut session = world.person(&world.alice);
    eventually("all mail to be placed", || {
        session.ok("SELECT \"Lanes/All\"");
        (session.search("ALL").len() == mails.len()).then_some(())
    });
    let mut tb = Thunderbird::start(&clients_of::through(&world));

    // INBOX with lanes: the mailboxes, the messages, their keywords.
    let expected = inbox(&world);
    tb.js("server.performExpand(window.msgWindow); await show('INBOX')", json!([]));
    let list = tb.js("await until('rows', () => headers().length == args[0]); return list()", json!([expected.len()]));
    let folders = tb.js(
        "await until('lanes', () => folder('Lanes/Silent') && folder('Archive'));
         return server.rootFolder.descendants.map(f => f.URI.split('@localhost/')[1])",
        json!([]),
    );
    for wanted in ["INBOX", "Lanes", "Lanes/Info", "Lanes/Silent", "Sent", "Trash", "Archive"] {
        assert!(folders.as_array().unwrap().iter().any(|f| f == wanted), "{folders}");
    }
    for (uid, octets) in &expected {
        let shown =
            list.as_array().unwrap().iter().find(|m| m["uid"] == *uid).unwrap_or_else(|| panic!("{uid}: {list}"));
        assert_eq!(shown["size"], octets.len(), "{shown}");
        let (stamps, _) = unstamped(octets);
        let keyword = format!("$tollgate{}", stamp(&stamps, "X-Tollgate-Lane").unwrap());
        assert!(shown["keywords"].as_str().unwrap().contains(&keyword), "{shown}: {keyword}");
    }
    tb.js("await sleep(700)", json!([]));
    tb.picture("thunderbird-inbox");

    // A message's stamps, in its source.
    let select = "pane().threadTree.selectedIndex = await until(args[0], () => row(args[0]) >= 0 && [row(args[0])]).then(r => r[0]);
                  const body = () => pane().messageBrowser.contentDocument.getElementById('messagepane').contentDocument.body;
                  await until('the text', () => body().innerText.includes(args[1]));";
    tb.js(select, json!([DRAGGED, "other sizes"]));
    let text = tb.js(&format!("return await source(headers()[row({})])", json!(DRAGGED)), json!([]));
    // One character an octet.
    let octets: Vec<u8> = text.as_str().unwrap().chars().map(|c| u8::try_from(u32::from(c)).unwrap()).collect();
    let dragged = &mails[0];
    let theirs = expected.iter().find(|(_, o)| o.ends_with(&dragged.octets)).expect("it is in INBOX");
    assert_eq!(with_crlf(&octets), theirs.1, "Thunderbird's source is the view's octets");
    tb.js(
        "pane().messageBrowser.contentWindow.commandController.doCommand('cmd_viewPageSource');
         const opened = () => [...Services.wm.getEnumerator(null)].find(w => w.location.href.includes('viewSource'));
         const w = await until('the source', () => opened()?.document.getElementById('content')?.currentURI && opened());
         w.moveTo(290, 150);
         w.resizeTo(860, 520);
         await sleep(1200);",
        json!([]),
    );
    tb.picture("thunderbird-stamps");
    tb.js("[...Services.wm.getEnumerator(null)].find(w => w.location.href.includes('viewSource')).close()", json!([]));

    // A drag between lanes, with the mouse.
    let before = at_the_provider(&world.dovecot, "alice");
    let points = tb.js(
        "await until('its row', () => pane().threadTree.getRowAtIndex(row(args[0])));
         const target = pane().folderPane.getRowForFolder(folder('Lanes/Info')).querySelector('.container');
         return [place(pane().threadTree.getRowAtIndex(row(args[0]))), place(target)]",
        json!([DRAGGED]),
    );
    let ((x, y), (to_x, to_y)) = (position(&points[0]), position(&points[1]));
    tb.drag((x + 220, y), (to_x + 70, to_y), |tb| tb.picture("thunderbird-drag"));
    tb.js("await until('the row to go', () => row(args[0]) < 0)", json!([DRAGGED]));
    eventually("the correction", || {
        session.ok("SELECT \"Lanes/Info\"");
        (session.find(&dragged.id).len() == 1).then_some(())
    });
    let noted = world.gateway.json(&["corrections", "list"]);
    assert!(noted.to_string().contains(&dragged.id) && noted.to_string().contains("\"to\":\"info\""), "{noted}");
    let octets_of = |h: crate::holdings::Holdings| h.into_iter().map(|(k, v)| (k, v.octets)).collect::<Vec<_>>();
    assert_eq!(octets_of(at_the_provider(&world.dovecot, "alice")), octets_of(before), "nothing moved at the provider");
    tb.js("await show('Lanes/Info'); await until('it there', () => row(args[0]) >= 0)", json!([DRAGGED]));
    let text = tb.js(&format!("return await source(headers()[row({})])", json!(DRAGGED)), json!([]));
    assert!(text.as_str().unwrap().starts_with("X-Tollgate-Lane: info"), "{text}");

    // A notice comes by itself, and is dismissed by deleting it.
    tb.js("await show('INBOX')", json!([]));
    let draft = message(&world.alice.address, "priya.raman@example.net", "Our sizes", "Dear Priya, 160 to 240 cm.");
    let id = world.hold(&world.alice, &["priya.raman@example.net"], &draft.octets);
    let notice = tb.js(
        "const found = await until('the notice', () => headers().find(h => !args[0].includes(h.messageId)));
         return found.mime2DecodedSubject",
        json!([list.as_array().unwrap().iter().map(|m| m["id"].clone()).collect::<Vec<_>>()]),
    );
    assert!(notice.as_str().unwrap().contains(APPROVER_SUBJECT), "{notice}");
    tb.js(select, json!([notice, "priya.raman"]));
    tb.js("await sleep(700)", json!([]));
    tb.picture("thunderbird-notice");
    let truth = at_the_provider(&world.dovecot, "alice");
    let count = inbox(&world).len();
    tb.js("window.goDoCommand('cmd_delete'); await until('it to go', () => row(args[0]) < 0)", json!([notice]));
    let left = || {
        let mut session = world.person(&world.alice);
        session.ok("EXAMINE INBOX");
        session.search("ALL").len()
    };
    eventually("the notice to be dismissed", || (left() == count - 1).then_some(()));
    tb.js(
        "await show('Trash'); await sleep(1000); await until('an empty Trash', () => headers().length == 0)",
        json!([]),
    );
    tb.js("await show('INBOX'); await until('INBOX', () => headers().length == args[0])", json!([count - 1]));
    tb.picture("thunderbird-dismissed");
    assert_eq!(at_the_provider(&world.dovecot, "alice"), truth, "no octet of a notice is at the provider");
    assert_eq!(world.gateway.hold(&id)["state"], "held", "dismissing a notice decides nothing");
    tb.quit();
    table::is_true_of(&world, "Thunderbird");
}
