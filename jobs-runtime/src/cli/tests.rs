use super::*;

#[test]
fn help_calls_the_program_by_its_name_and_ends_in_what_every_command_takes() {
    let mut root = called(Root::command(), "shop");
    root.build();
    let redrive = root.find_subcommand_mut("redrive").expect("a command");
    let help = redrive.render_long_help().to_string();
    assert!(help.contains("\n  shop redrive 4711 4712\n"), "{help}");
    assert!(!help.contains("jobs redrive"), "{help}");
    let place = |text: &str| help.find(text).unwrap_or_else(|| panic!("{text} in {help}"));
    let heading = place("Options of every command:");
    assert!(place("--keep-counters") < heading && place("--yes") < heading);
    assert!(heading < place("--url") && heading < place("--schema") && heading < place("--json"));
}

#[test]
fn no_example_of_an_application_calls_another_program() {
    let mut root = called(Root::command(), "shop");
    root.build();
    let mut commands: Vec<&mut clap::Command> = vec![&mut root];
    while let Some(command) = commands.pop() {
        let help = command.render_long_help().to_string();
        for line in help.lines() {
            assert!(!line.trim_start().starts_with("jobs "), "{line}");
        }
        commands.extend(command.get_subcommands_mut());
    }
}
