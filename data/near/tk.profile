xqos near questions 2
programs wish gitk
2 QueryExtension BIG-REQUESTS
2 BIG-REQUESTS::Enable
2 GetProperty 23 31 0 100000000
2 QueryExtension XKEYBOARD
2 XKEYBOARD::UseExtension 01000000
2 GetModifierMapping
2 XKEYBOARD::GetMap 00010700 00000000 00000000 00000000 00000000 00000000
2 InternAtom Comm
2 InternAtom InterpRegistry
2 InternAtom TK_APPLICATION
2 GetProperty InterpRegistry 31 0 100000
2 GetProperty 23 31 0 100000
2 AllocColor d9d9 d9d9 d9d9
2 AllocColor 0000 0000 0000
1 InternAtom/1 XDCCC_LINEAR_RGB_CORRECTION
1 InternAtom/1 XDCCC_LINEAR_RGB_MATRICES
1 AllocNamedColor grey85
1 AllocNamedColor black
1 AllocColor ecec ecec ecec
1 AllocColor a3a3 a3a3 a3a3
1 QueryExtension RENDER
1 RENDER::QueryVersion 00000000 0b000000
1 RENDER::QueryPictFormats
1 OpenFont fixed
1 InternAtom MULTIPLE
1 InternAtom INCR
1 InternAtom TARGETS
1 InternAtom TIMESTAMP
1 InternAtom TEXT
1 InternAtom COMPOUND_TEXT
1 InternAtom TK_WINDOW
1 InternAtom CLIPBOARD
1 InternAtom ATOM_PAIR
2 InternAtom UTF8_STRING
1 AllocColor c3c3 c3c3 c3c3
1 AllocColor ffff ffff ffff
1 OpenFont cursor
1 QueryExtension XFree86-Bigfont
1 InternAtom cursor
1 QueryExtension XFIXES
1 XFIXES::QueryVersion 06000000 00000000
1 InternAtom _NET_WM_WINDOW_TYPE_POPUP_MENU
1 InternAtom _NET_WM_WINDOW_TYPE
1 AllocColor b3b3 b3b3 b3b3
1 AllocColor f9f9 f9f9 f9f9
1 AllocColor c4c4 c4c4 c4c4
1 AllocNamedColor white
2 InternAtom _NET_WM_NAME
2 InternAtom WM_DELETE_WINDOW
2 InternAtom _NET_WM_PING
2 InternAtom WM_PROTOCOLS
2 InternAtom _NET_WM_STATE
2 InternAtom _NET_WM_STATE_ABOVE
2 InternAtom _NET_WM_STATE_MAXIMIZED_VERT
2 InternAtom _NET_WM_STATE_MAXIMIZED_HORZ
2 InternAtom _NET_WM_STATE_FULLSCREEN
1 QueryColors colormap 00000000
1 AllocColor 82b5 82b5 82b5
end
