//! Creates the tables in an empty file, and checks them in any other file.

use std::time::Instant;

use rusqlite::{Connection, TransactionBehavior};

use super::{Error, write_ahead};

/// The owner of a file, and the tables in it.
#[derive(Clone, Copy, Debug)]
pub struct FileSchema {
    /// The identification of the file (`PRAGMA application_id`): four letters.
    pub application_id: i64,
    /// The version of the tables (`PRAGMA user_version`).
    pub version: i64,
    /// The statements that create the tables.
    pub tables: &'static str,
    /// The owner of the tables, for messages: `a store`.
    pub owner: &'static str,
}

impl FileSchema {
    /// Enables write-ahead logging, and creates the tables if the file is empty. Returns whether
    /// the tables already existed. Nothing is written before the file is known to be empty or to
    /// have this version's tables.
    ///
    /// # Errors
    /// [`Error::Corrupt`] for another program's file, [`Error::Version`] for another version's
    /// tables, [`Error::Busy`] after the deadline.
    pub fn prepare(&self, connection: &mut Connection, deadline: Instant) -> Result<bool, Error> {
        let made = self.look(connection)?;
        write_ahead(connection, deadline)?;
        if !made {
            self.make(connection)?;
        }
        Ok(made)
    }

    /// Creates the tables, unless they exist: if two processes call this, the second finds the
    /// tables of the first.
    ///
    /// # Errors
    /// The errors of [`FileSchema::prepare`].
    pub fn make(&self, connection: &mut Connection) -> Result<(), Error> {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        if !self.recognise(&transaction)? {
            transaction.execute_batch(self.tables)?;
            transaction.pragma_update(None, "application_id", self.application_id)?;
            transaction.pragma_update(None, "user_version", self.version)?;
        }
        Ok(transaction.commit()?)
    }

    /// Whether the file has the tables; false for an empty file.
    ///
    /// # Errors
    /// [`Error::Corrupt`] for another program's file, [`Error::Version`] for another version's
    /// tables.
    pub fn look(&self, connection: &mut Connection) -> Result<bool, Error> {
        // Everything is read in one transaction, since another process may be creating the tables.
        let transaction = connection.transaction()?;
        self.recognise(&transaction)
    }

    /// Refuses a file that does not have the tables.
    ///
    /// # Errors
    /// The errors of [`FileSchema::look`], and [`Error::Corrupt`] for an empty file.
    pub fn require(&self, connection: &mut Connection) -> Result<(), Error> {
        match self.look(connection)? {
            true => Ok(()),
            false => Err(self.unknown()),
        }
    }

    fn recognise(&self, connection: &Connection) -> Result<bool, Error> {
        let pragma = |name| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
        let (application, version) = (pragma("application_id")?, pragma("user_version")?);
        let tables: i64 =
            connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
        if (application, version, tables) == (0, 0, 0) {
            return Ok(false);
        }
        if application != self.application_id {
            return Err(self.unknown());
        }
        if version != self.version {
            return Err(Error::Version {
                found: version,
                expected: self.version,
            });
        }
        match tables {
            1.. => Ok(true),
            _ => Err(self.unknown()),
        }
    }

    fn unknown(&self) -> Error {
        Error::Corrupt(format!("expected the tables of {}", self.owner).into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCHEMA: FileSchema = FileSchema {
        application_id: 0x544c_4558,
        version: 2,
        tables: "CREATE TABLE one (number INTEGER PRIMARY KEY) STRICT;",
        owner: "an example",
    };

    fn made() -> Connection {
        let mut connection = Connection::open_in_memory().unwrap();
        assert!(!SCHEMA.look(&mut connection).unwrap());
        SCHEMA.require(&mut connection).unwrap_err();
        SCHEMA.make(&mut connection).unwrap();
        connection
    }

    #[test]
    fn tables_are_made_once_and_recognised_afterwards() {
        let mut connection = made();
        SCHEMA.require(&mut connection).unwrap();
        connection
            .execute("INSERT INTO one VALUES (7)", [])
            .unwrap();
        SCHEMA.make(&mut connection).unwrap();
        let found: i64 = connection
            .query_row("SELECT number FROM one", [], |row| row.get(0))
            .unwrap();
        assert_eq!(found, 7);
    }

    #[test]
    fn an_older_or_newer_version_is_refused_and_told_from_anothers_file() {
        for version in [0, 1, 3] {
            let mut connection = made();
            connection
                .pragma_update(None, "user_version", version)
                .unwrap();
            let error = SCHEMA.look(&mut connection).unwrap_err();
            assert!(
                matches!(error, Error::Version { found, expected: 2 } if found == version),
                "{error}"
            );
        }
        let mut connection = made();
        connection.pragma_update(None, "application_id", 7).unwrap();
        let error = SCHEMA.make(&mut connection).unwrap_err();
        assert!(matches!(error, Error::Corrupt(_)), "{error}");
    }

    #[test]
    fn tables_of_nobody_and_a_name_without_tables_are_refused() {
        let mut connection = Connection::open_in_memory().unwrap();
        connection
            .execute_batch("CREATE TABLE diary (day)")
            .unwrap();
        let error = SCHEMA.look(&mut connection).unwrap_err();
        assert!(matches!(error, Error::Corrupt(_)), "{error}");
        let mut connection = Connection::open_in_memory().unwrap();
        for (name, value) in [
            ("application_id", SCHEMA.application_id),
            ("user_version", 2),
        ] {
            connection.pragma_update(None, name, value).unwrap();
        }
        let error = SCHEMA.look(&mut connection).unwrap_err();
        assert!(matches!(error, Error::Corrupt(_)), "{error}");
    }
}
