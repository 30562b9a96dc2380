//! Operations of a guest within its grant.

use super::*;

#[tokio::test]
async fn a_tree_is_read_and_written_below_its_preopen() {
    let mut guest = Guest::new(&[("/w", true)]);
    assert_eq!(guest.preopens(), ["/w"]);
    assert_eq!(guest.read("sub/../a.txt").await, Ok("a.txt".to_owned()));
    assert_eq!(
        guest.list(".").await.expect("lists"),
        ["a.txt", "b.md", "sub/"]
    );
    guest.write("sub/new.txt", "new").await.expect("writes");
    assert_eq!(guest.content("w/sub/new.txt"), "new");
    let root = guest.root();
    let mut view = guest.view();
    view.create_directory_at(root, "made".to_owned())
        .await
        .expect("makes");
    let root = guest.root();
    let other = guest.root();
    let mut view = guest.view();
    view.rename_at(root, "sub/new.txt".to_owned(), other, "made/x".to_owned())
        .await
        .expect("moves");
    assert_eq!(guest.content("w/made/x"), "new");
    let root = guest.root();
    guest
        .view()
        .unlink_file_at(root, "made/x".to_owned())
        .await
        .expect("removes");
    let root = guest.root();
    guest
        .view()
        .remove_directory_at(root, "made".to_owned())
        .await
        .expect("removes");
    assert!(!guest.host("w/made").exists());
    assert_eq!(guest.recorded(), Vec::<String>::new());
}

#[tokio::test]
async fn a_guest_without_grants_has_no_directory() {
    let mut table = ResourceTable::new();
    let mut view = View {
        ctx: &mut Ctx::default(),
        table: &mut table,
    };
    assert!(view.get_directories().expect("none").is_empty());
}

#[tokio::test]
async fn a_stream_reads_and_writes_in_parts() {
    let mut guest = Guest::new(&[("/w", true)]);
    let file = guest
        .open("x", OpenFlags::CREATE, READ | DescriptorFlags::WRITE)
        .await
        .expect("opens");
    let rep = file.rep();
    let mut view = guest.view();
    let stream = view
        .write_via_stream(Handle::new_borrow(rep), 2)
        .expect("a stream");
    let writer = view.table.get_mut(&stream).expect("there");
    for part in ["abc", "def"] {
        assert!(writer.write_ready().await.expect("ready") > 0);
        writer.write(part.into()).expect("accepted");
        assert_eq!(writer.check_write().expect("goes on"), 0);
    }
    writer.cancel().await;
    assert_eq!(guest.content("w/x"), "\0\0abcdef");
    let mut view = guest.view();
    let stream = view
        .read_via_stream(Handle::new_borrow(rep), 3)
        .expect("a stream");
    let reader = view.table.get_mut(&stream).expect("there");
    assert_eq!(&reader.blocking_read(2).await.expect("reads")[..], b"bc");
    assert!(reader.read(100).expect("starts").is_empty());
    reader.ready().await;
    assert_eq!(&reader.read(100).expect("reads")[..], b"def");
    assert!(matches!(
        reader.blocking_read(1).await,
        Err(StreamError::Closed)
    ));
}

#[tokio::test]
async fn metadata_tells_nothing_of_the_host() {
    let mut guest = Guest::new(&[("/w/*.md", false)]);
    let root = guest.root();
    let stat = guest.view().stat(root).await.expect("stat");
    assert_eq!((stat.link_count, stat.size), (1, 0));
    let hash = async |guest: &mut Guest| {
        let file = guest.open("b.md", none(), READ).await.expect("opens");
        let hash = guest.view().metadata_hash(file).await.expect("a hash");
        (hash.lower, hash.upper)
    };
    let first = hash(&mut guest).await;
    assert_eq!(first, hash(&mut guest).await);
    // Another call uses the same file.
    guest.counters = Arc::default();
    let shared = guest.ctx.0.as_ref().expect("granted");
    guest.ctx = Ctx::new(
        Some(FileGrant {
            plan: shared.grant.plan.clone(),
            limits: LIMITS,
            counters: guest.counters.clone(),
        }),
        &guest.violations,
        &crate::held::Shared::default(),
    );
    assert_ne!(first, hash(&mut guest).await);
}

#[tokio::test]
async fn a_directory_is_itself_and_no_other() {
    let mut guest = Guest::new(&[("/w", false)]);
    let a = guest.open("sub", none(), READ).await.expect("opens");
    let b = guest
        .open("sub/deep/..", none(), READ)
        .await
        .expect("opens");
    let c = guest.open("sub/deep", none(), READ).await.expect("opens");
    let (rep, mut view) = (a.rep(), guest.view());
    assert!(view.is_same_object(a, b).await.expect("tells"));
    let a = Handle::new_borrow(rep);
    assert!(!view.is_same_object(a, c).await.expect("tells"));
}

#[tokio::test]
async fn times_are_set_where_the_guest_may_write() {
    use std::time::{Duration, UNIX_EPOCH};
    use wasmtime_wasi::p2::bindings::clocks::wall_clock::Datetime;
    let mut guest = Guest::new(&[("/w", true)]);
    let at = |seconds| {
        NewTimestamp::Timestamp(Datetime {
            seconds,
            nanoseconds: 5,
        })
    };
    for (path, seconds) in [("a.txt", 1000), ("sub", 2000), (".", 3000)] {
        let root = guest.root();
        guest
            .view()
            .set_times_at(
                root,
                PathFlags::empty(),
                path.to_owned(),
                NewTimestamp::NoChange,
                at(seconds),
            )
            .await
            .expect("sets");
        let found = guest.host("w").join(path).metadata().expect("stat");
        let expected = UNIX_EPOCH + Duration::new(seconds, 5);
        assert_eq!(found.modified().expect("known"), expected, "{path}");
    }
    let file = guest.open("a.txt", none(), READ).await.expect("opens");
    let nonsense = NewTimestamp::Timestamp(Datetime {
        seconds: 0,
        nanoseconds: 1_000_000_000,
    });
    let mut view = guest.view();
    let set = view.set_times(file, nonsense, NewTimestamp::Now).await;
    assert_eq!(set.map_err(code), Err(ErrorCode::Invalid));
}

#[tokio::test]
async fn what_was_opened_to_read_is_not_written_and_the_other_way_round() {
    let mut guest = Guest::new(&[("/w", true)]);
    let read = guest.open("a.txt", none(), READ).await.expect("opens");
    let written = guest.view().write(read, b"x".to_vec(), 0).await;
    assert_eq!(
        written.map(|_| ()).map_err(code),
        Err(ErrorCode::BadDescriptor)
    );
    let write = guest
        .open("a.txt", none(), DescriptorFlags::WRITE)
        .await
        .expect("opens");
    let read = guest.view().read(write, 1, 0).await;
    assert_eq!(
        read.map(|_| ()).map_err(code),
        Err(ErrorCode::BadDescriptor)
    );
    assert!(guest.recorded().is_empty());
}

#[tokio::test]
async fn opening_follows_its_flags() {
    let create = OpenFlags::CREATE;
    let cases = [
        (
            "a.txt",
            create | OpenFlags::EXCLUSIVE,
            Err(ErrorCode::Exist),
        ),
        ("sub", create | OpenFlags::EXCLUSIVE, Err(ErrorCode::Exist)),
        ("sub", create, Err(ErrorCode::IsDirectory)),
        ("a.txt", OpenFlags::DIRECTORY, Err(ErrorCode::NotDirectory)),
        ("a.txt/", none(), Err(ErrorCode::NotDirectory)),
        ("a.txt/x", create, Err(ErrorCode::NotDirectory)),
        ("x/", create, Err(ErrorCode::IsDirectory)),
        ("x/y", create, Err(ErrorCode::NoEntry)),
        ("x", none(), Err(ErrorCode::NoEntry)),
        ("a.txt", OpenFlags::TRUNCATE, Ok(())),
        ("sub/", OpenFlags::DIRECTORY, Ok(())),
    ];
    let mut guest = Guest::new(&[("/w", true)]);
    for (path, flags, expected) in cases {
        let opened = guest.open(path, flags, READ).await;
        assert_eq!(opened.map(|_| ()).map_err(code), expected, "{path}");
    }
    assert_eq!(guest.content("w/a.txt"), "");
}

/// A component that requests its directories. It returns 100 if it has none, and otherwise whether
/// the first directory is the same object as itself.
const COMPONENT: &str = r#"
(component
  (import "wasi:filesystem/types@0.2.0" (instance $types
    (export "descriptor" (type $descriptor (sub resource)))
    (export "[method]descriptor.is-same-object" (func
      (param "self" (borrow $descriptor)) (param "other" (borrow $descriptor)) (result bool)))))
  (alias export $types "descriptor" (type $descriptor))
  (import "wasi:filesystem/preopens@0.2.0" (instance $preopens
    (export "descriptor" (type $own (eq $descriptor)))
    (export "get-directories" (func (result (list (tuple (own $own) string)))))))
  (core module $memory
    (memory (export "memory") 1)
    (global $next (mut i32) (i32.const 1024))
    (func (export "realloc") (param i32 i32 i32 i32) (result i32)
      (local $at i32)
      (local.set $at (i32.and (i32.add (global.get $next) (i32.const 7)) (i32.const -8)))
      (global.set $next (i32.add (local.get $at) (local.get 3)))
      (local.get $at)))
  (core instance $memory (instantiate $memory))
  (core func $get-directories (canon lower (func $preopens "get-directories")
    (memory (core memory $memory "memory")) (realloc (core func $memory "realloc"))))
  (core func $is-same (canon lower (func $types "[method]descriptor.is-same-object")))
  (core module $main
    (import "" "memory" (memory 1))
    (import "" "get-directories" (func $get-directories (param i32)))
    (import "" "is-same" (func $is-same (param i32 i32) (result i32)))
    (func (export "run") (result i32)
      (call $get-directories (i32.const 16))
      (if (i32.eqz (i32.load (i32.const 20))) (then (return (i32.const 100))))
      (call $is-same
        (i32.load (i32.load (i32.const 16)))
        (i32.load (i32.load (i32.const 16))))))
  (core instance $main (instantiate $main (with "" (instance
    (export "memory" (memory $memory "memory"))
    (export "get-directories" (func $get-directories))
    (export "is-same" (func $is-same))))))
  (func (export "run") (result u32) (canon lift (core func $main "run"))))
"#;

struct Data {
    wasi: wasmtime_wasi::WasiCtx,
    table: ResourceTable,
    files: Ctx,
}

impl wasmtime_wasi::WasiView for Data {
    fn ctx(&mut self) -> wasmtime_wasi::WasiCtxView<'_> {
        wasmtime_wasi::WasiCtxView {
            ctx: &mut self.wasi,
            table: &mut self.table,
        }
    }
}

#[tokio::test]
async fn a_component_gets_this_view_and_not_the_one_it_replaces() {
    use wasmtime::component::Component;
    let engine = wasmtime::Engine::default();
    let mut linker = Linker::new(&engine);
    wasmtime_wasi::p2::add_to_linker_async::<Data>(&mut linker).expect("linked");
    add_to_linker(&mut linker, |data: &mut Data| View {
        ctx: &mut data.files,
        table: &mut data.table,
    })
    .expect("linked");
    let bytes = wat::parse_str(COMPONENT).expect("a component");
    let component = Component::new(&engine, bytes).expect("compiles");
    let guest = Guest::new(&[("/w", false)]);
    for (files, expected) in [(guest.ctx.clone(), 1), (Ctx::default(), 100)] {
        let data = Data {
            wasi: wasmtime_wasi::WasiCtx::builder().build(),
            table: ResourceTable::new(),
            files,
        };
        let mut store = wasmtime::Store::new(&engine, data);
        let instance = linker
            .instantiate_async(&mut store, &component)
            .await
            .expect("links");
        let run = instance
            .get_typed_func::<(), (u32,)>(&mut store, "run")
            .expect("exported");
        let (answer,) = run.call_async(&mut store, ()).await.expect("runs");
        assert_eq!(answer, expected);
    }
}
