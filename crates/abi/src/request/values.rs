// SPDX-License-Identifier: MIT
//! Values that requests have besides numbers.

/// Which clients are one group under `fair`, unless a client was put into a group by name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Grouping {
    /// Each client stands for itself.
    None,
    /// Those of one application: of its control group, else of a process.
    #[default]
    Application,
    /// Those of one user.
    User,
}

impl Grouping {
    pub const ALL: [Grouping; 3] = [Grouping::None, Grouping::Application, Grouping::User];

    /// The word on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Grouping::None => "none",
            Grouping::Application => "app",
            Grouping::User => "user",
        }
    }

    pub fn from_name(name: &str) -> Option<Grouping> {
        Self::ALL.into_iter().find(|grouping| grouping.name() == name)
    }

    pub fn code(self) -> u8 {
        self as u8
    }

    pub fn from_code(code: u8) -> Option<Grouping> {
        Self::ALL.get(usize::from(code)).copied()
    }
}

/// Whether a client waits for those that it uncovers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Paced {
    /// As SetPacing says for all.
    #[default]
    AsAll,
    /// Also where others do not.
    Always,
    /// Also where others do.
    Never,
}

impl Paced {
    pub const ALL: [Paced; 3] = [Paced::AsAll, Paced::Always, Paced::Never];

    pub fn code(self) -> u8 {
        self as u8
    }

    pub fn from_code(code: u8) -> Option<Paced> {
        Self::ALL.get(usize::from(code)).copied()
    }
}
