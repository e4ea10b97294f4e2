//! One question to one model, over an OpenAI-compatible endpoint.
//!
//! Promises: connects to the configured endpoint and nowhere else (no
//! redirect, no proxy of the environment); ends within the time it is given;
//! reads no more of an answer than [`MAX_BODY`]; temperature 0. Asks for JSON
//! by a schema where the server takes that, and in plainer forms where it
//! refuses; whatever the server promised, the answer is checked here. Doesn't
//! know: other models, budgets, what an answer does.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::Deserialize;
use serde_json::{Value, json};

use super::answer::{self, Answer, MAX_REASON_CHARS};
use super::budget::Usage;
use super::failure::{self, Failure, Kind, Reset};
use super::prompt::Prompt;

/// Octets of an HTTP body that are read at most.
pub const MAX_BODY: usize = 256 * 1024;
/// Tokens that an answer may have.
pub const MAX_ANSWER_TOKENS: u64 = 220;
/// How long a connection may take to come about.
const CONNECT: Duration = Duration::from_secs(5);
/// Steps of each number in the schema, so that a model can't leave the range
/// where the server keeps the schema: not every server keeps `minimum` and
/// `maximum`, but each keeps an enumeration.
const STEPS: u32 = 20;

/// Where a model is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    /// The endpoint, without a final slash: `https://api.example.com/v1`.
    pub endpoint: String,
    /// The model's id there.
    pub model: String,
    /// A proxy that is used for it.
    pub proxy: Option<String>,
}

/// A valid answer and what it took.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    /// The answer.
    pub answer: Answer,
    /// The model that the server says it is of.
    pub model: Option<String>,
    /// Tokens as the server counted them.
    pub usage: Option<Usage>,
}

/// A client of one model.
#[derive(Debug)]
pub struct Client {
    server: Server,
    http: reqwest::Client,
    /// Index of the form in [`FORMS`] that the server takes, as far as known.
    form: AtomicUsize,
}

/// How JSON is asked for, the strictest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// A schema that bounds the reason too.
    BoundedSchema,
    /// A schema.
    Schema,
    /// A schema as llama-cpp-python takes it.
    ObjectWithSchema,
    /// Any JSON object.
    Object,
    /// Only the words of the prompt.
    Words,
}

const FORMS: [Form; 5] = [Form::BoundedSchema, Form::Schema, Form::ObjectWithSchema, Form::Object, Form::Words];

impl Client {
    /// A client; `tls` is what HTTPS endpoints are spoken to with.
    pub fn new(server: Server, tls: rustls::ClientConfig) -> Result<Client, String> {
        let mut builder = reqwest::Client::builder()
            .user_agent("tollgate")
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never())
            .referer(false)
            .connect_timeout(CONNECT)
            .tls_backend_preconfigured(tls);
        if let Some(proxy) = &server.proxy {
            builder = builder.proxy(reqwest::Proxy::all(proxy).map_err(|e| said(&e))?);
        }
        let http = builder.build().map_err(|e| said(&e))?;
        Ok(Client { server, http, form: AtomicUsize::new(0) })
    }

    /// The model's id.
    pub fn model(&self) -> &str {
        &self.server.model
    }

    /// Asks, and checks the answer. A server that refuses the form of answers
    /// is asked again in a plainer one, within the same time.
    pub async fn ask(&self, key: Option<&str>, prompt: &Prompt, within: Duration) -> Result<Reply, Failure> {
        let asked = async {
            loop {
                let form = self.form.load(Ordering::Relaxed);
                let body = self.request(prompt, FORMS[form]);
                let (status, text, failed) = self.post(key, &body).await?;
                if status == 200 {
                    return read(&text, prompt);
                }
                if form + 1 < FORMS.len() && failure::is_about_form(status, &text) {
                    // Another call may have learned the same meanwhile.
                    let _ = self.form.compare_exchange(form, form + 1, Ordering::Relaxed, Ordering::Relaxed);
                    tracing::info!(
                        model = self.server.model,
                        status,
                        "{:?} is refused, a plainer form is used",
                        FORMS[form]
                    );
                    continue;
                }
                return Err(failed);
            }
        };
        match tokio::time::timeout(within, asked).await {
            Ok(answer) => answer,
            Err(_) => Err(Failure::new(Kind::Slow, &format!("no answer within {} ms", within.as_millis()))),
        }
    }

    fn request(&self, prompt: &Prompt, form: Form) -> Vec<u8> {
        let mut body = json!({
            "model": self.server.model,
            "messages": [
                { "role": "system", "content": prompt.system },
                { "role": "user", "content": prompt.user },
            ],
            "temperature": 0,
            "max_tokens": MAX_ANSWER_TOKENS,
            "stream": false,
        });
        let strict = |schema: Value| json!({ "type": "json_schema", "json_schema": { "name": "judgement", "strict": true, "schema": schema } });
        match form {
            Form::BoundedSchema => body["response_format"] = strict(schema(true)),
            Form::Schema => body["response_format"] = strict(schema(false)),
            Form::ObjectWithSchema => {
                body["response_format"] = json!({ "type": "json_object", "schema": schema(true) });
            }
            Form::Object => body["response_format"] = json!({ "type": "json_object" }),
            Form::Words => {}
        }
        body.to_string().into_bytes()
    }

    /// One POST: status, body, and the failure that it is unless it is 200.
    async fn post(&self, key: Option<&str>, body: &[u8]) -> Result<(u16, String, Failure), Failure> {
        let url = format!("{}/chat/completions", self.server.endpoint);
        let mut request =
            self.http.post(url).header("Content-Type", "application/json").header("Accept", "application/json");
        if let Some(key) = key {
            // Marked as sensitive by it, so that no log shows it.
            request = request.bearer_auth(key);
        }
        let mut response = request.body(body.to_vec()).send().await.map_err(|e| broken(&e))?;
        let status = response.status().as_u16();
        let header = |name: &str| response.headers().get(name).and_then(|v| v.to_str().ok()).map(str::to_owned);
        let (after, reset) = (header("retry-after"), header("x-ratelimit-reset"));
        let mut octets = Vec::new();
        loop {
            match response.chunk().await {
                Ok(None) => break,
                Ok(Some(chunk)) if octets.len() + chunk.len() <= MAX_BODY => octets.extend_from_slice(&chunk),
                Ok(Some(_)) if status == 200 => {
                    return Err(Failure::new(Kind::Large, &format!("the answer is larger than {MAX_BODY} octets")));
                }
                // Of an error the start is enough, and its status counts.
                Ok(Some(_)) => break,
                Err(_) if status != 200 => break,
                Err(e) => return Err(Failure::new(Kind::Cut, &said(&e))),
            }
        }
        let text = String::from_utf8_lossy(&octets).into_owned();
        let reset = Reset { retry_after: after.as_deref(), limit_reset: reset.as_deref() };
        let failed = failure::of_status(status, &text, reset, now());
        Ok((status, text, failed))
    }
}

/// Exactly the five fields.
fn schema(bounded: bool) -> Value {
    let steps: Vec<f64> = (0..=STEPS).map(|n| f64::from(n) / f64::from(STEPS)).collect();
    let number = json!({ "type": "number", "enum": steps });
    let mut reason = json!({ "type": "string" });
    if bounded {
        reason["maxLength"] = json!(MAX_REASON_CHARS);
    }
    json!({
        "type": "object",
        "properties": {
            "confidence": number,
            "sender_trust": number,
            "reversibility": number,
            "urgency": number,
            "reason": reason,
        },
        "required": ["confidence", "sender_trust", "reversibility", "urgency", "reason"],
        "additionalProperties": false,
    })
}

/// What servers send around an answer; they send more, and that isn't read.
#[derive(Deserialize)]
struct Completion {
    #[serde(default)]
    model: Option<String>,
    #[serde(default)]
    choices: Vec<Choice>,
    #[serde(default)]
    usage: Option<Counted>,
    #[serde(default)]
    error: Option<Value>,
}

#[derive(Deserialize)]
struct Choice {
    message: Said,
    #[serde(default)]
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct Said {
    #[serde(default)]
    content: Option<String>,
}

#[derive(Deserialize)]
struct Counted {
    #[serde(default)]
    prompt_tokens: u64,
    #[serde(default)]
    completion_tokens: u64,
}

/// The answer in a body that came with 200.
fn read(text: &str, prompt: &Prompt) -> Result<Reply, Failure> {
    let completion: Completion = serde_json::from_str(text).map_err(|e| match e.is_eof() {
        true => Failure::new(Kind::Cut, "the answer broke off"),
        false => Failure::new(Kind::Invalid, &format!("the body is no chat completion: {e}")),
    })?;
    let usage = completion.usage.map(|c| Usage { input: c.prompt_tokens, output: c.completion_tokens });
    let invalid = |why: &str| Failure { usage, ..Failure::new(Kind::Invalid, why) };
    if let (Some(error), true) = (&completion.error, completion.choices.is_empty()) {
        // Routers answer 200 and put the status of the server behind into it.
        let status = error["code"].as_u64().and_then(|c| u16::try_from(c).ok()).filter(|c| *c >= 300).unwrap_or(500);
        return Err(failure::of_status(status, text, Reset::default(), now()));
    }
    let choice = completion.choices.into_iter().next().ok_or_else(|| invalid("the body holds no answer"))?;
    if choice.finish_reason.as_deref() == Some("length") {
        return Err(invalid("the answer was cut at its limit of tokens"));
    }
    let content = choice.message.content.unwrap_or_default();
    let answer = answer::parse(&content, prompt).map_err(|e| invalid(&e.to_string()))?;
    Ok(Reply { answer, model: completion.model, usage })
}

fn broken(e: &reqwest::Error) -> Failure {
    let kind = match () {
        () if e.is_timeout() && !e.is_connect() => Kind::Slow,
        () if e.is_connect() => Kind::Unreachable,
        () => Kind::Cut,
    };
    Failure::new(kind, &said(e))
}

/// An error with its causes; reqwest's own text leaves them out.
fn said(e: &reqwest::Error) -> String {
    let mut out = String::new();
    let mut next: Option<&dyn std::error::Error> = Some(e);
    while let Some(error) = next {
        let text = error.to_string();
        if !out.contains(&text) {
            out = if out.is_empty() { text } else { format!("{out}: {text}") };
        }
        next = error.source();
    }
    out
}

fn now() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| i64::try_from(d.as_secs()).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prompt() -> Prompt {
        Prompt { system: "s".to_owned(), user: "u".to_owned(), sha256: String::new() }
    }

    fn body(content: &str, finish: &str) -> String {
        json!({
            "model": "m-1", "choices": [{ "message": { "role": "assistant", "content": content }, "finish_reason": finish }],
            "usage": { "prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120 }, "other": [1]
        })
        .to_string()
    }

    const GOOD: &str = r#"{"confidence":0.8,"sender_trust":0.5,"reversibility":1,"urgency":0.25,"reason":"a note"}"#;

    #[test]
    fn an_answer_comes_with_what_it_took() {
        let reply = read(&body(GOOD, "stop"), &prompt()).unwrap();
        assert_eq!(reply.answer.reason, "a note");
        assert_eq!((reply.model.as_deref(), reply.usage), (Some("m-1"), Some(Usage { input: 100, output: 20 })));
    }

    #[test]
    fn what_is_no_answer_says_why_and_what_it_cost() {
        let whole = body(GOOD, "stop");
        assert_eq!(read(&whole[..whole.len() / 2], &prompt()).unwrap_err().kind, Kind::Cut);
        assert_eq!(read("<html>", &prompt()).unwrap_err().kind, Kind::Invalid);
        assert_eq!(read("{}", &prompt()).unwrap_err().kind, Kind::Invalid);
        let cut = read(&body(GOOD, "length"), &prompt()).unwrap_err();
        assert_eq!((cut.kind, cut.usage), (Kind::Invalid, Some(Usage { input: 100, output: 20 })));
        let inside = r#"{"error":{"code":429,"message":"Rate limit exceeded"}}"#;
        assert_eq!(read(inside, &prompt()).unwrap_err().kind, Kind::Rate);
        let inside = r#"{"error":{"message":"something broke"}}"#;
        assert_eq!(read(inside, &prompt()).unwrap_err().kind, Kind::Server);
    }

    #[test]
    fn every_value_of_the_schema_is_a_valid_number() {
        let schema = schema(true);
        let steps = schema["properties"]["urgency"]["enum"].as_array().unwrap();
        assert_eq!((steps.first(), steps.last(), steps.len()), (Some(&json!(0.0)), Some(&json!(1.0)), 21));
        assert!(steps.iter().all(|s| (0.0..=1.0).contains(&s.as_f64().unwrap())));
    }
}
