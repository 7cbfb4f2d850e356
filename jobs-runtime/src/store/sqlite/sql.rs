//! The statements, one file each. PostgreSQL has the same names: a diff of the two folders documents
//! the dialects.
//!
//! A limit is always `LIMIT ?n + 0`: SQLite plans a statement anew whenever the value of a bare
//! parameter there was bound, which costs more than claiming ten jobs.

macro_rules! statements {
    ($($(#[$doc:meta])* $name:ident = $file:literal;)*) => {
        $(pub(super) const $name: &str = include_str!(concat!("sql/", $file, ".sql"));)*

        /// Every statement with the name of its file, for the test that prepares them all.
        pub const STATEMENTS: &[(&str, &str)] = &[$(($file, $name)),*];
    };
}

statements! {
    ABANDON = "abandon";
    ADVANCE = "advance";
    BRIEFS = "briefs";
    BRIEFS_OF = "briefs_of";
    BUILDS = "builds";
    CANCEL_WAITING = "cancel_waiting";
    CHECKPOINT_MOVED = "checkpoint_moved";
    CHECKPOINT_ONE = "checkpoint_one";
    CHECKPOINT_SAVE = "checkpoint_save";
    CLAIM = "claim";
    CLAIM_ALONE = "claim_alone";
    CLAIM_HEAD = "claim_head";
    CLAIM_TAKE = "claim_take";
    CLAIMED_CHECKPOINTS = "claimed_checkpoints";
    CLOSE = "close";
    COUNT_DUE = "count_due";
    COUNT_EVENTS = "count_events";
    COUNTS = "counts";
    DATA_VERSION = "data_version";
    DATABASE_FILE = "database_file";
    DEPTH_ROUTES = "depth_routes";
    DEPTH_RUNNING = "depth_running";
    DEPTH_STATES = "depth_states";
    DECLARE = "declare";
    DELETE_FINISHED = "delete_finished";
    DONE = "done";
    DUE = "due";
    END_WAITING = "end_waiting";
    ENQUEUE = "enqueue";
    ENQUEUE_ALIKE = "enqueue_alike";
    ENQUEUE_RENEW = "enqueue_renew";
    ENQUEUE_SCOPED = "enqueue_scoped";
    ENQUEUE_TWINS = "enqueue_twins";
    EVENTS = "events";
    EXHAUSTED_ENDED = "exhausted";
    EXPIRE = "expire";
    EXPIRED_JOBS = "expired";
    FORGET_ABANDONED = "forget_abandoned";
    FORGET_CANCEL_REQUESTS = "forget_cancel_requests";
    FORGET_CHECKPOINTS = "forget_checkpoints";
    FORGET_TICKS = "forget_ticks";
    GIVE_BACK_DUTY = "give_back_duty";
    HAS_EXHAUSTED = "has_exhausted";
    HELD = "held";
    HELD_RUNS = "held_runs";
    JOB = "job";
    JOBS = "jobs";
    LEAVE = "leave";
    LOST_RUNS = "lost_runs";
    MAKE_READY = "make_ready";
    META = "meta";
    META_ADVANCE = "meta_advance";
    META_BEGIN = "meta_begin";
    NEWEST = "newest";
    NEWEST_BRIEFS = "newest_briefs";
    NEXT_DUE = "next_due";
    NOTE_PROGRESS = "note_progress";
    OLD = "old";
    OPEN_WORKERS = "open_workers";
    OPERATE_READ = "operate_read";
    PAUSE = "pause";
    PAUSED = "paused";
    PROMOTE = "promote";
    PRUNE = "prune";
    PRUNE_BUILDS = "prune_builds";
    PRUNE_CHECKPOINTS = "prune_checkpoints";
    PRUNE_DECLARATIONS = "prune_declarations";
    PRUNE_EVENTS = "prune_events";
    PRUNE_WORKERS = "prune_workers";
    PUBLISH = "publish";
    READY_ROUTES = "ready_routes";
    RECALL = "recall";
    RECORD_EVENTS = "record_events";
    REDRIVE = "redrive";
    REFUSED = "refused";
    REFUSED_ROUTES = "refused_routes";
    REGISTER = "register";
    RENEW = "renew";
    REPORT = "report";
    REQUEST_CANCEL = "request_cancel";
    REREAD = "reread";
    RESCHEDULE = "reschedule";
    RESUME = "resume";
    ROUTES = "routes";
    RUN_NOW = "run_now";
    RUNNING_IN = "running_in";
    SCHEDULE_ADD = "schedule_add";
    SCHEDULES = "schedules";
    SETTLE = "settle";
    SETTLE_DONE = "settle_done";
    SETTLE_READ = "settle_read";
    STANDING = "standing";
    STRAND = "strand";
    STRANDED_JOBS = "stranded";
    TAKE_BACK = "take_back";
    TAKE_DUTY = "take_duty";
    TICK = "tick";
    TICKED = "ticked";
    TICKS = "ticks";
    UNDECLARE = "undeclare";
    UNREADABLE = "unreadable";
    WAITING = "waiting";
    WORKER_OPEN = "worker_open";
    WORKERS = "workers";
}

pub(super) const BEGIN: &str = "BEGIN IMMEDIATE";
pub(super) const COMMIT: &str = "COMMIT";
pub(super) const ROLLBACK: &str = "ROLLBACK";

/// A part of a transaction that may be undone alone.
pub(super) const SAVEPOINT: &str = "SAVEPOINT jobs_part";
pub(super) const RELEASE: &str = "RELEASE jobs_part";
pub(super) const UNDO: &str = "ROLLBACK TO jobs_part; RELEASE jobs_part";
