// SPDX-License-Identifier: MIT
//! The published results: everything that the report shows, without the raw samples.
//!
//! The code that renders complete results also makes the published ones, so both give the same report and the same
//! comparison.

use super::{Experiment, print};
use crate::page;
use crate::results::{Stored, read_some, write};
use anyhow::{Context, Result};
use std::fs;
use std::path::Path;

/// Writes the results of `folder` to `out`: `data/NAME.json` without raw data, and `report.html` with everything in
/// `data`.
pub fn publish(known: &[Experiment], folder: &Path, out: &Path) -> Result<()> {
    let found = read_some(known, folder)?;
    let data = out.join("data");
    fs::create_dir_all(&data).with_context(|| format!("cannot create {}", data.display()))?;
    for finding in found {
        Stored::from(finding).write(&data)?;
    }
    let report = out.join("report.html");
    write(&report, &page::html(&read_some(known, &data)?)?)?;
    print(&format!("{}\n", report.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::folder::Folder;
    use crate::machine::Machine;
    use crate::results::{Data, read_all};
    use serde_json::json;

    /// A stored result with raw data, of an experiment that needs only one value per trial.
    fn stored() -> Stored {
        let trial = |server: &str, switches: u64| {
            let case = json!({"clients": "0", "server": server});
            json!({"case": case, "turn": 0, "values": {"switches": switches}, "samples": {}})
        };
        let raw = json!({"file": "", "trials": [trial("stock", 1), trial("xqos", 3)]});
        let machine = Machine { server: "Xvfb 1".into(), ..Machine::default() };
        Stored { experiment: "idle".into(), quick: false, pairs: 1, machine, disturbance: None, data: Data::Raw(raw) }
    }

    #[test]
    fn the_published_set_has_no_raw_data_and_gives_the_same_report() {
        let known = crate::experiments::all();
        let (results, out) = (Folder::create().unwrap(), Folder::create().unwrap());
        stored().write(&results.path("")).unwrap();
        publish(&known, &results.path(""), &out.path("")).unwrap();
        let file = fs::read_to_string(out.path("data/idle.json")).unwrap();
        assert!(!file.contains("\"raw\"") && file.contains("\"study\""), "{file}");
        let complete = read_all(&known, &results.path("")).unwrap();
        assert_eq!(fs::read_to_string(out.path("report.html")).unwrap(), page::html(&complete).unwrap());
    }

    #[test]
    fn earlier_published_results_stay_in_the_report() {
        let known = crate::experiments::all();
        let (results, out) = (Folder::create().unwrap(), Folder::create().unwrap());
        stored().write(&results.path("")).unwrap();
        publish(&known, &results.path(""), &out.path("")).unwrap();
        let other = Stored {
            experiment: "memory".into(),
            ..Stored::from(read_all(&known, &results.path("")).unwrap().remove(0))
        };
        fs::remove_file(results.path("idle.json")).unwrap();
        other.write(&results.path("")).unwrap();
        publish(&known, &results.path(""), &out.path("")).unwrap();
        let names: Vec<String> =
            read_all(&known, &out.path("data")).unwrap().into_iter().map(|finding| finding.experiment).collect();
        assert_eq!(names, ["idle", "memory"]);
    }
}
