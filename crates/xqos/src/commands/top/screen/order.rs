// SPDX-License-Identifier: MIT
//! By what the clients are ordered.

use crate::sample::Client;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    #[default]
    Share,
    Total,
    Requests,
    Response,
    Wait,
    Name,
}

impl Order {
    const ALL: [(Order, &'static str); 6] = [
        (Order::Share, "share"),
        (Order::Total, "server time"),
        (Order::Requests, "requests"),
        (Order::Response, "p99"),
        (Order::Wait, "longest wait"),
        (Order::Name, "name"),
    ];

    pub fn name(self) -> &'static str {
        Order::ALL.iter().find(|(order, _)| *order == self).map_or("", |(_, name)| name)
    }

    pub fn next(self) -> Order {
        let at = Order::ALL.iter().position(|(order, _)| *order == self).unwrap_or(0);
        Order::ALL[(at + 1) % Order::ALL.len()].0
    }

    pub fn sort(self, clients: &mut [Client]) {
        let p99 = |client: &Client| client.response.as_ref().map_or(0.0, |response| response.p99_ms);
        let number = |client: &Client| match self {
            Order::Share => client.charged_share,
            Order::Total => client.charged_ms,
            Order::Requests => client.requests_per_s,
            Order::Response => p99(client),
            Order::Wait => client.longest_wait_ms,
            Order::Name => 0.0,
        };
        match self {
            Order::Name => clients.sort_by(|a, b| a.name.cmp(&b.name)),
            _ => clients.sort_by(|a, b| number(b).total_cmp(&number(a))),
        }
    }
}
