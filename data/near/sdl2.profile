xqos near questions 2
programs ffplay gnurobbo
2 QueryExtension BIG-REQUESTS
2 BIG-REQUESTS::Enable
2 GetProperty 23 31 0 100000000
2 QueryExtension XKEYBOARD
2 XKEYBOARD::UseExtension 01000000
1 QueryExtension XINERAMA
2 InternAtom WM_PROTOCOLS
2 InternAtom WM_DELETE_WINDOW
1 InternAtom KWM_KEEP_ON_TOP
1 InternAtom WM_TAKE_FOCUS
1 InternAtom WM_NAME
1 InternAtom _NET_WM_STATE
1 InternAtom _NET_WM_STATE_HIDDEN
1 InternAtom _NET_WM_STATE_FOCUSED
1 InternAtom _NET_WM_STATE_MAXIMIZED_VERT
1 InternAtom _NET_WM_STATE_MAXIMIZED_HORZ
1 InternAtom _NET_WM_STATE_FULLSCREEN
1 InternAtom _NET_WM_STATE_ABOVE
1 InternAtom _NET_WM_STATE_SKIP_TASKBAR
1 InternAtom _NET_WM_STATE_SKIP_PAGER
1 InternAtom _NET_WM_ALLOWED_ACTIONS
1 InternAtom _NET_WM_ACTION_FULLSCREEN
2 InternAtom _NET_WM_NAME
2 InternAtom _NET_WM_ICON_NAME
1 InternAtom _NET_WM_ICON
1 InternAtom _NET_WM_PING
1 InternAtom _NET_WM_WINDOW_OPACITY
1 InternAtom _NET_WM_USER_TIME
1 InternAtom _NET_ACTIVE_WINDOW
1 InternAtom _NET_FRAME_EXTENTS
1 InternAtom _SDL_WAKEUP
2 InternAtom UTF8_STRING
1 InternAtom PRIMARY
1 InternAtom XdndEnter
1 InternAtom XdndPosition
1 InternAtom XdndStatus
1 InternAtom XdndTypeList
1 InternAtom XdndActionCopy
1 InternAtom XdndDrop
1 InternAtom XdndFinished
1 InternAtom XdndSelection
1 InternAtom XKLAVIER_STATE
1 InternAtom _NET_SUPPORTING_WM_CHECK
1 GetProperty _NET_SUPPORTING_WM_CHECK 33 0 1
1 QueryExtension RANDR
2 QueryExtension Generic%20Event%20Extension
2 Generic%20Event%20Extension::QueryVersion 01000000
1 QueryExtension XFree86-VidModeExtension
1 QueryExtension XiG-SUNDRY-NONSTANDARD
1 RANDR::QueryVersion 01000000 06000000
1 RANDR::GetOutputPrimary root
1 RANDR::GetScreenResourcesCurrent root
1 InternAtom EDID
1 QueryExtension XInputExtension
1 XInputExtension::GetExtensionVersion 0f000000 58496e70 75744578 74656e73 696f6e00
1 XInputExtension::GetExtensionVersion 0f000000 58496e70 75744578 74656e73 696f6e00
1 XInputExtension::XIQueryVersion 02000200
1 QueryExtension XFIXES
1 XFIXES::QueryVersion 06000000 00000000
2 XKEYBOARD::GetMap 00010700 00000000 00000000 00000000 00000000 00000000
1 XKEYBOARD::PerClientFlags 00010000 01000000 01000000 00000000 00000000 00000000
1 XKEYBOARD::GetMap 00010700 00000000 00000000 00000000 00000000 00000000
1 XKEYBOARD::GetMap 03000700 00000000 00000000 00000000 00000000 00000000
2 GetModifierMapping
1 XInputExtension::XIQueryDevice 00000000
1 QueryExtension MIT-SCREEN-SAVER
1 MIT-SCREEN-SAVER::QueryVersion 01010000
2 InternAtom/1 _MOTIF_WM_HINTS
1 InternAtom/1 KWM_WIN_DECORATION
1 InternAtom/1 _WIN_HINTS
1 InternAtom WM_LOCALE_NAME
2 InternAtom _NET_WM_PID
1 InternAtom WM_CLIENT_MACHINE
1 InternAtom _NET_WM_WINDOW_TYPE
1 InternAtom _NET_WM_WINDOW_TYPE_NORMAL
1 InternAtom STRING
1 InternAtom XdndAware
1 QueryExtension GLX
1 GLX::QueryServerString 00000000 03000000
1 GLX::QueryServerString 00000000 f6200000
1 GLX::QueryVersion 01000000 04000000
1 QueryExtension Present
1 GLX::GetVisualConfigs 00000000
1 GLX::QueryServerString 00000000 03000000
1 GLX::GetFBConfigs 00000000
1 InternAtom/1 WM_CLASS
1 InternAtom/1 WM_HINTS
1 InternAtom/1 WM_NORMAL_HINTS
1 InternAtom/1 WM_CLIENT_MACHINE
1 InternAtom/1 WM_TRANSIENT_FOR
2 QueryExtension RENDER
2 RENDER::QueryVersion 00000000 0b000000
2 RENDER::QueryPictFormats
end
