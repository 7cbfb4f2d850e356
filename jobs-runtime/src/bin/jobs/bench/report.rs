//! What was measured, as a table for people or as JSON, one row a line.

use serde::Serialize;
use serde_json::{Map, Value};

use super::Store;
use super::scenario::{Figures, Scenario};

/// Rows as they come.
pub(crate) struct Report {
    is_json: bool,
    is_begun: bool,
}

/// A scenario's medians.
#[derive(Debug, Serialize)]
struct Row {
    store: &'static str,
    scenario: String,
    framework_per_s: Option<f64>,
    floor_per_s: Option<f64>,
    /// The median of the rounds' ratios, then the least and the greatest.
    ratio: Option<f64>,
    ratio_least: Option<f64>,
    ratio_most: Option<f64>,
    rounds: usize,
    framework: Map<String, Value>,
    floor: Map<String, Value>,
}

impl Report {
    pub(crate) fn new(is_json: bool) -> Self {
        Self { is_json, is_begun: false }
    }

    pub(crate) fn add(
        &mut self,
        store: Store,
        scenario: Scenario,
        floor: &[Figures],
        framework: &[Figures],
    ) {
        let row = row(store, scenario, floor, framework);
        if self.is_json {
            println!("{}", serde_json::to_string(&row).unwrap_or_default());
        } else {
            self.print(&row);
        }
    }

    pub(crate) fn finish(&self) {
        if !self.is_json {
            println!("\nRatios are medians of the rounds, with the least and the greatest behind.");
        }
    }

    fn print(&mut self, row: &Row) {
        if !self.is_begun {
            self.is_begun = true;
            println!(
                "{:9} {:16} {:>11} {:>11} {:>6} {:>13}  others (framework; floor)",
                "store", "scenario", "framework/s", "floor/s", "ratio", "spread"
            );
        }
        let whole = |value: Option<f64>| value.map(|v| format!("{v:.0}")).unwrap_or_default();
        let share = |value: Option<f64>| value.map(|v| format!("{v:.2}")).unwrap_or_default();
        let spread = match row.ratio {
            Some(_) => format!("{}-{}", share(row.ratio_least), share(row.ratio_most)),
            None => String::new(),
        };
        let others = |figures: &Map<String, Value>| {
            let texts = figures
                .iter()
                .map(|(name, value)| format!("{name} {:.2}", value.as_f64().unwrap_or_default()));
            texts.collect::<Vec<_>>().join(", ")
        };
        println!(
            "{:9} {:16} {:>11} {:>11} {:>6} {:>13}  {}; {}",
            row.store,
            row.scenario,
            whole(row.framework_per_s),
            whole(row.floor_per_s),
            share(row.ratio),
            spread,
            others(&row.framework),
            others(&row.floor),
        );
    }
}

fn row(store: Store, scenario: Scenario, floor: &[Figures], framework: &[Figures]) -> Row {
    let pairs = framework.iter().zip(floor);
    let mut ratios: Vec<f64> =
        pairs.filter_map(|(ours, floor)| Some(ours.per_s? / floor.per_s?)).collect();
    ratios.sort_by(f64::total_cmp);
    let rates = |figures: &[Figures]| median(figures.iter().filter_map(|f| f.per_s).collect());
    Row {
        store: store.as_str(),
        scenario: scenario.name(),
        framework_per_s: rates(framework),
        floor_per_s: rates(floor),
        ratio: median(ratios.clone()),
        ratio_least: ratios.first().copied(),
        ratio_most: ratios.last().copied(),
        rounds: framework.len(),
        framework: medians(framework),
        floor: medians(floor),
    }
}

fn medians(figures: &[Figures]) -> Map<String, Value> {
    let names = figures.first().map(|first| first.others.as_slice()).unwrap_or_default();
    let each = names.iter().enumerate().map(|(nth, (name, _))| {
        let values = figures.iter().filter_map(|figures| Some(figures.others.get(nth)?.1));
        ((*name).to_owned(), median(values.collect()).into())
    });
    each.collect()
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}
