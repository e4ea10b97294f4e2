use super::*;
use crate::lane::trace::Trace;
use crate::lane::{Context, Thresholds};
use crate::mail::address::Address;
use crate::perceive::{PerceiveInput, perceive};

/// Wednesday, 4 November 2026, 10:00 in Berlin.
const NOW: i64 = 1_793_782_800;

fn trace(headers: &str, subject: &str, text: &str) -> Trace {
    let m = format!(
        "From: Ana <ana@example.com>\r\nTo: mina@example.org\r\nDate: Wed, 04 Nov 2026 10:00:00 +0100\r\nSubject: {subject}\r\n{headers}Content-Type: text/plain; charset=utf-8\r\n\r\n{text}\r\n"
    );
    let account = AccountFacts {
        addresses: vec![Address::parse("mina@example.org").unwrap()],
        timezone: "Europe/Berlin".to_owned(),
        authserv: vec!["mx.example.org".to_owned()],
    };
    let input = PerceiveInput {
        octets: m.as_bytes(),
        size: m.len() as u64,
        account: &account,
        now: NOW,
        internaldate: NOW,
        context: Context::default(),
    };
    perceive(&input, &Thresholds::default(), "t".to_owned())
}

fn has(signal: Signal, subject: &str, text: &str) -> bool {
    trace("", subject, text).signals.has(signal)
}

const BULK: &str = "List-Unsubscribe: <https://shop.example.com/u>\r\n";

#[test]
fn asks_in_every_language() {
    for text in [
        "Could you look at page two?",
        "Können Sie mir die Datei schicken?",
        "Pouvez-vous relire le texte ?",
        "¿Podrías revisar el texto?",
        "파일 보내 주시겠어요?",
        "ご確認いただけますか。",
        "请把文件发给我。",
    ] {
        assert!(has(Signal::Ask, "x", text), "{text}");
    }
    for text in [
        "The garden is ready for winter.",
        "If you have any questions, please contact us.",
        "Der Garten ist fertig.",
        "발신전용 메일입니다. 감사합니다.",
        "いつもお世話になっております。よろしくお願いいたします。",
    ] {
        assert!(!has(Signal::Ask, "x", text), "{text}");
    }
}

#[test]
fn deadlines_need_an_ask_and_a_future() {
    assert!(has(Signal::Deadline, "x", "Please send me the figures by 3pm today."));
    assert!(has(Signal::Deadline, "x", "오늘 오후 3시까지 확인 부탁드립니다."));
    assert!(!has(Signal::Deadline, "x", "Please send me the figures by 9am today."));
    assert!(!has(Signal::Deadline, "x", "The shop closed by 3pm."));
    assert!(!has(Signal::Deadline, "x", "No rush, any time before Friday is fine."));
}

#[test]
fn quoted_history_asks_nothing() {
    let t = trace("", "Re: x", "Thanks, done.\r\n\r\nOn Tue, Ana wrote:\r\n> URGENT: please call me by 3pm today!");
    assert!(!t.signals.any(&[Signal::Ask, Signal::Deadline]), "{:?}", t.signals.names());
    assert!(t.features().urgency() < 0.3);
}

#[test]
fn codes_need_a_code() {
    assert!(has(Signal::Code, "Your code", "Your verification code is 482913."));
    assert!(has(Signal::Code, "인증번호 안내", "인증번호는 482913 입니다."));
    assert!(has(Signal::Code, "Sign in", "Use the one-time code below.\r\n\r\n482 913"));
    assert!(!has(Signal::Code, "Our code of conduct", "The security code was reviewed in 2026."));
    assert!(!trace(BULK, "Sale", "Use code WARM40 for 40% off").signals.has(Signal::Code));
}

#[test]
fn reset_links_need_the_authenticated_senders_own_domain() {
    let text = "Reset your password: https://login.example.com/r?t=1";
    let passed = "Authentication-Results: mx.example.org; dmarc=pass header.from=example.com\r\n";
    assert!(trace(passed, "Password reset", text).signals.has(Signal::Code));
    assert!(!trace("", "Password reset", text).signals.has(Signal::Code));
    assert!(!trace(passed, "Password reset", "Reset your password: https://example.net/r").signals.has(Signal::Code));
}

#[test]
fn a_list_is_no_campaign() {
    let list = "List-Id: <t.lists.example.net>\r\nList-Post: <mailto:t@lists.example.net>\r\nList-Unsubscribe: <https://x>\r\n";
    let t = trace(list, "[t] hashes", "I would keep both.");
    assert!(t.signals.has(Signal::List) && !t.signals.has(Signal::Campaign));
    assert!(trace(BULK, "40% off", "Shop now. Unsubscribe here.").signals.has(Signal::Campaign));
    assert!(!trace("", "Lunch", "See you there.").signals.has(Signal::Campaign));
}

#[test]
fn receipts_in_bulk_dress_are_records() {
    let t = trace(BULK, "Your order has shipped", "Order number 40-2291 is on its way.");
    assert!(t.signals.has(Signal::Transactional) && !t.signals.has(Signal::Campaign));
    let t = trace(BULK, "Sale: 50% off everything", "Free shipping on your order. Shop now, limited time offer.");
    assert!(!t.signals.has(Signal::Transactional));
}

#[test]
fn failures_are_told_from_successes() {
    let auto = "Auto-Submitted: auto-generated\r\n";
    assert!(trace(auto, "Build failed: main", "3 tests failed.").signals.has(Signal::Failure));
    assert!(!trace(auto, "Build passed: main", "0 failed, 1208 passed.").signals.has(Signal::Failure));
}

#[test]
fn a_bare_meeting_noun_is_no_scheduling() {
    assert!(!has(Signal::Scheduling, "Notes", "Here are the notes of the meeting. I added two points."));
    assert!(has(Signal::Scheduling, "Thursday", "Can we move our meeting to Thursday at 10?"));
}

#[test]
fn spam_is_the_providers_verdict() {
    assert!(trace("X-Spam-Flag: YES\r\n", "x", "y").signals.has(Signal::Spam));
    assert!(!trace("X-Spam-Flag: NO\r\nX-Spam-Status: No, score=1\r\n", "x", "y").signals.has(Signal::Spam));
}

#[test]
fn machines_are_told_from_people() {
    assert!(trace("Auto-Submitted: auto-replied\r\n", "x", "y").signals.has(Signal::Automated));
    assert!(!trace("Auto-Submitted: no\r\n", "x", "y").signals.has(Signal::Automated));
}

#[test]
fn then_means_the_time_that_was_named() {
    let t = trace("", "Deck", "The call starts at 11:30 and slide nine is wrong. Can you fix it before then?");
    assert_eq!(t.deadline.unwrap().local, "2026-11-04T11:30:00+01:00");
}

#[test]
fn what_happens_now_pushes_and_what_happened_does_not() {
    let lane = |text: &str| trace("", "x", text).verdict.lane;
    use crate::lane::Lane;
    assert_eq!(lane("I'm standing outside and the door is locked. Can you let me in?"), Lane::Push);
    assert_eq!(lane("Checkout has been returning 500s since nine. Can you roll it back?"), Lane::Push);
    assert_eq!(lane("Could you review the notes on last month's outage?"), Lane::Queue);
    assert_eq!(lane("Give me a call when you have time, no rush."), Lane::Queue);
}

#[test]
fn an_absence_note_is_a_record() {
    let t = trace("Auto-Submitted: auto-replied\r\n", "Automatic reply: x", "I am out of office until Monday.");
    assert_eq!(t.verdict.lane, crate::lane::Lane::Info);
}

/// Fakes that press, each with three baits; beside them what a colleague in
/// need writes.
#[test]
fn several_baits_never_push_and_need_does() {
    let fakes = [
        "Buy five gift cards in the next 30 minutes, scratch the back and send me photos of the codes. Keep it between us, I can't take calls. My phone is broken, this is my new number.",
        "Bitte überweise bis heute 16 Uhr 1.900 Euro per Echtzeitüberweisung auf das Konto von Frau Kern. Sag niemandem etwas, mein Handy ist kaputt, das ist meine neue Nummer.",
        "Achète quatre cartes cadeaux avant 15 h et envoie-moi la photo des codes. N'en parle à personne, mon téléphone est cassé, écris-moi ici.",
        "Compra tres tarjetas de regalo antes de las 15:00 y mándame fotos de los códigos. No le digas a nadie, perdí el celular, este es mi número nuevo.",
        "상품권 10만원짜리 다섯 장을 30분 안에 사서 뒤에 번호 긁어서 보내줘. 아무한테도 말하지 마. 폰이 고장 나서 새 번호로 쓰는 거야.",
        "15時までにコンビニでギフトカードを五枚買って、裏面を削り番号を写真で送ってください。誰にも言わないで。携帯が壊れて新しい番号です。",
        "三点前买五张礼品卡，刮开后把卡密拍给我。别告诉别人，不方便接电话，手机坏了，这是新号码。",
    ];
    for fake in fakes {
        let t = trace("", "Are you there?", fake);
        assert_ne!(t.verdict.lane, Lane::Push, "{}", t.explain());
        assert!(t.explain().contains("several baits of fakes"), "{}", t.explain());
    }
    let need = "The courier is at the gate with the frozen stock and leaves in ten minutes. What is the code for the gate? I'm standing outside and nobody answers.";
    let t = trace("", "gate", need);
    assert_eq!(t.verdict.lane, Lane::Push, "{}", t.explain());
}

/// A word of meeting or of records is no more than a hint.
#[test]
fn the_whole_text_takes_signals_of_wording_away() {
    let t = trace(
        "Auto-Submitted: auto-generated\r\n",
        "Receipt for your order 4471",
        "Thank you for your order. Please find your receipt attached. We received your payment of 36.00 EUR. Let us know if you have questions. No action is needed.",
    );
    assert_eq!(t.verdict.lane, Lane::Info, "{}", t.explain());
    assert!(!t.signals.has(Signal::Ask) && !t.signals.has(Signal::Scheduling), "{}", t.explain());
}
