xqos near questions 2
programs chromium
1 QueryExtension BIG-REQUESTS
1 QueryExtension GLX
1 QueryExtension RANDR
1 QueryExtension Generic%20Event%20Extension
1 Generic%20Event%20Extension::QueryVersion 01000000
1 QueryExtension RENDER
1 QueryExtension MIT-SCREEN-SAVER
1 QueryExtension SHAPE
1 QueryExtension SYNC
1 QueryExtension XFIXES
1 QueryExtension XInputExtension
1 XInputExtension::GetExtensionVersion 0f000000 58496e70 75744578 74656e73 696f6e00
1 XInputExtension::GetExtensionVersion 0f000000 58496e70 75744578 74656e73 696f6e00
1 QueryExtension XKEYBOARD
1 QueryExtension XTEST
1 BIG-REQUESTS::Enable
1 GetProperty 23 31 0 100000000
1 GLX::QueryVersion 01000000 04000000
1 RANDR::QueryVersion 01000000 06000000
1 RENDER::QueryVersion 00000000 0b000000
1 MIT-SCREEN-SAVER::QueryVersion 01010000
1 SHAPE::QueryVersion
1 SYNC::Initialize 03010000
1 InternAtom _GTK_EDGE_CONSTRAINTS
1 XFIXES::QueryVersion 06000000 00000000
1 QueryExtension Composite
1 Composite::QueryVersion 00000000 04000000
1 QueryExtension DAMAGE
1 DAMAGE::QueryVersion 01000000 01000000
1 XInputExtension::XIQueryVersion 02000400
1 XKEYBOARD::UseExtension 01000000
1 XTEST::GetVersion 02000200
1 XKEYBOARD::GetMap 00010300 00000000 00000000 00000000 00000000 00000000
1 InternAtom ATOM_PAIR
1 InternAtom Abs%20Dbl%20End%20Timestamp
1 InternAtom Abs%20Dbl%20Fling%20X%20Velocity
1 InternAtom Abs%20Dbl%20Fling%20Y%20Velocity
1 InternAtom Abs%20Dbl%20Metrics%20Data%201
1 InternAtom Abs%20Dbl%20Metrics%20Data%202
1 InternAtom Abs%20Dbl%20Ordinal%20X
1 InternAtom Abs%20Dbl%20Ordinal%20Y
1 InternAtom Abs%20Dbl%20Start%20Timestamp
1 InternAtom Abs%20Finger%20Count
1 InternAtom Abs%20Fling%20State
1 InternAtom Abs%20MT%20Orientation
1 InternAtom Abs%20MT%20Position%20X
1 InternAtom Abs%20MT%20Position%20Y
1 InternAtom Abs%20MT%20Pressure
1 InternAtom Abs%20MT%20Touch%20Major
1 InternAtom Abs%20MT%20Touch%20Minor
1 InternAtom Abs%20MT%20Tracking%20ID
1 InternAtom Abs%20Metrics%20Type
1 InternAtom Abs%20Pressure
1 InternAtom Abs%20Tilt%20X
1 InternAtom Abs%20Tilt%20Y
1 InternAtom Abs%20Wheel
1 InternAtom/1 Rel%20X
1 InternAtom/1 Rel%20Y
1 InternAtom/1 Device%20Product%20ID
1 InternAtom Abs%20X
1 InternAtom Abs%20Y
1 InternAtom CHECK
1 InternAtom CHROME_SELECTION
1 InternAtom CHROMIUM_COMPOSITE_WINDOW
1 InternAtom CHROMIUM_TIMESTAMP
1 InternAtom CLIPBOARD
1 InternAtom CLIPBOARD_MANAGER
1 InternAtom Content%20Protection
1 InternAtom Desired
1 InternAtom Device%20Node
1 InternAtom Device%20Product%20ID
1 InternAtom EDID
1 InternAtom Enabled
1 InternAtom FAKE_SELECTION
1 InternAtom Full%20aspect
1 InternAtom INCR
1 InternAtom KEYBOARD
1 InternAtom LOCK
1 InternAtom MOUSE
1 InternAtom MULTIPLE
1 InternAtom Rel%20Horiz%20Wheel
1 InternAtom Rel%20Vert%20Wheel
1 InternAtom SAVE_TARGETS
1 InternAtom SELECTION_STRING
1 InternAtom STRING
1 InternAtom TARGET1
1 InternAtom TARGET2
1 InternAtom TARGETS
1 InternAtom TEXT
1 InternAtom TIMESTAMP
1 InternAtom TOUCHPAD
1 InternAtom TOUCHSCREEN
1 InternAtom Tap%20Paused
1 InternAtom Touch%20Timestamp
1 InternAtom UTF8_STRING
1 InternAtom WM_CLIENT_LEADER
1 InternAtom Undesired
1 InternAtom WM_CHANGE_STATE
1 InternAtom WM_DELETE_WINDOW
1 InternAtom WM_LOCALE_NAME
1 InternAtom WM_PROTOCOLS
1 InternAtom WM_TAKE_FOCUS
1 InternAtom WM_WINDOW_ROLE
1 InternAtom XdndActionAsk
1 InternAtom XdndActionCopy
1 InternAtom XdndActionDirectSave
1 InternAtom XdndActionLink
1 InternAtom XdndActionList
1 InternAtom XdndActionMove
1 InternAtom XdndActionPrivate
1 InternAtom XdndAware
1 InternAtom XdndDirectSave0
1 InternAtom XdndDrop
1 InternAtom XdndEnter
1 InternAtom XdndFinished
1 InternAtom XdndLeave
1 InternAtom XdndPosition
1 InternAtom XdndProxy
1 InternAtom XdndSelection
1 InternAtom XdndStatus
1 InternAtom XdndTypeList
1 InternAtom _CHROME_DISPLAY_INTERNAL
1 InternAtom _CHROME_DISPLAY_ROTATION
1 InternAtom _CHROME_DISPLAY_SCALE_FACTOR
1 InternAtom _CHROMIUM_DRAG_RECEIVER
1 InternAtom _GTK_FRAME_EXTENTS
1 InternAtom _GTK_HIDE_TITLEBAR_WHEN_MAXIMIZED
1 InternAtom _GTK_SHOW_WINDOW_MENU
1 InternAtom _GTK_THEME_VARIANT
1 InternAtom _ICC_PROFILE
1 InternAtom _MOTIF_WM_HINTS
1 InternAtom _NETSCAPE_URL
1 InternAtom _NET_ACTIVE_WINDOW
1 InternAtom _NET_CURRENT_DESKTOP
1 InternAtom _NET_FRAME_EXTENTS
1 InternAtom _NET_STARTUP_ID
1 InternAtom _NET_STARTUP_INFO
1 InternAtom _NET_STARTUP_INFO_BEGIN
1 InternAtom _NET_SUPPORTED
1 InternAtom _NET_SUPPORTING_WM_CHECK
1 InternAtom _NET_SYSTEM_TRAY_OPCODE
1 InternAtom _NET_SYSTEM_TRAY_S0
1 InternAtom _NET_SYSTEM_TRAY_VISUAL
1 InternAtom _NET_WM_BYPASS_COMPOSITOR
1 InternAtom _NET_WM_CM_S0
1 InternAtom _NET_WM_DESKTOP
1 InternAtom _NET_WM_ICON
1 InternAtom _NET_WM_ICON_NAME
1 InternAtom _NET_WM_MOVERESIZE
1 InternAtom _NET_WM_NAME
1 InternAtom _NET_WM_OPAQUE_REGION
1 InternAtom _NET_WM_PID
1 InternAtom _NET_WM_PING
1 InternAtom _NET_WM_STATE
1 InternAtom _NET_WM_STATE_ABOVE
1 InternAtom _NET_WM_STATE_BELOW
1 InternAtom _NET_WM_STATE_FOCUSED
1 InternAtom GDK_VISUALS
1 InternAtom _NET_WM_STATE_FULLSCREEN
1 InternAtom _NET_WM_STATE_HIDDEN
1 InternAtom _NET_WM_STATE_MODAL
1 InternAtom _NET_WM_STATE_MAXIMIZED_HORZ
1 InternAtom _NET_WM_STATE_MAXIMIZED_VERT
1 InternAtom _NET_WM_STATE_SKIP_TASKBAR
1 InternAtom _NET_WM_STATE_SKIP_PAGER
1 InternAtom _NET_WM_STATE_STICKY
1 InternAtom _NET_WM_SYNC_REQUEST
1 InternAtom _NET_WM_SYNC_REQUEST_COUNTER
1 InternAtom _NET_WM_USER_TIME
1 InternAtom _NET_WM_USER_TIME_WINDOW
1 InternAtom _NET_VIRTUAL_ROOTS
1 InternAtom GDK_SELECTION
1 InternAtom _NET_WM_WINDOW_OPACITY
1 InternAtom _NET_WM_WINDOW_TYPE
1 InternAtom _NET_WM_WINDOW_TYPE_COMBO
1 InternAtom _NET_WM_WINDOW_TYPE_DIALOG
1 InternAtom _NET_WM_WINDOW_TYPE_DND
1 InternAtom _NET_WM_WINDOW_TYPE_DROPDOWN_MENU
1 InternAtom _NET_WM_WINDOW_TYPE_MENU
1 InternAtom _NET_WM_WINDOW_TYPE_NORMAL
1 InternAtom _NET_WM_WINDOW_TYPE_POPUP_MENU
1 InternAtom _NET_WM_WINDOW_TYPE_NOTIFICATION
1 InternAtom _NET_WM_WINDOW_TYPE_TOOLTIP
1 InternAtom _NET_WM_WINDOW_TYPE_UTILITY
1 InternAtom _NET_WORKAREA
1 InternAtom _SCREENSAVER_STATUS
1 InternAtom _SCREENSAVER_VERSION
1 InternAtom _XEMBED_INFO
1 InternAtom application/octet-stream
1 InternAtom application/vnd.chromium.test
1 InternAtom chromium/filename
1 InternAtom chromium/from-privileged
1 InternAtom chromium/x-bookmark-entries
1 InternAtom chromium/x-browser-actions
1 InternAtom chromium/x-file-system-files
1 InternAtom chromium/x-internal-source-rfh-token
1 InternAtom chromium/x-renderer-taint
1 InternAtom chromium/x-source-url
1 InternAtom chromium/x-web-custom-data
1 InternAtom chromium/x-webkit-paste
1 InternAtom chromium/x-window-drag
1 InternAtom image/png
1 InternAtom image/svg+xml
1 InternAtom marker_event
1 InternAtom scaling%20mode
1 InternAtom text/html
1 InternAtom text/plain
1 InternAtom text/plain;charset=utf-8
1 InternAtom text/rtf
1 InternAtom text/uri-list
1 InternAtom text/x-moz-url
1 InternAtom xwayland-keyboard
1 InternAtom xwayland-pointer
1 InternAtom xwayland-touch
1 GetProperty _NET_SUPPORTED 0 0 4294967295
1 GetProperty _NET_SUPPORTING_WM_CHECK 0 0 4294967295
1 XInputExtension::XIQueryDevice 00000000
1 InternAtom libinput%20Tapping%20Enabled
1 GetPointerMapping
1 XKEYBOARD::PerClientFlags 00010000 01000000 01000000 00000000 00000000 00000000
1 GetProperty 23 0 0 4294967295
1 RENDER::QueryPictFormats
1 OpenFont cursor
1 RANDR::GetScreenResourcesCurrent root
1 RANDR::GetMonitors root 01000000
1 RANDR::GetOutputPrimary root
1 RANDR::GetMonitors root 00000000
1 GetProperty _NET_WORKAREA 0 0 4
1 GetProperty _ICC_PROFILE 0 0 1048576
1 GetProperty _SCREENSAVER_STATUS 0 0 4294967295
1 GLX::GetVisualConfigs 00000000
1 GetProperty GDK_VISUALS 19 0 2
1 InternAtom _XSETTINGS_S0
end
