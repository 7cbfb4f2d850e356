-- The workers whose lease is open, with what tells whether they live.
SELECT id, lock_file, lease_us, renewals FROM jobs_worker WHERE ended_at_us IS NULL ORDER BY id
