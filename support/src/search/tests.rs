use super::*;

fn document<'a>(name: &'a str, title: &'a str, description: &'a str) -> SearchDocument<'a> {
    SearchDocument {
        name,
        id: name,
        title,
        description,
        ..SearchDocument::default()
    }
}

fn some() -> SearchIndex {
    SearchIndex::build([
        document(
            "text.stats",
            "Text statistics",
            "Counts the words and lines of a text.",
        ),
        document(
            "files.search",
            "Search files",
            "Finds files whose lines have some words.",
        ),
        document(
            "mail.send",
            "Send mail",
            "Sends a message to somebody by e-mail.",
        ),
        document("image.resize", "Resize images", "Makes pictures smaller."),
        document(
            "notes.append",
            "Append to notes",
            "Adds a line to a file of notes.",
        ),
    ])
}

fn found(index: &SearchIndex, query: &str) -> Vec<usize> {
    let hits = index.search_among(query, |_| true);
    hits.into_iter().map(|hit| hit.position).collect()
}

#[test]
fn a_name_says_more_than_a_description() {
    let index = some();
    assert_eq!(found(&index, "search"), [1]);
    assert_eq!(found(&index, "files")[0], 1);
    assert_eq!(found(&index, "text")[0], 0);
}

#[test]
fn a_tool_that_fits_all_words_comes_first() {
    let index = some();
    assert_eq!(found(&index, "send a message by mail")[0], 2);
    assert_eq!(found(&index, "append line")[0], 4);
}

#[test]
fn endings_beginnings_and_slips_are_understood() {
    let index = some();
    assert_eq!(found(&index, "sending mails"), [2]);
    assert_eq!(found(&index, "resizing"), [3]);
    assert_eq!(found(&index, "statis"), [0]);
    assert_eq!(found(&index, "serach"), [1]);
    assert_eq!(found(&index, "imagee"), [3]);
}

#[test]
fn one_slip_is_one_character() {
    for word in ["serach", "seerch", "searrch", "sarch", "searchx", "searc"] {
        assert!(is_slip("search", word), "{word}");
    }
    for word in ["search", "saerhc", "sea", "searching", "seerhc", "sear"] {
        assert!(!is_slip("search", word), "{word}");
    }
    assert!(is_slip("größer", "großer"));
}

#[test]
fn the_whole_name_comes_before_all_that_fits() {
    let index = SearchIndex::build([
        document("send", "Post", "Puts it into a box."),
        document("send.send.send", "Send send send", "Send send send."),
    ]);
    let hits = index.search_among("Send", |_| true);
    assert_eq!(hits[0].position, 0);
    assert!(hits[0].exact && !hits[1].exact);
}

#[test]
fn a_tool_is_found_by_its_former_name_and_by_its_hint() {
    let aliases = ["text.count".to_owned()];
    let index = SearchIndex::build([SearchDocument {
        name: "stats",
        id: "text.stats",
        aliases: &aliases,
        hint: "readability grade",
        ..SearchDocument::default()
    }]);
    assert!(index.search_among("TEXT.count", |_| true)[0].exact);
    assert!(index.search_among("text.stats", |_| true)[0].exact);
    assert_eq!(found(&index, "readability"), [0]);
}

#[test]
fn repeating_a_word_gets_a_publisher_nowhere() {
    let stuffed = "weather ".repeat(200);
    let index = SearchIndex::build([
        document("evil.tool", "Tool", &stuffed),
        document("weather.now", "Weather", "Tells the weather of a place."),
    ]);
    assert_eq!(found(&index, "weather")[0], 1);
}

#[test]
fn what_fits_nothing_finds_nothing() {
    let index = some();
    for query in ["", "   ", "zzqx", "!?", "\u{202e}"] {
        assert_eq!(found(&index, query), [0usize; 0], "{query:?}");
    }
    assert_eq!(found(&SearchIndex::default(), "search"), [0usize; 0]);
}

#[test]
fn tools_that_fit_equally_come_in_their_order_and_as_many_as_wanted() {
    let names: Vec<String> = (0..20).map(|number| format!("a.tool{number:02}")).collect();
    let index = SearchIndex::build(names.iter().map(|name| document(name, "Same", "Same.")));
    let first: Vec<usize> = index
        .search_among("same", |_| true)
        .iter()
        .take(3)
        .map(|hit| hit.position)
        .collect();
    assert_eq!(first, [0, 1, 2]);
    let odd = index.search_among("same", |place| place % 2 == 1);
    assert_eq!(odd.len(), 10);
    assert_eq!(odd[0].position, 1);
}

#[test]
fn a_query_of_any_length_is_answered() {
    let index = some();
    let long = "search ".repeat(100_000);
    assert_eq!(found(&index, &long), [1]);
    assert_eq!(found(&index, &"x".repeat(1 << 20)), [0usize; 0]);
    assert_eq!(found(&index, &"é🦀".repeat(1000)), [0usize; 0]);
}

#[test]
fn names_are_taken_apart_where_people_would() {
    assert_eq!(words("text.fileSearch_v2"), ["text", "fil", "search", "v2"]);
    assert_eq!(words("HTTP-Fetch"), ["http", "fetch"]);
}

#[test]
fn forms_of_one_word_are_one_word() {
    for forms in [
        ["file", "files", "File"],
        ["translate", "translating", "translated"],
        ["search", "searches", "searching"],
        ["image", "images", "Images"],
    ] {
        let stems: Vec<_> = forms.iter().map(|form| words(form)).collect();
        assert!(stems.windows(2).all(|pair| pair[0] == pair[1]), "{stems:?}");
    }
    assert_eq!(words("status class string"), ["status", "class", "string"]);
}

#[test]
fn scripts_without_spaces_are_found_by_parts() {
    let text = words("天气预报");
    assert!(words("天气").iter().all(|word| text.contains(word)));
}

#[test]
fn a_word_longer_than_any_is_none() {
    assert_eq!(words(&"x".repeat(41)), [""; 0]);
}
