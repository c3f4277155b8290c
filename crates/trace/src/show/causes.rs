// SPDX-License-Identifier: MIT
//! Waits and their causes in words. The listed parts of a wait add up to the whole wait.

use crate::model::{Burst, Cause, Model};
use crate::names::Names;
use xqos_text::time::of_ns;

/// A cause in words.
pub fn cause(cause: &Cause, model: &Model, names: &Names) -> String {
    cause_of(cause, model, names, |key| model.name(key))
}

/// A cause in words, with clients named by `name`.
pub fn cause_of(cause: &Cause, model: &Model, names: &Names, name: impl Fn(usize) -> String) -> String {
    match cause {
        Cause::Client { key, request: 0, .. } => format!("behind {}", name(*key)),
        Cause::Client { key, request, long: true } => {
            format!("behind one long {} of {}", names.of(*request), name(*key))
        }
        Cause::Client { key, request, .. } => format!("behind {} {}", name(*key), names.of(*request)),
        Cause::Grab { key } => format!("while {} held the server grab", name(*key)),
        Cause::Kernel => "while the server had no processor".to_owned(),
        Cause::Server if model.kernel => "for the server's own work".to_owned(),
        Cause::Server => "for the server's own work or a processor (record with --kernel to distinguish)".to_owned(),
        Cause::HeldBack => "held back by its used-up budget".to_owned(),
    }
}

/// A burst in words: "mpv (12) waited 41.00 ms: 38.00 ms behind x11perf (9) GetImage, 3.00 ms for the server's own
/// work". Causes after the first three are summed up.
pub fn burst(burst: &Burst, model: &Model, names: &Names) -> String {
    const NAMED: usize = 3;
    let named = burst.causes.iter().take(NAMED);
    let others_ns = named.clone().fold(burst.waited_ns, |left, (_, ns)| left.saturating_sub(*ns));
    let mut causes: Vec<String> =
        named.map(|(why, ns)| format!("{} {}", of_ns(*ns), cause(why, model, names))).collect();
    if !causes.is_empty() && others_ns > 0 {
        causes.push(format!("{} for other causes", of_ns(others_ns)));
    }
    let since = model.began.map_or(0, |began| burst.activation.since(began));
    let text = format!("{} waited {}", model.name(burst.key), of_ns(burst.waited_ns));
    let causes = if causes.is_empty() { String::new() } else { format!(": {}", causes.join(", ")) };
    format!("at {:.3} s  {text}{causes}", since as f64 / 1e9)
}
