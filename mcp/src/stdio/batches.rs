//! Lists of requests, which revision 2025-03-26 has. Each message of a list is handled as if it had
//! come alone. The answers are sent as one list when the last of them is known.

use std::collections::VecDeque;

use bytes::BytesMut;
use rmcp::model::RequestId;

use crate::messages::MAX_BATCH_ANSWERS_BYTES;

/// The most messages of lists with missing answers. Beyond this no list takes another request.
/// Otherwise one slow request in each of many lists would hold back the answers to all others.
const MAX_INCOMPLETE_MESSAGES: usize = 2048;

/// The lists that are being read or wait for answers.
#[derive(Debug, Default)]
pub(super) struct Batches {
    /// The messages of the list that is being read.
    unread: VecDeque<BytesMut>,
    /// Whether the last list is still being read. The other lists wait for answers.
    reading: bool,
    all: Vec<Batch>,
}

#[derive(Debug, Default)]
struct Batch {
    /// Requests that were not answered yet.
    requests: Vec<RequestId>,
    /// How many messages were answered.
    answered: usize,
    /// The answers so far, as the start of a list in JSON.
    answers: Vec<u8>,
}

/// What happens to an answer.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Collected {
    /// It belongs to no list.
    Alone(Vec<u8>),
    /// It waits for the others of its list.
    Kept,
    /// It was the last answer: the line with all answers of the list.
    Line(Vec<u8>),
}

impl Batch {
    fn answer(&mut self, line: &[u8]) {
        self.answered = self.answered.saturating_add(1);
        self.answers
            .push(if self.answers.is_empty() { b'[' } else { b',' });
        self.answers.extend_from_slice(line.trim_ascii_end());
    }

    fn line(self) -> Option<Vec<u8>> {
        let mut line = self.answers;
        if line.is_empty() {
            return None;
        }
        line.extend_from_slice(b"]\n");
        Some(line)
    }
}

impl Batches {
    /// The list that is being read.
    fn read_now(&mut self) -> Option<&mut Batch> {
        self.all.last_mut().filter(|_| self.reading)
    }

    /// Whether the list that is being read may take another request. A message outside a list
    /// always has room.
    pub(super) fn has_room(&self) -> bool {
        let messages = self
            .all
            .iter()
            .map(|batch| batch.requests.len().saturating_add(batch.answered));
        !self.reading || messages.sum::<usize>() < MAX_INCOMPLETE_MESSAGES
    }

    /// Whether the answer to a request waits for other answers.
    pub(super) fn contains(&self, request: &RequestId) -> bool {
        let mut all = self.all.iter();
        all.any(|batch| batch.requests.contains(request))
    }

    /// The bytes of the stored answers and a further answer of this length; `None` if there is no
    /// room for the further answer.
    pub(super) fn kept_bytes_with(&self, length: usize) -> Option<usize> {
        let kept: usize = self.all.iter().map(|batch| batch.answers.len()).sum();
        Some(kept.saturating_add(length)).filter(|bytes| *bytes <= MAX_BATCH_ANSWERS_BYTES)
    }

    /// Starts to read a list.
    pub(super) fn read(&mut self, messages: impl Iterator<Item = BytesMut>) {
        self.unread = messages.collect();
        self.reading = true;
        self.all.push(Batch::default());
    }

    /// The next message of the list that is being read.
    pub(super) fn next(&mut self) -> Option<BytesMut> {
        self.unread.pop_front()
    }

    /// Notes that a request of the list that is being read was handed on.
    pub(super) fn opened(&mut self, request: &RequestId) {
        if let Some(batch) = self.read_now() {
            batch.requests.push(request.clone());
        }
    }

    /// Takes the error of a message of the list that is being read.
    pub(super) fn refused(&mut self, line: Vec<u8>) -> Collected {
        match self.read_now() {
            Some(batch) => {
                batch.answer(&line);
                Collected::Kept
            }
            None => Collected::Alone(line),
        }
    }

    /// Ends the list that is being read once all its messages were handed on. Returns the list's
    /// line if no answer is awaited.
    pub(super) fn end_of_list(&mut self) -> Option<Vec<u8>> {
        if !self.unread.is_empty() {
            return None;
        }
        let is_answered = self.read_now()?.requests.is_empty();
        self.reading = false;
        is_answered.then(|| self.all.pop()?.line()).flatten()
    }

    /// Reads nothing more of the list that is being read. Returns the list's line if no answer is
    /// awaited.
    pub(super) fn stop_reading(&mut self) -> Option<Vec<u8>> {
        self.unread.clear();
        self.end_of_list()
    }

    /// Ends all lists. Returns a line for each list that has answers.
    pub(super) fn end(&mut self) -> impl Iterator<Item = Vec<u8>> {
        self.unread.clear();
        self.reading = false;
        self.all.drain(..).filter_map(Batch::line)
    }

    /// Takes the answer to a request.
    pub(super) fn answered(&mut self, request: &RequestId, line: Vec<u8>) -> Collected {
        match self.remove(request, Some(&line)) {
            None => Collected::Alone(line),
            Some(None) => Collected::Kept,
            Some(Some(line)) => Collected::Line(line),
        }
    }

    /// Notes that a request gets no answer. Returns the line of its list if only this answer was
    /// missing.
    pub(super) fn cancelled(&mut self, request: &RequestId) -> Option<Vec<u8>> {
        self.remove(request, None).flatten()
    }

    /// Removes a request from its list. Returns `None` if it is in no list, and the list's line if
    /// the list is complete now.
    fn remove(&mut self, request: &RequestId, answer: Option<&[u8]>) -> Option<Option<Vec<u8>>> {
        let is_in = |batch: &Batch| batch.requests.contains(request);
        let place = self.all.iter().position(is_in)?;
        let is_read = self.reading && place.saturating_add(1) == self.all.len();
        let batch = self.all.get_mut(place)?;
        batch.requests.retain(|one| one != request);
        if let Some(answer) = answer {
            batch.answer(answer);
        }
        Some(match batch.requests.is_empty() && !is_read {
            true => self.all.remove(place).line(),
            false => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: i64) -> RequestId {
        RequestId::Number(number)
    }

    fn read(batches: &mut Batches, requests: &[i64]) -> Option<Vec<u8>> {
        batches.read(std::iter::once(BytesMut::new()));
        batches.next().unwrap();
        requests
            .iter()
            .for_each(|number| batches.opened(&id(*number)));
        batches.end_of_list()
    }

    #[test]
    fn the_answers_to_a_list_are_one_line_when_the_last_one_came() {
        let mut batches = Batches::default();
        assert_eq!(read(&mut batches, &[1, 2]), None);
        assert_eq!(
            batches.answered(&id(3), b"c\n".to_vec()),
            Collected::Alone(b"c\n".to_vec())
        );
        assert_eq!(batches.answered(&id(2), b"b\n".to_vec()), Collected::Kept);
        assert_eq!(
            batches.answered(&id(1), b"a\n".to_vec()),
            Collected::Line(b"[b,a]\n".to_vec())
        );
        assert!(batches.all.is_empty());
    }

    #[test]
    fn a_cancelled_request_holds_up_no_other() {
        let mut batches = Batches::default();
        assert_eq!(read(&mut batches, &[1, 2]), None);
        batches.answered(&id(1), b"a\n".to_vec());
        assert_eq!(batches.cancelled(&id(2)), Some(b"[a]\n".to_vec()));
        assert_eq!(read(&mut batches, &[1]), None);
        assert_eq!(batches.cancelled(&id(1)), None);
        assert!(batches.all.is_empty());
    }

    #[test]
    fn errors_of_a_list_are_answered_with_it() {
        let mut batches = Batches::default();
        batches.read(std::iter::once(BytesMut::new()));
        batches.next().unwrap();
        assert_eq!(batches.refused(b"e\n".to_vec()), Collected::Kept);
        assert_eq!(batches.end_of_list(), Some(b"[e]\n".to_vec()));
        assert_eq!(
            batches.refused(b"e\n".to_vec()),
            Collected::Alone(b"e\n".to_vec())
        );
    }
}
