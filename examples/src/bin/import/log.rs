//! The access log: made when absent, read in batches, added up.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead as _, BufReader, BufWriter, Seek as _, SeekFrom, Write as _};
use std::path::Path;

use anyhow::Context;
use jobs_runtime::{Random as _, SeededRandom, below};

/// What lines of a log add up to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Totals {
    /// Hits and bytes of each page.
    pub(crate) pages: BTreeMap<String, (i64, i64)>,
    /// Hits of each status.
    pub(crate) statuses: BTreeMap<i64, i64>,
}

/// Lines that follow each other.
pub(crate) struct Batch {
    pub(crate) totals: Totals,
    pub(crate) lines: u64,
    /// Where the next one begins.
    pub(crate) end: u64,
}

impl Totals {
    fn add(&mut self, line: &str) -> Option<()> {
        let (_, request) = line.split_once('"')?;
        let (request, rest) = request.split_once('"')?;
        let page = request.split(' ').nth(1)?;
        let mut rest = rest.split_whitespace();
        let (status, bytes) = (rest.next()?.parse().ok()?, rest.next()?.parse::<i64>().ok()?);
        let of_page = self.pages.entry(page.to_owned()).or_default();
        of_page.0 += 1;
        of_page.1 += bytes;
        *self.statuses.entry(status).or_default() += 1;
        Some(())
    }
}

/// Reads at most so many lines from a place in the log.
pub(crate) fn read(file: &Path, from: u64, most: u64) -> anyhow::Result<Batch> {
    let mut log = BufReader::new(File::open(file)?);
    log.seek(SeekFrom::Start(from))?;
    let mut batch = Batch { totals: Totals::default(), lines: 0, end: from };
    let mut line = String::new();
    while batch.lines < most {
        line.clear();
        let bytes = log.read_line(&mut line)?;
        if bytes == 0 {
            break;
        }
        let added = batch.totals.add(&line);
        added.with_context(|| format!("not a line of an access log: {line:?}"))?;
        batch.lines += 1;
        batch.end += u64::try_from(bytes)?;
    }
    Ok(batch)
}

/// Makes a log of so many lines where there is none. The same seed makes the same log.
pub(crate) fn make(file: &Path, lines: u64) -> anyhow::Result<()> {
    if file.exists() {
        return Ok(());
    }
    eprintln!("making {} with {lines} lines", file.display());
    let folder = file.parent().context("the log needs a folder")?;
    std::fs::create_dir_all(folder)?;
    let random = SeededRandom::new(1);
    let draw = |bound| below(random.draw(), bound);
    // Under another name first, so that a killed process leaves no half of a log.
    let unfinished = file.with_extension("unfinished");
    let mut log = BufWriter::new(File::create(&unfinished)?);
    for second in 0..lines {
        let page = match draw(4) {
            0 => "/".to_owned(),
            1 => format!("/search?q={}", draw(40)),
            _ => format!("/products/{}", draw(100)),
        };
        let status = [200, 200, 200, 200, 304, 404, 500][usize::try_from(draw(7))?];
        let (minute, hour) = (second / 60 % 60, second / 3_600 % 24);
        let (second, bytes) = (second % 60, draw(50_000));
        let host = format!("203.0.113.{}", draw(256));
        let time = format!("12/Oct/2026:{hour:02}:{minute:02}:{second:02} +0000");
        writeln!(log, "{host} - - [{time}] \"GET {page} HTTP/1.1\" {status} {bytes}")?;
    }
    log.into_inner()?.sync_all()?;
    Ok(std::fs::rename(&unfinished, file)?)
}
