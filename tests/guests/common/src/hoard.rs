//! Behaviours that ask the host for as much as it gives and keep all of it. Each
//! says how far it is by the world's progress: a call that was stopped was stopped
//! before the number that it was told to reach.

use std::mem::forget;

use serde_json::{Value, json};
use toolward_guest::bindings::toolward::driver::log::{self, Level};
use toolward_guest::bindings::toolward::driver::{progress, tools};
use wasip2::cli::stdout::get_stdout;
use wasip2::clocks::monotonic_clock;
use wasip2::filesystem::preopens::get_directories;
use wasip2::filesystem::types::{Descriptor, DescriptorFlags, OpenFlags, PathFlags};

use crate::{Ending, Input, did, done, failed};

/// Says how far something is that is to be done `n` times.
pub struct Course {
    n: u64,
    told: u64,
}

impl Course {
    pub fn new(n: u64) -> Self {
        Self { n, told: 0 }
    }

    /// `at` of all are done: the first few are told each, then fewer and fewer.
    pub fn tell(&mut self, at: u64) {
        if at < 64 || at >= self.told.saturating_add(self.told / 32) {
            self.told = at;
            progress::report(&progress::Update {
                done: at as f64 + 1.0,
                total: Some(self.n as f64),
                message: None,
            });
        }
    }
}

/// Takes `n` of what `name` says, and keeps them.
pub(crate) fn act(input: &Input) -> Ending {
    let each: fn(u64) = match input.name.as_str() {
        "pollables" => |_| forget(monotonic_clock::subscribe_duration(u64::MAX / 2)),
        "streams" => |_| forget(get_stdout()),
        "stream-pollables" => |_| {
            let stream = get_stdout();
            forget(stream.subscribe());
            forget(stream);
        },
        "networks" => |_| forget(wasip2::sockets::instance_network::instance_network()),
        "sockets" => |_| {
            use wasip2::sockets::network::IpAddressFamily;
            let _ = wasip2::sockets::tcp_create_socket::create_tcp_socket(IpAddressFamily::Ipv4);
            let _ = wasip2::sockets::udp_create_socket::create_udp_socket(IpAddressFamily::Ipv4);
            forget(wasip2::sockets::instance_network::instance_network());
        },
        "random" => |_| {
            let bytes = wasip2::random::random::get_random_bytes(64 << 10);
            forget(bytes);
        },
        "preopens" => |_| forget(get_directories()),
        "descriptors" => |n| forget(opened(n)),
        "listings" => |_| {
            let (root, _) = get_directories().swap_remove(0);
            forget(root.read_directory());
            forget(root);
        },
        "file-streams" => |n| {
            let file = opened(n);
            let read = file.read_via_stream(0).and_then(|stream| {
                // What was read waits in the host.
                stream.subscribe().block();
                Ok(stream)
            });
            forget(read);
            forget(file.write_via_stream(0).map(|stream| {
                let _ = stream.write(&[b'x'; 64 << 10]);
                stream
            }));
            forget(file);
        },
        "poll" => |_| {
            let all: Vec<_> = (0..400)
                .map(|_| monotonic_clock::subscribe_duration(1))
                .collect();
            let borrowed: Vec<_> = all.iter().collect();
            wasip2::io::poll::poll(&borrowed);
            forget(all);
        },
        // A thousand values and 8 KiB of text each.
        "log" => |_| log::write(Level::Info, "", Some(&objects("fields", 498))),
        "progress" => |n| {
            progress::report(&progress::Update {
                done: n as f64,
                total: None,
                message: Some("m".repeat(200 << 10)),
            });
        },
        "tools" => |_| {
            let _ = tools::call(&tools::Request {
                tool: "hostile.below".to_owned(),
                input: json!({"do": "hoard", "name": "objects", "n": 40_000}).to_string(),
                timeout_ms: None,
            });
        },
        "objects" => {
            return done(format!(
                "{{\"did\":\"hoard\",\"value\":{}}}",
                objects("all", input.n)
            ));
        }
        // Keeps so many MiB, and returns nearly four.
        "text" => {
            let kept = vec![b'x'; (input.n as usize) << 20];
            let text = String::from_utf8_lossy(&kept[..(4 << 20) - 1024]).into_owned();
            drop(std::hint::black_box(kept));
            return did(input, Value::String(text));
        }
        "zeros" => {
            return done(format!(
                "{{\"did\":\"hoard\",\"value\":[{}0]}}",
                "0,".repeat(input.n as usize)
            ));
        }
        other => return Err(failed("input_invalid", format!("no hoard of {other}"))),
    };
    let mut course = Course::new(input.n);
    for at in 0..input.n {
        if input.name != "progress" || at == 0 {
            course.tell(at);
        }
        each(at);
    }
    did(input, Value::from(input.n))
}

/// So many small objects, as JSON.
fn objects(name: &str, n: u64) -> String {
    format!("{{\"{name}\":[{}{{}}]}}", "{\"a\":0},".repeat(n as usize))
}

/// The file `deep/…/file` of the first preopen, opened under a long path.
fn opened(n: u64) -> Descriptor {
    let (root, _) = get_directories().swap_remove(0);
    let how = if n % 2 == 0 {
        OpenFlags::empty()
    } else {
        OpenFlags::CREATE
    };
    let file = root.open_at(
        PathFlags::empty(),
        "file",
        how,
        DescriptorFlags::READ | DescriptorFlags::WRITE,
    );
    let file = match file {
        Ok(file) => file,
        // A limit on open files is told as an error, or ends the call.
        Err(code) => {
            forget(root.open_at(
                PathFlags::empty(),
                ".",
                OpenFlags::DIRECTORY,
                DescriptorFlags::READ,
            ));
            panic!("no file: {code:?}")
        }
    };
    forget(root);
    file
}
