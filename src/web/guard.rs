//! What every request passes before a page sees it.
//!
//! Order: Host, method, site, Origin, body, sign-in. Every response leaves
//! with the same security headers.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::refusal::Refusal;
use super::sanitise::FRAME_STYLE_SOURCE;
use super::session::{self, Session};
use super::{App, gate, pin};
use crate::outbox::HoldId;

/// Largest body of a POST.
pub(super) const MAX_BODY: usize = 64 * 1024;
/// How long a body may take to arrive.
const BODY_TIMEOUT: Duration = Duration::from_secs(10);

/// Paths that need no sign-in; the gate takes an agent's key instead.
const OPEN: [&str; 5] = ["/healthz", "/metrics", "/style.css", "/sign-in", gate::PATH];

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// The response headers, policy included. Referrer-Policy is `same-origin`
/// and not `no-referrer`, because browsers send `Origin: null` with a form
/// under the latter, and then nothing could be approved.
static HEADERS: LazyLock<Vec<(HeaderName, HeaderValue)>> = LazyLock::new(|| {
    let policy = format!(
        "default-src 'none'; style-src 'self' {}; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
        *FRAME_STYLE_SOURCE
    );
    let fixed = [
        ("x-content-type-options", "nosniff"),
        ("referrer-policy", "same-origin"),
        ("cache-control", "no-store"),
        ("cross-origin-opener-policy", "same-origin"),
        ("cross-origin-resource-policy", "same-origin"),
        ("cross-origin-embedder-policy", "require-corp"),
        ("x-frame-options", "DENY"),
        ("x-dns-prefetch-control", "off"),
        ("permissions-policy", "camera=(), geolocation=(), microphone=(), payment=(), usb=()"),
    ];
    let mut headers: Vec<(HeaderName, HeaderValue)> =
        fixed.into_iter().map(|(n, v)| (HeaderName::from_static(n), HeaderValue::from_static(v))).collect();
    // The policy is ASCII: a constant and a base64 hash.
    if let Ok(policy) = HeaderValue::from_str(&policy) {
        headers.push((header::CONTENT_SECURITY_POLICY, policy));
    }
    headers
});

/// The middleware.
pub(super) async fn guard(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let mut response = match admit(&app, request).await {
        Ok(request) => next.run(request).await,
        Err(refusal) => refusal.into_response(),
    };
    for (name, value) in HEADERS.iter() {
        response.headers_mut().insert(name.clone(), value.clone());
    }
    response
}

async fn admit(app: &App, request: Request) -> Result<Request, Refusal> {
    our_host(app, &request)?;
    let posts = match *request.method() {
        Method::GET | Method::HEAD => false,
        Method::POST => true,
        _ => return Err(Refusal::Method),
    };
    our_site(app, &request, posts)?;
    let session = signed_in(app, request.headers())?;
    let open = OPEN.contains(&request.uri().path());
    if session.is_none() && !open {
        let next = hold_path(request.uri().path()).filter(|_| !posts);
        return Err(Refusal::NotSignedIn { next });
    }
    let mut request = if posts { with_bounded_body(request).await? } else { request };
    if let Some(session) = session {
        request.extensions_mut().insert(session);
    }
    Ok(request)
}

/// One Host field, ours to the byte, and no other authority in the target.
fn our_host(app: &App, request: &Request) -> Result<(), Refusal> {
    let mut hosts = request.headers().get_all(header::HOST).iter();
    let ours = app.site.authority.as_bytes();
    let one = hosts.next().is_some_and(|h| h.as_bytes() == ours) && hosts.next().is_none();
    let target = request.uri().authority().is_none_or(|a| a.as_str().as_bytes() == ours);
    if one && target { Ok(()) } else { Err(Refusal::Host) }
}

fn our_site(app: &App, request: &Request, posts: bool) -> Result<(), Refusal> {
    let headers = request.headers();
    let origins: Vec<&[u8]> = headers.get_all(header::ORIGIN).iter().map(HeaderValue::as_bytes).collect();
    match origins.as_slice() {
        [one] if *one == app.site.origin.as_bytes() => {}
        [] if !posts => {}
        _ => return Err(Refusal::Origin),
    }
    for site in headers.get_all(SEC_FETCH_SITE) {
        match site.as_bytes() {
            b"same-origin" => {}
            // Typed, bookmarked, or opened by another program such as a mail client.
            b"none" if !posts => {}
            _ => return Err(Refusal::CrossSite { path: hold_path(request.uri().path()) }),
        }
    }
    Ok(())
}

/// The path, where it is one message's page.
fn hold_path(path: &str) -> Option<String> {
    let id = HoldId::parse(path.strip_prefix("/held/")?)?;
    Some(format!("/held/{id}"))
}

fn signed_in(app: &App, headers: &HeaderMap) -> Result<Option<Session>, Refusal> {
    for token in session::tokens(headers) {
        if let Some(session) = session::find(app.services.store.as_ref(), &token, pin::now())?
            && app.services.accounts.account(&session.account).is_some()
        {
            return Ok(Some(session));
        }
    }
    Ok(None)
}

/// Reads the body before anything acts, so that a slow or endless one holds
/// nothing but its connection.
async fn with_bounded_body(request: Request) -> Result<Request, Refusal> {
    let (parts, body) = request.into_parts();
    let read = tokio::time::timeout(BODY_TIMEOUT, to_bytes(body, MAX_BODY)).await;
    let bytes = read.map_err(|_| Refusal::TooSlow)?.map_err(|_| Refusal::TooLarge)?;
    Ok(Request::from_parts(parts, Body::from(bytes)))
}
