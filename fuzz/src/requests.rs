//! Declarative requests: whatever the input, a request keeps the structure that its driver wrote.

use serde_json::{Value, json};
use toolward_contract::driver::{Driver, HeaderPiece, HttpCall};
use toolward_contract::json::{self, Limits};
use url::Url;

const BODY: usize = 1 << 16;

/// A request, in four lines: endpoint, value of a header, body template and input, the last two as
/// JSON.
pub fn http_render(data: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(data) else {
        return false;
    };
    let mut lines = text.splitn(4, '\n');
    let mut line = || lines.next().unwrap_or_default();
    let (endpoint, header, body, input) = (line(), line(), line(), line());
    let value = |text: &str| json::parse(text.as_bytes(), &Limits::default()).unwrap_or_default();
    let mut request = json!({
        "endpoint": endpoint, "method": "POST", "headers": { "x-a": header }, "body_template": value(body),
    });
    // A secret is the whole value of a parameter, or in a header.
    if !header.contains("${secret") {
        request["query_template"] = json!({ "a b": header, "key": "${secrets.key}" });
    }
    let document = json!({
        "name": "Sample", "id": "sample-driver", "description": "Any.", "version": "1.0.0", "kind": "http",
        "base_url": "https://a.example:8443/base/", "network": { "egress": ["a.example:8443", "b.example"] },
        "implements": [{ "tool": "sample.tool", "version": "1.x", "metadata": { "http": request } }],
    });
    let Some(driver) = Driver::parse("DRIVER.md", &format!("---\n{document}\n---\n")).value else {
        return false;
    };
    let mut taken = false;
    for call in driver
        .implements
        .iter()
        .filter_map(|entry| entry.http.as_ref())
    {
        taken |= rendered(&driver, call, &value(input));
        hostile(&driver, call);
    }
    taken
}

/// A driver's request with inputs that are made to break it.
pub(crate) fn hostile(driver: &Driver, call: &HttpCall) {
    let values = [
        json!(".."),
        json!(""),
        json!("//evil.example/"),
        json!("\\\\evil.example\\"),
        json!("a\r\nhost: evil.example"),
        json!("?x=1&y=2#z"),
        json!("@evil.example:1"),
        json!("%2e%2e%2f"),
        json!("\u{0}\u{85}é"),
        json!(1),
        json!([1]),
        json!(null),
    ];
    for value in values {
        let names = call.inputs().into_iter();
        let input: serde_json::Map<String, Value> =
            names.map(|name| (name.to_owned(), value.clone())).collect();
        rendered(driver, call, &Value::Object(input));
    }
    rendered(driver, call, &json!({}));
}

/// Whether there is a request for the input.
fn rendered(driver: &Driver, call: &HttpCall, input: &Value) -> bool {
    let origin = driver.origin().expect("a declarative driver has an origin");
    let Ok(request) = call.render(input, BODY) else {
        return false;
    };
    let target = &request.path_and_query;
    assert!(
        target.starts_with('/') && !target.starts_with("//"),
        "{target}"
    );
    assert!(
        target
            .bytes()
            .all(|byte| byte.is_ascii_graphic() && byte != b'#'),
        "{target}"
    );
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    assert_eq!(
        path.split('/').count(),
        call.endpoint.segments.len() + 1,
        "{path}"
    );
    let parameters = query.split('&').filter(|pair| !pair.is_empty()).count();
    let secrets = request.query_secrets.len();
    assert!(parameters + secrets <= call.endpoint.query.len(), "{query}");
    for (name, slug) in &request.query_secrets {
        assert!(call.secrets().contains(slug.as_str()) && !name.contains(['&', '=', '#']));
    }

    // The WHATWG's parser is the most lenient reader of URLs that there is. It knows fewer hosts.
    let bare = Url::parse(&format!("https://{origin}/"));
    if let Ok(bare) = bare {
        let url = Url::parse(&format!("https://{origin}{target}")).expect("a URL");
        assert_eq!((url.host_str(), url.port()), (bare.host_str(), bare.port()));
        assert_eq!(
            (url.username(), url.password(), url.fragment()),
            ("", None, None)
        );
        let segments = url.path_segments().expect("a path").count();
        assert_eq!(segments, call.endpoint.segments.len(), "{url}");
    }
    let uri: http::Uri = format!("https://a.example{target}").parse().expect("a URI");
    assert_eq!(
        uri.authority().map(http::uri::Authority::as_str),
        Some("a.example")
    );

    let mut names = Vec::new();
    for (name, pieces) in &request.headers {
        assert!(!names.contains(&name), "{name} twice");
        names.push(name);
        let name = http::HeaderName::from_bytes(name.as_bytes()).expect("a header name");
        assert!(!toolward_egress::headers::is_forbidden(&name), "{name}");
        for piece in pieces {
            match piece {
                HeaderPiece::Text(text) => {
                    assert!(
                        text.bytes().all(|byte| matches!(byte, b' '..=b'~')),
                        "{text:?}"
                    );
                }
                HeaderPiece::Secret(slug) => assert!(call.secrets().contains(slug.as_str())),
            }
        }
    }
    if let Some(body) = &request.body {
        assert!(!request.method.is_safe() && body.len() <= BODY);
        let limits = Limits {
            depth: 127,
            ..Limits::default()
        };
        json::parse(body, &limits).expect("a body is JSON");
    }
    true
}
