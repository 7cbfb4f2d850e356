//! A way to a server that a test can cut, hold, slow down, turn elsewhere, and make hold or lose answers.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// What becomes of connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    /// Bytes pass.
    Open,
    /// Connections end, and new ones end at once.
    Cut,
    /// Connections stay, and no byte passes until they may again.
    Held,
}

/// A proxy on a port of its own; connections end when it is dropped.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    road: Arc<Road>,
    _accepting: JoinSet<()>,
}

#[derive(Debug)]
struct Road {
    flow: watch::Sender<Flow>,
    /// Grows with every cut.
    cuts: watch::Sender<u64>,
    /// Grows with every connection that is ended at once.
    refused: AtomicU64,
    /// Grows whenever connections fall silent for good.
    strands: watch::Sender<u64>,
    /// The statements whose answers are held, by a text in them.
    held: watch::Sender<Option<String>>,
    rules: Mutex<Rules>,
}

#[derive(Debug)]
struct Rules {
    server: PathBuf,
    delay: Duration,
    /// Of which statement the answer is lost, and how often still.
    lost: Option<(String, usize)>,
}

impl Proxy {
    /// A proxy to the server that listens on a socket.
    ///
    /// # Panics
    /// When no port is free.
    pub async fn start(server: &Path) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port is free");
        let address = listener.local_addr().expect("a listener has an address");
        let rules = Rules { server: server.to_owned(), delay: Duration::ZERO, lost: None };
        let road = Arc::new(Road {
            flow: watch::Sender::new(Flow::Open),
            cuts: watch::Sender::new(0),
            refused: AtomicU64::new(0),
            strands: watch::Sender::new(0),
            held: watch::Sender::new(None),
            rules: Mutex::new(rules),
        });
        let mut accepting = JoinSet::new();
        accepting.spawn(accept(listener, Arc::clone(&road)));
        Self { address, road, _accepting: accepting }
    }

    /// The address of the database `postgres` through this proxy.
    pub fn url(&self) -> String {
        format!("postgres://jobs@{}/postgres?sslmode=disable", self.address)
    }

    /// Lets bytes pass, or not.
    pub fn set(&self, flow: Flow) {
        self.road.flow.send_replace(flow);
        if flow == Flow::Cut {
            self.road.cuts.send_modify(|cuts| *cuts += 1);
        }
    }

    /// How many connections were tried while the way was cut.
    pub fn refused(&self) -> u64 {
        self.road.refused.load(Ordering::SeqCst)
    }

    /// Lets no byte of the present connections pass ever again, and leaves them open; new ones work.
    pub fn strand(&self) {
        self.road.strands.send_modify(|strands| *strands += 1);
    }

    /// Delays every answer.
    pub fn delay(&self, span: Duration) {
        self.road.rules().delay = span;
    }

    /// Leads new connections to another server, and ends the old ones.
    pub fn lead_to(&self, server: &Path) {
        server.clone_into(&mut self.road.rules().server);
        self.set(Flow::Cut);
        self.set(Flow::Open);
    }

    /// Loses the next answers to statements that contain a text, where `^` stands before and `$`
    /// after each: the server has done what it was asked to, and its connection ends in place of
    /// the answer.
    pub fn lose_answers(&self, text: &str, times: usize) {
        self.road.rules().lost = Some((text.to_owned(), times));
    }

    /// Holds the answers to statements that contain a text, until they are let go.
    pub fn hold_answers(&self, text: &str) {
        self.road.held.send_replace(Some(text.to_owned()));
    }

    /// Lets go of answers that were held.
    pub fn let_go(&self) {
        self.road.held.send_replace(None);
    }

    /// How many answers are still to be lost.
    pub fn answers_to_lose(&self) -> usize {
        self.road.rules().lost.as_ref().map_or(0, |(_, times)| *times)
    }
}

impl Road {
    fn rules(&self) -> MutexGuard<'_, Rules> {
        self.rules.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the answer to this statement is one to lose; it is then counted.
    fn loses(&self, sql: &str) -> bool {
        let mut rules = self.rules();
        let Some((text, times)) = &mut rules.lost else {
            return false;
        };
        let is_lost = *times > 0 && format!("^{sql}$").contains(text.as_str());
        *times -= usize::from(is_lost);
        is_lost
    }

    /// Whether the answer to this statement is to be held.
    fn holds(&self, sql: &str) -> bool {
        self.held.borrow().as_ref().is_some_and(|text| sql.contains(text.as_str()))
    }
}

async fn accept(listener: TcpListener, road: Arc<Road>) {
    let mut connections = JoinSet::new();
    while let Ok((client, _)) = listener.accept().await {
        while connections.try_join_next().is_some() {}
        if *road.flow.borrow() == Flow::Cut {
            road.refused.fetch_add(1, Ordering::SeqCst);
            continue;
        }
        let road = Arc::clone(&road);
        // Subscribed here, so that no cut from now on is missed.
        let mut cuts = road.cuts.subscribe();
        let mut strands = road.strands.subscribe();
        connections.spawn(async move {
            let mut client = client;
            let stranded = async {
                tokio::select! {
                    () = carry(&mut client, &road) => {}
                    _ = strands.changed() => std::future::pending().await,
                }
            };
            tokio::select! {
                () = stranded => {}
                _ = cuts.changed() => {}
            }
        });
    }
}

async fn carry(client: &mut TcpStream, road: &Road) {
    let server = road.rules().server.clone();
    let Ok(mut server) = UnixStream::connect(server).await else {
        return;
    };
    // Without it, delayed acknowledgements would add 40 ms to some answers.
    let _ = client.set_nodelay(true);
    let (mut from_client, mut to_client) = client.split();
    let (mut from_server, mut to_server) = server.split();
    let is_lost = Mutex::new(false);
    let lost = || is_lost.lock().unwrap_or_else(PoisonError::into_inner);
    let is_held = AtomicBool::new(false);
    let up = async {
        let mut questions = Questions::default();
        let mut bytes = vec![0; 64 * 1024];
        while let Ok(length @ 1..) = from_client.read(&mut bytes).await {
            questions.hear(&bytes[..length], |sql| {
                *lost() |= road.loses(sql);
                is_held.fetch_or(road.holds(sql), Ordering::SeqCst);
            });
            while_held(road).await;
            if to_server.write_all(&bytes[..length]).await.is_err() {
                return;
            }
        }
    };
    let down = async {
        let mut bytes = vec![0; 64 * 1024];
        while let Ok(length @ 1..) = from_server.read(&mut bytes).await {
            if *lost() {
                // The server is ready for the next question: it has committed.
                if is_ready(&bytes[..length]) {
                    return;
                }
                continue;
            }
            let delay = road.rules().delay;
            if !delay.is_zero() {
                tokio::time::sleep(delay).await;
            }
            if is_held.swap(false, Ordering::SeqCst) {
                // The road outlives its connections, so the sender is there.
                let _ = road.held.subscribe().wait_for(Option::is_none).await;
            }
            while_held(road).await;
            if to_client.write_all(&bytes[..length]).await.is_err() {
                return;
            }
        }
    };
    tokio::select! {
        () = up => {}
        () = down => {}
    }
}

async fn while_held(road: &Road) {
    let mut flow = road.flow.subscribe();
    // The road outlives its connections, so the sender is there.
    let _ = flow.wait_for(|flow| *flow != Flow::Held).await;
}

/// Whether an answer ends with `ReadyForQuery`.
fn is_ready(answer: &[u8]) -> bool {
    answer.len() >= 6 && answer[answer.len() - 6..].starts_with(b"Z\0\0\0\x05")
}

/// Reads which statements a client sends, out of its bytes.
#[derive(Default)]
struct Questions {
    buffer: Vec<u8>,
    has_started: bool,
    prepared: HashMap<Vec<u8>, String>,
}

impl Questions {
    fn hear(&mut self, bytes: &[u8], mut asked: impl FnMut(&str)) {
        self.buffer.extend_from_slice(bytes);
        loop {
            // The first message has no letter.
            let letter = usize::from(self.has_started);
            let Some(length) = self.buffer.get(letter..letter + 4) else {
                return;
            };
            let length = u32::from_be_bytes(length.try_into().expect("four bytes")) as usize;
            if self.buffer.len() < letter + length {
                return;
            }
            let message: Vec<u8> = self.buffer.drain(..letter + length).collect();
            if self.has_started {
                self.read(message[0], &message[5..], &mut asked);
            }
            self.has_started = true;
        }
    }

    fn read(&mut self, letter: u8, body: &[u8], asked: &mut impl FnMut(&str)) {
        let mut texts = body.split(|byte| *byte == 0);
        let mut text = || texts.next().unwrap_or_default().to_vec();
        match letter {
            b'Q' => asked(&String::from_utf8_lossy(&text())),
            b'P' => {
                let name = text();
                self.prepared.insert(name, String::from_utf8_lossy(&text()).into_owned());
            }
            b'B' => {
                let _portal = text();
                if let Some(sql) = self.prepared.get(&text()) {
                    asked(sql);
                }
            }
            _ => {}
        }
    }
}
