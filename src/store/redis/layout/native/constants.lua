-- constants.lua - named numbers that C does not use; the numbers of C are in native.constants.lua,
-- which ../constants.c writes. scripts/embed-lua.sh puts the numbers in their places: a name would
-- cost time. One statement a line.

-- from this many fields of META on, fields of lost callers are searched for
local MANY_CALLERS = 500

-- looking for a priority: places read at a time, and at least of each type
local PAGE, FEWEST = 500, 20

-- arguments of one command (Lua's stack has room for twice as many); ids in a block of IDS
local MANY, BLOCK = 4000, 64

-- grants whose lease is over that are ended at a time
local SOME_GRANTS = 500

-- jobs that are looked at in a step V or W, and some more
local SOME_JOBS, AT_A_TIME = 500, 5000

-- jobs of a type whose entries are still counted to check the counts of its record
local MOST_COUNTED = 200000
