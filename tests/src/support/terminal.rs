//! A person at a terminal. A pseudo-terminal is a program's standard input, and also its standard
//! output, its standard error or both. A stream that is not at the terminal is a pipe.

use std::fs::File;
use std::io::{Read, Write as _};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{LocalModes, Termios, Winsize, tcgetattr, tcsetwinsize};

/// How long to wait before output counts as missing.
const PATIENCE: Duration = Duration::from_secs(300);

/// A program that runs at a terminal.
pub(crate) struct Session {
    child: Child,
    person: File,
    /// Keeps the terminal open, and gives access to its state.
    terminal: OwnedFd,
    before: Termios,
    screen: Arc<Mutex<Vec<u8>>>,
    eyes: JoinHandle<()>,
    piped: JoinHandle<Vec<u8>>,
}

/// The streams that the terminal shows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shown {
    Stderr,
    Stdout,
    Both,
}

/// The result of a session.
#[derive(Debug)]
pub(crate) struct Left {
    pub(crate) code: Option<i32>,
    /// The output of the pipe, usually standard output; empty without a pipe.
    pub(crate) stdout: String,
    /// Everything that the terminal showed.
    pub(crate) screen: String,
}

impl Session {
    /// Starts a program at a terminal with this many columns. The keys `typed` wait in the terminal
    /// before the program starts.
    pub(crate) fn start(command: Command, columns: u16, typed: &str) -> Self {
        Self::open(command, columns, typed, Shown::Stderr)
    }

    /// Starts a program with standard output at the terminal and standard error in the pipe.
    pub(crate) fn showing_stdout(command: Command) -> Self {
        Self::open(command, 100, "", Shown::Stdout)
    }

    /// Starts a program with both streams at the terminal, as a person does.
    pub(crate) fn showing_both(command: Command, columns: u16) -> Self {
        Self::open(command, columns, "", Shown::Both)
    }

    fn open(mut command: Command, columns: u16, typed: &str, show: Shown) -> Self {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY;
        let master = openpt(flags).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let terminal = ioctl_tiocgptpeer(&master, flags).unwrap();
        let size = Winsize {
            ws_row: 50,
            ws_col: columns,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        tcsetwinsize(&terminal, size).unwrap();
        let before = tcgetattr(&terminal).unwrap();
        let mut person = File::from(master);
        person.write_all(typed.as_bytes()).unwrap();
        let shown = || Stdio::from(terminal.try_clone().unwrap());
        command.stdin(shown());
        match show {
            Shown::Stderr => command.stderr(shown()).stdout(Stdio::piped()),
            Shown::Stdout => command.stdout(shown()).stderr(Stdio::piped()),
            Shown::Both => command.stdout(shown()).stderr(shown()),
        };
        let mut child = command.spawn().unwrap();
        // `command` would keep the terminal open.
        drop(command);
        let screen = Arc::new(Mutex::new(Vec::new()));
        let mut watching = person.try_clone().unwrap();
        let seen = Arc::clone(&screen);
        let eyes = std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            // Reading fails once no process has the terminal open.
            while let Ok(read @ 1..) = watching.read(&mut bytes) {
                seen.lock().unwrap().extend_from_slice(&bytes[..read]);
            }
        });
        let mut pipe: Box<dyn Read + Send> = match show {
            Shown::Stderr => Box::new(child.stdout.take().unwrap()),
            Shown::Stdout => Box::new(child.stderr.take().unwrap()),
            Shown::Both => Box::new(std::io::empty()),
        };
        let piped = std::thread::spawn(move || {
            let mut bytes = Vec::new();
            pipe.read_to_end(&mut bytes).unwrap();
            bytes
        });
        Self {
            child,
            person,
            terminal,
            before,
            screen,
            eyes,
            piped,
        }
    }

    /// What the terminal has shown so far.
    pub(crate) fn screen(&self) -> String {
        String::from_utf8_lossy(&self.screen.lock().unwrap()).into_owned()
    }

    /// Waits until the terminal shows this text and the program waits for a key.
    pub(crate) fn sees(&mut self, words: &str) {
        self.waits_for(words, Self::takes_keys);
        // The program drops keys that were typed before its question, and may be doing so now.
        std::thread::sleep(Duration::from_millis(300));
    }

    /// Waits until the terminal shows this text, while the program works.
    pub(crate) fn shows(&mut self, words: &str) {
        self.waits_for(words, |_| true);
    }

    fn waits_for(&mut self, words: &str, ready: impl Fn(&Self) -> bool) {
        let started = Instant::now();
        while !(self.screen().contains(words) && ready(self)) {
            let ended = self.child.try_wait().unwrap();
            assert!(
                ended.is_none() && started.elapsed() < PATIENCE,
                "{words:?} is not on the screen: {}",
                self.screen()
            );
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Whether the program reads key by key.
    pub(crate) fn takes_keys(&self) -> bool {
        let modes = tcgetattr(&self.terminal).unwrap().local_modes;
        !modes.contains(LocalModes::ICANON)
    }

    pub(crate) fn types(&mut self, keys: &str) {
        self.person.write_all(keys.as_bytes()).unwrap();
    }

    /// Whether the program still runs after a while.
    pub(crate) fn waits(&mut self) -> bool {
        std::thread::sleep(Duration::from_millis(500));
        self.child.try_wait().unwrap().is_none()
    }

    /// Waits until the program ends, and asserts that the terminal is in its original state.
    pub(crate) fn leaves(mut self) -> Left {
        let started = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            if started.elapsed() > PATIENCE {
                self.child.kill().unwrap();
                panic!("still running: {}", self.screen());
            }
            std::thread::sleep(Duration::from_millis(10));
        };
        let after = tcgetattr(&self.terminal).unwrap();
        assert_eq!(after.local_modes, self.before.local_modes);
        let stdout = self.piped.join().unwrap();
        drop(self.terminal);
        self.eyes.join().unwrap();
        Left {
            code: status.code(),
            stdout: String::from_utf8(stdout).unwrap(),
            screen: String::from_utf8_lossy(&self.screen.lock().unwrap()).into_owned(),
        }
    }
}
