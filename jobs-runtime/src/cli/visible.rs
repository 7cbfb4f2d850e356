//! Text that others stored, as a terminal may be given it.
//!
//! A payload, an error text or a queue's name can hold anything: escape sequences that rewrite the
//! screen, marks that turn the reading direction, characters without a width. None of them reaches a
//! terminal.

use std::fmt::Write as _;

/// Whether a character has an effect on a terminal other than showing itself.
fn is_inert(c: char) -> bool {
    !c.is_control()
        && !matches!(c,
            '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}')
}

/// The text with every such character written out, as `\u{1b}`; line breaks and tabs too.
pub(super) fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' => shown.push_str("\\n"),
            '\r' => shown.push_str("\\r"),
            '\t' => shown.push_str("\\t"),
            c if is_inert(c) => shown.push(c),
            c => shown.extend(c.escape_unicode()),
        }
    }
    shown
}

/// JSON text with every such character as an escape of JSON, so that its value stays the same.
///
/// Outside of its texts JSON has none of them but white space, of which a carriage return becomes a
/// blank.
pub(super) fn visible_json(json: &str) -> String {
    let mut shown = String::with_capacity(json.len());
    let mut units = [0; 2];
    for c in json.chars() {
        match c {
            '\n' | '\t' => shown.push(c),
            '\r' => shown.push(' '),
            c if is_inert(c) => shown.push(c),
            c => {
                for unit in c.encode_utf16(&mut units) {
                    let _ = write!(shown, "\\u{unit:04x}");
                }
            }
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_obey_is_written_out() {
        let cases = [
            ("plain, größer, 語, 👍", "plain, größer, 語, 👍"),
            ("\u{1b}[31mred\u{7}", "\\u{1b}[31mred\\u{7}"),
            ("c1 \u{9b}2J", "c1 \\u{9b}2J"),
            ("turned \u{202e}txt", "turned \\u{202e}txt"),
            ("two\nlines\r\t", "two\\nlines\\r\\t"),
            ("\u{feff}\u{200b}", "\\u{feff}\\u{200b}"),
        ];
        for (text, shown) in cases {
            assert_eq!(visible(text), shown);
        }
    }

    #[test]
    fn escaped_json_has_the_same_value() {
        let text =
            "{\r\n\t\"a\": \"\u{9b}2J \u{202e}x\u{7f} \u{e0041}\",\n \"n\": 1970670598291982290}";
        let shown = visible_json(text);
        assert!(shown.chars().all(|c| c == '\n' || c == '\t' || is_inert(c)), "{shown}");
        let value = |text| serde_json::from_str::<serde_json::Value>(text).unwrap();
        assert_eq!(value(&shown), value(text));
    }
}
