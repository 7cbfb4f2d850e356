//! Rows as values. Anyone may have written them, so nothing here fails for what a row holds: numbers
//! are held in their range, and a text that is no UTF-8 is marked.

use jobs_core::{
    Budget, COUNTER_MAX, ClaimNumber, Counters, Event, EventKind, Fence, JobId, JobRecord,
    Priority, RefusedBy, State, StoredCheckpoint, Timestamp, UniqueWhile, WorkerId,
};
use sqlx::Row;
use sqlx::sqlite::SqliteRow;

use super::error::Result;

/// Stands before a text that is no UTF-8. No JSON starts with it, so a payload that was not text
/// never decodes as one that is.
const NOT_TEXT: char = '\u{FFFD}';

/// Reads the columns of a row from the left.
pub(super) struct Columns<'a> {
    row: &'a SqliteRow,
    next: usize,
}

impl<'a> Columns<'a> {
    pub(super) const fn new(row: &'a SqliteRow) -> Self {
        Self { row, next: 0 }
    }

    fn at(&mut self) -> usize {
        self.next += 1;
        self.next - 1
    }

    /// # Errors
    /// Only when the statement has no such column: a bug of ours.
    pub(super) fn number(&mut self) -> Result<i64, sqlx::Error> {
        Ok(self.number_or_null()?.unwrap_or_default())
    }

    pub(super) fn number_or_null(&mut self) -> Result<Option<i64>, sqlx::Error> {
        let at = self.at();
        self.row.try_get_unchecked(at)
    }

    pub(super) fn flag(&mut self) -> Result<bool, sqlx::Error> {
        Ok(self.number()? != 0)
    }

    pub(super) fn instant(&mut self) -> Result<Timestamp, sqlx::Error> {
        self.number().map(Timestamp::from_micros)
    }

    pub(super) fn instant_or_null(&mut self) -> Result<Option<Timestamp>, sqlx::Error> {
        Ok(self.number_or_null()?.map(Timestamp::from_micros))
    }

    pub(super) fn text(&mut self) -> Result<String, sqlx::Error> {
        Ok(self.text_or_null()?.unwrap_or_default())
    }

    pub(super) fn text_or_null(&mut self) -> Result<Option<String>, sqlx::Error> {
        let at = self.at();
        let bytes: Option<&[u8]> = self.row.try_get_unchecked(at)?;
        Ok(bytes.map(text))
    }

    /// A text as it is stored, whether it is UTF-8 or not; nothing where there is none.
    pub(super) fn bytes(&mut self) -> Result<&'a [u8], sqlx::Error> {
        let at = self.at();
        let bytes: Option<&[u8]> = self.row.try_get_unchecked(at)?;
        Ok(bytes.unwrap_or_default())
    }

    pub(super) fn count(&mut self) -> Result<u32, sqlx::Error> {
        self.number().map(count)
    }

    /// How many there are of something.
    pub(super) fn amount(&mut self) -> Result<u64, sqlx::Error> {
        Ok(self.number()?.max(0).unsigned_abs())
    }

    pub(super) fn counters(&mut self) -> Result<Counters, sqlx::Error> {
        Ok(Counters {
            failures: self.count()?,
            interruptions: self.count()?,
            crashes: self.count()?,
            refusals: self.count()?,
            snoozes: self.count()?,
        })
    }

    pub(super) fn budget(&mut self) -> Result<Budget, sqlx::Error> {
        Ok(budget(self.number()?, self.number_or_null()?))
    }

    pub(super) fn refused(&mut self) -> Result<Option<RefusedBy>, sqlx::Error> {
        let (reason, build) = (self.text_or_null()?, self.text_or_null()?);
        Ok(reason.map(|reason| RefusedBy { reason, build: build.unwrap_or_default() }))
    }

    pub(super) fn fence(&mut self) -> Result<Fence, sqlx::Error> {
        Ok(Fence { job: JobId(self.number()?), claim: ClaimNumber(self.number()?) })
    }

    /// The schema keeps states from having any other name.
    pub(super) fn state(&mut self) -> Result<State, sqlx::Error> {
        let name = self.text()?;
        State::from_name(&name)
            .ok_or_else(|| sqlx::Error::Decode(format!("{name:?} is not a state").into()))
    }

    /// A version, an oldest reader, a text and a number, all null where there is no checkpoint.
    pub(super) fn checkpoint(&mut self) -> Result<Option<StoredCheckpoint>, sqlx::Error> {
        let (version, min_reader) = (self.text_or_null()?, self.text_or_null()?);
        let (text, number) = (self.text()?, self.number()?);
        Ok(version.map(|version| StoredCheckpoint { version, min_reader, text, number }))
    }

    pub(super) fn record(&mut self) -> Result<JobRecord, sqlx::Error> {
        Ok(JobRecord {
            id: JobId(self.number()?),
            state: self.state()?,
            queue: self.text()?,
            kind: self.text()?,
            version: self.text()?,
            min_reader: self.text_or_null()?,
            payload: self.text()?,
            headers: self.text_or_null()?,
            unique_key: self.text_or_null()?,
            priority: Priority::clamped(self.number()?),
            claim: ClaimNumber(self.number()?),
            worker: self.number_or_null()?.map(WorkerId),
            counters: self.counters()?,
            budget: self.budget()?,
            refused: self.refused()?,
            error_class: self.text_or_null()?,
            error: self.text_or_null()?,
            build: self.text_or_null()?,
            enqueued_at: self.instant()?,
            due_at: self.instant()?,
            claimed_at: self.instant_or_null()?,
            finished_at: self.instant_or_null()?,
            unique_while: UniqueWhile::from_name(self.text_or_null()?.as_deref()),
            expires_at: self.instant_or_null()?,
            key_number: self.count()?,
            progress: self.text_or_null()?,
            result: self.text_or_null()?,
            checkpoint: self.checkpoint()?,
        })
    }

    /// An event; `None` when its kind has a name that this build does not know.
    pub(super) fn event(&mut self) -> Result<Option<Event>, sqlx::Error> {
        let (number, at, claim) = (self.number()?, self.instant()?, ClaimNumber(self.number()?));
        let (kind, class, text) = (EventKind::from_name(&self.text()?), self.text()?, self.text()?);
        let worker = self.number_or_null()?.map(WorkerId);
        let build = self.text_or_null()?;
        Ok(kind.map(|kind| Event { number, at, claim, kind, class, text, worker, build }))
    }
}

/// Holds a stored number in the range of a counter.
pub(super) fn count(stored: i64) -> u32 {
    u32::try_from(stored.max(0)).unwrap_or(COUNTER_MAX).min(COUNTER_MAX)
}

pub(super) fn budget(max_failures: i64, max_interruptions: Option<i64>) -> Budget {
    Budget {
        max_failures: count(max_failures).max(1),
        max_interruptions: max_interruptions.map(count),
    }
}

/// A text from what is stored as one.
pub(super) fn text(bytes: &[u8]) -> String {
    if let Ok(text) = std::str::from_utf8(bytes) {
        return text.to_owned();
    }
    let mut marked = NOT_TEXT.to_string();
    marked.push_str(&String::from_utf8_lossy(bytes));
    marked
}
