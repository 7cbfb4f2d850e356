//! The application's own table, in the same file as the jobs.

use std::collections::HashMap;
use std::io::Write as _;

use jobs_runtime::prelude::*;
use sqlx::{Row as _, Sqlite, Transaction};

use crate::files::{File, Stamp, StoredPath};

/// The digests found so far.
#[derive(Debug, Clone)]
pub(crate) struct Table {
    jobs: Jobs,
}

impl Table {
    /// Makes the table where it is absent.
    pub(crate) async fn open(jobs: &Jobs) -> anyhow::Result<Self> {
        let mut tx = jobs.begin::<Sqlite>().await?;
        let create = "CREATE TABLE IF NOT EXISTS checksum (
            path BLOB PRIMARY KEY, bytes INTEGER NOT NULL, modified_ns INTEGER NOT NULL,
            sha256 TEXT NOT NULL
        ) STRICT";
        sqlx::query(create).execute(&mut *tx).await?;
        tx.commit().await?;
        Ok(Self { jobs: jobs.clone() })
    }

    /// Keeps a digest within a transaction.
    pub(crate) async fn keep(
        tx: &mut Transaction<'_, Sqlite>,
        path: &StoredPath,
        digest: &str,
        stamp: &Stamp,
    ) -> Result<(), sqlx::Error> {
        sqlx::query("INSERT OR REPLACE INTO checksum VALUES (?1, ?2, ?3, ?4)")
            .bind(path.as_bytes())
            .bind(stamp.bytes)
            .bind(stamp.modified_ns)
            .bind(digest)
            .execute(&mut **tx)
            .await?;
        Ok(())
    }

    /// What each known file looked like when it was read.
    pub(crate) async fn stamps(&self) -> anyhow::Result<HashMap<StoredPath, Stamp>> {
        let mut tx = self.jobs.begin::<Sqlite>().await?;
        let rows = sqlx::query("SELECT path, bytes, modified_ns FROM checksum").fetch_all(&mut *tx);
        let stamps = rows.await?.into_iter().map(|row| {
            let stamp = Stamp { bytes: row.try_get(1)?, modified_ns: row.try_get(2)? };
            Ok((StoredPath::from_bytes(row.try_get(0)?), stamp))
        });
        stamps.collect()
    }

    /// Writes the digests of these files as `sha256sum` does.
    pub(crate) async fn print(&self, files: &[File]) -> anyhow::Result<()> {
        let mut tx = self.jobs.begin::<Sqlite>().await?;
        let rows = sqlx::query("SELECT path, sha256 FROM checksum").fetch_all(&mut *tx).await?;
        let mut digests: HashMap<Vec<u8>, String> = HashMap::new();
        for row in rows {
            digests.insert(row.try_get(0)?, row.try_get(1)?);
        }
        let mut out = std::io::stdout().lock();
        for file in files {
            if let Some(digest) = digests.get(file.path.as_bytes()) {
                let (mark, name) = escaped(file.path.as_bytes());
                out.write_all(format!("{mark}{digest}  ").as_bytes())?;
                out.write_all(&name)?;
                out.write_all(b"\n")?;
            }
        }
        Ok(())
    }
}

/// A name that would break the line is escaped, and the line then begins with a backslash.
fn escaped(name: &[u8]) -> (&'static str, Vec<u8>) {
    let mut escaped = Vec::with_capacity(name.len());
    for byte in name {
        match byte {
            b'\\' => escaped.extend(b"\\\\"),
            b'\n' => escaped.extend(b"\\n"),
            b'\r' => escaped.extend(b"\\r"),
            _ => escaped.push(*byte),
        }
    }
    (if escaped == name { "" } else { "\\" }, escaped)
}
