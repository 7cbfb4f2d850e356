//! What a derive is given, in the derive's own words.
//!
//! [`Options`] is what the attributes say, token by token; [`Shape`] is what they mean once every
//! rule has been checked. Between the two stands `valid`.

use proc_macro2::{Ident, TokenStream};
use syn::{LitInt, LitStr, Member, Path, Type};

/// One of the three derives.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Derive {
    Job,
    PastJob,
    Checkpoint,
}

/// The name of an option.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Name {
    Kind,
    Version,
    ReadableBy,
    Previous,
    Aliases,
    Queue,
    Priority,
    MaxFailures,
    Timeout,
    Retry,
    ExpiresIn,
    Unique,
    Schedule,
    CatchUp,
    OnStop,
    Checkpoint,
    CheckpointEvery,
    OnCheckpoint,
    OnOldCheckpoint,
    Crate,
}

/// How the value of an option is written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Text,
    Texts,
    Number,
    Type,
    Path,
}

/// The options as written: each at most once, in its form, its rules not yet checked.
#[derive(Default)]
pub(crate) struct Options {
    pub(crate) kind: Option<LitStr>,
    pub(crate) version: Option<LitStr>,
    pub(crate) readable_by: Option<LitStr>,
    pub(crate) previous: Option<Type>,
    pub(crate) aliases: Vec<LitStr>,
    pub(crate) queue: Option<LitStr>,
    pub(crate) priority: Option<Number>,
    pub(crate) max_failures: Option<Number>,
    pub(crate) timeout: Option<LitStr>,
    pub(crate) retry: Option<LitStr>,
    pub(crate) expires_in: Option<LitStr>,
    pub(crate) unique: Vec<LitStr>,
    pub(crate) schedule: Option<LitStr>,
    pub(crate) catch_up: Option<LitStr>,
    pub(crate) on_stop: Option<LitStr>,
    pub(crate) checkpoint: Option<Type>,
    pub(crate) checkpoint_every: Option<LitStr>,
    pub(crate) on_checkpoint: Option<LitStr>,
    pub(crate) on_old_checkpoint: Option<LitStr>,
    pub(crate) krate: Option<Path>,
    /// Every option that was named, also with a value that could not be read: it isn't missing.
    pub(crate) named: Vec<Name>,
}

/// A whole number, and all of its tokens: the sign is one of its own.
pub(crate) struct Number {
    pub(crate) value: LitInt,
    pub(crate) tokens: TokenStream,
}

/// A versioned shape and all that is said of it.
pub(crate) struct Shape {
    pub(crate) name: Ident,
    pub(crate) krate: Path,
    pub(crate) version: [u32; 3],
    pub(crate) min_reader: [u32; 2],
    pub(crate) previous: Option<Type>,
    /// Stands for the names and types of the fields, as they are written.
    pub(crate) fingerprint: u64,
    /// Whether its package takes part in the drift check.
    pub(crate) is_locked: bool,
    pub(crate) role: Role,
}

/// What a shape is for.
pub(crate) enum Role {
    Job(Box<JobRole>),
    PastJob { kind: String },
    Checkpoint,
}

/// What only a job has.
#[derive(Default)]
pub(crate) struct JobRole {
    pub(crate) kind: String,
    pub(crate) aliases: Vec<String>,
    pub(crate) checkpoint: Option<Type>,
    pub(crate) queue: Option<String>,
    pub(crate) priority: Option<i16>,
    pub(crate) max_failures: Option<u32>,
    pub(crate) timeout_ms: Option<u64>,
    pub(crate) retry: Option<Retry>,
    pub(crate) expires_in_ms: Option<u64>,
    pub(crate) unique: Vec<Member>,
    pub(crate) schedule: Option<LitStr>,
    pub(crate) catch_up: Option<CatchUp>,
    /// The variant of `OnStop`.
    pub(crate) on_stop: Option<&'static str>,
    pub(crate) checkpoint_every_ms: Option<u64>,
    pub(crate) keeps_failures: bool,
    pub(crate) restarts: bool,
}

/// The waits between failures, in milliseconds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Retry {
    Exponential { first: u64, cap: u64 },
    Fixed(u64),
    Steps(Vec<u64>),
}

/// What is done about ticks that nobody was there for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CatchUp {
    None,
    Latest,
    All(u32),
}

impl Derive {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Job => "Job",
            Self::PastJob => "PastJob",
            Self::Checkpoint => "Checkpoint",
        }
    }

    /// The attribute that holds its options.
    pub(crate) fn attribute(self) -> &'static str {
        match self {
            Self::Job | Self::PastJob => "job",
            Self::Checkpoint => "checkpoint",
        }
    }

    /// The options that it takes, in the order of the documentation.
    pub(crate) fn takes(self) -> &'static [Name] {
        match self {
            Self::Job => Name::ALL,
            Self::PastJob => {
                &[Name::Kind, Name::Version, Name::ReadableBy, Name::Previous, Name::Crate]
            }
            Self::Checkpoint => &[Name::Version, Name::ReadableBy, Name::Previous, Name::Crate],
        }
    }
}

impl Name {
    pub(crate) const ALL: &'static [Self] = &[
        Self::Kind,
        Self::Version,
        Self::ReadableBy,
        Self::Previous,
        Self::Aliases,
        Self::Queue,
        Self::Priority,
        Self::MaxFailures,
        Self::Timeout,
        Self::Retry,
        Self::ExpiresIn,
        Self::Unique,
        Self::Schedule,
        Self::CatchUp,
        Self::OnStop,
        Self::Checkpoint,
        Self::CheckpointEvery,
        Self::OnCheckpoint,
        Self::OnOldCheckpoint,
        Self::Crate,
    ];

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Kind => "kind",
            Self::Version => "version",
            Self::ReadableBy => "readable_by",
            Self::Previous => "previous",
            Self::Aliases => "aliases",
            Self::Queue => "queue",
            Self::Priority => "priority",
            Self::MaxFailures => "max_failures",
            Self::Timeout => "timeout",
            Self::Retry => "retry",
            Self::ExpiresIn => "expires_in",
            Self::Unique => "unique",
            Self::Schedule => "schedule",
            Self::CatchUp => "catch_up",
            Self::OnStop => "on_stop",
            Self::Checkpoint => "checkpoint",
            Self::CheckpointEvery => "checkpoint_every",
            Self::OnCheckpoint => "on_checkpoint",
            Self::OnOldCheckpoint => "on_old_checkpoint",
            Self::Crate => "crate",
        }
    }

    pub(crate) fn form(self) -> Form {
        match self {
            Self::Kind
            | Self::Version
            | Self::ReadableBy
            | Self::Queue
            | Self::Timeout
            | Self::Retry
            | Self::ExpiresIn
            | Self::Schedule
            | Self::CatchUp
            | Self::OnStop
            | Self::CheckpointEvery
            | Self::OnCheckpoint
            | Self::OnOldCheckpoint => Form::Text,
            Self::Aliases | Self::Unique => Form::Texts,
            Self::Priority | Self::MaxFailures => Form::Number,
            Self::Previous | Self::Checkpoint => Form::Type,
            Self::Crate => Form::Path,
        }
    }

    /// The option as it could be written.
    pub(crate) fn example(self) -> &'static str {
        match self {
            Self::Kind => r#"kind = "billing.charge""#,
            Self::Version => r#"version = "1.0.0""#,
            Self::ReadableBy => r#"readable_by = "1.0""#,
            Self::Previous => "previous = ChargeV1",
            Self::Aliases => r#"aliases("billing.old_charge")"#,
            Self::Queue => r#"queue = "billing""#,
            Self::Priority => "priority = 5",
            Self::MaxFailures => "max_failures = 10",
            Self::Timeout => r#"timeout = "30s""#,
            Self::Retry => r#"retry = "2s..1h""#,
            Self::ExpiresIn => r#"expires_in = "10m""#,
            Self::Unique => r#"unique("order")"#,
            Self::Schedule => r#"schedule = "0 3 * * * Europe/Berlin""#,
            Self::CatchUp => r#"catch_up = "latest""#,
            Self::OnStop => r#"on_stop = "finish""#,
            Self::Checkpoint => "checkpoint = ExportAt",
            Self::CheckpointEvery => r#"checkpoint_every = "5s""#,
            Self::OnCheckpoint => r#"on_checkpoint = "keep_failures""#,
            Self::OnOldCheckpoint => r#"on_old_checkpoint = "restart""#,
            Self::Crate => r#"crate = "company::jobs""#,
        }
    }
}

impl Form {
    /// What a value of the form is, to finish "`kind` takes …".
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Text => "a text in quotes",
            Self::Texts => "texts in parentheses",
            Self::Number => "a whole number",
            Self::Type => "a type",
            Self::Path => "a path",
        }
    }
}
