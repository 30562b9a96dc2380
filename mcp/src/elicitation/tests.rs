use super::*;
use serde_json::json;

fn asked(ask: Value) -> Asked {
    serde_json::from_value(json!({
        "invocation": "i",
        "principal": "alice",
        "tool": "notes.append@1.2.0",
        "tool_id": "notes.append@1",
        "publisher": "acme",
        "driver": "notes",
        "driver_publisher": "acme",
        "bundle": "0".repeat(64),
        "input": "0".repeat(64),
        "round": 1,
        "questions": [{"key": "q", "ask": ask}],
        "state": "",
        "spent": {"fuel": 0, "milliseconds": 0, "attempts": 1},
    }))
    .unwrap()
}

fn sent(asked: &Asked) -> Value {
    let request = request(asked, &asked.questions[0]).expect("a request");
    serde_json::to_value(request).unwrap()
}

fn form(message: &str, fields: Value) -> Asked {
    let schema = json!({"type": "object", "properties": fields, "additionalProperties": false});
    asked(json!({"form": {"message": message, "schema": schema}}))
}

#[test]
fn a_form_says_first_who_asks() {
    let mut asked = form("What now?", json!({}));
    let text = sent(&asked)["params"]["message"].clone();
    assert_eq!(
        text,
        "tool notes.append@1 by publisher acme asks:\n\nWhat now?"
    );
    asked.driver_publisher = "other".to_owned();
    let text = sent(&asked)["params"]["message"].to_string();
    assert!(
        text.contains("driver notes by ANOTHER publisher, other"),
        "{text}"
    );
}

#[test]
fn every_kind_of_field_is_sent_as_it_was_asked() {
    let titled = json!([{"const": "a", "title": "A"}, {"const": "b", "title": "B"}]);
    let fields = json!({
        "string": {"type": "string", "minLength": 1, "maxLength": 9, "default": "x"},
        "email": {"type": "string", "format": "email"},
        "integer": {"type": "integer", "minimum": 1, "maximum": 3, "default": 2},
        "number": {"type": "number", "default": 95.5},
        "boolean": {"type": "boolean", "default": true},
        "untitled": {"type": "string", "enum": ["a", "b"], "default": "a"},
        "titled": {"type": "string", "oneOf": titled},
        "legacy": {"type": "string", "enum": ["a"], "enumNames": ["A"]},
        "several": {"type": "array", "items": {"type": "string", "enum": ["a"]}},
        "several titled": {"type": "array", "minItems": 1, "items": {"anyOf": titled}},
    });
    let sent = sent(&form("Fill in", fields.clone()));
    assert_eq!(sent["method"], "elicitation/create");
    let sent = &sent["params"]["requestedSchema"]["properties"];
    for (name, field) in fields.as_object().unwrap() {
        assert_eq!(&sent[name], field, "{name}");
    }
}

#[test]
fn text_of_a_driver_is_made_visible_and_stays_behind_who_asks() {
    let hidden = "a\u{202e}b\u{1b}[2J";
    let asked = form(
        hidden,
        json!({"x": {
            "type": "string",
            "title": hidden,
            "description": hidden,
            "oneOf": [{"const": "a", "title": hidden}],
        }}),
    );
    let text = sent(&asked).to_string();
    assert!(
        !text.contains('\u{202e}') && !text.contains("\\u001b"),
        "{text}"
    );
    assert_eq!(text.matches("a\\\\u{202e}b\\\\e[2J").count(), 4, "{text}");

    let mut sample = asked_sample("system\u{e0041}", "text\u{202e}");
    let Ask::Sample(parameters) = &mut sample.questions[0].ask else {
        panic!("a sample");
    };
    parameters["stopSequences"] = json!(["stop\u{202e}", "\n"]);
    parameters["modelPreferences"] = json!({"hints": [{"name": "model\u{202e}"}, {}]});
    let sent = sent(&sample);
    let text = sent.to_string();
    for visible in [
        "system\\\\u{e0041}",
        "text\\\\u{202e}",
        "stop\\\\u{202e}",
        "model\\\\u{202e}",
    ] {
        assert!(text.contains(visible), "no {visible} in {text}");
    }
    assert!(!text.contains('\u{202e}'), "{text}");
    assert_eq!(sent["params"]["stopSequences"][1], "\n");
}

fn asked_sample(system: &str, text: &str) -> Asked {
    asked(json!({"sample": {
        "messages": [{"role": "user", "content": {"type": "text", "text": text}}],
        "systemPrompt": system,
        "maxTokens": 10,
    }}))
}

#[test]
fn samples_and_roots_become_requests_of_their_kind() {
    let sent_sample = sent(&asked_sample("s", "t"));
    assert_eq!(sent_sample["method"], "sampling/createMessage");
    assert_eq!(sent_sample["params"]["messages"][0]["content"]["text"], "t");
    assert_eq!(sent_sample["params"]["maxTokens"], 10);
    assert_eq!(sent(&asked(json!("roots")))["method"], "roots/list");
}

#[test]
fn samples_and_roots_say_who_asks() {
    let mut sample = asked_sample("Be brief.", "t");
    sample.publisher = "ac\u{202e}me".to_owned();
    let mut roots = asked(json!("roots"));
    roots.publisher.clone_from(&sample.publisher);
    let system = sent(&sample)["params"]["systemPrompt"].clone();
    assert_eq!(
        system,
        "[tool notes.append@1 by publisher ac\\u{202e}me, through the driver notes by ANOTHER \
         publisher, acme, asks for this.]\n\nBe brief."
    );
    for asked in [&sample, &roots] {
        let asks = &sent(asked)["params"]["_meta"]["toolward/asks"];
        assert_eq!(asks["tool"], "notes.append@1");
        assert_eq!(asks["publisher"], "ac\\u{202e}me");
        assert_eq!(asks["driver_publisher"], "acme");
    }
    let silent = asked_sample("", "t");
    let Ask::Sample(mut parameters) = silent.questions[0].ask.clone() else {
        panic!("a sample");
    };
    parameters.as_object_mut().unwrap().remove("systemPrompt");
    let silent = asked(json!({"sample": parameters}));
    assert_eq!(
        sent(&silent)["params"]["systemPrompt"],
        "[tool notes.append@1 by publisher acme asks for this.]"
    );
}

#[test]
fn the_three_ways_to_leave_a_form_are_told_apart() {
    let form = form("?", json!({}));
    let ask = &form.questions[0].ask;
    for (said, expected) in [
        (
            json!({"action": "accept", "content": {"x": 1}}),
            Some(Answer::Accepted(json!({"x": 1}))),
        ),
        (
            json!({"action": "accept"}),
            Some(Answer::Accepted(json!({}))),
        ),
        (
            json!({"action": "decline", "content": {"x": 1}}),
            Some(Answer::Declined),
        ),
        (json!({"action": "cancel"}), Some(Answer::Cancelled)),
        (json!({"action": "ACCEPT"}), None),
        (json!({"content": {"x": 1}}), None),
        (json!(12345), None),
    ] {
        assert_eq!(answer(ask, said.clone()), expected, "{said}");
    }
}

#[test]
fn what_is_the_protocols_own_does_not_reach_a_driver() {
    let said = json!({"roots": [], "_meta": {"a": 1}, "resultType": "complete"});
    let answer = answer(&Ask::Roots, said);
    assert_eq!(answer, Some(Answer::Accepted(json!({"roots": []}))));
}
