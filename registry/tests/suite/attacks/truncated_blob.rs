//! A registry that serves fewer bytes than the manifest states, or another part than requested.

use crate::attacks::{held, lying};
use crate::sample::client;
use crate::scripted::{Say, ok, pull_code, range};

#[tokio::test]
async fn a_truncated_blob_is_refused_whichever_way_it_ends() {
    let held = held();
    let path = held.content_path();
    let short = held.content[..1000].to_vec();
    for say in [ok(short.clone()), Say::Pieces(short)] {
        let path = path.clone();
        let server = lying(&held, move |asked| {
            asked.is("GET", &path).then(|| say.clone())
        });
        assert_eq!(
            pull_code(&client(), &server).await.unwrap_err(),
            "blob-truncated"
        );
    }
}

#[tokio::test]
async fn a_wrong_part_of_a_blob_is_refused() {
    let held = held();
    let path = held.content_path();
    let (size, content) = (held.content.len(), held.content.clone());
    let server = lying(&held, move |asked| {
        if !asked.is("GET", &path) {
            return None;
        }
        Some(match asked.from() {
            None => Say::Cut(200, vec![], size, content[..50_000].to_vec()),
            // A part that starts one byte before the requested position.
            Some(from) => Say::Answer(
                206,
                vec![range(from - 1, size)],
                content[from - 1..].to_vec(),
            ),
        })
    });
    let code = pull_code(&client(), &server).await.unwrap_err();
    assert_eq!(code, "registry-response-invalid");
}
