//! Writes the implementations of a valid shape.
//!
//! 1. Every name is a path through `__private` of the user's own `jobs-core`, whatever is in scope:
//!    no prelude, no import and no item of the user's can change what it means.
//! 2. Nothing is written that depends on a feature, since `cfg` would ask the user's crate. The
//!    drift test is a macro of `jobs-core`, which asks its own.
//! 3. All of it sits in an anonymous `const`, so nothing is added to the user's names, but for the
//!    drift test: rustc finds no test in a `const`.
//! 4. What rustc may find wrong with it is on the user's token that caused it, once. So the traits
//!    that build on `Versioned` ask for it in a `where`: without that, a type that is not `Send`
//!    would be told so for each of them. The `for` is there because rustc checks a bound without
//!    any parameter on the spot, and then says it all the same.
//! 5. What a type may lack is named as `<Type as Trait>::…` and not as a bound: rustc then answers
//!    with the trait's own message, without quoting where a bound stands.

use proc_macro2::{Ident, Literal, Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::{Path, Type, ext::IdentExt, spanned::Spanned};

use crate::ast::{CatchUp, JobRole, Retry, Role, Shape};
use crate::text;

/// All implementations of a shape.
pub(crate) fn implementations(shape: &Shape) -> TokenStream {
    let past = shape.previous.as_ref().map(|previous| past(shape, previous));
    let versioned = versioned(shape);
    let role = match &shape.role {
        Role::Job(job) => {
            let payload = payload(shape, &job.kind);
            let job = job_of(shape, job);
            quote!(#payload #job)
        }
        Role::PastJob { kind } => payload(shape, kind),
        Role::Checkpoint => {
            let (name, private) = (&shape.name, private(shape));
            quote! {
                #[automatically_derived]
                impl #private::Checkpoint for #name
                where
                    for<'__a> #name: #private::Versioned,
                {
                }
            }
        }
    };
    let lock = if shape.is_locked { lock_tests(shape) } else { lock_watch(shape) };
    // Whoever deprecates an old shape means its uses by people, not its own implementations.
    quote! {
        #[allow(deprecated)]
        const _: () = {
            #past
            #versioned
            #role
        };
        #lock
    }
}

/// The drift test of a payload, and that of a job's checkpoint; a checkpoint alone has no kind.
fn lock_tests(shape: &Shape) -> TokenStream {
    let (name, private) = (&shape.name, private(shape));
    let test = |part: &str, of: TokenStream, kinds: &[&String]| {
        let role = if part == "Checkpoint" { "checkpoint_" } else { "" };
        let test = format_ident!("jobs_lock_{role}{}", text::snake_case(&name.unraw().to_string()));
        let part = format_ident!("{part}");
        quote! {
            #[cfg(test)]
            #private::lock_test!(#test, #part, #of, [#(#kinds),*]);
        }
    };
    match &shape.role {
        Role::Checkpoint => TokenStream::new(),
        Role::PastJob { kind } => test("Payload", quote!(#name), &[kind]),
        Role::Job(job) => {
            let kinds: Vec<&String> = std::iter::once(&job.kind).chain(&job.aliases).collect();
            let payload = test("Payload", quote!(#name), &kinds);
            let saved = quote!(<#name as #private::Job>::Checkpoint);
            let checkpoint = job.checkpoint.as_ref().map(|_| test("Checkpoint", saved, &kinds));
            quote!(#payload #checkpoint)
        }
    }
}

/// In a package without the folder: what makes cargo build it anew for `JOBS_LOCK=update`, since the
/// folder may be there by then. Cargo can't be told to watch what is not there yet.
fn lock_watch(shape: &Shape) -> TokenStream {
    let private = private(shape);
    match &shape.role {
        Role::Checkpoint => TokenStream::new(),
        Role::Job(_) | Role::PastJob { .. } => quote! {
            #[cfg(test)]
            #private::lock_watch!();
        },
    }
}

/// The shape's past, and the checks of it that only rustc can make.
fn past(shape: &Shape, previous: &Type) -> TokenStream {
    let (name, private, at) = (&shape.name, private(shape), previous.span());
    let role = match &shape.role {
        Role::Job(_) | Role::PastJob { .. } => quote!(PastPayload),
        Role::Checkpoint => quote!(PastCheckpoint),
    };
    let checks = checks(shape, previous);
    let next = located(quote!(#name), at);
    let past = quote_spanned!(at=> <#previous as #private::#role>::PREVIOUS);
    let upcast_from = quote_spanned!(at=> <#next as #private::UpcastFrom<#previous>>::upcast_from);
    quote! {
        const __PREVIOUS: #private::Previous<#previous> = #past;
        const __PAST: #private::Past<#name> = #private::Past::of(&__PREVIOUS, |__major, __text| {
            #upcast_from(__PREVIOUS.decode(__major, __text))
        });
        #checks
    }
}

fn checks(shape: &Shape, previous: &Type) -> TokenStream {
    let (name, at) = (&shape.name, previous.span());
    let private = located(private(shape), at);
    let major = shape.version[0];
    let none: &[String] = &[];
    let kind = match &shape.role {
        Role::Job(job) => Some((&job.kind, job.aliases.as_slice(), " or of one of its aliases")),
        Role::PastJob { kind } => Some((kind, none, "")),
        Role::Checkpoint => None,
    };
    let of_kind = kind.map(|(kind, aliases, or)| {
        let demand = format!("the past of `{name}` must be of the kind `{kind}`{or}");
        quote_spanned! {at=>
            const _: () =
                #private::assert!(__PAST.is_of_kind(#kind, &[#(#aliases),*]), #demand);
        }
    });
    let demand = format!("the past of `{name}` must have an older major than its own, {major}");
    quote_spanned! {at=>
        #of_kind
        const _: () = #private::assert!(__PAST.is_older(), #demand);
    }
}

fn versioned(shape: &Shape) -> TokenStream {
    let (name, private) = (&shape.name, private(shape));
    let [major, minor, patch] = shape.version.map(Literal::u32_unsuffixed);
    let [reader_major, reader_minor] = shape.min_reader.map(Literal::u32_unsuffixed);
    let (lines, past) = if shape.previous.is_some() {
        (quote!(__PAST.lines()), quote!(#private::Some(&__PAST)))
    } else {
        (quote!(#private::lines::<Self>()), quote!(#private::None))
    };
    let fingerprint = Literal::u64_unsuffixed(shape.fingerprint);
    let write = quote_spanned!(name.span()=> <Self as #private::Write>::write);
    let read = quote_spanned!(name.span()=> <Self as #private::Read>::read);
    quote! {
        #[automatically_derived]
        impl #private::Versioned for #name {
            const VERSION: #private::Version = #private::Version::new(#major, #minor, #patch);
            const MIN_READER: #private::MinReader =
                #private::MinReader { major: #reader_major, minor: #reader_minor };
            const FINGERPRINT: #private::u64 = #fingerprint;

            fn lines() -> #private::Vec<#private::Line> {
                #lines
            }

            fn encode(&self) -> #private::Result<#private::String, #private::EncodeError> {
                #write(self)
            }

            fn decode(
                __major: #private::u32,
                __text: &#private::str,
            ) -> #private::Result<Self, #private::DecodeError> {
                #read(__major, __text, #past)
            }
        }
    }
}

fn payload(shape: &Shape, kind: &str) -> TokenStream {
    let (name, private) = (&shape.name, private(shape));
    quote! {
        #[automatically_derived]
        impl #private::Payload for #name
        where
            for<'__a> #name: #private::Versioned,
        {
            const KIND: &'static #private::str = #kind;
        }
    }
}

fn job_of(shape: &Shape, job: &JobRole) -> TokenStream {
    let (name, private) = (&shape.name, private(shape));
    let checkpoint = job.checkpoint.as_ref().map_or_else(
        || quote!(type Checkpoint = #private::NoCheckpoint;),
        |checkpoint| {
            quote_spanned! {checkpoint.span()=>
                type Checkpoint = <#checkpoint as #private::OwnCheckpoint>::Itself;
            }
        },
    );
    let aliases = (!job.aliases.is_empty()).then(|| {
        let aliases = &job.aliases;
        quote! {
            const ALIASES: &'static [&'static #private::str] = &[#(#aliases),*];
        }
    });
    let policy = policy(job, &private);
    let retry = retry(job, &private);
    let unique_key = unique_key(job, &private);
    let schedules = schedules(job, &private);
    quote! {
        #[automatically_derived]
        impl #private::Job for #name
        where
            for<'__a> #name: #private::Versioned,
        {
            #checkpoint
            #aliases
            #policy
            #retry
            #unique_key
            #schedules
        }
    }
}

/// The policy as changes to the default one; nothing when there are none.
fn policy(job: &JobRole, private: &TokenStream) -> Option<TokenStream> {
    let queue = job.queue.as_ref().map(|queue| quote!(.queue(#queue)));
    let priority = job.priority.map(Literal::i16_unsuffixed);
    let priority = priority.map(|priority| quote!(.priority(#priority)));
    let max_failures = job.max_failures.map(Literal::u32_unsuffixed);
    let max_failures = max_failures.map(|limit| quote!(.max_failures(#limit)));
    let timeout = job.timeout_ms.map(Literal::u64_unsuffixed);
    let timeout = timeout.map(|ms| quote!(.timeout(#private::Duration::from_millis(#ms))));
    let expires_in = job.expires_in_ms.map(Literal::u64_unsuffixed);
    let expires_in = expires_in.map(|ms| quote!(.expires_in(#private::Duration::from_millis(#ms))));
    let on_stop = job.on_stop.map(|variant| Ident::new(variant, Span::call_site()));
    let on_stop = on_stop.map(|variant| quote!(.on_stop(#private::OnStop::#variant)));
    let every = job.checkpoint_every_ms.map(Literal::u64_unsuffixed);
    let every = every.map(|ms| quote!(.checkpoint_every(#private::Duration::from_millis(#ms))));
    let keeps_failures = job.keeps_failures.then(|| quote!(.keeps_failures()));
    let restarts =
        job.restarts.then(|| quote!(.on_old_checkpoint(#private::OldCheckpoint::Restart)));
    let changes = [
        queue,
        priority,
        max_failures,
        timeout,
        expires_in,
        on_stop,
        every,
        keeps_failures,
        restarts,
    ];
    let changes: Vec<TokenStream> = changes.into_iter().flatten().collect();
    if changes.is_empty() {
        return None;
    }
    Some(quote! {
        const POLICY: #private::Policy = #private::Policy::DEFAULT #(#changes)*;
    })
}

/// The waits between failures; nothing when they are the default ones.
fn retry(job: &JobRole, private: &TokenStream) -> Option<TokenStream> {
    let span = |ms: &u64| {
        let ms = Literal::u64_unsuffixed(*ms);
        quote!(#private::Duration::from_millis(#ms))
    };
    let ladder = match job.retry.as_ref()? {
        Retry::Exponential { first, cap } => {
            let (first, cap) = (span(first), span(cap));
            quote!(#private::Ladder::exponential(#first, #cap))
        }
        Retry::Fixed(wait) => {
            let wait = span(wait);
            quote!(#private::Ladder::fixed(#wait))
        }
        Retry::Steps(steps) => {
            let steps = steps.iter().map(span);
            quote!(#private::Ladder::steps([#(#steps),*]))
        }
    };
    Some(quote! {
        fn retry() -> #private::Ladder {
            #ladder
        }
    })
}

/// The key of the chosen fields; nothing when none are.
fn unique_key(job: &JobRole, private: &TokenStream) -> Option<TokenStream> {
    let members = &job.unique;
    (!members.is_empty()).then(|| {
        quote! {
            fn unique_key(
                &self,
            ) -> #private::Option<#private::Result<#private::String, #private::EncodeError>> {
                #private::Some(#private::unique_key(&(#(&self.#members,)*)))
            }
        }
    })
}

/// The schedule of the default payload; nothing when there is none.
fn schedules(job: &JobRole, private: &TokenStream) -> Option<TokenStream> {
    let when = job.schedule.as_ref()?;
    let own = quote_spanned!(when.span()=> <Self as #private::Tickable>::payload());
    let catch_up = job.catch_up.map(|catch_up| match catch_up {
        CatchUp::None => quote!(.catch_up(#private::CatchUp::None)),
        CatchUp::Latest => quote!(.catch_up(#private::CatchUp::Latest)),
        CatchUp::All(most) => {
            let most = Literal::u32_unsuffixed(most);
            quote!(.catch_up(#private::CatchUp::All(#most)))
        }
    });
    Some(quote! {
        fn schedules() -> #private::Vec<#private::Schedule> {
            #private::scheduled(#private::Schedule::new(#when, &#own)#catch_up)
        }
    })
}

/// The one module that an expansion speaks of.
fn private(shape: &Shape) -> TokenStream {
    let krate: &Path = &shape.krate;
    let at = krate.segments.last().map_or_else(Span::call_site, |last| last.ident.span());
    let private = Ident::new("__private", at);
    quote!(#krate::#private)
}

/// A path moved to another place, so that rustc points there; `$crate` means what it meant.
fn located(path: TokenStream, at: Span) -> TokenStream {
    path.into_iter()
        .map(|mut token| {
            if token.to_string() != "$crate" {
                token.set_span(at);
            }
            token
        })
        .collect()
}
