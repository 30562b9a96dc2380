//! Lists rows by principal, tool, code or call, from a derived index. Each list brings the index up
//! to date from the rows. An index that is missing, damaged or of another ledger is made again.

use std::path::Path;

use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension as _};
use toolward_support::sqlite::FileSchema;

use crate::append::{head, integer, unsigned, write};
use crate::directory;
use crate::error::Error;
use crate::reader::{Reader, Row};
use crate::record::{Code, Event, Hash, Hex, Invocation, Number, Person, Record, Tool};

/// The most rows of one list.
const MAX_ROWS: u32 = 10_000;

const INDEX: FileSchema = FileSchema {
    // `TLLI`.
    application_id: 0x544c_4c49,
    version: 1,
    tables: "
CREATE TABLE row (seq INTEGER PRIMARY KEY, at INTEGER NOT NULL, kind TEXT NOT NULL, invocation BLOB, person BLOB,
                  tool TEXT, code TEXT, mutating INTEGER NOT NULL) STRICT;
CREATE INDEX row_invocation ON row (invocation) WHERE invocation IS NOT NULL;
-- Of which ledger, how many rows, and the leaf of the last of them.
CREATE TABLE made (one INTEGER PRIMARY KEY CHECK (one = 1), origin TEXT NOT NULL, size INTEGER NOT NULL, leaf BLOB)
    STRICT;
",
    owner: "a ledger's index",
};

/// The indexes of the database, created after the first list has inserted the rows. Inserting the
/// rows while the indexes exist takes several times as long.
const INDEXES: &str = "
CREATE INDEX row_person ON row (person, seq) WHERE person IS NOT NULL;
CREATE INDEX row_tool ON row (tool, seq) WHERE tool IS NOT NULL;
CREATE INDEX row_code ON row (code, seq) WHERE code IS NOT NULL;
CREATE INDEX row_mutating ON row (seq) WHERE mutating = 1;
CREATE INDEX row_at ON row (at);
";

/// Selects the rows to list. An empty filter means all rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Rows about this principal, by name.
    pub principal: Option<String>,
    /// Rows about this principal, by the id in records.
    pub person: Option<Person>,
    /// Rows about this tool: `id@version`, or an id for all its versions.
    pub tool: Option<String>,
    /// Rows with this code: as the result of a call, or as the reason of a gap.
    pub code: Option<Code>,
    /// Rows about this call.
    pub invocation: Option<Invocation>,
    /// Only starts of calls that may change something.
    pub mutating: bool,
    /// Rows from this time on, in microseconds since 1970.
    pub since: Option<Number>,
    /// Only rows before this row, for the next page.
    pub before: Option<u64>,
    /// The most rows, at most 10,000; 0 means 100.
    pub limit: u32,
}

/// A row of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedRow {
    /// The row.
    pub row: Row,
    /// Its record; `None` if it was pruned, or is not a record.
    pub record: Option<Record>,
}

impl Reader {
    /// The newest rows that match the filter, newest first. The first list after many new rows
    /// takes some microseconds for each new row.
    ///
    /// # Errors
    /// Errors of the files; [`Error::Full`] and [`Error::ReadOnly`] if no index can be made.
    pub fn list(&self, filter: &Filter) -> Result<Vec<ListedRow>, Error> {
        let index = self.bring_up_to_date()?;
        let mut person = filter.person;
        if let Some(name) = &filter.principal {
            match self.person_of(name)? {
                Some(found) => person = Some(found),
                None => return Ok(Vec::new()),
            }
        }
        let text = |text: &str| Value::Text(text.to_owned());
        let blob = |bytes: &[u8]| Value::Blob(bytes.to_vec());
        let number = |number| Value::Integer(integer(number));
        let (mut version, mut first, mut last) = (None, None, None);
        match filter.tool.as_deref() {
            Some(tool) if tool.contains('@') => version = Some(text(tool)),
            // `A` follows `@` in ASCII, so that the range has exactly the versions of this id.
            Some(id) => {
                (first, last) = (Some(text(&format!("{id}@"))), Some(text(&format!("{id}A"))))
            }
            None => {}
        }
        let conditions = [
            ("person = ?", person.map(|person| blob(&person.0))),
            ("tool = ?", version),
            ("tool >= ?", first),
            ("tool < ?", last),
            (
                "code = ?",
                filter.code.as_ref().map(|code| text(code.as_str())),
            ),
            (
                "invocation = ?",
                filter.invocation.map(|id| blob(id.0.as_bytes())),
            ),
            ("mutating = ?", filter.mutating.then_some(Value::Integer(1))),
            ("at >= ?", filter.since.map(|at| number(at.get()))),
            ("seq < ?", filter.before.map(number)),
        ];
        let conditions = conditions.into_iter();
        let given = conditions.filter_map(|(condition, value)| Some((condition, value?)));
        let (conditions, values): (Vec<&str>, Vec<Value>) = given.unzip();
        let mut statement = "SELECT seq FROM row".to_owned();
        if !conditions.is_empty() {
            statement.push_str(&format!(" WHERE {}", conditions.join(" AND ")));
        }
        let limit = match filter.limit {
            0 => 100,
            limit => limit.min(MAX_ROWS),
        };
        statement.push_str(&format!(" ORDER BY seq DESC LIMIT {limit}"));
        let mut statement = index.prepare(&statement)?;
        let found = statement.query_map(rusqlite::params_from_iter(values), |row| row.get(0))?;
        let mut listed = Vec::new();
        for seq in found {
            let row = self.row(unsigned(seq?)?)?;
            let record = row
                .record
                .as_deref()
                .and_then(|record| Record::of_row(record).ok());
            listed.push(ListedRow { row, record });
        }
        Ok(listed)
    }

    /// The id that stands for a principal in records; `None` if the principal has no id, or if the
    /// name was erased.
    ///
    /// # Errors
    /// Errors of the file.
    pub fn person_of(&self, name: &str) -> Result<Option<Person>, Error> {
        let Some(payloads) = &self.payloads else {
            return Ok(None);
        };
        crate::payload::person(payloads, name)
    }

    /// The index, with all current rows.
    pub(super) fn bring_up_to_date(&self) -> Result<Connection, Error> {
        match self.fill() {
            // The index is derived, so it can be made again.
            Err(Error::Corrupt(_) | Error::Version { .. }) => {
                remove(&self.index)?;
                self.fill()
            }
            filled => filled,
        }
    }

    fn fill(&self) -> Result<Connection, Error> {
        let mut index = directory::open_to_write(&self.index, &INDEX)?;
        toolward_support::sqlite::wait_for_disk(&index, false)?;
        let size = head(&self.records)?.size();
        let tx = write(&mut index)?;
        let made: Option<(String, i64, Option<[u8; 32]>)> = tx
            .query_row("SELECT origin, size, leaf FROM made", [], |row| {
                Ok((row.get(0)?, row.get(1)?, row.get(2)?))
            })
            .optional()?;
        let mut from = 0;
        let is_new = made.is_none();
        if let Some((origin, made, leaf)) = made {
            from = unsigned(made)?;
            let last = from.checked_sub(1).filter(|last| *last < size);
            let last = last.map(|last| self.row(last)).transpose()?;
            let leaf_now = last.map(|row| row.leaf);
            let same = from == 0 || (leaf_now.is_some() && leaf_now == leaf.map(Hex));
            if origin != self.verifier.origin() || from > size || !same {
                return Err(Error::corrupt("an index of another ledger"));
            }
        }
        if from < size {
            let leaf = self.fill_rows(&tx, from, size)?;
            if is_new {
                tx.execute_batch(INDEXES)?;
            }
            tx.execute(
                "INSERT OR REPLACE INTO made VALUES (1, ?1, ?2, ?3)",
                (
                    self.verifier.origin(),
                    integer(size),
                    leaf.map(|leaf| leaf.0),
                ),
            )?;
        }
        tx.commit()?;
        Ok(index)
    }

    fn fill_rows(&self, index: &Connection, from: u64, to: u64) -> Result<Option<Hash>, Error> {
        let mut rows = self.records.prepare(
            "SELECT seq, leaf, record FROM entry WHERE seq >= ?1 AND seq < ?2 ORDER BY seq",
        )?;
        let mut rows = rows.query([integer(from), integer(to)])?;
        let mut insert =
            index.prepare("INSERT INTO row VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)")?;
        let mut started = index
            .prepare("SELECT person, tool FROM row WHERE invocation = ?1 AND kind = 'started'")?;
        let mut leaf = None;
        while let Some(row) = rows.next()? {
            leaf = Some(Hex(row.get(1)?));
            let bytes = row.get_ref(2)?.as_blob_or_null().unwrap_or_default();
            // Skips a row that was pruned or is not a record.
            let Some(Ok(record)) = bytes.map(Record::of_row) else {
                continue;
            };
            let call = record.event.call();
            let code = match &record.event {
                Event::Gap(body) => Some(&body.why),
                event => event.outcome().and_then(|outcome| outcome.code.as_ref()),
            };
            let (person, tool) = (record.event.person(), record.event.tool());
            let invocation = record.invocation().map(|id| *id.0.as_bytes());
            let (person, tool) = (person.map(|person| person.0), tool.map(Tool::as_str));
            // The end of a call does not repeat the person and the tool if the call's start has
            // them: they are taken from the start.
            let is_end = matches!(record.event, Event::Ended(_) | Event::Abandoned(_));
            let start = match invocation.filter(|_| is_end && call.is_none()) {
                Some(invocation) => started
                    .query_row([invocation], |row| Ok((row.get(0)?, row.get(1)?)))
                    .optional()?,
                None => None,
            };
            let (person, tool): (Option<[u8; 16]>, Option<String>) =
                start.unwrap_or_else(|| (person, tool.map(str::to_owned)));
            insert.execute((
                row.get::<_, i64>(0)?,
                integer(record.at.get()),
                record.event.kind(),
                invocation,
                person,
                tool,
                code.map(Code::as_str),
                matches!(record.event, Event::Started(_)),
            ))?;
        }
        Ok(leaf)
    }
}

/// Removes an index. The next reader that needs it makes it again.
pub(crate) fn remove(path: &Path) -> Result<(), Error> {
    for file in directory::with_log(path) {
        if let Err(error) = std::fs::remove_file(file)
            && error.kind() != std::io::ErrorKind::NotFound
        {
            return Err(Error::io("the index", error));
        }
    }
    Ok(())
}
