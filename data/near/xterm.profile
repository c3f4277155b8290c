xqos near questions 2
programs xterm
1 QueryExtension BIG-REQUESTS
1 BIG-REQUESTS::Enable
1 GetProperty 23 31 0 100000000
1 QueryExtension XKEYBOARD
1 XKEYBOARD::UseExtension 01000000
1 InternAtom Custom%20Init
1 InternAtom Custom%20Data
1 InternAtom/1 SCREEN_RESOURCES
1 QueryExtension XFree86-Bigfont
1 OpenFont nil2
1 OpenFont cursor
1 QueryExtension RENDER
1 RENDER::QueryVersion 00000000 0b000000
1 RENDER::QueryPictFormats
1 InternAtom WM_DELETE_WINDOW
1 InternAtom WM_LOCALE_NAME
1 InternAtom WM_CLIENT_LEADER
1 OpenFont fixed
1 InternAtom FONT
1 InternAtom/1 -Misc-Fixed-Medium-R-SemiCondensed--13-120-75-75-C-60-ISO8859-1
1 OpenFont -Misc-Fixed-bold-R-*-*-13-120-75-75-C-60-ISO8859-1
1 InternAtom/1 -Misc-Fixed-Bold-R-SemiCondensed--13-120-75-75-C-60-ISO8859-1
1 OpenFont -Misc-Fixed-medium-R-*-*-13-120-75-75-C-120-ISO10646-1
1 OpenFont -Misc-Fixed-bold-R-*-*-13-120-75-75-C-120-ISO10646-1
1 OpenFont -misc-fixed-medium-r-semicondensed--13-120-75-75-c-60-iso10646-1
1 InternAtom/1 -Misc-Fixed-Medium-R-SemiCondensed--13-120-75-75-C-60-ISO10646-1
1 OpenFont -Misc-Fixed-bold-R-*-*-13-120-75-75-C-60-ISO10646-1
1 InternAtom/1 -Misc-Fixed-Bold-R-SemiCondensed--13-120-75-75-C-60-ISO10646-1
1 QueryColors colormap 00000000 ffffff00
1 InternAtom _NET_WM_PID
1 InternAtom _NET_SUPPORTING_WM_CHECK
1 GetProperty _NET_SUPPORTING_WM_CHECK 33 0 1024
1 InternAtom _WIN_SUPPORTING_WM_CHECK
1 GetProperty _WIN_SUPPORTING_WM_CHECK 6 0 1024
1 GetModifierMapping
1 GetKeyboardMapping 08f80000
1 XKEYBOARD::GetMap 00010700 00000000 00000000 00000000 00000000 00000000
1 AllocColor ff00 0000 0000
1 AllocColor ff00 5300 0000
1 AllocColor ff00 5e00 0000
1 AllocColor ff00 4800 0000
1 AllocColor ff00 4200 0000
1 AllocColor ff00 4000 0000
1 AllocColor ff00 4b00 0000
1 AllocColor ff00 5200 0000
1 AllocColor ff00 5400 0000
1 AllocColor ff00 3500 0000
1 AllocColor ff00 5100 0000
1 AllocColor ff00 5c00 0000
1 AllocColor ff00 3000 0000
1 AllocColor ff00 4500 0000
1 AllocColor ff00 2000 0000
1 AllocColor ff00 0300 0000
1 AllocColor ff00 1600 0000
1 AllocColor ff00 5d00 0000
1 AllocColor ff00 3800 0000
1 AllocColor ff00 0200 0000
1 AllocColor ff00 0900 0000
1 AllocColor ff00 2b00 0000
1 AllocColor ff00 3300 0000
1 AllocColor ff00 1a00 0000
1 AllocColor ff00 1300 0000
1 AllocColor ff00 1200 0000
1 AllocColor ff00 5700 0000
1 AllocColor 4500 7700 ba00
1 AllocColor 8700 4e00 7800
1 AllocColor 8800 7500 7700
1 AllocColor 8800 7e00 7700
1 AllocColor 8800 7900 7700
1 AllocColor 8700 5000 7800
1 AllocColor 5600 6c00 a900
1 AllocColor 5e00 7000 a100
1 AllocColor 8800 4e00 7700
1 AllocColor 8800 7600 7700
1 AllocColor 7c00 5b00 8300
1 AllocColor 7900 5600 8600
1 AllocColor 0000 8d00 fe00
1 AllocColor 0000 1200 f300
1 AllocColor 0000 0b00 f200
1 AllocColor 0000 8f00 fe00
1 AllocColor 0000 6c00 fa00
1 AllocColor 0000 0000 f100
1 AllocColor 0000 0100 f100
1 AllocColor 0000 2000 f400
1 AllocColor 0000 4000 f600
1 AllocColor 0900 5900 f000
1 AllocColor 1100 5800 e800
1 AllocColor 1100 5900 e800
1 AllocColor 0000 5800 f900
1 AllocColor 0000 1d00 f400
1 AllocColor 0000 2300 f400
1 AllocColor 0000 5b00 fa00
1 AllocColor 0000 6000 fa00
1 AllocColor 0e00 5800 eb00
1 AllocColor 0600 5100 f300
1 AllocColor 0000 3300 f500
1 AllocColor 0000 0e00 f200
1 AllocColor 0000 6e00 fa00
1 AllocColor 0000 9200 ff00
1 AllocColor 0000 1f00 f400
1 AllocColor 0000 0f00 f200
1 AllocColor 0c00 5100 ec00
1 AllocColor 3200 6a00 c900
1 AllocColor 7a00 6500 8300
1 AllocColor ca00 6200 3400
1 AllocColor fc00 5f00 0300
1 AllocColor ff00 5800 0000
1 AllocColor ff00 0800 0000
1 AllocColor f400 0600 0b00
1 AllocColor 0000 7c00 fb00
1 AllocColor 0000 1300 f300
1 AllocColor 0000 7e00 fb00
1 AllocColor ff00 1800 0000
1 AllocColor f300 5900 0c00
1 AllocColor ab00 6100 5200
1 AllocColor 4f00 4e00 ad00
1 AllocColor 1700 5c00 e400
1 AllocColor 0000 3600 f500
1 AllocColor 0000 2200 f400
1 AllocColor 0000 9500 fd00
1 AllocColor 0000 8400 fd00
1 AllocColor 0000 0400 f100
1 AllocColor 0000 5100 f800
1 AllocColor 3400 5a00 c700
1 AllocColor e600 1500 1900
1 AllocColor ff00 5900 0000
1 AllocColor ff00 4600 0000
1 AllocColor ff00 0100 0000
1 AllocColor 4400 6e00 b900
1 AllocColor 0000 3400 f600
1 AllocColor 0000 3200 f500
1 AllocColor ff00 2200 0000
1 AllocColor 0000 6f00 fa00
1 AllocColor 0000 2d00 f500
1 AllocColor 0000 8600 fd00
1 AllocColor 0000 4600 f700
1 AllocColor 0000 1500 f300
1 AllocColor 0000 7600 fc00
1 AllocColor ff00 0400 0000
1 AllocColor ff00 2300 0000
1 AllocColor ff00 2900 0000
1 AllocColor 9e00 3e00 6100
1 AllocColor 0000 3900 f600
1 AllocColor ff00 2a00 0000
1 AllocColor ff00 4300 0000
1 AllocColor 0000 7100 fb00
1 AllocColor 0000 5e00 f900
1 AllocColor 0000 4d00 f700
1 AllocColor 0000 8c00 fe00
1 AllocColor 0000 0800 f200
1 AllocColor 0000 1d00 f300
1 AllocColor 0000 7d00 fb00
1 AllocColor ff00 4100 0000
1 AllocColor ff00 5b00 0000
1 AllocColor a300 4200 5c00
1 AllocColor 9900 4c00 6600
1 AllocColor ff00 1100 0000
1 AllocColor 0000 7200 fb00
1 AllocColor 0000 0a00 f200
1 AllocColor 0000 6e00 fc00
1 AllocColor 0000 1700 f300
1 AllocColor 0000 7f00 fb00
1 AllocColor ff00 0600 0000
1 AllocColor ff00 5600 0000
1 AllocColor a500 6a00 5a00
1 AllocColor a500 3b00 5a00
1 AllocColor ff00 4f00 0000
1 AllocColor 0000 7600 fb00
1 AllocColor 0000 7600 fa00
1 AllocColor 0000 9300 ff00
1 AllocColor 0000 7d00 fc00
1 AllocColor ff00 1c00 0000
1 AllocColor a500 7600 5a00
1 AllocColor a500 5d00 5a00
1 AllocColor 0000 6f00 fb00
1 AllocColor 0000 2c00 f500
1 AllocColor 0000 8a00 fd00
1 AllocColor 0000 6b00 f900
1 AllocColor ff00 3a00 0000
1 AllocColor ff00 5000 0000
1 AllocColor 0000 7b00 fb00
1 AllocColor 0000 8b00 fd00
1 AllocColor a500 7500 5a00
1 AllocColor 9a00 5500 6500
1 AllocColor a400 3a00 5b00
1 AllocColor ff00 4d00 0000
1 AllocColor 8000 5000 7f00
1 AllocColor ff00 0f00 0000
1 AllocColor 7a00 5400 8500
1 AllocColor a500 5500 5a00
1 AllocColor ff00 0a00 0000
1 AllocColor a500 3d00 5a00
1 AllocColor a400 5100 5b00
1 AllocColor a500 6800 5a00
1 AllocColor a500 7300 5a00
1 AllocColor ff00 0700 0000
1 AllocColor ff00 2e00 0000
1 AllocColor ff00 1500 0000
1 AllocColor a300 7000 5c00
1 AllocColor ff00 0500 0000
1 AllocColor 9a00 4900 6500
1 AllocColor ff00 0e00 0000
1 AllocColor ff00 3b00 0000
1 AllocColor ff00 2d00 0000
1 AllocColor a100 3c00 5e00
1 AllocColor ff00 4c00 0000
1 AllocColor 6200 6400 9d00
1 AllocColor ff00 0b00 0000
1 AllocColor ff00 4700 0000
1 AllocColor ff00 1d00 0000
1 AllocColor a500 6d00 5a00
1 AllocColor ff00 2c00 0000
1 AllocColor a400 4600 5b00
1 AllocColor ff00 1400 0000
1 AllocColor a000 3e00 6100
1 AllocColor ff00 3100 0000
1 AllocColor ff00 1b00 0000
1 AllocColor ff00 1000 0000
1 AllocColor 0000 2900 f500
1 AllocColor 0000 2700 f400
1 AllocColor 4500 7100 ba00
1 AllocColor ff00 3900 0000
1 AllocColor ff00 3200 0000
1 AllocColor 0000 8e00 fd00
1 AllocColor 0000 1900 f300
1 AllocColor 0000 9000 fd00
1 AllocColor ff00 0d00 0000
1 AllocColor ff00 1e00 0000
1 AllocColor ff00 4e00 0000
1 AllocColor 0000 8800 fc00
1 AllocColor 0000 8700 fc00
1 AllocColor ff00 1900 0000
1 AllocColor 0000 3600 f600
1 AllocColor ff00 2100 0000
1 AllocColor 0000 7300 fb00
1 AllocColor 0000 6200 fa00
1 AllocColor 0000 1a00 f300
1 AllocColor 2400 6300 d800
1 AllocColor 3e00 5800 be00
1 AllocColor 2a00 7f00 d300
1 AllocColor 8000 7b00 7f00
1 AllocColor 0000 8e00 fb00
1 AllocColor 0000 6a00 fa00
1 AllocColor 0000 4c00 f800
1 AllocColor 7100 7b00 8d00
1 AllocColor ee00 0b00 1100
1 AllocColor f700 3e00 0800
1 AllocColor ff00 1f00 0000
1 AllocColor ff00 5500 0000
1 InternAtom WM_PROTOCOLS
end
