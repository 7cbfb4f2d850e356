//! Checks the rules of a type and its options and says what they mean.
//!
//! Every rule is checked even if another is broken. A broken option is left at a value that causes
//! no second error where the shape is used: an empty kind, version 1.0.0, no policy.

use syn::{Attribute, Data, DeriveInput, Fields, LitStr, Member, Path, Type, ext::IdentExt};

use crate::{
    ast::{CatchUp, Derive, JobRole, Name, Number, Options, Role, Shape},
    errors::Errors,
    fingerprint,
    text::{self, Broken},
};

/// What the package that is being compiled says.
#[derive(Clone, Copy)]
pub(crate) struct Package {
    pub(crate) find_crate: fn() -> Option<Path>,
    /// Whether it takes part in the drift check.
    pub(crate) is_locked: bool,
}

/// Checks everything. `None` when nothing can be implemented for the type at all.
pub(crate) fn shape(
    input: &DeriveInput,
    derive: Derive,
    options: Options,
    package: Package,
    errors: &mut Errors,
) -> Option<Shape> {
    let is_storable = is_storable(input, errors);
    inner_attributes(input, errors);
    missing(input, derive, &options, errors);
    let version = checked(options.version.as_ref(), text::version, errors);
    let own = version.unwrap_or([1, 0, 0]);
    let min_reader = match version {
        Some(version) => {
            checked(options.readable_by.as_ref(), |text| text::reader(text, version), errors)
        }
        None => None,
    };
    if let (Some(previous), Some(version)) = (&options.previous, version) {
        check_previous(input, previous, version, errors);
    }
    let krate = options.krate.clone().or_else(|| {
        // A path that could not be read was named, and is no reason to say that none was.
        let found = (package.find_crate)();
        if found.is_none() && !options.named.contains(&Name::Crate) {
            no_crate(input, derive, errors);
        }
        found
    });
    let previous = options.previous.clone();
    let role = role(input, derive, options, errors);
    let (true, Some(krate)) = (is_storable, krate) else { return None };
    Some(Shape {
        name: input.ident.clone(),
        krate,
        version: own,
        min_reader: min_reader.unwrap_or([own[0], own[1]]),
        previous,
        fingerprint: fingerprint::of(input),
        is_locked: package.is_locked,
        role,
    })
}

/// Whether the type is of a form that can be stored: not a union, not generic.
fn is_storable(input: &DeriveInput, errors: &mut Errors) -> bool {
    if let Data::Union(union) = &input.data {
        let what = "a union can't be stored: nothing says which of its fields is meant";
        errors.add(union.union_token, what, "write an enum");
        return false;
    }
    if !input.generics.params.is_empty() {
        let what = "one kind is one stored shape: its type can't be generic";
        let help = "write the types out, own what is borrowed, or derive on one type for each case";
        errors.add(&input.generics, what, help);
        return false;
    }
    true
}

/// Reports options on fields and variants, where rustc would ignore them silently.
fn inner_attributes(input: &DeriveInput, errors: &mut Errors) {
    let mut check = |attributes: &[Attribute]| {
        for attribute in attributes {
            for name in ["job", "checkpoint"] {
                if attribute.path().is_ident(name) {
                    let what = format!("`#[{name}(…)]` goes on the type");
                    errors.add(attribute, what, "move the options above the type");
                }
            }
        }
    };
    let mut fields = |fields: &Fields| fields.iter().for_each(|field| check(&field.attrs));
    match &input.data {
        Data::Struct(data) => fields(&data.fields),
        Data::Enum(data) => {
            for variant in &data.variants {
                fields(&variant.fields);
            }
            data.variants.iter().for_each(|variant| check(&variant.attrs));
        }
        Data::Union(_) => {}
    }
}

/// Reports the options that must be written and are not.
fn missing(input: &DeriveInput, derive: Derive, options: &Options, errors: &mut Errors) {
    let attribute = derive.attribute();
    let name = &input.ident;
    let needed =
        |option: Name| derive.takes().contains(&option) && !options.named.contains(&option);
    let kind = proposed_kind(&name.unraw().to_string(), derive);
    let version = Name::Version.example();
    let Some(at) = input.attrs.iter().find(|it| it.path().is_ident(attribute)) else {
        let kind = if needed(Name::Kind) { format!("kind = \"{kind}\", ") } else { String::new() };
        let what = format!("`{name}` needs `#[{attribute}(…)]`");
        errors.add(name, what, format_args!("add `#[{attribute}({kind}{version})]`"));
        return;
    };
    if needed(Name::Kind) {
        let why = match derive {
            Derive::Job | Derive::Checkpoint => "it is stored, so it outlives the name of the type",
            Derive::PastJob => "it is the kind of the job whose past this is",
        };
        let help = format!("add `kind = \"{kind}\"`; {why}");
        errors.add(&at.meta, format_args!("`{name}` has no kind"), help);
    }
    if needed(Name::Version) {
        errors.add(&at.meta, format_args!("`{name}` has no version"), format!("add `{version}`"));
    }
}

/// A kind to propose for a type of this name.
fn proposed_kind(name: &str, derive: Derive) -> String {
    let name = match derive {
        Derive::Job | Derive::Checkpoint => name,
        // `ChargeV1` is the past of `Charge`.
        Derive::PastJob => {
            let stem = name.trim_end_matches(|letter: char| letter.is_ascii_digit());
            stem.strip_suffix('V').unwrap_or(name)
        }
    };
    let kind = text::snake_case(name);
    if text::kind(&kind).is_ok() { kind } else { "billing.charge".to_owned() }
}

fn check_previous(input: &DeriveInput, previous: &Type, version: [u32; 3], errors: &mut Errors) {
    if let Type::Path(path) = previous
        && (path.path.is_ident(&input.ident) || path.path.is_ident("Self"))
    {
        let help = "name the shape of an older major, with `#[derive(PastJob)]` on it";
        errors.add(previous, "a shape can't be its own past", help);
    } else if version[0] == 1 {
        let what = "major 1 has no past: `previous` is the shape of an older major";
        errors.add(previous, what, "raise the major, or leave `previous` out");
    }
}

fn no_crate(input: &DeriveInput, derive: Derive, errors: &mut Errors) {
    let what = "neither `jobs-core` nor `jobs-runtime` is a dependency of this package";
    let help = format!(
        "add one of them to Cargo.toml, or name a re-export with `#[{}(crate = \"…\")]`",
        derive.attribute(),
    );
    errors.add(&input.ident, what, help);
}

fn role(input: &DeriveInput, derive: Derive, options: Options, errors: &mut Errors) -> Role {
    let kind = options.kind.as_ref();
    let kind = checked(kind, |text| text::kind(text).map(|()| text.to_owned()), errors);
    let kind = kind.unwrap_or_default();
    let catch_up = catch_up(&options, errors);
    if let (Some(stop), Some(failures)) = (&options.on_stop, &options.max_failures)
        && stop.value() == "at_most_once"
    {
        let what = "a job that runs at most once has no second try";
        errors.add(&failures.tokens, what, "leave `max_failures` out");
    }
    match derive {
        Derive::PastJob => Role::PastJob { kind },
        Derive::Checkpoint => Role::Checkpoint,
        Derive::Job => Role::Job(Box::new(JobRole {
            checkpoint_every_ms: {
                without_checkpoint(&options, errors);
                checked(options.checkpoint_every.as_ref(), text::every, errors)
            },
            keeps_failures: checked(options.on_checkpoint.as_ref(), text::on_checkpoint, errors)
                .unwrap_or_default(),
            restarts: checked(options.on_old_checkpoint.as_ref(), text::on_old_checkpoint, errors)
                .unwrap_or_default(),
            aliases: aliases(&options.aliases, &kind, errors),
            kind,
            checkpoint: options.checkpoint,
            queue: checked(
                options.queue.as_ref(),
                |text| text::queue(text).map(|()| text.to_owned()),
                errors,
            ),
            priority: ranged(options.priority.as_ref(), Name::Priority, -100, 100, errors),
            max_failures: ranged(
                options.max_failures.as_ref(),
                Name::MaxFailures,
                1,
                u32::MAX,
                errors,
            ),
            timeout_ms: checked(options.timeout.as_ref(), text::timeout, errors),
            retry: checked(options.retry.as_ref(), text::retry, errors),
            expires_in_ms: checked(options.expires_in.as_ref(), text::expires_in, errors),
            unique: unique(input, &options.unique, errors),
            catch_up,
            schedule: options.schedule,
            on_stop: checked(options.on_stop.as_ref(), text::on_stop, errors),
        })),
    }
}

/// The fields that make a job unique.
fn unique(input: &DeriveInput, written: &[LitStr], errors: &mut Errors) -> Vec<Member> {
    let fields = match &input.data {
        Data::Struct(data) => data.fields.members().collect(),
        Data::Enum(_) | Data::Union(_) => Vec::new(),
    };
    let name = |member: &Member| match member {
        Member::Named(ident) => ident.unraw().to_string(),
        Member::Unnamed(index) => index.index.to_string(),
    };
    let mut members: Vec<Member> = Vec::new();
    for text in written {
        let wanted = text.value();
        let Some(member) = fields.iter().find(|member| name(member) == wanted) else {
            let names: Vec<_> = fields.iter().map(|member| format!("`{}`", name(member))).collect();
            let help = match names[..] {
                [] => "only a struct with fields can be unique by them".to_owned(),
                _ => format!("write one of {}", names.join(", ")),
            };
            errors.add(text, format_args!("`{wanted}` is no field of `{}`", input.ident), help);
            continue;
        };
        if members.contains(member) {
            errors.add(text, format_args!("`{wanted}` is written twice"), "keep one of them");
            continue;
        }
        members.push(member.clone());
    }
    members
}

fn catch_up(options: &Options, errors: &mut Errors) -> Option<CatchUp> {
    let written = options.catch_up.as_ref()?;
    if !options.named.contains(&Name::Schedule) {
        let help = format!("add `{}`, or leave `catch_up` out", Name::Schedule.example());
        errors.add(written, "nothing is missed without a schedule", help);
    }
    checked(Some(written), text::catch_up, errors)
}

/// Reports options about checkpoints of a job that names none.
fn without_checkpoint(options: &Options, errors: &mut Errors) {
    if options.named.contains(&Name::Checkpoint) {
        return;
    }
    let Options { checkpoint_every, on_checkpoint, on_old_checkpoint, .. } = options;
    for (name, written) in [
        (Name::CheckpointEvery, checkpoint_every),
        (Name::OnCheckpoint, on_checkpoint),
        (Name::OnOldCheckpoint, on_old_checkpoint),
    ] {
        if let Some(written) = written {
            let what = format!("`{}` needs a checkpoint, and this job names none", name.as_str());
            let help = format!("add `{}`, or leave it out", Name::Checkpoint.example());
            errors.add(written, what, help);
        }
    }
}

fn aliases(written: &[LitStr], kind: &str, errors: &mut Errors) -> Vec<String> {
    let mut known = vec![kind.to_owned()];
    for alias in written {
        let text = alias.value();
        if let Err(broken) = text::kind(&text) {
            report(alias, broken, errors);
        } else if known.contains(&text) {
            let what = if text == kind {
                format!("`{text}` is the kind itself")
            } else {
                format!("`{text}` is written twice")
            };
            errors.add(alias, what, "an alias is a kind from before a rename; leave it out");
        } else {
            known.push(text);
        }
    }
    known.split_off(1)
}

/// Checks a text, if there is one.
fn checked<T>(
    written: Option<&LitStr>,
    rule: impl FnOnce(&str) -> Result<T, Broken>,
    errors: &mut Errors,
) -> Option<T> {
    let written = written?;
    rule(&written.value()).map_err(|broken| report(written, broken, errors)).ok()
}

/// Checks a number, if there is one.
fn ranged<T>(
    written: Option<&Number>,
    name: Name,
    least: T,
    most: T,
    errors: &mut Errors,
) -> Option<T>
where
    T: Copy + PartialOrd + std::fmt::Display + std::str::FromStr,
    T::Err: std::fmt::Display,
{
    let written = written?;
    match written.value.base10_parse::<T>() {
        Ok(number) if least <= number && number <= most => Some(number),
        _ => {
            let what = format!("`{}` is a number from {least} to {most}", name.as_str());
            errors.add(&written.tokens, what, format_args!("write it as in `{}`", name.example()));
            None
        }
    }
}

fn report(written: &LitStr, broken: Broken, errors: &mut Errors) {
    errors.add(written, broken.why, broken.help);
}
