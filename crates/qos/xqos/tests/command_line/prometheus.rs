// SPDX-License-Identifier: MIT
//! A real Prometheus with a real exporter: scraped values are right, alerts fire, and every expression of the dashboard
//! can be evaluated.

use crate::exporter::Exporter;
use crate::fixture::{Folder, Running, Server, ended, eventually, xqos};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;
use x11rb::connection::Connection;
use x11rb::protocol::xproto::ConnectionExt as _;

/// A file of the package.
fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../data").join(name)
}

/// Returns true if a program is missing; the test is then skipped with the reason.
fn is_missing(program: &str) -> bool {
    xqos_testkit::program(program).is_none()
}

/// A Prometheus for the test, which scrapes every second.
struct Prometheus {
    _process: Running,
    address: String,
}

impl Prometheus {
    fn start(folder: &Folder, exporter: &Exporter) -> Prometheus {
        let config = format!(
            "global: {{ scrape_interval: 1s, evaluation_interval: 1s }}\n\
             rule_files: ['{}']\n\
             scrape_configs:\n  - job_name: xqos\n    static_configs: [{{ targets: ['{}'] }}]\n",
            data("prometheus/xqos.rules.yml").canonicalize().unwrap().display(),
            exporter.address
        );
        fs::write(folder.file("prometheus.yml"), config).unwrap();
        let mut command = Command::new("prometheus");
        command.args(["--config.file", &folder.file("prometheus.yml"), "--storage.tsdb.path", &folder.file("data")]);
        command.args(["--web.listen-address", "127.0.0.1:0"]);
        let mut process = Running::start(command.stdout(Stdio::null()).stderr(Stdio::piped()));
        let mut log = BufReader::new(process.err());
        let address = loop {
            let mut line = String::new();
            assert!(log.read_line(&mut line).unwrap() > 0, "Prometheus has ended");
            let found = line.split_once("\"Listening on\" address=").map(|(_, rest)| rest.trim().to_owned());
            if let Some(address) = found {
                break address;
            }
        };
        std::thread::spawn(move || log.read_to_string(&mut String::new()));
        let prometheus = Prometheus { _process: process, address };
        eventually("Prometheus is ready", || prometheus.get("/-/ready"));
        prometheus
    }

    /// Evaluates an expression: the labels and value of each series. An error fails the test.
    #[track_caller]
    fn query(&self, expression: &str) -> Vec<(Value, f64)> {
        let answer = self.get(&format!("/api/v1/query?query={}", encoded(expression))).expect(expression);
        let answer: Value = serde_json::from_str(&answer).unwrap_or_else(|error| panic!("{error}: {answer}"));
        assert_eq!(answer["status"], "success", "{expression}: {answer:#}");
        let series = answer["data"]["result"].as_array().unwrap_or_else(|| panic!("{answer:#}"));
        series.iter().map(|one| (one["metric"].clone(), one["value"][1].as_str().unwrap().parse().unwrap())).collect()
    }

    /// Sends a GET request; `None` if Prometheus is not ready.
    fn get(&self, path: &str) -> Option<String> {
        let mut connection = TcpStream::connect(&self.address).unwrap();
        write!(connection, "GET {path} HTTP/1.0\r\n\r\n").unwrap();
        let mut answer = String::new();
        connection.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n")?;
        head.contains(" 200 OK").then(|| body.to_owned())
    }

    /// Waits until an expression has one value that satisfies the condition.
    #[track_caller]
    fn value(&self, expression: &str, wanted: impl Fn(f64) -> bool) -> f64 {
        let mut last = Vec::new();
        eventually(expression, || {
            last = self.query(expression);
            match last[..] {
                [(_, value)] if wanted(value) => Some(value),
                _ => None,
            }
        })
    }
}

fn encoded(text: &str) -> String {
    text.bytes()
        .map(|byte| if byte.is_ascii_alphanumeric() { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

/// Grabs the server for more than a second, and disconnects 3 s later.
fn grab(server: &Server) {
    let (connection, _) = x11rb::connect(Some(&server.display)).unwrap();
    connection.grab_server().unwrap();
    connection.get_input_focus().unwrap().reply().unwrap();
    std::thread::sleep(Duration::from_millis(1200)); // time: the length of the grab
    connection.ungrab_server().unwrap();
    connection.get_input_focus().unwrap().reply().unwrap();
    connection.flush().unwrap();
    std::thread::sleep(Duration::from_secs(3)); // time: the exporter notices the grab while this client is connected
}

#[test]
#[ignore = "make test-lab: needs Prometheus"]
fn prometheus_scrapes_correct_figures_and_the_dashboard_shows_them() {
    if is_missing("prometheus") {
        return;
    }
    let (folder, server) = (Folder::new("prometheus"), Server::served(&[]));
    let busy = server.client(&["x11perf", "-getimagexy100", "-reps", "300", "-repeat", "100000"]);
    let _eyes = server.client(&["xeyes"]);
    server.ask(&["reserve", "--pid", &busy.pid().to_string(), "8ms/10ms"]).with(0);
    let exporter = Exporter::start(&[&server], &[]);
    let prometheus = Prometheus::start(&folder, &exporter);
    let own = format!("{{display=\"{}\"}}", server.display);
    prometheus.value("up{job=\"xqos\"}", |up| up == 1.0);
    prometheus.value(&format!("xqos_clients{own}"), |clients| clients == 2.0);
    prometheus.value(&format!("sum(xqos_client_connections{own})"), |clients| clients == 2.0);
    prometheus.value(&format!("round(xqos_utilization_admitted{own} * 100)"), |admitted| admitted == 80.0);
    let rate = |name: &str, of: &str| format!("sum(rate({name}{{display=\"{}\"{of}}}[1m]))", server.display);
    let of_busy = rate("xqos_client_server_seconds_total", ",program=\"x11perf\"");
    let share = format!("{of_busy} / {}", rate("xqos_server_busy_seconds_total", ""));
    // x11perf uses nearly all server time. The share may exceed 1, because client and server are read in sequence.
    prometheus.value(&share, |share| (0.9..1.05).contains(&share));
    grab(&server);
    prometheus.value(&format!("sum(xqos_client_long_grabs_total{own})"), |grabs| grabs == 1.0);
    eventually("the alert is there", || {
        let alerts = prometheus.query("ALERTS{alertname=\"XqosLongGrab\", alertstate=\"firing\"}");
        alerts.into_iter().find(|(labels, _)| labels["display"] == server.display.as_str())
    });
    let user = prometheus.query(&format!("xqos_client_requests_total{own}"))[0].0["user"].clone();
    assert!(!user.as_str().unwrap().is_empty());
    each_panel_has_something_to_show(&prometheus);
}

fn each_panel_has_something_to_show(prometheus: &Prometheus) {
    let dashboard: Value = serde_json::from_str(&fs::read_to_string(data("grafana/xqos.json")).unwrap()).unwrap();
    let mut expressions = 0;
    for panel in dashboard["panels"].as_array().unwrap() {
        for target in panel["targets"].as_array().unwrap() {
            let expression = target["expr"].as_str().unwrap();
            let expression =
                expression.replace("$instance", ".*").replace("$display", ".*").replace("$__rate_interval", "1m");
            assert!(!expression.contains('$'), "{expression}");
            let found = prometheus.query(&expression);
            // No server without xqos is scraped here.
            assert!(!found.is_empty() || expression.contains("xqos_attached_"), "{}: {expression}", panel["title"]);
            // A client without recent waits has no percentile.
            let is_shown = found.is_empty() || found.iter().any(|(_, value)| value.is_finite());
            assert!(is_shown, "{}: {found:?}", panel["title"]);
            expressions += 1;
        }
    }
    assert!(expressions > 12, "{expressions}");
}

#[test]
#[ignore = "make test-lab: needs Prometheus"]
fn the_alert_rules_pass_their_tests() {
    if is_missing("promtool") {
        return;
    }
    for arguments in [["check", "rules", "xqos.rules.yml"], ["test", "rules", "xqos.test.yml"]] {
        ended(Command::new("promtool").args(arguments).current_dir(data("prometheus"))).with(0);
    }
}

#[test]
#[ignore = "make test-lab: needs Prometheus"]
fn metric_names_follow_the_conventions_of_prometheus() {
    if is_missing("promtool") {
        return;
    }
    let (folder, server) = (Folder::new("promtool"), Server::served(&[]));
    let _client = server.client(&["xeyes"]);
    let page = ended(xqos().args(["exporter", "--once", "--only", &server.display])).with(0).out;
    assert!(page.contains("xqos_client_wait_seconds_bucket"), "{page}");
    fs::write(folder.file("page"), page).unwrap();
    let mut promtool = Command::new("promtool");
    promtool.args(["check", "metrics"]).stdin(fs::File::open(folder.file("page")).unwrap());
    let said = promtool.output().unwrap();
    let text = [said.stdout, said.stderr].concat();
    assert!(said.status.success() && text.is_empty(), "{}", String::from_utf8_lossy(&text));
}
