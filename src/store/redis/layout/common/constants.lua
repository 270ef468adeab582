-- constants.lua - numbers of both layouts that C does not use: see the constants of a layout.

-- arguments of one command (Lua's stack has room for twice as many); ids of a word at a time
local MANY, FIND_PAGE = 4000, 200
