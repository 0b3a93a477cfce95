//! What a harvest costs, as ratios from one run: `cargo bench`.
//!
//! The release binary harvests a canned catalogue on the loopback (`catalogue.rs`, a process of its own, with the records of
//! `records.rs`) and is held against what nobody can do without (`floor.rs`) and against an OWSLib script. CPU is what counts: wall time
//! depends on what else the machine does. Of several rounds the least counts. The counts of every run are checked and end the benchmark
//! when they are wrong; a figure beyond its bound is only told, for times are no test.
//!
//! | variable | default | meaning |
//! | --- | --- | --- |
//! | `OWSLIB_PYTHON` | none | a Python that has OWSLib; without it nothing is held against OWSLib |
//! | `OWSLIB_SCRIPT` | `../shared/bench/baseline_owslib.py` | the script that it runs: URL DB --page N --property NAME --schema URI |
//! | `BENCH_SCALE` | 1 | the part of the records that is harvested, more than 0 |
//! | `BENCH_ROUNDS` | 3 | how often each run is done, but for the OWSLib script and the thinking catalogue: those once |
//!
//! `cargo test` does the same at a scale of a few hundred records, to see that it works.

#![allow(clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "what cannot be measured ends the benchmark")]

mod catalogue;
mod floor;
mod measure;
mod records;
mod table;

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::TempDir;

use catalogue::{Catalogue, Served};
use floor::Durability;
use measure::Cost;
use records::{Holdings, Kind};
use table::{Figure, Judging, Unit, say};

const BINARY: &str = env!("CARGO_BIN_EXE_csw-harvester");
const DC_RECORDS: f64 = 100_000.0;
const DC_BYTES: usize = 1_600;
const ISO_RECORDS: f64 = 20_000.0;
const ISO_BYTES: usize = 19_000;
/// Of the largest page: 500 of these are 10 MB.
const ISO_BYTES_LARGE: usize = 20_000;
const PAGE: u64 = 500;
const PAGE_SMALL: u64 = 100;
/// How much larger the larger catalogue is.
const GROWTH: u64 = 4;
/// The part of the records that the thinking catalogue has.
const THINKING_PART: f64 = 0.25;
const THINK: Duration = Duration::from_millis(200);
const QUIET_TICKS: usize = 5;
const FETCHING: &str = "(a) fetching";
const BULK: &str = "(b) tokenising, bulk insert";
const DURABLE: &str = "(c) as (b), with a log that is synchronised";
/// The scale of `cargo test`.
const SCALE_OF_TEST: f64 = 0.01;

fn main() {
    let mut arguments = std::env::args_os().skip(1);
    match arguments.next().as_deref().and_then(OsStr::to_str) {
        Some("catalogue") => catalogue::serve(),
        Some("measure") => measure::measure(arguments),
        Some(role @ ("fetch" | "floor")) => play(role, &arguments.collect::<Vec<_>>()),
        _ => Bench::begin().run(),
    }
}

/// (a), (b) or (c), as children.
fn play(role: &str, arguments: &[OsString]) {
    let texts: Vec<&str> = arguments.iter().map(|argument| argument.to_str().expect("UTF-8")).collect();
    let number = |at: usize| texts[at].parse::<u64>().expect("a number");
    if role == "fetch" {
        return floor::fetch(texts[0], number(1), number(2));
    }
    let record_bytes = usize::try_from(number(1)).expect("a size");
    let holdings = Holdings { kind: Kind::named(texts[0]).expect("a kind"), record_bytes, records: number(2) };
    let durability = if texts[5] == "durable" { Durability::Full } else { Durability::None };
    floor::tokenise_and_insert(holdings, number(3), Path::new(texts[4]), durability);
}

/// What is harvested, and in pages of how many.
#[derive(Clone, Copy)]
struct Setting {
    holdings: Holdings,
    page_size: u64,
    think: Duration,
}

/// A harvest's cost and the numbers of its summary.
struct Harvested {
    cost: Cost,
    json: String,
}

impl Harvested {
    fn number(&self, key: &str) -> u64 {
        let after = self.json.split_once(&format!("\"{key}\":")).expect("a key of the summary").1;
        let digits = after.trim_start().split(|c: char| !c.is_ascii_digit()).next().unwrap_or_default();
        digits.parse().unwrap_or_else(|_| panic!("{key} is no number in {}", self.json))
    }

    #[track_caller]
    fn expect(&self, new: u64, unchanged: u64) {
        let counted = ["new", "updated", "unchanged", "deleted", "skipped"].map(|key| self.number(key));
        assert_eq!(counted, [new, 0, unchanged, 0, 0], "{}", self.json);
    }
}

/// The least of the rounds, by the name of what was run.
#[derive(Default)]
struct Costs(Vec<(String, Cost, Option<u64>)>);

impl Costs {
    fn add(&mut self, name: &str, cost: Cost, requests: Option<u64>) {
        table::progress(name, cost);
        match self.0.iter_mut().find(|(held, ..)| held == name) {
            Some((_, least, _)) => *least = least.least(cost),
            None => self.0.push((name.to_owned(), cost, requests)),
        }
    }

    fn of(&self, name: &str) -> Cost {
        self.0.iter().find(|(held, ..)| held == name).expect("a run of that name").1
    }
}

struct Bench {
    catalogue: Catalogue,
    folder: TempDir,
    scale: f64,
    rounds: usize,
    judging: Judging,
    costs: Costs,
    figures: Vec<Figure>,
}

impl Bench {
    fn begin() -> Bench {
        let benched = std::env::args().any(|argument| argument == "--bench");
        let number = |name: &str, default: f64| match std::env::var(name) {
            Ok(text) => text.parse().ok().filter(|n| *n > 0.0).unwrap_or_else(|| panic!("{name} is no number above 0: {text}")),
            Err(_) => default,
        };
        let scale = number("BENCH_SCALE", if benched { 1.0 } else { SCALE_OF_TEST });
        Bench {
            catalogue: Catalogue::start(),
            folder: TempDir::with_prefix_in("bench-", env!("CARGO_TARGET_TMPDIR")).expect("a temporary folder"),
            scale,
            rounds: number("BENCH_ROUNDS", if benched { 3.0 } else { 1.0 }) as usize,
            judging: if benched && scale >= 1.0 { Judging::Yes } else { Judging::No },
            costs: Costs::default(),
            figures: Vec::new(),
        }
    }

    fn run(mut self) {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        say(&format!("csw-harvester {}, loopback, {cores} cores, the least of {} rounds", env!("CARGO_PKG_VERSION"), self.rounds));
        let settings = [self.setting(Kind::Dc, PAGE), self.setting(Kind::Iso, PAGE)];
        let small = self.setting(Kind::Dc, PAGE_SMALL);
        let large = Setting { holdings: Holdings { records: small.holdings.records * GROWTH, ..small.holdings }, ..small };
        let wide = Setting { holdings: Holdings { record_bytes: ISO_BYTES_LARGE, ..settings[1].holdings }, ..settings[1] };
        for _ in 0..self.rounds {
            settings.iter().for_each(|setting| self.compare(*setting));
            for setting in [small, large] {
                self.floor(setting, Durability::None);
            }
            for setting in [small, large, wide] {
                self.first_load(setting);
            }
        }
        let thinking = self.think();
        let owslib = self.owslib(&settings);
        self.judge(&settings, [small, large, wide], thinking, owslib);
    }

    fn setting(&self, kind: Kind, page_size: u64) -> Setting {
        let (records, record_bytes) = match kind {
            Kind::Dc => (DC_RECORDS, DC_BYTES),
            Kind::Iso => (ISO_RECORDS, ISO_BYTES),
        };
        let records = (records * self.scale).max(1.0) as u64;
        Setting { holdings: Holdings { kind, record_bytes, records }, page_size, think: Duration::ZERO }
    }

    /// One kind of record: what it is held against, a first load, ticks without news, and all of it again.
    fn compare(&mut self, setting: Setting) {
        self.floors(setting);
        let records = setting.holdings.records;
        let store = self.first_load(setting);
        for _ in 0..QUIET_TICKS {
            let tick = self.harvest(setting, &store, &[]);
            tick.expect(0, 0);
            self.costs.add(&name("quiet tick", setting), tick.cost, Some(tick.number("requests")));
        }
        let again = self.harvest(setting, &store, &["--full"]);
        again.expect(0, records);
        self.costs.add(&name("nothing changed, --full", setting), again.cost, Some(again.number("requests")));
        // What it leaves on the disk is not for the harvest to clear away.
        self.floor(setting, Durability::Full);
    }

    fn floors(&mut self, setting: Setting) {
        let Setting { holdings: Holdings { records, .. }, page_size, think } = setting;
        let this = std::env::current_exe().expect("a path to this program");
        let [records_text, page] = [records, page_size].map(|number| number.to_string());
        let url = self.catalogue.url(setting.holdings, think);
        let (cost, _) = measure::run(this.as_os_str(), &["fetch", &url, &records_text, &page].map(OsStr::new));
        self.costs.add(&name(FETCHING, setting), cost, Some(records.div_ceil(page_size)));
        self.floor(setting, Durability::None);
    }

    /// (b) or (c).
    fn floor(&mut self, setting: Setting, durability: Durability) {
        let Setting { holdings: Holdings { kind, record_bytes, records }, page_size, .. } = setting;
        let this = std::env::current_exe().expect("a path to this program");
        let [bytes, records_text, page] = [record_bytes as u64, records, page_size].map(|number| number.to_string());
        let path = self.new_path();
        let (shown, word) = match durability {
            Durability::None => (BULK, "bare"),
            Durability::Full => (DURABLE, "durable"),
        };
        let arguments = ["floor", kind.name(), &bytes, &records_text, &page, path.to_str().expect("UTF-8"), word].map(OsStr::new);
        let (cost, told) = measure::run(this.as_os_str(), &arguments);
        remove(&path);
        let told: Vec<f64> = told.split_whitespace().map(|number| number.parse().expect("a number")).collect();
        assert_eq!(told[2] as u64, records, "rows of {shown}");
        self.costs.add(&name(shown, setting), Cost { cpu_s: told[0], wall_s: told[1], ..cost }, None);
    }

    /// Harvests into a new store, which is the only one that is left.
    fn first_load(&mut self, setting: Setting) -> PathBuf {
        let store = self.new_path();
        let load = self.harvest(setting, &store, &[]);
        load.expect(setting.holdings.records, 0);
        self.costs.add(&name("first load", setting), load.cost, Some(load.number("requests")));
        store
    }

    fn harvest(&self, setting: Setting, store: &Path, more: &[&str]) -> Harvested {
        let url = self.catalogue.url(setting.holdings, setting.think);
        let page_size = setting.page_size.to_string();
        let options =
            ["harvest", &url, "--page-size", &page_size, "--json", "--schema", schema_option(setting.holdings.kind), "--db"];
        let mut arguments: Vec<&OsStr> = options.iter().map(OsStr::new).collect();
        arguments.push(store.as_os_str());
        arguments.extend(more.iter().map(OsStr::new));
        let (cost, json) = measure::run(OsStr::new(BINARY), &arguments);
        Harvested { cost, json }
    }

    /// A path where no file is; what was there before goes.
    fn new_path(&self) -> PathBuf {
        let path = self.folder.path().join("store.db");
        remove(&path);
        path
    }

    /// What a harvest of a catalogue that thinks costs beside the thinking.
    fn think(&mut self) -> (Cost, Served) {
        let mut setting = self.setting(Kind::Dc, PAGE);
        setting.holdings.records = (setting.holdings.records as f64 * THINKING_PART).max(1.0) as u64;
        setting.think = self.thinking();
        self.catalogue.served();
        let store = self.new_path();
        let load = self.harvest(setting, &store, &[]);
        load.expect(setting.holdings.records, 0);
        let served = self.catalogue.served();
        assert_eq!(served.requests, load.number("requests"), "requests that were served and told");
        self.costs.add(&format!("first load, {} ms a request", setting.think.as_millis()), load.cost, Some(served.requests));
        (load.cost, served)
    }

    fn thinking(&self) -> Duration {
        if self.judging == Judging::Yes { THINK } else { THINK / 40 }
    }

    fn owslib(&mut self, settings: &[Setting]) -> bool {
        let Some(python) = std::env::var_os("OWSLIB_PYTHON") else { return false };
        let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/bench/baseline_owslib.py");
        let script = std::env::var_os("OWSLIB_SCRIPT").map_or(beside, PathBuf::from);
        for setting in settings {
            let store = self.new_path();
            let url = self.catalogue.url(setting.holdings, setting.think);
            let page_size = setting.page_size.to_string();
            let options = ["--page", &page_size, "--property", "dct:modified", "--schema", setting.holdings.kind.schema()];
            let mut arguments = vec![script.as_os_str(), OsStr::new(&url), store.as_os_str()];
            arguments.extend(options.iter().map(OsStr::new));
            let (cost, told) = measure::run(&python, &arguments);
            let count = told.split(' ').next().and_then(|count| count.parse().ok());
            assert_eq!(count, Some(setting.holdings.records), "records of the OWSLib script");
            self.costs.add(&name("OWSLib", *setting), cost, None);
        }
        true
    }

    fn judge(mut self, compared: &[Setting], [small, large, wide]: [Setting; 3], thinking: (Cost, Served), owslib: bool) {
        table::head_of_costs();
        for (name, cost, requests) in &self.costs.0 {
            table::cost(name, *cost, *requests);
        }
        for (setting, part) in compared.iter().zip([1.0 / 10.0, 1.0 / 20.0]) {
            self.judge_kind(*setting, owslib.then_some(part));
        }
        let (load, served) = thinking;
        let wall = load.wall_s / (served.thought_ms as f64 / 1_000.0);
        let told = format!("wall against the thinking of a catalogue that takes {} ms a request", self.thinking().as_millis());
        self.figure(&told, wall, 1.05, Unit::Times);
        self.figure("connections of that first load", served.connections as f64, 1.0, Unit::Count);
        let loads = [small, large, wide].map(|setting| self.costs.of(&name("first load", setting)));
        self.figure("CPU of four times the records", loads[1].cpu_s / loads[0].cpu_s, 4.2, Unit::Times);
        let bulk = [small, large].map(|setting| self.costs.of(&name(BULK, setting)));
        self.explain("the same of (b)", bulk[1].cpu_s / bulk[0].cpu_s);
        self.figure(&name("peak memory", small), loads[0].rss_mib, 32.0, Unit::Mebibytes);
        self.figure(&name("peak memory", large), loads[1].rss_mib, 32.0, Unit::Mebibytes);
        self.figure(&name("peak memory", wide), loads[2].rss_mib, 64.0, Unit::Mebibytes);
        let bytes = std::fs::metadata(BINARY).expect("the binary").len();
        self.figure("the binary", bytes as f64 / 1e6, 6.0, Unit::Megabytes);
        table::figures(&self.figures, self.judging);
    }

    /// One kind of record; against OWSLib only where that was run.
    fn judge_kind(&mut self, setting: Setting, owslib: Option<f64>) {
        let cost = |bench: &Bench, run: &str| bench.costs.of(&name(run, setting));
        let load = cost(self, "first load");
        let kind = shown(setting.holdings.kind);
        if let Some(part) = owslib {
            let theirs = cost(self, "OWSLib");
            self.figure(&format!("CPU against OWSLib, {kind}"), load.cpu_s / theirs.cpu_s, part, Unit::Part);
        }
        let bulk = cost(self, BULK);
        self.figure(&format!("CPU against (b), {kind}"), load.cpu_s / bulk.cpu_s, 1.5, Unit::Times);
        let (fetched, durable) = (cost(self, FETCHING), cost(self, DURABLE));
        let both = fetched.cpu_s + durable.cpu_s;
        self.explain(&format!("CPU of (a) and (c) together against (b), {kind}"), both / bulk.cpu_s);
        self.explain(&format!("CPU against (a) and (c) together, {kind}"), load.cpu_s / both);
        let again = cost(self, "nothing changed, --full");
        self.figure(
            &format!("CPU of --full where nothing changed against the first load, {kind}"),
            again.cpu_s / load.cpu_s,
            0.7,
            Unit::Times,
        );
        if setting.holdings.kind == Kind::Dc {
            let tick = name("quiet tick", setting);
            let requests = self.costs.0.iter().find(|(held, ..)| *held == tick).and_then(|(_, _, requests)| *requests);
            self.figure("quiet tick, requests", requests.expect("a number") as f64, 2.0, Unit::Count);
            self.figure("quiet tick, CPU", self.costs.of(&tick).cpu_s * 1_000.0, 15.0, Unit::Milliseconds);
        }
    }

    fn figure(&mut self, name: &str, value: f64, most: f64, unit: Unit) {
        self.figures.push(Figure { name: name.to_owned(), value, most: Some(most), unit });
    }

    /// A ratio that has no bound.
    fn explain(&mut self, name: &str, value: f64) {
        self.figures.push(Figure { name: name.to_owned(), value, most: None, unit: Unit::Times });
    }
}

fn name(run: &str, setting: Setting) -> String {
    let Setting { holdings: Holdings { kind, record_bytes, records }, page_size, .. } = setting;
    format!("{run}, {records} {} of {:.1} kB, page {page_size}", shown(kind), record_bytes as f64 / 1_000.0)
}

fn shown(kind: Kind) -> &'static str {
    match kind {
        Kind::Dc => "csw:Record",
        Kind::Iso => "ISO 19139",
    }
}

fn schema_option(kind: Kind) -> &'static str {
    match kind {
        Kind::Dc => "csw",
        Kind::Iso => "iso",
    }
}

/// A database and what SQLite may have left beside it.
fn remove(path: &Path) {
    for suffix in ["", "-wal", "-shm", "-journal"] {
        let mut name = path.as_os_str().to_owned();
        name.push(suffix);
        let _ = std::fs::remove_file(name);
    }
}
