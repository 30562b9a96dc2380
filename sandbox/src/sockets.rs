//! Raw sockets and name lookup: they are linked, since toolchains import them, but every use is
//! refused and recorded.

use wasmtime::component::{HasSelf, Linker, Resource};
use wasmtime_wasi::WasiView as _;
use wasmtime_wasi::p2::bindings::sockets::ip_name_lookup::ResolveAddressStream;
use wasmtime_wasi::p2::bindings::sockets::network::{
    ErrorCode, IpAddress, IpAddressFamily, Network,
};
use wasmtime_wasi::p2::bindings::sockets::tcp::TcpSocket;
use wasmtime_wasi::p2::bindings::sockets::udp::UdpSocket;
use wasmtime_wasi::p2::bindings::sockets::{
    ip_name_lookup, network, tcp_create_socket, udp_create_socket,
};
use wasmtime_wasi::p2::{DynPollable, SocketError, SocketResult};

use crate::state::State;
use crate::violations::ViolationKind;

/// Replaces wasmtime-wasi's own sockets with refusals.
pub(crate) fn add_to_linker(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    linker.allow_shadowing(true);
    tcp_create_socket::add_to_linker::<_, HasSelf<State>>(linker, State::import)?;
    udp_create_socket::add_to_linker::<_, HasSelf<State>>(linker, State::import)?;
    ip_name_lookup::add_to_linker::<_, HasSelf<State>>(linker, State::import)?;
    linker.allow_shadowing(false);
    Ok(())
}

impl State {
    fn refuse_socket(&self, what: &str) -> SocketError {
        match self.violations.record(ViolationKind::SOCKET, what) {
            Ok(()) => ErrorCode::AccessDenied.into(),
            Err(ends) => SocketError::trap(ends),
        }
    }
}

impl network::Host for State {
    fn convert_error_code(&mut self, error: SocketError) -> wasmtime::Result<ErrorCode> {
        error.downcast()
    }

    fn network_error_code(
        &mut self,
        _: Resource<wasmtime::Error>,
    ) -> wasmtime::Result<Option<ErrorCode>> {
        Ok(None)
    }
}

/// A network is only a handle, which opens nothing by itself.
impl network::HostNetwork for State {
    fn drop(&mut self, network: Resource<Network>) -> wasmtime::Result<()> {
        self.ctx().table.delete(network)?;
        Ok(())
    }
}

impl tcp_create_socket::Host for State {
    fn create_tcp_socket(&mut self, _: IpAddressFamily) -> SocketResult<Resource<TcpSocket>> {
        Err(self.refuse_socket("tcp"))
    }
}

impl udp_create_socket::Host for State {
    async fn create_udp_socket(&mut self, _: IpAddressFamily) -> SocketResult<Resource<UdpSocket>> {
        Err(self.refuse_socket("udp"))
    }
}

impl ip_name_lookup::Host for State {
    fn resolve_addresses(
        &mut self,
        _: Resource<Network>,
        name: String,
    ) -> SocketResult<Resource<ResolveAddressStream>> {
        Err(self.refuse_socket(&name))
    }
}

/// Unreachable, since no stream is ever created.
impl ip_name_lookup::HostResolveAddressStream for State {
    fn resolve_next_address(
        &mut self,
        _: Resource<ResolveAddressStream>,
    ) -> SocketResult<Option<IpAddress>> {
        Err(ErrorCode::InvalidState.into())
    }

    fn subscribe(
        &mut self,
        _: Resource<ResolveAddressStream>,
    ) -> wasmtime::Result<Resource<DynPollable>> {
        Err(wasmtime::Error::msg("there is no such stream"))
    }

    fn drop(&mut self, _: Resource<ResolveAddressStream>) -> wasmtime::Result<()> {
        Ok(())
    }
}
