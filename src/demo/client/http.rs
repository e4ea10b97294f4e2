//! A small HTTP client: one request a connection, no redirects followed.

use std::io;
use std::net::SocketAddr;

use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper::header::{CONTENT_TYPE, HOST, HeaderMap};
use hyper::{Method, Request};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use super::patient;

/// Largest page that is read.
const MAX_BODY: usize = 8 * 1024 * 1024;

/// A browser that only does what it is told.
#[derive(Debug, Clone)]
pub struct HttpClient {
    address: SocketAddr,
    /// Host and port as they stand in links.
    authority: String,
}

/// A page.
#[derive(Debug, Clone)]
pub struct Page {
    /// The status code.
    pub status: u16,
    /// The header fields.
    pub headers: HeaderMap,
    /// The body.
    pub body: Vec<u8>,
}

impl Page {
    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The `name=value` of the first cookie that is set.
    pub fn cookie(&self) -> Option<String> {
        let value = self.headers.get("set-cookie")?.to_str().ok()?;
        value.split(';').next().map(str::to_owned)
    }

    /// The value of the first form input with this name.
    pub fn input(&self, name: &str) -> Option<String> {
        let text = self.text();
        let wanted = format!("name=\"{name}\"");
        let tag = text.split('<').find(|tag| tag.starts_with("input") && tag.contains(&wanted))?;
        let tag = tag.split('>').next()?;
        let (_, value) = tag.split_once(" value=\"")?;
        value.split('"').next().map(str::to_owned)
    }
}

impl HttpClient {
    /// A client of the pages at `address`, which links call `authority`.
    pub fn new(address: SocketAddr, authority: &str) -> HttpClient {
        HttpClient { address, authority: authority.to_owned() }
    }

    /// What stands before a path in links.
    pub fn origin(&self) -> String {
        format!("http://{}", self.authority)
    }

    /// GET, with further header fields.
    pub async fn get(&self, path: &str, headers: &[(&str, &str)]) -> io::Result<Page> {
        self.request(Method::GET, path, headers, String::new()).await
    }

    /// POST of a form, from our own page, with further header fields.
    pub async fn post(&self, path: &str, headers: &[(&str, &str)], form: &[(&str, &str)]) -> io::Result<Page> {
        let pairs: Vec<String> = form.iter().map(|(n, v)| format!("{}={}", encoded(n), encoded(v))).collect();
        let origin = self.origin();
        let mut all = vec![("origin", origin.as_str())];
        all.extend_from_slice(headers);
        self.request(Method::POST, path, &all, pairs.join("&")).await
    }

    /// Any request; a body is a form.
    pub async fn request(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: String,
    ) -> io::Result<Page> {
        let mut request = Request::builder().method(method).uri(path).header(HOST, &self.authority);
        if !body.is_empty() {
            request = request.header(CONTENT_TYPE, "application/x-www-form-urlencoded");
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Full::new(Bytes::from(body))).map_err(io::Error::other)?;
        patient(self.exchange(request)).await
    }

    async fn exchange(&self, request: Request<Full<Bytes>>) -> io::Result<Page> {
        let stream = TokioIo::new(TcpStream::connect(self.address).await?);
        let (mut sender, connection) = hyper::client::conn::http1::handshake(stream).await.map_err(io::Error::other)?;
        let exchange = async {
            let response = sender.send_request(request).await.map_err(io::Error::other)?;
            let (head, body) = response.into_parts();
            let body = Limited::new(body, MAX_BODY).collect().await.map_err(io::Error::other)?.to_bytes().to_vec();
            Ok(Page { status: head.status.as_u16(), headers: head.headers, body })
        };
        tokio::pin!(exchange);
        tokio::select! {
            page = &mut exchange => page,
            ended = connection => match ended {
                // The answer may be read already when the connection ends.
                Ok(()) => exchange.await,
                Err(error) => Err(io::Error::other(error)),
            },
        }
    }
}

/// Percent-encoded for a form.
fn encoded(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' => out.push(char::from(byte)),
            other => out.push_str(&format!("%{other:02X}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_input_is_found_whatever_stands_around_it() {
        let body = b"<p>x</p><form><input type=\"hidden\" value=\"v1\" name=\"csrf\"><input name=\"hash\" value=\"v2\"></form>";
        let page = Page { status: 200, headers: HeaderMap::new(), body: body.to_vec() };
        assert_eq!(page.input("csrf").as_deref(), Some("v1"));
        assert_eq!(page.input("hash").as_deref(), Some("v2"));
        assert_eq!(page.input("pin"), None);
        assert_eq!(encoded("a b&=%"), "a%20b%26%3D%25");
    }
}
