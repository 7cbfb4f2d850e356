//! Connection URLs, with passwords as people paste them.
//!
//! 1. A password may hold any characters, percent-encoded or not.
//! 2. No error repeats the URL: it says which part is wrong.
//!
//! The driver's parser takes the rest of the URL; user and password are taken off first, since a
//! bare `@`, `/`, `#` or `?` in them would end the address too early.

use std::str::FromStr;

use jobs_core::{StoreError, StoreErrorKind, chain};
use sqlx::postgres::PgConnectOptions;

/// Reads a URL.
pub(super) fn connect_options(url: &str) -> Result<PgConnectOptions, StoreError> {
    let wrong = |what: &str| StoreError::new(StoreErrorKind::Configuration, what);
    let scheme = ["postgres://", "postgresql://"].into_iter().find(|it| url.starts_with(it));
    let Some(scheme) = scheme else {
        return Err(wrong("the address of the store does not start with postgres://"));
    };
    let (login, place) = split(&url[scheme.len()..]);
    let (user, password) = match login.map(|login| login.split_once(':').ok_or(login)) {
        Some(Ok((user, password))) => (decoded(user), Some(decoded(password))),
        Some(Err(user)) => (decoded(user), None),
        None => (String::new(), None),
    };
    // The driver looks for the user's line in a password file, so it has to hear of the user; and
    // before an address without a host a login is none to it.
    let mark = if place.contains('?') { '&' } else { '?' };
    let user = if user.is_empty() { user } else { format!("{mark}user={}", encoded(&user)) };
    let address = format!("{scheme}{place}{user}");
    let options = PgConnectOptions::from_str(&address).map_err(|error| {
        let text = match &error {
            sqlx::Error::Configuration(cause) => cause.to_string(),
            other => chain(other),
        };
        wrong(&format!("the host, port, database or a parameter of the address is wrong: {text}"))
    })?;
    Ok(match password {
        Some(password) => options.password(&password),
        None => options,
    })
}

/// Where a server listens: host and port, or the folder of its socket.
pub(super) fn host(options: &PgConnectOptions) -> String {
    match options.get_socket() {
        Some(folder) => folder.display().to_string(),
        None => format!("{}:{}", options.get_host(), options.get_port()),
    }
}

/// Where an address leads, without user and password: `host:port/database`.
pub(super) fn place(address: &PgConnectOptions) -> String {
    // The server takes the user's name for the database that is not named.
    let database = address.get_database().unwrap_or_else(|| address.get_username());
    format!("{}/{database}", host(address))
}

/// The login and the rest. The last `@` that a host can follow ends the login.
fn split(rest: &str) -> (Option<&str>, &str) {
    let is_host = |text: &str| {
        let end = text.find(['/', '?']).unwrap_or(text.len());
        text[..end].chars().all(|c| c.is_alphanumeric() || "-._~%:[],".contains(c))
    };
    let mut ends = rest.match_indices('@').map(|(at, _)| at).filter(|at| is_host(&rest[at + 1..]));
    let before_parameters = |at: &usize| !rest[..*at].contains('?') || !is_parameters(rest, *at);
    match ends.rfind(before_parameters) {
        Some(at) => (Some(&rest[..at]), &rest[at + 1..]),
        None => (None, rest),
    }
}

/// Whether an `@` stands in the parameters of an address whose login, if any, ended before.
fn is_parameters(rest: &str, at: usize) -> bool {
    rest[..at].rfind('?').is_some_and(|mark| rest[mark..at].contains('='))
}

/// A text with every byte percent-encoded that is no letter or digit.
fn encoded(text: &str) -> String {
    let byte = |byte: u8| {
        let is_plain = byte.is_ascii_alphanumeric();
        if is_plain { char::from(byte).to_string() } else { format!("%{byte:02X}") }
    };
    text.bytes().map(byte).collect()
}

/// A text with its percent-encoding undone; what is no encoding stands for itself.
fn decoded(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut plain = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let byte = (bytes[at] == b'%')
            .then(|| text.get(at + 1..at + 3))
            .flatten()
            .filter(|hex| hex.bytes().all(|digit| digit.is_ascii_hexdigit()))
            .and_then(|hex| u8::from_str_radix(hex, 16).ok());
        plain.push(byte.unwrap_or(bytes[at]));
        at += if byte.is_some() { 3 } else { 1 };
    }
    String::from_utf8(plain).unwrap_or_else(|_| text.to_owned())
}

#[cfg(test)]
mod tests;
