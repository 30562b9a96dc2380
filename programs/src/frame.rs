//! The protocol of host and broker. Once it has started, the broker accepts only the number of a
//! table and an input from the host, but no paths, arguments or variables.

use std::ffi::OsString;
use std::io::{self, Read, Write};

use serde::{Deserialize, Serialize};

use crate::file::ExecProblem;
use crate::line::Line;
use toolward_support::helper::frames::{receive, send};

/// The version of the protocol. Both sides usually come from the same build.
pub(crate) const PROTOCOL: u32 = 3;

/// The most bytes of a [`Start`], which has all `[[exec]]` tables of a policy.
const START_BYTES: usize = 64 << 20;

/// The most bytes of a message that is not a [`Start`], without its input or output.
const SMALL: usize = 64 << 10;

/// The most bytes of a program's standard error that are kept. They are its last bytes.
pub(crate) const STDERR_BYTES: usize = 64 << 10;

/// The first frame of the host, sent before the host handles untrusted data. No later frame of the
/// host contains names of files, programs or variables.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Start {
    pub(crate) protocol: u32,
    /// The program that the broker starts as a runner, and its arguments. The runner becomes the
    /// program of a table.
    pub(crate) program: OsString,
    pub(crate) arguments: Vec<OsString>,
    /// The largest input, in bytes.
    pub(crate) input_bytes: usize,
    pub(crate) lines: Vec<Line>,
}

/// From the host to the broker.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) enum Request {
    Start(Box<Start>),
    /// Asks for a run of a table's program. The bytes of the message are the input.
    Run {
        id: u64,
        line: usize,
        /// Whether the kernel only loads the program, which then ends before its first instruction.
        is_trial: bool,
    },
    /// Starts a run that was taken.
    Go {
        id: u64,
    },
    Cancel {
        id: u64,
    },
}

/// The end of a run, for the host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Ending {
    /// The program exited with this code.
    Exited(i32),
    /// This signal ended the program.
    Killed(i32),
    /// The program took longer than its table allows.
    Late,
    /// The program wrote more than its table allows.
    TooMuch,
    Cancelled,
    /// The broker already runs as many programs as it can.
    Busy,
    /// The broker did not take the run in time. The program was not started, and will not be.
    Silent,
    /// The program was not started.
    Refused(ExecProblem),
}

/// From the broker to the host.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Answer {
    /// The broker has taken a run, and starts it once the host confirms it.
    Taken { id: u64 },
    /// A run ended. The bytes of the message are the program's output: first `stdout` bytes of
    /// standard output, then standard error.
    Ended {
        id: u64,
        ending: Ending,
        stdout: usize,
    },
}

/// A run that ended, and the program's output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) ending: Ending,
    pub(crate) stdout: Vec<u8>,
    /// The program's standard error, or its end if it was long.
    pub(crate) stderr: Vec<u8>,
}

impl From<Ending> for Run {
    fn from(ending: Ending) -> Self {
        Self {
            ending,
            stdout: Vec::new(),
            stderr: Vec::new(),
        }
    }
}

impl Request {
    /// Reads the next request; `None` if the host has disconnected. The first request is a
    /// [`Start`]. An input has at most `input_bytes`.
    pub(crate) fn read(
        from: &mut impl Read,
        is_first: bool,
        input_bytes: usize,
    ) -> io::Result<Option<(Self, Vec<u8>)>> {
        let most = if is_first { START_BYTES } else { SMALL };
        receive(from, most, |request| match request {
            Self::Run {
                is_trial: false, ..
            } => input_bytes,
            _ => 0,
        })
    }
}

impl Answer {
    /// Reads the next answer; `None` if the broker has disconnected. An output has at most
    /// `output_bytes`.
    pub(crate) fn read(
        from: &mut impl Read,
        output_bytes: usize,
    ) -> io::Result<Option<(Self, Vec<u8>)>> {
        receive(from, SMALL, |answer| match answer {
            Self::Taken { .. } => 0,
            Self::Ended { .. } => output_bytes.saturating_add(STDERR_BYTES),
        })
    }
}

impl Run {
    /// Sends the end of the run to the host.
    pub(crate) fn write(&self, to: &mut impl Write, id: u64) -> io::Result<()> {
        let answer = Answer::Ended {
            id,
            ending: self.ending.clone(),
            stdout: self.stdout.len(),
        };
        send(to, &answer, &[&self.stdout, &self.stderr])
    }

    /// Builds a run from the parts of an answer.
    pub(crate) fn of(ending: Ending, stdout: usize, mut bytes: Vec<u8>) -> io::Result<Self> {
        if stdout > bytes.len() {
            return Err(io::Error::other("an answer that is too short"));
        }
        let stderr = bytes.split_off(stdout);
        Ok(Self {
            ending,
            stdout: bytes,
            stderr,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_long_or_cut_off_is_refused_before_it_is_held() {
        let run = |is_trial| Request::Run {
            id: 7,
            line: 3,
            is_trial,
        };
        let mut bytes = Vec::new();
        send(&mut bytes, &run(false), &[b"{}"]).unwrap();
        let read = |bytes: &[u8], most| Request::read(&mut &*bytes, false, most);
        assert!(matches!(
            read(&bytes, 2).unwrap(),
            Some((Request::Run { id: 7, line: 3, is_trial: false }, input)) if input == b"{}"
        ));
        assert!(read(&bytes, 1).is_err());
        for end in 1..bytes.len() {
            assert!(read(bytes.get(..end).unwrap(), 2).is_err(), "{end}");
        }
        let mut trial = Vec::new();
        send(&mut trial, &run(true), &[b"{}"]).unwrap();
        assert!(read(&trial, 2).is_err());
        let huge = [1, 0xff, 0xff, 0xff, 0xff];
        assert!(read(&huge, 1 << 20).is_err());
        let unknown = [9, 0, 0, 0, 0];
        assert!(read(&unknown, 2).is_err());
    }

    #[test]
    fn what_a_program_wrote_comes_back_whole_and_no_more_than_was_allowed() {
        let run = Run {
            ending: Ending::Exited(3),
            stdout: b"out".to_vec(),
            stderr: b"err".to_vec(),
        };
        let mut bytes = Vec::new();
        run.write(&mut bytes, 9).unwrap();
        match Answer::read(&mut bytes.as_slice(), 3).unwrap() {
            Some((
                Answer::Ended {
                    id: 9,
                    ending,
                    stdout,
                },
                bytes,
            )) => {
                assert_eq!(Run::of(ending.clone(), stdout, bytes.clone()).unwrap(), run);
                // The length does not match the bytes that follow.
                assert!(Run::of(ending, 7, bytes).is_err());
            }
            other => panic!("{other:?}"),
        }
        let large = Run {
            stdout: vec![0; STDERR_BYTES + 1],
            ..run
        };
        let mut bytes = Vec::new();
        large.write(&mut bytes, 9).unwrap();
        assert!(Answer::read(&mut bytes.as_slice(), 0).is_err());
    }
}
