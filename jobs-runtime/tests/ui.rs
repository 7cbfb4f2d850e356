//! What the compiler says about mistakes around handlers, one a file, and what it takes; and that
//! every message, also those of the derives, is short enough to be read.

use std::{fs, path::Path};

/// A message has less than 15 lines.
const MOST_LINES: usize = 14;

/// Files with a longer message, its lines, and why no attribute of ours makes it shorter.
const EXCEPTIONS: [(&str, usize, &str); 8] = [
    ("future_not_send.stderr", 19, "rustc shows the value, the await and the bound"),
    ("future_not_send_fn.stderr", 19, "rustc shows the value, the await and the bound"),
    ("not_a_function.stderr", 16, "rustc shows the type and the bound"),
    ("not_a_job_impl.stderr", 23, "rustc shows the type, another job and the bound"),
    ("not_send.stderr", 24, "rustc shows every type on the way to the one that is not Send"),
    ("one_argument.stderr", 17, "rustc shows the function and the bound"),
    ("state_not_clone.stderr", 16, "rustc shows the type and how to derive Clone"),
    ("three_arguments.stderr", 17, "rustc shows the function and the bound"),
];

#[test]
fn each_mistake_is_told_and_the_rest_compiles() {
    let cases = trybuild::TestCases::new();
    cases.compile_fail("tests/ui/*.rs");
    cases.pass("tests/ui/pass/*.rs");
}

#[test]
fn every_message_has_less_than_15_lines() {
    let mut long = Vec::new();
    for folder in ["tests/ui", "../jobs-derive/tests/ui"] {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
        for file in fs::read_dir(folder).unwrap() {
            let path = file.unwrap().path();
            if path.extension().is_some_and(|it| it == "stderr") {
                let lines = longest_message(&fs::read_to_string(&path).unwrap());
                let name = path.file_name().unwrap().to_str().unwrap().to_owned();
                long.extend((lines > MOST_LINES).then_some((name, lines)));
            }
        }
    }
    long.sort();
    assert_eq!(long, EXCEPTIONS.map(|(name, lines, _)| (name.to_owned(), lines)));
}

/// The lines of the longest message of a file; an empty line stands between two.
fn longest_message(text: &str) -> usize {
    let messages = text.split("\n\nerror");
    messages.map(|message| message.trim_end().lines().count()).max().unwrap_or_default()
}
