//! The host's end of the connection to the broker of programs.

use std::os::unix::net::UnixStream;
use std::process::Child;
use std::time::Duration;

use tokio::sync::oneshot;

use crate::frame::{Answer, Ending, Request, Run};
use toolward_support::helper::{self, Outgoing, lock};

/// The most runs that the broker has not answered, including cancelled runs. Further runs are not
/// sent, since the broker hangs or is busy.
const MAX_OPEN: usize = 256;
/// The most of these runs that wait for the broker to take them. Their inputs wait in memory.
const MAX_UNTAKEN: usize = 32;
/// How long the broker may take to accept a run. A broker that does not hang accepts a run at once.
const TAKEN_WITHIN: Duration = Duration::from_secs(5);

const BROKER: &str = "the broker of programs";

/// The connection to the broker.
#[derive(Debug)]
pub(crate) struct Link {
    link: helper::Link<Senders>,
    output_bytes: usize,
}

/// The senders for the caller that waits for a run.
#[derive(Debug)]
struct Senders {
    /// `None` once the broker has taken the run.
    taken: Option<oneshot::Sender<()>>,
    ended: oneshot::Sender<Run>,
}

/// Cancels a run whose caller no longer waits.
struct Cancel<'a> {
    id: u64,
    outgoing: Outgoing,
    link: &'a helper::Link<Senders>,
}

impl Drop for Cancel<'_> {
    fn drop(&mut self) {
        // A run that was answered has no sender, and needs no cancellation.
        if self.link.requests().senders.contains_key(&self.id) {
            let _ = self.outgoing.send(&Request::Cancel { id: self.id }, &[]);
        }
    }
}

impl Link {
    pub(crate) fn new(child: Child, socket: UnixStream, output_bytes: u64) -> Self {
        Self {
            link: helper::Link::new(BROKER, child, socket),
            output_bytes: usize::try_from(output_bytes).unwrap_or(usize::MAX),
        }
    }

    /// Runs the program of the `[[exec]]` table with the number `line`, until the program ends or
    /// the future is dropped. Without an input, this is a trial: the kernel loads the program, which
    /// ends before its first instruction. A run that is dropped before the broker has taken it never
    /// starts, even if the broker reads the request later.
    pub(crate) async fn run(&self, line: usize, input: Option<String>) -> Result<Run, String> {
        let output_bytes = self.output_bytes;
        let outgoing = self.link.listen(
            "exec-broker",
            move |from| Answer::read(from, output_bytes),
            |requests, (answer, bytes)| {
                // A cancelled run has no receiver.
                match answer {
                    Answer::Taken { id } => {
                        let mut requests = lock(requests);
                        let senders = requests.senders.get_mut(&id);
                        if let Some(taken) = senders.and_then(|senders| senders.taken.take()) {
                            let _ = taken.send(());
                        }
                    }
                    Answer::Ended { id, ending, stdout } => {
                        let run = Run::of(ending, stdout, bytes)
                            .map_err(|error| format!("{BROKER} can't be understood: {error}"))?;
                        if let Some(senders) = lock(requests).senders.remove(&id) {
                            let _ = senders.ended.send(run);
                        }
                    }
                }
                Ok(())
            },
        )?;
        let (taken, is_taken) = oneshot::channel();
        let (ended, has_ended) = oneshot::channel();
        let id = {
            let mut requests = self.link.requests();
            let untaken = requests.senders.values().filter(|one| one.taken.is_some());
            if requests.senders.len() >= MAX_OPEN || untaken.count() >= MAX_UNTAKEN {
                return Ok(Ending::Busy.into());
            }
            let taken = Some(taken);
            requests.add(Senders { taken, ended })?
        };
        let is_trial = input.is_none();
        let request = Request::Run { id, line, is_trial };
        let send = |request, input: &str| {
            let sent = outgoing.send(request, &[input.as_bytes()]);
            sent.map_err(|error| error.to_string())
        };
        send(&request, &input.unwrap_or_default())?;
        let cancel = Cancel {
            id,
            outgoing: outgoing.clone(),
            link: &self.link,
        };
        match tokio::time::timeout(TAKEN_WITHIN, is_taken).await {
            Err(_elapsed) => return Ok(Ending::Silent.into()),
            Ok(Ok(())) => send(&Request::Go { id }, "")?,
            // The run was refused, or the connection has ended.
            Ok(Err(_)) => {}
        }
        let run = has_ended.await.map_err(|_| self.link.gone());
        drop(cancel);
        run
    }
}
