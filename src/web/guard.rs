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

use super::peer::Peer;
use super::refusal::Refusal;
use super::sanitise::FRAME_STYLE_SOURCE;
use super::session::{self, Session};
use super::{App, gate, pin};
use crate::config::ApprovalMode;
use crate::outbox::HoldId;

/// Largest body of a POST.
pub(super) const MAX_BODY: usize = 64 * 1024;
/// How long a body may take to arrive.
const BODY_TIMEOUT: Duration = Duration::from_secs(10);

/// Paths that need no sign-in; the gate takes an agent's key instead.
const OPEN: [&str; 8] =
    ["/healthz", "/metrics", "/style.css", "/sign-in", "/sign-in/passkey", "/enrol", super::SCRIPT_PATH, gate::PATH];
/// Where notices' links lead; open where they are enough by themselves.
const LINK: &str = "/link/";
/// Says that a request is a guess of the browser's, and no person's.
const SPECULATIVE: [HeaderName; 3] =
    [HeaderName::from_static("sec-purpose"), HeaderName::from_static("purpose"), HeaderName::from_static("x-moz")];

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Marks a response whose page needs the script.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scripted;

/// The policy of pages without script; none is in a page of ours, and the
/// frames of mails could never run any.
static POLICY: LazyLock<String> = LazyLock::new(|| {
    format!(
        "default-src 'none'; style-src 'self' {}; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
        *FRAME_STYLE_SOURCE
    )
});

/// The response headers beside the policy. Referrer-Policy is `same-origin`
/// and not `no-referrer`, because browsers send `Origin: null` with a form
/// under the latter, and then nothing could be approved.
static HEADERS: LazyLock<Vec<(HeaderName, HeaderValue)>> = LazyLock::new(|| {
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
    fixed.into_iter().map(|(n, v)| (HeaderName::from_static(n), HeaderValue::from_static(v))).collect()
});

/// The policy of a response. A page with passkeys may load the one script by
/// its full address, which may not build code from text.
fn policy(app: &App, scripted: bool) -> Option<HeaderValue> {
    let script = format!("; script-src {}{}; require-trusted-types-for 'script'", app.site.origin, super::SCRIPT_PATH);
    // ASCII: constants, a base64 hash and our own origin.
    HeaderValue::from_str(&format!("{}{}", *POLICY, if scripted { script.as_str() } else { "" })).ok()
}

/// The middleware.
pub(super) async fn guard(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let mut response = match admit(&app, request).await {
        Ok(request) => next.run(request).await,
        Err(refusal) => refusal.into_response(),
    };
    let policy = policy(&app, response.extensions().get::<Scripted>().is_some());
    for (name, value) in HEADERS.iter() {
        response.headers_mut().insert(name.clone(), value.clone());
    }
    match policy {
        Some(policy) => response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, policy),
        None => return Refusal::Internal("no policy".to_owned()).into_response(),
    };
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
    if SPECULATIVE.iter().any(|name| request.headers().contains_key(name)) {
        return Err(Refusal::Speculative);
    }
    let uid = request.extensions().get::<Peer>().and_then(|p| p.uid);
    let session = signed_in(app, request.headers(), uid)?;
    let path = request.uri().path();
    let open = OPEN.contains(&path) || (path.starts_with(LINK) && app.services.config.approval == ApprovalMode::Link);
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
    if let Some((id, token)) = path.strip_prefix(LINK).and_then(|rest| rest.split_once('/')) {
        let hex = token.bytes().all(|b| b.is_ascii_hexdigit());
        return HoldId::parse(id).filter(|_| hex).map(|_| path.to_owned());
    }
    let id = HoldId::parse(path.strip_prefix("/held/")?)?;
    Some(format!("/held/{id}"))
}

fn signed_in(app: &App, headers: &HeaderMap, uid: Option<u32>) -> Result<Option<Session>, Refusal> {
    for token in session::tokens(headers) {
        if let Some(session) = session::find(app.services.store.as_ref(), &token, uid, pin::now())?
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
