//! A confined server has its programs run, too.

use serde_json::json;

use super::Scene;
use crate::mcp::raw::Raw;

#[test]
fn a_confined_server_runs_the_program_again_and_again() {
    let mut scene = Scene::new(&["echo"]);
    scene.write();
    let serve = "serve --bundle hostile.toolbundle --trust-key key.pub.pem --policy policy.toml";
    let command = scene.machine.toolward(serve).into_command();
    let mut raw = Raw::open(command, json!({}));
    for id in 1..4 {
        raw.call(id, "hostile_program", &json!({ "a": id }));
        let answer = raw.answer(id);
        let did = &answer["result"]["structuredContent"]["result"];
        assert_eq!(did["input"], json!({ "a": id }), "{answer}");
        assert_eq!(did["variables"], 0, "{answer}");
    }
    drop(raw);
    scene.is_alone();
}
