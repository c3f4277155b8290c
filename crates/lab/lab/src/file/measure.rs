// SPDX-License-Identifier: MIT
//! The kinds of measuring clients, and the names of their samples and values.

/// A kind of measuring client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Measure {
    Light,
    Line,
    Frames,
    Film,
    Wheel,
    Stream,
    Drag,
    Pauses,
    Sync,
    Call,
    OnScreen,
    Simulation,
    Nothing,
    Command,
}

/// Suffixes of samples, which name the part of a trial: before the load, without it (before or after), from the start
/// of its first client until its end is requested, and the same once its clients are busy.
pub(super) const PARTS: [&str; 4] = ["before", "idle", "beside", "busy"];
impl Measure {
    /// Each kind with its name in experiment files, and the names of its samples and values. `NAME_*` stands for the
    /// samples `NAME` of each part of a trial ([`PARTS`]).
    const ALL: [(Measure, &'static str, &'static str); 14] = [
        (
            Measure::Light,
            "light",
            "at response kernel without_kernel burst_served burst_behind burst_behind_work burst_behind_work_sent \
             burst_neither missed own_share lost",
        ),
        (Measure::Line, "line", "receipt echo echo_by_server unanswered"),
        (Measure::Frames, "frames", "drawing interval spacing"),
        (
            Measure::Film,
            "film",
            "frame interval interval_* asking_* drawing_* behind_* dropped lost delayed_beside reserved",
        ),
        (
            Measure::Wheel,
            "wheel",
            "activation at latency period_* period_without_kernel_* latency_* latency_without_kernel_* burst \
             burst_spacing burst_served burst_behind burst_neither slices delayed_beside reserved burst_late \
             burst_depleted lost",
        ),
        (
            Measure::Stream,
            "stream",
            "activation at latency frame interval interval_* latency_* delayed_beside reserved",
        ),
        (Measure::Sync, "sync", "released recognized"),
        (Measure::Call, "call", "cost"),
        (Measure::Drag, "drag", "redraw answer key moves redraws unanswered lost"),
        (Measure::Pauses, "pauses", "pause_part pause_longest pause_wait"),
        (Measure::OnScreen, "onscreen", "shown echo frames player_frames compositor_cpu"),
        (
            Measure::Simulation,
            "simulation",
            "measured measured_interval simulated simulated_interval simulated_crowd load load_rest client client_own \
             measured_share operations simulated_share simulated_requests unfinished starved asked admitted",
        ),
        (Measure::Nothing, "nothing", ""),
        (Measure::Command, "command", "run"),
    ];

    pub fn named(text: &str) -> Result<Measure, String> {
        let known = || Measure::ALL.map(|(_, name, ..)| name).join(", ");
        let found = Measure::ALL.into_iter().find(|(_, name, ..)| *name == text);
        found.map(|(measure, ..)| measure).ok_or_else(|| format!("there is no measure '{text}': write {}", known()))
    }

    /// True if the client's first samples do not count.
    pub fn warms_up(self) -> bool {
        matches!(
            self,
            Measure::Light | Measure::Line | Measure::Film | Measure::Wheel | Measure::Stream | Measure::Drag
        )
    }

    pub fn finds(self) -> impl Iterator<Item = String> {
        let (.., names) = Measure::ALL.into_iter().find(|(measure, ..)| *measure == self).expect("all are there");
        names.split_whitespace().flat_map(|name| match name.strip_suffix('*') {
            Some(name) => PARTS.map(|part| format!("{name}{part}")).to_vec(),
            None => vec![name.to_owned()],
        })
    }
}
