//! What a worker can be told before it runs.

use std::time::Duration;

use jobs_core::store::Retention;

use super::Worker;

impl<S: Clone + Send + Sync + 'static> Worker<S> {
    /// How many handlers run at once, 1 to 100,000. Default: 10.
    #[must_use]
    pub fn concurrency(mut self, handlers: usize) -> Self {
        self.wanted.concurrency = handlers;
        self
    }

    /// Works this queue instead of those that the registered kinds name; call it once a queue.
    /// Default: the kinds' own queues, or `default` when no kind is registered.
    #[must_use]
    pub fn queue(mut self, name: impl Into<String>) -> Self {
        self.wanted.queues.push(name.into());
        self
    }

    /// Gives a queue that this worker works its part of the slots: with the weights 3 and 1, three of
    /// four. 1 to 1,000; queues without a weight then have 1.
    ///
    /// A queue with less to do lends its slots, but never the last one, so that its next job starts at
    /// once beside a slow backlog of another queue; this takes more slots than queues. Without any
    /// weight or limit, jobs of all queues start in order of their places, the longest due first.
    ///
    /// Costs a claim for each queue where there was one for all.
    #[must_use]
    pub fn queue_weight(mut self, name: impl Into<String>, weight: u32) -> Self {
        self.wanted.weights.push((name.into(), weight));
        self
    }

    /// At most so many jobs of a queue that this worker works run in it at once; at least 1.
    #[must_use]
    pub fn queue_concurrency(mut self, name: impl Into<String>, handlers: usize) -> Self {
        self.wanted.limits.push((name.into(), handlers));
        self
    }

    /// At most so many jobs of a queue that this worker works run in all workers together; at least 1.
    ///
    /// It counts what the store says is running, whoever runs it, at each claim from that queue: claims
    /// from it take turns and cost two statements more; other queues pay nothing. It binds the workers
    /// that are told so, each by its own number.
    #[must_use]
    pub fn queue_fleet_concurrency(mut self, name: impl Into<String>, handlers: u32) -> Self {
        self.wanted.fleet_limits.push((name.into(), handlers));
        self
    }

    /// A name for people, 1 to 255 bytes; never an identity. Default: the process id.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.wanted.name = Some(name.into());
        self
    }

    /// How long the worker may be silent before others take its jobs: 1 s to 1 h. Default: 30 s.
    /// It is renewed every third of it.
    #[must_use]
    pub fn lease(mut self, length: Duration) -> Self {
        self.wanted.lease = length;
        self
    }

    /// How often an idle worker looks for jobs that no wake-up told of, 10 ms to 1 h, moved by up
    /// to a tenth. Default: 1 s.
    #[must_use]
    pub fn poll_interval(mut self, interval: Duration) -> Self {
        self.wanted.poll_interval = interval;
        self
    }

    /// How long the supervisor waits between its request to stop and its SIGKILL, 1 s to 24 h. The
    /// drain ends before.
    ///
    /// Default: what the variable `JOBS_GRACE_PERIOD` says (`30`, `45s`, `2min`), else what systemd
    /// answers where it runs the process, else 30 s.
    #[must_use]
    pub fn grace_period(mut self, grace: Duration) -> Self {
        self.wanted.stated.grace = Some(grace);
        self
    }

    /// How much of the grace period has passed when the signal comes, as with a `preStop` hook that
    /// sleeps: it leaves the drain at least 1 s. Default: what the variable `JOBS_PRE_STOP_DELAY`
    /// says, else nothing.
    #[must_use]
    pub fn pre_stop_delay(mut self, delay: Duration) -> Self {
        self.wanted.stated.pre_stop = Some(delay);
        self
    }

    /// Serves `/livez`, `/readyz` and `/metrics` on an address such as `127.0.0.1:9100`; anyone who
    /// can reach it may ask. Default: nothing is served. What they answer is told in
    /// `docs/metrics.md`; the answers come from a thread of their own, whatever handlers do.
    ///
    /// The first worker of a process that serves them installs a recorder of metrics, unless the
    /// application has installed one before.
    #[cfg(feature = "http")]
    #[must_use]
    pub fn health(mut self, address: impl Into<String>) -> Self {
        self.wanted.health = Some(address.into());
        self
    }

    /// Ends jobs that no live worker can read as dead letters of the class `stranded`, once they have
    /// waited this long: since they were due, or, once a build has given them back, since they were
    /// enqueued. 1 min to 365 days. Default: they wait for ever, and the log tells of them.
    ///
    /// A worker ends nothing before it has seen for ten minutes that nobody reads them.
    #[must_use]
    pub fn stranded_deadline(mut self, deadline: Duration) -> Self {
        self.wanted.stranded_deadline = Some(deadline);
        self
    }

    /// How long this worker keeps finished jobs, with their history, checkpoints and results: it looks
    /// once a minute and deletes, oldest first, what ended longer ago. Default: succeeded ones 24 h,
    /// cancelled ones 7 days, dead letters 30 days.
    ///
    /// [`Retention::FOREVER`] deletes nothing, and [`Duration::MAX`] nothing of one state; then someone
    /// else should: `jobs prune`, or [`Jobs::prune`](crate::Jobs::prune). Every worker deletes for all
    /// kinds by its own retention, so the shortest among the live ones counts.
    ///
    /// What is deleted binds no unique key and answers no wait: keep succeeded jobs for at least the
    /// longest period of [`unique_for`](crate::Enqueue::unique_for).
    ///
    /// ```
    /// # use std::time::Duration;
    /// use jobs_runtime::store::Retention;
    /// # fn set(worker: jobs_runtime::Worker<()>) -> jobs_runtime::Worker<()> {
    /// worker.retention(Retention {
    ///     succeeded: Duration::from_hours(24 * 8),
    ///     dead: Duration::MAX,
    ///     ..Retention::default()
    /// })
    /// # }
    /// ```
    #[must_use]
    pub fn retention(mut self, retention: Retention) -> Self {
        self.wanted.retention = retention;
        self
    }
}
