-- The first schema. Instants are microseconds since 1970-01-01T00:00:00Z and end in `_at_us`.
-- STRICT keeps a row of another language from holding a number where a text belongs.

-- One row: which store this is, and who may use its schema.
CREATE TABLE jobs_meta (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    store_id TEXT NOT NULL,
    schema_version INTEGER NOT NULL,
    min_reader INTEGER NOT NULL,
    created_at_us INTEGER NOT NULL
) STRICT;

-- A plain INSERT of kind, version and payload is a job that is due now.
CREATE TABLE jobs_job (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    state TEXT NOT NULL DEFAULT 'ready' CHECK (
        -- In order of frequency: an IN of six looks each of them up at every write.
        state = 'succeeded' OR state = 'running' OR state = 'ready'
        OR state = 'scheduled' OR state = 'dead' OR state = 'cancelled'
    ),
    queue TEXT NOT NULL DEFAULT 'default',
    kind TEXT NOT NULL,
    version TEXT NOT NULL,
    min_reader TEXT,
    payload TEXT NOT NULL,
    headers TEXT,
    unique_key TEXT,
    priority INTEGER NOT NULL DEFAULT 0,
    claim_number INTEGER NOT NULL DEFAULT 0,
    worker_id INTEGER,
    failures INTEGER NOT NULL DEFAULT 0,
    interruptions INTEGER NOT NULL DEFAULT 0,
    crashes INTEGER NOT NULL DEFAULT 0,
    refusals INTEGER NOT NULL DEFAULT 0,
    snoozes INTEGER NOT NULL DEFAULT 0,
    max_failures INTEGER NOT NULL DEFAULT 20,
    max_interruptions INTEGER,
    refused_reason TEXT,
    refused_build TEXT,
    error_class TEXT,
    error_text TEXT,
    build TEXT,
    events INTEGER NOT NULL DEFAULT 0,
    -- 0: none is saved. Not their number, which stands beside them.
    checkpoints INTEGER NOT NULL DEFAULT 0,
    enqueued_at_us INTEGER NOT NULL
        DEFAULT (CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)),
    due_at_us INTEGER NOT NULL
        DEFAULT (CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)),
    claimed_at_us INTEGER,
    finished_at_us INTEGER,
    -- For how long the key binds beyond the wait: `running` or `kept`.
    unique_while TEXT,
    -- No run starts after it.
    expires_at_us INTEGER,
    -- How often a person gave the job a new idempotency key.
    key_number INTEGER,
    progress TEXT,
    result TEXT
) STRICT;

-- Where jobs stand. Not columns of the table: a column is worked out again at every write of a row,
-- an index only where it holds the row. The indexes below repeat these two expressions to the letter.
--
-- `route` is `kind@major.min_reader_minor`: the reader's text up to its second dot. Two dots behind
-- the text make sure that there is one. Over blobs, because substr() on a text ends at a NUL; and of
-- an empty blob it is null. A suspect, which is one crash away from the ceiling, is marked, so that it
-- is claimed only to run alone.
--
-- `place` is five minutes ahead for every step of priority. An overflow becomes a REAL, which the
-- CAST holds at the nearest integer.
CREATE VIEW jobs_routed AS
SELECT
    id,
    state,
    queue,
    claim_number,
    refused_reason,
    kind || '@' || coalesce(
        CAST(
            substr(
                CAST(coalesce(min_reader, version) AS BLOB),
                1,
                instr(CAST(coalesce(min_reader, version) || '..' AS BLOB), x'2e') - 1
                + instr(
                    substr(
                        CAST(coalesce(min_reader, version) || '..' AS BLOB),
                        instr(CAST(coalesce(min_reader, version) || '..' AS BLOB), x'2e') + 1
                    ),
                    x'2e'
                )
            ) AS TEXT
        ),
        ''
    ) || iif(crashes >= 4, '..suspect', '') AS route,
    CAST(due_at_us - max(-100, min(100, priority)) * 300000000 AS INTEGER) AS place
FROM jobs_job;

-- What a claim walks: the ready jobs of a route, and nothing else.
CREATE INDEX jobs_job_ready ON jobs_job (
    queue,
    (
        kind || '@' || coalesce(
            CAST(
                substr(
                    CAST(coalesce(min_reader, version) AS BLOB),
                    1,
                    instr(CAST(coalesce(min_reader, version) || '..' AS BLOB), x'2e') - 1
                    + instr(
                        substr(
                            CAST(coalesce(min_reader, version) || '..' AS BLOB),
                            instr(CAST(coalesce(min_reader, version) || '..' AS BLOB), x'2e') + 1
                        ),
                        x'2e'
                    )
                ) AS TEXT
            ),
            ''
        ) || iif(crashes >= 4, '..suspect', '')
    ),
    (CAST(due_at_us - max(-100, min(100, priority)) * 300000000 AS INTEGER))
) WHERE state = 'ready';
-- What a claim asks when it comes back short.
CREATE INDEX jobs_job_exhausted ON jobs_job (queue)
    WHERE state = 'ready' AND claim_number = 9223372036854775807;
-- What a promotion walks.
CREATE INDEX jobs_job_scheduled ON jobs_job (due_at_us) WHERE state = 'scheduled';
-- What a heartbeat, a sweep and a close walk.
CREATE INDEX jobs_job_running ON jobs_job (worker_id) WHERE state = 'running';
-- At most one job of a kind and key waits.
CREATE UNIQUE INDEX jobs_job_unique ON jobs_job (kind, unique_key)
    WHERE unique_key IS NOT NULL AND state IN ('scheduled', 'ready');
-- And of those that say so, at most one waits or runs, or is kept at all.
CREATE UNIQUE INDEX jobs_job_unique_running ON jobs_job (kind, unique_key)
    WHERE unique_while IS NOT NULL AND state IN ('scheduled', 'ready', 'running');
CREATE UNIQUE INDEX jobs_job_unique_kept ON jobs_job (kind, unique_key)
    WHERE unique_while = 'kept';
-- What an expiry walks.
CREATE INDEX jobs_job_expires ON jobs_job (expires_at_us)
    WHERE expires_at_us IS NOT NULL AND state IN ('scheduled', 'ready');
-- What a recall walks.
CREATE INDEX jobs_job_refused ON jobs_job (
    (
        kind || '@' || coalesce(
            CAST(
                substr(
                    CAST(coalesce(min_reader, version) AS BLOB),
                    1,
                    instr(CAST(coalesce(min_reader, version) || '..' AS BLOB), x'2e') - 1
                    + instr(
                        substr(
                            CAST(coalesce(min_reader, version) || '..' AS BLOB),
                            instr(CAST(coalesce(min_reader, version) || '..' AS BLOB), x'2e') + 1
                        ),
                        x'2e'
                    )
                ) AS TEXT
            ),
            ''
        ) || iif(crashes >= 4, '..suspect', '')
    )
) WHERE state = 'scheduled' AND refused_reason IS NOT NULL;
-- What a prune walks.
CREATE INDEX jobs_job_finished ON jobs_job (state, finished_at_us)
    WHERE finished_at_us IS NOT NULL;

-- The latest checkpoint of a job.
CREATE TABLE jobs_checkpoint (
    job_id INTEGER PRIMARY KEY,
    version TEXT NOT NULL,
    min_reader TEXT,
    text TEXT NOT NULL,
    number INTEGER NOT NULL DEFAULT 1
) STRICT;

-- The latest hundred events of a job: a ring, so that history is bounded without deletes.
CREATE TABLE jobs_event (
    job_id INTEGER NOT NULL,
    slot INTEGER NOT NULL,
    number INTEGER NOT NULL,
    at_us INTEGER NOT NULL,
    claim_number INTEGER NOT NULL,
    kind TEXT NOT NULL,
    class TEXT NOT NULL,
    text TEXT NOT NULL,
    worker_id INTEGER,
    build TEXT,
    PRIMARY KEY (job_id, slot)
) STRICT, WITHOUT ROWID;

-- One process incarnation each; a number is never used again. The lock file of that name is held
-- for as long as the process lives.
CREATE TABLE jobs_worker (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL,
    build TEXT NOT NULL,
    manifest TEXT NOT NULL,
    phase TEXT NOT NULL DEFAULT 'working',
    lock_file TEXT NOT NULL,
    lease_us INTEGER NOT NULL,
    renewals INTEGER NOT NULL DEFAULT 0,
    started_at_us INTEGER NOT NULL,
    renewed_at_us INTEGER NOT NULL,
    -- It claims nothing more, and its lease stays open until the process is gone.
    is_leaving INTEGER NOT NULL DEFAULT 0,
    ended_at_us INTEGER,
    is_taken_back INTEGER NOT NULL DEFAULT 0,
    -- How many runs it held when a sweep ended its lease.
    reclaimed INTEGER NOT NULL DEFAULT 0,
    -- Its report, once it left by its own word.
    drain_settled INTEGER,
    drain_interrupted INTEGER,
    drain_released INTEGER,
    drain_abandoned INTEGER,
    drain_took_us INTEGER
) STRICT;

CREATE INDEX jobs_worker_open ON jobs_worker (id) WHERE ended_at_us IS NULL;

-- What only one worker does at a time, and who had it last: for as long as that worker's lease is
-- open and it does not leave.
CREATE TABLE jobs_duty (
    name TEXT PRIMARY KEY,
    worker_id INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Requests to cancel runs. One of an earlier run has no effect.
CREATE TABLE jobs_cancel_request (
    job_id INTEGER PRIMARY KEY,
    claim_number INTEGER NOT NULL
) STRICT;

-- Runs whose worker left before their handlers had ended. One of an earlier run has no effect.
CREATE TABLE jobs_abandoned (
    job_id INTEGER PRIMARY KEY,
    claim_number INTEGER NOT NULL
) STRICT;

-- What builds say about themselves: a row for each program of a build.
CREATE TABLE jobs_build (
    build TEXT NOT NULL,
    fingerprint INTEGER NOT NULL,
    manifest TEXT NOT NULL,
    seen_at_us INTEGER NOT NULL,
    PRIMARY KEY (build, fingerprint)
) STRICT;

-- Queues that nothing is claimed from.
CREATE TABLE jobs_pause (
    queue TEXT PRIMARY KEY,
    paused_by TEXT NOT NULL,
    reason TEXT NOT NULL,
    paused_at_us INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- When what is enqueued by the clock. `text` is what is declared and counts; a schedule without a
-- `next_at_us` does not tick.
CREATE TABLE jobs_schedule (
    name TEXT PRIMARY KEY,
    text TEXT,
    next_at_us INTEGER,
    last_at_us INTEGER
) STRICT, WITHOUT ROWID;

-- What each worker declares of a schedule, and a person as worker 0.
CREATE TABLE jobs_schedule_declaration (
    schedule TEXT NOT NULL,
    worker_id INTEGER NOT NULL,
    since_us INTEGER NOT NULL,
    text TEXT NOT NULL,
    PRIMARY KEY (schedule, worker_id)
) STRICT, WITHOUT ROWID;

-- The latest ticks of a schedule. The key is what keeps one from coming twice.
CREATE TABLE jobs_schedule_tick (
    schedule TEXT NOT NULL,
    at_us INTEGER NOT NULL,
    job_id INTEGER NOT NULL,
    PRIMARY KEY (schedule, at_us)
) STRICT, WITHOUT ROWID;
