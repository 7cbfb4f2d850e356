-- When the next scheduled job is due; null when none is scheduled.
SELECT min(due_at_us) AS due_at_us FROM jobs_job WHERE state = 'scheduled'
