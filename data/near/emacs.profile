xqos near questions 2
programs emacs
1 QueryExtension BIG-REQUESTS
1 BIG-REQUESTS::Enable
1 GetProperty 23 31 0 100000000
1 QueryExtension XKEYBOARD
1 XKEYBOARD::UseExtension 01000000
1 InternAtom Custom%20Init
1 InternAtom Custom%20Data
1 InternAtom/1 SCREEN_RESOURCES
1 GetKeyboardMapping 08f80000
1 GetModifierMapping
1 OpenFont cursor
1 QueryExtension RENDER
1 RENDER::QueryVersion 00000000 0b000000
1 RENDER::QueryPictFormats
1 QueryExtension XFIXES
1 XFIXES::QueryVersion 06000000 00000000
1 QueryExtension DOUBLE-BUFFER
1 QueryExtension Generic%20Event%20Extension
1 Generic%20Event%20Extension::QueryVersion 01000000
1 DOUBLE-BUFFER::QueryVersion 01000000
1 InternAtom WM_PROTOCOLS
1 InternAtom WM_TAKE_FOCUS
1 InternAtom WM_SAVE_YOURSELF
1 InternAtom WM_DELETE_WINDOW
1 InternAtom WM_CHANGE_STATE
1 InternAtom WM_CONFIGURE_DENIED
1 InternAtom WM_MOVED
1 InternAtom WM_CLIENT_LEADER
1 InternAtom Editres
1 InternAtom CLIPBOARD
1 InternAtom TIMESTAMP
1 InternAtom TEXT
1 InternAtom COMPOUND_TEXT
1 InternAtom UTF8_STRING
1 InternAtom DELETE
1 InternAtom MULTIPLE
1 InternAtom INCR
1 InternAtom _EMACS_TMP_
1 InternAtom TARGETS
1 InternAtom NULL
1 InternAtom ATOM
1 InternAtom ATOM_PAIR
1 InternAtom CLIPBOARD_MANAGER
1 InternAtom _XEMBED_INFO
1 InternAtom PIXEL_SIZE
1 InternAtom AVERAGE_WIDTH
1 InternAtom _MULE_BASELINE_OFFSET
1 InternAtom _MULE_RELATIVE_COMPOSE
1 InternAtom _MULE_DEFAULT_ASCENT
1 InternAtom DONE
1 InternAtom PAGE
1 InternAtom SCROLLBAR
1 InternAtom HORIZONTAL_SCROLLBAR
1 InternAtom _XEMBED
1 InternAtom _NET_WM_STATE
1 InternAtom _NET_WM_STATE_FULLSCREEN
1 InternAtom _NET_WM_STATE_MAXIMIZED_HORZ
1 InternAtom _NET_WM_STATE_MAXIMIZED_VERT
1 InternAtom _NET_WM_STATE_STICKY
1 InternAtom _NET_WM_STATE_HIDDEN
1 InternAtom _NET_WM_WINDOW_TYPE
1 InternAtom _NET_WM_WINDOW_TYPE_TOOLTIP
1 InternAtom _NET_WM_ICON_NAME
1 InternAtom _NET_WM_NAME
1 InternAtom _NET_SUPPORTED
1 InternAtom _NET_SUPPORTING_WM_CHECK
1 InternAtom _NET_WM_WINDOW_OPACITY
1 InternAtom _NET_ACTIVE_WINDOW
1 InternAtom _NET_FRAME_EXTENTS
1 InternAtom _NET_CURRENT_DESKTOP
1 InternAtom _NET_WORKAREA
1 InternAtom SM_CLIENT_ID
1 InternAtom _XSETTINGS_SETTINGS
1 InternAtom MANAGER
1 InternAtom _NET_WM_STATE_SKIP_TASKBAR
1 InternAtom _NET_WM_STATE_ABOVE
1 InternAtom _NET_WM_STATE_BELOW
1 InternAtom _XSETTINGS_S0
1 OpenFont -*-*-*-R-*-*-*-120-*-*-*-*-ISO8859-*
1 QueryExtension XFree86-Bigfont
1 InternAtom/1 XDCCC_LINEAR_RGB_CORRECTION
1 InternAtom/1 XDCCC_LINEAR_RGB_MATRICES
1 LookupColor black
1 LookupColor white
1 InternAtom WM_LOCALE_NAME
1 AllocColor 3a00 1f00 5400
1 AllocColor 3e00 1f00 5c00
1 AllocColor 4600 2000 6000
1 AllocColor 4100 2200 5f00
1 AllocColor 4300 2100 6500
1 AllocColor 4400 2200 6600
1 AllocColor 4500 2200 6700
1 AllocColor 3f00 2400 6600
1 AllocColor 4600 2300 6800
1 AllocColor 4000 2500 6700
1 AllocColor 4c00 2200 6a00
1 AllocColor 4700 2400 6900
1 AllocColor 4d00 2300 6b00
1 AllocColor 4800 2500 6a00
1 AllocColor 4e00 2400 6c00
1 AllocColor 4900 2600 6b00
1 AllocColor 4c00 2500 7200
1 AllocColor 4f00 2500 6d00
1 AllocColor 4a00 2700 6c00
1 AllocColor 4d00 2600 7300
1 AllocColor 4e00 2700 7400
1 AllocColor 4f00 2800 7500
1 AllocColor 5500 2700 7700
1 AllocColor 5000 2900 7600
1 AllocColor 5100 2a00 7700
1 AllocColor 5700 2900 7900
1 AllocColor 5e00 2700 7b00
1 AllocColor 5200 2b00 7800
1 AllocColor 4f00 2c00 7e00
1 AllocColor 5700 2c00 8100
1 AllocColor 5100 2e00 8000
1 AllocColor 5b00 2c00 7d00
1 AllocColor 5500 2e00 7b00
1 AllocColor 5800 2d00 8200
1 AllocColor 5600 2f00 7c00
1 AllocColor 5900 2e00 8300
1 AllocColor 5300 3000 8200
1 AllocColor 5c00 2d00 8a00
1 AllocColor 5800 3000 7e00
1 AllocColor 5a00 2f00 8400
1 AllocColor 5400 3100 8300
1 AllocColor 6100 2e00 8600
1 AllocColor 5b00 3000 8500
1 AllocColor 6800 2d00 8900
1 AllocColor 5c00 3100 8600
1 AllocColor 5f00 3000 8d00
1 AllocColor 5d00 3200 8700
1 AllocColor 5a00 3300 8d00
1 AllocColor 6700 3000 9000
1 AllocColor 5b00 3400 8e00
1 AllocColor 5f00 3400 8900
1 AllocColor 5c00 3500 8f00
1 AllocColor 5b00 3700 8a00
1 AllocColor 6200 3600 8c00
1 AllocColor 7a00 3100 9a00
1 AllocColor 5f00 3b00 8e00
1 AllocColor 6e00 3600 9800
1 AllocColor 6400 3b00 8a00
1 AllocColor 6500 3c00 8b00
1 AllocColor 6700 3b00 9100
1 AllocColor 6100 3d00 9000
1 AllocColor 5f00 4200 9300
1 AllocColor 6600 4200 9500
1 AllocColor 6200 4500 9600
1 AllocColor 8400 3b00 b100
1 AllocColor 7100 4400 9c00
1 AllocColor 6500 4800 9900
1 AllocColor 6c00 4700 9c00
1 AllocColor 6600 4900 9a00
1 AllocColor 8f00 3c00 b700
1 AllocColor 9200 3b00 be00
1 AllocColor 6900 4c00 9e00
1 AllocColor 8100 4400 af00
1 AllocColor 9400 3d00 c100
1 AllocColor 8b00 4100 b800
1 AllocColor 7b00 4700 ae00
1 AllocColor 9500 3e00 c200
1 AllocColor 8f00 4100 c100
1 AllocColor 6d00 4f00 a200
1 AllocColor 9000 4200 c200
1 AllocColor 8e00 4400 bb00
1 AllocColor 7600 4d00 a900
1 AllocColor 6e00 5000 a300
1 AllocColor 8f00 4500 bc00
1 AllocColor 8900 4800 bb00
1 AllocColor 8a00 4900 bc00
1 AllocColor 8900 4b00 b700
1 AllocColor 8500 4c00 bc00
1 AllocColor 6d00 5600 a700
1 AllocColor 8400 4e00 b600
1 AllocColor 8500 4f00 b800
1 AllocColor 8200 5100 b100
1 AllocColor 6f00 5800 a900
1 AllocColor 8000 5200 b700
1 AllocColor 8300 5200 b200
1 AllocColor 7e00 5400 b200
1 AllocColor 8700 5100 ba00
1 AllocColor 8100 5300 b900
1 AllocColor 8500 5300 b300
1 AllocColor 7f00 5500 b300
1 AllocColor 8000 5600 b400
1 AllocColor 7200 5b00 ac00
1 AllocColor 7b00 5900 b400
1 AllocColor 7500 5b00 b400
1 AllocColor 9000 5200 be00
1 AllocColor 7c00 5a00 b500
1 AllocColor 7d00 5b00 b600
1 AllocColor 6f00 6000 b000
1 AllocColor 7e00 5c00 b700
1 AllocColor 7600 5f00 b100
1 AllocColor 8500 5a00 b800
1 AllocColor 7f00 5d00 b800
1 AllocColor 8000 5e00 b900
1 AllocColor 9600 5700 c400
1 AllocColor 8100 5f00 bb00
1 AllocColor 7c00 6100 bb00
1 AllocColor 7800 6400 ae00
1 AllocColor 7d00 6200 bc00
1 AllocColor 8700 6000 b700
1 AllocColor 8200 6200 b700
1 AllocColor 7e00 6300 bd00
1 AllocColor 8300 6300 b800
1 AllocColor 7d00 6600 b800
1 AllocColor 8400 6400 b900
1 AllocColor 7600 6900 b300
1 AllocColor 8b00 6300 bb00
1 AllocColor 7f00 6800 ba00
1 AllocColor 8600 6600 bc00
1 AllocColor 9b00 6000 c500
1 AllocColor 8100 6900 bb00
1 AllocColor 8000 6b00 b700
1 AllocColor 8200 6a00 bd00
1 AllocColor 8300 6b00 be00
1 AllocColor 7b00 6e00 b800
1 AllocColor 7d00 6d00 be00
1 AllocColor 9600 6600 c100
1 AllocColor 7e00 6e00 bf00
1 AllocColor 8500 6c00 c000
1 AllocColor 7f00 6f00 c000
1 AllocColor 8000 7000 c100
1 AllocColor 8500 7000 bc00
1 AllocColor 7f00 7200 bc00
1 AllocColor a000 6800 c600
1 AllocColor 8600 7100 bd00
1 AllocColor 8000 7300 bd00
1 AllocColor 8700 7200 bf00
1 AllocColor 8200 7400 be00
1 AllocColor 8300 7500 c000
1 AllocColor 9500 7000 c100
1 AllocColor 8400 7600 c100
1 AllocColor 9000 7300 c200
1 AllocColor 8500 7700 c200
1 AllocColor 7f00 7900 c200
1 AllocColor 8600 7800 c300
1 AllocColor 8000 7a00 c300
1 AllocColor 8100 7b00 c400
1 AllocColor 8200 7c00 c500
1 AllocColor 8300 7d00 c600
1 AllocColor 8a00 7c00 c700
1 AllocColor 7d00 8000 c700
1 AllocColor 8400 7e00 c700
1 AllocColor 8e00 7c00 c200
1 AllocColor 7f00 8100 c800
1 AllocColor 9d00 7800 ca00
1 AllocColor 8900 7f00 c300
1 AllocColor 8300 8100 c300
1 AllocColor 9000 7e00 c400
1 AllocColor a400 7a00 c700
1 AllocColor 9e00 7d00 c700
1 AllocColor 8d00 8300 c700
1 AllocColor 9a00 8000 c800
1 AllocColor 9c00 8200 ca00
1 AllocColor a100 8200 c600
1 AllocColor 9900 8a00 c900
1 AllocColor a000 8900 ca00
1 AllocColor 9b00 8c00 cb00
1 AllocColor 9d00 8e00 cd00
1 AllocColor ac00 8d00 d100
1 AllocColor ad00 9100 ce00
1 AllocColor a100 9500 ce00
1 AllocColor a900 9500 d000
1 AllocColor a600 9900 d300
1 AllocColor a700 9b00 d400
1 AllocColor a200 9d00 d500
1 AllocColor a800 9c00 d500
1 AllocColor ae00 9e00 d200
1 AllocColor bd00 9a00 d900
1 AllocColor b100 a000 d500
1 AllocColor ac00 a300 d600
1 AllocColor b300 a300 d700
1 AllocColor b500 a500 d900
1 AllocColor af00 a700 d900
1 AllocColor c100 a500 d700
1 AllocColor b800 ab00 d900
1 AllocColor c700 a700 e000
1 AllocColor bf00 ab00 da00
1 AllocColor cb00 a800 db00
1 AllocColor c500 aa00 db00
1 AllocColor bb00 af00 dc00
1 AllocColor bc00 b000 dd00
1 AllocColor b600 b200 dd00
1 AllocColor bf00 b300 e000
1 AllocColor bd00 b500 da00
1 AllocColor c000 b800 de00
1 AllocColor c300 bb00 e100
1 AllocColor c500 bc00 e200
1 AllocColor cc00 bb00 e300
1 AllocColor c600 c200 e100
1 AllocColor ce00 c200 e300
1 AllocColor d500 c100 e400
1 AllocColor cb00 c600 e500
1 AllocColor cc00 c700 e600
1 AllocColor cd00 c800 e700
1 AllocColor ce00 c900 e800
1 AllocColor d400 c800 e900
1 AllocColor dc00 cd00 e800
1 AllocColor d900 d100 ea00
1 AllocColor d600 d600 ee00
1 AllocColor e300 d700 eb00
1 AllocColor dd00 d900 eb00
1 AllocColor e400 d800 ec00
1 AllocColor e500 d900 ed00
1 AllocColor e600 db00 ef00
1 AllocColor e800 dd00 f100
1 AllocColor e200 df00 f000
1 AllocColor e300 e000 f200
1 AllocColor ea00 df00 f300
1 AllocColor e600 e200 f400
1 AllocColor e700 e300 f500
1 AllocColor eb00 e400 f000
1 AllocColor ee00 e700 f300
1 AllocColor e800 e900 f300
1 AllocColor ef00 e800 f500
1 AllocColor f000 e900 f600
1 AllocColor f200 ea00 f700
1 AllocColor ec00 ec00 f700
1 AllocColor ee00 ef00 f900
1 AllocColor f500 ee00 fa00
1 AllocColor ef00 f000 fa00
1 AllocColor f600 ef00 fb00
1 AllocColor f100 f200 fc00
1 AllocColor f400 f200 f600
1 AllocColor f500 f300 f700
1 AllocColor f600 f400 f800
1 AllocColor f800 f500 fa00
1 AllocColor fa00 f700 fc00
1 AllocColor fb00 f800 fd00
1 AllocColor fd00 fb00 ff00
1 AllocColor fe00 fc00 ff00
1 AllocColor f800 fe00 ff00
1 AllocColor ff00 fd00 ff00
1 AllocColor f900 ff00 ff00
1 AllocColor fc00 ff00 fb00
1 AllocColor fe00 ff00 fc00
1 LookupColor grey75
1 AllocColor bfbf bfbf bfbf
1 InternAtom _NET_WM_WINDOW_TYPE_DROPDOWN_MENU
1 QueryColors colormap 00000000 bfbfbf00 93939300
1 InternAtom _NET_WM_PID
1 GetProperty _NET_SUPPORTING_WM_CHECK 33 0 65536
1 XKEYBOARD::GetMap 0001ff00 00000000 00000000 00000000 00000000 00000000
1 XKEYBOARD::GetNames 03000000 ff3f0000
1 XKEYBOARD::GetMap 00010700 00000000 00000000 00000000 00000000 00000000
1 LookupColor grey90
1 LookupColor grey20
1 LookupColor grey95
1 LookupColor gray60
1 LookupColor gray80
1 LookupColor gray40
1 LookupColor grey85
1 InternAtom DndProtocol
1 InternAtom _MOTIF_DRAG_AND_DROP_MESSAGE
1 InternAtom XdndEnter
1 InternAtom XdndPosition
1 InternAtom XdndLeave
1 InternAtom XdndDrop
1 InternAtom XdndAware
1 InternAtom _MOTIF_DRAG_RECEIVER_INFO
1 LookupColor grey96
1 LookupColor DarkBlue
1 LookupColor grey80
1 LookupColor Firebrick
1 QueryColors colormap bfbfbf00
1 AllocColor e618 e618 e618
1 AllocColor 730c 730c 730c
end
