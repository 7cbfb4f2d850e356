//! Where answers go: standard output, as a table or as JSON.

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};

use comfy_table::{Attribute, Cell, Color, ContentArrangement, Table, presets};
use serde::Serialize;

use super::exit::{Exit, Failure, Result};
use super::visible::{visible, visible_json};
use crate::State;

/// How answers are written.
#[derive(Debug, Clone, Copy)]
pub(super) struct Output {
    pub(super) is_json: bool,
    is_terminal: bool,
    has_colours: bool,
}

impl Output {
    /// Colours only on a terminal, and not where `NO_COLOR` is set to anything
    /// (<https://no-color.org>) or the terminal is `dumb`.
    pub(super) fn of_process(is_json: bool) -> Self {
        let is_terminal = io::stdout().is_terminal();
        let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        Self { is_json, is_terminal, has_colours: is_terminal && !is_set("NO_COLOR") && !is_dumb }
    }

    pub(super) const fn is_terminal(self) -> bool {
        self.is_terminal
    }

    /// Writes a table. In a terminal each row is one line, cut to its width; in a pipe nothing is
    /// cut.
    pub(super) fn table(self, header: &[&str], rows: Vec<Vec<Shown>>) -> Result<()> {
        let mut table = Table::new();
        table.load_style(presets::NOTHING);
        if self.is_terminal {
            table.set_content_arrangement(ContentArrangement::Dynamic);
        } else {
            table.force_no_tty();
        }
        if self.has_colours {
            table.enforce_styling();
        }
        table.set_header(header.iter().map(|name| self.bold(Cell::new(name))));
        for row in rows {
            let mut row = comfy_table::Row::from(row.into_iter().map(|shown| self.cell(&shown)));
            if self.is_terminal {
                row.max_height(1);
            }
            table.add_row(row);
        }
        for column in table.column_iter_mut() {
            column.set_padding((0, 2));
        }
        print(&trimmed(&table.to_string()))
    }

    /// A line above a part of an answer.
    pub(super) fn heading(self, text: &str) -> Result<()> {
        let text = visible(text);
        if self.has_colours {
            print(&format!("\n\u{1b}[1m{text}\u{1b}[0m\n"))
        } else {
            print(&format!("\n{text}\n"))
        }
    }

    fn bold(self, cell: Cell) -> Cell {
        if self.has_colours { cell.add_attribute(Attribute::Bold) } else { cell }
    }

    fn cell(self, shown: &Shown) -> Cell {
        let cell = Cell::new(visible(&shown.text));
        match shown.colour.filter(|_| self.has_colours) {
            Some(colour) => cell.fg(colour),
            None => cell,
        }
    }
}

/// A cell of a table.
#[derive(Debug, Clone)]
pub(super) struct Shown {
    text: String,
    colour: Option<Color>,
}

impl Shown {
    pub(super) fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), colour: None }
    }

    /// A dash where there is nothing.
    pub(super) fn maybe(text: Option<impl Into<String>>) -> Self {
        text.map_or_else(|| Self::new("-"), Self::new)
    }

    /// A number that draws the eye when it is not zero.
    pub(super) fn alarming(count: u64) -> Self {
        Self { text: count.to_string(), colour: (count > 0).then_some(Color::Red) }
    }

    pub(super) fn coloured(text: impl Into<String>, colour: Color) -> Self {
        Self { text: text.into(), colour: Some(colour) }
    }

    pub(super) fn state(state: State) -> Self {
        let colour = match state {
            State::Scheduled => Color::Blue,
            State::Ready => Color::Cyan,
            State::Running => Color::Yellow,
            State::Succeeded => Color::Green,
            State::Dead => Color::Red,
            State::Cancelled => Color::DarkGrey,
        };
        Self::coloured(state.as_str(), colour)
    }
}

fn trimmed(table: &str) -> String {
    table.lines().flat_map(|line| [line.trim_end(), "\n"]).collect()
}

/// Whether the reader of standard output has left.
static HAS_LEFT: AtomicBool = AtomicBool::new(false);

/// Writes text that is already visible. A reader that has left, as `head` does once it has what it wanted,
/// takes nothing from what the command does or from its exit status.
pub(super) fn print(text: &str) -> Result<()> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
            HAS_LEFT.store(true, Ordering::Relaxed);
            Ok(())
        }
        written => written.map_err(|error| {
            Failure::new(Exit::TryAgain, format!("the answer can't be written: {error}"))
        }),
    }
}

/// Whether nobody reads any more what is printed, as far as has been found out: for what has no other end.
pub(super) fn has_reader_left() -> bool {
    HAS_LEFT.load(Ordering::Relaxed)
}

/// Writes one JSON value.
pub(super) fn json<T: Serialize>(value: &T) -> Result<()> {
    let json = serde_json::to_string_pretty(value).expect("an answer is plain JSON");
    print(&format!("{}\n", visible_json(&json)))
}

/// Writes one JSON value in one line.
pub(super) fn json_line<T: Serialize>(value: &T) -> Result<()> {
    let json = serde_json::to_string(value).expect("an answer is plain JSON");
    print(&format!("{}\n", visible_json(&json).replace('\n', " ")))
}

/// Writes a JSON array, an element a line.
pub(super) fn json_lines<T: Serialize>(values: impl IntoIterator<Item = T>) -> Result<()> {
    let line = |value| serde_json::to_string(&value).expect("an answer is plain JSON");
    let lines: Vec<String> = values.into_iter().map(line).collect();
    if lines.is_empty() {
        return print("[]\n");
    }
    let lines: Vec<String> =
        lines.iter().map(|line| visible_json(line).replace('\n', " ")).collect();
    print(&format!("[\n{}\n]\n", lines.join(",\n")))
}

/// Writes names and what they are, a line each.
pub(super) fn facts(facts: &[(&str, String)]) -> Result<()> {
    let width = facts.iter().map(|(name, _)| name.len()).max().unwrap_or_default();
    let line = |(name, fact): &(&str, String)| format!("{name:width$}  {fact}\n");
    print(&facts.iter().map(line).collect::<Vec<_>>().concat())
}

/// Says something beside the answer. Nobody may be there to hear it.
pub(super) fn say(text: &str) {
    drop(writeln!(io::stderr().lock(), "{}", visible(text)));
}

/// Asks a person for consent to what can't be undone.
///
/// # Errors
/// [`Exit::WrongCommand`] where there is no terminal to ask at; [`Exit::Finding`] where the answer is
/// not yes.
pub(super) fn consent(question: &str, is_given: bool) -> Result<()> {
    if is_given {
        return Ok(());
    }
    if !(io::stdin().is_terminal() && io::stderr().is_terminal()) {
        let what = "There is no terminal to ask at; if so, add `--yes`";
        return Err(Failure::wrong(format!("{question} {what}")));
    }
    drop(write!(io::stderr().lock(), "{} [y/N] ", visible(question)));
    let mut answer = String::new();
    let read = io::stdin().lock().read_line(&mut answer);
    match (read, answer.trim()) {
        (Ok(_), "y" | "Y" | "yes") => Ok(()),
        _ => Err(Failure::finding("nothing was changed")),
    }
}
