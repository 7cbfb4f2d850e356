-- Keeps what a worker did in its drain.
-- ?1 worker, ?2 settled, ?3 interrupted, ?4 released, ?5 abandoned, ?6 took in microseconds.
UPDATE jobs_worker
SET drain_settled = ?2, drain_interrupted = ?3, drain_released = ?4, drain_abandoned = ?5,
    drain_took_us = ?6
WHERE id = ?1
