//! What the doctor says.

use serde::Serialize;

use crate::cli::visible::visible;

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Severity {
    /// Runs will be cut off, or the worker never hears of the stop.
    Error,
    /// It works, and worse than it could.
    Warning,
    /// For knowledge.
    Info,
}

/// One thing that was found.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Finding {
    pub(super) severity: Severity,
    /// Its stable name.
    code: &'static str,
    file: Option<String>,
    line: Option<usize>,
    what: String,
    /// What to write or do instead.
    fix: String,
}

impl Finding {
    pub(super) fn new(
        severity: Severity,
        code: &'static str,
        line: Option<usize>,
        what: impl Into<String>,
        fix: impl Into<String>,
    ) -> Self {
        Self { severity, code, file: None, line, what: what.into(), fix: fix.into() }
    }

    pub(super) fn in_file(self, name: &str) -> Self {
        Self { file: Some(name.to_owned()), ..self }
    }

    /// Two lines for people: where and what, and what to do.
    pub(super) fn told(&self) -> String {
        let place = match (&self.file, self.line) {
            (Some(file), Some(line)) => format!("{file}:{line}: "),
            (Some(file), None) => format!("{file}: "),
            (None, _) => String::new(),
        };
        let severity = match self.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Info => "info",
        };
        let what = visible(&format!("{place}{severity}[{}]: {}", self.code, self.what));
        format!("{what}\n    {}\n", visible(&self.fix))
    }
}
