//! Serves one page of text for Prometheus on a separate listener. Names and tokens are checked, and
//! requests limited, as for messages of MCP. The caller writes the page.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::connections::ConnectionPlace;
use super::guard::only_get;
use super::responses::HttpRejection;
use super::serving::{allowed_listener, finish, take_connections};
use super::{Authenticate, Authentication, HttpError, HttpLimits, Settings};

/// The path of the page.
pub const METRICS_PATH: &str = "/metrics";

/// Version 0.0.4 of the text format.
const TEXT_FORMAT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Pages that are written at once. A further request gets status 429, so that a flood of requests
/// does not take the processors from calls.
const PAGES: usize = 1;

/// The settings of a listener for metrics: a token for each request, names as in
/// [`Settings::hosts`], no origins, and limits for a few scrapers.
#[must_use]
pub fn settings(tokens: Arc<dyn Authenticate>, hosts: Vec<String>) -> Settings {
    let mut settings = Settings::new(Authentication::Required(tokens));
    settings.hosts = hosts;
    settings.limits = HttpLimits {
        connections: 16,
        connections_per_address: 12,
        connections_per_principal: 8,
        head_within: Duration::from_secs(5),
        read_within: Duration::from_secs(5),
        finish_within: Duration::from_secs(1),
        ..HttpLimits::default()
    };
    settings
}

/// Writes the page.
type Page = Arc<dyn Fn() -> String + Send + Sync>;

struct Guard {
    authentication: Authentication,
    pages: Semaphore,
    page: Page,
}

/// Serves `page` at [`METRICS_PATH`] until `shutdown` is cancelled. Requests are authenticated
/// according to `settings`.
///
/// ```no_run
/// use std::sync::Arc;
/// use tokio_util::sync::CancellationToken;
/// use toolward_mcp::http::tokens::Tokens;
/// use toolward_mcp::http::{self, HttpError, metrics};
///
/// async fn serve(tokens: Tokens, shutdown: CancellationToken) -> Result<(), HttpError> {
///     let listener = http::bind(([127, 0, 0, 1], 9464).into()).map_err(HttpError::Listener)?;
///     let settings = metrics::settings(Arc::new(tokens), Vec::new());
///     metrics::serve(listener, || "up 1\n".to_owned(), settings, shutdown).await
/// }
/// ```
///
/// # Errors
///
/// As [`http::check`](super::check), and if the socket can't be used.
pub async fn serve(
    listener: std::net::TcpListener,
    page: impl Fn() -> String + Send + Sync + 'static,
    settings: Settings,
    shutdown: CancellationToken,
) -> Result<(), HttpError> {
    let listener = allowed_listener(listener, &settings)?;
    let guard = Arc::new(Guard {
        authentication: settings.authentication,
        pages: Semaphore::new(PAGES),
        page: Arc::new(page),
    });
    let routes = Router::new()
        .route(METRICS_PATH, get(answer).fallback(only_get))
        .fallback(|| async { HttpRejection::Missing("metrics are at", METRICS_PATH) })
        .with_state(guard);
    let limits = settings.limits;
    let mut connections =
        take_connections(listener, routes, &limits, settings.draining, shutdown).await?;
    finish(&mut connections, limits.finish_within).await;
    connections.shutdown().await;
    Ok(())
}

async fn answer(State(guard): State<Arc<Guard>>, request: Request) -> Response {
    let (mut parts, _) = request.into_parts();
    let place = parts.extensions.remove::<Arc<ConnectionPlace>>();
    let identity = match guard.authentication.identify(&parts).await {
        Ok(identity) => identity,
        Err(rejection) => return rejection.into_response(),
    };
    if let Some(place) = place {
        place.prove(&identity.principal.name);
    }
    // Held until the page is written. Sending the page takes little processor time.
    let Ok(_writing) = guard.pages.try_acquire() else {
        return HttpRejection::TooMany("pages").into_response();
    };
    let headers = [
        (CONTENT_TYPE, TEXT_FORMAT),
        (CACHE_CONTROL, "no-store"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    (headers, (guard.page)()).into_response()
}
