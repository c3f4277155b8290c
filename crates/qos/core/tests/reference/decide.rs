// SPDX-License-Identifier: MIT
//! Decisions: the client to run, the end of its slice, and the arrivals that end it early.

use super::*;

impl Reference {
    pub fn pick(&mut self, now: u64) -> Option<Decision> {
        self.running = None;
        let ready = self.clients.iter().filter(|&(&id, client)| client.ready && !self.paced.holds(id));
        let with_budget = ready.clone().filter(|(_, client)| client.has_budget());
        let earliest = with_budget.min_by_key(|(_, client)| client.budget.map(|budget| budget.deadline));
        let earliest = earliest.and_then(|(&id, client)| Some((id, client.budget?)));
        let shared = self.shared.first(|id| self.clients[&id].ready && !self.paced.holds(id));
        let best_effort: Vec<ClientId> =
            ready.filter(|&(&id, client)| !client.has_budget() && !self.is_out(id)).map(|(&id, _)| id).collect();
        let servers_choice = Decision { client: None, end: u64::MAX, requests: 0, bytes: 0 };
        let (decision, running) = if self.grab.is_some() {
            (servers_choice, Running::Server { grabbed: true })
        } else if let Some((client, budget)) =
            shared.filter(|(_, shared)| earliest.is_none_or(|(_, own)| shared.deadline < own.deadline))
        {
            self.shared.picked(client);
            let left_ns = u64::try_from(budget.left_ns).expect("a client that is not depleted has budget");
            let end = now + left_ns.min(self.parameters.slice_ns);
            let decision = Decision { client: Some((client, Mode::Reserved)), end, requests: 0, bytes: 0 };
            (decision, Running::Reserved { client, deadline: budget.deadline })
        } else if let Some((client, budget)) = earliest {
            let end = now + u64::try_from(budget.left_ns).expect("a client that is not depleted has budget");
            let decision = Decision { client: Some((client, Mode::Reserved)), end, requests: 0, bytes: 0 };
            (decision, Running::Reserved { client, deadline: budget.deadline })
        } else if best_effort.is_empty() {
            return None;
        } else if self.is_servers_choice() {
            (servers_choice, Running::Server { grabbed: false })
        } else {
            // Compositors and window managers run only during their turn, unless no other client waits.
            let others_first = self.desktop.first_from(now) > now && best_effort.iter().any(|&id| !self.is_desktop(id));
            let best_effort_now = best_effort.iter().copied().filter(|&id| !others_first || !self.is_desktop(id));
            let best = best_effort_now.clone().map(|id| self.place(id)).min();
            let contenders: Vec<ClientId> = best_effort_now.filter(|&id| Some(self.place(id)) == best).collect();
            if self.is_desktop(contenders[0]) {
                return Some(self.pick_desktop(&contenders, now));
            }
            let client = self.rules.first(&contenders);
            let (standing, defence) = (self.rules.standings[&client], self.rules.defence(client));
            let turn = self.rules.run(client, best_effort.len(), now);
            let longest_ns = if standing.slice_us == 0 { u64::MAX } else { u64::from(standing.slice_us) * 1000 };
            let length_ns = turn.length_ns.min(longest_ns);
            let (mut end, requests, bytes) = (now.saturating_add(length_ns), turn.requests, turn.bytes);
            if let Some(cap) = self.caps.get(&standing.group) {
                let left_ns = if now >= cap.deadline { i128::from(cap.of.budget_ns) } else { cap.left_ns };
                end = end.min(now + u64::try_from(left_ns.max(0)).expect("it is less than a period"));
            }
            if best_effort.iter().any(|&id| self.is_desktop(id) && self.place(id) < self.place(client)) {
                end = end.min(self.desktop.first_from(now));
            }
            let decision = Decision { client: Some((client, Mode::BestEffort)), end, requests, bytes };
            (decision, Running::BestEffort { client, standing, defence })
        };
        self.running = Some((now, running));
        Some(decision)
    }

    /// Picks the client that has waited longest, for one slice; if others wait, at most until the turn ends.
    fn pick_desktop(&mut self, contenders: &[ClientId], now: u64) -> Decision {
        let longest = contenders.iter().min_by_key(|&&id| (self.clients[&id].waits_since, id));
        let client = *longest.expect("a client is ready");
        let slice_end = now + self.parameters.slice_ns;
        let is_bounded = self.others_wait() || !self.desktop.roles[&client].compositor;
        let end = if is_bounded { slice_end.min(now + self.desktop.left_for(client, now)) } else { slice_end };
        self.running = Some((now, Running::Desktop { client, place: self.place(client) }));
        Decision { client: Some((client, Mode::BestEffort)), end, requests: 0, bytes: 0 }
    }

    /// The time at which an arrival of this idle client at `arrival` would end the slice chosen last; `None`: never.
    pub fn ends_at(&self, id: ClientId, arrival: u64) -> Option<u64> {
        let client = self.clients[&id];
        let (start, running) = self.running?;
        if self.paced.holds(id) {
            return None;
        }
        // If the client's deadline passes before the arrival, it is replenished by then.
        let budget = client.budget.map(|budget| budget.replenished(arrival).at_arrival(arrival));
        let budget = budget.or_else(|| self.shared.at_arrival(id, arrival));
        let deadline = budget.filter(|budget| !budget.depleted).map(|budget| budget.deadline);
        let is_hard = budget.is_some_and(|budget| budget.of.kind.is_hard());
        let is_held_back = deadline.is_none() && (is_hard || self.is_capped(id));
        match (running, deadline) {
            (Running::Server { grabbed: true }, _) => None,
            (Running::Reserved { deadline: before, .. }, Some(deadline)) => (deadline < before).then_some(start),
            (_, Some(_)) => Some(start),
            (Running::Desktop { place, .. }, None) if !is_held_back => (self.place(id) < place).then_some(start),
            (Running::BestEffort { standing, .. }, None) if !is_held_back && self.is_desktop(id) => {
                let turn = self.desktop.first_from(start);
                (self.place(id) < (-i64::from(standing.sync_priority), true)).then_some(turn)
            }
            (Running::BestEffort { standing, defence, .. }, None) if !is_held_back => {
                Some(start + self.rules.ends_after(standing, defence, id)?)
            }
            (_, None) => None,
        }
    }

    /// True if this idle client must be watched during the slice chosen last, which ends at `until`.
    pub fn is_to_be_watched(&self, id: ClientId, now: u64, until: u64) -> bool {
        let somebody_hogs = self.hogged.is_some_and(|end| now.saturating_sub(end) < HOG_MEMORY_NS);
        let slice_end = until.min(now + self.parameters.slice_ns);
        let runs = match self.running {
            Some((_, Running::Reserved { client, .. } | Running::BestEffort { client, .. })) => Some(client),
            Some((_, Running::Desktop { client, .. })) => Some(client),
            _ => None,
        };
        let runs = runs.and_then(|client| self.clients[&client].asked_for_ns);
        let likely_end = runs.map_or(u64::MAX, |ns| now + 2 * ns);
        let wins = self.ends_at(id, now).is_some_and(|at| at < slice_end && (at <= now || at < likely_end));
        wins && (somebody_hogs || self.has_budget(id) || self.is_desktop(id))
    }

    /// The times before `end` at which a depleted client resumes with a better rank than the client chosen last.
    pub fn resumptions(&self, now: u64, end: u64) -> impl Iterator<Item = u64> + '_ {
        self.clients.iter().filter_map(move |(&id, client)| {
            let budget = client.budget.or_else(|| self.shared.budget_of(id)).filter(|budget| budget.depleted)?;
            let at = Some(budget.deadline).filter(|&at| at < end)?;
            let wins = budget.replenished(at).left_ns > 0 && self.ends_at(id, at).is_some_and(|ends| ends <= at);
            wins.then_some(at.max(now))
        })
    }
}
