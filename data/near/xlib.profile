xqos near questions 2
programs xdpyinfo xev x11perf
3 QueryExtension BIG-REQUESTS
3 BIG-REQUESTS::Enable
3 GetProperty 23 31 0 100000000
3 QueryExtension XKEYBOARD
3 XKEYBOARD::UseExtension 01000000
end
