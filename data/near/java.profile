xqos near questions 2
programs java
1 QueryExtension BIG-REQUESTS
1 BIG-REQUESTS::Enable
1 GetProperty 23 31 0 100000000
1 QueryExtension XKEYBOARD
1 XKEYBOARD::UseExtension 01000000
1 QueryExtension XINERAMA
1 QueryExtension RENDER
1 QueryExtension Generic%20Event%20Extension
1 Generic%20Event%20Extension::QueryVersion 01000000
1 AllocColor 0000 0000 0000
1 AllocColor ffff ffff ffff
1 XKEYBOARD::GetMap 00010700 00000000 00000000 00000000 00000000 00000000
1 GetKeyboardMapping 40010000
1 GetKeyboardMapping 6c010000
1 GetKeyboardMapping 4d010000
1 GetKeyboardMapping cb010000
1 GetKeyboardMapping 42010000
1 GetModifierMapping
1 XKEYBOARD::GetMap 00014700 00000000 00000000 00000000 00000000 00000000
1 XKEYBOARD::PerClientFlags 00010000 01000000 01000000 00000000 00000000 00000000
1 OpenFont cursor
1 RENDER::QueryVersion 00000000 0b000000
1 RENDER::QueryPictFormats
1 QueryExtension XFIXES
1 XFIXES::QueryVersion 06000000 00000000
1 InternAtom WM_STATE
1 InternAtom _KDE_NET_WM_FRAME_STRUT
1 InternAtom _E_FRAME_SIZE
1 InternAtom KWM_WIN_ICONIFIED
1 InternAtom KWM_WIN_MAXIMIZED
1 InternAtom _OL_DECOR_DEL
1 InternAtom _OL_DECOR_HEADER
1 InternAtom _OL_DECOR_RESIZE
1 InternAtom _OL_DECOR_PIN
1 InternAtom _OL_DECOR_CLOSE
1 InternAtom _MOTIF_WM_HINTS
1 InternAtom _NET_FRAME_EXTENTS
1 InternAtom _NET_REQUEST_FRAME_EXTENTS
1 InternAtom WM_S0
1 InternAtom UTF8_STRING
1 QueryExtension DOUBLE-BUFFER
1 QueryExtension XInputExtension
1 XInputExtension::GetExtensionVersion 0f000000 58496e70 75744578 74656e73 696f6e00
1 XInputExtension::GetExtensionVersion 0f000000 58496e70 75744578 74656e73 696f6e00
1 InternAtom _XSETTINGS_SETTINGS
1 InternAtom MANAGER
1 InternAtom _XSETTINGS_S0
1 InternAtom WM_PROTOCOLS
1 InternAtom WM_DELETE_WINDOW
1 InternAtom WM_TAKE_FOCUS
1 InternAtom _NET_WM_STATE
1 InternAtom _NET_WM_NAME
1 InternAtom _NET_WM_ICON_NAME
1 InternAtom WM_CLIENT_LEADER
1 InternAtom WM_CLIENT_MACHINE
1 InternAtom _NET_WM_PID
1 GetProperty 38 38 0 60
1 InternAtom XdndActionCopy
1 InternAtom XdndActionMove
1 InternAtom XdndActionLink
1 InternAtom XdndActionList
1 InternAtom XdndTypeList
1 InternAtom XdndAware
1 InternAtom XdndProxy
1 InternAtom XdndSelection
1 InternAtom XdndEnter
1 InternAtom XdndPosition
1 InternAtom XdndLeave
1 InternAtom XdndDrop
1 InternAtom XdndStatus
1 InternAtom XdndFinished
1 InternAtom XAWT_SELECTION
1 InternAtom _MOTIF_ATOM_0
1 InternAtom _MOTIF_DRAG_WINDOW
1 InternAtom _MOTIF_DRAG_TARGETS
1 InternAtom _MOTIF_DRAG_INITIATOR_INFO
1 InternAtom _MOTIF_DRAG_RECEIVER_INFO
1 InternAtom _MOTIF_DRAG_AND_DROP_MESSAGE
1 InternAtom XmTRANSFER_SUCCESS
1 InternAtom XmTRANSFER_FAILURE
1 InternAtom _NET_SYSTEM_TRAY_S0
1 InternAtom _XEMBED_INFO
1 InternAtom _NET_SYSTEM_TRAY_OPCODE
1 InternAtom _NET_WM_ICON
end
