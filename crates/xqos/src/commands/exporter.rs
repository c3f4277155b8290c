// SPDX-License-Identifier: MIT
//! `xqos exporter`: metrics of the X servers on this machine for Prometheus.

use anyhow::{Result, bail};
use clap::Args;
use std::net::SocketAddr;
use std::os::fd::AsRawFd;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use xqos_x11::display::local_number;
use xqos_agent::exporter::{Exporter, Format, Options};
use xqos_agent::http::{self, Answer};
use xqos_cli::output;
use xqos_sys::{self as sys, Signals};
use xqos_text::quantity::{Micros, within};

/// Serves metrics of all X servers on this machine to Prometheus
///
/// The exporter finds the X servers by their sockets. It queries them only when Prometheus queries it. Usage
/// by clients is summed by display, user and program, and is kept after a client disconnects.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// Address of the metrics page http://ADDRESS/metrics; this machine only
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:9767")]
    listen: SocketAddr,
    /// Print the figures since each client connected as text, and exit
    #[arg(long, conflicts_with = "listen")]
    once: bool,
    /// Also watch servers without xqos, for 0.2 s per query, through the kernel's trace of their system calls; root
    /// only
    #[arg(long)]
    attach: bool,
    /// Only these displays, such as :7,:8
    #[arg(long, value_name = "DISPLAYS", value_delimiter = ',', value_parser = number)]
    only: Vec<u32>,
    /// How long the servers may take to answer
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = patience)]
    wait: Micros,
    /// Pairs of user and program per display; further ones are combined as "other"
    #[arg(long, value_name = "NUMBER", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    programs: u32,
}

const EXAMPLES: &str = "\
Examples:
  xqos exporter
  xqos exporter --listen 127.0.0.1:9000
  xqos exporter --once
  sudo xqos exporter --attach

In prometheus.yml:
  scrape_configs:
    - job_name: xqos
      static_configs: [{ targets: ['localhost:9767'] }]

As root it can query the servers of all users, with the cookie file (-auth) that
each server names. Run by another user, it can query the servers that let this
user in. A server without clients is only asked whether it answers, and not even
that if our connection might reset, end or start it. xqos_display_up is 0 for a
server that does not answer in time; the metrics of the other servers are still
served.

SIGTERM and ^C stop it.";

fn patience(text: &str) -> Result<Micros, String> {
    within(text, "100ms", "8s").map_err(|error| format!("{error}, to stay below Prometheus's timeout"))
}

fn number(text: &str) -> Result<u32, String> {
    local_number(text).ok_or_else(|| format!("{text} is not a display of this machine: write it like :7"))
}

impl Arguments {
    pub fn perform(&self, display: Option<&str>) -> Result<()> {
        if display.is_some() {
            bail!("the exporter serves all displays of this machine: use --only :7 instead of --display");
        }
        if self.attach && sys::effective_ids().0 != 0 {
            bail!("--attach uses the kernel's trace, which needs root: run it with sudo");
        }
        // Watch for signals before the first thread starts, because otherwise that thread would receive them.
        let signals = Signals::watch()?;
        let options = Options {
            only: self.only.clone(),
            patience: self.wait.duration(),
            max_labels: self.programs as usize,
            attach: self.attach,
            with_past: self.once,
        };
        let mut exporter = Exporter::new(options);
        if self.once {
            return output::print(&exporter.page(Format::Text));
        }
        let listener = http::listen(self.listen)?;
        output::note(&format!("metrics at http://{}/metrics; press ^C to stop", listener.local_addr()?));
        let exporter = Arc::new(Mutex::new(exporter));
        let asked = Arc::clone(&exporter);
        thread::Builder::new().name("http".to_owned()).spawn(move || {
            http::serve(&listener, move |accept| {
                let format = Format::accepted(accept);
                let page = asked.lock().unwrap_or_else(PoisonError::into_inner).page(format);
                Answer { status: "200 OK", content_type: format.content_type(), body: page.into() }
            })
        })?;
        while !signals.termination_requested() {
            sys::poll(&[signals.as_raw_fd()], None)?;
        }
        // Wait for a query in progress, which removes the kernel's trace when it ends.
        drop(exporter.lock());
        Ok(())
    }
}
