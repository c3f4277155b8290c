// SPDX-License-Identifier: MIT
//! Runs experiments on the exact machine, a virtual machine whose clock counts instructions (docs/machine.md).
//!
//! `scripts/machine` builds and runs the machine. Our programs are copied into it, `xqos-bench` runs there as it does
//! here, and its results are copied back.

use super::{BenchOptions, Experiment, choose, print};
use anyhow::{Context, Result, bail, ensure};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use xqos_cli::sibling;

/// Folder of our programs and of users' experiment files in the machine.
const FOLDER: &str = "/machine/bin";

pub fn run_exact(mut known: Vec<Experiment>, options: &BenchOptions) -> Result<()> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../scripts/machine");
    ensure!(script.exists(), "--exact needs the source tree of xqos with scripts/machine: build and run xqos there");
    let chosen = choose(&mut known, &options.names)?;
    let mut chosen: Vec<&Experiment> = chosen.into_iter().map(|at| &known[at]).collect();
    if options.names.iter().any(|name| name == "all") {
        chosen.retain(|one| one.is_exact());
    }
    if let Some(one) = chosen.iter().find(|one| !one.is_exact()) {
        bail!("{} needs real processors: run it without --exact (`xqos bench list` marks the others)", one.name);
    }
    let module = options.module.clone().context("there is no xqos module to measure")?;
    let mut files = vec![(module, "libxqos_module.so".to_owned())];
    for program in ["xqos", "xqos-bench"] {
        let path = sibling::find(program).with_context(|| format!("{program} is not built: run `make build`"))?;
        files.push((path, program.to_owned()));
    }
    let mut run = "xqos-bench run".to_owned();
    for one in chosen {
        let file = format!("{}.toml", one.name);
        match options.names.iter().map(PathBuf::from).find(|path| path.file_name() == Some(file.as_ref())) {
            Some(path) => {
                run += &format!(" {file}");
                files.push((path, file));
            }
            None => run += &format!(" {}", one.name),
        }
    }
    run +=
        &format!(" --trials {} --out /machine/results{}", options.trials, if options.quick { " --quick" } else { "" });
    let mut command = Command::new(script);
    command.arg("exact").arg("--results").arg(&options.out);
    for (path, name) in files {
        let mut put = OsString::from("--put=");
        put.push(path);
        put.push(format!("={FOLDER}/{name}"));
        command.arg(put);
    }
    xqos_sys::end_with_this_thread(&mut command);
    let status = command.arg(format!("cd {FOLDER} && {run}")).status().context("cannot start scripts/machine")?;
    ensure!(status.success(), "the run on the exact machine failed; the lines above tell why");
    print(&format!("{}\n", options.out.join("index.html").display()))
}
