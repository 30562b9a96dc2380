//! `serve --metrics`: counts of calls for Prometheus, on a separate listener with a separate token.
//! The listener is bound before the process confines itself.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use toolward_host::metrics::{CallMetrics, HostMetrics, Sample};
use toolward_host::{HostBuilder, SharedState};
use toolward_mcp::http::metrics::{self, METRICS_PATH};
use toolward_mcp::http::tokens::{self, Tokens};
use toolward_mcp::http::{self, HttpError, Settings};
use toolward_operator::recorder::CallRecorder;

use super::http::{address, listen};
use super::process::local;
use crate::failure;
use crate::prelude::*;

/// Where counts of calls are served, and who may read them.
#[derive(Debug, Args)]
#[group(skip)]
pub(crate) struct MetricsFlags {
    /// Serve counts of calls for Prometheus at this address and port
    ///
    /// An IP address or localhost. Needs --metrics-token-file or --metrics-tokens.
    #[arg(long, hide_short_help = true, value_name = "ADDRESS", value_parser = address)]
    #[arg(requires = "metrics_token")]
    metrics: Option<SocketAddr>,

    /// Write the token for Prometheus to this file, with mode 0600
    #[arg(long, hide_short_help = true, value_name = "FILE")]
    #[arg(requires = "metrics", group = "metrics_token")]
    metrics_token_file: Option<PathBuf>,

    /// Accept the tokens for metrics whose hashes are in this file
    ///
    /// The file has the form of the --tokens file.
    #[arg(long, hide_short_help = true, value_name = "FILE")]
    #[arg(requires = "metrics", group = "metrics_token")]
    metrics_tokens: Option<PathBuf>,

    /// A name that Prometheus may send in the Host header
    ///
    /// In addition to the names of the address itself. May be given again.
    #[arg(long, hide_short_help = true, value_name = "NAME")]
    #[arg(requires = "metrics")]
    metrics_allow_host: Vec<String>,
}

/// The counts, and the files that guests must not reach.
#[derive(Debug)]
pub(super) struct Metrics {
    calls: CallMetrics,
    token_files: Vec<PathBuf>,
}

/// The listener for metrics before it serves.
pub(super) struct MetricsServer {
    pub(super) listener: TcpListener,
    address: SocketAddr,
    settings: Settings,
    calls: CallMetrics,
    recorder: Option<CallRecorder>,
}

impl MetricsFlags {
    /// Listens, and reads or makes the tokens. Returns nothing if no metrics were requested.
    /// `clients` are the files with tokens of clients.
    pub(super) fn open<'a>(
        &self,
        recorder: Option<CallRecorder>,
        clients: impl Iterator<Item = &'a PathBuf>,
    ) -> Result<(Option<Arc<Metrics>>, Option<MetricsServer>)> {
        let Some(address) = self.metrics else {
            return Ok((None, None));
        };
        self.check_files(clients)?;
        let listener = listen(address)?;
        let bound = listener.local_addr();
        let address = bound.map_err(|error| failure::http(HttpError::Listener(error)))?;
        let settings =
            |tokens| metrics::settings(Arc::new(tokens), self.metrics_allow_host.clone());
        // Checked first, so that no token is written if serving would fail.
        http::check(address, &settings(Tokens::default())).map_err(refused)?;
        let settings = settings(self.tokens().map_err(failure::http)?);
        let files = self.metrics_token_file.iter().chain(&self.metrics_tokens);
        let counted = Metrics {
            calls: CallMetrics::default(),
            token_files: files.cloned().collect(),
        };
        let server = MetricsServer {
            listener,
            address,
            settings,
            calls: counted.calls.clone(),
            recorder,
        };
        Ok((Some(Arc::new(counted)), Some(server)))
    }

    /// Refuses a file that is also the file of clients' tokens: a token for metrics must call no
    /// tool, and writing it must not replace clients' tokens.
    fn check_files<'a>(&self, clients: impl Iterator<Item = &'a PathBuf>) -> Result<()> {
        let own = self.metrics_token_file.iter().chain(&self.metrics_tokens);
        let own: Vec<PathBuf> = own.map(|path| place(path)).collect();
        for file in clients {
            if own.contains(&place(file)) {
                let message = format!("{}: also the file of clients' tokens", file.display());
                return Err(Failure::usage(Code::FlagRefused, message)
                    .hint("give metrics a file of their own: its token calls no tool"));
            }
        }
        Ok(())
    }

    fn tokens(&self) -> Result<Tokens, HttpError> {
        if let Some(path) = &self.metrics_tokens {
            return tokens::read(path);
        }
        // Without a file no request is accepted, so `clap` requires a file.
        let Some(path) = &self.metrics_token_file else {
            return Ok(Tokens::default());
        };
        let (secret, hash) = tokens::generate()?;
        tokens::write(path, &secret)?;
        Ok(Tokens::single(hash, local(false)))
    }
}

/// Returns the path of a file without links, even if the file does not exist yet.
fn place(path: &Path) -> PathBuf {
    let folder = path.parent().filter(|one| *one != Path::new(""));
    let folder = folder.unwrap_or(Path::new("."));
    let whole = || Some(folder.canonicalize().ok()?.join(path.file_name()?));
    let place = path.canonicalize().ok().or_else(whole);
    place.unwrap_or_else(|| path.to_owned())
}

/// Adds a hint that names the flag of this listener.
fn refused(error: HttpError) -> Failure {
    let is_unnamed = matches!(error, HttpError::NoHosts(_));
    let hint = "name each host by which Prometheus reaches it: `--metrics-allow-host NAME`";
    failure::http(error).maybe_hint(is_unnamed.then_some(hint))
}

impl Metrics {
    /// Counts a host's calls, and keeps all guests out of the files with tokens.
    pub(super) fn given(
        metrics: Option<&Self>,
        builder: HostBuilder,
    ) -> (HostBuilder, Option<Arc<HostMetrics>>) {
        let Some(metrics) = metrics else {
            return (builder, None);
        };
        let counting = metrics.calls.listener();
        let builder = builder.listener(counting.clone());
        let files = metrics.token_files.iter();
        let builder = files.fold(builder, |builder, file| {
            builder.protect("a file of tokens", file)
        });
        (builder, Some(counting))
    }
}

impl MetricsServer {
    /// Returns a text with the address of the counts.
    pub(super) fn announcement(&self) -> String {
        format!("metrics are at http://{}{METRICS_PATH}", self.address)
    }

    /// Serves until `shutdown` is cancelled. If this fails, calls are still served.
    pub(super) async fn serve(self, shared_state: SharedState, shutdown: CancellationToken) {
        let (calls, recorder) = (self.calls, self.recorder);
        let page = move || {
            let mut page = calls.page();
            let lost = Sample::Counter(shared_state.events_lost());
            page.add(
                "toolward_events_lost_total",
                "Events that readers were too slow for.",
                lost,
            );
            if let Some(recorder) = &recorder {
                let counts = recorder.remote().counts();
                let bytes = i64::try_from(counts.queued_bytes).unwrap_or(i64::MAX);
                for (name, help, sample) in [
                    (
                        "toolward_ledger_rows_total",
                        "Rows that were sent to the recorder.",
                        Sample::Counter(counts.sent),
                    ),
                    (
                        "toolward_ledger_rows_lost_total",
                        "Rows that could not be sent.",
                        Sample::Counter(counts.lost),
                    ),
                    (
                        "toolward_ledger_queue_bytes",
                        "Bytes of rows that wait to be sent.",
                        Sample::Gauge(bytes),
                    ),
                    (
                        "toolward_recorder_up",
                        "Whether the recorder runs.",
                        Sample::Gauge(counts.up.into()),
                    ),
                ] {
                    page.add(name, help, sample);
                }
            }
            page.text()
        };
        let served = metrics::serve(self.listener, page, self.settings, shutdown).await;
        if let Err(error) = served {
            tracing::error!(code = error.code(), %error, "metrics are not served");
        }
    }
}
