//! Loads, compiles and runs one jq program, and words its errors for the caller.

use jaq_core::data::JustLut;
use jaq_core::load::{self, Arena, File, Loader};
use jaq_core::{Compiler, Ctx, Vars, compile, unwrap_valr};
use jaq_json::Val;
use toolward_guest::Error;

/// Runs `code` over `input`, and gives each result to `take` until it says
/// `false`. Returns whether it was stopped.
pub fn run(
    code: &str,
    names: &[String],
    values: Vec<Val>,
    input: Val,
    mut take: impl FnMut(Val) -> Result<bool, Error>,
) -> Result<bool, Error> {
    let definitions = jaq_core::defs()
        .chain(jaq_std::defs())
        .chain(jaq_json::defs());
    let functions = jaq_core::funs()
        .chain(jaq_std::funs())
        .chain(jaq_json::funs());

    let arena = Arena::default();
    let modules = Loader::new(definitions)
        .load(&arena, File { code, path: () })
        .map_err(|errors| {
            invalid(
                code,
                errors.iter().flat_map(|(_, error)| syntax(code, error)),
            )
        })?;
    let filter = Compiler::default()
        .with_funs(functions)
        .with_global_vars(names.iter().map(String::as_str))
        .compile(modules)
        .map_err(|errors| {
            invalid(
                code,
                errors
                    .iter()
                    .flat_map(|(_, all)| all)
                    .map(|error| undefined(code, error)),
            )
        })?;

    let context = Ctx::<JustLut<Val>>::new(&filter.lut, Vars::new(values));
    for result in filter.id.run((context, input)).map(unwrap_valr) {
        let value = result.map_err(|error| Error::new("json:query_failed", error.to_string()))?;
        if !take(value)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn invalid(code: &str, problems: impl Iterator<Item = String>) -> Error {
    let problems: Vec<String> = problems.take(5).collect();
    let message = match problems.first() {
        Some(first) => format!("the query is no jq program: {first}"),
        None => "the query is no jq program".to_owned(),
    };
    Error::new("json:query_invalid", message)
        .cause(&serde_json::json!({"query": code, "problems": problems}))
}

fn syntax(code: &str, error: &load::Error<&str>) -> Vec<String> {
    match error {
        load::Error::Io(modules) => modules
            .iter()
            .map(|(module, _)| format!("modules can't be loaded here ({module})"))
            .collect(),
        load::Error::Lex(errors) => errors
            .iter()
            .map(|(expected, found)| wanted(code, expected.as_str(), found))
            .collect(),
        load::Error::Parse(errors) => errors
            .iter()
            .map(|(expected, found)| wanted(code, expected.as_str(), found))
            .collect(),
    }
}

fn wanted(code: &str, expected: &str, found: &str) -> String {
    let place = place(code, found);
    match found.chars().next() {
        None => format!("expected {expected} at the end"),
        Some(_) => {
            let shown: String = found.chars().take(20).collect();
            format!("expected {expected}, found `{shown}` at character {place}")
        }
    }
}

fn undefined(code: &str, (name, kind): &compile::Error<&str>) -> String {
    let place = place(code, name);
    match kind {
        compile::Undefined::Filter(arity) => {
            format!("no function {name}/{arity} is known (at character {place})")
        }
        kind => format!(
            "no {} {name} is known (at character {place})",
            kind.as_str()
        ),
    }
}

/// Where `part`, a slice of `code`, starts: characters from 1.
fn place(code: &str, part: &str) -> usize {
    let offset = (part.as_ptr() as usize).saturating_sub(code.as_ptr() as usize);
    code.get(..offset)
        .map_or(1, |before| before.chars().count() + 1)
}
