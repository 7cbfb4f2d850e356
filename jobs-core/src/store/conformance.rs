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

mod checkpoints;
mod claims;
mod closing;
mod conflicts;
mod drops;
mod due;
mod duties;
mod enqueue;
mod fences;
mod history;
mod hostile;
mod inspect;
mod leases;
mod limits;
pub mod model;
mod notes;
mod operate;
mod races;
mod rollout;
mod routes;
mod scene;
mod schedules;
mod settle;
mod subject;
mod sweep;
mod transactions;
mod unique;
mod wake;

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
    /// A store that judges by a clock of its own moves its stored instants back instead; so no check
    /// compares an instant from before with one from after.
    async fn advance(&self, span: Duration);

    /// Inserts a ready row as another language would: plain SQL, no checks but the schema's own.
    async fn plant(&self, row: &RawRow) -> JobId;

    /// Says that the store is for newer builds only, as one of them does that migrates it.
    async fn outgrow(&self);

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
    /// Every counter of the row, its claim number and the number of its checkpoint at their columns'
    /// maximum, and one line of history under the largest number.
    FillCounters,
    /// Running, held by nobody.
    RunUnheld,
    /// Every line of its history of a kind, and every worker in a phase, that only a newer build
    /// knows.
    UnknownNames,
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
        a_head_starts_at_its_place
        a_place_splits_jobs_that_fell_due_together
        what_stands_before_the_place_is_found_from_the_first
        one_claim_takes_from_several_queues
        a_claim_takes_only_from_its_routes
        a_head_named_twice_takes_each_job_once
        a_scheduled_job_is_not_claimed
        nothing_is_claimed_under_a_closed_worker
        nothing_is_claimed_under_a_worker_taken_back
        nothing_is_claimed_under_an_unknown_worker
        an_idle_claim_is_a_claim
        an_idle_claim_carries_all_that_a_claim_does
        two_claims_at_once_never_take_the_same_job;
    routes:
        each_ready_route_is_listed_once
        each_route_tells_the_place_of_its_first_job
        only_ready_jobs_have_routes
        a_paused_queue_has_no_routes
        a_suspect_has_a_route_of_its_own
        many_routes_are_all_listed_and_claimed
        routes_are_derived_alike_from_any_text;
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
    settle:
        every_outcome_is_written_as_its_transition_says
        an_unchanged_due_keeps_the_place_and_a_wait_moves_it
        a_wait_is_kept
        an_instant_is_kept_exactly
        a_wait_beyond_the_end_of_time_stops_nothing
        a_later_success_keeps_the_latest_failure_for_people
        a_refusal_stands_on_the_row_until_a_run_says_otherwise
        failures_grow_from_run_to_run_until_the_budget_is_spent
        the_largest_counters_are_kept
        error_texts_are_kept_exactly
        an_error_with_nul_is_cleaned_and_the_failure_counts
        a_cancel_wins_over_all_but_success_and_death
        a_cancel_is_for_one_run_only
        one_batch_answers_in_its_own_order
        forty_thousand_snoozes_are_counted_and_spend_nothing
        a_settled_job_waits_beside_the_scheduled_ones;
    checkpoints:
        the_next_run_resumes_from_the_checkpoint
        every_move_gets_the_next_number
        a_move_resets_failures_interruptions_and_crashes
        every_later_move_resets_what_went_wrong_in_between
        a_strict_move_keeps_the_failures
        a_checkpoint_that_did_not_move_resets_nothing
        a_checkpoint_outlives_crash_close_and_death
        a_stale_checkpoint_does_not_replace_a_newer_one
        two_saves_of_one_run_in_a_call_are_kept_in_order
        a_row_that_someone_holds_keeps_no_other_checkpoint_back
        a_checkpoint_writes_no_event_and_keeps_the_place;
    notes:
        a_settlement_leaves_its_notes_and_absent_ones_leave_what_was_there
        progress_is_written_while_the_run_goes_on_and_changes_nothing_else
        progress_of_a_run_that_lost_its_claim_is_not_written
        notes_are_kept_exactly
        a_finish_in_a_transaction_leaves_its_notes_with_the_commit
        a_checkpoint_and_a_sweep_leave_the_notes;
    leases:
        every_registration_is_another_worker
        a_renewed_lease_does_not_expire
        a_renewal_that_comes_before_the_sweep_keeps_the_lease
        an_expired_lease_holds_until_it_is_swept
        an_ended_lease_is_not_renewed
        each_lease_has_its_own_length
        one_worker_renews_only_itself
        a_renewal_publishes_the_phase
        a_store_that_outgrew_this_build_renews_and_says_so
        a_heartbeat_hears_what_its_worker_holds
        the_workers_are_listed_newest_first
        a_lease_ends_once
        workers_that_ended_long_ago_are_forgotten
        a_prune_forgets_so_many_workers_and_builds_at_most;
    duties:
        one_worker_at_a_time_has_a_duty
        a_duty_passes_on_when_its_worker_ends
        a_forgotten_worker_keeps_no_duty
        a_report_is_kept_with_its_worker
        a_sweep_notes_how_many_runs_came_back_by_expiry;
    sweep:
        an_expired_worker_loses_its_runs_as_crashes
        a_crashed_run_keeps_its_place
        a_sweep_touches_no_live_worker
        a_sweep_at_the_start_touches_no_fresh_claim
        a_grace_spares_leases_that_ended_lately
        a_second_sweep_takes_nothing
        two_sweeps_at_once_take_each_run_once
        a_sweep_takes_at_most_its_limit
        a_run_held_by_nobody_is_taken_back_at_once
        a_held_run_that_lost_its_holder_is_taken_back
        crashes_in_a_row_back_off_and_end_dead
        only_a_crash_alone_is_deadly
        a_sweep_judges_by_the_counters_and_the_budget_on_the_row
        a_cancelled_run_is_not_brought_back_by_a_sweep
        a_crash_is_recorded_against_the_worker_that_was_lost
        draws_spread_the_waits_of_a_sweep
        a_run_settled_while_its_lease_is_swept_is_written_once;
    closing:
        closing_gives_back_as_interruptions
        what_a_leaving_worker_does_not_know_of_goes_back_as_unstarted
        closing_again_gives_nothing_back
        closing_a_worker_taken_back_gives_nothing_back
        closing_an_unknown_worker_gives_nothing_back
        an_abandoned_run_stays_claimed_until_its_process_is_gone
        an_abandoned_run_may_still_settle
        a_worker_that_leaves_claims_nothing_more
        a_cancelled_run_is_not_brought_back_by_closing;
    enqueue:
        jobs_get_growing_ids_in_order
        a_job_is_stored_as_it_was_given
        absent_parts_stay_absent
        a_job_is_ready_when_it_is_due
        a_job_due_at_either_end_of_time_stops_no_other
        a_hundred_thousand_jobs_are_stored_in_one_call
        calls_with_nothing_do_nothing
        a_limit_of_nothing_is_nothing;
    due:
        a_scheduled_job_becomes_ready_when_it_is_due
        the_oldest_are_promoted_first
        a_promotion_says_when_to_come_again
        a_pause_does_not_hold_promotion_up
        a_promoted_job_stands_where_it_fell_due
        promotion_touches_only_scheduled_jobs
        the_routes_of_refused_jobs_are_listed
        refused_jobs_of_a_route_are_called_back_at_once
        a_recall_keeps_to_its_limit
        a_recalled_job_stands_before_what_comes_after_it
        a_refused_job_comes_back_by_itself;
    unique:
        a_waiting_twin_is_already_there
        an_earlier_element_of_the_same_call_is_already_there
        a_key_binds_its_kind_over_all_queues
        keys_are_compared_byte_by_byte
        jobs_without_a_key_have_no_twin
        a_running_or_finished_job_does_not_bind_its_key
        a_waiting_twin_supersedes_every_outcome_that_would_wait
        a_cancel_goes_before_a_twin
        a_swept_run_is_superseded_by_its_twin
        a_run_of_a_closed_worker_is_superseded_by_its_twin
        the_one_that_waits_stands_for_a_newer_one_too
        of_twins_settled_in_one_call_one_waits
        of_twins_swept_in_one_call_one_waits
        a_redrive_is_refused_while_a_twin_waits
        a_redriven_job_binds_its_key_again
        promotion_recall_and_run_now_never_meet_a_twin
        a_cancelled_job_frees_its_key
        of_twins_enqueued_at_once_one_is_added
        a_twin_answered_in_a_transaction_starts_after_its_commit
        an_enqueue_beside_a_claim_leaves_a_run_that_starts_after_it
        the_longest_key_is_kept;
    conflicts:
        a_kept_twin_stays_as_it_was
        a_replaced_twin_begins_anew_in_its_place
        a_rescheduled_twin_keeps_what_it_is
        a_ready_twin_may_be_put_off_and_a_scheduled_one_called
        elements_of_a_call_replace_each_other_in_order
        a_rollback_undoes_what_an_enqueue_replaced
        a_key_may_bind_while_its_job_runs
        a_key_may_bind_for_as_long_as_its_job_is_kept
        a_dead_job_stays_while_one_that_binds_its_key_runs
        of_enqueues_at_once_one_is_added_also_beside_a_claim
        a_waiting_job_gets_another_time_and_priority
        a_job_that_nobody_starts_in_time_expires
        a_claim_tells_that_it_came_too_late
        a_redrive_may_give_a_new_idempotency_key;
    limits:
        a_limited_queue_runs_so_many_in_all_workers
        a_late_settlement_frees_no_slot_twice
        claims_at_once_keep_to_the_limit
        a_limited_claim_is_a_claim;
    transactions:
        a_commit_makes_all_of_it_visible
        a_rollback_leaves_nothing
        a_dropped_transaction_leaves_nothing
        an_empty_transaction_changes_nothing
        a_hundred_thousand_jobs_are_undone_together
        a_hundred_thousand_jobs_are_committed_together
        a_key_binds_within_and_across_a_transaction
        an_enqueue_waits_for_a_twin_in_an_open_transaction
        a_run_that_lost_its_claim_finishes_in_no_transaction
        a_run_finishes_once_in_a_transaction
        a_finish_tells_of_a_cancel_and_stands
        a_finish_keeps_counters_and_clears_the_refusal
        a_checkpoint_in_a_transaction_moves_and_resets_alike
        a_finish_that_commits_beside_a_sweep_stands
        a_finish_rolled_back_beside_a_sweep_is_taken_back
        a_finish_that_commits_beside_a_close_stands
        a_finish_rolled_back_beside_a_close_is_given_up
        a_finish_that_commits_beside_a_settlement_stands
        a_finish_rolled_back_beside_a_settlement_gives_way
        a_locked_run_stops_no_settlement_beside_it
        a_reread_waits_for_the_end_of_a_finish
        a_cancel_beside_a_finish_changes_nothing_of_it
        a_claim_does_not_see_what_is_not_committed;
    operate:
        a_cancel_ends_waiting_jobs_and_asks_running_ones
        a_cancel_may_be_asked_again
        a_cancelled_job_is_not_claimed_or_promoted
        a_redrive_brings_back_what_is_dead_or_cancelled
        a_redrive_goes_no_further_than_its_instant
        a_redrive_keeps_the_claim_number_and_the_payload
        a_redrive_keeps_or_forgets_as_asked
        a_redriven_job_stands_behind_those_that_wait
        a_scheduled_job_is_run_now
        a_paused_queue_gives_nothing
        a_pause_lets_runs_go_on_and_jobs_come_in
        pausing_again_keeps_the_first_reason
        who_paused_and_why_is_kept_up_to_a_limit
        each_finished_state_has_its_own_retention
        the_oldest_are_pruned_first
        a_pruned_job_is_missing_everywhere
        the_longest_retention_keeps_everything;
    rollout:
        waiting_jobs_are_counted_by_what_may_read_them
        jobs_that_nobody_reads_end_once_they_have_waited
        only_what_is_due_is_stranded
        a_strand_keeps_to_its_limit_and_tells_the_author
        what_is_due_of_a_route_is_counted_up_to_a_limit
        what_a_build_publishes_is_kept_once
        builds_that_were_last_seen_long_ago_are_forgotten;
    history:
        a_clean_success_writes_no_event
        a_success_tells_whose_run_it_was
        what_a_person_changes_of_the_wait_is_told
        a_life_is_told_in_order
        the_newest_events_of_each_job_are_kept
        an_event_names_its_author
        every_kind_of_event_is_kept
        names_that_only_a_newer_build_knows_hide_no_other
        a_job_that_does_not_exist_has_no_history;
    inspect:
        a_job_that_does_not_exist_is_none
        jobs_are_listed_page_by_page
        a_listing_keeps_to_its_filter
        a_listing_keeps_to_its_spans_and_builds
        the_newest_jobs_are_listed_from_the_end
        briefs_are_the_jobs_without_what_they_carry
        the_depth_counts_what_is_there_up_to_a_limit
        jobs_are_counted_by_queue_kind_version_and_state
        a_fresh_store_is_empty;
    hostile:
        a_payload_is_kept_to_the_byte
        a_planted_payload_is_kept_to_the_byte
        a_payload_of_a_mebibyte_is_kept
        deep_json_is_not_looked_into
        queue_names_are_any_text_and_never_alike
        a_row_with_any_kind_and_version_runs_its_course
        a_row_with_full_counters_stops_no_other
        a_run_with_full_counters_is_taken_back
        full_counters_stay_full
        waiting_jobs_with_full_counters_end_and_come_back_beside_others
        a_run_with_full_counters_goes_on_beside_others
        one_bad_job_in_a_batch_stops_no_other
        the_longest_manifest_and_names_are_kept;
    races:
        of_two_settlements_at_once_one_is_written
        a_checkpoint_beside_a_settlement_is_written_before_it_or_not_at_all
        a_claim_beside_its_workers_end_leaves_no_run
        a_claim_beside_the_taking_back_of_its_worker_leaves_no_run
        a_cancel_beside_a_claim_is_heard_of_or_comes_first
        two_promotions_at_once_make_each_job_ready_once
        a_job_is_run_now_and_promoted_once
        of_two_redrives_at_once_one_brings_back
        of_twins_that_come_at_once_one_waits
        a_twin_that_comes_beside_a_retry_leaves_one_that_waits
        two_prunes_at_once_count_each_job_once
        a_crowd_runs_every_job_once;
    drops:
        a_dropped_enqueue_stores_all_or_none
        a_dropped_begin_leaves_no_transaction_open
        a_dropped_write_within_a_transaction_goes_with_it
        a_dropped_commit_happens_whole_or_not_at_all
        a_dropped_settlement_is_told_by_the_row
        a_dropped_claim_is_known_to_the_store
        a_dropped_close_happens_whole_or_not_at_all
        a_dropped_heartbeat_can_be_asked_again;
    schedules:
        a_declared_schedule_waits_for_a_leader
        what_live_workers_and_people_declare_stands_side_by_side
        a_declaration_takes_the_place_of_the_same_ones_earlier
        a_text_keeps_the_age_of_its_first_declaration
        what_a_forgotten_worker_declared_is_forgotten
        a_tick_enqueues_its_job_once
        a_tick_at_or_before_the_latest_is_left_out
        a_schedule_may_stop_ticking_and_begin_again
        a_step_of_an_unknown_schedule_is_not_taken
        of_steps_at_once_one_is_taken
        a_tick_beside_a_waiting_twin_is_told_of_it
        the_latest_ticks_of_a_schedule_are_kept;
    wake:
        a_wake_hears_of_enqueued_jobs
        a_dropped_wait_loses_no_change;
}
