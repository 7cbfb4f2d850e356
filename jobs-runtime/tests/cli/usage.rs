//! Wrong commands, wrong addresses, pipes and terminals.

use std::fmt::Write as _;
use std::io::Read as _;
use std::process::Stdio;

use crate::session::{fed, jobs, over_both, told};

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
        &["reschedule"],
        &["reschedule", "7"],
        &["reschedule", "7", "--in", "soon"],
        &["reschedule", "7", "--at", "5m"],
        &["reschedule", "7", "--in", "1h", "--at", "2026-11-30"],
        &["reschedule", "7", "--priority", "urgent"],
        &["schedules", "ad"],
        &["schedules", "add", "nightly"],
        &["schedules", "add", "nightly", "0 3 * * *", "a", "{}"],
        &["schedules", "add", "nightly", "0 0 30 2 *", "a", "{}", "--payload-version", "1.0.0"],
        &["schedules", "add", "nightly", "0 0 31 4 *", "a", "{}", "--payload-version", "1.0.0"],
        &["schedules", "add", "nightly", "60 * * * *", "a", "{}", "--payload-version", "1.0.0"],
        &["schedules", "add", "nightly", "", "a", "{}", "--payload-version", "1.0.0"],
        &[
            "schedules",
            "add",
            "nightly",
            "0 3 * * * Mars/Olympus",
            "a",
            "{}",
            "--payload-version",
            "1.0.0",
        ],
        &[
            "schedules",
            "add",
            "nightly",
            "every 1h",
            "a",
            "{}",
            "--payload-version",
            "1.0.0",
            "--catch-up",
            "0",
        ],
        &["schedules", "pause", "nightly"],
        &["schedules", "remove"],
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
fn a_payload_that_is_nested_more_deeply_than_any_build_reads_is_refused() {
    let deep = |levels| "[".repeat(levels) + &"]".repeat(levels);
    let told_of = |arguments: &[&str], payload: &str| {
        let mut command = jobs();
        command.args(arguments).args([payload, "--payload-version", "1.0.0"]);
        let output = fed(command, "");
        assert_ne!(output.status.code(), Some(0), "there is no database");
        told(&output)
    };
    for arguments in [&["enqueue", "a"][..], &["schedules", "add", "deep", "every 1h", "a"]] {
        let said = told_of(arguments, &deep(128));
        assert!(said.contains("nested more than 127 levels deep"), "{said}");
        let said = told_of(arguments, &deep(127));
        assert!(!said.contains("nested"), "{said}");
    }
}

#[test]
fn a_database_that_is_not_usable_is_told_from_one_that_is_away() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().to_str().unwrap();
    let of_folder = format!("sqlite://{folder}");
    let cases = [
        ("postgres://me:p@ss:w/o#r?d%^&@127.0.0.1:1/shop", 75, "127.0.0.1:1/shop"),
        ("postgres://me:p@ss:w/o#r?d%^&@127.0.0.1:notaport/shop", 3, "port"),
        ("sqlite:///nowhere/jobs.db", 3, "/nowhere"),
        ("sqlite://no-such-file.db", 3, "no-such-file.db"),
        (&of_folder, 3, folder),
        ("mysql://me:p@ss:w/o#r?d%^&@127.0.0.1/shop", 2, "postgres://"),
    ];
    for (url, status, named) in cases {
        let mut command = jobs();
        command.arg("list").env("JOBS_URL", url);
        let output = fed(command, "");
        let said = told(&output);
        assert_eq!(output.status.code(), Some(status), "{url}: {said}");
        assert!(said.starts_with("! jobs: "), "{said}");
        assert!(said.contains(named), "{url}: {said}");
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

#[test]
fn a_reader_that_has_left_changes_neither_what_is_done_nor_the_status() {
    over_both(&async |session| {
        let jobs = session.client().await;
        let one = jobs.enqueue(super::looks::Charge { order: -1 }).await.unwrap().id();
        super::looks::work(&jobs, &[one]).await;
        let unread = |session: &super::session::Session, arguments: &[&str]| {
            let (reader, writer) = std::io::pipe().unwrap();
            drop(reader);
            let mut command = session.command(arguments);
            command.stdin(Stdio::null()).stdout(writer).stderr(Stdio::piped());
            let output = command.spawn().unwrap().wait_with_output().unwrap();
            (output.status.code(), told(&output))
        };
        let told = unread(session, &["redrive", "--all", "--yes"]);
        assert_eq!(told, (Some(0), String::new()));
        assert_eq!(jobs.job(one).await.unwrap().unwrap().state, jobs_runtime::State::Ready);
        let told = unread(session, &["cancel", "1", "99"]);
        assert_eq!(told.0, Some(1), "one of them is not there: {}", told.1);
        let told = unread(session, &["watch", "--interval", "100ms"]);
        assert_eq!(told.0, Some(0), "it has no other end: {}", told.1);
    });
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

#[test]
fn an_installed_completion_offers_commands_and_their_actions() {
    let mut command = jobs();
    command.args(["completions", "bash"]);
    let script = String::from_utf8(fed(command, "").stdout).unwrap();
    for (typed, offered) in [("sche", "schedules"), ("schedules re", "remove resume")] {
        // As bash calls it at the Tab key.
        let words: Vec<&str> = typed.split(' ').collect();
        let last = words[words.len() - 1];
        let ask = format!(
            "{script}\ncomplete -p jobs >&2\nCOMP_WORDS=(jobs {typed})\nCOMP_CWORD={}\n\
             _jobs jobs {last} jobs\necho \"${{COMPREPLY[*]}}\"\n",
            words.len()
        );
        let mut bash = std::process::Command::new("bash");
        bash.args(["--norc", "--noprofile", "-s"]);
        let answer = fed(bash, &ask);
        let said = String::from_utf8(answer.stdout.clone()).unwrap();
        assert_eq!(said.trim(), offered, "{typed}: {}", told(&answer));
        assert!(told(&answer).contains("-F _jobs jobs"), "{}", told(&answer));
    }
}
