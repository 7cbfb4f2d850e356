//! What others stored: digits, control characters, marks.

use crate::session::over_both;

#[test]
fn every_digit_of_a_payload_is_shown() {
    let payload = r#"{"id": 1970670598291982290, "max": 18446744073709551615,
        "min": -9223372036854775808, "f": 0.1, "e": 1e400}"#;
    let text = over_both(&async |session| {
        session.run(&["migrate"]);
        session.run_with(&["enqueue", "a", "-", "--payload-version", "1.0.0"], payload);
        session.run(&["list", "--json"]);
        session.run(&["list", "--columns", "payload"]);
        session.run(&["show", "1"]);
        session.run(&["show", "1", "--json"]);
        // Another field is changed, and the job goes round.
        session.run(&["reschedule", "1", "--priority", "5"]);
        session.run(&["cancel", "1"]);
        session.run(&["redrive", "1", "--state", "cancelled", "--yes"]);
        session.run(&["list", "--json"]);
    });
    insta::assert_snapshot!(text);
}

#[test]
fn escapes_reach_no_terminal() {
    let text = over_both(&async |session| {
        let jobs = session.client().await;
        let evil = "\u{9b}31m \u{202e}txt \u{feff}\u{7f} <script>";
        jobs.enqueue(super::looks::Mail { to: evil.to_owned() })
            .header("from", "\u{202e}\u{9b}2J")
            .queue("q \u{202e} x")
            .await
            .unwrap();
        let to = "nobody: \u{1b}[2J\u{9b}1m\r\n\u{202e}gone".to_owned();
        let dead = jobs.enqueue(super::looks::Mail { to }).await.unwrap().id();
        super::looks::work(&jobs, &[dead]).await;
        session.run(&["list", "--columns", "id,queue,error,payload"]);
        session.run(&["list", "--json"]);
        session.run(&["show", "1"]);
        session.run(&["show", "2"]);
        session.run(&["queues"]);
        session.run(&["pause", "q \u{202e} x", "--reason", "\u{1b}[2J"]);
        let (name, payload) = ("s \u{202e} x", "{\"t\": \"\u{9b}2J\u{202e}\"}");
        let add =
            ["schedules", "add", name, "every 1h", "a", payload, "--payload-version", "1.0.0"];
        session.run(&add);
        session.run(&["schedules", "pause", name, "--reason", "\u{1b}[2J\u{202e}"]);
        session.run(&["schedules"]);
        session.run(&["schedules", "--json"]);
        session.run(&["schedules", "pause", "no \u{202e} name", "--reason", "\u{1b}[2J"]);
    });
    let is_quiet = |c: char| c == '\n' || !c.is_control() && !"\u{202e}\u{feff}".contains(c);
    let answers = text.lines().filter(|line| !line.starts_with("$ "));
    for line in answers {
        assert!(line.chars().all(is_quiet), "{line:?}");
    }
    insta::assert_snapshot!(text.replace('\u{202e}', "<202e>").replace('\u{1b}', "<1b>"));
}
