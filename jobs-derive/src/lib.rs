//! The derives of the jobs framework.

use proc_macro::TokenStream;

/// Makes a struct or an enum a job.
#[proc_macro_derive(Job, attributes(job))]
pub fn job(_input: TokenStream) -> TokenStream {
    TokenStream::new()
}

/// Makes a struct or an enum the shape of a job in an older major.
#[proc_macro_derive(PastJob, attributes(job))]
pub fn past_job(_input: TokenStream) -> TokenStream {
    TokenStream::new()
}

/// Makes a struct or an enum a checkpoint.
#[proc_macro_derive(Checkpoint, attributes(checkpoint))]
pub fn checkpoint(_input: TokenStream) -> TokenStream {
    TokenStream::new()
}
