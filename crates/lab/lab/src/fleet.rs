// SPDX-License-Identifier: MIT
//! A simulated fleet: sessions of two hundred users on fifty hosts over ten days, served by the simulator.
//!
//! Each session consists of a trace, as a server would write it, and a capture of its programs' traffic. The code for
//! real traces and captures turns both into tables. The session's number is its seed, so the same fleet always has the
//! same bytes. From the sixth day on, servers run xqos, so queries that compare days show a difference.

mod capture;
mod session;
#[cfg(test)]
mod tests;

use anyhow::{Context, Result};
use serde::Serialize;
use session::SimulatedSession;
use std::fs;
use std::path::Path;
use std::time::Instant;
use xqos_fleet::dataset::Written;
use xqos_trace::export::parquet;
use xqos_trace::file::Trace;
use xqos_trace::names::Names;
use xqos_wire::{analysis, report};

/// Sizes of the generated data, and the time to turn them into tables.
#[derive(Clone, Debug, Default, Serialize)]
pub struct FleetSummary {
    pub sessions: u64,
    pub records: u64,
    pub trace_bytes: u64,
    pub table_bytes: u64,
    pub table_rows: u64,
    pub table_files: u64,
    pub export_s: f64,
    pub packets: u64,
    pub capture_bytes: u64,
    pub report_bytes: u64,
    pub report_rows: u64,
    pub analyse_s: f64,
}

impl FleetSummary {
    pub fn text(&self) -> String {
        let FleetSummary { sessions, records, trace_bytes, table_bytes, table_rows, table_files, export_s, .. } = self;
        let FleetSummary { packets, capture_bytes, report_bytes, report_rows, analyse_s, .. } = self;
        format!(
            "{sessions} sessions\n\
             {records} records in {trace_bytes} bytes of traces: {table_rows} rows in {table_files} files, \
             {table_bytes} bytes, {export_s:.2} s\n\
             {packets} packets in {capture_bytes} bytes of captures: {report_rows} rows, {report_bytes} bytes, \
             {analyse_s:.2} s\n"
        )
    }
}

/// Generates the first `sessions` sessions as `traces`, `captures` and `fleet.parquet` in the folder.
pub fn make(folder: &Path, sessions: u32) -> Result<FleetSummary> {
    for name in ["traces", "captures"] {
        let folder = folder.join(name);
        fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    }
    let mut total = FleetSummary::default();
    for number in 0..sessions {
        add(folder, &SimulatedSession::of(number), &mut total)?;
    }
    Ok(total)
}

fn add(folder: &Path, session: &SimulatedSession, total: &mut FleetSummary) -> Result<()> {
    let trace = folder.join(format!("traces/{}.trace", session.name));
    let capture = folder.join(format!("captures/{}.pcapng", session.name));
    for file in [&trace, &capture] {
        // Left by an earlier run; a missing file is not an error.
        let _ = fs::remove_file(file);
    }
    let turns = session.serve(&trace, total)?;
    capture::write(&capture, session, &turns)?;
    let tables = folder.join("fleet.parquet");
    let began = Instant::now();
    let written = export(&trace, &tables, session)?;
    total.export_s += began.elapsed().as_secs_f64();
    total.sessions += 1;
    total.trace_bytes += fs::metadata(&trace)?.len();
    (total.table_bytes, total.table_rows) = (total.table_bytes + written.bytes, total.table_rows + written.rows);
    total.table_files += written.files;
    let began = Instant::now();
    let written = analyse(&capture, &tables, session, total)?;
    total.analyse_s += began.elapsed().as_secs_f64();
    total.capture_bytes += fs::metadata(&capture)?.len();
    (total.report_bytes, total.report_rows) = (total.report_bytes + written.bytes, total.report_rows + written.rows);
    Ok(())
}

/// Does the work of `xqos trace export`.
fn export(file: &Path, tables: &Path, session: &SimulatedSession) -> Result<Written> {
    let trace = Trace::open(file)?;
    let target = parquet::TraceTables { folder: tables, host: None, session: Some(&session.name) };
    let names = Names::new(trace.header.extensions.clone());
    Ok(parquet::write(&trace.header, trace.events(), &names, &target)?)
}

/// Does the work of `xqos analyse --parquet`.
fn analyse(file: &Path, tables: &Path, session: &SimulatedSession, total: &mut FleetSummary) -> Result<Written> {
    let mut analysis = analysis::Analysis::default();
    let seen = xqos_wire::session::Session::new(vec![&mut analysis]);
    let (counts, _) = xqos_wire::session::read(file, seen)?;
    let target = report::parquet::CaptureTables { folder: tables, host: &session.host, session: &session.name };
    total.packets += counts.packets;
    Ok(report::parquet::write(&analysis.report(LATENCY_S), &target)?)
}

/// Network latency for computing savings, because the tables contain only counts.
const LATENCY_S: f64 = 0.05;
