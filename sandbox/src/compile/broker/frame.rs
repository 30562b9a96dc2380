//! The protocol of host and broker. After the start message, the broker accepts components and
//! cancellations, but no paths.

use std::ffi::OsString;
use std::io::{self, Read};

use serde::{Deserialize, Serialize};
use toolward_signing::Digest;
use toolward_support::helper::frames::receive;

use super::super::limits::{CompileCost, CompileError, CompileLimits, cut_message};
use crate::engine::EngineHash;

/// The version of the protocol. Both sides usually come from the same build.
pub(super) const PROTOCOL: u32 = 5;

/// The most bytes of a message, not counting its component or artifact.
const SMALL: usize = 64 << 10;

/// The first message of the host, sent before the host handles untrusted data. No other message may
/// contain paths.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Start {
    pub(super) protocol: u32,
    /// The program that the broker starts as a worker for each component, and its arguments.
    pub(super) program: OsString,
    pub(super) arguments: Vec<OsString>,
    /// The directory of the cache, if artifacts are cached.
    pub(super) cache: Option<OsString>,
    /// The most bytes of artifacts in the cache.
    pub(super) cache_limit: u64,
    pub(super) limits: CompileLimits,
    /// The most components that are compiled at once.
    pub(super) workers: usize,
    /// The largest component, in bytes.
    pub(super) component_bytes: usize,
}

/// From the host to the broker.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) enum Request {
    Start(Start),
    /// Compiles the bytes of the message.
    Compile {
        id: u64,
        engine: EngineHash,
        component: Digest,
        /// The budget of this compilation. Limits above the budget are lowered to it.
        budget: CompileCost,
    },
    Cancel {
        id: u64,
    },
}

/// From the broker to the host.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Answer {
    /// The broker has started, signs with this key, and compiles for these engines.
    Ready {
        public: [u8; 32],
        engines: [EngineHash; 2],
    },
    /// The broker can't start.
    Unusable(#[serde(deserialize_with = "cut_message")] String),
    /// Why an artifact, or all artifacts, are not cached. The host gets the artifacts nevertheless.
    NotKept(#[serde(deserialize_with = "cut_message")] String),
    /// A worker compiles the component now.
    Begun { id: u64 },
    /// A request has ended.
    Ended {
        id: u64,
        spent: CompileCost,
        made: Result<Made, CompileError>,
    },
}

/// Where the artifact of a compilation is.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Made {
    /// The artifact is in the cache.
    Cached,
    /// The artifact is not in the cache, but in the bytes of the message.
    Artifact { signature: Vec<u8> },
}

impl Request {
    /// Reads the next request; `None` if the host has disconnected. A component has at most
    /// `component_bytes`.
    pub(super) fn read(
        from: &mut impl Read,
        component_bytes: usize,
    ) -> io::Result<Option<(Self, Vec<u8>)>> {
        receive(from, SMALL, |request| match request {
            Self::Compile { .. } => component_bytes,
            Self::Start(_) | Self::Cancel { .. } => 0,
        })
    }
}

impl Answer {
    /// Reads the next answer; `None` if the broker has disconnected. An artifact has at most
    /// `artifact_bytes`.
    pub(super) fn read(
        from: &mut impl Read,
        artifact_bytes: usize,
    ) -> io::Result<Option<(Self, Vec<u8>)>> {
        receive(from, SMALL, |answer| match answer {
            Self::Ended {
                made: Ok(Made::Artifact { .. }),
                ..
            } => artifact_bytes,
            _ => 0,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolward_support::helper::frames::send;

    #[test]
    fn what_the_broker_reports_is_cut() {
        let text = "x".repeat(SMALL / 2);
        for answer in [Answer::Unusable(text.clone()), Answer::NotKept(text)] {
            let mut frames = Vec::new();
            send(&mut frames, &answer, &[]).unwrap();
            let read = Answer::read(&mut frames.as_slice(), 0).unwrap();
            let Some((Answer::Unusable(text) | Answer::NotKept(text), _)) = read else {
                panic!("another answer");
            };
            assert_eq!(text.len(), 4096);
        }
    }
}
