//! Reads the options from the attributes of a type.
//!
//! 1. What can't be read is reported on its own tokens and left out; the options after it are still
//!    read, so that one compile tells every mistake.
//! 2. An option is read in its form alone. Whether its value is allowed is decided in `valid`.

use proc_macro2::{Ident, TokenStream, TokenTree};
use syn::{
    Attribute, Lit, LitStr, Meta, Path, Token, Type,
    ext::IdentExt,
    parenthesized,
    parse::{Parse, ParseStream},
    punctuated::Punctuated,
    token::Paren,
};

use crate::{
    ast::{Derive, Form, Name, Number, Options},
    errors::{Errors, error},
    nearest, text,
};

/// Reads every attribute of the derive on a type.
pub(crate) fn read(attributes: &[Attribute], derive: Derive, errors: &mut Errors) -> Options {
    let mut reader = Reader { derive, options: Options::default(), errors };
    for attribute in attributes.iter().filter(|it| it.path().is_ident(derive.attribute())) {
        reader.attribute(attribute);
    }
    reader.options
}

struct Reader<'a> {
    derive: Derive,
    options: Options,
    errors: &'a mut Errors,
}

impl Reader<'_> {
    fn attribute(&mut self, attribute: &Attribute) {
        let read = match &attribute.meta {
            Meta::List(list) => list.parse_args_with(|input: ParseStream<'_>| self.options(input)),
            // What it lacks is reported where the rules are.
            Meta::Path(_) => Ok(()),
            Meta::NameValue(other) => {
                let attribute = self.derive.attribute();
                let help = format!("write `#[{attribute}({}, …)]`", self.first().example());
                Err(error(other, "expected options in parentheses", help))
            }
        };
        if let Err(error) = read {
            self.errors.push(error);
        }
    }

    /// Reads options up to the end; the answer is always `Ok`, errors are collected.
    fn options(&mut self, input: ParseStream<'_>) -> syn::Result<()> {
        while !input.is_empty() {
            let read = self.option(input);
            let rest = value(input)?;
            if let Err(error) = read {
                self.errors.push(error);
            } else if !rest.is_empty() {
                self.errors.add(rest, "expected `,`", "options are separated by commas");
            }
            let comma = input.parse::<Option<Token![,]>>()?;
            if comma.is_none() && !input.is_empty() {
                let next: TokenTree = input.fork().parse()?;
                self.errors.add(next, "expected `,`", "options are separated by commas");
            }
        }
        Ok(())
    }

    fn option(&mut self, input: ParseStream<'_>) -> syn::Result<()> {
        let Ok(ident) = input.call(Ident::parse_any) else {
            let help = format!("write `{}`", self.first().example());
            let next: TokenTree = input.fork().parse()?;
            let stray = value(input)?;
            let at = if stray.is_empty() { next.into() } else { stray };
            return Err(error(at, "expected the name of an option", help));
        };
        let name = self.name(&ident)?;
        if self.options.named.contains(&name) {
            let what = format!("`{}` is written twice", name.as_str());
            value(input)?;
            return Err(error(ident, what, "keep one of them"));
        }
        self.options.named.push(name);
        let options = &mut self.options;
        match name {
            Name::Kind => options.kind = Some(quoted(name, &ident, input)?),
            Name::Version => options.version = Some(quoted(name, &ident, input)?),
            Name::ReadableBy => options.readable_by = Some(quoted(name, &ident, input)?),
            Name::Previous => options.previous = Some(bare_type(name, &ident, input)?),
            Name::Aliases => options.aliases = texts(name, &ident, input)?,
            Name::Queue => options.queue = Some(quoted(name, &ident, input)?),
            Name::Priority => options.priority = Some(number(name, &ident, input)?),
            Name::MaxFailures => options.max_failures = Some(number(name, &ident, input)?),
            Name::OnStop => options.on_stop = Some(quoted(name, &ident, input)?),
            Name::Timeout => options.timeout = Some(quoted(name, &ident, input)?),
            Name::Retry => options.retry = Some(quoted(name, &ident, input)?),
            Name::ExpiresIn => options.expires_in = Some(quoted(name, &ident, input)?),
            Name::Unique => options.unique = texts(name, &ident, input)?,
            Name::Schedule => options.schedule = Some(quoted(name, &ident, input)?),
            Name::CatchUp => options.catch_up = Some(quoted(name, &ident, input)?),
            Name::Checkpoint => options.checkpoint = Some(bare_type(name, &ident, input)?),
            Name::CheckpointEvery => {
                options.checkpoint_every = Some(quoted(name, &ident, input)?);
            }
            Name::OnCheckpoint => options.on_checkpoint = Some(quoted(name, &ident, input)?),
            Name::OnOldCheckpoint => {
                options.on_old_checkpoint = Some(quoted(name, &ident, input)?);
            }
            Name::Crate => options.krate = Some(path(name, &ident, input)?),
        }
        Ok(())
    }

    /// The option that an identifier names, or what it should have named.
    fn name(&self, ident: &Ident) -> syn::Result<Name> {
        let written = ident.unraw().to_string();
        let derive = self.derive.as_str();
        let Some(name) = Name::ALL.iter().copied().find(|name| name.as_str() == written) else {
            let help = nearest::meant(&written, self.derive).map_or_else(
                || format!("`#[derive({derive})]` takes {}", listed(self.derive.takes())),
                |name| did_you_mean(&written, name),
            );
            return Err(error(ident, format_args!("unknown option `{written}`"), help));
        };
        if self.derive.takes().contains(&name) {
            return Ok(name);
        }
        let what = format!("`{written}` is not an option of `#[derive({derive})]`");
        let help = if Derive::PastJob.takes().contains(&name) {
            "only `#[derive(Job)]` and `#[derive(PastJob)]` take it: a checkpoint has no kind"
        } else {
            match self.derive {
                Derive::Job | Derive::PastJob => {
                    "only `#[derive(Job)]` takes it: write it on the newest shape of the job"
                }
                Derive::Checkpoint => {
                    "only `#[derive(Job)]` takes it: write it on the job that saves this checkpoint"
                }
            }
        };
        Err(error(ident, what, help))
    }

    fn first(&self) -> Name {
        self.derive.takes()[0]
    }
}

/// Reads `= "text"`.
fn quoted(name: Name, ident: &Ident, input: ParseStream<'_>) -> syn::Result<LitStr> {
    let value = assigned(name, ident, input)?;
    syn::parse2(value.clone()).map_err(|_| wrong(name, value))
}

/// Reads `= 5` and `= -5`.
fn number(name: Name, ident: &Ident, input: ParseStream<'_>) -> syn::Result<Number> {
    let tokens = assigned(name, ident, input)?;
    match syn::parse2(tokens.clone()) {
        Ok(Lit::Int(value)) => Ok(Number { value, tokens }),
        _ => Err(wrong(name, tokens)),
    }
}

/// Reads `= a::path`, and the same in quotes, as serde has it.
///
/// Without quotes it may begin with the `$crate` of a macro.
fn path(name: Name, ident: &Ident, input: ParseStream<'_>) -> syn::Result<Path> {
    let value = assigned(name, ident, input)?;
    let parsed = match syn::parse2::<LitStr>(value.clone()) {
        Ok(text) => text.parse_with(Path::parse_mod_style),
        Err(_) => syn::parse::Parser::parse2(Path::parse_mod_style, value.clone()),
    };
    parsed.map_err(|_| wrong(name, value))
}

/// Reads `= Type`, whose own commas are inside angle brackets.
fn bare_type(name: Name, ident: &Ident, input: ParseStream<'_>) -> syn::Result<Type> {
    equals(name, ident, input)?;
    let start = input.fork();
    let is_literal = input.fork().parse::<Lit>().is_ok();
    match input.parse() {
        Ok(parsed) if !is_literal => Ok(parsed),
        _ => {
            value(input)?;
            Err(wrong(name, value(&start)?))
        }
    }
}

/// Reads `("text", "text")`.
fn texts(name: Name, ident: &Ident, input: ParseStream<'_>) -> syn::Result<Vec<LitStr>> {
    if !input.peek(Paren) {
        let equals = input.parse::<Option<Token![=]>>()?;
        let value = value(input)?;
        let at = if value.is_empty() { quote::quote!(#ident #equals) } else { value };
        return Err(wrong(name, at));
    }
    let inside;
    parenthesized!(inside in input);
    let mut found = Vec::new();
    let mut errors = Errors::default();
    for Item(value) in Punctuated::<Item, Token![,]>::parse_terminated(&inside)? {
        match syn::parse2(value.clone()) {
            Ok(text) => found.push(text),
            Err(_) => errors.push(wrong(name, value)),
        }
    }
    if let Some(errors) = errors.into_one() {
        return Err(errors);
    }
    if found.is_empty() {
        let help = format!("leave it out, or write `{}`", name.example());
        return Err(error(ident, format_args!("`{ident}` holds no texts"), help));
    }
    Ok(found)
}

/// The tokens of one text in a list, whatever they are.
struct Item(TokenStream);

impl Parse for Item {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        value(input).map(Self)
    }
}

/// Reads `= …` up to the next comma.
fn assigned(name: Name, ident: &Ident, input: ParseStream<'_>) -> syn::Result<TokenStream> {
    equals(name, ident, input)?;
    value(input)
}

/// Reads the `=`, after which there must be something.
fn equals(name: Name, ident: &Ident, input: ParseStream<'_>) -> syn::Result<()> {
    let equals = input.parse::<Option<Token![=]>>()?;
    if equals.is_some() && !input.is_empty() && !input.peek(Token![,]) {
        return Ok(());
    }
    let rest = value(input)?;
    let what = format!("`{}` takes {}", name.as_str(), name.form().as_str());
    let help = format!("write it as in `{}`", name.example());
    Err(error(quote::quote!(#ident #equals #rest), what, help))
}

/// Takes what stands before the next comma, or before the next option where the comma is missing.
fn value(input: ParseStream<'_>) -> syn::Result<TokenStream> {
    let mut value = TokenStream::new();
    let is_next = || input.peek(Ident::peek_any) && input.peek2(Token![=]);
    while !input.is_empty() && !input.peek(Token![,]) && !is_next() {
        value.extend([input.parse::<TokenTree>()?]);
    }
    Ok(value)
}

/// An error about a value in a wrong form, with the right one where it can be guessed.
fn wrong(name: Name, value: TokenStream) -> syn::Error {
    let written = name.as_str();
    let content = unquoted(&value);
    let right = match name.form() {
        Form::Text => text::likely(name, &content).map(|text| format!("{written} = \"{text}\"")),
        Form::Texts => text::likely(name, &content).map(|text| format!("{written}(\"{text}\")")),
        Form::Number => content.parse::<i64>().ok().map(|number| format!("{written} = {number}")),
        Form::Type | Form::Path => {
            syn::parse_str::<Path>(&content).ok().map(|_| format!("{written} = {content}"))
        }
    };
    let help = match right {
        Some(right) => format!("write `{right}`"),
        None => format!("write it as in `{}`", name.example()),
    };
    error(value, format_args!("`{written}` takes {}", name.form().as_str()), help)
}

/// What a value says, whether it is a text or bare tokens, without spaces.
fn unquoted(value: &TokenStream) -> String {
    match syn::parse2::<LitStr>(value.clone()) {
        Ok(text) => text.value(),
        Err(_) => value.to_string().chars().filter(|letter| !letter.is_whitespace()).collect(),
    }
}

fn did_you_mean(written: &str, name: Name) -> String {
    let help = format!("did you mean `{}`?", name.as_str());
    if written.contains("retries") {
        format!("{help} It counts the first run too: 3 retries are `max_failures = 4`")
    } else {
        help
    }
}

fn listed(names: &[Name]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("`{}`", name.as_str())).collect();
    names.join(", ")
}
