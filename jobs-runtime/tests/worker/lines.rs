//! What is logged, for tests that read it.

use std::fmt::{Debug, Write as _};
use std::sync::{Arc, Mutex, OnceLock};

use tokio::sync::Notify;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

/// Keeps what is logged from INFO on: the level, then the message and the fields.
#[derive(Clone, Default)]
pub(crate) struct Lines {
    all: Arc<Mutex<Vec<String>>>,
    /// There is one more.
    news: Arc<Notify>,
}

impl Lines {
    /// What all threads of the process log, but those whose test listens to its own.
    #[allow(dead_code, reason = "each test crate uses its part")]
    pub(crate) fn of_all_threads() -> Self {
        static ALL: OnceLock<Lines> = OnceLock::new();
        let listen = || {
            let lines = Self::default();
            tracing::subscriber::set_global_default(lines.clone()).expect("nobody else sets one");
            lines
        };
        ALL.get_or_init(listen).clone()
    }

    pub(crate) fn all(&self) -> Vec<String> {
        self.all.lock().expect("no test panics while it logs").clone()
    }

    /// How many lines have a text.
    pub(crate) fn of(&self, text: &str) -> usize {
        self.all().iter().filter(|line| line.contains(text)).count()
    }

    /// Waits until a line has a text.
    #[allow(dead_code, reason = "each test crate uses its part")]
    pub(crate) async fn until(&self, text: &str) {
        loop {
            // Made before the look, so that it hears of what comes behind that.
            let news = self.news.notified();
            if self.of(text) > 0 {
                return;
            }
            news.await;
        }
    }
}

impl Subscriber for Lines {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= tracing::Level::INFO
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        struct Line(String);
        impl Visit for Line {
            fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
                write!(self.0, "{}={value:?} ", field.name()).expect("a text takes it");
            }
        }
        let mut line = Line(format!("{} ", event.metadata().level()));
        event.record(&mut line);
        self.all.lock().expect("no test panics while it logs").push(line.0);
        self.news.notify_waiters();
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}
