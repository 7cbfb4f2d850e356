//! Kubernetes manifests: how long a pod is waited for, what runs before the signal, what the probes
//! ask, and what process 1 is.

mod container;
mod node;

use std::time::Duration;

use saphyr::{LoadableYamlNode as _, MarkedYaml};

use self::container::{Container, Told};
use self::node::{Node, at, integer, items, line, text};
use super::finding::{Finding, Severity};
use super::{DEFAULT_GRACE, Examined, GRACE_VARIABLE, Granted, PRE_STOP_VARIABLE};

/// The grace period of a pod that states none.
const POD_GRACE: Duration = Duration::from_secs(30);

/// Reads all documents of a file.
pub(super) fn examine(text: &str) -> Result<Examined, String> {
    let documents = MarkedYaml::load_from_str(text);
    let documents = documents.map_err(|error| format!("it is no YAML: {error}"))?;
    let mut pods = Vec::new();
    for document in &documents {
        collect(document, &mut pods);
    }
    if pods.is_empty() {
        return Err("no Deployment, StatefulSet, DaemonSet, Job, CronJob or Pod in it".to_owned());
    }
    let mut examined = Examined::default();
    for pod in pods {
        pod_spec(pod, &mut examined);
    }
    Ok(examined)
}

/// The pod specifications of an object, whatever makes the pods.
fn collect<'a>(object: &'a Node<'a>, pods: &mut Vec<&'a Node<'a>>) {
    let kind = at(object, &["kind"]).and_then(text).unwrap_or_default();
    let spec: &[&str] = match kind {
        "Pod" => &["spec"],
        "Deployment" | "StatefulSet" | "DaemonSet" | "ReplicaSet" | "Job" => {
            &["spec", "template", "spec"]
        }
        "CronJob" => &["spec", "jobTemplate", "spec", "template", "spec"],
        "List" => {
            for item in items(object, "items") {
                collect(item, pods);
            }
            return;
        }
        _ => return,
    };
    pods.extend(at(object, spec));
}

fn pod_spec(pod: &Node<'_>, examined: &mut Examined) {
    let stated = at(pod, &["terminationGracePeriodSeconds"]);
    let seconds = stated.and_then(integer).and_then(|seconds| u64::try_from(seconds).ok());
    let grace = seconds.map_or(POD_GRACE, Duration::from_secs);
    let line = stated.or(at(pod, &["containers"])).map(line);
    let containers: Vec<Container<'_>> = items(pod, "containers").map(Container::of).collect();
    let findings = &mut examined.findings;
    findings.extend(grace_period(grace, line, &containers));
    for container in containers {
        findings.extend(pre_stop(grace, container));
        findings.extend(container.findings(grace));
    }
    examined.granted.push(Granted { grace, line });
}

/// What the pod grants against what the worker believes to have.
fn grace_period(
    grace: Duration,
    line: Option<usize>,
    containers: &[Container<'_>],
) -> Option<Finding> {
    const STATE: &str = "the worker takes 30 s for granted unless it is told otherwise";
    let finding = |severity, code, what: String, fix: String| {
        Some(Finding::new(severity, code, line, what, fix))
    };
    let seconds = grace.as_secs();
    if grace.is_zero() {
        let what = "the pod is killed at once, with everything it runs".to_owned();
        let fix = "write `terminationGracePeriodSeconds: 30`".to_owned();
        return finding(Severity::Error, "no_grace", what, fix);
    }
    let told: Vec<Told> =
        containers.iter().map(|container| container.variable(GRACE_VARIABLE)).collect();
    if told.contains(&Told::Elsewhere) {
        return None;
    }
    let longest = told.iter().filter_map(|told| told.span()).max();
    match longest {
        Some(told) if told > grace => finding(
            Severity::Error,
            "grace_shorter_than_stated",
            format!("the worker is told {told:?}, and the pod is killed after {seconds} s"),
            format!("write `terminationGracePeriodSeconds: {}`", told.as_secs()),
        ),
        None if grace < DEFAULT_GRACE => finding(
            Severity::Error,
            "grace_shorter_than_default",
            format!("{STATE}, and the pod is killed after {seconds} s, in the middle of its drain"),
            format!(
                "leave terminationGracePeriodSeconds out, or set {GRACE_VARIABLE} to {seconds}, \
                 unless the program itself says it"
            ),
        ),
        None if grace > DEFAULT_GRACE => finding(
            Severity::Warning,
            "grace_not_used",
            format!("{STATE}: of {seconds} s it uses 30"),
            format!("set {GRACE_VARIABLE} to {seconds}, unless the program itself says it"),
        ),
        Some(told) if told < grace => finding(
            Severity::Warning,
            "grace_not_used",
            format!("the worker is told {told:?}, and the pod is granted {seconds} s"),
            format!("set {GRACE_VARIABLE} to {seconds}"),
        ),
        Some(_) | None => None,
    }
}

/// What runs before the signal is taken from the grace period.
fn pre_stop(grace: Duration, container: Container<'_>) -> Option<Finding> {
    let hook = container.pre_stop()?;
    let line = Some(hook.line);
    let Some(delay) = hook.delay else {
        let what =
            "a pre-stop command runs before the signal, and its time is taken from the drain's";
        let fix = format!("write `sleep` with `seconds`, and say the same by {PRE_STOP_VARIABLE}");
        return Some(Finding::new(Severity::Warning, "pre_stop_unknown", line, what, fix));
    };
    let seconds = delay.as_secs();
    if delay >= grace {
        let what = format!("{seconds} s before the signal leave nothing of {} s", grace.as_secs());
        let fix =
            format!("write `terminationGracePeriodSeconds: {}`", seconds + POD_GRACE.as_secs());
        return Some(Finding::new(Severity::Error, "pre_stop_takes_all", line, what, fix));
    }
    let told = container.variable(PRE_STOP_VARIABLE);
    let is_told = told == Told::Elsewhere || told.span().is_some_and(|told| told >= delay);
    let what = format!(
        "{seconds} s pass before the signal, and the worker does not know of them: it is killed in \
         the middle of its drain"
    );
    let fix = format!("set {PRE_STOP_VARIABLE} to {seconds}, unless the program itself says it");
    (!is_told).then(|| Finding::new(Severity::Error, "pre_stop_not_stated", line, what, fix))
}
