use super::*;

fn parts(url: &str) -> (String, String, u16, Option<String>) {
    let options = connect_options(url).unwrap();
    let database = options.get_database().map(ToOwned::to_owned);
    (options.get_username().to_owned(), options.get_host().to_owned(), options.get_port(), database)
}

#[test]
fn a_password_may_hold_any_characters() {
    for password in
        ["p@ss:w/o#r?d%^&", "with space", "100%", "%zz", "a@b@c", "p%40ss", "?", "#", "/"]
    {
        let url = format!("postgres://me:{password}@db.example:6543/shop");
        let expected = ("me".into(), "db.example".into(), 6543, Some("shop".into()));
        assert_eq!(parts(&url), expected, "{password}");
    }
}

#[test]
fn the_password_is_taken_whole() {
    let shown = format!("{:?}", connect_options("postgres://me:p@ss:w/o#r?d%^&@h/d").unwrap());
    assert!(shown.contains("p@ss:w/o#r?d%^&"), "{shown}");
}

#[test]
fn a_login_and_a_socket_may_be_left_out() {
    assert_eq!(parts("postgres://db.example/shop").1, "db.example");
    let options = connect_options("postgres:///shop?host=/run/postgresql&user=me").unwrap();
    assert_eq!(options.get_socket().unwrap().to_str(), Some("/run/postgresql"));
    assert_eq!(options.get_username(), "me");
    let options = connect_options("postgres://me@%2Frun%2Fpostgresql/shop").unwrap();
    assert_eq!(options.get_socket().unwrap().to_str(), Some("/run/postgresql"));
}

#[test]
fn an_at_sign_in_a_parameter_ends_no_login() {
    let url = "postgres://me:secret@db.example/shop?application_name=a@b";
    assert_eq!(parts(url).1, "db.example");
}

#[test]
fn no_error_repeats_the_password() {
    for url in ["postgres://me:hunter2@host:notaport/d", "mysql://me:hunter2@host/d"] {
        let error = connect_options(url).unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Configuration);
        assert!(!chain(&error).contains("hunter2"), "{}", chain(&error));
    }
}

#[test]
fn a_user_may_have_any_characters() {
    for (typed, user) in [("shop%20app", "shop app"), ("a%40b", "a@b"), ("größer", "größer")] {
        assert_eq!(parts(&format!("postgres://{typed}@h/d")).0, user);
        assert_eq!(parts(&format!("postgres://{typed}:p@ss@h/d")).0, user);
        assert_eq!(parts(&format!("postgres://{typed}@/d?host=/run/postgresql")).0, user);
    }
}
