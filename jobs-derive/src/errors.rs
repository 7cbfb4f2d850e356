//! Collects what is wrong with a type, so that one compile tells all of it.

use std::fmt::Display;

use proc_macro2::TokenStream;
use quote::ToTokens;

/// The errors of one derive, each on its tokens.
#[derive(Default)]
pub(crate) struct Errors(Vec<syn::Error>);

impl Errors {
    /// Adds an error with its help.
    pub(crate) fn add(&mut self, at: impl ToTokens, what: impl Display, help: impl Display) {
        self.0.push(error(at, what, help));
    }

    /// Adds an error that was made elsewhere.
    pub(crate) fn push(&mut self, error: syn::Error) {
        self.0.push(error);
    }

    /// All errors as one, if there are any.
    pub(crate) fn into_one(self) -> Option<syn::Error> {
        self.0.into_iter().reduce(|mut all, error| {
            all.combine(error);
            all
        })
    }

    /// The errors as code that rustc reports one by one, if there are any.
    pub(crate) fn into_compile_errors(self) -> Option<TokenStream> {
        self.into_one().map(syn::Error::into_compile_error)
    }
}

/// An error with its help. A stable compiler gives a derive no other place for it than the message.
pub(crate) fn error(at: impl ToTokens, what: impl Display, help: impl Display) -> syn::Error {
    syn::Error::new_spanned(at, format_args!("{what}\nhelp: {help}"))
}
