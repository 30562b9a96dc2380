//! Documents as their authors write them, in the forms of AIP-14, 30, 31 and 39, and of tools.json.

use toolward_author::check::check_path;

use crate::form_corpus::{forms, hold};

#[test]
fn contracts_in_the_forms_of_aip_14_get_the_verdict_beside_them() {
    hold(&forms("TOOL.md", ""), 15, check_path);
}

#[test]
fn drivers_in_the_forms_of_aip_30_and_31_get_the_verdict_beside_them() {
    hold(&forms("DRIVER.md", ""), 17, check_path);
}

#[test]
fn actions_in_the_forms_of_aip_39_get_the_verdict_beside_them() {
    hold(&forms("ACTION.md", ""), 7, check_path);
}

#[test]
fn tools_json_as_a_scaffold_of_runloop_writes_it_gets_the_verdict_beside_it() {
    hold(&forms("tools.json", ""), 20, check_path);
}
