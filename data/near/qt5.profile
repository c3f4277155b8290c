xqos near questions 2
programs speedcrunch featherpad
2 QueryExtension BIG-REQUESTS
2 BIG-REQUESTS::Enable
2 GetProperty 23 31 0 100000000
2 QueryExtension XKEYBOARD
2 XKEYBOARD::UseExtension 01000000
2 InternAtom WM_PROTOCOLS
2 InternAtom WM_DELETE_WINDOW
2 InternAtom WM_TAKE_FOCUS
2 InternAtom _NET_WM_PING
2 InternAtom _NET_WM_CONTEXT_HELP
2 InternAtom _NET_WM_SYNC_REQUEST
2 InternAtom _NET_WM_SYNC_REQUEST_COUNTER
2 InternAtom MANAGER
2 InternAtom _NET_SYSTEM_TRAY_OPCODE
2 InternAtom WM_STATE
2 InternAtom WM_CHANGE_STATE
2 InternAtom WM_CLASS
2 InternAtom WM_NAME
2 InternAtom WM_CLIENT_LEADER
2 InternAtom WM_WINDOW_ROLE
2 InternAtom SM_CLIENT_ID
2 InternAtom WM_CLIENT_MACHINE
2 InternAtom CLIPBOARD
2 InternAtom INCR
2 InternAtom TARGETS
2 InternAtom MULTIPLE
2 InternAtom TIMESTAMP
2 InternAtom SAVE_TARGETS
2 InternAtom CLIP_TEMPORARY
2 InternAtom _QT_SELECTION
2 InternAtom _QT_CLIPBOARD_SENTINEL
2 InternAtom _QT_SELECTION_SENTINEL
2 InternAtom CLIPBOARD_MANAGER
2 InternAtom RESOURCE_MANAGER
2 InternAtom _XSETROOT_ID
2 InternAtom _QT_SCROLL_DONE
2 InternAtom _QT_INPUT_ENCODING
2 InternAtom _QT_CLOSE_CONNECTION
2 InternAtom _MOTIF_WM_HINTS
2 InternAtom DTWM_IS_RUNNING
2 InternAtom ENLIGHTENMENT_DESKTOP
2 InternAtom _DT_SAVE_MODE
2 InternAtom _SGI_DESKS_MANAGER
2 InternAtom _NET_SUPPORTED
2 InternAtom _NET_VIRTUAL_ROOTS
2 InternAtom _NET_WORKAREA
2 InternAtom _NET_MOVERESIZE_WINDOW
2 InternAtom _NET_WM_MOVERESIZE
2 InternAtom _NET_WM_NAME
2 InternAtom _NET_WM_ICON_NAME
2 InternAtom _NET_WM_ICON
2 InternAtom _NET_WM_PID
2 InternAtom _NET_WM_WINDOW_OPACITY
2 InternAtom _NET_WM_STATE
2 InternAtom _NET_WM_STATE_ABOVE
2 InternAtom _NET_WM_STATE_BELOW
2 InternAtom _NET_WM_STATE_FULLSCREEN
2 InternAtom _NET_WM_STATE_MAXIMIZED_HORZ
2 InternAtom _NET_WM_STATE_MAXIMIZED_VERT
2 InternAtom _NET_WM_STATE_MODAL
2 InternAtom _NET_WM_STATE_STAYS_ON_TOP
2 InternAtom _NET_WM_STATE_DEMANDS_ATTENTION
2 InternAtom _NET_WM_STATE_HIDDEN
2 InternAtom _NET_WM_USER_TIME
2 InternAtom _NET_WM_USER_TIME_WINDOW
2 InternAtom _NET_WM_FULL_PLACEMENT
2 InternAtom _NET_WM_WINDOW_TYPE
2 InternAtom _NET_WM_WINDOW_TYPE_DESKTOP
2 InternAtom _NET_WM_WINDOW_TYPE_DOCK
2 InternAtom _NET_WM_WINDOW_TYPE_TOOLBAR
2 InternAtom _NET_WM_WINDOW_TYPE_MENU
2 InternAtom _NET_WM_WINDOW_TYPE_UTILITY
2 InternAtom _NET_WM_WINDOW_TYPE_SPLASH
2 InternAtom _NET_WM_WINDOW_TYPE_DIALOG
2 InternAtom _NET_WM_WINDOW_TYPE_DROPDOWN_MENU
2 InternAtom _NET_WM_WINDOW_TYPE_POPUP_MENU
2 InternAtom _NET_WM_WINDOW_TYPE_TOOLTIP
2 InternAtom _NET_WM_WINDOW_TYPE_NOTIFICATION
2 InternAtom _NET_WM_WINDOW_TYPE_COMBO
2 InternAtom _NET_WM_WINDOW_TYPE_DND
2 InternAtom _NET_WM_WINDOW_TYPE_NORMAL
2 InternAtom _KDE_NET_WM_WINDOW_TYPE_OVERRIDE
2 InternAtom _KDE_NET_WM_FRAME_STRUT
2 InternAtom _NET_FRAME_EXTENTS
2 InternAtom _NET_STARTUP_INFO
2 InternAtom _NET_STARTUP_INFO_BEGIN
2 InternAtom _NET_SUPPORTING_WM_CHECK
2 InternAtom _NET_WM_CM_S0
2 InternAtom _NET_SYSTEM_TRAY_VISUAL
2 InternAtom _NET_ACTIVE_WINDOW
2 InternAtom TEXT
2 InternAtom UTF8_STRING
2 InternAtom CARDINAL
2 InternAtom XdndEnter
2 InternAtom XdndPosition
2 InternAtom XdndStatus
2 InternAtom XdndLeave
2 InternAtom XdndDrop
2 InternAtom XdndFinished
2 InternAtom XdndTypeList
2 InternAtom XdndActionList
2 InternAtom XdndSelection
2 InternAtom XdndAware
2 InternAtom XdndProxy
2 InternAtom XdndActionCopy
2 InternAtom XdndActionLink
2 InternAtom XdndActionMove
2 InternAtom XdndActionAsk
2 InternAtom XdndActionPrivate
2 InternAtom _XKB_RULES_NAMES
2 InternAtom _XEMBED
2 InternAtom _XEMBED_INFO
2 InternAtom Button%20Left
2 InternAtom Button%20Middle
2 InternAtom Button%20Right
2 InternAtom Button%20Wheel%20Up
2 InternAtom Button%20Wheel%20Down
2 InternAtom Button%20Horiz%20Wheel%20Left
2 InternAtom Button%20Horiz%20Wheel%20Right
2 InternAtom Abs%20MT%20Position%20X
2 InternAtom Abs%20MT%20Position%20Y
2 InternAtom Abs%20MT%20Touch%20Major
2 InternAtom Abs%20MT%20Touch%20Minor
2 InternAtom Abs%20MT%20Orientation
2 InternAtom Abs%20MT%20Pressure
2 InternAtom Abs%20MT%20Tracking%20ID
2 InternAtom Max%20Contacts
2 InternAtom Rel%20X
2 InternAtom Rel%20Y
2 InternAtom Abs%20X
2 InternAtom Abs%20Y
2 InternAtom Abs%20Pressure
2 InternAtom Abs%20Tilt%20X
2 InternAtom Abs%20Tilt%20Y
2 InternAtom Abs%20Wheel
2 InternAtom Abs%20Distance
2 InternAtom Wacom%20Serial%20IDs
2 InternAtom INTEGER
2 InternAtom Rel%20Horiz%20Wheel
2 InternAtom Rel%20Vert%20Wheel
2 InternAtom Rel%20Horiz%20Scroll
2 InternAtom Rel%20Vert%20Scroll
2 InternAtom _XSETTINGS_SETTINGS
2 InternAtom _COMPIZ_DECOR_PENDING
2 InternAtom _COMPIZ_DECOR_REQUEST
2 InternAtom _COMPIZ_DECOR_DELETE_PIXMAP
2 InternAtom _COMPIZ_TOOLKIT_ACTION
2 InternAtom _GTK_LOAD_ICONTHEMES
2 InternAtom AT_SPI_BUS
2 InternAtom EDID
2 InternAtom EDID_DATA
2 InternAtom XFree86_DDC_EDID1_RAWDATA
2 QueryExtension XFIXES
2 QueryExtension RANDR
2 QueryExtension SHAPE
2 QueryExtension SYNC
2 QueryExtension RENDER
2 QueryExtension XInputExtension
2 RANDR::QueryVersion 01000000 06000000
2 XFIXES::QueryVersion 06000000 00000000
2 RENDER::QueryVersion 00000000 0b000000
2 XInputExtension::XIQueryVersion 02000200
2 SHAPE::QueryVersion
2 XKEYBOARD::UseExtension 01000000
2 GetProperty _NET_WORKAREA 6 0 1024
2 GetProperty 23 31 0 8192
2 GetProperty _NET_SUPPORTING_WM_CHECK 33 0 1024
2 InternAtom/1 _XSETTINGS_S0
2 RANDR::GetScreenResourcesCurrent root
2 RANDR::GetOutputPrimary root
2 OpenFont cursor
2 XInputExtension::XIQueryDevice 00000000
2 GetProperty _NET_SUPPORTED 4 0 1024
2 XKEYBOARD::GetDeviceInfo 00010000 00000000 00000000
2 XKEYBOARD::GetNames 00010000 00080000
2 InternAtom/1 NumLock
2 InternAtom/1 Alt
2 InternAtom/1 LevelThree
2 InternAtom/1 LAlt
2 InternAtom/1 RAlt
2 InternAtom/1 RControl
2 InternAtom/1 LControl
2 InternAtom/1 ScrollLock
2 InternAtom/1 LevelFive
2 InternAtom/1 AltGr
2 InternAtom/1 Meta
2 InternAtom/1 Super
2 InternAtom/1 Hyper
2 XKEYBOARD::GetMap 00014000 00000000 00000000 00000000 00000000 00000000
2 XKEYBOARD::GetMap 0300df00 00000000 00000000 00000000 00000000 00000000
2 XKEYBOARD::GetIndicatorMap 03000000 ffffffff
2 XKEYBOARD::GetCompatMap 03000001 00000000
2 XKEYBOARD::GetNames 03000000 f51f0000
2 XKEYBOARD::GetControls 03000000
2 InternAtom/1 evdev+aliases(qwerty)
2 InternAtom/1 pc+us+inet(evdev)
2 InternAtom/1 complete
2 InternAtom/1 ONE_LEVEL
2 InternAtom/1 Any
2 InternAtom/1 TWO_LEVEL
2 InternAtom/1 Base
2 InternAtom/1 Shift
2 InternAtom/1 ALPHABETIC
2 InternAtom/1 Caps
2 InternAtom/1 KEYPAD
2 InternAtom/1 Number
2 InternAtom/1 SHIFT+ALT
2 InternAtom/1 Shift+Alt
2 InternAtom/1 PC_SUPER_LEVEL2
2 InternAtom/1 PC_CONTROL_LEVEL2
2 InternAtom/1 Control
2 InternAtom/1 PC_LCONTROL_LEVEL2
2 InternAtom/1 PC_RCONTROL_LEVEL2
2 InternAtom/1 PC_ALT_LEVEL2
2 InternAtom/1 PC_LALT_LEVEL2
2 InternAtom/1 PC_RALT_LEVEL2
2 InternAtom/1 CTRL+ALT
2 InternAtom/1 Alt%20Base
2 InternAtom/1 Shift%20Alt
2 InternAtom/1 Ctrl+Alt
2 InternAtom/1 LOCAL_EIGHT_LEVEL
2 InternAtom/1 Level3
2 InternAtom/1 Shift%20Level3
2 InternAtom/1 Ctrl
2 InternAtom/1 Shift%20Ctrl
2 InternAtom/1 Level3%20Ctrl
2 InternAtom/1 Shift%20Level3%20Ctrl
2 InternAtom/1 THREE_LEVEL
2 InternAtom/1 EIGHT_LEVEL
2 InternAtom/1 X
2 InternAtom/1 X%20Shift
2 InternAtom/1 X%20Alt%20Base
2 InternAtom/1 X%20Shift%20Alt
2 InternAtom/1 EIGHT_LEVEL_ALPHABETIC
2 InternAtom/1 EIGHT_LEVEL_LEVEL_FIVE_LOCK
2 InternAtom/1 EIGHT_LEVEL_ALPHABETIC_LEVEL_FIVE_LOCK
2 InternAtom/1 EIGHT_LEVEL_SEMIALPHABETIC
2 InternAtom/1 FOUR_LEVEL
2 InternAtom/1 FOUR_LEVEL_ALPHABETIC
2 InternAtom/1 FOUR_LEVEL_SEMIALPHABETIC
2 InternAtom/1 FOUR_LEVEL_MIXED_KEYPAD
2 InternAtom/1 FOUR_LEVEL_X
2 InternAtom/1 SEPARATE_CAPS_AND_SHIFT_ALPHABETIC
2 InternAtom/1 AltGr%20Base
2 InternAtom/1 Shift%20AltGr
2 InternAtom/1 FOUR_LEVEL_PLUS_LOCK
2 InternAtom/1 Lock
2 InternAtom/1 FOUR_LEVEL_KEYPAD
2 InternAtom/1 Alt%20Number
2 InternAtom/1 Caps%20Lock
2 InternAtom/1 Num%20Lock
2 InternAtom/1 Scroll%20Lock
2 InternAtom/1 Compose
2 InternAtom/1 Kana
2 InternAtom/1 Sleep
2 InternAtom/1 Suspend
2 InternAtom/1 Mute
2 InternAtom/1 Misc
2 InternAtom/1 Mail
2 InternAtom/1 Charging
2 InternAtom/1 Shift%20Lock
2 InternAtom/1 Group%202
2 InternAtom/1 Mouse%20Keys
2 InternAtom/1 English%20(US)
1 InternAtom/1 _NET_CURRENT_DESKTOP
1 GetProperty 0 0 0 4294967295
2 QueryExtension GLX
2 GLX::QueryVersion 01000000 04000000
2 GLX::QueryServerString 00000000 03000000
2 GLX::QueryServerString 00000000 f6200000
2 GLX::QueryVersion 01000000 04000000
2 QueryExtension Present
2 GLX::GetVisualConfigs 00000000
2 GLX::QueryServerString 00000000 03000000
2 GLX::GetFBConfigs 00000000
1 InternAtom _NET_WM_STATE_SHADED
2 RENDER::QueryVersion 00000000 0b000000
2 RENDER::QueryPictFormats
2 XFIXES::QueryVersion 06000000 00000000
1 XInputExtension::XIQueryDevice 04000000
end
