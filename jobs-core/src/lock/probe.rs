//! What the emitted tests ask of a type: does it say its schema, has it samples of its own?
//!
//! A test must compile for every job of a package, also where only some types derive `JsonSchema`.
//! So it asks through two traits of one method: rustc takes the one on the probe where its bound
//! holds, and else the one on a reference to it.

use std::marker::PhantomData;

use schemars::JsonSchema;

use super::Samples;
use super::schema::Schemas;
use crate::job::Versioned;

/// Asks about a type.
#[derive(Debug)]
pub struct Probe<T>(PhantomData<T>);

impl<T> Probe<T> {
    /// Of any type.
    pub fn new() -> Self {
        Self(PhantomData)
    }
}

impl<T> Default for Probe<T> {
    fn default() -> Self {
        Self::new()
    }
}

/// A type with a schema.
pub trait Described {
    /// Its schemas.
    fn schemas(&self) -> Option<Schemas>;
}

impl<T: JsonSchema> Described for Probe<T> {
    fn schemas(&self) -> Option<Schemas> {
        Some(Schemas::of::<T>())
    }
}

/// Any other type.
pub trait Undescribed {
    /// None.
    fn schemas(&self) -> Option<Schemas>;
}

impl<T> Undescribed for &Probe<T> {
    fn schemas(&self) -> Option<Schemas> {
        None
    }
}

/// A type with samples of its own.
pub trait Sampled {
    /// Their texts.
    fn samples(&self) -> Vec<String>;
}

impl<T: Samples + Versioned> Sampled for Probe<T> {
    fn samples(&self) -> Vec<String> {
        let encode = |sample: &T| sample.encode().expect("a sample can be encoded");
        T::samples().iter().map(encode).collect()
    }
}

/// Any other type.
pub trait Unsampled {
    /// None.
    fn samples(&self) -> Vec<String>;
}

impl<T> Unsampled for &Probe<T> {
    fn samples(&self) -> Vec<String> {
        Vec::new()
    }
}
