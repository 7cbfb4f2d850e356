//! Random lives of the SQLite store, compared answer by answer with the memory store.
#![cfg(feature = "sqlite")]

mod sqlite_scene;

use jobs_core::store::conformance::{MemorySubject, model};
use sqlite_scene::{Scene, runtime};

const LIVES: u64 = 50;
const STEPS: usize = 200;

#[test]
fn random_lives_go_as_in_the_memory_store() {
    for seed in model::seeds(LIVES) {
        runtime().block_on(async {
            let (scene, model) = (Scene::fresh().await, MemorySubject::new(seed));
            model::compare(seed, STEPS, &scene, &model).await;
        });
    }
}
