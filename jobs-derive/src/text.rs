//! The rules of each text: kinds, versions, readers, queues, time-outs, retries and schedules.
//!
//! A rule answers with a value, or with what is wrong and what to write instead. The rules of
//! kinds, versions and queues are those of `jobs-core`, which this crate can't depend on because
//! that crate depends on it; a test holds the two together.

use crate::ast::{CatchUp, Name, Retry};

const MAX_KIND_BYTES: usize = 96;
const MAX_QUEUE_BYTES: usize = 255;
/// 365 days: a longer time is a misreading of the unit.
const MAX_SPAN_MS: u64 = 365 * 24 * 60 * 60 * 1000;

/// Why a text breaks its rule.
pub(crate) struct Broken {
    /// What is wrong, or the rule itself.
    pub(crate) why: String,
    /// What to write instead.
    pub(crate) help: String,
}

/// Checks a kind or an alias: `snake_case` segments joined by dots.
pub(crate) fn kind(text: &str) -> Result<(), Broken> {
    let Some(why) = why_no_kind(text) else { return Ok(()) };
    let likely = text.replace("::", ".").replace(['/', ':'], ".");
    let likely: Vec<String> = likely.split('.').map(snake_case).collect();
    let likely = likely.join(".");
    let help = if why_no_kind(&likely).is_none() {
        format!("write `\"{likely}\"`")
    } else {
        "write a name such as `billing.charge`".to_owned()
    };
    Err(Broken { why, help })
}

/// Checks a version: `MAJOR.MINOR.PATCH`, major at least 1.
pub(crate) fn version(text: &str) -> Result<[u32; 3], Broken> {
    let broken = |why: &str, likely: Option<String>| Broken {
        why: why.to_owned(),
        help: likely.map_or_else(
            || "write MAJOR.MINOR.PATCH, such as `version = \"1.0.0\"`".to_owned(),
            |likely| format!("write `version = \"{likely}\"`"),
        ),
    };
    let plain = text.split(['-', '+']).next().unwrap_or_default();
    if plain != text {
        let likely = version(plain).is_ok().then(|| plain.to_owned());
        return Err(broken("a version has no pre-release and no build part", likely));
    }
    match *numbers(text).as_slice() {
        [0, ref rest @ ..] => {
            let [minor, patch] = [0, 1].map(|at| rest.get(at).unwrap_or(&0));
            let why = "a stored shape is a promise, and 0.x makes none: the major is at least 1";
            Err(broken(why, Some(format!("1.{minor}.{patch}"))))
        }
        [major, minor, patch] => Ok([major, minor, patch]),
        [major, minor] => {
            Err(broken("a version has three parts", Some(format!("{major}.{minor}.0"))))
        }
        [major] => Err(broken("a version has three parts", Some(format!("{major}.0.0")))),
        _ => Err(broken("a version is three whole numbers without leading zeros", None)),
    }
}

/// Checks the oldest reader of a version: `MAJOR.MINOR`, the same major, no newer minor.
pub(crate) fn reader(text: &str, version: [u32; 3]) -> Result<[u32; 2], Broken> {
    let [own_major, own_minor, _] = version;
    let help = if own_minor == 0 {
        "leave `readable_by` out: the first minor of a major has no older reader".to_owned()
    } else {
        format!("write `readable_by = \"{own_major}.0\"`, up to \"{own_major}.{own_minor}\"")
    };
    let why = match numbers(text).as_slice() {
        [major, _] if *major != own_major => {
            format!("only readers of major {own_major} can be vouched for")
        }
        [_, minor] if *minor > own_minor => {
            format!("a reader that is newer than version {own_major}.{own_minor} needs no word")
        }
        [major, minor] => return Ok([*major, *minor]),
        _ => "a reader is MAJOR.MINOR".to_owned(),
    };
    Err(Broken { why, help })
}

/// Checks a queue: any short text without control characters.
pub(crate) fn queue(text: &str) -> Result<(), Broken> {
    if !text.is_empty() && text.len() <= MAX_QUEUE_BYTES && !text.chars().any(char::is_control) {
        return Ok(());
    }
    Err(Broken {
        why: "this can't name a queue".to_owned(),
        help: format!("write 1 to {MAX_QUEUE_BYTES} bytes without control characters"),
    })
}

/// Checks a time-out and answers its milliseconds.
pub(crate) fn timeout(text: &str) -> Result<u64, Broken> {
    span(text, "a time-out", Name::Timeout, "a run needs time", "for no limit")
}

/// Checks how often checkpoints are written at most, and answers the milliseconds.
pub(crate) fn every(text: &str) -> Result<u64, Broken> {
    let name = Name::CheckpointEvery;
    span(text, "the time between checkpoints", name, "this is no time", "to write each of them")
}

/// Checks a span: a whole number and a unit.
fn span(text: &str, what: &str, name: Name, zero: &str, without: &str) -> Result<u64, Broken> {
    let leave_out = || format!("leave `{}` out {without}", name.as_str());
    let (why, help) = match span_ms(text) {
        Some(0) => (zero.to_owned(), leave_out()),
        Some(ms) if ms <= MAX_SPAN_MS => return Ok(ms),
        Some(_) => (format!("{what} is at most 365 days"), leave_out()),
        None => (
            format!("{what} is a whole number and a unit: ms, s, m, h or d"),
            format!("write a text such as `{}`", name.example()),
        ),
    };
    Err(Broken { why, help })
}

/// Checks what follows from a checkpoint that moved; answers whether failures stay counted.
pub(crate) fn on_checkpoint(text: &str) -> Result<bool, Broken> {
    one_of_two(text, ["reset_failures", "keep_failures"])
}

/// Checks what follows from a checkpoint that is too old; answers whether the job restarts.
pub(crate) fn on_old_checkpoint(text: &str) -> Result<bool, Broken> {
    one_of_two(text, ["refuse", "restart"])
}

/// Answers whether it is the second word.
fn one_of_two(text: &str, [first, second]: [&str; 2]) -> Result<bool, Broken> {
    if text == first || text == second {
        return Ok(text == second);
    }
    let why = format!("this is neither `{first}` nor `{second}`");
    Err(Broken { why, help: format!("write `\"{second}\"`; `\"{first}\"` is the default") })
}

/// Checks how long a job may wait for its start and answers its milliseconds.
pub(crate) fn expires_in(text: &str) -> Result<u64, Broken> {
    let name = Name::ExpiresIn;
    span(text, "the wait for a start", name, "a job needs time to start", "for no limit")
}

/// Checks the waits between failures: `2s..1h` doubles, `30s` stays, `1s, 10s, 5m` goes by the list.
pub(crate) fn retry(text: &str) -> Result<Retry, Broken> {
    let wait = |text: &str| span_ms(text.trim()).filter(|ms| *ms <= MAX_SPAN_MS);
    let read = if let Some((first, cap)) = text.split_once("..") {
        let waits = wait(first).zip(wait(cap)).filter(|(first, cap)| 0 < *first && first <= cap);
        waits.map(|(first, cap)| Retry::Exponential { first, cap })
    } else if text.contains(',') {
        text.split(',').map(wait).collect::<Option<Vec<_>>>().map(Retry::Steps)
    } else {
        wait(text).map(Retry::Fixed)
    };
    read.ok_or_else(|| Broken {
        why: "these are no waits: each is a whole number and a unit, ms, s, m, h or d".to_owned(),
        help:
            "write `\"2s..1h\"` for waits that double up to the second one, `\"30s\"` for the same \
               wait each time, or a list such as `\"1s, 10s, 5m\"`, whose last one repeats"
                .to_owned(),
    })
}

/// Checks what is done about missed ticks: `none`, `latest`, or `all 10`.
pub(crate) fn catch_up(text: &str) -> Result<CatchUp, Broken> {
    let most = text.strip_prefix("all ").and_then(number_of);
    match (text, most) {
        ("none", _) => Ok(CatchUp::None),
        ("latest", _) => Ok(CatchUp::Latest),
        (_, Some(most @ 1..=1000)) => Ok(CatchUp::All(most)),
        _ => Err(Broken {
            why: "missed ticks are left out, or the latest of them made up for".to_owned(),
            help: "write `none`, `latest`, or `all 10` with a number from 1 to 1000".to_owned(),
        }),
    }
}

/// Checks a way to stop and answers its variant of `OnStop`.
pub(crate) fn on_stop(text: &str) -> Result<&'static str, Broken> {
    match text {
        "give_back" => Ok("GiveBack"),
        "finish" => Ok("Finish"),
        "undo" => Ok("Undo"),
        "at_most_once" => Ok("AtMostOnce"),
        _ => Err(Broken {
            why: format!("`{text}` is no way to stop"),
            help: "write `give_back`, `finish`, `undo` or `at_most_once`".to_owned(),
        }),
    }
}

/// The text that was most likely meant by a value of the wrong form: `2.1` for `"2.1.0"`.
pub(crate) fn likely(name: Name, value: &str) -> Option<String> {
    let fits = |text: &String| match name {
        Name::Kind | Name::Aliases => kind(text).is_ok(),
        Name::Version => version(text).is_ok(),
        Name::ReadableBy => numbers(text).len() == 2,
        Name::Queue => queue(text).is_ok() && !text.contains(['"', '(']),
        Name::Timeout => timeout(text).is_ok(),
        Name::ExpiresIn => expires_in(text).is_ok(),
        Name::Retry => retry(text).is_ok(),
        Name::Unique => syn::parse_str::<syn::Ident>(text).is_ok(),
        Name::OnStop => on_stop(text).is_ok(),
        Name::CheckpointEvery => every(text).is_ok(),
        Name::OnCheckpoint => on_checkpoint(text).is_ok(),
        Name::OnOldCheckpoint => on_old_checkpoint(text).is_ok(),
        Name::Previous
        | Name::Priority
        | Name::MaxFailures
        | Name::Schedule
        | Name::CatchUp
        | Name::Checkpoint
        | Name::Crate => false,
    };
    ["", ".0", ".0.0", "s"].iter().map(|end| value.to_owned() + end).find(fits)
}

/// A Rust name as a segment of a kind: `HTTPPing2` becomes `http_ping2`.
pub(crate) fn snake_case(name: &str) -> String {
    let mut snake = String::new();
    let letters: Vec<char> = name.chars().collect();
    for (at, letter) in letters.iter().enumerate() {
        let starts_word = letter.is_uppercase()
            && at > 0
            && (!letters[at - 1].is_uppercase()
                || letters.get(at + 1).is_some_and(|next| next.is_lowercase()));
        if (starts_word || *letter == '-') && !snake.ends_with('_') {
            snake.push('_');
        }
        if *letter != '-' {
            snake.extend(letter.to_lowercase());
        }
    }
    snake.trim_matches('_').to_owned()
}

fn why_no_kind(text: &str) -> Option<String> {
    if text.is_empty() {
        Some("an empty kind names nothing".to_owned())
    } else if text.len() > MAX_KIND_BYTES {
        Some(format!("a kind has at most {MAX_KIND_BYTES} bytes, this one {}", text.len()))
    } else if text == "jobs" || text.starts_with("jobs.") {
        Some("`jobs` and all below `jobs.` belong to the framework".to_owned())
    } else if !text.split('.').all(is_segment) {
        Some("a kind is snake_case segments joined by dots, each starting with a letter".to_owned())
    } else {
        None
    }
}

fn is_segment(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_lowercase())
        && text.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_'))
}

/// The milliseconds of a whole number and its unit.
fn span_ms(text: &str) -> Option<u64> {
    let number = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let unit_ms = match &text[number.len()..] {
        "ms" => 1,
        "s" => 1000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return None,
    };
    Some(u64::from(number_of(number)?) * unit_ms)
}

/// The numbers between the dots; none when any of them is not a plain number.
fn numbers(text: &str) -> Vec<u32> {
    text.split('.').map(number_of).collect::<Option<_>>().unwrap_or_default()
}

fn number_of(text: &str) -> Option<u32> {
    let is_canonical = text == "0" || !text.starts_with('0');
    let is_digits = text.bytes().all(|byte| byte.is_ascii_digit());
    if is_canonical && is_digits { text.parse().ok() } else { None }
}
