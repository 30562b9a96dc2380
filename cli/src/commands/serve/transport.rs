//! The sources of clients: standard input and output, or connections over HTTP.

use std::net::{SocketAddr, TcpListener};

use tokio::runtime::Handle;
use tokio_util::task::AbortOnDropHandle;
use toolward_mcp::http::HttpError;
use toolward_mcp::stdio::{StdioError, Streams};
use toolward_mcp::{Connection, Service, stdio};

use super::features::FeaturesBuilder;
use super::http::{self, HttpServer};
use super::process::Asked;
use crate::failure::http as http_failure;
use crate::prelude::*;

/// The source of clients.
pub(super) enum Transport {
    Stdio(Streams),
    Http(TcpListener, Box<HttpServer>),
}

impl Transport {
    /// Listens at an address, or takes standard input and output if no address is given.
    pub(super) fn open(
        address: Option<SocketAddr>,
        handed_over: Option<TcpListener>,
        builder: &FeaturesBuilder,
        trust_client: bool,
    ) -> Result<Self> {
        let Some(address) = address else {
            let streams = Streams::take().map_err(|error| failed(StdioError::from(error)))?;
            return Ok(Self::Stdio(streams));
        };
        let listener = match handed_over {
            Some(listener) => listener,
            None => http::listen(address)?,
        };
        let bound = listener.local_addr();
        let bound = bound.map_err(|error| http_failure(HttpError::Listener(error)))?;
        let server = (builder.http).server(bound, trust_client, &builder.shared_state)?;
        Ok(Self::Http(listener, Box::new(server)))
    }

    /// The most connections at once.
    pub(super) fn connections(&self) -> u64 {
        match self {
            Self::Stdio(_) => 1,
            Self::Http(_, http) => http.connections(),
        }
    }

    /// Serves clients. `local` handles the client at the standard streams. `connection` is the
    /// runtime for that client and its short calls; everything else runs on the current runtime.
    pub(super) async fn serve(
        self,
        service: &Service,
        local: impl FnOnce() -> Connection,
        asked: &Asked,
        connection: &Handle,
    ) -> Result {
        match self {
            Self::Http(listener, http) => http.serve(service, listener, asked).await,
            Self::Stdio(streams) => {
                let handler = local().long_calls_on(Handle::current());
                let shutdown = asked.control.stop.clone();
                let serving = stdio::serve(handler, streams, shutdown);
                let served = AbortOnDropHandle::new(connection.spawn(serving)).await;
                let served = served.map_err(|error| StdioError::Failed(error.to_string()));
                served.and_then(|served| served).map_err(failed)
            }
        }
    }
}
