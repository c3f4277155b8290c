// SPDX-License-Identifier: MIT
//! Table of the requests that a proxy next to the program can answer without the server, with class and condition.
//!
//! Names are those of [`crate::x11::names`]: `InternAtom`, `RENDER::QueryPictFormats`. A request that is not in the
//! table is [`Class::Never`]. The table says what can be answered; [`Barrier`] says when the request order allows it.
//!
//! | class | the answer | the proxy |
//! |---|---|---|
//! | [`Class::Constant`] | constant while the server runs, and the request changes nothing in it | keeps it |
//! | [`Class::ConstantSetsState`] | likewise, but the request sets client state | answers it, and also forwards it |
//! | [`Class::Watched`] | constant until one of the [`Row::until`] events | keeps it and selects these events |
//! | [`Class::Shadowed`] | can be computed from the program's own requests | models the program's windows and pixmaps |
//! | [`Class::Never`] | only the server knows it | forwards the request and waits |

/// How a proxy can know an answer without the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    Constant,
    ConstantSetsState,
    Watched,
    Shadowed,
    Never,
}

/// Condition for the class. If it is not met, the request is [`Class::Never`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Condition {
    Always,
    /// The atom exists. A missing atom could be created later.
    AtomFound,
    /// The colormap's visual is TrueColor, StaticColor or StaticGray, whose colour cells are read-only.
    FixedColormap,
    /// The client has not set the font path. With another path, a name can mean another font.
    SameFontPath,
    /// The request does not delete the property.
    Undeleted,
    /// The drawable is a root, or the program's own pixmap or window. A window must not be mapped or reparented yet, or
    /// the request concerns only this window and one of the program's windows that contains it.
    OwnDrawable,
}

/// How the Low Bandwidth X extension (1996) treated the request on the client's side of the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Lbx {
    /// The LBX proxy answered, without a round trip.
    Answered,
    /// The LBX proxy forwarded the request, but the server sent only a short tag if the proxy had the data.
    Tagged,
    Forwarded,
}

/// Effect of a one-way request on later answers, in relaxed order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Barrier {
    /// The request concerns only the program's own resources, so a later answer may overtake it.
    None,
    /// The request is a barrier if it names a window that is not the program's own.
    ForeignWindow,
    /// The request's error, or the reaction of other clients, must arrive before a later answer.
    Always,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    pub request: &'static str,
    pub class: Class,
    pub when: Condition,
    pub lbx: Lbx,
    /// Events that invalidate the answer.
    pub until: &'static [&'static str],
}

/// The table's entry for a request. The entry's field `request` is empty if the request is not in the table.
pub fn row(request: &str) -> Row {
    if let Some(row) = TABLE.iter().find(|row| row.request == request) {
        return *row;
    }
    // Extensions need to know the client's version, and most call that request QueryVersion.
    let is_version = request.ends_with("::QueryVersion");
    Row { class: if is_version { Class::ConstantSetsState } else { Class::Never }, ..UNKNOWN }
}

pub fn barrier(request: &str) -> Barrier {
    match () {
        () if BARRIERS.contains(&request) => Barrier::Always,
        () if WINDOW_BARRIERS.contains(&request) => Barrier::ForeignWindow,
        () => Barrier::None,
    }
}

/// True if a one-way request can cause neither event nor error, given valid resource ids. Answers may overtake it even
/// in strict order. OpenFont is silent only if the font is known to exist.
pub fn is_silent(request: &str) -> bool {
    SILENT.contains(&request)
}

const UNKNOWN: Row = Row { request: "", class: Class::Never, when: Condition::Always, lbx: Lbx::Forwarded, until: &[] };

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
    Row { request, class: Class::Shadowed, when: Condition::OwnDrawable, ..UNKNOWN }
}

impl Row {
    const fn when(self, when: Condition) -> Row {
        Row { when, ..self }
    }

    const fn lbx(self, lbx: Lbx) -> Row {
        Row { lbx, ..self }
    }
}

const MAPPING: &[&str] = &["MappingNotify"];
const XKB_MAP: &[&str] = &["XKEYBOARD::MapNotify", "XKEYBOARD::NewKeyboardNotify", "MappingNotify"];
const RANDR: &[&str] = &["RANDR::ScreenChangeNotify", "RANDR::Notify"];
/// For a monitor that a client sets or deletes, the server sends only the ConfigureNotify of the root window.
const MONITORS: &[&str] = &["RANDR::ScreenChangeNotify", "RANDR::Notify", "ConfigureNotify"];
const DEVICES: &[&str] = &["XInputExtension::Hierarchy", "XInputExtension::DeviceChanged"];

/// Every request that is not [`Class::Never`], except those called QueryVersion. Comments name the state that the
/// server records for the client. The server also receives all watched and shadowed requests.
pub const TABLE: &[Row] = &[
    constant("QueryExtension").lbx(Lbx::Answered),
    constant("ListExtensions"),
    constant("InternAtom").when(Condition::AtomFound).lbx(Lbx::Answered),
    constant("GetAtomName").lbx(Lbx::Answered),
    constant("LookupColor").when(Condition::FixedColormap).lbx(Lbx::Answered),
    constant("QueryColors").when(Condition::FixedColormap),
    constant("QueryFont").when(Condition::SameFontPath).lbx(Lbx::Tagged),
    constant("ListFonts").when(Condition::SameFontPath),
    constant("QueryBestSize"),
    constant("RENDER::QueryPictFormats"),
    constant("GLX::QueryServerString"),
    constant("GLX::QueryExtensionsString"),
    constant("GLX::GetVisualConfigs"),
    constant("GLX::GetFBConfigs"),
    // The reference count of a colour cell: FreeColors fails for a cell that the client has not allocated.
    sets_state("AllocColor").when(Condition::FixedColormap).lbx(Lbx::Answered),
    sets_state("AllocNamedColor").when(Condition::FixedColormap).lbx(Lbx::Answered),
    // Permission to send long requests.
    sets_state("BIG-REQUESTS::Enable"),
    // The client's version, or the fact that it sent this request: until then, the extension's other requests fail.
    sets_state("DPMS::GetVersion"),
    sets_state("SYNC::Initialize"),
    sets_state("XC-MISC::GetVersion"),
    sets_state("XInputExtension::GetExtensionVersion"),
    sets_state("XInputExtension::XIQueryVersion"),
    sets_state("XTEST::GetVersion"),
    sets_state("XKEYBOARD::UseExtension"),
    // How the server reports key repeat and grabs.
    sets_state("XKEYBOARD::PerClientFlags"),
    watched("GetKeyboardMapping", MAPPING).lbx(Lbx::Tagged),
    watched("GetModifierMapping", MAPPING).lbx(Lbx::Tagged),
    watched("GetPointerMapping", MAPPING),
    watched("GetProperty", &["PropertyNotify"]).when(Condition::Undeleted).lbx(Lbx::Tagged),
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
    watched("RANDR::GetOutputProperty", RANDR).when(Condition::Undeleted),
    watched("RANDR::GetCrtcInfo", RANDR),
    watched("RANDR::GetOutputPrimary", RANDR),
    watched("RANDR::GetProviders", RANDR),
    watched("RANDR::GetProviderInfo", RANDR),
    watched("RANDR::GetMonitors", MONITORS),
    watched("XInputExtension::XIQueryDevice", DEVICES),
    watched("XInputExtension::XIGetProperty", &["XInputExtension::Property"]).when(Condition::Undeleted),
    shadowed("GetGeometry"),
    shadowed("GetWindowAttributes"),
    shadowed("TranslateCoordinates"),
    shadowed("QueryTree"),
];

/// Requests that create or free a resource without window or content, with one of the program's own ids. They cause no
/// event. They fail only for an invalid id or for lack of memory.
#[rustfmt::skip]
const SILENT: [&str; 19] = [
    "NoOperation", "CreatePixmap", "FreePixmap", "CreateGC", "FreeGC", "OpenFont", "CloseFont", "CreateCursor",
    "CreateGlyphCursor", "RecolorCursor", "FreeCursor", "RENDER::CreatePicture", "RENDER::FreePicture",
    "RENDER::CreateSolidFill", "RENDER::CreateCursor", "XFIXES::SetCursorName", "XFIXES::CreateRegion",
    "XFIXES::DestroyRegion", "SYNC::SetCounter",
];

/// Requests that are always barriers.
#[rustfmt::skip]
const BARRIERS: [&str; 19] = [
    "OpenFont", "SetFontPath", "SendEvent", "GrabServer", "UngrabServer", "UngrabPointer", "UngrabKeyboard",
    "GrabButton", "GrabKey", "UngrabButton", "UngrabKey", "AllowEvents", "WarpPointer", "SetInputFocus",
    "SetSelectionOwner", "ConvertSelection", "KillClient", "ChangeKeyboardMapping", "SetCloseDownMode",
];

/// Requests that are barriers if they name or draw into a window that is not the program's own.
#[rustfmt::skip]
const WINDOW_BARRIERS: [&str; 19] = [
    "CreateWindow", "ChangeWindowAttributes", "ConfigureWindow", "ReparentWindow", "MapWindow", "UnmapWindow",
    "MapSubwindows", "UnmapSubwindows", "DestroyWindow", "DestroySubwindows", "CirculateWindow", "ChangeProperty",
    "DeleteProperty", "RotateProperties", "ChangeSaveSet", "CopyArea", "CopyPlane", "ClearArea",
    "XInputExtension::XISelectEvents",
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use xqos_x11::names::{self, NameKind, all};

    /// True if the request has a reply; `None` if there is no such request.
    fn has_reply(request: &str) -> Option<bool> {
        let (table, opcode) = names::request(request)?;
        Some(table.has_reply(opcode))
    }

    #[test]
    fn every_row_names_a_different_request_with_a_reply() {
        for row in TABLE {
            assert_eq!(has_reply(row.request), Some(true), "{}", row.request);
            assert_ne!(row.class, Class::Never, "{}", row.request);
        }
        let names: BTreeSet<&str> = TABLE.iter().map(|row| row.request).collect();
        assert_eq!(names.len(), TABLE.len());
    }

    #[test]
    fn watched_rows_name_existing_events() {
        let is_event = |name: &str| {
            all().any(|(kind, event)| matches!(kind, NameKind::Event | NameKind::GenericEvent) && event == name)
        };
        for row in TABLE {
            assert_eq!(row.class == Class::Watched, !row.until.is_empty(), "{}", row.request);
            row.until.iter().for_each(|event| assert!(is_event(event), "{event}"));
        }
    }

    #[test]
    fn barriers_are_requests_without_replies() {
        let requests = all().filter(|(kind, _)| *kind == NameKind::Request);
        let barriers: Vec<&str> =
            requests.map(|(_, name)| name).filter(|name| barrier(name) != Barrier::None).collect();
        assert_eq!(barriers.len(), 38, "a name differs from the library's: {barriers:?}");
        barriers.iter().for_each(|name| assert_eq!(has_reply(name), Some(false), "{name}"));
    }

    #[test]
    fn silent_requests_have_no_replies() {
        SILENT.iter().for_each(|name| assert_eq!(has_reply(name), Some(false), "{name}"));
    }

    #[test]
    fn requests_that_only_the_server_knows_are_never_answered() {
        let never = [
            "GetInputFocus",
            "GetSelectionOwner",
            "QueryPointer",
            "GrabPointer",
            "GrabKeyboard",
            "GetImage",
            "QueryKeymap",
            "SYNC::QueryCounter",
            // No event reports ConfigureOutputProperty.
            "RANDR::ListOutputProperties",
            "RANDR::QueryOutputProperty",
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
    fn requests_that_set_state_always_reach_the_server() {
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
    fn version_requests_are_answered_and_forwarded() {
        for (_, version) in all().filter(|(kind, name)| *kind == NameKind::Request && name.ends_with("::QueryVersion"))
        {
            assert_eq!(row(version).class, Class::ConstantSetsState, "{version}");
        }
        assert_eq!(row("GLX::QueryVersion").class, Class::ConstantSetsState);
        assert_eq!(row("BIG-REQUESTS::Enable").class, Class::ConstantSetsState);
    }
}
