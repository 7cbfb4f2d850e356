//! The worker through the public interface, over the memory store and over a SQLite file.

mod support;

mod endings;
