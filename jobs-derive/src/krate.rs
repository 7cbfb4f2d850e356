//! Finds the crate that an expansion speaks of, under the name that the user gave it.

use proc_macro_crate::{FoundCrate, crate_name};
use proc_macro2::{Ident, Span};
use syn::{Path, PathSegment, Token, punctuated::Punctuated};

/// The path of `jobs-core`, or else of `jobs-runtime`, in the crate that is being compiled.
///
/// Both have `__private` at their root. A payload crate may depend on the first alone, a worker on
/// the second alone; where both are named, they are the same.
pub(crate) fn find() -> Option<Path> {
    let find = |package: &str, own: &str| match crate_name(package).ok()? {
        // Each of them is reachable under its own name inside itself as well, and its examples and
        // tests know it by no other.
        FoundCrate::Itself => Some(global(own)),
        FoundCrate::Name(name) => Some(global(&name)),
    };
    find("jobs-core", "jobs_core").or_else(|| find("jobs-runtime", "jobs_runtime"))
}

/// `::name`
fn global(name: &str) -> Path {
    let name = Ident::new(name, Span::call_site());
    Path {
        leading_colon: Some(Token![::](Span::call_site())),
        segments: Punctuated::from_iter([PathSegment::from(name)]),
    }
}
