//! Which database a command is about.

use super::Globals;
use super::exit::{Failure, Result};
use crate::client::{Jobs, JobsBuilder};
use crate::store::Scheme;
use crate::store::postgres::PostgresStore;

impl Globals {
    /// The address, and what it is the address of.
    pub(super) fn address(&self) -> Result<(&str, Scheme)> {
        let url = self.url.as_deref().ok_or_else(|| {
            Failure::wrong(
                "which database? Set JOBS_URL or write `--url`, with `postgres://user@host/database` \
                 or `sqlite://app.db`",
            )
        })?;
        let scheme = Scheme::of(url).ok_or_else(|| {
            let what =
                "the address of the database begins with neither `postgres://` nor `sqlite:`: write \
                 `postgres://user@host/database`, or `sqlite://` and the path of the file";
            Failure::wrong(what)
        })?;
        if scheme == Scheme::Sqlite && self.is_schema_on_command_line() {
            return Err(Failure::wrong("a SQLite file has no schemas; leave `--schema` out"));
        }
        Ok((url, scheme))
    }

    /// The schema's name on PostgreSQL.
    pub(super) fn schema(&self) -> &str {
        self.schema.as_deref().unwrap_or("jobs")
    }

    /// Where the database is, without user and password, for questions to a person.
    pub(super) fn place(&self) -> Result<String> {
        Ok(match self.address()? {
            (url, Scheme::Postgres) => {
                format!("{} (schema {})", PostgresStore::place_of(url)?, self.schema())
            }
            (url, Scheme::Sqlite) => {
                let path = url.split_once(':').map_or(url, |(_, path)| path);
                let path = path.strip_prefix("//").unwrap_or(path);
                path.split('?').next().unwrap_or(path).to_owned()
            }
        })
    }

    /// How the database is opened.
    pub(super) fn builder(&self) -> JobsBuilder {
        let name = self.schema().to_owned();
        Jobs::builder()
            .build_label(concat!("jobs ", env!("CARGO_PKG_VERSION")))
            .postgres(move |options| options.schema(name.clone()))
    }

    /// One in the environment is for other addresses too.
    fn is_schema_on_command_line(&self) -> bool {
        self.schema.is_some() && std::env::var_os("JOBS_SCHEMA").is_none()
    }
}

/// Opens the database as it is: nothing is made or migrated.
pub(super) async fn open(globals: &Globals) -> Result<Jobs> {
    let (url, _) = globals.address()?;
    Ok(globals.builder().require_migrated().open(url).await?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn globals(url: &str) -> Globals {
        Globals { url: Some(url.to_owned()), schema: None, json: false }
    }

    #[test]
    fn an_address_is_read_as_an_application_reads_it() {
        for (url, scheme) in [
            ("sqlite:shop.db", Scheme::Sqlite),
            ("sqlite://shop.db", Scheme::Sqlite),
            ("sqlite:///var/shop.db?mode=rw", Scheme::Sqlite),
            ("postgresql://db.example/shop", Scheme::Postgres),
        ] {
            assert_eq!(globals(url).address().unwrap(), (url, scheme));
        }
        assert_eq!(globals("sqlite:shop.db").place().unwrap(), "shop.db");
        assert_eq!(globals("sqlite:///var/shop.db?mode=rw").place().unwrap(), "/var/shop.db");
        assert!(globals("memory:").address().is_err(), "nobody else sees that one");
    }

    #[test]
    fn neither_a_debug_text_nor_a_question_shows_a_password() {
        let shown = |url: &str| {
            let globals = globals(url);
            format!("{globals:?} {:?}", globals.place())
        };
        for password in ["p@ss:w/o#r?d%^&", "with space", "100%"] {
            let text = shown(&format!("postgres://me:{password}@db.example:6543/shop"));
            assert!(!text.contains(password) && text.contains("db.example:6543/shop"), "{text}");
        }
        let text = shown("postgres://db.example/shop?user=me&password=hunter2");
        assert!(!text.contains("hunter2") && text.contains("db.example:5432/shop"), "{text}");
    }
}
