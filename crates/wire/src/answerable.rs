// SPDX-License-Identifier: MIT
//! Which requests a proxy beside the program can answer by itself, as a table: what class each is in, and on what condition.
//!
//! Names are those of [`crate::x11::names`]: `InternAtom`, `RENDER::QueryPictFormats`. A request that is not in the table is
//! [`Class::Never`]. The table speaks of answers alone; when one may be given is the order's matter ([`Barrier`]).
//!
//! | class | the answer | the proxy |
//! |---|---|---|
//! | [`Class::Constant`] | stays the same while the server runs, which keeps nothing for the client because of it | keeps it |
//! | [`Class::ConstantSetsState`] | likewise, but the server keeps something for the client | answers, and sends it to the server all the same |
//! | [`Class::Watched`] | stays the same until one of the [`Row::until`] events | keeps it and listens for these |
//! | [`Class::Shadowed`] | follows from what the program did itself | keeps a model of the program's own windows and pixmaps |
//! | [`Class::Never`] | only the server knows | waits |

/// How an answer can be known without the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    Constant,
    ConstantSetsState,
    Watched,
    Shadowed,
    Never,
}

/// On what the class depends, beside the request's name; where it is not so, the request is [`Class::Never`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Only {
    Always,
    /// An atom that exists: a later request can make one of what was None.
    AtomFound,
    /// The colormap's visual is TrueColor (or StaticColor and StaticGray, which allocate nothing either).
    FixedColormap,
    /// The font is as it was opened; a SetFontPath can give another font the same name.
    SameFontPath,
    /// The property is read and not deleted by it.
    Undeleted,
    /// The drawable is a root or the program's own: a window until it is mapped or reparented, one within another of its
    /// own as long as that only concerns itself, a pixmap always.
    OwnDrawable,
}

/// What the Low Bandwidth X extension of 1996 did with a request at the client's end of the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Lbx {
    /// Its proxy answered: no round trip.
    Answered,
    /// Its proxy asked, and a server that knew the proxy to have the data sent a tag for them: a round trip of few bytes.
    Tagged,
    Forwarded,
}

/// What one-way requests mean for answers to those after them, in relaxed order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Barrier {
    /// It concerns the program's own resources: an answer may overtake it.
    None,
    /// It is one if a window that it names is not the program's own.
    ForeignWindow,
    /// Its error, or what others do when they see it, must come first.
    Always,
}

/// One request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    pub request: &'static str,
    pub class: Class,
    pub only: Only,
    pub lbx: Lbx,
    /// Events after which an answer is no longer known.
    pub until: &'static [&'static str],
}

/// What the table says of a request; one that stands in no row has an empty name.
pub fn row(request: &str) -> Row {
    if let Some(row) = TABLE.iter().find(|row| row.request == request) {
        return *row;
    }
    // All extensions must be told which version the program knows, and most call that request the same.
    let is_version = request.ends_with("::QueryVersion");
    Row { class: if is_version { Class::ConstantSetsState } else { Class::Never }, ..UNKNOWN }
}

/// What a one-way request means for those after it.
pub fn barrier(request: &str) -> Barrier {
    match () {
        () if BARRIERS.contains(&request) => Barrier::Always,
        () if OF_WINDOWS.contains(&request) => Barrier::ForeignWindow,
        () => Barrier::None,
    }
}

/// Whether a one-way request can be followed by neither event nor error, where its ids are as the program's library gives
/// them out: strict order lets answers overtake it. OpenFont is one where the font is known to be there.
pub fn is_silent(request: &str) -> bool {
    SILENT.contains(&request)
}

const UNKNOWN: Row = Row { request: "", class: Class::Never, only: Only::Always, lbx: Lbx::Forwarded, until: &[] };

const fn constant(request: &'static str) -> Row {
    Row { request, class: Class::Constant, ..UNKNOWN }
}

const fn sets_state(request: &'static str) -> Row {
    Row { request, class: Class::ConstantSetsState, ..UNKNOWN }
}

const fn watched(request: &'static str, until: &'static [&'static str]) -> Row {
    Row { request, class: Class::Watched, until, ..UNKNOWN }
}

const fn shadowed(request: &'static str) -> Row {
    Row { request, class: Class::Shadowed, only: Only::OwnDrawable, ..UNKNOWN }
}

impl Row {
    const fn only(self, only: Only) -> Row {
        Row { only, ..self }
    }

    const fn lbx(self, lbx: Lbx) -> Row {
        Row { lbx, ..self }
    }
}

const MAPPING: &[&str] = &["MappingNotify"];
const XKB_MAP: &[&str] = &["XKEYBOARD::MapNotify", "XKEYBOARD::NewKeyboardNotify", "MappingNotify"];
const RANDR: &[&str] = &["RANDR::ScreenChangeNotify", "RANDR::Notify"];
const DEVICES: &[&str] = &["XInputExtension::Hierarchy", "XInputExtension::DeviceChanged"];

/// Every request that is not [`Class::Never`], but for those called QueryVersion. Of those that set state, what the server keeps
/// for the client stands beside them; requests that are watched or shadowed always reach the server too.
pub const TABLE: &[Row] = &[
    constant("QueryExtension").lbx(Lbx::Answered),
    constant("ListExtensions"),
    constant("InternAtom").only(Only::AtomFound).lbx(Lbx::Answered),
    constant("GetAtomName").lbx(Lbx::Answered),
    constant("LookupColor").only(Only::FixedColormap).lbx(Lbx::Answered),
    constant("QueryColors").only(Only::FixedColormap),
    constant("QueryFont").only(Only::SameFontPath).lbx(Lbx::Tagged),
    constant("ListFonts").only(Only::SameFontPath),
    constant("QueryBestSize"),
    constant("RENDER::QueryPictFormats"),
    constant("GLX::QueryServerString"),
    constant("GLX::QueryExtensionsString"),
    constant("GLX::GetVisualConfigs"),
    constant("GLX::GetFBConfigs"),
    // One use more of a colour cell: FreeColors takes it back, and is refused for a cell that the client has not.
    sets_state("AllocColor").only(Only::FixedColormap).lbx(Lbx::Answered),
    sets_state("AllocNamedColor").only(Only::FixedColormap).lbx(Lbx::Answered),
    // Long requests are understood.
    sets_state("BIG-REQUESTS::Enable"),
    // The version that the client knows, or that it asked at all: requests before that are refused.
    sets_state("DPMS::GetVersion"),
    sets_state("SYNC::Initialize"),
    sets_state("XC-MISC::GetVersion"),
    sets_state("XInputExtension::GetExtensionVersion"),
    sets_state("XInputExtension::XIQueryVersion"),
    sets_state("XTEST::GetVersion"),
    sets_state("XKEYBOARD::UseExtension"),
    // How keys repeat and grabs are told.
    sets_state("XKEYBOARD::PerClientFlags"),
    watched("GetKeyboardMapping", MAPPING).lbx(Lbx::Tagged),
    watched("GetModifierMapping", MAPPING).lbx(Lbx::Tagged),
    watched("GetPointerMapping", MAPPING),
    watched("GetProperty", &["PropertyNotify"]).only(Only::Undeleted).lbx(Lbx::Tagged),
    watched("XKEYBOARD::GetMap", XKB_MAP),
    watched("XKEYBOARD::GetState", &["XKEYBOARD::StateNotify"]),
    watched("XKEYBOARD::GetControls", &["XKEYBOARD::ControlsNotify", "XKEYBOARD::NewKeyboardNotify"]),
    watched("XKEYBOARD::GetNames", &["XKEYBOARD::NamesNotify", "XKEYBOARD::NewKeyboardNotify"]),
    watched("XKEYBOARD::GetCompatMap", &["XKEYBOARD::CompatMapNotify", "XKEYBOARD::NewKeyboardNotify"]),
    watched("XKEYBOARD::GetIndicatorState", &["XKEYBOARD::IndicatorStateNotify"]),
    watched("XKEYBOARD::GetIndicatorMap", &["XKEYBOARD::IndicatorMapNotify", "XKEYBOARD::NewKeyboardNotify"]),
    watched("XKEYBOARD::GetDeviceInfo", &["XKEYBOARD::ExtensionDeviceNotify", "XKEYBOARD::NewKeyboardNotify"]),
    watched("RANDR::GetScreenSizeRange", RANDR),
    watched("RANDR::GetScreenResourcesCurrent", RANDR),
    watched("RANDR::GetOutputInfo", RANDR),
    watched("RANDR::GetOutputProperty", RANDR).only(Only::Undeleted),
    watched("RANDR::ListOutputProperties", RANDR),
    watched("RANDR::QueryOutputProperty", RANDR),
    watched("RANDR::GetCrtcInfo", RANDR),
    watched("RANDR::GetOutputPrimary", RANDR),
    watched("RANDR::GetProviders", RANDR),
    watched("RANDR::GetProviderInfo", RANDR),
    watched("RANDR::GetMonitors", RANDR),
    watched("XInputExtension::XIQueryDevice", DEVICES),
    watched("XInputExtension::XIGetProperty", &["XInputExtension::Property"]).only(Only::Undeleted),
    shadowed("GetGeometry"),
    shadowed("GetWindowAttributes"),
    shadowed("TranslateCoordinates"),
    shadowed("QueryTree"),
];

/// They make or free something that has neither window nor content, under an id of the program's own. Nobody is told, and
/// the server can only refuse an id that the program's library gave out wrongly, or for want of memory.
#[rustfmt::skip]
const SILENT: [&str; 19] = [
    "NoOperation", "CreatePixmap", "FreePixmap", "CreateGC", "FreeGC", "OpenFont", "CloseFont", "CreateCursor",
    "CreateGlyphCursor", "RecolorCursor", "FreeCursor", "RENDER::CreatePicture", "RENDER::FreePicture",
    "RENDER::CreateSolidFill", "RENDER::CreateCursor", "XFIXES::SetCursorName", "XFIXES::CreateRegion",
    "XFIXES::DestroyRegion", "SYNC::SetCounter",
];

/// Those that are barriers whatever they name.
#[rustfmt::skip]
const BARRIERS: [&str; 19] = [
    "OpenFont", "SetFontPath", "SendEvent", "GrabServer", "UngrabServer", "UngrabPointer", "UngrabKeyboard",
    "GrabButton", "GrabKey", "UngrabButton", "UngrabKey", "AllowEvents", "WarpPointer", "SetInputFocus",
    "SetSelectionOwner", "ConvertSelection", "KillClient", "ChangeKeyboardMapping", "SetCloseDownMode",
];

/// Those that are barriers where they name a window, or draw into one, that is not the program's own.
#[rustfmt::skip]
const OF_WINDOWS: [&str; 19] = [
    "CreateWindow", "ChangeWindowAttributes", "ConfigureWindow", "ReparentWindow", "MapWindow", "UnmapWindow",
    "MapSubwindows", "UnmapSubwindows", "DestroyWindow", "DestroySubwindows", "CirculateWindow", "ChangeProperty",
    "DeleteProperty", "RotateProperties", "ChangeSaveSet", "CopyArea", "CopyPlane", "ClearArea",
    "XInputExtension::XISelectEvents",
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::x11::library::{CORE, EXTENSIONS};
    use std::collections::BTreeSet;

    /// Whether the request has a reply; nothing if there is no such request.
    fn has_reply(request: &str) -> Option<bool> {
        let table = match request.split_once("::") {
            Some((extension, _)) => EXTENSIONS.get(extension)?,
            None => &*CORE,
        };
        let opcode = table.requests.iter().position(|name| *name == Some(request))?;
        Some(table.with_reply[opcode])
    }

    #[test]
    fn every_row_is_a_request_with_a_reply_and_stands_once() {
        for row in TABLE {
            assert_eq!(has_reply(row.request), Some(true), "{}", row.request);
            assert_ne!(row.class, Class::Never, "{}", row.request);
        }
        let names: BTreeSet<&str> = TABLE.iter().map(|row| row.request).collect();
        assert_eq!(names.len(), TABLE.len());
    }

    #[test]
    fn watched_answers_end_with_events_that_exist() {
        let is_event = |name: &str| match name.split_once("::") {
            Some((extension, _)) => {
                let table = &EXTENSIONS[extension];
                table.events.iter().chain(&table.generic).flatten().any(|event| *event == name)
            }
            None => CORE.events.iter().flatten().any(|event| *event == name),
        };
        for row in TABLE {
            assert_eq!(row.class == Class::Watched, !row.until.is_empty(), "{}", row.request);
            row.until.iter().for_each(|event| assert!(is_event(event), "{event}"));
        }
    }

    #[test]
    fn barriers_are_requests_without_replies() {
        let all = CORE.requests.iter().chain(EXTENSIONS.values().flat_map(|table| &table.requests)).flatten();
        let barriers: Vec<&&str> = all.filter(|name| barrier(name) != Barrier::None).collect();
        assert_eq!(barriers.len(), 38, "a name is not spelt as the library spells it: {barriers:?}");
        barriers.iter().for_each(|name| assert_eq!(has_reply(name), Some(false), "{name}"));
    }

    #[test]
    fn silent_requests_have_no_replies() {
        SILENT.iter().for_each(|name| assert_eq!(has_reply(name), Some(false), "{name}"));
    }

    #[test]
    fn what_only_the_server_knows_is_never_answered() {
        let never = [
            "GetInputFocus",
            "GetSelectionOwner",
            "QueryPointer",
            "GrabPointer",
            "GrabKeyboard",
            "GetImage",
            "QueryKeymap",
            "SYNC::QueryCounter",
            "MIT-SHM::GetImage",
            "XC-MISC::GetXIDRange",
            "NOBODYS::request 3",
            "extension 131 request 7",
        ];
        never
            .iter()
            .for_each(|name| assert_eq!((row(name).class, row(name).lbx), (Class::Never, Lbx::Forwarded), "{name}"));
    }

    #[test]
    fn what_makes_the_server_keep_something_for_the_client_is_never_kept_from_it() {
        let keeps = [
            "AllocColor",
            "AllocNamedColor",
            "AllocColorCells",
            "AllocColorPlanes",
            "GrabPointer",
            "GrabKeyboard",
            "XC-MISC::GetXIDRange",
            "XInputExtension::OpenDevice",
            "XInputExtension::GrabDevice",
            "XInputExtension::XIGrabDevice",
            "XInputExtension::XIPassiveGrabDevice",
            "XInputExtension::XIQueryVersion",
            "XKEYBOARD::UseExtension",
            "XKEYBOARD::PerClientFlags",
            "RANDR::CreateMode",
            "RANDR::CreateLease",
            "MIT-SHM::CreateSegment",
            "BIG-REQUESTS::Enable",
            "GLX::MakeCurrent",
        ];
        for name in keeps {
            assert_eq!(has_reply(name), Some(true), "{name}");
            assert_ne!(row(name).class, Class::Constant, "{name}");
        }
    }

    #[test]
    fn versions_are_answered_and_told_to_the_server() {
        for (extension, table) in EXTENSIONS.iter() {
            let version = format!("{extension}::QueryVersion");
            if table.requests.iter().flatten().any(|name| *name == version) {
                assert_eq!(row(&version).class, Class::ConstantSetsState, "{version}");
            }
        }
        assert_eq!(row("GLX::QueryVersion").class, Class::ConstantSetsState);
        assert_eq!(row("BIG-REQUESTS::Enable").class, Class::ConstantSetsState);
    }
}
