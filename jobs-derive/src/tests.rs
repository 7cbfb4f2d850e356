//! The expansions of the main shapes, and the rules that this crate shares with `jobs-core`.

use quote::quote;
use syn::parse_quote;

use crate::{ast::Derive, text, valid::Package};

/// The expansion of a type whose package names the framework as it is.
fn expanded(derive: Derive, input: proc_macro2::TokenStream) -> String {
    let input = syn::parse2(input).unwrap();
    let package = Package { find_crate: || Some(parse_quote!(::jobs_core)), is_locked: true };
    let expansion = crate::derive(&input, derive, package);
    prettyplease::unparse(&syn::parse2(expansion).unwrap())
}

#[test]
fn a_job_with_every_option() {
    let input = quote! {
        #[job(kind = "billing.charge", version = "2.1.0", readable_by = "2.0")]
        #[job(previous = past::ChargeV1, aliases("billing.debit", "debit"))]
        #[job(queue = "billing", priority = -5, max_failures = 10, timeout = "30s")]
        #[job(retry = "1s, 10s", expires_in = "1h", unique("order"))]
        #[job(schedule = "0 3 * * *", catch_up = "none")]
        #[job(checkpoint = ChargeAt, checkpoint_every = "5s", on_checkpoint = "keep_failures")]
        #[job(on_old_checkpoint = "restart", crate = "company::jobs")]
        pub struct Charge {
            order: i64,
        }
    };
    insta::assert_snapshot!(expanded(Derive::Job, input));
}

#[test]
fn a_job_with_no_more_than_it_needs() {
    let input = quote! {
        #[job(kind = "ping", version = "1.0.0")]
        struct Ping {
            host: String,
        }
    };
    insta::assert_snapshot!(expanded(Derive::Job, input));
}

#[test]
fn a_tuple_struct() {
    let input = quote! {
        #[job(kind = "ping", version = "1.2.3", readable_by = "1.1", priority = 100)]
        struct Ping(String, u16);
    };
    insta::assert_snapshot!(expanded(Derive::Job, input));
}

#[test]
fn a_unit_struct() {
    let input = quote! {
        #[job(kind = "ping", version = "1.0.0", timeout = "500ms", checkpoint = At)]
        struct Ping;
    };
    insta::assert_snapshot!(expanded(Derive::Job, input));
}

#[test]
fn an_enum() {
    let input = quote! {
        #[job(kind = "mail.send", version = "1.0.0", queue = "mail")]
        enum Mail {
            Digest,
            Welcome { to: String },
        }
    };
    insta::assert_snapshot!(expanded(Derive::Job, input));
}

#[test]
fn a_raw_identifier() {
    let input = quote! {
        #[job(kind = "yard.move", version = "2.0.0", previous = r#type)]
        struct r#move {
            r#gen: u8,
        }
    };
    insta::assert_snapshot!(expanded(Derive::Job, input));
}

#[test]
fn a_past_job_with_a_past() {
    let input = quote! {
        #[job(kind = "billing.charge", version = "2.4.0", previous = ChargeV1)]
        struct ChargeV2;
    };
    insta::assert_snapshot!(expanded(Derive::PastJob, input));
}

#[test]
fn a_checkpoint_with_a_past() {
    let input = quote! {
        #[checkpoint(version = "2.0.0", previous = ExportAtV1)]
        enum ExportAt {
            Rows { last_id: i64 },
            Upload,
        }
    };
    insta::assert_snapshot!(expanded(Derive::Checkpoint, input));
}

#[test]
fn a_job_with_errors_is_still_a_job() {
    let input = quote! {
        #[job(kind = "Billing", version = "2.1", queue = "", checkpoint = ChargeAt)]
        #[job(previous = ChargeV1)]
        struct Charge;
    };
    insta::assert_snapshot!(expanded(Derive::Job, input));
}

#[test]
fn a_generic_job_is_errors_alone() {
    let input = quote! {
        #[job(kind = "Billing", version = "1.0.0")]
        struct Charge<'a, T>(&'a T);
    };
    insta::assert_snapshot!(expanded(Derive::Job, input));
}

#[test]
fn kinds_are_those_of_the_core() {
    let longest = "a".repeat(96);
    let too_long = "a".repeat(97);
    for kind in [
        "a",
        "a1",
        "a_",
        "a.b",
        "billing.charge_2",
        "jobsite",
        "jobs_",
        "job",
        "a.jobs",
        "",
        ".",
        "a.",
        ".a",
        "a..b",
        "jobs",
        "jobs.",
        "jobs.prune",
        "1a",
        "a.1",
        "_a",
        "a._b",
        "A",
        "a-b",
        "a b",
        "a/b",
        "ä",
        "a\0",
        longest.as_str(),
        too_long.as_str(),
    ] {
        assert_eq!(text::kind(kind).is_ok(), jobs_core::is_kind(kind), "{kind:?}");
    }
}

#[test]
fn versions_are_those_of_the_core_with_three_parts() {
    for version in [
        "1.0.0",
        "1.2.3",
        "4294967295.4294967295.4294967295",
        "",
        "1",
        "1.",
        ".1",
        "1.2.",
        "1.2.3.4",
        "0.1.0",
        "01.2.0",
        "1.02.0",
        "1.2.03",
        "+1.2.3",
        "-1.2.3",
        "1.2.3-rc.1",
        "1.2.3+b",
        "^1.2.0",
        "1.x.0",
        "v1.2.3",
        "1.2.3 ",
        "4294967296.0.0",
        "1.2.0\0",
        "1.٢.0",
    ] {
        assert_eq!(
            text::version(version).ok(),
            jobs_core::Version::parse(version).ok().map(|it| [it.major, it.minor, it.patch]),
            "{version:?}"
        );
    }
    assert!(text::version("1.2").is_err(), "what is written by hand is written out");
}

#[test]
fn queues_are_those_of_the_core() {
    let longest = "q".repeat(255);
    let too_long = "q".repeat(256);
    for queue in ["q", "Über mail", " ", "", "a\nb", "\0", longest.as_str(), too_long.as_str()] {
        assert_eq!(text::queue(queue).is_ok(), jobs_core::QueueName::new(queue).is_ok(), "{queue}");
    }
}

#[test]
fn a_time_out_is_a_whole_number_and_a_unit() {
    let read = |text| text::timeout(text).ok();
    assert_eq!(read("500ms"), Some(500));
    assert_eq!(read("30s"), Some(30_000));
    assert_eq!(read("5m"), Some(300_000));
    assert_eq!(read("2h"), Some(7_200_000));
    assert_eq!(read("1d"), Some(86_400_000));
    assert_eq!(read("8760h"), Some(31_536_000_000));
    assert_eq!(read("365d"), Some(31_536_000_000));
    for text in [
        "",
        "s",
        "30",
        "30 s",
        " 30s",
        "0s",
        "030s",
        "-1s",
        "+1s",
        "1.5s",
        "1e3s",
        "30S",
        "1D",
        "366d",
        "30sec",
        "8761h",
        "4294967296ms",
        "1h30m",
        "٣s",
    ] {
        assert_eq!(read(text), None, "{text:?}");
    }
}

#[test]
fn a_proposed_kind_is_in_snake_case() {
    for (name, kind) in [
        ("Charge", "charge"),
        ("HTTPPing2", "http_ping2"),
        ("SendHTTP", "send_http"),
        ("OCRPage", "ocr_page"),
        ("send_mail", "send_mail"),
        ("__Odd", "odd"),
        ("A", "a"),
    ] {
        assert_eq!(text::snake_case(name), kind);
    }
}
