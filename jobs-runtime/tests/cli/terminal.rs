//! What a person sees and types at a terminal.

use std::fs::File;
use std::io::{Read as _, Write as _};

use crate::postgres_support::block_on;
use crate::session::{fed, jobs, sqlite_url, told};

/// A terminal of 24 lines of 60 characters: its two ends.
fn terminal() -> (File, File) {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap().into_string().unwrap();
    let terminal = File::options().read(true).write(true).open(&name).unwrap();
    let size = rustix::termios::Winsize { ws_row: 24, ws_col: 60, ws_xpixel: 0, ws_ypixel: 0 };
    rustix::termios::tcsetwinsize(&terminal, size).unwrap();
    (File::from(master), terminal)
}

/// Runs a command at a terminal where somebody has typed; answers the exit status and the screen.
fn at_terminal(url: &str, arguments: &[&str], typed: &str, no_color: bool) -> (i32, String) {
    let (mut person, terminal) = terminal();
    let mut command = jobs();
    command.args(arguments).env("JOBS_URL", url).env("TERM", "xterm");
    if no_color {
        command.env("NO_COLOR", "1");
    }
    command.stdin(terminal.try_clone().unwrap()).stdout(terminal.try_clone().unwrap());
    command.stderr(terminal);
    person.write_all(typed.as_bytes()).unwrap();
    let mut child = command.spawn().unwrap();
    drop(command);
    let mut text = Vec::new();
    let mut chunk = [0; 4096];
    // A terminal that nobody holds open any more ends in an error.
    while let Ok(read @ 1..) = person.read(&mut chunk) {
        text.extend_from_slice(&chunk[..read]);
    }
    let status = child.wait().unwrap().code().expect("no signal ended it");
    (status, String::from_utf8(text).unwrap().replace("\r\n", "\n"))
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
    let (_, coloured) = at_terminal(&url, &list, "", false);
    assert!(coloured.contains("\u{1b}["), "{coloured}");
    let (_, plain) = at_terminal(&url, &list, "", true);
    assert!(!plain.contains('\u{1b}'), "{plain}");
    insta::assert_snapshot!(plain);
    let mut command = jobs();
    command.args(list).env("JOBS_URL", &url);
    let piped = told(&fed(command, ""));
    assert!(!piped.contains('\u{1b}') && piped.contains("has room for"), "{piped}");
}

#[test]
fn a_person_is_asked_before_anything_irreversible() {
    let folder = tempfile::tempdir().unwrap();
    let url = sqlite_url(folder.path());
    let left = || {
        let mut command = jobs();
        command.args(["list", "--json"]).env("JOBS_URL", &url);
        fed(command, "").stdout
    };
    block_on(async {
        let jobs = jobs_runtime::Jobs::open(&url).await.unwrap();
        let to = "ann".to_owned();
        let id = jobs.enqueue(super::looks::Mail { to }).await.unwrap().id();
        jobs.operate().cancel(&[id]).await.unwrap();
    });
    let prune = ["prune", "--cancelled", "0s"];
    for typed in ["n\n", "\n", "\u{4}"] {
        let (status, screen) = at_terminal(&url, &prune, typed, true);
        assert!(screen.contains("[y/N]") && screen.contains("nothing was changed"), "{screen}");
        assert_eq!(status, 1);
        assert_ne!(left(), b"[]\n");
    }
    let (status, screen) = at_terminal(&url, &prune, "y\n", true);
    assert_eq!(status, 0, "{screen}");
    assert_eq!(left(), b"[]\n");
}

#[test]
fn a_redrive_at_a_terminal_shows_how_far_it_is_and_a_pipe_hears_nothing_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let url = sqlite_url(folder.path());
    block_on(async {
        let jobs = jobs_runtime::Jobs::open(&url).await.unwrap();
        let mail = || super::looks::Mail { to: "ann".to_owned() };
        let added = jobs.enqueue_all((0..60).map(|_| mail())).await.unwrap();
        let ids: Vec<_> = added.iter().map(|added| added.id()).collect();
        jobs.operate().cancel(&ids).await.unwrap();
    });
    let redrive = |more: &[&'static str]| {
        let common = ["redrive", "--state", "cancelled", "--kind", "mail.send", "--yes"];
        [&common[..], &["--batch", "10", "--rate", "20"], more].concat()
    };
    let (status, screen) = at_terminal(&url, &redrive(&[]), "", true);
    assert_eq!(status, 0, "{screen}");
    assert!(screen.contains("/60 jobs"), "no progress on the screen: {screen:?}");
    assert!(screen.contains("Brought back  60"), "{screen:?}");
    let mut command = jobs();
    command.args(redrive(&["--dry-run"])).env("JOBS_URL", &url);
    assert!(!told(&fed(command, "")).contains("/60 jobs"));
}
