//! The protocol of host and broker: frames of kind, length and body. Once it has
//! started, the broker takes only components from the host, and no paths.

use std::ffi::OsString;
use std::io::{self, Read, Write};

use serde::{Deserialize, Serialize};
use toolward_signing::Digest;
use toolward_support::helper::frames::{Body, frame, head};

use super::super::artifact_signature::SIGNATURE;
use super::super::error::{CompileError, CompileReason, MAX_MESSAGE_BYTES};
use super::super::limits::CompileLimits;
use crate::compile::limits::{COST_BYTES, CompileCost};
use crate::engine::EngineHash;

/// The version of the protocol; both sides are usually of one build.
pub(super) const PROTOCOL: u32 = 4;

/// The most bytes of a [`Start`], a message, and all other small frames.
const SMALL: usize = 64 << 10;

/// The first frame of the host, sent before it handles anything hostile; the only one
/// that may name paths.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Start {
    pub(super) protocol: u32,
    /// The program that compiles one component, and its arguments.
    pub(super) program: OsString,
    pub(super) arguments: Vec<OsString>,
    /// Where artifacts are kept, if they are.
    pub(super) cache: Option<OsString>,
    /// The most bytes of artifacts there.
    pub(super) cache_limit: u64,
    pub(super) limits: CompileLimits,
    /// Components that are compiled at once.
    pub(super) workers: usize,
    /// The largest component, in bytes.
    pub(super) component_bytes: usize,
}

/// From the host to the broker.
#[derive(Debug)]
pub(super) enum Request {
    Start(Start),
    Compile {
        id: u64,
        engine: EngineHash,
        component: Digest,
        /// What it may cost, where that is less than the limits.
        budget: CompileCost,
        wasm: Vec<u8>,
    },
    Cancel {
        id: u64,
    },
}

/// From the broker to the host.
#[derive(Debug)]
pub(super) enum Answer {
    /// The broker has started, signs with this key, and compiles for these engines.
    Ready {
        public: [u8; 32],
        engines: [EngineHash; 2],
    },
    /// The broker can't start.
    Unusable(String),
    /// The cache takes no artifact, and why: hosts get them all the same.
    NotKept(String),
    /// A worker compiles it now.
    Begun { id: u64 },
    /// The artifact is in the cache.
    Cached { id: u64, spent: CompileCost },
    /// The artifact, where no cache keeps it.
    Artifact {
        id: u64,
        spent: CompileCost,
        signature: [u8; SIGNATURE],
        bytes: Vec<u8>,
    },
    /// Without an artifact.
    Refused {
        id: u64,
        spent: CompileCost,
        error: CompileError,
    },
}

const START: u8 = 1;
const COMPILE: u8 = 2;
const CANCEL: u8 = 3;
const READY: u8 = 11;
const UNUSABLE: u8 = 12;
const BEGUN: u8 = 13;
const CACHED: u8 = 14;
const ARTIFACT: u8 = 15;
const REFUSED: u8 = 16;
const NOT_KEPT: u8 = 17;

pub(super) fn start(to: &mut impl Write, start: &Start) -> io::Result<()> {
    frame(to, START, &[&serde_json::to_vec(start)?])
}

pub(super) fn compile(
    to: &mut impl Write,
    id: u64,
    engine: &EngineHash,
    component: &Digest,
    budget: CompileCost,
    wasm: &[u8],
) -> io::Result<()> {
    let parts: [&[u8]; 5] = [
        &id.to_le_bytes(),
        engine.as_bytes(),
        component.as_bytes(),
        &budget.to_bytes(),
        wasm,
    ];
    frame(to, COMPILE, &parts)
}

pub(super) fn cancel(to: &mut impl Write, id: u64) -> io::Result<()> {
    frame(to, CANCEL, &[&id.to_le_bytes()])
}

impl Answer {
    pub(super) fn write(&self, to: &mut impl Write) -> io::Result<()> {
        match self {
            Self::Ready { public, engines } => {
                let [first, second] = engines;
                frame(to, READY, &[public, first.as_bytes(), second.as_bytes()])
            }
            Self::Unusable(problem) => frame(to, UNUSABLE, &[short(problem).as_bytes()]),
            Self::NotKept(problem) => frame(to, NOT_KEPT, &[short(problem).as_bytes()]),
            Self::Begun { id } => frame(to, BEGUN, &[&id.to_le_bytes()]),
            Self::Cached { id, spent } => {
                frame(to, CACHED, &[&id.to_le_bytes(), &spent.to_bytes()])
            }
            Self::Artifact {
                id,
                spent,
                signature,
                bytes,
            } => {
                let parts: [&[u8]; 4] = [&id.to_le_bytes(), &spent.to_bytes(), signature, bytes];
                frame(to, ARTIFACT, &parts)
            }
            Self::Refused { id, spent, error } => {
                let text = format!("{}\n{error}", error.reason().code());
                let parts: [&[u8]; 3] = [&id.to_le_bytes(), &spent.to_bytes(), text.as_bytes()];
                frame(to, REFUSED, &parts)
            }
        }
    }

    /// The next answer; `None` at the end. No artifact is larger than
    /// `artifact_bytes`.
    pub(super) fn read(from: &mut impl Read, artifact_bytes: usize) -> io::Result<Option<Self>> {
        let Some((kind, length)) = head(from)? else {
            return Ok(None);
        };
        let most = match kind {
            ARTIFACT => artifact_bytes.saturating_add(SMALL),
            _ => SMALL,
        };
        let mut body = Body::of(from, length, most)?;
        let answer = match kind {
            READY => Self::Ready {
                public: body.take()?,
                engines: [
                    EngineHash::from_bytes(body.take()?),
                    EngineHash::from_bytes(body.take()?),
                ],
            },
            UNUSABLE => Self::Unusable(body.text()?),
            NOT_KEPT => Self::NotKept(body.text()?),
            BEGUN => Self::Begun { id: body.number()? },
            CACHED => Self::Cached {
                id: body.number()?,
                spent: cost(&mut body)?,
            },
            ARTIFACT => Self::Artifact {
                id: body.number()?,
                spent: cost(&mut body)?,
                signature: body.take()?,
                bytes: body.rest()?,
            },
            REFUSED => {
                let (id, spent) = (body.number()?, cost(&mut body)?);
                let text = body.text()?;
                let (code, message) = text.split_once('\n').unwrap_or((&text, ""));
                let reason = CompileReason::from_code(code)
                    .ok_or_else(|| io::Error::other("an unknown reason"))?;
                Self::Refused {
                    id,
                    spent,
                    error: CompileError::new(reason, message),
                }
            }
            _ => return Err(io::Error::other("an unknown answer")),
        };
        Ok(Some(answer))
    }
}

fn short(problem: &str) -> &str {
    let end = problem.floor_char_boundary(MAX_MESSAGE_BYTES);
    problem.get(..end).unwrap_or_default()
}

impl Request {
    /// The next request; `None` at the end. No component is larger than
    /// `component_bytes`.
    pub(super) fn read(from: &mut impl Read, component_bytes: usize) -> io::Result<Option<Self>> {
        let Some((kind, length)) = head(from)? else {
            return Ok(None);
        };
        let most = match kind {
            COMPILE => component_bytes.saturating_add(8 + 32 + 32 + COST_BYTES),
            _ => SMALL,
        };
        let mut body = Body::of(from, length, most)?;
        let request = match kind {
            START => Self::Start(serde_json::from_slice(&body.rest()?)?),
            COMPILE => Self::Compile {
                id: body.number()?,
                engine: EngineHash::from_bytes(body.take()?),
                component: Digest::from_bytes(body.take()?),
                budget: cost(&mut body)?,
                wasm: body.rest()?,
            },
            CANCEL => Self::Cancel { id: body.number()? },
            _ => return Err(io::Error::other("an unknown request")),
        };
        Ok(Some(request))
    }
}

fn cost(body: &mut Body<'_, impl Read>) -> io::Result<CompileCost> {
    Ok(CompileCost::from_bytes(body.take()?))
}
