use super::*;
use crate::perceive::text::normal;
use crate::perceive::words::{Finder, spoken};

/// Wednesday, 4 November 2026, 10:00 in Berlin (+01:00).
const NOW: &str = "2026-11-04T10:00:00+01:00";

fn read(text: &str) -> Vec<(String, bool)> {
    read_at(text, NOW)
}

fn read_at(text: &str, now: &str) -> Vec<(String, bool)> {
    let s = normal(text);
    let langs = spoken(&s);
    let hits = Finder::new(&langs).words(&s).hits;
    let tz = zone("Europe/Berlin");
    let now: Timestamp = now.parse().unwrap();
    let clock = Clock::new(now.as_second(), tz.clone());
    moments(&s, &hits, langs[0], &clock).into_iter().map(|m| (local(m.at, &tz)[..16].to_owned(), m.by)).collect()
}

fn by(text: &str) -> String {
    let found = read(text);
    found.iter().find(|(_, by)| *by).map_or_else(|| format!("none of {found:?}"), |(at, _)| at.clone())
}

fn any(text: &str) -> String {
    read(text).first().map_or("none".to_owned(), |(at, _)| at.clone())
}

#[test]
fn english() {
    assert_eq!(by("Please send it by 3pm today"), "2026-11-04T15:00");
    assert_eq!(by("I need the numbers before 15:30"), "2026-11-04T15:30");
    assert_eq!(by("by tomorrow 9am"), "2026-11-05T09:00");
    assert_eq!(by("Could you reply by Friday?"), "2026-11-06T18:00");
    assert_eq!(by("by end of day please"), "2026-11-04T18:00");
    assert_eq!(by("by EOD Friday"), "2026-11-06T18:00");
    assert_eq!(by("please confirm within 2 hours"), "2026-11-04T12:00");
    assert_eq!(any("call me in 30 minutes"), "2026-11-04T10:30");
    assert_eq!(by("no later than December 5th"), "2026-12-05T18:00");
    assert_eq!(by("by 5 December 2026"), "2026-12-05T18:00");
    assert_eq!(by("I need this by 5."), "2026-11-04T17:00");
    assert_eq!(by("by noon"), "2026-11-04T12:00");
    assert_eq!(by("the portal closes at 4 pm on Thursday"), "2026-11-05T16:00");
    assert_eq!(by("by 11/20"), "2026-11-20T18:00");
    assert_eq!(by("before 2026-11-09"), "2026-11-09T18:00");
    assert_eq!(by("by next Tuesday").get(..10).unwrap(), "2026-11-10");
    assert_eq!(any("next week on Tuesday at 2pm"), "2026-11-10T14:00");
}

#[test]
fn german() {
    assert_eq!(by("Kannst du mir das bis heute 15 Uhr schicken?"), "2026-11-04T15:00");
    assert_eq!(by("bis zum 7. Dezember"), "2026-12-07T18:00");
    assert_eq!(by("Bitte bis Freitag, 12 Uhr"), "2026-11-06T12:00");
    assert_eq!(by("spätestens morgen früh"), "2026-11-05T09:00");
    assert_eq!(by("bis 15.30 Uhr"), "2026-11-04T15:30");
    assert_eq!(by("bis zum 20.11."), "2026-11-20T18:00");
    assert_eq!(by("innerhalb von zwei Stunden"), "2026-11-04T12:00");
    assert_eq!(any("in 2 Stunden"), "2026-11-04T12:00");
    assert_eq!(any("Donnerstag um 10 Uhr"), "2026-11-05T10:00");
}

#[test]
fn french() {
    assert_eq!(by("Pouvez-vous l'envoyer avant 17h ?"), "2026-11-04T17:00");
    assert_eq!(by("d'ici demain midi"), "2026-11-05T12:00");
    assert_eq!(by("au plus tard vendredi"), "2026-11-06T18:00");
    assert_eq!(by("avant le 5 décembre"), "2026-12-05T18:00");
    assert_eq!(by("avant 12h30"), "2026-11-04T12:30");
    assert_eq!(by("sous 2 heures"), "2026-11-04T12:00");
    assert_eq!(by("avant ce soir"), "2026-11-04T20:00");
    assert_eq!(by("avant le 05/12/2026"), "2026-12-05T18:00");
}

#[test]
fn spanish() {
    assert_eq!(by("¿Puede enviárnoslo antes de las 13:00?"), "2026-11-04T13:00");
    assert_eq!(by("antes del viernes"), "2026-11-06T18:00");
    assert_eq!(by("hasta el 5 de diciembre"), "2026-12-05T18:00");
    assert_eq!(by("antes de las 5 de la tarde"), "2026-11-04T17:00");
    assert_eq!(by("para mañana por favor"), "2026-11-05T18:00");
    assert_eq!(any("en dos horas"), "2026-11-04T12:00");
}

#[test]
fn korean() {
    assert_eq!(by("오늘 오후 3시까지 확인 부탁드립니다"), "2026-11-04T15:00");
    assert_eq!(by("내일 오전 9시까지"), "2026-11-05T09:00");
    assert_eq!(by("금요일까지 보내 주세요"), "2026-11-06T18:00");
    assert_eq!(by("11월 20일까지"), "2026-11-20T18:00");
    assert_eq!(by("2시간 안에 답변 주세요"), "2026-11-04T12:00");
    assert_eq!(by("30분 이내로 부탁드려요"), "2026-11-04T10:30");
    assert_eq!(by("퇴근 전까지 회신 부탁드립니다"), "2026-11-04T18:00");
    assert_eq!(by("다음 주 화요일까지"), "2026-11-10T18:00");
    assert_eq!(by("오후 2시 30분까지"), "2026-11-04T14:30");
}

#[test]
fn japanese() {
    assert_eq!(by("本日17時までにご返信ください"), "2026-11-04T17:00");
    assert_eq!(by("明日の午前10時までに"), "2026-11-05T10:00");
    assert_eq!(by("金曜日までにお願いします"), "2026-11-06T18:00");
    assert_eq!(by("11月20日(金)までに"), "2026-11-20T18:00");
    assert_eq!(by("2時間以内にお願いします"), "2026-11-04T12:00");
    assert_eq!(by("本日中にご確認ください"), "2026-11-04T18:00");
    assert_eq!(by("午後3時半までに"), "2026-11-04T15:30");
    assert_eq!(any("17日(火) 14時"), "2026-11-17T14:00");
}

#[test]
fn chinese() {
    assert_eq!(by("请在今天下午3点前发给我"), "2026-11-04T15:00");
    assert_eq!(by("明天上午10点之前"), "2026-11-05T10:00");
    assert_eq!(by("周五之前回复"), "2026-11-06T18:00");
    assert_eq!(by("11月20日前提交"), "2026-11-20T18:00");
    assert_eq!(by("下班前给我"), "2026-11-04T18:00");
    assert_eq!(by("请在2小时内回复"), "2026-11-04T12:00");
    assert_eq!(by("请在下午三点前"), "2026-11-04T15:00");
    assert_eq!(by("截止到周四中午"), "2026-11-05T12:00");
}

#[test]
fn next_month_is_not_this_one() {
    assert_eq!(by("by the 25th of next month"), "2026-12-25T18:00");
    assert_eq!(any("we close the books next month"), "2026-12-31T18:00");
    assert_eq!(by("bis zum 25. nächsten Monats"), "2026-12-25T18:00");
    assert_eq!(any("Das machen wir im nächsten Monat."), "2026-12-31T18:00");
    assert_eq!(by("avant le 25 du mois prochain"), "2026-12-25T18:00");
    assert_eq!(by("antes del 25 del próximo mes"), "2026-12-25T18:00");
    assert_eq!(by("다음 달 25일까지 보내 주세요"), "2026-12-25T18:00");
    assert_eq!(by("来月25日までにお送りください"), "2026-12-25T18:00");
    assert_eq!(by("请在下个月25号之前提交"), "2026-12-25T18:00");
    assert_eq!(by("下月5日前完成"), "2026-12-05T18:00");
    assert_eq!(by("請在下個月25號之前提交"), "2026-12-25T18:00");
}

#[test]
fn weeks_and_days_ahead_are_counted() {
    for text in [
        "let's talk again in three weeks",
        "in 3 Wochen sprechen wir weiter",
        "on en reparle dans trois semaines",
        "lo vemos en tres semanas",
        "3주 후에 다시 이야기해요",
        "3週間後にまた相談しましょう",
        "三周后再说",
        "3个星期后再说",
    ] {
        assert_eq!(any(text), "2026-11-25T10:00", "{text}");
    }
    for text in ["in 10 days", "in zehn Tagen", "dans 10 jours", "en diez días", "10일 뒤에", "10日後に", "10天后"]
    {
        assert_eq!(any(text), "2026-11-14T10:00", "{text}");
    }
    assert_eq!(any("2시간 뒤에 봐요"), "2026-11-04T12:00");
    assert_eq!(any("2時間後に伺います"), "2026-11-04T12:00");
    assert_eq!(any("两小时后到"), "2026-11-04T12:00");
}

#[test]
fn what_is_no_time_is_none() {
    for text in [
        "we shipped 40 boxes",
        "order 40-2291",
        "version 3.5",
        "call +44 20 7946 0110",
        "EP00192837",
        "it costs 39,90 EUR",
        "you and 5 people",
    ] {
        assert_eq!(read(text), [], "{text}");
    }
}

#[test]
fn two_times_are_two_moments() {
    let both = read("Würde Ihnen Donnerstag um 10 Uhr oder Freitag um 14 Uhr passen?");
    assert_eq!(both, [("2026-11-05T10:00".to_owned(), false), ("2026-11-06T14:00".to_owned(), false)]);
}

#[test]
fn a_past_hour_of_a_named_day_stays_past() {
    assert_eq!(read_at("by 9am today", NOW)[0].0, "2026-11-04T09:00");
    assert_eq!(read_at("by 9am", NOW)[0].0, "2026-11-05T09:00");
    assert_eq!(read_at("by 3 November", NOW)[0].0, "2026-11-03T18:00");
}

#[test]
fn zones_are_names_or_offsets() {
    assert_eq!(local(0, &zone("+09:00")), "1970-01-01T09:00:00+09:00");
    assert_eq!(local(0, &zone("Asia/Seoul")), "1970-01-01T09:00:00+09:00");
    assert_eq!(local(0, &zone("no/where")), "1970-01-01T00:00:00+00:00");
}

proptest::proptest! {
    #[test]
    fn any_sentence_is_read(s in "([0-9]{1,5}|:|\\.|/|-| |h|pm|by|in|bis|年|月|日|時|시|까지|前|まで|hours|december|오후|é|ü){0,30}") {
        let _ = read(&s);
    }
}
