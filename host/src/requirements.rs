//! The rights that a process needs to serve the grants of a host's drivers, so that a confinement
//! can remove all other rights.

use std::collections::BTreeSet;
use std::path::PathBuf;

use toolward_policy::Grant;

use crate::confine::{Confinement, Network};
use crate::host::Host;

/// The default ports of `https` and `http`.
const HTTPS: u16 = 443;
const HTTP: u16 = 80;

/// The needs of all drivers that policy lets run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Requirements {
    /// Host directories that are read.
    pub read: BTreeSet<PathBuf>,
    /// Host directories that are also written to.
    pub write: BTreeSet<PathBuf>,
    /// TCP ports that are connected to.
    pub ports: BTreeSet<u16>,
    /// Whether key-value buckets are used.
    pub buckets: bool,
    /// Secrets that are used: publisher and slug.
    pub secrets: BTreeSet<(String, String)>,
    /// Whether a driver may store one of these secrets.
    pub stores_secrets: bool,
}

impl Host {
    /// The rights that the process must keep when it confines itself, in addition to the files of
    /// buckets and secrets.
    pub fn requirements(&self) -> Requirements {
        let mut requirements = Requirements::default();
        for grant in self.grants() {
            requirements.add(grant);
        }
        requirements
    }
}

impl Requirements {
    fn add(&mut self, grant: &Grant) {
        for workspace in grant.workspaces() {
            let directories = match workspace.write {
                true => &mut self.write,
                false => &mut self.read,
            };
            directories.insert(workspace.directory.clone());
        }
        for host in grant.network() {
            match host.host.port() {
                Some(port) => self.ports.extend([port]),
                None if host.terms.plain_http => self.ports.extend([HTTPS, HTTP]),
                None => self.ports.extend([HTTPS]),
            }
        }
        self.buckets |= !grant.buckets().is_empty();
        for secret in grant.secrets() {
            let key = (secret.publisher.clone(), secret.slug.clone());
            self.secrets.insert(key);
            self.stores_secrets |= secret.store;
        }
    }

    /// A confinement that keeps the existing directories and the ports. If ports are needed, it
    /// also keeps the files of name resolution and TLS.
    pub fn confinement(&self) -> Confinement {
        let mut confinement = Confinement::builder();
        // A missing directory only blocks its own tools.
        for path in self.read.iter().filter(|path| path.is_dir()) {
            confinement = confinement.read(path);
        }
        for path in self.write.iter().filter(|path| path.is_dir()) {
            confinement = confinement.read_write(path);
        }
        if self.ports.is_empty() {
            return confinement;
        }
        let ports = self.ports.iter().copied().collect();
        confinement.system_files().network(Network::Ports(ports))
    }
}
