use super::*;

const GOOD: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

#[test]
fn a_context_is_written_as_it_was_read() {
    let context: TraceContext = GOOD.parse().unwrap();
    assert_eq!(context.trace_id, 0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736);
    assert_eq!((context.parent_id, context.flags), (0x00f0_67aa_0ba9_02b7, 1));
    assert_eq!(context.to_string(), GOOD);
}

#[test]
fn a_later_version_is_read_for_what_it_shares() {
    let later = GOOD.replacen("00", "01", 1);
    assert!(later.parse::<TraceContext>().is_ok());
    assert!(format!("{later}-more").parse::<TraceContext>().is_ok());
}

#[test]
fn what_is_no_context_is_refused() {
    let zeros = "00-00000000000000000000000000000000-00f067aa0ba902b7-01";
    let no_parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01";
    let more = format!("{GOOD}-more");
    let upper = GOOD.to_uppercase();
    let last = GOOD.replacen("00", "ff", 1);
    for bad in ["", "00", zeros, no_parent, &more, &upper, &last, &GOOD[..54], "+0-1-2-3"] {
        assert_eq!(bad.parse::<TraceContext>(), Err(InvalidTraceContext), "{bad}");
    }
}
