//! What only one worker at a time does for all.

/// A duty that at most one worker has.
///
/// It is kept for as long as the worker's own lease is open and it does not leave: so it needs no
/// renewal and no clock, and passes on when its holder is swept. A worker gives it back at the first
/// step of its drain. What is done under a duty must stay right where two do it, as when the holder
/// hangs: the duty saves work, the fences keep it right.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Duty {
    /// Enqueues what is due by the schedules.
    Schedule,
    /// Runs suspects, each alone.
    Suspects,
}

impl Duty {
    /// All duties.
    pub const ALL: [Self; 2] = [Self::Schedule, Self::Suspects];

    /// The duty's stable name, as stored and shown.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Schedule => "schedule",
            Self::Suspects => "suspects",
        }
    }
}
