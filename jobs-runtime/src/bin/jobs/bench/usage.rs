//! What this process used, as Linux tells in `/proc`; elsewhere nothing is told.

use std::time::Duration;

/// The processor time of all threads so far, in steps of 10 ms.
pub(crate) fn cpu() -> Option<Duration> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // Behind the name, which may hold anything: the 12th and 13th field in ticks of 10 ms (proc(5);
    // Linux shows a hundredth of a second to programs on every architecture that we know).
    let (_, fields) = stat.rsplit_once(')')?;
    let ticks = fields.split_whitespace().skip(11).take(2).map(str::parse::<u64>);
    Some(Duration::from_millis(10 * ticks.sum::<Result<u64, _>>().ok()?))
}

/// The largest resident memory so far, in MiB.
pub(crate) fn peak_mib() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u32 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(f64::from(kib) / 1024.0)
}
