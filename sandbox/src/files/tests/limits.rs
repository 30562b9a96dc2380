//! Nothing is written, created, opened or read beyond a limit.

use toolward_policy::LimitName;

use super::*;

#[tokio::test]
async fn every_way_a_file_grows_counts_before_it_does() {
    // Each operation moves the end of a file one byte beyond the limit.
    for way in ["write", "hole", "size", "stream", "append"] {
        let mut guest = Guest::new(&[("/w", true)]);
        guest
            .write("sub/first", &"x".repeat(900))
            .await
            .expect("fits");
        let file = guest
            .open("sub/more", OpenFlags::CREATE, DescriptorFlags::WRITE)
            .await
            .expect("opens");
        let mut view = guest.view();
        let grown = match way {
            "write" => view.write(file, vec![0; 101], 0).await.map(|_| ()),
            "hole" => view.write(file, vec![0; 1], 100).await.map(|_| ()),
            "size" => view.set_size(file, 101).await,
            "stream" => {
                let stream = view.write_via_stream(file, 100).expect("a stream");
                write_stream(&mut guest.table, &stream, 1).await
            }
            _ => {
                let stream = view.append_via_stream(file).expect("a stream");
                write_stream(&mut guest.table, &stream, 101).await
            }
        };
        assert_eq!(limit(grown), LimitName::WorkspaceBytes, "{way}");
        let length = guest.host("w/sub/more").metadata().expect("stat").len();
        assert_eq!(length, 0, "{way}");
    }
}

async fn write_stream(
    table: &mut ResourceTable,
    stream: &Resource<wasmtime_wasi::p2::DynOutputStream>,
    length: usize,
) -> FsResult<()> {
    let stream = table.get_mut(stream).expect("there");
    match stream
        .blocking_write_and_flush(vec![b'y'; length].into())
        .await
    {
        Ok(()) => Ok(()),
        Err(StreamError::Trap(error)) => Err(FsError::trap(error)),
        Err(error) => panic!("{error}"),
    }
}

#[tokio::test]
async fn exactly_the_limit_can_be_written_and_overwritten() {
    let mut guest = Guest::new(&[("/w", true)]);
    for _ in 0..3 {
        guest.write("x", &"x".repeat(1000)).await.expect("fits");
    }
    assert_eq!(guest.content("w/x").len(), 1000);
}

#[tokio::test]
async fn removing_and_truncating_give_nothing_back() {
    let mut guest = Guest::new(&[("/w", true)]);
    guest.write("x", &"x".repeat(600)).await.expect("fits");
    let file = guest
        .open("x", OpenFlags::TRUNCATE, DescriptorFlags::WRITE)
        .await
        .expect("opens");
    let grown = guest.view().write(file, vec![0; 600], 0).await;
    assert_eq!(limit(grown), LimitName::WorkspaceBytes);
}

#[tokio::test]
async fn a_workspace_with_a_cap_has_a_budget_of_its_own() {
    let caps = (Some(10), Some(1));
    let mut guest = Guest::with(&[("/w", true)], &LIMITS, OnViolation::Record, caps);
    guest.write("x", "0123456789").await.expect("fits");
    assert_eq!(
        limit(guest.write("x", "0123456789a").await),
        LimitName::WorkspaceBytes
    );
    assert_eq!(limit(guest.write("y", "").await), LimitName::WorkspaceFiles);
    assert!(!guest.host("w/y").exists());
}

#[tokio::test]
async fn files_and_directories_that_are_made_are_counted() {
    let mut guest = Guest::new(&[("/w", true)]);
    for n in 0..4 {
        guest.write(&format!("f{n}"), "").await.expect("fits");
    }
    // Opening an existing file creates nothing, and neither does a failed creation.
    guest.write("f0", "").await.expect("is there");
    let root = guest.root();
    let again = guest
        .view()
        .create_directory_at(root, "sub".to_owned())
        .await;
    assert_eq!(again.map_err(code), Err(ErrorCode::Exist));
    let root = guest.root();
    guest
        .view()
        .create_directory_at(root, "d".to_owned())
        .await
        .expect("fits");
    let root = guest.root();
    let more = guest.view().create_directory_at(root, "e".to_owned()).await;
    assert_eq!(limit(more), LimitName::WorkspaceFiles);
    assert_eq!(
        limit(guest.write("f9", "").await),
        LimitName::WorkspaceFiles
    );
    assert!(!guest.host("w/e").exists() && !guest.host("w/f9").exists());
}

#[tokio::test]
async fn open_files_and_streams_are_counted_until_they_are_gone() {
    let mut guest = Guest::new(&[("/w", false)]);
    let file = guest.open("a.txt", none(), READ).await.expect("opens");
    let rep = file.rep();
    let stream = |guest: &mut Guest| {
        let file = Handle::new_borrow(rep);
        guest.view().read_via_stream(file, 0)
    };
    let first = stream(&mut guest).expect("a stream");
    for _ in 0..6 {
        stream(&mut guest).expect("a stream");
    }
    assert_eq!(limit(stream(&mut guest)), LimitName::OpenFiles);
    assert_eq!(
        limit(guest.open("a.txt", none(), READ).await),
        LimitName::OpenFiles
    );
    guest.table.delete(first).expect("was there");
    // The file stays open as long as a stream reads it.
    types::HostDescriptor::drop(&mut guest.view(), file).expect("was there");
    guest.open("a.txt", none(), READ).await.expect("opens");
    assert_eq!(
        limit(guest.open("a.txt", none(), READ).await),
        LimitName::OpenFiles
    );
    guest.table = ResourceTable::new();
    for _ in 0..8 {
        guest.open("a.txt", none(), READ).await.expect("opens");
    }
}

#[tokio::test]
async fn entries_are_counted_shown_or_not() {
    let mut guest = Guest::new(&[("/w/*.md", false)]);
    for n in 0..60 {
        std::fs::write(guest.host(&format!("w/{n}.txt")), "").expect("written");
    }
    assert_eq!(limit(guest.list(".").await), LimitName::DirectoryEntries);
}

#[tokio::test]
async fn a_limit_that_a_stream_came_to_is_known_though_nobody_asked_for_it() {
    let mut guest = Guest::new(&[("/w", true)]);
    let file = guest
        .open("x", OpenFlags::CREATE, DescriptorFlags::WRITE)
        .await
        .expect("opens");
    let mut view = guest.view();
    let stream = view.write_via_stream(file, 0).expect("a stream");
    let mut stream = view.table.delete(stream).expect("there");
    stream.write(vec![0; 1001].into()).expect("accepted");
    stream.cancel().await;
    assert_eq!(guest.content("w/x"), "");
    let exceeded = guest.ctx.exceeded().expect("known");
    assert_eq!(exceeded.limit, LimitName::WorkspaceBytes);
}
