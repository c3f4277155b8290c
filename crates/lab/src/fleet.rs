// SPDX-License-Identifier: MIT
//! A fleet that is not there: sessions of fifty hosts, two hundred users and ten days, served by the simulator.
//!
//! Each session is a trace, as a server would have written it, and a capture of what its programs said; both go through the
//! code that real ones go through into the tables. The number of a session is its seed: the same fleet has the same bytes.
//! In its first five days the servers are stock ones, then xqos is in them, so that a question about days has an answer.

mod capture;
mod session;
#[cfg(test)]
mod tests;

use anyhow::{Context, Result};
use serde::Serialize;
use session::Session;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};
use xqos_fleet::dataset::Written;
use xqos_trace::export::parquet;
use xqos_trace::file::Trace;
use xqos_trace::names::Names;
use xqos_wire::analysis;

/// What was made, and what the making of the tables took.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Made {
    pub sessions: u64,
    /// Records of all traces.
    pub records: u64,
    pub trace_bytes: u64,
    /// Of the tables that the traces became.
    pub table_bytes: u64,
    pub table_rows: u64,
    pub table_files: u64,
    /// From traces to tables.
    pub export_s: f64,
    /// Packets of all captures.
    pub packets: u64,
    pub capture_bytes: u64,
    pub report_bytes: u64,
    pub report_rows: u64,
    /// From captures to tables.
    pub analyse_s: f64,
}

impl Made {
    /// For people.
    pub fn text(&self) -> String {
        let Made { sessions, records, trace_bytes, table_bytes, table_rows, table_files, export_s, .. } = self;
        let Made { packets, capture_bytes, report_bytes, report_rows, analyse_s, .. } = self;
        format!(
            "{sessions} sessions\n\
             {records} records in {trace_bytes} bytes of traces: {table_rows} rows in {table_files} files, {table_bytes} \
             bytes, {export_s:.2} s\n\
             {packets} packets in {capture_bytes} bytes of captures: {report_rows} rows, {report_bytes} bytes, \
             {analyse_s:.2} s\n"
        )
    }
}

/// Makes the first so many sessions: `traces`, `captures` and `fleet.parquet` in the folder.
pub fn make(folder: &Path, sessions: u32) -> Result<Made> {
    for name in ["traces", "captures"] {
        let folder = folder.join(name);
        fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    }
    let mut made = Made::default();
    for number in 0..sessions {
        add(folder, &Session::of(number), &mut made)?;
    }
    Ok(made)
}

fn add(folder: &Path, session: &Session, made: &mut Made) -> Result<()> {
    let trace = folder.join(format!("traces/{}.trace", session.name));
    let capture = folder.join(format!("captures/{}.pcapng", session.name));
    for file in [&trace, &capture] {
        // Left by an earlier run; that there is none is no error.
        let _ = fs::remove_file(file);
    }
    let turns = session.serve(&trace, made)?;
    capture::write(&capture, session, &turns)?;
    let tables = folder.join("fleet.parquet");
    let (written, took) = export(&trace, &tables, session)?;
    made.sessions += 1;
    made.trace_bytes += fs::metadata(&trace)?.len();
    (made.table_bytes, made.table_rows) = (made.table_bytes + written.bytes, made.table_rows + written.rows);
    made.table_files += written.files;
    made.export_s += took.as_secs_f64();
    let (written, packets, took) = analyse(&capture, &tables, session)?;
    made.packets += packets;
    made.capture_bytes += fs::metadata(&capture)?.len();
    (made.report_bytes, made.report_rows) = (made.report_bytes + written.bytes, made.report_rows + written.rows);
    made.analyse_s += took.as_secs_f64();
    Ok(())
}

/// What `xqos trace export` does.
fn export(file: &Path, tables: &Path, session: &Session) -> Result<(Written, Duration)> {
    let began = Instant::now();
    let trace = Trace::open(file)?;
    let target = parquet::Target { folder: tables, host: None, session: Some(&session.name) };
    let names = Names::new(trace.header.extensions.clone());
    let written = parquet::write(&trace.header, trace.events(), &names, &target)?;
    Ok((written, began.elapsed()))
}

/// What `xqos analyse --parquet` does.
fn analyse(file: &Path, tables: &Path, session: &Session) -> Result<(Written, u64, Duration)> {
    let began = Instant::now();
    let mut analysis = analysis::Analysis::default();
    let seen = xqos_wire::session::Session::new(vec![&mut analysis]);
    let (counts, _) = xqos_wire::session::read(file, seen)?;
    let target = analysis::parquet::Target { folder: tables, host: &session.host, session: &session.name };
    let written = analysis::parquet::write(&analysis.report(LATENCY_S), &target)?;
    Ok((written, counts.packets, began.elapsed()))
}

/// The network for which savings are told; the tables have counts only.
const LATENCY_S: f64 = 0.05;
