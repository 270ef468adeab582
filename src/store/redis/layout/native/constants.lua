-- constants.lua - named numbers that C does not use; the numbers of C are in native.constants.lua,
-- which ../constants.c writes. scripts/embed-lua.sh puts the numbers in their places: a name would
-- cost time. One statement a line.

-- from this many fields of META on, fields of lost callers are searched for; ms after which a caller
-- is lost
local MANY_CALLERS, CALLER_MS = 500, 3600000

-- looking for a priority: places read at a time, and at least of each type
local PAGE, FEWEST = 500, 20

-- ids in a block of IDS; lines of a log that are read at a time
local BLOCK, LOG_PAGE = 64, 200

-- grants whose lease is over that are ended at a time
local SOME_GRANTS = 500

-- jobs that are looked at in a step V or W, and some more
local SOME_JOBS, AT_A_TIME = 500, 5000

-- jobs of a type whose entries are still counted to check the counts of its record
local MOST_COUNTED = 200000
