//! The thread that writes: payloads first, then the rows of a batch in one transaction.

use std::time::{Duration, Instant};

use rusqlite::Connection;
use toolward_signing::key::SigningKey;

use crate::append::{self, Appending};
use crate::checkpoint::Verifier;
use crate::directory::{self, BUSY_TIMEOUT, LedgerDirectory, RECORDS};
use crate::error::Error;
use crate::given::{self, GivenSecret};
use crate::payload::Payloads;
use crate::record::{Closed, Code, Event, Opened, Session};
use crate::recorder::{Entry, now};
use crate::sessions::{self, Own};
use crate::writer::counted::Late;
use crate::writer::queue::{Batch, Queue, QueuedRow};
use crate::writer::room::{PrincipalShares, RecordRoom, fits};
use crate::writer::{LedgerOptions, WrittenRows};

/// The time between two attempts to write rows that could not be written.
const RETRY_INTERVAL: Duration = Duration::from_millis(100);
/// The shortest time between two `gap` rows, which count the rows that were not written.
const GAP_INTERVAL: Duration = Duration::from_secs(10);
/// How long to wait for other processes while no row is awaited. No row is written in the meantime.
const NOBODY_WAITS: Duration = Duration::from_secs(2);
/// The shortest wait for other processes.
const LEAST_TIMEOUT: Duration = Duration::from_millis(50);

/// The state of a session in the writer's thread.
pub(super) struct WriterThread {
    options: LedgerOptions,
    records: Connection,
    payloads: Payloads,
    key: SigningKey,
    secret: GivenSecret,
    session: Own,
    late: Late,
    /// Rows that could not be written yet, and whose callers wait for another attempt.
    retried: Vec<QueuedRow>,
    /// Whether commits wait for the disk now; `None` if unknown.
    durable: Option<bool>,
    checkpointed: Instant,
    gap: Option<Instant>,
    /// Whether a row must state that payloads were lost.
    payloads_lost: bool,
    shares: PrincipalShares,
    written: WrittenRows,
}

impl WriterThread {
    pub(super) fn open(options: LedgerOptions, opened: Opened) -> Result<Self, Error> {
        let place = LedgerDirectory::make(&options.directory)?;
        let mut records = directory::open_to_write(&place.records(), &RECORDS)?;
        let is_new = append::head(&records)?.size() == 0;
        let key = place.signing_key(is_new)?;
        let verifier = Verifier::new(key.public());
        append::check_head(&mut records, &verifier, options.checkpoints.as_deref())?;
        let (keep, limits) = (options.keep, options.payloads);
        let (mut payloads, mut lost) = Payloads::open_whole(&place.payloads(), keep, limits)?;
        if let Err(error) = payloads.sweep() {
            replace(&mut payloads, error)?;
            lost = true;
        }
        let session = Own::begin(&place.sessions())?;
        let known = sessions::unfinished(&records)?;
        let dead = sessions::dead(&place.sessions(), &session, known)?;
        toolward_support::sqlite::wait_for_disk(&records, true)?;
        let mut rows = Appending::begin(&mut records)?;
        for dead in &dead {
            dead.abandon(session.id, &mut rows)?;
        }
        rows.add(session.id, Event::Opened(opened))?;
        if lost {
            rows.add_lost_payloads(session.id)?;
        }
        given::sweep(&rows.tx)?;
        rows.commit()?;
        dead.into_iter().for_each(sessions::Dead::forget);
        Ok(Self {
            written: WrittenRows {
                origin: verifier.origin().to_owned(),
                ..WrittenRows::default()
            },
            secret: GivenSecret::of(&key),
            options,
            records,
            payloads,
            key,
            session,
            late: Late::default(),
            retried: Vec::new(),
            durable: Some(true),
            checkpointed: Instant::now(),
            gap: None,
            payloads_lost: false,
            shares: PrincipalShares::default(),
        })
    }

    pub(super) fn verifier(&self) -> Verifier {
        Verifier::new(self.key.public())
    }

    pub(super) fn run(mut self, queue: &Queue) -> (Result<(), Error>, WrittenRows) {
        loop {
            let mut next = self.checkpointed + self.options.checkpoint_interval;
            if !self.retried.is_empty() || !self.late.is_empty() {
                // Pause even if a checkpoint is overdue. Otherwise the rows would be retried
                // without a pause.
                next = Instant::now() + RETRY_INTERVAL;
            }
            let batch = queue.take(next);
            let (closing, why) = (batch.closing, batch.why.clone());
            self.write(batch);
            if closing {
                // Rows that wait for another attempt get the last attempt now.
                self.gap = None;
                self.write(Batch::default());
                let written = std::mem::take(&mut self.written);
                return (self.end(why), written);
            }
        }
    }

    fn write(&mut self, batch: Batch) {
        let mut rows = std::mem::take(&mut self.retried);
        rows.extend(batch.rows);
        if batch.given_up > 0 {
            self.late.count_all(batch.given_up, now(), &Error::Full);
        }
        let flush = !batch.flushes.is_empty();
        let written = match rows.is_empty() && self.late.is_empty() && !flush {
            true => Ok(Vec::new()),
            false => self.commit(&mut rows, flush),
        };
        let flushed = match written {
            Ok(answers) => {
                for (row, answer) in rows.into_iter().zip(answers) {
                    match (row.reply, answer) {
                        (Some(reply), answer) => reply.send(answer.map(drop)),
                        (None, Ok(_)) => {}
                        (None, Err(error)) => self.late.count(&row.entry, &error),
                    }
                }
                Ok(())
            }
            Err(error) => {
                tracing::warn!(code = error.code(), %error, "the ledger could not be written");
                self.failed(rows, &error);
                Err(error)
            }
        };
        for reply in batch.flushes {
            reply.send(flushed.clone());
        }
        for (given, reply) in batch.questions {
            reply.send(given::check(&self.records, &self.secret, &given));
        }
        if flushed.is_ok() && self.checkpointed.elapsed() >= self.options.checkpoint_interval {
            self.checkpointed = Instant::now();
            let made = self.checkpoint().and_then(|()| self.payloads.sweep());
            if let Err(error) = made {
                tracing::warn!(code = error.code(), %error, "no checkpoint could be made");
            }
        }
    }

    /// Handles rows that the disk refused, or that other processes blocked.
    fn failed(&mut self, rows: Vec<QueuedRow>, error: &Error) {
        let now = Instant::now();
        for mut row in rows {
            let again = row.is_ended() || matches!(error, Error::Busy);
            match row.reply.take() {
                Some(reply) if again && now < row.deadline => {
                    row.reply = Some(reply);
                    self.retried.push(row);
                }
                Some(reply) if row.is_ended() => {
                    self.late.hold(row.entry, error);
                    reply.send(Err(Error::Late));
                }
                Some(reply) => reply.send(Err(error.clone())),
                None => self.late.count(&row.entry, error),
            }
        }
    }

    /// Writes rows in one transaction. Returns the number of each row, or why it was not written.
    fn commit(
        &mut self,
        rows: &mut [QueuedRow],
        flush: bool,
    ) -> Result<Vec<Result<u64, Error>>, Error> {
        for row in rows.iter_mut() {
            if let Event::Abandoned(body) = &mut row.entry.event {
                body.of = self.session.id;
            }
        }
        let timeout = self.timeout(rows);
        self.records.busy_timeout(timeout)?;
        self.payloads.busy_timeout(timeout)?;
        let room = self.room()?;
        // If a row is not written, its payloads are not stored either.
        let shares = &self.shares;
        let fitting = rows.iter_mut().filter(|row| fits(row, room, shares));
        let mut entries: Vec<&mut Entry> = fitting.map(|row| &mut row.entry).collect();
        entries.extend(&mut self.late.rows);
        if let Err(error) = self.payloads.prepare(&mut entries) {
            replace(&mut self.payloads, error)?;
            self.payloads_lost = true;
            self.payloads.prepare(&mut entries)?;
        }

        let durable = flush || !self.late.is_empty() || rows.iter().any(|row| row.reply.is_some());
        self.wait_for_disk(durable)?;
        let session = self.session.id;
        let mut appending = Appending::begin(&mut self.records)?;
        let mut late = Vec::new();
        for entry in &self.late.rows {
            late.push(one(&mut appending, entry, session, &self.secret)?);
        }
        let gap_is_due = self.gap.is_none_or(|last| last.elapsed() >= GAP_INTERVAL);
        let missing = self.late.missing.as_ref();
        let gap = missing.filter(|_| gap_is_due && room < RecordRoom::None);
        let counts = gap.is_some();
        if let Some(gap) = gap {
            appending.add(session, Event::Gap(gap.clone()))?;
        }
        if self.payloads_lost && room < RecordRoom::None {
            appending.add_lost_payloads(session)?;
        }
        let mut answers = Vec::with_capacity(rows.len());
        for row in rows.iter() {
            answers.push(match fits(row, room, &self.shares) {
                true => one(&mut appending, &row.entry, session, &self.secret)?,
                false => Err(Error::Full),
            });
        }
        let new = appending.size().saturating_sub(appending.checkpointed()?);
        let due = new >= self.options.checkpoint_rows;
        let note = match due && durable {
            true => Some(appending.checkpoint(&self.key)?),
            false => None,
        };
        appending.commit()?;
        for (entry, seq) in self.late.rows.iter().zip(late) {
            if let Ok(seq) = seq {
                self.written.add(&entry.event, seq);
            }
        }
        for (row, answer) in rows.iter().zip(&answers) {
            if let Ok(seq) = answer {
                self.shares.add(&row.entry);
                self.written.add(&row.entry.event, *seq);
            }
        }
        self.late.written();
        self.payloads_lost = false;
        if counts {
            self.late.missing = None;
            self.gap = Some(Instant::now());
        }
        match note {
            Some(note) => self.publish(&note),
            // The rows are committed, so if this checkpoint fails, the next checkpoint covers them.
            None if due => {
                if let Err(error) = self.checkpoint() {
                    tracing::warn!(%error, "no checkpoint of the ledger was made");
                }
            }
            None => {}
        }
        Ok(answers)
    }

    /// How long to wait for other processes: about as long as the most urgent awaited row allows.
    fn timeout(&self, rows: &[QueuedRow]) -> Duration {
        let waited_for = rows.iter().filter(|row| row.reply.is_some());
        match waited_for.map(|row| row.deadline).min() {
            Some(deadline) => {
                let left = deadline.saturating_duration_since(Instant::now());
                left.clamp(LEAST_TIMEOUT, BUSY_TIMEOUT)
            }
            None => NOBODY_WAITS,
        }
    }

    fn wait_for_disk(&mut self, wait: bool) -> Result<(), Error> {
        if self.durable != Some(wait) {
            self.durable = None;
            toolward_support::sqlite::wait_for_disk(&self.records, wait)?;
            self.durable = Some(wait);
        }
        Ok(())
    }

    fn room(&self) -> Result<RecordRoom, Error> {
        let number = |statement| -> Result<u64, Error> {
            let mut statement = self.records.prepare_cached(statement)?;
            append::unsigned(statement.query_row([], |row| row.get(0))?)
        };
        // Pages that pruning emptied count as free, since they are reused before the file grows.
        let used = number("PRAGMA page_count")?.saturating_sub(number("PRAGMA freelist_count")?);
        let bytes = used.saturating_mul(number("PRAGMA page_size")?);
        let percent = bytes.saturating_mul(100) / self.options.max_bytes.max(1);
        Ok(RecordRoom::left(percent))
    }

    /// Makes a checkpoint if rows are new. Waits until the checkpoint and the rows are on the disk.
    fn checkpoint(&mut self) -> Result<(), Error> {
        self.wait_for_disk(true)?;
        let mut rows = Appending::begin(&mut self.records)?;
        if rows.size() <= rows.checkpointed()? {
            return Ok(());
        }
        let note = rows.checkpoint(&self.key)?;
        given::sweep(&rows.tx)?;
        rows.commit()?;
        self.publish(&note);
        Ok(())
    }

    /// Publishes a checkpoint, so that others can keep it elsewhere.
    fn publish(&mut self, note: &str) {
        self.checkpointed = Instant::now();
        append::publish(self.options.checkpoints.as_deref(), note);
    }

    /// Ends the session.
    fn end(mut self, why: Option<Code>) -> Result<(), Error> {
        let Self { retried, .. } = &mut self;
        let left = !std::mem::take(retried).is_empty() || !self.late.is_empty();
        self.wait_for_disk(true)?;
        let mut rows = Appending::begin(&mut self.records)?;
        rows.add(self.session.id, Event::Closed(Closed { why }))?;
        rows.commit()?;
        self.checkpoint()?;
        if left {
            return Err(Error::Late);
        }
        // Removes the session's file. So the next session abandons the calls of this session that
        // are still unfinished.
        self.session.end();
        Ok(())
    }
}

/// Appends a row, and stores the caller's id if the entry has one. If the id was given before,
/// returns [`Error::Given`] and appends nothing. If the entry ends a call, frees the id instead.
fn one(
    rows: &mut Appending<'_>,
    entry: &Entry,
    session: Session,
    secret: &GivenSecret,
) -> Result<Result<u64, Error>, Error> {
    let ends = match &entry.event {
        Event::Ended(body) => Some(body.invocation),
        Event::Abandoned(body) => Some(body.invocation),
        _ => None,
    };
    if let (Some(given), Some(ended)) = (&entry.given, ends) {
        given::free(&rows.tx, secret, given, ended)?;
    } else if let Some(given) = &entry.given {
        match given::check(&rows.tx, secret, given) {
            Err(error @ Error::Given { .. }) => return Ok(Err(error)),
            checked => checked?,
        }
        given::insert(&rows.tx, secret, given, rows.size())?;
    }
    let seq = rows.push(entry.at, session, &entry.event)?;
    sessions::note(rows, session, &entry.event)?;
    Ok(Ok(seq))
}

/// Starts a new file of payloads if this one is damaged.
fn replace(payloads: &mut Payloads, error: Error) -> Result<(), Error> {
    match error {
        Error::Corrupt(_) => payloads.replace(),
        error => Err(error),
    }
}
