// SPDX-License-Identifier: MIT
//! Parses names of messages in a user's options: `CreateWindow`, `RENDER::Composite`, `BadWindow`.
//!
//! Only known names are accepted, because a misspelt name would silently match nothing.

use crate::observe::Kind;
use std::str::FromStr;
use xqos_x11::names::{self, all};

/// The messages with one name: a request and its replies, an event, or an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageName {
    name: &'static str,
    is_error: bool,
}

impl MessageName {
    pub fn matches(&self, kind: Kind, name: &str) -> bool {
        self.name == name && self.is_error == (kind == Kind::Error)
    }
}

impl FromStr for MessageName {
    type Err = String;

    /// Case is ignored. An error may have the prefix `Bad`.
    fn from_str(text: &str) -> Result<MessageName, String> {
        let error = text.get(..3).filter(|prefix| prefix.eq_ignore_ascii_case("bad")).map_or(text, |_| &text[3..]);
        // The server's answer to a setup is the only message without a number.
        let found = all().chain([(names::NameKind::Reply, "SetupReply")]).find_map(|(kind, name)| {
            let is_error = kind == names::NameKind::Error;
            let wanted = if is_error { error } else { text };
            name.eq_ignore_ascii_case(wanted).then_some(MessageName { name, is_error })
        });
        found.ok_or_else(|| {
            format!(
                "'{text}' is not the name of a message: write a request, event or error such as CreateWindow, \
                     RENDER::Composite, MapNotify or BadWindow"
            )
        })
    }
}

/// A user's filter: `message=CreateWindow,MapWindow`. The default takes all messages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter(Vec<MessageName>);

impl Filter {
    pub fn takes(&self, kind: Kind, name: &str) -> bool {
        self.0.is_empty() || self.0.iter().any(|one| one.matches(kind, name))
    }
}

impl FromStr for Filter {
    type Err = String;

    fn from_str(text: &str) -> Result<Filter, String> {
        let names = text.strip_prefix("message=").ok_or_else(|| {
            format!("'{text}' is not a filter: write message=NAME, or several names such as message=MapWindow,Expose")
        })?;
        names.split(',').map(str::parse).collect::<Result<_, _>>().map(Filter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_selects_messages_of_its_kind() {
        let filter: Filter = "message=createwindow,RENDER::Composite,BadWindow,Expose".parse().unwrap();
        for (kind, name, is_taken) in [
            (Kind::Request, "CreateWindow", true),
            (Kind::Request, "RENDER::Composite", true),
            (Kind::Reply, "InternAtom", false),
            (Kind::Error, "Window", true),
            (Kind::Event, "Window", false),
            (Kind::Event, "Expose", true),
            (Kind::Event, "MapNotify", false),
        ] {
            assert_eq!(filter.takes(kind, name), is_taken, "{kind:?} {name}");
        }
        assert!(Filter::default().takes(Kind::Event, "Expose"));
    }

    #[test]
    fn unknown_names_are_refused() {
        for text in ["", "message", "message=", "message=CreateWindo", "message=Expose,", "name=Expose", "message=é"] {
            assert!(text.parse::<Filter>().is_err_and(|error| error.contains("write ")), "{text}");
        }
    }
}
