//! What a registry refuses: every message names the types, so that the clash can be found.

use jobs_runtime::prelude::*;
use serde::{Deserialize, Serialize};

mod billing {
    use super::*;

    #[derive(Serialize, Deserialize, Job)]
    #[job(kind = "charge", version = "1.0.0")]
    pub(crate) struct Charge;
}

mod batteries {
    use super::*;

    #[derive(Serialize, Deserialize, Job)]
    #[job(kind = "charge", version = "1.0.0")]
    pub(crate) struct Charge;
}

#[derive(Serialize, Deserialize, Job)]
#[job(kind = "refund", version = "1.0.0", aliases("charge", "payback"))]
struct Refund;

#[derive(Serialize, Deserialize, Job)]
#[job(kind = "restore", version = "1.0.0", aliases("payback"))]
struct Restore;

async fn ignore<J>(_: J, _: JobContext<()>) -> Result<(), JobError> {
    Ok(())
}

fn problems(registry: Registry<()>) -> Vec<String> {
    registry.build().unwrap_err().problems().to_vec()
}

#[test]
fn two_types_of_one_kind_are_refused_by_name() {
    let registry = Registry::new().handle(ignore::<billing::Charge>);
    assert_eq!(
        problems(registry.handle(ignore::<batteries::Charge>)),
        ["kind `charge` is claimed by two types, registry::billing::Charge and \
             registry::batteries::Charge; give one of them another kind, or register only one"]
    );
}

#[test]
fn an_alias_that_is_the_kind_of_another_type_is_refused_by_name_in_either_order() {
    let alias_last = Registry::new().handle(ignore::<billing::Charge>).handle(ignore::<Refund>);
    let alias_first = Registry::new().handle(ignore::<Refund>).handle(ignore::<billing::Charge>);
    for (registry, first, second) in
        [(alias_last, "billing::Charge", "Refund"), (alias_first, "Refund", "billing::Charge")]
    {
        let wanted = format!(
            "kind `charge` is claimed by two types, registry::{first} and registry::{second}; give \
             one of them another kind, or register only one"
        );
        assert_eq!(problems(registry), [wanted]);
    }
}

#[test]
fn one_alias_of_two_types_is_refused_by_name() {
    assert_eq!(
        problems(Registry::new().handle(ignore::<Refund>).handle(ignore::<Restore>)),
        ["kind `payback` is claimed by two types, registry::Refund and registry::Restore; give \
             one of them another kind, or register only one"]
    );
}

#[test]
fn a_type_that_is_registered_twice_is_refused() {
    let registry = Registry::new().handle(ignore::<Restore>);
    assert_eq!(
        problems(registry.handle(|_: Restore, _: JobContext<()>| async { Ok(()) })),
        [
            "kind `restore` is registered twice for registry::Restore; remove one of the two",
            "kind `payback` is registered twice for registry::Restore; remove one of the two",
        ]
    );
}

#[test]
fn a_kind_that_is_retired_and_handled_is_refused_by_name() {
    for kind in ["restore", "payback"] {
        let registry = Registry::new().retired(kind).handle(ignore::<Restore>);
        let wanted = format!("kind `{kind}` is retired, but registry::Restore still handles it");
        assert_eq!(problems(registry), [wanted]);
    }
}

#[test]
fn every_mistake_is_told_at_once() {
    let registry = Registry::new()
        .handle(ignore::<billing::Charge>)
        .handle(ignore::<batteries::Charge>)
        .handle(ignore::<Restore>)
        .retired("restore")
        .retired("Mail Digest");
    let error = registry.build().unwrap_err();
    assert_eq!(error.problems().len(), 3, "{error}");
    assert!(error.to_string().starts_with("the registry has mistakes: kind `charge`"), "{error}");
}

#[test]
fn a_registry_without_a_clash_is_built() {
    let registry = Registry::new().handle(ignore::<billing::Charge>).handle(ignore::<Restore>);
    assert!(registry.retired("mail.digest").retired("mail.digest").build().is_ok());
}

#[test]
fn the_mistakes_are_a_sentence_however_they_are_printed() {
    let registry = Registry::new().handle(ignore::<Refund>).retired("refund");
    let error = registry.build().unwrap_err();
    let told = "the registry has mistakes: kind `refund` is retired, but registry::Refund still \
                handles it";
    assert_eq!(error.to_string(), told);
    assert_eq!(format!("{error:?}"), told);
}
