// SPDX-License-Identifier: MIT
//! `xqos exporter`: metrics of the X servers on this machine for Prometheus.

use anyhow::{Result, bail};
use clap::Args;
use std::net::SocketAddr;
use std::os::fd::AsRawFd;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use xqos_agent::exporter::{Exporter, ExporterOptions, MetricsFormat};
use xqos_agent::http::{self, HttpResponse};
use xqos_cli::output;
use xqos_sys::{self as sys, Signals};

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
    #[command(flatten)]
    options: ExporterOptions,
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
each server names. Another user can query the servers that accept this user. If
a server has no clients, the exporter only checks that it answers, and skips the
check if a connection might reset, end or start the server. xqos_display_up is 0
for a server that does not answer in time; the metrics of the other servers are
still served.

SIGTERM and ^C stop it.";

impl Arguments {
    pub fn perform(&self, display: Option<&str>) -> Result<()> {
        if display.is_some() {
            bail!("the exporter serves all displays of this machine: use --only :7 instead of --display");
        }
        if self.options.attach && sys::effective_ids().0 != 0 {
            bail!("--attach uses the kernel's trace, which needs root: run it with sudo");
        }
        // Watch for signals before the first thread starts, because otherwise that thread would receive them.
        let signals = Signals::watch()?;
        let mut exporter = Exporter::new(self.options.clone(), self.once);
        if self.once {
            return output::print(&exporter.page(MetricsFormat::Text));
        }
        let listener = http::listen(self.listen)?;
        output::note(&format!("metrics at http://{}/metrics; press ^C to stop", listener.local_addr()?));
        let exporter = Arc::new(Mutex::new(exporter));
        let asked = Arc::clone(&exporter);
        thread::Builder::new().name("http".to_owned()).spawn(move || {
            http::serve(&listener, move |accept| {
                let format = MetricsFormat::accepted(accept);
                let page = asked.lock().unwrap_or_else(PoisonError::into_inner).page(format);
                HttpResponse { status: "200 OK", content_type: format.content_type(), body: page.into() }
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
