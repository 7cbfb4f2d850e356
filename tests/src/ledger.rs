//! A record of runs outside every store: one line a start and an end, appended by the handlers.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;

/// A ledger that handlers append to.
#[derive(Debug, Clone)]
pub struct Ledger(Arc<File>);

/// One run as its handler told it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Told {
    /// When it started, in microseconds since the epoch.
    pub started_us: i64,
    /// When it ended; `None` when it never came to that.
    pub ended_us: Option<i64>,
}

/// All runs by job and claim number.
pub type Runs = BTreeMap<i64, BTreeMap<i64, Told>>;

impl Ledger {
    /// Opens the ledger at a path, which is made when absent.
    ///
    /// # Panics
    /// When the file can't be opened.
    pub fn open(path: &Path) -> Self {
        let file = OpenOptions::new().create(true).append(true).open(path);
        Self(Arc::new(file.expect("the ledger can be opened")))
    }

    /// Writes one line, in one write, so that a kill tears none.
    ///
    /// # Panics
    /// When the file can't be written.
    pub fn tell(&self, what: &str, job: i64, claim: i64, at_us: i64) {
        let line = format!("{what} {job} {claim} {at_us}\n");
        (&*self.0).write_all(line.as_bytes()).expect("the ledger can be written");
    }
}

/// Reads a ledger.
///
/// # Panics
/// When it can't be read although it is there, or a run started twice or ended without a start.
pub fn read(path: &Path) -> Runs {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        // No handler has started yet.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(error) => panic!("{} can't be read: {error}", path.display()),
    };
    let mut runs = Runs::new();
    for line in text.lines() {
        let mut words = line.split(' ');
        let what = words.next().expect("a word");
        let mut number = || words.next().and_then(|word| word.parse().ok()).expect("a number");
        let (job, claim, at_us): (i64, i64, i64) = (number(), number(), number());
        let of_job = runs.entry(job).or_default();
        if what == "start" {
            let before = of_job.insert(claim, Told { started_us: at_us, ended_us: None });
            assert_eq!(before, None, "job {job} started twice under claim {claim}");
        } else {
            let told = of_job.get_mut(&claim).expect("a run that ends has started");
            assert_eq!(told.ended_us.replace(at_us), None, "job {job} ended twice under {claim}");
        }
    }
    runs
}
