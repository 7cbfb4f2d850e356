//! Enqueue: many jobs in one statement, in a transaction of ours or of the caller.
//!
//! "Already there" is answered only for a waiting row that this transaction has locked: the insert
//! itself locks it, so it can't be claimed or vanish before the answer is read.

use std::collections::{HashMap, HashSet};

use jobs_core::store::Enqueued;
use jobs_core::{Due, JobId, NewJob, StoreErrorKind, micros};
use sqlx::postgres::{PgConnection, PgRow};

use super::PostgresStore;
use super::error::{Attempt, Races, Trouble};
use super::lane::Wait;
use super::row::{Columns, counter, element};
use super::sql::{Statement, Statements};

/// At most this many jobs go into one statement.
const CHUNK_JOBS: usize = 1_000;
/// A statement takes no further job once it has this much payload.
const CHUNK_BYTES: usize = 8 * 1024 * 1024;

type Key<'a> = (&'a str, &'a str);

/// Jobs that one statement stores.
#[derive(Clone, Copy)]
struct Chunk<'a> {
    jobs: &'a [&'a NewJob],
    drawn: Option<Drawn<'a>>,
}

/// What is drawn before for jobs that are stored in another order than that of the call.
#[derive(Clone, Copy)]
struct Drawn<'a> {
    ids: &'a [i64],
    /// The instant of the call, by which they are due.
    now_us: i64,
}

/// Whose transaction it is.
#[derive(Clone, Copy)]
enum Whose {
    Ours,
    Callers,
}

impl PostgresStore {
    pub(super) async fn enqueue_all(&self, jobs: &[NewJob]) -> Attempt<Vec<Enqueued>> {
        let jobs: Vec<&NewJob> = jobs.iter().collect();
        let chunks = chunks(&jobs);
        if let [chunk] = chunks[..]
            && !has_rarities(chunk)
        {
            let channel = self.bell().carried();
            let rows = self.lanes().one(insert(self.statements(), chunk, channel)).await?;
            self.ring_if(channel.is_none());
            return added(chunk.len(), &rows);
        }
        if chunks.is_empty() {
            return Ok(Vec::new());
        }
        let mut races = Races::default();
        loop {
            let tried = self.try_enqueue(&jobs).await;
            match tried {
                Err(trouble) if races.again(&trouble, self.random()).await => {}
                done => return done,
            }
        }
    }

    async fn try_enqueue(&self, jobs: &[&NewJob]) -> Attempt<Vec<Enqueued>> {
        let mut lane = self.lanes().begin(Wait::Patient).await?;
        let channel = self.bell().carried();
        let answers = self.store_all(lane.connection(), jobs, channel, Whose::Ours).await?;
        lane.commit().await?;
        self.ring_if(channel.is_none());
        Ok(answers)
    }

    /// In a transaction of the caller, which may be one of ours.
    pub(super) async fn enqueue_within(
        &self,
        connection: &mut PgConnection,
        jobs: &[NewJob],
    ) -> Attempt<Vec<Enqueued>> {
        let jobs: Vec<&NewJob> = jobs.iter().collect();
        self.store_all(connection, &jobs, Some(self.bell().channel()), Whose::Callers).await
    }

    async fn store_all(
        &self,
        connection: &mut PgConnection,
        jobs: &[&NewJob],
        channel: Option<&str>,
        whose: Whose,
    ) -> Attempt<Vec<Enqueued>> {
        let chunks = chunks(jobs);
        if takes_keys_by_and_by(&chunks) {
            return self.store_by_key(connection, jobs, channel, whose).await;
        }
        let mut answers = Vec::with_capacity(jobs.len());
        for jobs in chunks {
            let stored = store_within(connection, self, Chunk { jobs, drawn: None }, channel);
            answers.extend(self.heard_of(whose, stored).await?);
        }
        Ok(answers)
    }

    /// Stores jobs by several statements, all of them in order of key: two transactions that do so never
    /// wait for each other in a circle. The numbers and the instant are those of the order of the call.
    async fn store_by_key(
        &self,
        connection: &mut PgConnection,
        jobs: &[&NewJob],
        channel: Option<&str>,
        whose: Whose,
    ) -> Attempt<Vec<Enqueued>> {
        let draw = self.statements().enqueue_draw().bind(number(jobs.len()));
        let rows = self.prepared(draw).fetch_all(&mut *connection);
        let rows = self.heard_of(whose, async { Ok(rows.await?) }).await?;
        let (ids, now_us) = drawn(&rows, jobs.len())?;
        let mut order: Vec<usize> = (0..jobs.len()).collect();
        // Jobs of one key stay in the order of the call, since the first decides for the others.
        order.sort_by_key(|nth| key(jobs[*nth]).map(|(kind, key)| (key, kind)));
        let ids: Vec<i64> = order.iter().map(|nth| ids[*nth]).collect();
        let sorted: Vec<&NewJob> = order.iter().map(|nth| jobs[*nth]).collect();
        let (mut stored, mut rest) = (Vec::with_capacity(jobs.len()), &ids[..]);
        for jobs in statements_by_key(&sorted) {
            let (ids, others) = rest.split_at(jobs.len());
            rest = others;
            let chunk = Chunk { jobs, drawn: Some(Drawn { ids, now_us }) };
            let answers = store_within(connection, self, chunk, channel);
            stored.extend(self.heard_of(whose, answers).await?);
        }
        let mut answers: Vec<_> = order.into_iter().zip(stored).collect();
        answers.sort_unstable_by_key(|(nth, _)| *nth);
        Ok(answers.into_iter().map(|(_, answer)| answer).collect())
    }

    async fn heard_of<T>(
        &self,
        whose: Whose,
        answer: impl Future<Output = Attempt<T>>,
    ) -> Attempt<T> {
        match whose {
            Whose::Ours => self.lanes().heard(answer).await,
            // How long it may wait is its owner's affair.
            Whose::Callers => answer.await,
        }
    }
}

/// Whether the keys are taken by more than one statement.
fn takes_keys_by_and_by(chunks: &[&[&NewJob]]) -> bool {
    let has_keys = |chunk: &&[&NewJob]| chunk.iter().any(|job| job.unique_key.is_some());
    match chunks {
        [] => false,
        [chunk] => has_scoped_twins(chunk) || has_mixed_keys(chunk),
        several => several.iter().any(has_keys),
    }
}

/// Whether both of two jobs, or none, lock their key before any row of their statement is written.
fn are_locked_alike(one: &NewJob, other: &NewJob) -> bool {
    one.stored_scope().is_some() == other.stored_scope().is_some()
}

/// Whether some keys of a statement would be locked before its rows are written, and others with them.
fn has_mixed_keys(jobs: &[&NewJob]) -> bool {
    let mut keyed = jobs.iter().filter(|job| job.unique_key.is_some());
    let first = keyed.next();
    first.is_some_and(|first| keyed.any(|job| !are_locked_alike(first, job)))
}

/// The jobs of each statement, where keys are to be taken in order: those that lock theirs first have
/// statements of their own, and twins of them one each.
fn statements_by_key<'a>(sorted: &'a [&'a NewJob]) -> Vec<&'a [&'a NewJob]> {
    let alike = chunks(sorted)
        .into_iter()
        .flat_map(|chunk| chunk.chunk_by(|one, other| are_locked_alike(one, other)));
    let alone_if_scoped = |chunk: &'a [&'a NewJob]| {
        chunk.chunks(if has_scoped_twins(chunk) { 1 } else { CHUNK_JOBS })
    };
    alike.flat_map(alone_if_scoped).collect()
}

/// Whether jobs of one key are among these of which any binds it beyond the wait: then what the first
/// does decides for the others, and they are stored one after another.
fn has_scoped_twins(jobs: &[&NewJob]) -> bool {
    let mut seen = HashSet::new();
    jobs.iter().any(|job| job.stored_scope().is_some())
        && jobs.iter().filter_map(|job| key(job)).any(|key| !seen.insert(key))
}

async fn store_within(
    connection: &mut PgConnection,
    store: &PostgresStore,
    Chunk { jobs, drawn }: Chunk<'_>,
    channel: Option<&str>,
) -> Attempt<Vec<Enqueued>> {
    let statements = store.statements();
    if drawn.is_none() && !has_rarities(jobs) {
        let statement = store.prepared(insert(statements, jobs, channel));
        return added(jobs.len(), &statement.fetch_all(connection).await?);
    }
    let (mut firsts, twins_within) = firsts(jobs);
    let scoped = scoped_twins(connection, store, jobs, &firsts).await?;
    firsts.retain(|nth| !scoped.contains_key(nth));
    let new: Vec<&NewJob> = firsts.iter().map(|nth| jobs[*nth]).collect();
    let ids = drawn.map(|drawn| firsts.iter().map(|nth| drawn.ids[*nth]).collect::<Vec<i64>>());
    let statement = bound(statements.enqueue_unique(), &new, channel);
    let statement = statement
        .bind(new.iter().map(|job| job.stored_scope()).collect::<Vec<_>>())
        .bind(new.iter().map(|job| job.expires_in.map(micros)).collect::<Vec<_>>())
        .bind(ids.unwrap_or_default())
        .bind(drawn.map(|drawn| drawn.now_us));
    let statement = store.prepared(statement);
    let rows = statement.fetch_all(&mut *connection).await?;
    let mut stored = stored(&new, &rows)?;
    let missing: Vec<usize> = (0..new.len()).filter(|nth| stored[*nth].is_none()).collect();
    if !missing.is_empty() {
        let keys: Vec<Key<'_>> = missing.iter().filter_map(|nth| key(new[*nth])).collect();
        let twins = store.prepared(twins(statements, &keys)).fetch_all(&mut *connection).await?;
        for row in &twins {
            let mut columns = Columns::of(row);
            let nth = missing[element(columns.next()?, missing.len())?];
            stored[nth] = Some(Enqueued::AlreadyThere(columns.id()?));
        }
    }
    let mut answers = vec![None; jobs.len()];
    for (nth, answer) in firsts.iter().zip(stored) {
        answers[*nth] = answer;
    }
    for (nth, twin) in scoped {
        answers[nth] = Some(Enqueued::AlreadyThere(twin));
    }
    for (nth, first) in twins_within {
        answers[nth] = answers[first].map(|answer| Enqueued::AlreadyThere(answer.id()));
    }
    let answers = answers.into_iter().map(|answer| answer.ok_or_else(unanswered));
    let answers = answers.collect::<Attempt<Vec<Enqueued>>>()?;
    for (job, answer) in jobs.iter().zip(&answers) {
        if let Enqueued::AlreadyThere(id) = answer {
            renew(connection, store, *id, job).await?;
        }
    }
    Ok(answers)
}

/// The jobs that bind the keys of these beyond the wait, by the place in the slice. The keys are locked
/// first: a row that does not wait is not locked by an insert that meets it.
async fn scoped_twins(
    connection: &mut PgConnection,
    store: &PostgresStore,
    jobs: &[&NewJob],
    firsts: &[usize],
) -> Attempt<HashMap<usize, JobId>> {
    let scoped = firsts.iter().filter_map(|nth| {
        let (kind, key) = key(jobs[*nth])?;
        Some((key, kind, jobs[*nth].unique_while.as_str()?, *nth))
    });
    let mut scoped: Vec<_> = scoped.collect();
    if scoped.is_empty() {
        return Ok(HashMap::new());
    }
    scoped.sort_unstable();
    let statements = store.statements();
    let kinds: Vec<&str> = scoped.iter().map(|(_, kind, ..)| *kind).collect();
    let keys: Vec<&str> = scoped.iter().map(|(key, ..)| *key).collect();
    let lock = statements.enqueue_lock().bind(kinds.clone()).bind(keys.clone());
    store.prepared(lock).fetch_all(&mut *connection).await?;
    let find = statements.enqueue_scoped().bind(kinds).bind(keys);
    let find = find.bind(scoped.iter().map(|(_, _, scope, _)| *scope).collect::<Vec<_>>());
    let rows = store.prepared(find).fetch_all(connection).await?;
    let twin = |row| {
        let mut columns = Columns::of(row);
        let element = element(columns.next()?, scoped.len())?;
        Ok((scoped[element].3, columns.id()?))
    };
    rows.iter().map(twin).collect()
}

/// Gives a waiting job, which is locked, what the new one that it stands for brings.
async fn renew(
    connection: &mut PgConnection,
    store: &PostgresStore,
    id: JobId,
    new: &NewJob,
) -> Attempt<()> {
    let (replaces, reschedules) = (new.on_conflict.replaces(), new.on_conflict.reschedules());
    if !replaces && !reschedules {
        return Ok(());
    }
    let statement = store
        .statements()
        .enqueue_renew()
        .bind(id.0)
        .bind(replaces)
        .bind(new.version.to_string())
        .bind(new.min_reader.to_string())
        .bind(new.payload.clone())
        .bind(new.headers.clone())
        .bind(new.build.as_ref().map(|build| build.as_str().to_owned()))
        .bind(reschedules)
        .bind(due_in(new))
        .bind(due_at(new))
        .bind(new.priority.value())
        .bind(new.expires_in.map(micros));
    let renewed = store.prepared(statement).fetch_all(&mut *connection).await?;
    if !renewed.is_empty() && replaces {
        let forget = store.statements().forget_checkpoints().bind(vec![id.0]);
        store.prepared(forget).fetch_all(connection).await?;
    }
    Ok(())
}

fn due_in(job: &NewJob) -> Option<i64> {
    match job.due {
        Due::Unchanged => Some(0),
        Due::In(wait) => Some(micros(wait)),
        Due::At(_) => None,
    }
}

fn due_at(job: &NewJob) -> Option<i64> {
    match job.due {
        Due::Unchanged | Due::In(_) => None,
        Due::At(instant) => Some(instant.as_micros()),
    }
}

/// Slices of bounded length and size, in order.
fn chunks<'a>(jobs: &'a [&'a NewJob]) -> Vec<&'a [&'a NewJob]> {
    let mut chunks = Vec::new();
    let mut rest = jobs;
    while !rest.is_empty() {
        let mut bytes = 0;
        let fits = |job: &&&NewJob| {
            let has_room = bytes < CHUNK_BYTES;
            bytes += job.payload.len();
            has_room
        };
        let length = rest.iter().take(CHUNK_JOBS).take_while(fits).count();
        let (chunk, others) = rest.split_at(length.max(1));
        chunks.push(chunk);
        rest = others;
    }
    chunks
}

/// Whether any job has what most have not: a unique key or an expiry.
fn has_rarities(jobs: &[&NewJob]) -> bool {
    jobs.iter().any(|job| job.unique_key.is_some() || job.expires_in.is_some())
}

fn key(job: &NewJob) -> Option<Key<'_>> {
    job.unique_key.as_ref().map(|key| (job.kind.as_str(), key.as_str()))
}

/// The jobs that are the first with their key in the slice, and those that are not with the first.
fn firsts(jobs: &[&NewJob]) -> (Vec<usize>, Vec<(usize, usize)>) {
    let mut seen = HashMap::new();
    let (mut firsts, mut others) = (Vec::new(), Vec::new());
    for (nth, job) in jobs.iter().enumerate() {
        let first = key(job).map_or(nth, |key| *seen.entry(key).or_insert(nth));
        if first == nth { firsts.push(nth) } else { others.push((nth, first)) }
    }
    (firsts, others)
}

fn insert(statements: &Statements, jobs: &[&NewJob], channel: Option<&str>) -> Statement {
    bound(statements.enqueue(), jobs, channel)
}

fn bound(statement: Statement, jobs: &[&NewJob], channel: Option<&str>) -> Statement {
    fn each<'a, T>(jobs: &[&'a NewJob], of: impl Fn(&'a NewJob) -> T) -> Vec<T> {
        jobs.iter().map(|job| of(job)).collect()
    }
    statement
        .bind(each(jobs, |job| job.queue.as_str()))
        .bind(each(jobs, |job| job.kind.as_str()))
        .bind(each(jobs, |job| job.version.to_string()))
        .bind(each(jobs, |job| job.min_reader.to_string()))
        .bind(each(jobs, |job| job.payload.as_str()))
        .bind(each(jobs, |job| job.headers.as_deref()))
        .bind(each(jobs, |job| job.priority.value()))
        .bind(each(jobs, due_in))
        .bind(each(jobs, due_at))
        .bind(each(jobs, |job| job.unique_key.as_ref().map(jobs_core::UniqueKey::as_str)))
        .bind(each(jobs, |job| counter(job.budget.max_failures)))
        .bind(each(jobs, |job| job.budget.max_interruptions.map(counter)))
        .bind(each(jobs, |job| job.build.as_ref().map(jobs_core::BuildId::as_str)))
        .bind(channel.map(ToOwned::to_owned))
}

fn twins(statements: &Statements, keys: &[Key<'_>]) -> Statement {
    let (kinds, keys): (Vec<&str>, Vec<&str>) = keys.iter().copied().unzip();
    statements.enqueue_twins().bind(kinds).bind(keys)
}

fn number(length: usize) -> i64 {
    i64::try_from(length).unwrap_or(i64::MAX)
}

/// The numbers that were drawn, rising, and the instant of that.
fn drawn(rows: &[PgRow], length: usize) -> Attempt<(Vec<i64>, i64)> {
    let mut now_us = 0;
    let id = |row| {
        let mut columns = Columns::of(row);
        let id = columns.next()?;
        now_us = columns.next()?;
        Ok(id)
    };
    let mut ids = rows.iter().map(id).collect::<Attempt<Vec<i64>>>()?;
    ids.sort_unstable();
    if ids.len() == length { Ok((ids, now_us)) } else { Err(unanswered()) }
}

/// The answers for jobs without keys: the numbers rise in the order of the slice.
fn added(length: usize, rows: &[PgRow]) -> Attempt<Vec<Enqueued>> {
    let mut ids = rows.iter().map(|row| Columns::of(row).id()).collect::<Attempt<Vec<JobId>>>()?;
    ids.sort_unstable();
    if ids.len() != length {
        return Err(unanswered());
    }
    Ok(ids.into_iter().map(Enqueued::Added).collect())
}

/// What was stored of jobs of which some have keys.
fn stored(jobs: &[&NewJob], rows: &[PgRow]) -> Attempt<Vec<Option<Enqueued>>> {
    let (mut plain, mut keyed) = (Vec::new(), HashMap::new());
    for row in rows {
        let mut columns = Columns::of(row);
        let id = columns.id()?;
        let (kind, key): (Option<&str>, Option<&str>) = (columns.next()?, columns.next()?);
        match kind.zip(key) {
            Some(key) => drop(keyed.insert(key, id)),
            None => plain.push(id),
        }
    }
    plain.sort_unstable();
    let mut plain = plain.into_iter();
    let id = |job: &&NewJob| match key(job) {
        Some(key) => keyed.get(&key).copied(),
        None => plain.next(),
    };
    Ok(jobs.iter().map(id).map(|id| id.map(Enqueued::Added)).collect())
}

fn unanswered() -> Trouble {
    let what = "the server stored other jobs than it was given; does a rule or trigger of yours act \
                on the table of jobs?";
    Trouble::new(StoreErrorKind::Corrupt, what)
}
