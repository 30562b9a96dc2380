//! Which prompts and resources clients get.

use std::path::Path;
use std::sync::Arc;

use rmcp::ErrorData;
use rmcp::model::{
    ArgumentInfo, CompleteRequestParams, ErrorCode, GetPromptRequestParams, GetPromptResponse,
    Reference,
};
use serde_json::{Value, json};
use tempfile::TempDir;
use toolward_bundle::content::Content;
use toolward_host::Answerable;
use toolward_policy::Policy;

use super::{DocumentsError, ServedDocuments};
use crate::call::testing::{self, Scripted};
use crate::client::Client;
use crate::principal::{Principal, Tools};

const SUM: &str = "---\nid: acme.notes.sum\nname: Sum up\ndescription: Sums up notes.\narguments:\n  - name: topic\n    title: Topic\n    required: true\n    values: [meetings, ideas]\n  - name: tone\nmetadata: { mcp: { name: sum } }\n---\nOn {{topic}}, {{tone}}.\n\n[style](resources/style.txt)\n\n# Assistant\n![p](resources/p.png)\n";
const READ: &str = "---\nid: acme.notes.read\nname: Read\ndescription: Reads.\narguments:\n  - name: uri\n    required: true\n---\n[it]({{uri}})\n";
const TEMPLATE: &str = "---\nname: Record\ndescription: A record.\nuri_template: records://{number}/data\narguments:\n  - name: number\n    values: [\"1\", \"12\"]\n---\n";
const STYLE: &str = "---\nname: Style\ndescription: How to write.\nuri: style://notes\n---\n";

/// A bundle under work, in a temporary directory.
struct Bundle {
    directory: TempDir,
    content: Content,
}

fn write(directory: &Path, name: &str, bytes: &[u8]) {
    let path = directory.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, bytes).unwrap();
}

fn bundle(id: &str, files: &[(&str, &str)]) -> Bundle {
    let directory = TempDir::new().unwrap();
    let head = format!(
        "id = \"{id}\"\nversion = \"1.0.0\"\nsequence = 1\npublisher = \"acme\"\ncreated = \"2026-11-01T00:00:00Z\"\n"
    );
    write(directory.path(), "bundle.toml", head.as_bytes());
    for (name, text) in files {
        write(directory.path(), name, text.as_bytes());
    }
    let content = Content::from_dev(directory.path()).unwrap();
    Bundle { directory, content }
}

fn notes() -> Bundle {
    bundle(
        "acme.notes",
        &[
            ("prompts/sum.md", SUM),
            ("prompts/read.md", READ),
            ("resources/style.txt", "Short."),
            ("resources/style.txt.resource.md", STYLE),
            ("resources/p.png", "\u{fffd}PNG"),
            ("resources/record.json", "{\"number\":\"{{number}}\"}"),
            ("resources/record.json.resource.md", TEMPLATE),
        ],
    )
}

impl Bundle {
    /// The documents under a policy with this `[[document]]` table for the bundle.
    fn served(&self, document: &str) -> ServedDocuments {
        let publisher = self.content.origin.publisher();
        let policy = format!("[[document]]\npublisher = {publisher:?}\n{document}\n");
        ServedDocuments::of([&self.content], &Policy::from_toml(&policy).unwrap()).unwrap()
    }

    fn all(&self) -> ServedDocuments {
        self.served("prompts = [\"*\"]\nresources = [\"*\"]\nnames = [\"sum\"]\nuris = [\"style://notes\", \"records://{number}/data\"]")
    }

    /// The host's own URI of a file.
    fn uri(&self, path: &str) -> String {
        let directory = self.directory.path().canonicalize().unwrap();
        let publisher = format!("dev:{}", directory.display());
        let encoded = publisher.replace(':', "%3A").replace('/', "%2F");
        format!("toolward://{encoded}/acme.notes/{path}")
    }
}

fn principal(tools: Tools) -> Principal {
    Principal {
        name: Arc::from("someone"),
        tools,
        may_approve: false,
    }
}

/// A client that can't ask, one that calls again with answers, and one whose
/// person always gives the same answer.
enum Caller {
    Mute,
    Stateless,
    Session(Value),
}

fn names(documents: &ServedDocuments) -> Vec<String> {
    let prompts = documents.prompts().into_iter();
    prompts.map(|prompt| prompt.name).collect()
}

fn uris(documents: &ServedDocuments) -> Vec<String> {
    let resources = documents.resources().into_iter();
    resources.map(|resource| resource.uri).collect()
}

/// `prompts/get` with these parameters, as JSON.
fn get(documents: &ServedDocuments, params: Value, caller: &Caller) -> Result<Value, ErrorData> {
    let params: GetPromptRequestParams = serde_json::from_value(params).unwrap();
    let person = match caller {
        Caller::Session(answer) => Scripted::saying([answer.clone()]),
        _ => Scripted::saying([]),
    };
    let client = match caller {
        Caller::Stateless => testing::stateless("alice"),
        Caller::Session(_) => testing::session(&person),
        Caller::Mute => Client {
            answerable: Answerable::default(),
            ..testing::session(&person)
        },
    };
    let future = documents.prompt(params, &client);
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    let got = runtime.unwrap().block_on(future);
    match caller {
        Caller::Session(_) => assert!(
            person
                .asked()
                .iter()
                .all(|asked| asked["method"] == "elicitation/create")
        ),
        _ => assert!(person.asked().is_empty(), "nobody is to be asked"),
    }
    Ok(match got? {
        GetPromptResponse::Complete(result) => serde_json::to_value(result).unwrap(),
        GetPromptResponse::InputRequired(result) => serde_json::to_value(result).unwrap(),
        other => panic!("{other:?}"),
    })
}

#[test]
fn nothing_is_served_that_no_policy_names() {
    let bundle = notes();
    let documents = ServedDocuments::of([&bundle.content], &Policy::empty()).unwrap();
    assert!(documents.prompts().is_empty() && documents.resources().is_empty());
    assert!(documents.templates().is_empty());
    assert!(!documents.has(&bundle.uri("style.txt")) && !documents.has("style://notes"));
    let refused = documents.read("style://notes").unwrap_err();
    assert_eq!(refused.code, ErrorCode::RESOURCE_NOT_FOUND);
    let refused = get(&documents, json!({"name": "acme.notes.sum"}), &Caller::Mute).unwrap_err();
    assert_eq!(refused.code, ErrorCode::INVALID_PARAMS);
}

#[test]
fn a_name_of_its_own_is_used_only_where_policy_gives_it() {
    let bundle = notes();
    let plain = bundle.served("prompts = [\"*\"]\nresources = [\"*\"]");
    assert_eq!(names(&plain), ["acme.notes.read", "acme.notes.sum"]);
    assert_eq!(uris(&plain), [bundle.uri("p.png"), bundle.uri("style.txt")]);
    let template = format!("{}/{{number}}", bundle.uri("record.json"));
    assert_eq!(plain.templates()[0].uri_template, template);
    assert!(!plain.has("style://notes") && !plain.has("records://1/data"));
    let all = bundle.all();
    assert_eq!(names(&all), ["acme.notes.read", "sum"]);
    assert_eq!(
        uris(&all),
        ["style://notes".to_owned(), bundle.uri("p.png")]
    );
    assert_eq!(all.templates()[0].uri_template, "records://{number}/data");
}

#[test]
fn a_prompt_whose_file_is_not_served_is_not_served() {
    let documents = notes().served("prompts = [\"*\"]\nresources = [\"p.png\"]");
    assert_eq!(names(&documents), ["acme.notes.read"]);
}

#[test]
fn a_prompt_gives_its_messages_with_what_it_embeds() {
    let bundle = notes();
    let params = json!({"name": "sum", "arguments": {"topic": "{{tone}}", "tone": "dry"}});
    let result = get(&bundle.all(), params, &Caller::Mute).unwrap();
    let messages = &result["messages"];
    // A value is filled in once: its own placeholders are not replaced.
    assert_eq!(messages[0]["content"]["text"], json!("On {{tone}}, dry."));
    let embedded = &messages[1]["content"]["resource"];
    assert_eq!(embedded["uri"], json!("style://notes"));
    assert_eq!(embedded["text"], json!("Short."));
    assert_eq!(messages[2]["role"], json!("assistant"));
    assert_eq!(messages[2]["content"]["type"], json!("image"));
    assert_eq!(messages[2]["content"]["mimeType"], json!("image/png"));
    let publisher = &result["_meta"]["toolward/prompt"]["publisher"];
    assert_eq!(publisher, &json!(bundle.content.origin.publisher()));
}

#[test]
fn a_chosen_resource_is_of_the_same_bundle_and_one_that_is_served() {
    let documents = notes().all();
    let read = |uri: &str| {
        let params = json!({"name": "acme.notes.read", "arguments": {"uri": uri}});
        get(&documents, params, &Caller::Mute)
    };
    let given = read("records://7/data").unwrap();
    let embedded = &given["messages"][0]["content"]["resource"];
    assert_eq!(embedded["text"], json!("{\"number\":\"7\"}"));
    assert!(read("style://notes").is_ok());
    for other in ["file:///etc/passwd", "style://other", "resources/style.txt"] {
        let refused = read(other).unwrap_err();
        assert_eq!(refused.code, ErrorCode::INVALID_PARAMS, "{other}");
    }
    // A prompt can't use a resource of another bundle.
    let (one, two) = (
        notes(),
        bundle("acme.other", &[("resources/a.txt", "Other.")]),
    );
    let policy: String = [&one, &two]
        .map(|bundle| {
            let publisher = bundle.content.origin.publisher();
            format!(
                "[[document]]\npublisher = {publisher:?}\nprompts = [\"*\"]\nresources = [\"*\"]\n"
            )
        })
        .concat();
    let policy = Policy::from_toml(&policy).unwrap();
    let documents = ServedDocuments::of([&one.content, &two.content], &policy).unwrap();
    let listed = uris(&documents);
    let other = listed
        .iter()
        .find(|uri| uri.ends_with("acme.other/a.txt"))
        .unwrap();
    assert!(documents.read(other).is_ok());
    let params = json!({"name": "acme.notes.read", "arguments": {"uri": other}});
    assert!(get(&documents, params, &Caller::Mute).is_err());
}

#[test]
fn a_resource_gives_the_bytes_that_were_signed_as_text_or_base64() {
    let bundle = notes();
    let read = |uri: &str| serde_json::to_value(bundle.all().read(uri).unwrap()).unwrap();
    let text = read("style://notes");
    assert_eq!(text["contents"][0]["text"], json!("Short."));
    assert_eq!(text["contents"][0]["mimeType"], json!("text/plain"));
    let image = read(&bundle.uri("p.png"));
    assert_eq!(image["contents"][0]["blob"], json!("77+9UE5H"));
    let record = read("records://a%22b/data");
    assert_eq!(
        record["contents"][0]["text"],
        json!("{\"number\":\"a\\\"b\"}")
    );
    assert_eq!(record["contents"][0]["uri"], json!("records://a%22b/data"));
}

#[test]
fn arguments_that_a_prompt_does_not_take_are_refused() {
    let documents = notes().all();
    for arguments in [
        json!({"topic": "x", "other": "y"}),
        json!({"topic": 1}),
        json!({"topic": "x".repeat(16 * 1024 + 1)}),
    ] {
        let params = json!({"name": "sum", "arguments": arguments});
        let refused = get(&documents, params, &Caller::Mute).unwrap_err();
        assert_eq!(refused.code, ErrorCode::INVALID_PARAMS);
    }
}

#[test]
fn a_client_without_sessions_is_told_what_is_missing_and_calls_again() {
    let documents = notes().all();
    let stateless = Caller::Stateless;
    let asked = get(&documents, json!({"name": "sum"}), &stateless).unwrap();
    assert_eq!(asked["resultType"], json!("input_required"));
    assert_eq!(asked.get("requestState"), None);
    let request = &asked["inputRequests"]["arguments"];
    assert_eq!(request["method"], json!("elicitation/create"));
    let schema = &request["params"]["requestedSchema"];
    assert_eq!(schema["required"], json!(["topic"]));
    assert_eq!(schema["properties"].as_object().unwrap().len(), 1);
    assert!(
        request["params"]["message"]
            .as_str()
            .unwrap()
            .contains("by dev:")
    );

    let again = |responses: Value| {
        let params =
            json!({"name": "sum", "arguments": {"tone": "dry"}, "inputResponses": responses});
        get(&documents, params, &stateless)
    };
    let answer = json!({"action": "accept", "content": {"topic": "ideas", "tone": "other"}});
    let given = again(json!({"arguments": answer})).unwrap();
    // Only the requested arguments are taken from an answer.
    assert_eq!(
        given["messages"][0]["content"]["text"],
        json!("On ideas, dry.")
    );
    let asked = again(json!({"wrong": answer})).unwrap();
    assert_eq!(asked["resultType"], json!("input_required"));
    for answer in [
        json!({"action": "decline"}),
        json!({"action": "accept", "content": {"topic": 1}}),
        json!("yes"),
    ] {
        let refused = again(json!({"arguments": answer})).unwrap_err();
        assert_eq!(refused.code, ErrorCode::INVALID_PARAMS, "{answer}");
    }
}

#[test]
fn in_a_session_the_person_is_asked_while_the_request_waits() {
    let documents = notes().all();
    let ask = |answer: Value| get(&documents, json!({"name": "sum"}), &Caller::Session(answer));
    let given = ask(json!({"action": "accept", "content": {"topic": "ideas"}})).unwrap();
    assert_eq!(
        given["messages"][0]["content"]["text"],
        json!("On ideas, .")
    );
    for answer in [
        json!({"action": "cancel"}),
        json!({"action": "accept", "content": {}}),
        json!({"action": "accept", "content": {"topic": ""}}),
    ] {
        assert!(ask(answer).is_err());
    }
    let refused = get(&documents, json!({"name": "sum"}), &Caller::Mute).unwrap_err();
    assert_eq!(refused.data.unwrap()["missing"], json!(["topic"]));
}

#[test]
fn completion_offers_the_authors_values_and_the_bundles_resources() {
    let documents = notes().all();
    let complete = |reference: Reference, name: &str, typed: &str| {
        let argument: ArgumentInfo =
            serde_json::from_value(json!({"name": name, "value": typed})).unwrap();
        let found = documents.complete(&CompleteRequestParams::new(reference, argument));
        found.map(|result| result.completion.values)
    };
    let prompt = Reference::for_prompt;
    assert_eq!(
        complete(prompt("sum"), "topic", "ME").unwrap(),
        ["meetings"]
    );
    assert!(complete(prompt("sum"), "tone", "").unwrap().is_empty());
    assert_eq!(
        complete(prompt("acme.notes.read"), "uri", "style").unwrap()[0],
        "style://notes"
    );
    let template = Reference::for_resource("records://{number}/data");
    assert_eq!(complete(template, "number", "1").unwrap(), ["1", "12"]);
    for (reference, name) in [
        (prompt("sum"), "other"),
        (prompt("acme.notes.sum"), "topic"),
    ] {
        let refused = complete(reference, name, "").unwrap_err();
        assert_eq!(refused.code, ErrorCode::INVALID_PARAMS);
    }
}

#[test]
fn a_principal_sees_the_documents_of_bundles_that_it_may_use() {
    let documents = notes().all();
    let seen = |tools: &[&str]| {
        let tools: Vec<String> = tools.iter().map(|tool| (*tool).to_owned()).collect();
        documents.seen_by(&principal(Tools::Only(tools.into())))
    };
    for none in [&[][..], &["acme.other"], &["acme.note"]] {
        let seen = seen(none);
        assert!(seen.prompts().is_empty() && seen.resources().is_empty());
        assert!(!seen.has("style://notes") && !seen.has("records://1/data"));
    }
    assert_eq!(names(&seen(&["acme.notes"])).len(), 2);
    assert_eq!(names(&documents.seen_by(&principal(Tools::All))).len(), 2);
}

#[test]
fn documents_that_would_go_by_one_name_are_not_served_together() {
    let clash = |one: &[(&str, &str)], two: &[(&str, &str)], more: &str| {
        let (one, two) = (bundle("acme.one", one), bundle("acme.two", two));
        let policy: String = [&one, &two]
            .map(|bundle| {
                let publisher = bundle.content.origin.publisher();
                format!("[[document]]\npublisher = {publisher:?}\nprompts = [\"*\"]\nresources = [\"*\"]\n{more}\n")
            })
            .concat();
        let policy = Policy::from_toml(&policy).unwrap();
        ServedDocuments::of([&one.content, &two.content], &policy)
    };
    let kind = |refused: Result<ServedDocuments, DocumentsError>| match refused {
        Err(DocumentsError::Clash { kind, .. }) => kind,
        Ok(_) => "none",
    };
    let prompt = |id: &str| {
        format!(
            "---\nid: {id}\nname: P\ndescription: P.\nmetadata: {{ mcp: {{ name: same }} }}\n---\nP.\n"
        )
    };
    let (first, second) = (prompt("acme.one.p"), prompt("acme.two.p"));
    fn files(text: &str) -> [(&str, &str); 1] {
        [("prompts/p.md", text)]
    }
    assert_eq!(
        kind(clash(&files(&first), &files(&second), "names = [\"same\"]")),
        "prompt"
    );
    assert_eq!(kind(clash(&files(&first), &files(&second), "")), "none");
    assert_eq!(kind(clash(&files(&first), &files(&first), "")), "prompt");
    let template = [
        ("resources/r.txt", "{{number}}"),
        ("resources/r.txt.resource.md", TEMPLATE),
    ];
    let own = "---\nname: R\ndescription: R.\nuri: records://1/data\n---\n";
    let plain = [
        ("resources/r.txt", "R"),
        ("resources/r.txt.resource.md", own),
    ];
    let uris = "uris = [\"records://{number}/data\", \"records://1/data\"]";
    assert_eq!(kind(clash(&template, &plain, uris)), "resource");
    assert_eq!(kind(clash(&template, &plain, "")), "none");
    assert_eq!(kind(clash(&plain, &plain, uris)), "resource");
    assert_eq!(kind(clash(&template, &template, uris)), "template");
}

#[test]
fn a_changed_file_has_another_digest_and_a_template_has_that_of_its_file() {
    let bundle = notes();
    let before = bundle.all();
    write(bundle.directory.path(), "resources/style.txt", b"Long.");
    let content = Content::from_dev(bundle.directory.path()).unwrap();
    let after = Bundle {
        directory: bundle.directory,
        content,
    }
    .all();
    assert_ne!(
        before.digest("style://notes"),
        after.digest("style://notes")
    );
    assert_eq!(
        before.digest("records://1/data"),
        after.digest("records://2/data")
    );
    assert!(after.digest("records://1/data").is_some());
}

#[test]
fn text_of_publishers_is_made_visible_and_what_callers_give_stays() {
    let hidden = "---\nid: acme.hid\nname: \"Hid\u{200b}den\"\ndescription: \"Says\u{200b} it.\"\narguments: [{ name: a }]\n---\nA\u{200b}b {{a}}\n";
    let documents = bundle("acme.one", &[("prompts/p.md", hidden)]).served("prompts = [\"*\"]");
    let listed = &documents.prompts()[0];
    assert_eq!(listed.title.as_deref(), Some("Hid\\u{200b}den"));
    let description = listed.description.as_deref().unwrap();
    assert!(description.starts_with("[dev:") && description.ends_with("] Says\\u{200b} it."));
    let params = json!({"name": "acme.hid", "arguments": {"a": "\u{200b}"}});
    let result = get(&documents, params, &Caller::Mute).unwrap();
    assert_eq!(
        result["messages"][0]["content"]["text"],
        json!("A\\u{200b}b \u{200b}")
    );
}
