//! `tollgate eval --delta`: does a scorer that is sure, without anything that
//! supports the sender, give an attack away?
//!
//! Promises: what is known of a sender comes from the one history file through
//! the gateway's own code, and from the mail's octets; an item's `context`,
//! `organisation` or `account` is never read. Who isn't in the history was
//! looked for and is absent. The same files and seed give the same figures.
//! Doesn't know: how often attacks happen.
//!
//! How it is matched. Attacks are sure in another way than honest mail, and a
//! difference in confidence alone must not pass for a difference in
//! corroboration. So both are put into bins of confidence ([`BINS`] of equal
//! width); of each bin as many of the one as of the other are drawn, without
//! putting back, by a seeded generator; what a bin has too many of is left
//! out and counted. Among the honest mail drawn, at least [`LEAST_FIRST`] must
//! be first contacts by the history (known senders are exchanged for first
//! contacts of the same bin as far as needed); else nothing is reported. AUC
//! is the probability that an attack's confidence minus corroboration is the
//! larger one, half where both are equal.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use clap::Args;
use serde::{Deserialize, Serialize};

use super::item::Item;
use super::{EvalError, failure, items, read, twins};
use crate::cli::Globals;
use crate::cli::exit::{self, Exit, Failure, Outcome};
use crate::lane::{Context, Thresholds, corroboration};
use crate::mail::address::Address;
use crate::perceive::{self, AccountFacts, CorrespondentRecord, KnownNames, PerceiveInput};

/// Bins of confidence, each 0.05 wide.
const BINS: usize = 20;
/// Least share of first contacts among the honest mail that is drawn.
const LEAST_FIRST: f64 = 0.30;
/// The seed where none is given.
const SEED: u64 = 20_260_512;
/// The authserv-id of a history that names none.
const AUTHSERV: &str = "mx.example.org";
/// The name of all attacks together.
const OVERALL: &str = "overall";
/// An attack without a kind.
const UNNAMED: &str = "unnamed";
/// z of a two-sided interval at 95 %.
const Z: f64 = 1.959_964;

/// What the delta takes.
#[derive(Debug, Args)]
pub(super) struct DeltaArgs {
    /// Measure how far confidence without corroboration gives attacks away;
    /// --set holds the attacks, --floors names auc_overall or auc_STRATUM
    #[arg(long, requires_all = ["cooperative", "history"])]
    pub(super) delta: bool,
    /// Honest mail to the same person, one JSON object a line
    #[arg(long, value_name = "FILE.jsonl", requires = "delta")]
    cooperative: Option<PathBuf>,
    /// Whom the person knows: {account, authserv, correspondents}
    #[arg(long, value_name = "FILE.json", requires = "delta")]
    history: Option<PathBuf>,
    /// Of the drawing [default: 20260512]
    #[arg(long, value_name = "N", requires = "delta")]
    seed: Option<u64>,
}

/// The history, the same for every mail.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct HistoryFile {
    account: String,
    #[serde(default)]
    authserv: Option<String>,
    correspondents: Vec<CorrespondentRecord>,
}

/// What a gateway would have in its store.
struct Known {
    account: Address,
    authserv: String,
    records: HashMap<String, CorrespondentRecord>,
    names: KnownNames,
}

impl Known {
    fn read(path: &Path) -> Result<Known, EvalError> {
        let fault = |reason: String| EvalError::History { path: path.to_owned(), reason };
        let file: HistoryFile = serde_json::from_str(&read(path)?).map_err(|e| fault(e.to_string()))?;
        let account = Address::parse(&file.account).map_err(|_| fault(format!("{:?} is no address", file.account)))?;
        let (mut records, mut names) = (HashMap::new(), KnownNames::default());
        for mut record in file.correspondents {
            let address =
                Address::parse(&record.address).map_err(|_| fault(format!("{:?} is no address", record.address)))?;
            record.address = address.canonical();
            names.learn(&record);
            if records.insert(record.address.clone(), record).is_some() {
                return Err(fault(format!("{} is there twice", address.canonical())));
            }
        }
        Ok(Known { account, authserv: file.authserv.unwrap_or_else(|| AUTHSERV.to_owned()), records, names })
    }
}

/// One mail with what it is measured by.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Weighed {
    id: String,
    stratum: String,
    /// Not in the history.
    first: bool,
    confidence: f64,
    corroboration: f64,
    /// The first minus the second.
    delta: f64,
}

fn weigh(item: &Item, known: &Known) -> Result<Weighed, String> {
    if item.authserv().iter().any(|a| !a.eq_ignore_ascii_case(&known.authserv)) {
        return Err(format!("it names another authserv than the history, which believes {:?} alone", known.authserv));
    }
    let mail = item.mail()?;
    let account = AccountFacts {
        addresses: vec![known.account.clone()],
        timezone: mail.account.timezone.clone(),
        authserv: vec![known.authserv.clone()],
    };
    let sender = perceive::sender(&mail.octets);
    let record = sender.as_ref().and_then(|s| known.records.get(&s.address.canonical()));
    // Without a sender nobody could be looked for.
    let context = sender.as_ref().map_or_else(Context::default, |s| Context::of_sender(record, true, &known.names, s));
    let input = PerceiveInput {
        octets: &mail.octets,
        size: mail.octets.len() as u64,
        account: &account,
        now: mail.now,
        internaldate: mail.now,
        context,
    };
    let trace = perceive::perceive(&input, &Thresholds::default(), item.id.clone());
    let confidence = trace.features().confidence();
    let corroboration = corroboration(&trace.context, trace.signals, trace.from.as_deref());
    Ok(Weighed {
        id: item.id.clone(),
        stratum: item.stratum.clone().unwrap_or_else(|| UNNAMED.to_owned()),
        first: record.is_none(),
        confidence,
        corroboration,
        delta: confidence - corroboration,
    })
}

fn weigh_all(path: &Path, known: &Known, attacks: bool) -> Result<Vec<Weighed>, EvalError> {
    let mut all = Vec::new();
    for (line, item) in items(path)? {
        // The set of attacks holds their clean twins too; those are neither
        // attacks nor the honest mail that is compared with.
        if attacks && (item.twin.is_none() || twins::is_clean(&item)) {
            continue;
        }
        all.push(weigh(&item, known).map_err(|reason| EvalError::Item { path: path.to_owned(), line, reason })?);
    }
    if all.is_empty() { Err(EvalError::Empty(path.to_owned())) } else { Ok(all) }
}

/// One kind of attack against honest mail as sure.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Stratum {
    /// Attacks of this kind.
    attacks: usize,
    /// Those that honest mail as sure was found for, and as many of that.
    matched: usize,
    /// Share of first contacts among that honest mail.
    first_contacts: f64,
    /// Probability that the attack's difference is the larger one.
    auc: f64,
    /// 95 % interval of it (Newcombe's, which is no point where AUC is 1).
    interval: (f64, f64),
    /// Mean confidence of attacks and of honest mail: matched, so alike.
    confidence: (f64, f64),
    /// Mean corroboration of attacks and of honest mail.
    corroboration: (f64, f64),
}

/// What the delta shows.
#[derive(Debug, Serialize)]
pub(super) struct DeltaReport {
    set: String,
    cooperative: String,
    history: String,
    scorer: &'static str,
    seed: u64,
    matching: &'static str,
    /// By kind of attack, and all together as `overall`.
    strata: BTreeMap<String, Stratum>,
    /// Kinds that no honest mail is as sure as.
    unmatched: Vec<String>,
    broken_floors: Vec<String>,
    attacks: Vec<Weighed>,
    honest: Vec<Weighed>,
}

const MATCHING: &str = "bins of confidence 0.05 wide, equal counts of attacks and honest mail drawn from each by the seed; \
                        at least 30 % of the honest mail first contacts";

/// Measures and prints.
pub(super) fn command(globals: &Globals, set: &Path, args: &DeltaArgs, floors: Option<&Path>) -> Outcome {
    let (Some(cooperative), Some(history)) = (&args.cooperative, &args.history) else {
        return Err(Failure::new(Exit::Usage, "usage", "--delta takes --cooperative and --history"));
    };
    let report = run(set, cooperative, history, args.seed.unwrap_or(SEED), floors).map_err(failure)?;
    if globals.json {
        exit::say(&serde_json::to_string_pretty(&report).unwrap_or_default());
    } else {
        let mut out = String::new();
        // Writing to a String cannot fail.
        let _ = report.text(&mut out);
        exit::say(&out);
    }
    if report.broken_floors.is_empty() {
        return Ok(());
    }
    Err(Failure { details: None, ..Failure::new(Exit::Data, "floors", report.broken_floors.join("; ")) })
}

/// The delta of a set of attacks.
pub(super) fn run(
    set: &Path,
    cooperative: &Path,
    history: &Path,
    seed: u64,
    floors: Option<&Path>,
) -> Result<DeltaReport, EvalError> {
    let known = Known::read(history)?;
    let attacks = weigh_all(set, &known, true)?;
    let honest = weigh_all(cooperative, &known, false)?;
    let (mut strata, mut unmatched) = (BTreeMap::new(), Vec::new());
    let names: BTreeSet<&str> = attacks.iter().map(|a| a.stratum.as_str()).chain([OVERALL]).collect();
    for name in names {
        let of_it: Vec<&Weighed> = attacks.iter().filter(|a| name == OVERALL || a.stratum == name).collect();
        match matched(&of_it, &honest, seed)? {
            Some(stratum) => drop(strata.insert(name.to_owned(), stratum)),
            None => unmatched.push(name.to_owned()),
        }
    }
    let broken_floors = match floors {
        None => Vec::new(),
        Some(path) => broken(path, &strata)?,
    };
    Ok(DeltaReport {
        set: set.display().to_string(),
        cooperative: cooperative.display().to_string(),
        history: history.display().to_string(),
        scorer: crate::lane::trace::OFFLINE,
        seed,
        matching: MATCHING,
        strata,
        unmatched,
        broken_floors,
        attacks,
        honest,
    })
}

/// Floors are named `auc_` and the kind; each is the least AUC.
fn broken(path: &Path, strata: &BTreeMap<String, Stratum>) -> Result<Vec<String>, EvalError> {
    let fault = |reason: String| EvalError::Floors { path: path.to_owned(), reason };
    let floors: BTreeMap<String, f64> = toml::from_str(&read(path)?).map_err(|e| fault(e.to_string()))?;
    let mut out = Vec::new();
    for (name, least) in floors {
        let stratum = name.strip_prefix("auc_").and_then(|n| strata.get(n));
        let Some(stratum) = stratum else {
            return Err(fault(format!("{name}: a floor is auc_ and a kind of attack that was matched")));
        };
        if stratum.auc < least {
            out.push(format!("{name} is {:.3}, must be at least {least}", stratum.auc));
        }
    }
    Ok(out)
}

fn bin(w: &Weighed) -> usize {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "confidence lies in 0..=1")]
    let at = (w.confidence * BINS as f64) as usize;
    at.min(BINS - 1)
}

/// Draws as many honest mails as attacks from each bin; none where no bin has
/// both.
fn matched(attacks: &[&Weighed], honest: &[Weighed], seed: u64) -> Result<Option<Stratum>, EvalError> {
    let mut random = Random(seed);
    let (mut bad, mut good, mut spare) = (Vec::new(), Vec::<&Weighed>::new(), Vec::<&Weighed>::new());
    for n in 0..BINS {
        let mut a: Vec<&Weighed> = attacks.iter().copied().filter(|w| bin(w) == n).collect();
        let mut h: Vec<&Weighed> = honest.iter().filter(|w| bin(w) == n).collect();
        random.shuffle(&mut a);
        random.shuffle(&mut h);
        let both = a.len().min(h.len());
        bad.extend(a.into_iter().take(both));
        spare.extend(h.split_off(both).into_iter().filter(|w| w.first));
        good.extend(h);
    }
    if bad.is_empty() {
        return Ok(None);
    }
    let first = |good: &[&Weighed]| good.iter().filter(|w| w.first).count() as f64 / good.len() as f64;
    for new in spare {
        if first(&good) >= LEAST_FIRST {
            break;
        }
        if let Some(old) = good.iter_mut().find(|w| !w.first && bin(w) == bin(new)) {
            *old = new;
        }
    }
    let first_contacts = first(&good);
    if first_contacts < LEAST_FIRST {
        let kind = attacks.first().map_or(UNNAMED, |a| a.stratum.as_str());
        return Err(EvalError::Unmatched(format!(
            "only {:.0} % of the honest mail as sure as the attacks ({kind} among them) are first contacts; {:.0} % are needed",
            first_contacts * 100.0,
            LEAST_FIRST * 100.0
        )));
    }
    let auc = auc(&bad, &good);
    let mean = |of: fn(&Weighed) -> f64, list: &[&Weighed]| list.iter().map(|w| of(w)).sum::<f64>() / list.len() as f64;
    Ok(Some(Stratum {
        attacks: attacks.len(),
        matched: bad.len(),
        first_contacts,
        auc,
        interval: interval(auc, bad.len() as f64, good.len() as f64),
        confidence: (mean(|w| w.confidence, &bad), mean(|w| w.confidence, &good)),
        corroboration: (mean(|w| w.corroboration, &bad), mean(|w| w.corroboration, &good)),
    }))
}

/// Mann and Whitney's U over the pairs.
fn auc(bad: &[&Weighed], good: &[&Weighed]) -> f64 {
    let one = |b: &Weighed, g: &Weighed| match b.delta.total_cmp(&g.delta) {
        std::cmp::Ordering::Greater => 1.0,
        std::cmp::Ordering::Equal => 0.5,
        std::cmp::Ordering::Less => 0.0,
    };
    let sum: f64 = bad.iter().map(|b| good.iter().map(|g| one(b, g)).sum::<f64>()).sum();
    sum / (bad.len() as f64 * good.len() as f64)
}

/// Newcombe's fifth method (Statistics in Medicine 25, 2006): the values of
/// theta that are z standard errors away, each with its own standard error,
/// as Wilson's interval does for a share.
fn interval(auc: f64, bad: f64, good: f64) -> (f64, f64) {
    let spread = |theta: f64| {
        let n = (bad + good) / 2.0 - 1.0;
        let inner = 1.0 + n * (1.0 - theta) / (2.0 - theta) + n * theta / (1.0 + theta);
        Z * (theta * (1.0 - theta) * inner / (bad * good)).sqrt()
    };
    let solve = |mut outside: f64, mut inside: f64| {
        for _ in 0..60 {
            let middle = f64::midpoint(outside, inside);
            if (middle - auc).abs() <= spread(middle) { inside = middle } else { outside = middle }
        }
        inside
    };
    (solve(0.0, auc), solve(1.0, auc))
}

/// SplitMix64: small, and the same everywhere.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn shuffle<T>(&mut self, list: &mut [T]) {
        for n in (1..list.len()).rev() {
            let m = self.next() % (n as u64 + 1);
            list.swap(n, usize::try_from(m).unwrap_or(n));
        }
    }
}

impl DeltaReport {
    fn text(&self, out: &mut String) -> std::fmt::Result {
        writeln!(
            out,
            "{} against {}, history {}, scorer {}, seed {}\nmatched: {}",
            self.set, self.cooperative, self.history, self.scorer, self.seed, self.matching
        )?;
        writeln!(
            out,
            "\n{:<14} {:>7} {:>7} {:>6} {:>22} {:>13} {:>15}",
            "attacks", "all", "matched", "first", "AUC (95 %)", "confidence", "corroboration"
        )?;
        for (name, s) in &self.strata {
            let auc = format!("{:.3} ({:.2} to {:.2})", s.auc, s.interval.0, s.interval.1);
            let pair = |p: (f64, f64)| format!("{:.2} / {:.2}", p.0, p.1);
            writeln!(
                out,
                "{name:<14} {:>7} {:>7} {:>6.2} {auc:>22} {:>13} {:>15}",
                s.attacks,
                s.matched,
                s.first_contacts,
                pair(s.confidence),
                pair(s.corroboration)
            )?;
        }
        for name in &self.unmatched {
            writeln!(out, "{name}: no honest mail is as sure")?;
        }
        for floor in &self.broken_floors {
            writeln!(out, "floor: {floor}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn weighed(first: bool, confidence: f64, corroboration: f64) -> Weighed {
        let (id, stratum) = (String::new(), "lookalike".to_owned());
        Weighed { id, stratum, first, confidence, corroboration, delta: confidence - corroboration }
    }

    #[test]
    fn honest_mail_is_as_sure_as_the_attacks_and_enough_of_it_is_new() {
        let attacks: Vec<Weighed> = (0..10).map(|_| weighed(true, 0.82, 0.05)).collect();
        let mut honest: Vec<Weighed> = (0..40).map(|_| weighed(false, 0.81, 0.9)).collect();
        honest.extend((0..3).map(|_| weighed(true, 0.83, 0.5)));
        // In another bin: it counts for nothing.
        honest.extend((0..50).map(|_| weighed(true, 0.2, 0.5)));
        let list: Vec<&Weighed> = attacks.iter().collect();
        let s = matched(&list, &honest, 1).unwrap().unwrap();
        assert_eq!((s.matched, s.auc), (10, 1.0));
        assert!(s.first_contacts >= LEAST_FIRST && s.interval.0 < 0.95 && s.interval.1 > 0.999, "{s:?}");
        honest.remove(41);
        assert!(matches!(matched(&list, &honest, 1), Err(EvalError::Unmatched(_))));
        let unsure: Vec<Weighed> = attacks.iter().map(|a| Weighed { confidence: 0.5, ..a.clone() }).collect();
        assert!(matched(&unsure.iter().collect::<Vec<_>>(), &honest, 1).unwrap().is_none());
    }

    #[test]
    fn equal_differences_say_nothing() {
        let (a, b) = (weighed(true, 0.8, 0.4), weighed(false, 0.8, 0.4));
        assert!((auc(&[&a, &a], &[&b, &b, &b]) - 0.5).abs() < 1e-9);
        let (low, high) = interval(0.5, 50.0, 50.0);
        assert!((low - 0.39).abs() < 0.02 && (high - 0.61).abs() < 0.02, "{low} {high}");
    }

    const HISTORY: &str = r#"{"account":"alex@example.org","correspondents":[
        {"address":"Ana@Example.com","names":["Ana Marin"],"sent_to":5,"replied":4,"received":9}]}"#;

    /// A code, of which the scorer is equally sure whoever sends it.
    fn mail(id: &str, from: &str, domain: &str, more: &str) -> String {
        format!(
            r#"{{"id":"{id}","lane":"any","from":"{from}","to":"alex@example.org","subject":"figures","date":"Tue, 12 May 2026 09:10:00 +0200","headers":{{"Authentication-Results":"mx.example.org; dmarc=pass header.from={domain}"}},"text":"Your verification code is 482 913."{more}}}"#
        )
    }

    #[test]
    fn what_an_item_says_of_its_sender_is_not_believed() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str, text: &str| {
            let path = dir.path().join(name);
            std::fs::write(&path, text).unwrap();
            path
        };
        let known = Known::read(&path("h.json", HISTORY)).unwrap();
        let weigh = |line: String| weigh(&Item::parse(&line).unwrap(), &known);
        let ana = weigh(mail("a", "Ana Marin <ana@example.com>", "example.com", "")).unwrap();
        let claims = r#","context":{"sent_to":99,"replied":99,"organisation":true},"account":"x@example.net""#;
        let plain = weigh(mail("b", "Ana Marin <ana@mail.example.net>", "mail.example.net", "")).unwrap();
        let claiming = weigh(mail("b", "Ana Marin <ana@mail.example.net>", "mail.example.net", claims)).unwrap();
        let stranger = weigh(mail("c", "Bo Lind <bo@b.example.net>", "b.example.net", "")).unwrap();
        assert!(!ana.first && ana.corroboration > 0.8, "{ana:?}");
        assert_eq!(plain.corroboration, claiming.corroboration);
        assert!(plain.first && plain.corroboration < 0.15 && stranger.corroboration > 0.4, "{plain:?} {stranger:?}");
        let strange = weigh(mail("d", "a@example.com", "example.com", r#","authserv":"evil.example.net""#));
        assert!(strange.unwrap_err().contains("authserv"));
    }

    #[test]
    fn the_same_seed_gives_the_same_report_and_floors_are_kept() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str, text: &str| {
            let path = dir.path().join(name);
            std::fs::write(&path, text).unwrap();
            path
        };
        let history = path("h.json", HISTORY);
        let stratum = |s: &str| format!(r#","stratum":"{s}""#);
        let attack = r#","stratum":"lookalike","twin":"x1c""#;
        let set = [
            mail("x1", "Ana Marin <ana@mail.example.net>", "mail.example.net", attack),
            mail("x1c", "Ana Marin <ana@example.com>", "example.com", r#","twin":"x1""#),
        ];
        let honest = [mail("h1", "Bo Lind <bo@b.example.net>", "b.example.net", &stratum("first"))];
        let (set, honest) = (path("s.jsonl", &set.join("\n")), path("c.jsonl", &honest.join("\n")));
        let good = path("f.toml", "auc_lookalike = 0.85\n");
        let report = run(&set, &honest, &history, 7, Some(&good)).unwrap();
        assert_eq!((report.attacks.len(), report.honest.len()), (1, 1), "a clean twin is no attack");
        assert_eq!(report.strata["lookalike"].auc, 1.0);
        assert!(report.broken_floors.is_empty() && report.strata.contains_key(OVERALL));
        let again = run(&set, &honest, &history, 7, Some(&good)).unwrap();
        assert_eq!(serde_json::to_string(&report).unwrap(), serde_json::to_string(&again).unwrap());
        let high = path("g.toml", "auc_overall = 1.5\n");
        assert_eq!(run(&set, &honest, &history, 7, Some(&high)).unwrap().broken_floors.len(), 1);
        let unknown = path("u.toml", "auc_look = 0.5\n");
        assert!(matches!(run(&set, &honest, &history, 7, Some(&unknown)), Err(EvalError::Floors { .. })));
        let twice = HISTORY.replace("]}", r#",{"address":"ana@example.com"}]}"#);
        assert!(Known::read(&path("t.json", &twice)).is_err());
    }

    #[test]
    fn being_sure_without_corroboration_gives_look_alikes_away() {
        let file = |name: &str| Path::new(env!("CARGO_MANIFEST_DIR")).join("eval").join(name);
        let floors = file("delta-floors.toml");
        let (attacks, honest) = (file("adversarial.jsonl"), file("cooperative.jsonl"));
        let report = run(&attacks, &honest, &file("history.json"), SEED, Some(&floors)).unwrap();
        assert!(report.broken_floors.is_empty(), "{:?}", report.broken_floors);
    }
}
