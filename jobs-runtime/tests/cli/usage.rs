//! Wrong commands, wrong addresses, pipes and terminals.

use std::fmt::Write as _;
use std::fs::File;
use std::io::Read as _;
use std::process::Stdio;

use crate::postgres_support::block_on;
use crate::session::{fed, jobs, over_both, sqlite_url, told};

#[test]
fn every_mistake_is_answered_by_what_to_type() {
    let wrong: &[&[&str]] = &[
        &[],
        &["lsit"],
        &["list"],
        &["list", "--url", "mysql://me:hunter2@host/shop"],
        &["list", "--url", "me:hunter2@host/shop"],
        &["list", "--url", "sqlite:///nowhere/jobs.db"],
        &["list", "--url", "sqlite://no-such-file.db"],
        &["list", "--url", "sqlite://jobs.db", "--schema", "other"],
        &["list", "--state", "died"],
        &["list", "--limit", "0"],
        &["list", "--columns", "id,weight"],
        &["show", "seven"],
        &["cancel"],
        &["enqueue", "Billing", "{}"],
        &["enqueue", "billing.charge", "{order: 7}", "--payload-version", "1.0.0"],
        &["enqueue", "billing.charge", "{}"],
        &["enqueue", "a", "{}", "--payload-version", "0.9"],
        &["enqueue", "a", "{}", "--payload-version", "2.0.0", "--readable-by", "1.0"],
        &["enqueue", "a", "{}", "--payload-version", "1.0.0", "--priority", "101"],
        &["enqueue", "a", "{}", "--payload-version", "1.0.0", "--delay", "soon"],
        &["enqueue", "a", "{}", "--delay", "5m", "--at", "2026-11-30"],
        &["enqueue", "a", "{}", "--header", "trace"],
        &["pause", "slow"],
        &["prune"],
        &["completions", "tcsh"],
    ];
    let mut text = String::new();
    for arguments in wrong {
        let mut command = jobs();
        command.args(*arguments);
        let output = fed(command, "");
        assert_ne!(output.status.code(), Some(0), "{arguments:?}");
        assert!(output.stdout.is_empty(), "{arguments:?} answers on standard output");
        assert!(!told(&output).contains("hunter2"), "{arguments:?} shows a password");
        let _ = writeln!(text, "$ jobs {}\n{}", arguments.join(" "), told(&output));
    }
    insta::assert_snapshot!(text);
}

#[test]
fn a_database_that_is_not_usable_is_told_from_one_that_is_away() {
    let cases = [
        ("postgres://me:p@ss:w/o#r?d%^&@127.0.0.1:1/shop", 75),
        ("postgres://me:p@ss:w/o#r?d%^&@127.0.0.1:notaport/shop", 3),
        ("sqlite:///nowhere/jobs.db", 3),
        ("sqlite://no-such-file.db", 3),
        ("mysql://me:p@ss:w/o#r?d%^&@127.0.0.1/shop", 2),
    ];
    for (url, status) in cases {
        let mut command = jobs();
        command.arg("list").env("JOBS_URL", url);
        let output = fed(command, "");
        let said = told(&output);
        assert_eq!(output.status.code(), Some(status), "{url}: {said}");
        assert!(said.starts_with("! jobs: "), "{said}");
        assert!(!["p@ss", "w/o", "r?d", "%^&"].iter().any(|part| said.contains(part)), "{said}");
    }
    let made = std::path::Path::new("no-such-file.db").exists();
    assert!(!made, "looking makes no database");
}

#[test]
fn a_reader_that_leaves_early_is_no_error() {
    let text = over_both(&async |session| {
        let jobs = session.client().await;
        let mail = |n: u32| super::looks::Mail { to: format!("{n} {}", "x".repeat(1000)) };
        jobs.enqueue_all((0..500).map(mail)).await.unwrap();
        for arguments in [vec!["list", "--limit", "500"], vec!["list", "--limit", "500", "--json"]]
        {
            let mut command =
                session.command(&[&arguments[..], &["--columns", "payload"]].concat());
            command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
            let mut child = command.spawn().unwrap();
            let mut first = [0; 1];
            child.stdout.take().unwrap().read_exact(&mut first).unwrap();
            let output = child.wait_with_output().unwrap();
            assert_eq!((output.status.code(), told(&output).as_str()), (Some(0), ""));
        }
    });
    assert_eq!(text, "");
}

/// What the binary writes to a terminal of this width.
fn at_terminal(url: &str, arguments: &[&str], no_color: bool) -> String {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap().into_string().unwrap();
    let terminal = File::options().read(true).write(true).open(&name).unwrap();
    let size = rustix::termios::Winsize { ws_row: 24, ws_col: 60, ws_xpixel: 0, ws_ypixel: 0 };
    rustix::termios::tcsetwinsize(&terminal, size).unwrap();
    let mut command = jobs();
    command.args(arguments).env("JOBS_URL", url).env("TERM", "xterm");
    if no_color {
        command.env("NO_COLOR", "1");
    }
    command.stdin(Stdio::null()).stdout(terminal.try_clone().unwrap()).stderr(terminal);
    let mut child = command.spawn().unwrap();
    drop(command);
    let mut text = Vec::new();
    let mut reader = File::from(master);
    let mut chunk = [0; 4096];
    // A terminal that nobody holds open any more ends in an error.
    while let Ok(read @ 1..) = reader.read(&mut chunk) {
        text.extend_from_slice(&chunk[..read]);
    }
    assert!(child.wait().unwrap().success());
    String::from_utf8(text).unwrap().replace("\r\n", "\n")
}

#[test]
fn a_terminal_gets_colours_and_its_width_and_a_pipe_gets_neither() {
    let folder = tempfile::tempdir().unwrap();
    let url = sqlite_url(folder.path());
    block_on(async {
        let jobs = jobs_runtime::Jobs::open(&url).await.unwrap();
        let to = "a name that is much longer than a line of the terminal has room for".to_owned();
        jobs.enqueue(super::looks::Mail { to }).await.unwrap();
    });
    let list = ["list", "--columns", "id,state,kind,payload"];
    let coloured = at_terminal(&url, &list, false);
    assert!(coloured.contains("\u{1b}["), "{coloured}");
    let plain = at_terminal(&url, &list, true);
    assert!(!plain.contains('\u{1b}'), "{plain}");
    insta::assert_snapshot!(plain);
    let mut command = jobs();
    command.args(list).env("JOBS_URL", &url);
    let piped = told(&fed(command, ""));
    assert!(!piped.contains('\u{1b}') && piped.contains("has room for"), "{piped}");
}

#[test]
fn completions_of_each_shell_are_scripts_that_it_reads() {
    for (shell, check) in [("bash", Some(["bash", "-n"])), ("zsh", None), ("fish", None)] {
        let mut command = jobs();
        command.args(["completions", shell]);
        let output = fed(command, "");
        let script = String::from_utf8(output.stdout).unwrap();
        for word in ["enqueue", "--json", "completions"] {
            let is_there = script.contains(word.trim_start_matches('-'));
            assert!(is_there, "the completions of {shell} lack {word}");
        }
        if let Some([program, option]) = check {
            let mut reader = std::process::Command::new(program);
            reader.arg(option);
            let read = fed(reader, &script);
            assert_eq!((read.status.code(), told(&read).as_str()), (Some(0), ""));
        }
    }
}
