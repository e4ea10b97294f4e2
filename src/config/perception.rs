//! `[perception]`, `[[model]]` and `[[price]]`: the models that judge mail,
//! and what they may cost. Without a model everything here is off.

use std::path::PathBuf;
use std::time::Duration;

use super::notify::parse_url;
use super::table::{Found, Section};
use super::{Endpoint, SecretSource, files};
use crate::lane::trace::OFFLINE;
use crate::perceive::budget::{Limits, Price, Prices};

/// Default of `perception.deadline_ms`.
const DEFAULT_DEADLINE: Duration = Duration::from_secs(8);
/// Default of `perception.budget_per_day`, in millionths.
const DEFAULT_BUDGET: u64 = 1_000_000;
/// Default of `perception.stronger_below`.
const DEFAULT_STRONGER_BELOW: f64 = 0.60;
/// Default of `timeout_ms` of a model.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(6);
/// Default of `concurrency` of a model.
const DEFAULT_CONCURRENCY: u64 = 4;
/// Most models.
const MAX_MODELS: usize = 16;
/// Longest name of a model in the configuration.
const MAX_NAME: usize = 40;
/// What names of models must not be, since they mean something else.
const TAKEN: [&str; 2] = [OFFLINE, "chain"];
/// Keys that say a model's API key.
const KEY_KEYS: [&str; 4] = ["key", "key_file", "key_command", "key_env"];

/// Models that judge mail, at least one in the chain.
#[derive(Debug, Clone)]
pub struct Perception {
    /// The models in the order of asking.
    pub chain: Vec<ModelConfig>,
    /// A model that is asked too where the chain's answer is not sure.
    pub stronger: Option<ModelConfig>,
    /// Below this confidence the stronger model is asked.
    pub stronger_below: f64,
    /// How long a new message waits for models; then the offline scorer's
    /// numbers count and it is shown.
    pub deadline: Duration,
    /// Whether an answer after the deadline may move a message.
    pub rescore: bool,
    /// What may be spent on a day.
    pub limits: Limits,
    /// Prices by model; every configured model has one.
    pub prices: Prices,
    /// The proxy for all models.
    pub proxy: Option<String>,
}

/// One model.
#[derive(Debug, Clone)]
pub struct ModelConfig {
    /// What it is called in traces, logs and metrics.
    pub name: String,
    /// The URL of the API, without a final slash.
    pub url: String,
    /// The server in that URL.
    pub endpoint: Endpoint,
    /// The model's id there.
    pub model: String,
    /// The API key, where the server wants one.
    pub key: Option<KeySource>,
    /// How long one call may take.
    pub timeout: Duration,
    /// Calls at a time.
    pub concurrency: usize,
}

/// Where an API key comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeySource {
    /// As a password.
    Secret(SecretSource),
    /// A variable of the environment.
    Env(String),
}

impl Perception {
    /// Every model, the stronger one last.
    pub fn models(&self) -> impl Iterator<Item = &ModelConfig> {
        self.chain.iter().chain(&self.stronger)
    }
}

/// Everything about models; `None` where none is configured.
pub(super) fn perception(top: &mut Section<'_, '_>) -> Option<Perception> {
    let mut table = top.section("perception");
    let deadline =
        table.whole("deadline_ms", 100..=600_000).map_or(DEFAULT_DEADLINE, |f| Duration::from_millis(f.value));
    let rescore = table.flag("rescore").is_some_and(|f| f.value);
    let overall = table.micros("budget_per_day").map_or(DEFAULT_BUDGET, |f| f.value);
    let account = table.micros("budget_per_account").map_or(overall, |f| f.value);
    let stronger_below = table.share("stronger_below").map_or(DEFAULT_STRONGER_BELOW, |f| f.value);
    let proxy = table.filled("proxy");
    if let Some(found) = &proxy
        && !["http://", "https://"].iter().any(|s| found.value.starts_with(s))
    {
        table.source().problem(&found.at, "must start with http:// or https://");
    }
    table.finish();
    let prices = prices(top.sections("price"));
    let (mut chain, mut stronger) = (Vec::new(), Vec::new());
    let tables = top.sections("model");
    if tables.len() > MAX_MODELS {
        top.source().note(None, "model", format!("more than {MAX_MODELS} models"));
    }
    let mut names: Vec<String> = Vec::new();
    for table in tables {
        let Some((model, is_stronger)) = model(table, &prices, &mut names) else { continue };
        if is_stronger { stronger.push(model) } else { chain.push(model) }
    }
    if stronger.len() > 1 {
        top.source().note(None, "model", "only one model can have role = \"stronger\"");
    }
    if chain.is_empty() && !stronger.is_empty() {
        top.source().note(None, "model", "a stronger model needs one with role = \"chain\" before it");
    }
    if chain.is_empty() {
        return None;
    }
    Some(Perception {
        chain,
        stronger: stronger.pop(),
        stronger_below,
        deadline,
        rescore,
        limits: Limits { overall, account },
        prices,
        proxy: proxy.map(|f| f.value),
    })
}

fn prices(tables: Vec<Section<'_, '_>>) -> Prices {
    let mut rows: Vec<(String, Price)> = Vec::new();
    for mut table in tables {
        let pattern = table.required("model");
        let mut amount = |key| {
            if !table.has(key) {
                table.source().problem(&table.here(), format!("{key} is missing: the price of a million tokens"));
            }
            table.micros(key).map(|f| f.value)
        };
        let (input, output) = (amount("input"), amount("output"));
        if let Some(found) = &pattern {
            let inside = found.value.strip_suffix('*').unwrap_or(&found.value);
            if inside.contains('*') {
                table.source().problem(&found.at, "may have * at its end only");
            }
            if rows.iter().any(|(row, _)| *row == found.value) {
                table.source().problem(&found.at, format!("\"{}\" has a price already", found.value));
            }
        }
        table.finish();
        if let (Some(pattern), Some(input), Some(output)) = (pattern, input, output) {
            rows.push((pattern.value, Price { input, output }));
        }
    }
    Prices::new(rows)
}

/// A model, and whether it is the stronger one.
fn model(mut table: Section<'_, '_>, prices: &Prices, names: &mut Vec<String>) -> Option<(ModelConfig, bool)> {
    let name = table.required("name");
    if let Some(found) = &name {
        let plain = |b: u8| b.is_ascii_alphanumeric() || b"-_.".contains(&b);
        if found.value.len() > MAX_NAME || !found.value.bytes().all(plain) {
            let message = format!("must be at most {MAX_NAME} ASCII letters, digits, hyphens, dots and underscores");
            table.source().problem(&found.at, message);
        }
        if TAKEN.contains(&found.value.as_str()) {
            table.source().problem(&found.at, format!("\"{}\" means something else", found.value));
        }
        if names.contains(&found.value) {
            table.source().problem(&found.at, format!("another model is called \"{}\"", found.value));
        }
        names.push(found.value.clone());
    }
    let url = table.required("endpoint");
    let ca = table.path("ca");
    if let Some(found) = &ca {
        files::readable(table.source(), found);
    }
    let parsed = url.and_then(|found| match parse_url(&found.value) {
        Ok(parsed) if !parsed.path.contains('?') => {
            let endpoint = Endpoint { ca: ca.map(|f: Found<PathBuf>| f.value), ..parsed.endpoint };
            Some((found.value.trim_end_matches('/').to_owned(), endpoint))
        }
        Ok(_) => {
            table.source().problem(&found.at, "must end with its path, such as https://api.example.com/v1");
            None
        }
        Err(why) => {
            table.source().problem(&found.at, why);
            None
        }
    });
    let model = table.required("model");
    if let Some(found) = &model
        && prices.of(&found.value).is_none()
    {
        let message = format!("\"{}\" has no price: write a [[price]] for it (0 where it costs nothing)", found.value);
        table.source().problem(&found.at, message);
    }
    let stronger = table.word("role", &[("chain", false), ("stronger", true)]).is_some_and(|f| f.value);
    let key = key(&mut table);
    let timeout = table.whole("timeout_ms", 50..=600_000).map_or(DEFAULT_TIMEOUT, |f| Duration::from_millis(f.value));
    let concurrency = table.whole("concurrency", 1..=256).map_or(DEFAULT_CONCURRENCY, |f| f.value);
    table.finish();
    let (url, endpoint) = parsed?;
    let model = ModelConfig {
        name: name?.value,
        url,
        endpoint,
        model: model?.value,
        key,
        timeout,
        concurrency: usize::try_from(concurrency).unwrap_or(1),
    };
    Some((model, stronger))
}

fn key(table: &mut Section<'_, '_>) -> Option<KeySource> {
    let inline = table.filled("key");
    let file = table.path("key_file");
    let command = table.list("key_command");
    let env = table.filled("key_env");
    if KEY_KEYS.into_iter().filter(|key| table.has(key)).count() > 1 {
        table.source().problem(&table.here(), "only one of key, key_file, key_command and key_env can be said");
    }
    if let Some(found) = inline {
        files::holder_of_secret(table.source(), &found.at);
        return Some(KeySource::Secret(SecretSource::Inline(found.value)));
    }
    if let Some(found) = file {
        files::readable_secret(table.source(), &found);
        return Some(KeySource::Secret(SecretSource::File(found.value)));
    }
    if let Some(found) = command {
        if found.value.first().is_none_or(String::is_empty) {
            table.source().problem(&found.at, "needs a program, then its arguments: [\"pass\", \"show\", \"api\"]");
        }
        return Some(KeySource::Secret(SecretSource::Command(found.value)));
    }
    env.map(|found| KeySource::Env(found.value))
}

#[cfg(test)]
mod tests {
    use super::super::{Config, Env, Overrides, parse};
    use super::*;

    const BASE: &str = "state_dir = \"state\"\n[[account]]\naddress = \"demo@example.org\"\nprovider = \"embedded\"\n";
    const PRICE: &str = "[[price]]\nmodel = \"*\"\ninput = 0.15\noutput = 0.6\n";
    const MODEL: &str = "[[model]]\nname = \"m\"\nendpoint = \"http://127.0.0.1:1/v1/\"\nmodel = \"x\"\n";

    fn read(more: &str) -> Result<Config, String> {
        let file = std::path::Path::new("/nonexistent/gateway.toml");
        parse(&format!("{BASE}{more}"), file, &Env::default(), &Overrides::default()).map_err(|p| p.to_string())
    }

    #[test]
    fn without_a_model_everything_is_off() {
        assert!(read("").unwrap().perception.is_none());
        assert!(read(&format!("{PRICE}[perception]\ndeadline_ms = 500\n")).unwrap().perception.is_none());
    }

    #[test]
    fn a_model_is_read_with_its_defaults() {
        let p = read(&format!("{PRICE}{MODEL}")).unwrap().perception.unwrap();
        assert_eq!((p.deadline, p.rescore, p.limits.overall), (DEFAULT_DEADLINE, false, DEFAULT_BUDGET));
        assert_eq!((p.chain[0].url.as_str(), p.chain[0].concurrency), ("http://127.0.0.1:1/v1", 4));
        assert_eq!(p.prices.of("x"), Some(Price { input: 150_000, output: 600_000 }));
        let more = "[perception]\nbudget_per_day = 2.5\nbudget_per_account = 0.000001\nrescore = true\n";
        let p = read(&format!("{PRICE}{MODEL}key_env = \"K\"\n{more}")).unwrap().perception.unwrap();
        assert_eq!((p.limits.overall, p.limits.account, p.rescore), (2_500_000, 1, true));
        assert_eq!(p.chain[0].key, Some(KeySource::Env("K".to_owned())));
    }

    #[test]
    fn what_would_not_do_is_refused_with_the_reason() {
        let bad = |text: String, says: &str| {
            let e = read(&text).expect_err(&text);
            assert!(e.contains(says), "{text}\n{e}");
        };
        bad(MODEL.to_owned(), "has no price");
        bad(format!("{MODEL}{}", PRICE.replace('*', "y*")), "has no price");
        bad(format!("{PRICE}{}", MODEL.replace("http://127.0.0.1:1", "http://example.com")), "https://");
        bad(format!("{PRICE}{}", MODEL.replace("/v1/", "/v1?x=y")), "must end with its path");
        bad(format!("{PRICE}{}", MODEL.replace("\"m\"", "\"offline\"")), "means something else");
        bad(format!("{PRICE}{MODEL}{MODEL}"), "another model is called");
        bad(format!("{PRICE}{MODEL}key = \"a\"\nkey_env = \"B\"\n"), "only one of key");
        bad(format!("{PRICE}{MODEL}role = \"stronger\"\n"), "needs one with role");
        bad(format!("{PRICE}{MODEL}tiemout_ms = 5\n"), "timeout_ms");
        bad(format!("{PRICE}{PRICE}{MODEL}"), "has a price already");
        bad(format!("{}{MODEL}", PRICE.replace("0.15", "-1")), "must be");
        bad(format!("{}{MODEL}", PRICE.replace("input = 0.15\n", "")), "input is missing");
        bad(format!("{PRICE}{MODEL}[perception]\nbudget_per_day = \"nan\"\n"), "must be");
        bad(format!("{PRICE}{MODEL}[perception]\nrescore = \"maybe\"\n"), "true or false");
    }
}
