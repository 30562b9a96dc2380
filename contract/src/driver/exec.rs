//! A program on the host's machine, as a version 1 `tools.json` names it. Nothing is run here: the
//! operator decides whether and how programs run.

use serde::Serialize;

/// Programs that run the commands in their arguments or in their input, so that the name does not
/// identify what runs. Each word, here and in `WRAPPERS`, also stands for the names that continue
/// with another character than a letter, such as `python3.12` and `ssh-keygen`.
const INTERPRETERS: &str = "ash awk bash bun busybox cmake csh dash deno ed elixir elvish emacs erl escript ex expect fish gawk \
     gdb ghci gmake groovy guile irb java jshell julia kotlin ksh lldb lua luajit make mawk mksh nawk \
     ninja node nodejs nu nvim ocaml octave perl php powershell pwsh pypy python racket rbash rscript \
     ruby runghc scala sed sh swipl tclsh tcsh toybox vi vim wish xonsh zsh";

/// Programs that start another program, on this machine or another. They can't be the interpreter
/// of a `#!` file either, since the program that they start would be looked up only when the file
/// runs.
const WRAPPERS: &str = "at batch bwrap cargo chroot chrt crictl crontab dbus doas docker env find firejail flock fusermount \
     git go hg ionice kubectl ld machinectl nc ncat nerdctl nice nohup npm npx nsenter parallel pip pipx \
     pkexec pnpm podman rsync runc runuser scp screen script setarch setpriv setsid sftp socat ssh start \
     stdbuf strace su sudo svn systemd tar taskset time timeout tmux unshare uv uvx watch xargs yarn";

/// How many arguments a program may have, and how many bytes an argument may have.
const MAX_ARGUMENTS: usize = 64;
const MAX_ARGUMENT_BYTES: usize = 4096;

/// The program that implements a tool, and the program's arguments.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Program {
    /// The absolute path.
    pub command: String,
    /// The arguments after the first, which is the path of the JSON input.
    pub args: Vec<String>,
}

impl Program {
    /// Checks a program and its arguments.
    ///
    /// # Errors
    /// The expected and the found value, for people, if the path is not absolute or not plain, the
    /// program is an interpreter or starts other programs, there are too many arguments, or an
    /// argument is too long or has control characters.
    pub fn new(command: &str, args: &[String]) -> Result<Self, String> {
        check_path(command)?;
        if is_one_of(WRAPPERS, command) || is_one_of(INTERPRETERS, command) {
            return Err(format!(
                "expected a program of its own, found {command}, which runs what it is told to"
            ));
        }
        if args.len() > MAX_ARGUMENTS {
            return Err(format!(
                "expected at most {MAX_ARGUMENTS} arguments, found {}",
                args.len()
            ));
        }
        for arg in args {
            if arg.len() > MAX_ARGUMENT_BYTES || arg.chars().any(char::is_control) {
                return Err(format!(
                    "expected arguments of at most {MAX_ARGUMENT_BYTES} bytes without control characters, \
                     found another"
                ));
            }
        }
        Ok(Self {
            command: command.to_owned(),
            args: args.to_vec(),
        })
    }

    /// Checks the path of an interpreter that a `#!` file names.
    ///
    /// # Errors
    /// The expected and the found value, for people.
    pub fn check_interpreter(path: &str) -> Result<(), String> {
        check_path(path)?;
        if is_one_of(WRAPPERS, path) {
            return Err(format!(
                "expected an interpreter, found {path}, which starts another program"
            ));
        }
        Ok(())
    }
}

/// Whether a path is absolute, and each part of it is a plain name.
pub(crate) fn is_absolute(path: &str) -> bool {
    let plain = path
        .strip_prefix('/')
        .is_some_and(|rest| rest.split('/').all(|part| !matches!(part, "" | "." | "..")));
    plain && !path.chars().any(char::is_control)
}

fn check_path(path: &str) -> Result<(), String> {
    match is_absolute(path) && path.len() <= MAX_ARGUMENT_BYTES {
        true => Ok(()),
        false => Err(format!("expected an absolute path, found {path:?}")),
    }
}

/// Whether the letters at the start of a program's name are one of these words, in any case.
fn is_one_of(words: &str, path: &str) -> bool {
    let own = word(path);
    words.split(' ').any(|word| word == own)
}

/// The letters at the start of a program's name.
fn word(path: &str) -> String {
    let name = path.rsplit('/').next().unwrap_or_default();
    let letters = name.chars().take_while(char::is_ascii_alphabetic);
    letters.collect::<String>().to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_runs_anything_is_no_program_of_its_own() {
        for command in [
            "/bin/sh",
            "/usr/bin/python3.12",
            "/usr/bin/Python3",
            "/opt/node20/bin/node",
            "/usr/bin/env",
            "/usr/bin/sudo",
            "/usr/bin/ssh-keygen",
            "/lib64/ld-linux-x86-64.so.2",
            "/usr/bin/systemd-run",
            "bin/tool",
            "/bin/../bin/tool",
            "/bin/a\0b",
            "",
        ] {
            assert!(Program::new(command, &[]).is_err(), "{command:?}");
        }
        for command in ["/usr/bin/pdftotext", "/usr/bin/shasum", "/opt/environment"] {
            Program::new(command, &["--all".to_owned()]).expect("it is one");
        }
    }

    #[test]
    fn a_script_may_need_an_interpreter_and_not_a_way_to_find_one() {
        Program::check_interpreter("/usr/bin/python3").expect("it is one");
        for path in ["/usr/bin/env", "/usr/bin/sudo", "python3"] {
            assert!(Program::check_interpreter(path).is_err(), "{path}");
        }
    }

    #[test]
    fn arguments_are_few_short_and_visible() {
        let long = "a".repeat(MAX_ARGUMENT_BYTES + 1);
        let many = vec![String::new(); MAX_ARGUMENTS + 1];
        for args in [vec![long], vec!["a\0".to_owned()], many] {
            assert!(Program::new("/opt/tool", &args).is_err());
        }
    }
}
