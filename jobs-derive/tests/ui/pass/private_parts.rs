//! What a job is made of may be private to its module: its past, its fields, itself.

use jobs_core::{Job, Versioned};

mod billing {
    use jobs_core::{Job, PastJob};
    use serde::{Deserialize, Serialize};

    #[derive(Serialize, Deserialize)]
    struct Cents(u64);

    #[derive(Serialize, Deserialize, PastJob)]
    #[job(kind = "billing.charge", version = "1.0.0")]
    struct ChargeV1(u64);

    #[derive(Serialize, Deserialize, Job)]
    #[job(kind = "billing.charge", version = "2.0.0", previous = ChargeV1)]
    pub struct Charge {
        cents: Cents,
    }

    impl From<ChargeV1> for Charge {
        fn from(past: ChargeV1) -> Self {
            Self { cents: Cents(past.0 * 100) }
        }
    }

    impl Charge {
        pub fn cents(&self) -> u64 {
            self.cents.0
        }
    }
}

fn enqueue<J: Job>(job: J) -> J {
    job
}

fn main() {
    let charge = enqueue(billing::Charge::decode(1, "7").unwrap());
    assert_eq!(charge.cents(), 700);
}
