//! Header maps, counted by their fields.

use wasmtime::Result;
use wasmtime::component::Resource;
use wasmtime_wasi_http::FieldMap;
use wasmtime_wasi_http::p2::HeaderResult;
use wasmtime_wasi_http::p2::bindings::http::types::HostFields;

use super::cost;
use super::view::View;

type Fields = Resource<FieldMap>;

impl View<'_> {
    /// Counts a header map that got a handle of its own.
    pub(super) fn counted(&mut self, fields: Fields) -> Result<Fields> {
        self.counted_as(0, fields)
    }

    /// Counts a header map with a handle of its own that is a copy of one that counts
    /// `bytes`: it has arrays of the same size, even with fewer fields.
    pub(super) fn counted_as(&mut self, bytes: u64, fields: Fields) -> Result<Fields> {
        let own = cost::fields(self.http.table.get(&fields)?);
        self.held.add(fields.rep(), own.max(bytes));
        Ok(fields)
    }

    /// Changes the fields of one name, and counts new ones. Removed fields still count:
    /// a map never shrinks its arrays.
    fn changing(
        &mut self,
        fields: &Fields,
        name: &str,
        change: impl FnOnce(&mut Self) -> HeaderResult<()>,
    ) -> HeaderResult<()> {
        let before = cost::named(self.http.table.get(fields)?, name);
        let result = change(self);
        let after = cost::named(self.http.table.get(fields)?, name);
        self.held.add(fields.rep(), after.saturating_sub(before));
        result
    }
}

impl HostFields for View<'_> {
    fn new(&mut self) -> Result<Fields> {
        HostFields::new(&mut self.http)
    }

    fn from_list(&mut self, entries: Vec<(String, Vec<u8>)>) -> HeaderResult<Fields> {
        let fields = HostFields::from_list(&mut self.http, entries)?;
        let bytes = cost::fields(self.http.table.get(&fields)?);
        self.held.add(fields.rep(), bytes);
        Ok(fields)
    }

    fn drop(&mut self, fields: Fields) -> Result<()> {
        self.held.free(fields.rep());
        HostFields::drop(&mut self.http, fields)
    }

    fn get(&mut self, fields: Fields, name: String) -> Result<Vec<Vec<u8>>> {
        HostFields::get(&mut self.http, fields, name)
    }

    fn has(&mut self, fields: Fields, name: String) -> Result<bool> {
        HostFields::has(&mut self.http, fields, name)
    }

    fn set(&mut self, fields: Fields, name: String, values: Vec<Vec<u8>>) -> HeaderResult<()> {
        let own = Resource::new_borrow(fields.rep());
        let text = name.clone();
        self.changing(&own, &text, |view| {
            HostFields::set(&mut view.http, fields, name, values)
        })
    }

    fn delete(&mut self, fields: Fields, name: String) -> HeaderResult<()> {
        let own = Resource::new_borrow(fields.rep());
        let text = name.clone();
        self.changing(&own, &text, |view| {
            HostFields::delete(&mut view.http, fields, name)
        })
    }

    fn append(&mut self, fields: Fields, name: String, value: Vec<u8>) -> HeaderResult<()> {
        let (number, bytes) = (fields.rep(), cost::field(name.len(), value.len()));
        HostFields::append(&mut self.http, fields, name, value)?;
        self.held.add(number, bytes);
        Ok(())
    }

    fn entries(&mut self, fields: Fields) -> Result<Vec<(String, Vec<u8>)>> {
        HostFields::entries(&mut self.http, fields)
    }

    /// The copy shares its fields with the first until one of them is changed, and
    /// counts in full from the start.
    fn clone(&mut self, fields: Fields) -> Result<Fields> {
        let bytes = self.held.of(fields.rep());
        let copy = HostFields::clone(&mut self.http, fields)?;
        self.counted_as(bytes, copy)
    }
}
