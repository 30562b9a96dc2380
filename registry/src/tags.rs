//! The tags of a repository, page by page, as many as are allowed.

use reqwest::StatusCode;
use reqwest::header::{HeaderMap, LINK};
use serde::Deserialize;
use serde_json::Value;
use url::Url;

use crate::address::{below, origin, shown};
use crate::client::Client;
use crate::failure::{Failure, Reason};
use crate::reference::Reference;
use crate::response::{read, unexpected};
use crate::transport::{Ask, Scope};

/// How many tags are asked for at once.
const PAGE_TAGS: usize = 1000;

#[derive(Deserialize)]
struct Page {
    // A repository whose tags were all deleted has `null`.
    tags: Option<Vec<Value>>,
}

impl Client {
    /// The tags of a repository, sorted. Entries that are not tags are left out.
    ///
    /// # Errors
    /// [`Reason::NotFound`]; [`Reason::ResponseTooLarge`] if there are more than the limit;
    /// [`Reason::ResponseInvalid`] if the answer is not a list; the reason for which it failed.
    pub async fn tags(&self, reference: &Reference) -> Result<Vec<String>, Failure> {
        let deadline = self.transport.deadline();
        let path = format!("v2/{}/tags/list?n={PAGE_TAGS}", reference.repository());
        let first = below(&self.base(reference)?, &path)?;
        let place = shown(&first);
        let limit = self.transport.limits.tags;
        let work = async {
            let mut tags = Vec::new();
            let mut entries = 0_usize;
            let mut next = Some(first);
            // A page without tags would let a registry go on for ever.
            let mut pages = limit / PAGE_TAGS + 8;
            while let Some(url) = next {
                pages = pages.saturating_sub(1);
                let ask = Ask::get(url, Scope::pull(reference));
                let response = self.transport.send(&ask, deadline).await?;
                if response.status() != StatusCode::OK {
                    return Err(unexpected(response).await);
                }
                next = next_page(&ask.url, response.headers())?;
                let body = read(response, self.transport.limits.manifest).await?;
                let page: Page = serde_json::from_slice(&body).map_err(|_| {
                    Failure::new(Reason::ResponseInvalid)
                        .at(place.clone())
                        .expected("a JSON object with `tags`")
                })?;
                let page = page.tags.unwrap_or_default();
                entries = entries.saturating_add(page.len());
                tags.extend(page.into_iter().filter_map(|tag| match tag {
                    // No address is made of anything else.
                    Value::String(tag) if reference.with_tag(&tag).is_ok() => Some(tag),
                    _ => None,
                }));
                if entries > limit || pages == 0 {
                    return Err(Failure::new(Reason::ResponseTooLarge)
                        .at(place.clone())
                        .expected(format!("at most {limit} tags")));
                }
            }
            tags.sort();
            tags.dedup();
            Ok(tags)
        };
        deadline.within(&place, work).await
    }
}

/// The page that `Link` leads to, which is one of the same list.
pub(crate) fn next_page(from: &Url, headers: &HeaderMap) -> Result<Option<Url>, Failure> {
    let Some(link) = headers.get(LINK) else {
        return Ok(None);
    };
    let refuse = || {
        Failure::new(Reason::ResponseInvalid)
            .at(shown(from))
            .expected("`Link` to the next page of the same list")
    };
    let link = link.to_str().map_err(|_| refuse())?;
    let (target, parameters) = link
        .strip_prefix('<')
        .and_then(|link| link.split_once('>'))
        .ok_or_else(refuse)?;
    if !parameters.replace('"', "").contains("rel=next") {
        return Ok(None);
    }
    let to = from.join(target).map_err(|_| refuse())?;
    if origin(&to) == origin(from) && to.path() == from.path() {
        return Ok(Some(to));
    }
    Err(refuse().found(shown(&to)))
}
