//! A schema of a test's own on the shared server.

use std::sync::atomic::{AtomicU32, Ordering};

use sqlx::{AssertSqlSafe, Connection, PgConnection};

/// A name that no other test uses; the schema goes when this is dropped.
#[derive(Debug)]
pub struct Schema {
    name: String,
}

/// The address of the server that tests may use.
///
/// # Panics
/// When `JOBS_TEST_POSTGRES_URL` is unset.
pub fn server_url() -> String {
    std::env::var("JOBS_TEST_POSTGRES_URL").unwrap_or_else(|_| {
        panic!(
            "these tests need a PostgreSQL server: run them with `scripts/test`, or set \
             JOBS_TEST_POSTGRES_URL to a server that they may use"
        )
    })
}

impl Schema {
    /// A schema that isn't there yet.
    pub fn fresh() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let nth = NEXT.fetch_add(1, Ordering::Relaxed);
        Self { name: format!("jobs_test_{}_{nth}", std::process::id()) }
    }

    /// Its name, which needs no quotes.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl Drop for Schema {
    fn drop(&mut self) {
        let sql = format!(
            "SET lock_timeout = '10s'; SET client_min_messages = 'warning'; \
             DROP SCHEMA IF EXISTS {} CASCADE",
            self.name
        );
        let dropped = blocking(async {
            let mut connection = PgConnection::connect(&server_url()).await?;
            sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut connection).await
        });
        // A second panic would hide the first one.
        assert!(dropped.is_ok() || std::thread::panicking(), "{dropped:?}");
    }
}

/// Waits for something on a thread of its own: the caller's may belong to a runtime.
fn blocking<T: Send>(work: impl Future<Output = T> + Send) -> T {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime starts").block_on(work)
        });
        thread.join().expect("the work does not panic")
    })
}
