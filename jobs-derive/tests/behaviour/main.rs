//! What derived types do: they keep what they store, and read the past.

mod options;
mod past;
mod raw;
mod shapes;

use jobs_core::Versioned;

/// Writes a value as the framework does and reads it back under its own major.
fn stored<T: Versioned>(value: &T) -> (String, T) {
    let text = value.encode().unwrap();
    let read = T::decode(T::VERSION.major, &text).unwrap();
    (text, read)
}
