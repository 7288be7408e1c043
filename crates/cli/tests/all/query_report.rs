//! The report of a week against the week before, of a store with profiles of both.

#![cfg(feature = "server")]

use std::time::{SystemTime, UNIX_EPOCH};

use crate::serving::Serving;
use crate::spun::{folder, plumb, succeeds, text};

const DAY: u64 = 86_400;

/// Sends folded stacks of a service, as of this many seconds ago, sampled at 100 Hz.
fn push(serving: &Serving, service: &str, ago: u64, stacks: &str) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("the clock is right").as_secs();
    let url = format!("{}/ingest?name={service}.cpu&from={}&sampleRate=100", serving.url, now - ago);
    let sent = ureq::post(url).header("Content-Type", "text/plain").send(stacks);
    assert_eq!(sent.expect("it is taken").status(), 200);
}

/// Two weeks of two services. In the second week a function of one takes twice as much.
fn two_weeks(serving: &Serving) {
    for window in 0..14 * 8 {
        let ago = 14 * DAY - window * DAY / 8 - 60;
        let noise = |salt: u64| (window * 7919 + salt * 104_729) % 23;
        let price = if window < 7 * 8 { 300 } else { 600 } + noise(1);
        let (ship, log, send) = (700 + noise(2), 400 + noise(3), 200 + noise(4));
        let shop = format!("main;handle;price_basket {price}\nmain;handle;ship {ship}\nmain;log {log}\n");
        push(serving, "shop", ago, &shop);
        push(serving, "mail", ago, &format!("main;send|all {send}\n"));
    }
}

#[test]
fn a_week_is_reported_against_the_week_before() {
    let folder = folder("query-report");
    let serving = Serving::start(&folder, &[]);
    let empty = plumb(&folder, &["query", "report", "--md", "--to", &serving.url]);
    assert!(text(&empty.stderr).contains("has no profiles yet"), "{}", text(&empty.stderr));
    two_weeks(&serving);
    let report = succeeds(&folder, &["query", "report", "--md", "--to", &serving.url]);
    let has =
        |line: &str| assert!(report.lines().any(|one| one.starts_with(line)), "no {line:?} in:\n{report}");
    has("# Report on CPU time from ");
    // 56 windows of 17.3 s and 2.1 s on average; 14.3 s and 2.1 s before.
    has("**18.1 min of CPU time in 2 services, +18% against the same time before.** shop: ship: 4");
    has("1. **shop**: ship: 4");
    has("   - In `ship`");
    has("   - 95% interval ");
    has("| `shop` | 16.2 min | 0.0016 processors | +21% |");
    has("| `mail` | 118.1 s | 0.00020 processors | ");
    let changed = report.split("## Functions that changed").nth(1).expect("there are some");
    let rows: Vec<&str> = changed.lines().filter(|line| line.starts_with("| `")).collect();
    assert!(rows.len() == 1 && rows[0] == "| `price_basket` | 2.9 min | 5.7 min | +96% |", "{report}");
    assert!(report.contains(&format!("More: {}/?from=", serving.url)), "{report}");
    // The file has the same; in the first week there is nothing to compare with, and a bar in a name ends no cell.
    succeeds(
        &folder,
        &["query", "report", "-o", "week.md", "--limit", "1", "--from", "now-14d", "--to", &serving.url],
    );
    let file = std::fs::read_to_string(folder.join("week.md")).expect("it is written");
    assert!(file.contains("There are no profiles before this time to compare with."), "{file}");
    assert!(file.contains("1 more: `plumb query series`."), "{file}");
    assert!(file.contains("processors | – |"), "{file}");
}

/// Twelve functions have a twelfth of the time each: less than the threshold.
#[test]
fn a_service_in_which_nothing_stands_out_is_named() {
    let folder = folder("query-nothing");
    let serving = Serving::start(&folder, &[]);
    let stacks: String = (0..12).map(|number| format!("main;f{number} 100\n")).collect();
    push(&serving, "shop", 60, &stacks);
    let found = succeeds(&folder, &["query", "findings", "--to", &serving.url]);
    assert!(found.starts_with("Nothing stands out. The largest services: shop 100%\n"), "{found}");
    assert!(found.trim_end().ends_with("1 service, 12.000 s CPU time"), "{found}");
    let report = succeeds(&folder, &["query", "report", "--to", &serving.url]);
    assert!(report.contains("**12.0 s of CPU time in 1 service.** Nothing stands out."), "{report}");
}
