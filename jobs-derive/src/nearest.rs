//! Guesses which option a wrong name meant.

use crate::ast::{Derive, Name};

/// The option of the derive that a name most likely meant, if any is likely.
pub(crate) fn meant(name: &str, derive: Derive) -> Option<Name> {
    let takes = derive.takes().iter().copied();
    let farthest = (name.len() / 3).max(1);
    elsewhere(name).filter(|option| derive.takes().contains(option)).or_else(|| {
        takes
            .map(|option| (distance(name, option.as_str()), option))
            .filter(|(distance, _)| *distance <= farthest)
            .min_by_key(|(distance, _)| *distance)
            .map(|(_, option)| option)
    })
}

/// What other job systems call our options.
fn elsewhere(name: &str) -> Option<Name> {
    match name {
        "name" | "type" | "id" => Some(Name::Kind),
        "min_reader" | "compatible_with" | "readable_from" => Some(Name::ReadableBy),
        "past" | "from" | "upcast" | "upcast_from" => Some(Name::Previous),
        "alias" | "renamed_from" => Some(Name::Aliases),
        "attempts" | "max_attempts" | "retries" | "max_retries" => Some(Name::MaxFailures),
        "stop" | "at_most_once" | "on_interrupt" | "on_shutdown" => Some(Name::OnStop),
        "time_limit" | "deadline" => Some(Name::Timeout),
        "throttle" | "checkpoint_interval" => Some(Name::CheckpointEvery),
        "strict" => Some(Name::OnCheckpoint),
        _ => None,
    }
}

/// How many letters are to be added, dropped, replaced or swapped with their neighbour.
fn distance(from: &str, to: &str) -> usize {
    let (from, to) = (from.as_bytes(), to.as_bytes());
    // `rows[i][j]` turns the first i letters of one into the first j of the other.
    let mut rows: Vec<Vec<usize>> = vec![(0..=to.len()).collect()];
    for i in 1..=from.len() {
        let mut row = vec![i];
        for j in 1..=to.len() {
            let above = &rows[i - 1];
            let replace = above[j - 1] + usize::from(from[i - 1] != to[j - 1]);
            let mut best = replace.min(above[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && from[i - 1] == to[j - 2] && from[i - 2] == to[j - 1] {
                best = best.min(rows[i - 2][j - 2] + 1);
            }
            row.push(best);
        }
        rows.push(row);
    }
    rows[from.len()][to.len()]
}
