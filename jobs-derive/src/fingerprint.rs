//! A number that stands for a shape as it is written.
//!
//! Two builds that claim the same version with different numbers differ in the shape itself; two
//! equal numbers prove nothing, because types are hashed by their names. Docs, visibility, the name
//! of the type and attributes other than serde's are left out: they change nothing that is stored.

use proc_macro2::TokenTree;
use quote::ToTokens;
use syn::{Attribute, Data, DeriveInput, Fields};

/// The number of a shape; it is the same under every compiler.
pub(crate) fn of(input: &DeriveInput) -> u64 {
    let mut hash = Hash(0xcbf2_9ce4_8422_2325);
    hash.attributes(&input.attrs);
    match &input.data {
        Data::Struct(data) => hash.fields(&data.fields),
        Data::Enum(data) => {
            for variant in &data.variants {
                hash.text("|");
                hash.tokens(&variant.ident);
                hash.attributes(&variant.attrs);
                hash.fields(&variant.fields);
            }
        }
        Data::Union(_) => {}
    }
    hash.0
}

/// FNV-1a. Each text is ended by a byte that no text holds.
struct Hash(u64);

impl Hash {
    fn text(&mut self, text: &str) {
        for byte in text.bytes().chain([0xff]) {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    /// Token by token: how compilers space a printed stream differs.
    fn tokens(&mut self, written: &impl ToTokens) {
        for token in written.to_token_stream() {
            match token {
                TokenTree::Group(group) => {
                    self.text("(");
                    self.tokens(&group.stream());
                    self.text(")");
                }
                token => self.text(&token.to_string()),
            }
        }
    }

    fn attributes(&mut self, attributes: &[Attribute]) {
        for attribute in attributes.iter().filter(|it| it.path().is_ident("serde")) {
            self.tokens(&attribute.meta);
        }
    }

    fn fields(&mut self, fields: &Fields) {
        for field in fields {
            self.text(",");
            self.attributes(&field.attrs);
            if let Some(name) = &field.ident {
                self.tokens(name);
            }
            self.tokens(&field.ty);
        }
    }
}
