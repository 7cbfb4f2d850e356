//! The suite that every store passes, for authors of stores.
//!
//! A [`Subject`] is one fresh store and the few things that the checks must do to it from outside.
//! The checks are the same for every store; none asks which store it runs on, and none rests on the
//! order in which calls that run at the same time happen.
//!
//! A store's tests say how a fresh subject is made and a check is waited for, and get one `#[test]`
//! for each check:
//!
//! ```ignore
//! fn run(check: jobs_core::store::conformance::Check) {
//!     block_on(async { check(&MySubject::fresh().await).await });
//! }
//! jobs_core::conformance_tests!(run);
//! ```
//!
//! [`model::compare`] goes further: it does the same random things to a subject and to the memory
//! store, and compares all answers.

mod claims;
mod enqueue;
mod fences;
mod leases;
mod scene;
mod subject;

use std::pin::Pin;
use std::time::Duration;

use async_trait::async_trait;

pub use self::subject::MemorySubject;
use super::{Inspect, Operate, Store, Transactions};
use crate::id::JobId;

/// One check of the suite.
pub type Check = for<'a> fn(&'a dyn Subject) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

/// A fresh, empty store with no other users, under test.
#[async_trait]
pub trait Subject: Send + Sync {
    /// The store.
    fn store(&self) -> &dyn Store;
    /// Its read side.
    fn inspect(&self) -> &dyn Inspect;
    /// Its operators' side.
    fn operate(&self) -> &dyn Operate;
    /// Its transactions.
    fn transactions(&self) -> &dyn Transactions;

    /// Lets time pass for due times, leases and retention.
    ///
    /// A store that judges by a clock of its own moves its stored instants back instead.
    async fn advance(&self, span: Duration);

    /// Inserts a ready row as another language would: plain SQL, no checks but the schema's own.
    async fn plant(&self, row: &RawRow) -> JobId;

    /// Overwrites the counters and the holder of a row, as a person with SQL could.
    async fn tamper(&self, job: JobId, tampering: &Tampering);
}

/// A row as another language may write it.
#[derive(Debug, Clone)]
pub struct RawRow {
    /// The queue.
    pub queue: String,
    /// Any text.
    pub kind: String,
    /// Any text.
    pub version: String,
    /// Any text or nothing.
    pub min_reader: Option<String>,
    /// Any text that the schema's payload column takes.
    pub payload: String,
}

/// What a person with SQL could do to a row.
#[derive(Debug, Clone, Copy)]
pub enum Tampering {
    /// Every counter of the row, and its claim number, at its column's maximum.
    FillCounters,
    /// Running, held by nobody.
    RunUnheld,
}

/// The list of all checks. A check that is not listed here is dead code, and so a warning.
macro_rules! checks {
    ($dollar:tt $($file:ident: $($check:ident)*;)*) => {
        #[doc(hidden)]
        pub mod checks {
            $(pub mod $file {
                use super::super::{Pin, Subject};

                $(pub fn $check<'a>(
                    subject: &'a dyn Subject,
                ) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>> {
                    Box::pin(super::super::$file::$check(subject))
                })*
            })*
        }

        /// Expands to one test for each check of the suite, in a module for each of its files.
        ///
        /// It takes the name of a function that makes a fresh [`Subject`] and runs a [`Check`] on
        /// it to its end.
        #[macro_export]
        macro_rules! conformance_tests {
            ($dollar runner:ident) => {
                $(mod $file {
                    $(#[test]
                    fn $check() {
                        super::$dollar runner($crate::store::conformance::checks::$file::$check);
                    })*
                })*
            };
        }
    };
}

checks! { $
    claims:
        a_claim_takes_a_ready_job_under_its_next_number
        a_claimed_job_carries_all_that_was_enqueued
        a_running_job_is_not_claimed_again
        ready_jobs_are_claimed_in_order_of_enqueue
        a_higher_priority_is_claimed_first
        a_long_wait_outweighs_a_step_of_priority
        equal_places_are_claimed_in_order_of_id
        a_claim_merges_routes_in_order_of_place
        a_claim_takes_at_most_each_heads_limit
        a_limit_of_zero_takes_nothing
        a_head_starts_behind_its_place
        a_place_splits_jobs_that_fell_due_together
        what_stands_before_the_place_is_found_from_the_first
        one_claim_takes_from_several_queues
        a_claim_takes_only_from_its_routes
        a_head_named_twice_takes_each_job_once
        a_scheduled_job_is_not_claimed
        nothing_is_claimed_under_a_closed_worker
        nothing_is_claimed_under_a_worker_taken_back
        nothing_is_claimed_under_an_unknown_worker
        two_claims_at_once_never_take_the_same_job;
    fences:
        another_claim_number_writes_nothing
        a_run_that_was_settled_writes_nothing
        a_run_that_was_swept_writes_nothing
        a_run_that_was_given_back_by_closing_writes_nothing
        a_former_run_writes_nothing_into_the_next_one
        a_redriven_job_is_safe_from_its_former_run
        a_job_that_never_ran_is_not_written_to
        a_job_that_does_not_exist_is_lost
        a_batch_writes_what_holds_and_refuses_the_rest
        the_second_of_two_equal_settlements_is_too_late
        any_author_may_settle_under_the_right_claim
        a_held_run_may_go_on_writing
        a_check_writes_nothing
        the_row_says_what_became_of_a_run
        the_row_of_a_swept_run_says_that_it_was_taken
        the_row_of_a_run_has_its_counters_as_stored;
    leases:
        every_registration_is_another_worker
        a_renewed_lease_does_not_expire
        a_renewal_that_comes_before_the_sweep_keeps_the_lease
        an_expired_lease_holds_until_it_is_swept
        an_ended_lease_is_not_renewed
        each_lease_has_its_own_length
        one_worker_renews_only_itself
        a_renewal_publishes_the_phase
        a_heartbeat_hears_what_its_worker_holds
        the_workers_are_listed_newest_first
        a_lease_ends_once;
    enqueue:
        jobs_get_growing_ids_in_order
        a_job_is_stored_as_it_was_given
        absent_parts_stay_absent
        a_job_is_ready_when_it_is_due
        a_job_due_at_either_end_of_time_stops_no_other
        a_hundred_thousand_jobs_are_stored_in_one_call
        calls_with_nothing_do_nothing
        a_limit_of_nothing_is_nothing;
}
