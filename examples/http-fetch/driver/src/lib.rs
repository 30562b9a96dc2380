//! `http.fetch`: a page of the web as text.

mod charset;
mod page;
mod reference;

use std::time::Duration;

use serde::{Deserialize, Serialize};
use toolward_guest::http::{Request, Response};
use toolward_guest::{Call, Error, driver, progress};

use page::{Link, Page};

/// Redirects that are followed, each with a request that the host decides on anew.
const MAX_REDIRECTS: usize = 5;

/// Bytes of a page that are read.
const MAX_BYTES: usize = 4 << 20;

/// Links that are returned.
const MAX_LINKS: usize = 500;

#[derive(Deserialize)]
struct Input {
    url: String,
    #[serde(default)]
    raw: bool,
    #[serde(default)]
    links: bool,
    #[serde(default = "default_characters")]
    max_characters: usize,
}

fn default_characters() -> usize {
    50_000
}

#[derive(Serialize)]
struct Output {
    url: String,
    content_type: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    text: String,
    truncated: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    links: Option<Vec<Link>>,
}

fn fetch(call: Call<Input>) -> Result<Output, Error> {
    let input = call.input;
    let (url, response) = follow(&input.url)?;
    let response = response.success()?;
    let content_type = response
        .header("content-type")
        .unwrap_or("text/html")
        .to_owned();
    if !is_text(&content_type) {
        return Err(Error::new(
            "http:not_text",
            format!("expected text at {url}, found {content_type}"),
        ));
    }
    let mut truncated = response.is_truncated();
    let source = charset::decode(response.bytes(), &content_type)?;

    let page = if content_type.contains("html") && !input.raw {
        Page::read(&source, &url)
    } else {
        Page::plain(source)
    };
    let mut text = page.text;
    if let Some((end, _)) = text.char_indices().nth(input.max_characters) {
        text.truncate(end);
        truncated = true;
    }
    let mut links = page.links;
    links.truncate(MAX_LINKS);
    Ok(Output {
        url,
        content_type,
        title: page.title,
        text,
        truncated,
        links: input.links.then_some(links),
    })
}

/// The answer at the end of the redirects, and where that was.
fn follow(start: &str) -> Result<(String, Response), Error> {
    let mut url = start.to_owned();
    for hop in 0..=MAX_REDIRECTS {
        progress::report_with(hop as f64, None, format!("GET {url}"));
        let response = Request::get(&url)
            .header("accept", "text/html, text/plain, */*;q=0.5")
            .header("user-agent", "toolward-http-fetch/1")
            .timeout(Duration::from_secs(20))
            .truncate(MAX_BYTES)
            .send()?;
        let redirects = matches!(response.status(), 301 | 302 | 303 | 307 | 308);
        match response.header("location") {
            Some(location) if redirects => {
                let next = reference::resolve(&url, location);
                let next = next.split('#').next().unwrap_or_default();
                url = next.to_owned();
            }
            _ => return Ok((url, response)),
        }
    }
    Err(Error::new(
        "http:too_many_redirects",
        format!("{start} leads to more than {MAX_REDIRECTS} redirects"),
    ))
}

fn is_text(content_type: &str) -> bool {
    let kind = content_type
        .split(';')
        .next()
        .unwrap_or_default()
        .trim()
        .to_ascii_lowercase();
    kind.starts_with("text/")
        || kind.ends_with("+json")
        || kind.ends_with("+xml")
        || [
            "application/json",
            "application/xml",
            "application/javascript",
        ]
        .contains(&kind.as_str())
}

driver! { "http.fetch" => fetch }

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use toolward_guest::testing::{Grants, invoke};

    use super::*;

    fn server(answer: fn(&str) -> Response) -> Grants {
        Grants::new().http(move |request| Ok(answer(request.url())))
    }

    fn html(body: &str) -> Response {
        Response::new(200)
            .with_header("content-type", "text/html; charset=utf-8")
            .body(body)
    }

    fn run(grants: &Grants, input: Value) -> Result<Value, Error> {
        grants
            .during(|| invoke(fetch, input))
            .map(|reply| reply.into_structured())
    }

    #[test]
    fn a_page_comes_back_as_its_title_and_text() {
        let grants = server(|_| {
            html("<title>T</title><h1>Head</h1><p>One <b>two</b>.</p><a href=b>more</a>")
        });
        let input = json!({"url": "https://a.example/x/", "links": true});
        let output = run(&grants, input).unwrap();
        assert_eq!(output["title"], "T");
        assert_eq!(output["text"], "# Head\n\nOne two.\n\nmore");
        assert_eq!(
            output["links"],
            json!([{"text": "more", "url": "https://a.example/x/b"}])
        );
        assert_eq!(output["truncated"], false);
    }

    #[test]
    fn redirects_are_requests_of_their_own() {
        let grants = server(|url| match url {
            "https://a.example/" => Response::new(301).with_header("location", "/b#top"),
            "https://a.example/b" => {
                Response::new(302).with_header("location", "https://c.example/")
            }
            "https://c.example/" => html("<p>Here"),
            other => panic!("asked for {other}"),
        });
        let output = run(&grants, json!({"url": "https://a.example/"})).unwrap();
        assert_eq!(output["url"], "https://c.example/");
        assert_eq!(output["text"], "Here");
    }

    #[test]
    fn redirects_without_end_are_an_error() {
        let grants = server(|_| Response::new(302).with_header("location", "/"));
        let error = run(&grants, json!({"url": "https://a.example/"})).unwrap_err();
        assert_eq!(error.code(), "http:too_many_redirects");
    }

    #[test]
    fn json_and_source_come_back_as_they_are() {
        let grants = server(|_| {
            Response::new(200)
                .with_header("content-type", "application/json")
                .body("{\"a\": 1}")
        });
        let output = run(&grants, json!({"url": "https://a.example/"})).unwrap();
        assert_eq!(output["text"], "{\"a\": 1}");

        let grants = server(|_| html("<p>a"));
        let input = json!({"url": "https://a.example/", "raw": true});
        assert_eq!(run(&grants, input).unwrap()["text"], "<p>a");
    }

    #[test]
    fn long_texts_are_cut_between_characters() {
        let grants = server(|_| html("<p>ééééé"));
        let input = json!({"url": "https://a.example/", "max_characters": 3});
        let output = run(&grants, input).unwrap();
        assert_eq!(output["text"], "ééé");
        assert_eq!(output["truncated"], true);
    }

    #[test]
    fn what_is_no_text_and_what_failed_is_an_error() {
        let grants = server(|_| Response::new(200).with_header("content-type", "image/png"));
        let error = run(&grants, json!({"url": "https://a.example/"})).unwrap_err();
        assert_eq!(error.code(), "http:not_text");

        let grants = server(|_| Response::new(503).with_header("retry-after", "1"));
        let error = run(&grants, json!({"url": "https://a.example/"})).unwrap_err();
        assert_eq!(error.code(), "upstream_error");
        assert!(error.is_retryable());
    }

    #[test]
    fn a_host_that_is_not_granted_is_no_answer() {
        let error = invoke(fetch, json!({"url": "https://a.example/"})).unwrap_err();
        assert_eq!(error.code(), "unauthorised");
    }
}
