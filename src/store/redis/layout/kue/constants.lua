-- constants.lua - named numbers that C does not use; the numbers of C are in kue.constants.lua,
-- which ../constants.c writes. scripts/embed-lua.sh puts the numbers in their places: a name would
-- cost time at every call. One statement a line.

-- what a record has room for: bytes of a type, of a key; the delivery before the last
local MAX_TYPE, MAX_NAME, MAX_DELIVERY = 255, 1000, 4294967294

-- the highest whole number; priorities, and bytes of a backoff, that are read as they are
local HIGHEST, MAX_PRIORITY, MIN_PRIORITY = 9007199254740991, 2147483647, -2147483648
local MAX_BACKOFF_TEXT = 1000

-- lines whose times are in one field; ms for which a call is remembered
local LINES_A_FIELD, REMEMBER_MS = 100, 600000

-- ms: how much later Kue's ttl watcher sees a job that weir holds; how late Kue must be with one of
-- its own until weir does it; how long its worker may take to answer. A lower score is no time.
local KUE_TTL_GRACE, KUE_TTL_LATE, KUE_TTL_ANSWER, LOWEST_TTL_SCORE = 5000, 10000, 1000, 100000

-- ms: how often to look around, as Kue does itself; when there is more to do; between two walks
local EVERY, SOON, BETWEEN_WALKS = 1000, 10, 5000

-- ms after which Kue has written all of a new job, or never will; jobs for the index at a time
local SETTLE_MS, SEARCH_PIECE = 5000, 100

-- entries: of a walk at a time, and at least of each of several; announced at a time; few enough to
-- be sorted; far enough to go
local PIECE, FEWEST, HEADS, FEW, FAR = 500, 20, 500, 2000, 20000

-- ms that a worker of Kue's needs between its pop and its start, at most; ms after which somebody
-- must have seen that a lease is over
local TAKING_MS, LEFTOVER_MS = 10000, 10000

-- lists, and keys of types, that are kept for the next call
local SPARE, KEPT_TYPES = 16, 1000

-- elements of a command that puts many members into a set; members up to which a set is kept as a
-- list (zset-max-listpack-entries)
local GROWS, SMALL = 32, 128
