//! An OpenAI-compatible endpoint that does what a test says.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

use crate::common::tls::Authority;

/// What it does with a request.
#[derive(Debug, Clone)]
pub(crate) enum Does {
    /// A status, further fields, and a body.
    Says(u16, Vec<(&'static str, String)>, String),
    /// Waits first.
    Waits(Duration, Box<Does>),
    /// Announces this body and breaks off in the middle.
    BreaksOff(String),
    /// A body of so many octets, as fast as it is taken.
    Floods(usize),
}

/// A request as it came.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    /// The request line and the fields.
    pub(crate) head: String,
    pub(crate) body: Value,
}

impl Asked {
    /// What the user's part of the prompt says.
    pub(crate) fn user(&self) -> &str {
        self.body["messages"][1]["content"].as_str().unwrap_or_default()
    }

    /// The subject of the message that it is about.
    pub(crate) fn subject(&self) -> String {
        let after = self.user().split("\nsubject: <untrusted_content>").nth(1).unwrap_or_default();
        after.split("</untrusted_content>").next().unwrap_or_default().to_owned()
    }
}

type Script = Arc<dyn Fn(&Asked) -> Does + Send + Sync>;

/// The endpoint; it ends when it is dropped.
pub(crate) struct Endpoint {
    pub(crate) address: SocketAddr,
    asked: Arc<Mutex<Vec<Asked>>>,
    task: JoinHandle<()>,
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Endpoint {
    pub(crate) async fn start(script: impl Fn(&Asked) -> Does + Send + Sync + 'static) -> Endpoint {
        Endpoint::listen(None, script).await
    }

    /// The same inside TLS.
    pub(crate) async fn start_tls(
        authority: &Authority,
        script: impl Fn(&Asked) -> Does + Send + Sync + 'static,
    ) -> Endpoint {
        let chain = CertificateDer::pem_file_iter(&authority.cert).unwrap().collect::<Result<_, _>>().unwrap();
        let key = PrivateKeyDer::from_pem_file(&authority.key).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .unwrap();
        Endpoint::listen(Some(TlsAcceptor::from(Arc::new(config))), script).await
    }

    async fn listen(tls: Option<TlsAcceptor>, script: impl Fn(&Asked) -> Does + Send + Sync + 'static) -> Endpoint {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let asked: Arc<Mutex<Vec<Asked>>> = Arc::default();
        let (all, script): (_, Script) = (asked.clone(), Arc::new(script));
        let task = tokio::spawn(async move {
            loop {
                let Ok((stream, _)) = listener.accept().await else { return };
                let (all, script, tls) = (all.clone(), script.clone(), tls.clone());
                tokio::spawn(async move {
                    // A client that goes away ends its own connection only.
                    let _ = match tls {
                        None => serve(stream, &all, &script).await,
                        Some(tls) => match tls.accept(stream).await {
                            Ok(stream) => serve(stream, &all, &script).await,
                            Err(e) => Err(e),
                        },
                    };
                });
            }
        });
        Endpoint { address, asked, task }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// What it was asked so far.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }
}

async fn serve(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    all: &Mutex<Vec<Asked>>,
    script: &Script,
) -> std::io::Result<()> {
    let mut octets = Vec::new();
    let head = loop {
        if stream.read_buf(&mut octets).await? == 0 {
            return Ok(());
        }
        if let Some(end) = octets.windows(4).position(|w| w == b"\r\n\r\n") {
            break end;
        }
    };
    let text = String::from_utf8_lossy(&octets[..head]).into_owned();
    let length = text.lines().find_map(|l| l.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
    while octets.len() < head + 4 + length.unwrap_or(0) {
        if stream.read_buf(&mut octets).await? == 0 {
            return Ok(());
        }
    }
    let body = serde_json::from_slice(&octets[head + 4..]).unwrap_or(Value::Null);
    let asked = Asked { head: text, body };
    all.lock().unwrap().push(asked.clone());
    let mut does = script(&asked);
    while let Does::Waits(time, next) = does {
        tokio::time::sleep(time).await;
        does = *next;
    }
    match does {
        Does::Says(status, fields, body) => {
            let fields: String = fields.iter().map(|(n, v)| format!("{n}: {v}\r\n")).collect();
            let head = format!(
                "HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: {}\r\n{fields}Connection: close\r\n\r\n",
                body.len()
            );
            stream.write_all(format!("{head}{body}").as_bytes()).await?;
        }
        Does::BreaksOff(body) => {
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
            stream.write_all(format!("{head}{}", &body[..body.len() / 2]).as_bytes()).await?;
        }
        Does::Floods(length) => {
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{{\"a\":\"");
            stream.write_all(head.as_bytes()).await?;
            let chunk = vec![b'x'; 64 * 1024];
            for _ in 0..length / chunk.len() {
                stream.write_all(&chunk).await?;
            }
        }
        Does::Waits(..) => {}
    }
    stream.shutdown().await
}

/// Numbers as JSON, and a reason.
pub(crate) fn numbers(confidence: f64, trust: f64, reversibility: f64, urgency: f64, reason: &str) -> String {
    json!({
        "confidence": confidence, "sender_trust": trust, "reversibility": reversibility, "urgency": urgency,
        "reason": reason
    })
    .to_string()
}

/// A chat completion that says `content`, with tokens counted.
pub(crate) fn says(content: &str) -> Does {
    says_as("lab", content)
}

pub(crate) fn says_as(model: &str, content: &str) -> Does {
    let body = json!({
        "id": "x", "object": "chat.completion", "model": model,
        "choices": [{ "index": 0, "finish_reason": "stop", "message": { "role": "assistant", "content": content } }],
        "usage": { "prompt_tokens": 300, "completion_tokens": 50, "total_tokens": 350 }
    });
    Does::Says(200, Vec::new(), body.to_string())
}

/// A valid answer with a reason.
pub(crate) fn answers(reason: &str) -> Does {
    says(&numbers(0.9, 0.5, 0.5, 0.3, reason))
}

pub(crate) fn status(status: u16, body: &str) -> Does {
    Does::Says(status, Vec::new(), body.to_owned())
}
