//! Every line by which a worker warns is explained in `docs/errors.md`, and nothing else is.

use std::fs;
use std::path::{Path, PathBuf};

const DOCUMENT: &str = include_str!("../../docs/errors.md");

/// What runs in a worker or a producer. The command line speaks to whoever typed.
fn code() -> Vec<(PathBuf, String)> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../jobs-runtime/src");
    let is_left_out =
        |path: &Path| ["cli", "bin", "testing"].iter().any(|part| path.ends_with(part));
    let (mut found, mut left) = (Vec::new(), vec![source]);
    while let Some(path) = left.pop() {
        if path.is_dir() {
            let inside = fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path());
            left.extend(inside.filter(|path| !is_left_out(path)));
        } else if path.extension().is_some_and(|end| end == "rs") {
            let text = fs::read_to_string(&path).unwrap();
            found.push((path, text));
        }
    }
    found
}

/// The text of a literal, from behind its opening quote, on one line and with `…` for what is filled in.
fn told(literal: &str) -> String {
    let mut text = String::new();
    let mut rest = literal.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '"' => break,
            '\\' if rest.peek() == Some(&'\n') => {
                while rest.next_if(|c| c.is_whitespace()).is_some() {}
            }
            '\\' => text.extend(rest.next()),
            '{' => {
                text.push('…');
                while rest.next().is_some_and(|c| c != '}') {}
            }
            c => text.push(c),
        }
    }
    text
}

/// The messages of a macro's calls: the last literal of each.
fn messages<'a>(code: &'a str, call: &'a str) -> impl Iterator<Item = String> + 'a {
    code.match_indices(call).map(move |(at, _)| {
        let body = &code[at + call.len()..];
        let end = body.find(");").or_else(|| body.find("),")).unwrap_or(body.len());
        let body = &body[..end];
        let quotes: Vec<usize> = body.match_indices('"').map(|(at, _)| at).collect();
        let opening = quotes.len().checked_sub(2).map(|nth| quotes[nth] + 1);
        told(&body[opening.unwrap_or(body.len())..])
    })
}

/// What the section on lines explains.
fn explained() -> Vec<&'static str> {
    let (_, section) = DOCUMENT.split_once("## Log lines").expect("the section");
    let entries: Vec<&str> = section
        .lines()
        .filter_map(|line| line.strip_prefix("**")?.split_once("**"))
        .map(|(entry, _)| entry)
        .collect();
    assert!(entries.len() > 20, "{entries:?}");
    entries
}

#[test]
fn each_warning_is_explained() {
    let entries = explained();
    let mut count = 0;
    for (path, code) in code() {
        for call in ["tracing::warn!(", "tracing::error!(", "Retried::new("] {
            for message in messages(&code, call).filter(|message| message != "…") {
                count += 1;
                let is_explained = entries.iter().any(|entry| message.starts_with(entry));
                assert!(is_explained, "{}: docs/errors.md lacks {message:?}", path.display());
            }
        }
    }
    assert!(count > 40, "only {count} messages were found");
}

#[test]
fn each_explained_line_is_written_somewhere() {
    let code: String = code().into_iter().map(|(_, code)| code).collect();
    let written: String = code.split('"').map(|part| told(part) + "\n").collect();
    for entry in explained() {
        let part = entry.split('…').max_by_key(|part| part.len()).expect("one part at least");
        assert!(written.contains(part.trim()), "nothing writes {entry:?}");
    }
}
