//! The JSON Schemas that AIP-14, AIP-30, AIP-31 and AIP-39 publish, as a second opinion. For
//! documents that are generated from them, this host gives the same result, or a table has the
//! difference with its reason.

mod differences;
mod documents;
mod places;
mod rules;
mod statements;

use std::collections::BTreeMap;
use std::path::Path;

use jsonschema::Validator;
use jsonschema::error::ValidationErrorKind;
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use serde_json::{Value, json};
use toolward_contract::action::Action;
use toolward_contract::driver::Driver;
use toolward_contract::tool::Tool;
use toolward_contract::{Diagnostic, NoScope, codes};

use differences::{Difference, Direction, Specification};
use places::Written;
pub(crate) use statements::{ACTION, HTTP};
use statements::{CONTRACT, DRIVER, Statement};

const ALL: [Specification; 4] = [
    Specification::Contract,
    Specification::Driver,
    Specification::Http,
    Specification::Action,
];

/// The statements that apply to the documents of a specification.
fn statements(of: Specification) -> &'static [&'static Statement] {
    match of {
        Specification::Contract => &[&CONTRACT],
        Specification::Driver => &[&DRIVER],
        Specification::Http => &[&DRIVER, &HTTP],
        Specification::Action => &[&ACTION],
    }
}

/// Judges the documents of one specification by this host and by the published schema.
struct Oracle {
    specification: Specification,
    theirs: Vec<Validator>,
}

/// A field and its problem: a code of this host, or a keyword of the published schema.
type Finding = (String, String);

struct Opinions {
    errors: Vec<Finding>,
    warnings: Vec<Finding>,
    theirs: Vec<Finding>,
}

impl Oracle {
    fn new(specification: Specification) -> Oracle {
        let schemas = statements(specification).iter();
        let theirs = schemas.map(|statement| validator(&statement.schema()));
        Oracle {
            specification,
            theirs: theirs.collect(),
        }
    }

    fn ask(&self, document: &Value) -> Opinions {
        let written = Written::new(document);
        let text = &written.text;
        let found = match self.specification {
            Specification::Contract => Tool::parse("TOOL.md", text, &NoScope).diagnostics,
            Specification::Driver | Specification::Http => {
                Driver::parse("DRIVER.md", text).diagnostics
            }
            Specification::Action => Action::parse("ACTION.md", text).diagnostics,
        };
        let place = |one: Diagnostic| (written.field(one.line).to_owned(), one.code.to_owned());
        let (errors, warnings): (Vec<_>, Vec<_>) =
            found.into_iter().partition(Diagnostic::is_error);
        let theirs = self.theirs.iter();
        Opinions {
            errors: errors.into_iter().map(place).collect(),
            warnings: warnings.into_iter().map(place).collect(),
            theirs: theirs
                .flat_map(|schema| refusals(schema, document))
                .collect(),
        }
    }

    /// The differences that apply to these documents.
    fn rows(&self) -> impl Iterator<Item = &'static Difference> {
        let of = self.specification;
        differences::all().filter(move |row| {
            row.specification == of
                || (of, row.specification) == (Specification::Http, Specification::Driver)
        })
    }

    /// Findings of only one side that no row explains.
    fn unexplained<'o>(&self, opinions: &'o Opinions) -> Vec<&'o Finding> {
        let (direction, found) = match (opinions.errors.is_empty(), opinions.theirs.is_empty()) {
            (false, true) => (Direction::Stricter, &opinions.errors),
            (true, false) => (Direction::Wider, &opinions.theirs),
            _ => return Vec::new(),
        };
        let explained = |one: &Finding| self.rows().any(|row| explains(row, direction, one));
        found.iter().filter(|one| !explained(one)).collect()
    }
}

fn explains(row: &Difference, direction: Direction, (field, what): &Finding) -> bool {
    let said = match direction {
        Direction::Stricter => row.codes.contains(&what.as_str()),
        Direction::Wider => row.keywords.contains(&what.as_str()) || row.keywords == ["*"],
    };
    row.direction == direction
        && said
        && row
            .fields
            .iter()
            .any(|pattern| places::covers(pattern, field))
}

fn validator(schema: &Value) -> Validator {
    jsonschema::draft202012::new(schema).expect("a schema")
}

/// The refusals of a schema. For a missing or additional member, the field is the member.
fn refusals(schema: &Validator, document: &Value) -> Vec<Finding> {
    let mut found = Vec::new();
    for error in schema.iter_errors(document) {
        let field = places::of_pointer(error.instance_path().as_str(), document);
        let keyword = error.kind().keyword().to_owned();
        let members = match error.kind() {
            ValidationErrorKind::AdditionalProperties { unexpected } => unexpected.clone(),
            ValidationErrorKind::Required { property } => {
                property.as_str().map(str::to_owned).into_iter().collect()
            }
            _ => Vec::new(),
        };
        if members.is_empty() {
            found.push((field, keyword));
            continue;
        }
        let members = members.iter().map(|name| places::member_of(&field, name));
        found.extend(members.map(|member| (member, keyword.clone())));
    }
    found
}

/// The smallest document that both sides accept.
fn smallest(of: Specification) -> Value {
    let driver = json!({
        "name": "A", "id": "price-cli", "description": "A.", "version": "1.0.0", "kind": "cli",
        "implements": [{ "tool": "price.read", "version": "^1.0.0" }],
    });
    match of {
        Specification::Contract => json!({
            "name": "A", "id": "price.read", "description": "A.", "version": "1.0.0",
            "inputs": { "type": "object" }, "outputs": {},
        }),
        Specification::Driver => driver,
        Specification::Http => {
            let mut http = driver;
            http["kind"] = json!("http");
            http["base_url"] = json!("https://api.example");
            http["network"] = json!({ "egress": ["api.example"] });
            http["implements"][0]["metadata"] = json!({ "http": { "endpoint": "/prices" } });
            http
        }
        Specification::Action => {
            json!({ "schema": "action/v1", "id": "storage:commit", "description": "A." })
        }
    }
}

/// The smallest document with the changes of a row.
fn case(row: &Difference) -> Value {
    let mut document = smallest(row.specification);
    for (pointer, text) in row.case {
        let words: Vec<&str> = text.split(' ').collect();
        let count = |number: &str| number.parse::<usize>().expect("a number");
        let value = match words.as_slice() {
            ["@removed"] => {
                let members = document.as_object_mut().expect("a mapping");
                members.shift_remove(pointer.trim_start_matches('/'));
                continue;
            }
            ["@text", number] => json!("a".repeat(count(number))),
            ["@text", number, "and", "a", "space"] => {
                json!(format!("{} ", "a".repeat(count(number))))
            }
            ["@list", number] => json!(vec![0; count(number)]),
            ["@deep", number] => (0..count(number)).fold(json!(0), |inner, _| json!([inner])),
            _ => serde_json::from_str(text).expect("a case is JSON"),
        };
        documents::set(&mut document, pointer, value);
    }
    document
}

#[test]
fn both_take_the_smallest_documents() {
    for of in ALL {
        let opinions = Oracle::new(of).ask(&smallest(of));
        assert_eq!(
            (opinions.errors, opinions.theirs),
            (vec![], vec![]),
            "{of:?}"
        );
    }
}

#[test]
fn every_difference_of_the_table_is_one() {
    let mut wrong = Vec::new();
    for row in differences::all() {
        let document = case(row);
        let opinions = Oracle::new(row.specification).ask(&document);
        let (refused, taken) = match row.direction {
            Direction::Stricter => (&opinions.errors, &opinions.theirs),
            Direction::Wider => (&opinions.theirs, &opinions.errors),
        };
        let all = refused.iter().all(|one| explains(row, row.direction, one));
        if refused.is_empty() || !all || !taken.is_empty() {
            wrong.push(format!(
                "{}: refused {refused:?}, by the other {taken:?}",
                row.rule
            ));
        }
        let warned = opinions
            .warnings
            .iter()
            .any(|(_, code)| row.codes.contains(&code.as_str()));
        if row.direction == Direction::Wider && warned == row.codes.is_empty() {
            wrong.push(format!("{}: warns of {:?}", row.rule, opinions.warnings));
        }
        let known = |code: &&str| codes().any(|info| info.code == *code);
        if !row.codes.iter().all(known) || row.rule.is_empty() || row.reason.is_empty() {
            wrong.push(format!("{}: {:?}", row.rule, row.codes));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Documents of a specification, with usual values.
fn usual(of: Specification) -> BoxedStrategy<Value> {
    let parts: Vec<_> = statements(of)
        .iter()
        .map(|one| documents::usual(&one.fields))
        .collect();
    let merged = parts.prop_map(|parts| parts.into_iter().fold(json!({}), merged));
    merged
        .prop_map(move |document| ordinary(of, document))
        .boxed()
}

fn merged(into: Value, from: Value) -> Value {
    match (into, from) {
        (Value::Object(mut into), Value::Object(from)) => {
            for (key, value) in from {
                let before = into.get(&key).cloned().unwrap_or(Value::Null);
                into.insert(key, merged(before, value));
            }
            Value::Object(into)
        }
        (Value::Array(into), Value::Array(mut from)) => {
            let items = into.into_iter().enumerate();
            let items = items.map(|(index, item)| match from.get_mut(index) {
                Some(other) => merged(item, other.take()),
                None => item,
            });
            Value::Array(items.collect())
        }
        (_, from) => from,
    }
}

/// Removes problems that depend on other documents or on chance; rows of the table cover them.
fn ordinary(of: Specification, mut document: Value) -> Value {
    if of == Specification::Driver && document["kind"] == "http" {
        document["kind"] = json!("cli");
    }
    if of == Specification::Http {
        document["network"]["egress"] = json!(["api.example"]);
        document["implements"] = json!([document["implements"][0]]);
        let entry = &mut document["implements"][0];
        if entry["metadata"]["http"].is_null() {
            entry["metadata"]["http"] = json!({ "endpoint": "/prices" });
        }
    }
    if of == Specification::Contract
        && document["approval"]
            .as_str()
            .is_none_or(|given| given == "auto")
    {
        document["approval"] = json!("on-mutate");
    }
    document
}

fn runner(cases: u32) -> TestRunner {
    let config = Config {
        cases,
        failure_persistence: None,
        ..Config::default()
    };
    TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha))
}

/// How many documents of each kind and specification.
const DOCUMENTS: u32 = 150;

/// Checks that this host and the published schemas agree on documents that are generated from the
/// schemas, except for known differences.
fn judge(of: Specification) {
    let oracle = Oracle::new(of);
    let judged = runner(DOCUMENTS).run(&usual(of), |document| {
        let opinions = oracle.ask(&document);
        prop_assert_eq!(&opinions.theirs, &vec![], "{} {:?}", document, of);
        let left = oracle.unexplained(&opinions);
        prop_assert!(left.is_empty(), "{:?} {}", left, document);
        Ok(())
    });
    if let Err(wrong) = judged {
        panic!("{wrong}");
    }
    let rules: Vec<_> = statements(of).iter().map(|one| &one.fields).collect();
    let changed = (usual(of), any::<Index>())
        .prop_map(move |(document, which)| documents::changed(&document, &rules, which));
    let mut source = runner(0);
    let (mut taken, mut refused) = (0, 0);
    let mut wrong = BTreeMap::new();
    for _ in 0..4 * DOCUMENTS {
        let document = changed.new_tree(&mut source).expect("a document");
        let document = document.current();
        let opinions = oracle.ask(&document);
        for finding in oracle.unexplained(&opinions) {
            wrong.insert(finding.clone(), document.clone());
        }
        match opinions.theirs.is_empty() {
            true => taken += 1,
            false => refused += 1,
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    // Otherwise the changes would test too little.
    assert!(
        taken > DOCUMENTS / 2 && refused > DOCUMENTS,
        "{taken}, {refused}"
    );
}

#[test]
fn contracts_made_from_the_schema_are_judged_alike_or_the_difference_is_known() {
    judge(Specification::Contract);
}

#[test]
fn drivers_made_from_the_schema_are_judged_alike_or_the_difference_is_known() {
    judge(Specification::Driver);
}

#[test]
fn http_drivers_made_from_the_schemas_are_judged_alike_or_the_difference_is_known() {
    judge(Specification::Http);
}

#[test]
fn actions_made_from_the_schema_are_judged_alike_or_the_difference_is_known() {
    judge(Specification::Action);
}

/// Runs only with the published files, in `PUBLISHED_SCHEMAS=DIR`, which are not in the repository.
#[test]
#[ignore = "needs the published files in PUBLISHED_SCHEMAS"]
fn the_statements_say_what_the_published_schemas_say() {
    let folder = std::env::var_os("PUBLISHED_SCHEMAS").expect("the folder of the published files");
    for statement in [&CONTRACT, &DRIVER, &HTTP, &ACTION] {
        let of = statement.specification;
        let path = Path::new(&folder).join(statement.file);
        let bytes = std::fs::read(&path).expect("the published file");
        assert_eq!(digest(&bytes), statement.sha256, "{}", statement.file);
        let mut published: Value = serde_json::from_slice(&bytes).expect("JSON");
        if of == Specification::Contract {
            // These refer to AIP-16's schemas, which the test does not fetch.
            for block in ["inputs", "outputs"] {
                published["properties"][block] = json!({ "type": "object" });
            }
        }
        let (published, ours) = (validator(&published), validator(&statement.schema()));
        let changed = (usual(of), any::<Index>()).prop_map(move |(document, which)| {
            documents::changed(&document, &[&statement.fields], which)
        });
        let directed = differences::all().map(case);
        let judged = runner(4 * DOCUMENTS).run(&changed, |document| {
            prop_assert_eq!(
                published.is_valid(&document),
                ours.is_valid(&document),
                "{}",
                document
            );
            Ok(())
        });
        assert!(
            judged.is_ok(),
            "{}: {}",
            statement.file,
            judged.unwrap_err()
        );
        for document in directed {
            assert_eq!(
                published.is_valid(&document),
                ours.is_valid(&document),
                "{document}"
            );
        }
    }
}

fn digest(bytes: &[u8]) -> String {
    use sha2::Digest as _;
    let digest = sha2::Sha256::digest(bytes);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}
