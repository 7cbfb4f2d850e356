//! What the compiler says about mistakes, one rule a file, and what it has nothing to say about.

#[test]
fn each_mistake_is_told_and_the_rest_compiles() {
    let cases = trybuild::TestCases::new();
    cases.compile_fail("tests/ui/*.rs");
    cases.pass("tests/ui/pass/*.rs");
}
