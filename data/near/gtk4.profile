xqos near questions 2
programs gtk4-demo gtk4-widget-factory
2 QueryExtension BIG-REQUESTS
2 BIG-REQUESTS::Enable
2 GetProperty 23 31 0 100000000
2 QueryExtension XKEYBOARD
2 XKEYBOARD::UseExtension 01000000
2 InternAtom UTF8_STRING
2 InternAtom WM_CLIENT_LEADER
2 InternAtom WM_DELETE_WINDOW
2 InternAtom WM_ICON_NAME
2 InternAtom WM_LOCALE_NAME
2 InternAtom WM_NAME
2 InternAtom WM_PROTOCOLS
2 InternAtom WM_TAKE_FOCUS
2 InternAtom WM_WINDOW_ROLE
2 InternAtom WM_STATE
2 InternAtom _NET_ACTIVE_WINDOW
2 InternAtom _NET_CURRENT_DESKTOP
2 InternAtom _NET_FRAME_EXTENTS
2 InternAtom _NET_STARTUP_ID
2 InternAtom _NET_WM_CM_S0
2 InternAtom _NET_WM_DESKTOP
2 InternAtom _NET_WM_ICON
2 InternAtom _NET_WM_ICON_NAME
2 InternAtom _NET_WM_NAME
2 InternAtom _NET_WM_PID
2 InternAtom _NET_WM_PING
2 InternAtom _NET_WM_STATE
2 InternAtom _NET_WM_STATE_ABOVE
2 InternAtom _NET_WM_STATE_BELOW
2 InternAtom _NET_WM_STATE_FULLSCREEN
2 InternAtom _NET_WM_STATE_HIDDEN
2 InternAtom _NET_WM_STATE_MODAL
2 InternAtom _NET_WM_STATE_MAXIMIZED_VERT
2 InternAtom _NET_WM_STATE_MAXIMIZED_HORZ
2 InternAtom _NET_WM_STATE_SKIP_TASKBAR
2 InternAtom _NET_WM_STATE_SKIP_PAGER
2 InternAtom _NET_WM_STATE_STICKY
2 InternAtom _NET_WM_SYNC_REQUEST
2 InternAtom _NET_WM_SYNC_REQUEST_COUNTER
2 InternAtom _NET_WM_WINDOW_TYPE
2 InternAtom _NET_WM_WINDOW_TYPE_COMBO
2 InternAtom _NET_WM_WINDOW_TYPE_DIALOG
2 InternAtom _NET_WM_WINDOW_TYPE_DND
2 InternAtom _NET_WM_WINDOW_TYPE_DROPDOWN_MENU
2 InternAtom _NET_WM_WINDOW_TYPE_MENU
2 InternAtom _NET_WM_WINDOW_TYPE_NORMAL
2 InternAtom _NET_WM_WINDOW_TYPE_POPUP_MENU
2 InternAtom _NET_WM_WINDOW_TYPE_TOOLTIP
2 InternAtom _NET_WM_WINDOW_TYPE_UTILITY
2 InternAtom _NET_WM_USER_TIME
2 InternAtom _NET_WM_USER_TIME_WINDOW
2 InternAtom _NET_VIRTUAL_ROOTS
2 InternAtom GDK_SELECTION
2 InternAtom _NET_WM_STATE_FOCUSED
2 InternAtom GDK_VISUALS
2 InternAtom XdndAware
2 InternAtom XdndProxy
2 InternAtom XdndActionAsk
2 InternAtom XdndActionCopy
2 InternAtom XdndActionLink
2 InternAtom XdndActionList
2 InternAtom XdndActionMove
2 InternAtom XdndActionPrivate
2 InternAtom XdndDrop
2 InternAtom XdndEnter
2 InternAtom XdndFinished
2 InternAtom XdndLeave
2 InternAtom XdndPosition
2 InternAtom XdndSelection
2 InternAtom XdndStatus
2 InternAtom XdndTypeList
2 QueryExtension RANDR
2 QueryExtension Generic%20Event%20Extension
2 Generic%20Event%20Extension::QueryVersion 01000000
2 RANDR::QueryVersion 01000000 06000000
2 RANDR::GetScreenResourcesCurrent root
2 RANDR::GetMonitors root 01000000
2 InternAtom EDID
2 QueryExtension Present
2 QueryExtension XFIXES
2 QueryExtension GLX
2 GLX::QueryServerString 00000000 03000000
2 GLX::QueryServerString 00000000 f6200000
2 GLX::QueryVersion 01000000 04000000
2 GLX::GetVisualConfigs 00000000
2 GLX::QueryServerString 00000000 03000000
2 GLX::GetFBConfigs 00000000
2 GLX::QueryServerString 00000000 02000000
2 InternAtom _XSETTINGS_S0
2 QueryExtension XInputExtension
2 XInputExtension::GetExtensionVersion 0f000000 58496e70 75744578 74656e73 696f6e00
2 XInputExtension::GetExtensionVersion 0f000000 58496e70 75744578 74656e73 696f6e00
2 XInputExtension::XIQueryVersion 02000400
2 XInputExtension::XIQueryDevice 00000000
2 InternAtom libinput%20Tapping%20Enabled
2 InternAtom Synaptics%20Off
2 InternAtom Raw%20Touch%20Passthrough
2 InternAtom Abs%20X
2 InternAtom Abs%20Y
2 InternAtom Abs%20Pressure
2 InternAtom Abs%20Tilt%20X
2 InternAtom Abs%20Tilt%20Y
2 InternAtom Abs%20Wheel
2 InternAtom/1 Device%20Product%20ID
2 XFIXES::QueryVersion 06000000 00000000
2 QueryExtension SHAPE
2 SHAPE::QueryVersion
2 XKEYBOARD::PerClientFlags 00010000 01000000 01000000 00000000 00000000 00000000
2 QueryExtension SYNC
2 SYNC::Initialize 03010000
2 QueryExtension DAMAGE
2 DAMAGE::QueryVersion 01000000 01000000
2 InternAtom CLIPBOARD
2 InternAtom TARGETS
1 InternAtom GDK_SELECTION_0x559a8f2220b0
1 InternAtom GDK_SELECTION_0x558e717688b0
2 InternAtom PRIMARY
1 InternAtom GDK_SELECTION_0x559a8f222160
1 InternAtom GDK_SELECTION_0x558e71768960
2 InternAtom AT_SPI_BUS
2 GetProperty AT_SPI_BUS 31 0 8192
2 XKEYBOARD::GetMap 00014700 00000000 00000000 00000000 00000000 00000000
2 XKEYBOARD::GetNames 03000000 00180000
2 InternAtom Meta
2 InternAtom Super
2 InternAtom Hyper
2 XKEYBOARD::GetMap 00010700 00000000 00000000 00000000 00000000 00000000
2 InternAtom _MOTIF_WM_HINTS
2 InternAtom _NET_WM_OPAQUE_REGION
2 InternAtom _GTK_APPLICATION_ID
2 InternAtom _GTK_UNIQUE_BUS_NAME
2 InternAtom _GTK_APPLICATION_OBJECT_PATH
2 InternAtom _GTK_WINDOW_OBJECT_PATH
2 InternAtom _GTK_APP_MENU_OBJECT_PATH
2 InternAtom _GTK_MENUBAR_OBJECT_PATH
2 InternAtom _NET_SUPPORTING_WM_CHECK
2 GetProperty _NET_SUPPORTING_WM_CHECK 33 0 4294967295
2 InternAtom/1 _NET_WORKAREA
2 InternAtom _GTK_THEME_VARIANT
1 InternAtom GDK_TIMESTAMP_PROP
2 InternAtom _GTK_EDGE_CONSTRAINTS
2 InternAtom CLIPBOARD_MANAGER
end
