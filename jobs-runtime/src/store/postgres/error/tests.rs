use StoreErrorKind::{Busy, Configuration, Corrupt, Full, Invalid, ReadOnly, Schema, Unavailable};

use super::*;

/// What an answer says of the server or of the call, and whether it may be about one row of many.
const TABLE: &[(&str, StoreErrorKind, bool)] = &[
    // The server, or the way to it: the same call works later, and no row is to be blamed.
    ("08006", Unavailable, false), // connection_failure
    ("57P01", Unavailable, false), // admin_shutdown
    ("57P03", Unavailable, false), // cannot_connect_now
    ("58000", Unavailable, false), // system_error
    ("58030", Unavailable, false), // io_error
    ("58P01", Unavailable, false), // undefined_file
    // It has too little of something, or others are in the way.
    ("53000", Busy, false), // insufficient_resources
    ("53100", Full, false), // disk_full
    ("53200", Busy, false), // out_of_memory
    ("53300", Busy, false), // too_many_connections
    ("53400", Busy, false), // configuration_limit_exceeded
    ("57014", Busy, false), // query_canceled
    ("40001", Busy, false), // serialization_failure
    ("40P01", Busy, false), // deadlock_detected
    ("55P03", Busy, false), // lock_not_available
    // Until somebody changes something.
    ("25006", ReadOnly, false),      // read_only_sql_transaction
    ("42501", ReadOnly, false),      // insufficient_privilege
    ("42P01", Schema, false),        // undefined_table
    ("42703", Schema, false),        // undefined_column
    ("28P01", Configuration, false), // invalid_password
    ("3D000", Configuration, false), // invalid_catalog_name
    ("25P02", Invalid, false),       // in_failed_sql_transaction
    // It passes as if the server were away, but a trigger on one row may say so too.
    ("0A000", Unavailable, true), // feature_not_supported: a cached plan is out of date
    ("26000", Unavailable, true), // invalid_sql_statement_name
    ("55000", Unavailable, true), // object_not_in_prerequisite_state
    ("XX000", Unavailable, true), // internal_error
    // A row: what it holds, what others ask of it, or where it is stored.
    ("22001", Invalid, true), // string_data_right_truncation
    ("23503", Invalid, true), // foreign_key_violation
    ("23505", Invalid, true), // unique_violation
    ("23514", Invalid, true), // check_violation
    ("54000", Invalid, true), // program_limit_exceeded
    ("P0001", Invalid, true), // raise_exception
    ("HV000", Invalid, true), // fdw_error
    ("XX001", Corrupt, true), // data_corrupted
    ("XX002", Corrupt, true), // index_corrupted
];

#[test]
fn an_answer_is_told_apart_by_whose_trouble_it_is() {
    for (code, kind, is_of_a_row) in TABLE {
        assert_eq!((kind_of_code(code), may_be_of_a_row(code)), (*kind, *is_of_a_row), "{code}");
    }
}
