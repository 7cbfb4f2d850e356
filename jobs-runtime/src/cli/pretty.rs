//! JSON text laid out for people, token by token: a number is never parsed, so no digit changes.

/// Lays out a JSON text with two blanks a level. What is no JSON comes back as it is.
pub(super) fn pretty(json: &str) -> String {
    if serde_json::from_str::<&serde_json::value::RawValue>(json).is_err() {
        return json.to_owned();
    }
    let mut layout = Layout { text: String::with_capacity(json.len() * 2), depth: 0 };
    let mut rest = json.trim().chars().peekable();
    let mut is_in_text = false;
    while let Some(c) = rest.next() {
        match c {
            '\\' if is_in_text => {
                layout.text.push(c);
                layout.text.extend(rest.next());
            }
            '"' => {
                is_in_text = !is_in_text;
                layout.text.push(c);
            }
            _ if is_in_text => layout.text.push(c),
            '{' | '[' => {
                while rest.peek().is_some_and(char::is_ascii_whitespace) {
                    rest.next();
                }
                let end = rest.next_if(|next| matches!(next, '}' | ']'));
                layout.open(c, end);
            }
            '}' | ']' => layout.close(c),
            ',' => layout.next(),
            ':' => layout.text.push_str(": "),
            c if c.is_ascii_whitespace() => {}
            c => layout.text.push(c),
        }
    }
    layout.text
}

struct Layout {
    text: String,
    depth: usize,
}

impl Layout {
    fn open(&mut self, bracket: char, end: Option<char>) {
        self.text.push(bracket);
        if let Some(end) = end {
            self.text.push(end);
        } else {
            self.depth += 1;
            self.line();
        }
    }

    fn close(&mut self, bracket: char) {
        self.depth = self.depth.saturating_sub(1);
        self.line();
        self.text.push(bracket);
    }

    fn next(&mut self) {
        self.text.push(',');
        self.line();
    }

    /// Deeper than this the layout would cost more than it shows.
    fn line(&mut self) {
        const DEEPEST: usize = 32;
        self.text.push('\n');
        self.text.extend(std::iter::repeat_n("  ", self.depth.min(DEEPEST)));
    }
}

#[cfg(test)]
mod tests {
    use super::pretty;

    #[test]
    fn every_digit_stays() {
        let json = r#"{"id":1970670598291982290,"max":18446744073709551615,"min":-9223372036854775808,
            "f":0.1,"e":1e400,"s":"a, {b}: \"c\\","n":[],"o":{ },"l":[1,[2,null]]}"#;
        insta::assert_snapshot!(pretty(json), @r#"
        {
          "id": 1970670598291982290,
          "max": 18446744073709551615,
          "min": -9223372036854775808,
          "f": 0.1,
          "e": 1e400,
          "s": "a, {b}: \"c\\",
          "n": [],
          "o": {},
          "l": [
            1,
            [
              2,
              null
            ]
          ]
        }
        "#);
    }

    #[test]
    fn what_is_no_json_stays_as_it_is() {
        assert_eq!(pretty("{\"a\": "), "{\"a\": ");
    }
}
