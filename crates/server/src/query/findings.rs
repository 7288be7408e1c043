//! Findings on the selected services: the costly ones are examined by the rules of `plumb explain`.
//!
//! Invariant: time and memory are bounded for any selection, and the answer states what was left out.
//!
//! Elsewhere: the rules (`analyze`), the document (`documents`).

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Instant;

use plumb_analyze::{Filter, explained_event};
use plumb_documents::JSON_VERSION;
use plumb_documents::findings::{
    AnswerBound, BoundReason, Finding, FindingEvidence, FindingKind, FindingOwner, Findings, LargeService,
    ServiceChange, ServiceFacts, ServiceRhythm, of_change, of_lock_waits, of_rhythm, of_service, rank,
};
use plumb_formats::foreign;
use plumb_formats::otlp::{BURST, BURST_LENGTH, MACHINE_TIME, OBSERVATION, WAKE_PERIOD};
use plumb_store::{NAME, PROFILE_TYPE, ProfileType, SERVICE, Selector};
use prost::Message;

use super::bounded::{BoundedProfile, bounded};
use super::bursts::{AgentBursts, CpuTime};
use super::findings_request::FindingsRequest;
use super::lasting::usual;
use super::locks::{LockRows, OfService, has_locks};
use super::rhythms::{self, AllStacks};
use super::rows::CountedRows;
use super::selection::{Range, select};
use super::versions::{Compared, compare, version_of};
use super::windows::Windows;
use crate::app::Context;
use crate::error::{ApiError, ErrorCode};
use crate::pyroscope::querier::StacktracesRequest;

/// Most profile types, beside CPU time, in which the versions of a service are compared.
const OTHER_TYPES: usize = 6;
/// Largest services that are named.
const LARGEST: usize = 3;
/// Most observations reported per service.
const OBSERVATIONS: usize = 5;
/// Wake-ups are regular if this fraction of the intervals measured by agents is within a tenth of the median.
const REGULAR: f64 = 0.8;
/// Approximate limit for intervals read from all services.
const PERIODS: usize = 200_000;
/// Part of the threshold from which on a rhythm is reported: while its bursts last they take far more than their share of the whole time.
const RHYTHM: f64 = 0.2;
/// Fewest intervals that can be called regular.
const LEAST_PERIODS: usize = 3;

/// Totals of a service, before its samples are read.
#[derive(Default)]
struct ServiceTotals {
    cpu_ns: i64,
    periods: Vec<i64>,
    /// Profile types of the agents' observations.
    observations: BTreeSet<String>,
    /// Other profile types, whose values can be compared between versions.
    others: BTreeSet<String>,
    /// Other types that have waits for locks.
    locks: BTreeSet<String>,
    /// Versions in the range, and in the time before it.
    versions: [BTreeSet<String>; 2],
}

impl ServiceTotals {
    /// Whether its only version in the range was deployed shortly before it.
    fn is_newly_deployed(&self) -> bool {
        let [now, before] = &self.versions;
        now.len() == 1 && before.iter().any(|version| !now.contains(version))
    }
}

pub(crate) fn findings(context: &Context, request: &FindingsRequest) -> Result<Findings, ApiError> {
    let begin = Instant::now();
    let (totals, machine_ns) = totals(context, request)?;
    let mut services: Vec<(String, ServiceTotals)> =
        totals.into_iter().filter(|(_, totals)| totals.cpu_ns > 0).collect();
    services.sort_by_key(|(_, totals)| std::cmp::Reverse(totals.cpu_ns));
    let (cpu_ns, count) = (services.iter().map(|(_, one)| one.cpu_ns).sum(), services.len());
    let large = |(service, totals): &(String, ServiceTotals)| LargeService {
        service: service.clone(),
        cpu_ns: totals.cpu_ns,
    };
    let largest = services.iter().take(LARGEST).map(large).collect();
    services.truncate(request.services);
    let names: Vec<&str> = services.iter().map(|(service, _)| &**service).collect();
    let of_all = request.stacktraces(Selector::parse(&request.label_selector)?.with_any(SERVICE, &names)?);
    let rows = CountedRows::by_service(context, &of_all, context.options.query.rows)?.unwrap_or_default();
    let beside = Beside::read(context, request, (&services, &names), &rows)?;
    let (mut found, mut own_cpu_ns, mut examined) = (Vec::new(), 0, 0);
    let mut truncated = Vec::new();
    for (place, (service, totals)) in services.iter().enumerate() {
        context.check()?;
        if place > 0 && begin.elapsed() >= context.options.query.examine {
            let (taken, of) = (place as u64, services.len() as u64);
            truncated.push(AnswerBound::new(BoundReason::Time, taken, of));
            break;
        }
        let rows = rows.get(service);
        let of_service = match of(context, request, (service, totals, &beside), machine_ns, rows) {
            Ok(of_service) => {
                truncated.extend(of_service.bounds.into_iter().map(|bound| bound.of_service(service)));
                if of_service.owner == FindingOwner::Plumb {
                    own_cpu_ns += totals.cpu_ns;
                }
                of_service.found
            }
            // Other services may be smaller.
            Err(error) if error.code == ErrorCode::ResourceExhausted => {
                truncated.push(AnswerBound::new(BoundReason::Memory, 0, 1).of_service(service));
                continue;
            }
            Err(error) => return Err(error),
        };
        examined += 1;
        found.extend(of_service);
    }
    rank(&mut found);
    Ok(Findings {
        version: JSON_VERSION,
        from_ms: request.start,
        until_ms: request.end,
        cpu_ns,
        machine_ns,
        services: count,
        examined,
        own_cpu_ns,
        truncated,
        largest,
        findings: found,
    })
}

/// Values of all services beside their CPU time, read at once, and the profiles of that time.
struct Beside<'r> {
    bursts: AgentBursts,
    locks: LockRows,
    /// Profiles of CPU time of each service whose profiles could all be read.
    windows: HashMap<&'r str, Windows<'r>>,
    /// Usual length of a profile, in milliseconds, if any could be read.
    length_ms: Option<i64>,
}

impl<'r> Beside<'r> {
    fn read(
        context: &Context,
        request: &FindingsRequest,
        (services, names): (&[(String, ServiceTotals)], &[&str]),
        rows: &'r HashMap<String, CountedRows>,
    ) -> Result<Self, ApiError> {
        let most = context.options.query.rows;
        let selector = Selector::parse(&request.label_selector)?;
        let range = Range::checked(request.start, request.end, &context.options.query)?;
        let kinds: BTreeSet<&str> =
            services.iter().flat_map(|(_, totals)| &totals.locks).map(|kind| &**kind).collect();
        let all = request.stacktraces(selector.clone());
        let one = |(service, rows): (&'r String, &'r CountedRows)| {
            let windows = Windows::new(rows.rows(), &request.profile_type, &context.cancellation)?;
            Ok((&**service, windows))
        };
        let windows: HashMap<&str, Windows<'_>> = rows.iter().map(one).collect::<Result<_, ApiError>>()?;
        let mut lengths: Vec<i64> = windows.values().flat_map(Windows::distances).collect();
        Ok(Self {
            bursts: AgentBursts::read(context, selector, range, (names, most))?,
            locks: LockRows::read(context, &all, (&kinds, names), most)?,
            windows,
            length_ms: (!lengths.is_empty()).then(|| usual(&mut lengths)),
        })
    }
}

/// Totals by service, and the capacity of the machines. That concerns whole machines: no selector of services narrows it.
fn totals(
    context: &Context,
    request: &FindingsRequest,
) -> Result<(BTreeMap<String, ServiceTotals>, Option<i64>), ApiError> {
    let range = Range::checked(request.start, request.end, &context.options.query)?;
    let selector = Selector::parse(&request.label_selector)?;
    let mut services: BTreeMap<String, ServiceTotals> = BTreeMap::new();
    for (labels, total) in select(context, selector.clone(), range)?.series_totals()? {
        let Some(service) = labels.get(SERVICE) else { continue };
        let kind = labels.get(PROFILE_TYPE).unwrap_or_default();
        let one = services.entry(service.to_owned()).or_default();
        if kind == request.profile_type {
            one.cpu_ns = one.cpu_ns.saturating_add(total);
            one.versions[0].extend(version_of(&labels).map(str::to_owned));
            continue;
        }
        let Some(parsed) = ProfileType::parse(kind) else { continue };
        match &*parsed.name {
            OBSERVATION => _ = one.observations.insert(kind.to_owned()),
            WAKE_PERIOD | BURST | BURST_LENGTH => {}
            _ if parsed == ProfileType::cpu_samples() => {}
            _ => {
                one.locks.extend(has_locks(&parsed).then(|| kind.to_owned()));
                one.others.insert(kind.to_owned());
            }
        }
    }
    let before = Range { start: request.before(), end: request.start.saturating_sub(1) };
    for labels in select(context, selector.clone(), before)?.series()? {
        let one = labels.get(SERVICE).and_then(|service| services.get_mut(service));
        if let (Some(one), Some(version)) = (one, version_of(&labels)) {
            one.versions[1].insert(version.to_owned());
        }
    }
    // Only the median of the intervals matters, for which a part is enough.
    let (periods, _) = select(context, selector.with(NAME, WAKE_PERIOD), range)?.at_most(PERIODS)?;
    let (series, profiles) = periods.profiles()?;
    for profile in profiles {
        if let Some(one) = series[profile.series].get(SERVICE).and_then(|service| services.get_mut(service)) {
            one.periods.push(profile.total);
        }
    }
    let machine = select(context, Selector::default().with(NAME, MACHINE_TIME), range)?.series_totals()?;
    let sum = machine.iter().fold(0_i64, |sum, (_, total)| sum.saturating_add(*total));
    Ok((services, (!machine.is_empty()).then_some(sum)))
}

/// The findings about a service.
#[derive(Default)]
struct Examined {
    owner: FindingOwner,
    found: Vec<Finding>,
    /// The applied bounds.
    bounds: Vec<AnswerBound>,
}

fn of(
    context: &Context,
    request: &FindingsRequest,
    (service, totals, beside): (&str, &ServiceTotals, &Beside<'_>),
    machine_ns: Option<i64>,
    rows: Option<&CountedRows>,
) -> Result<Examined, ApiError> {
    let stacktraces = request.stacktraces(Selector::parse(&request.label_selector)?.with(SERVICE, service));
    let selector = stacktraces.label_selector.clone();
    let OfService { waits, rhythm: of_waits } = beside.locks.of(context, service, beside.length_ms)?;
    let of_profiles = of_profiles(context, request, (service, totals, beside), &stacktraces, rows)?;
    let OfProfiles { changes, rhythm: of_cpu, bounded } = of_profiles;
    let BoundedProfile { message, bounds, is_counted } = bounded;
    context.check()?;
    let mut profile = foreign::read(&message.encode_to_vec())?;
    plumb_symbolize::make_readable(&mut profile);
    let owner = FindingOwner::of(&profile, service);
    let Some(event) = explained_event(&profile) else {
        return Ok(Examined { owner, bounds, ..Examined::default() });
    };
    let filter = Filter { event: Some(event), no_idle: true, ..Filter::default() };
    let observations = observations(context, request, &selector, &totals.observations)?;
    let facts = ServiceFacts {
        service: service.to_owned(),
        cpu_ns: totals.cpu_ns,
        is_counted,
        machine_ns,
        period_ns: regular(&totals.periods),
        observations,
        evidence: FindingEvidence { selector, profile_type: request.profile_type.clone(), function: None },
    };
    let is_large = |one: &&ServiceRhythm| 100.0 * one.share >= RHYTHM * request.threshold;
    // Nobody can act on the habits of plumb or the kernel.
    let is_told = owner == FindingOwner::Service;
    let rhythms: Vec<Finding> = [of_cpu, of_waits]
        .iter()
        .filter(|_| is_told)
        .flatten()
        .filter(is_large)
        .map(|one| of_rhythm(one, &facts))
        .collect();
    let mut found = of_service(&profile, &filter, request.threshold, &facts);
    // The interval of wake-ups adds nothing to a rhythm.
    found.retain(|one| one.kind != FindingKind::Service || rhythms.is_empty());
    found.extend(rhythms);
    found.extend(waits.filter(|_| is_told).and_then(|waits| of_lock_waits(&waits, &facts)));
    found.extend(changes.iter().map(|change| of_change(change, &facts)));
    found.iter_mut().for_each(|one| one.owner = owner);
    Ok(Examined { owner, found, bounds })
}

/// Results of a look at the profiles of a service's CPU time.
struct OfProfiles {
    changes: Vec<ServiceChange>,
    rhythm: Option<ServiceRhythm>,
    bounded: BoundedProfile,
}

/// Looks at the profiles of a service's CPU time. `rows`: those that were read with the profiles of all services.
fn of_profiles(
    context: &Context,
    request: &FindingsRequest,
    (service, totals, beside): (&str, &ServiceTotals, &Beside<'_>),
    stacktraces: &StacktracesRequest,
    rows: Option<&CountedRows>,
) -> Result<OfProfiles, ApiError> {
    let (limits, kind) = (&context.options.query, &request.profile_type);
    let (read_rows, read_windows);
    let (rows, windows) = match rows.zip(beside.windows.get(service)) {
        Some(known) => known,
        None => {
            read_rows = CountedRows::read(context, stacktraces, limits.rows)?;
            read_windows = Windows::new(read_rows.rows(), kind, &context.cancellation)?;
            (&read_rows, &read_windows)
        }
    };
    let cpu = CpuTime { kind, windows, taken: rows.taken };
    Ok(OfProfiles {
        changes: changes(context, request, totals, (stacktraces, windows))?,
        rhythm: rhythm_of(context, (service, beside), &cpu)?,
        bounded: bounded(context, rows, limits.stacks)?,
    })
}

/// The rhythm of a service's CPU time: by the bursts that agents found, else by its profiles.
fn rhythm_of(
    context: &Context,
    (service, beside): (&str, &Beside<'_>),
    cpu: &CpuTime<'_>,
) -> Result<Option<ServiceRhythm>, ApiError> {
    if let Some(rhythm) = beside.bursts.rhythm(context, service, cpu)? {
        return Ok(Some(rhythm));
    }
    // Of thinned profiles some are missing.
    if cpu.taken.is_some() {
        return Ok(None);
    }
    let kind = (cpu.kind, beside.length_ms);
    rhythms::of_windows(cpu.windows, kind, &mut AllStacks, &context.cancellation)
}

/// Changes that make the newest version of a service dearer. Its CPU time in the range is in `windows`.
fn changes(
    context: &Context,
    request: &FindingsRequest,
    totals: &ServiceTotals,
    (stacktraces, windows): (&StacktracesRequest, &Windows<'_>),
) -> Result<Vec<ServiceChange>, ApiError> {
    let most = context.options.query.rows;
    let mut stacktraces = stacktraces.clone();
    let may_be_wider = Range::checked(request.before(), request.end, &context.options.query).is_ok();
    let read_compared = |stacktraces: &StacktracesRequest, most| {
        let (rows, kind) = (CountedRows::read(context, stacktraces, most)?, &stacktraces.profile_type_id);
        compare(&Windows::new(rows.rows(), kind, &context.cancellation)?, kind, &context.cancellation)
    };
    let compared = match totals.is_newly_deployed() && may_be_wider {
        true => {
            stacktraces.start = request.before();
            read_compared(&stacktraces, most)?
        }
        false => compare(windows, &request.profile_type, &context.cancellation)?,
    };
    let Compared::Versions(cpu) = compared else { return Ok(Vec::new()) };
    let mut changes: Vec<ServiceChange> = cpu.map(|change| *change).into_iter().collect();
    for kind in totals.others.iter().take(OTHER_TYPES) {
        stacktraces.profile_type_id.clone_from(kind);
        if let Compared::Versions(Some(change)) = read_compared(&stacktraces, most / OTHER_TYPES)? {
            changes.push(*change);
        }
    }
    Ok(changes)
}

/// The agents' observations of a service, heaviest first.
fn observations(
    context: &Context,
    request: &FindingsRequest,
    selector: &str,
    kinds: &BTreeSet<String>,
) -> Result<Vec<String>, ApiError> {
    if kinds.is_empty() {
        return Ok(Vec::new());
    }
    let range = Range::checked(request.start, request.end, &context.options.query)?;
    let kinds: Vec<&str> = kinds.iter().map(String::as_str).collect();
    let selector = Selector::parse(selector)?.with_any(PROFILE_TYPE, &kinds)?;
    let tree = select(context, selector, range)?.call_tree()?;
    let mut nodes: Vec<_> = tree.nodes.iter().filter(|node| node.own[0] > 0).collect();
    nodes.sort_by_key(|node| std::cmp::Reverse(node.own[0]));
    Ok(nodes.iter().take(OBSERVATIONS).map(|node| tree.names[node.name as usize].to_string()).collect())
}

/// The interval of regular wake-ups: the median, if most are near it.
fn regular(periods: &[i64]) -> Option<u64> {
    let mut sorted = periods.to_vec();
    sorted.sort_unstable();
    let median = *sorted.get(sorted.len() / 2).filter(|_| sorted.len() >= LEAST_PERIODS)?;
    let near = sorted.iter().filter(|&&one| one.abs_diff(median) <= median.unsigned_abs() / 10).count();
    (near as f64 >= REGULAR * sorted.len() as f64).then(|| u64::try_from(median).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::regular;

    #[test]
    fn intervals_are_regular_if_most_are_alike() {
        let second = 1_000_000_000;
        assert_eq!(regular(&[second, second + 5_000_000, second, second]), Some(1_000_000_000));
        assert_eq!(regular(&[second, second]), None);
        assert_eq!(regular(&[second, 3 * second, 7 * second, second]), None);
        assert_eq!(regular(&[]), None);
    }
}
