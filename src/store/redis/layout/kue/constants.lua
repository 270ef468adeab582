-- constants.lua - numbers with names that C does not know; those of C are in kue.constants.lua,
-- which ../constants.c writes. scripts/embed-lua.sh puts the numbers in their places: a name would
-- cost time at every call. One statement a line.

-- the fields of a job
local STATE, TYPE, PRIORITY, ATTEMPTS, MAX_ATTEMPTS, DELIVERY, LOST = 1, 2, 3, 4, 5, 6, 7
local MAX_LOST, PROGRESS, FLAGS, BACKOFF, BACKOFF_MS, BACKOFF_MAX, JITTER = 8, 9, 10, 11, 12, 13, 14
local DELAY, TTL_MS, DEADLINE, STARTED, FAILED_AT, FINISHED, DURATION = 15, 16, 17, 18, 19, 20, 21
local LINES, UNIQUE_KEY, KEYS_TEXT, WORKER, ERROR, RESULT = 22, 23, 24, 25, 26, 27
local PROGRESS_DATA, CREATED, PROMOTE, UPDATED, HISTORY, VALUES = 28, 29, 30, 31, 32, 33
local LAST_FIELD = 33

-- the fields of a hash, as HMGET gives them: see FIELDS
local H_STATE, H_TYPE, H_PRIORITY, H_HELD, H_STARTED, H_FEWEST = 1, 2, 3, 4, 5, 5
local H_ATTEMPTS, H_MAX_ATTEMPTS, H_MORE, H_PROGRESS, H_REMOVE, H_TTL = 6, 7, 8, 9, 10, 11
local H_ERROR, H_RESULT, H_FEW = 12, 13, 13
local H_BACKOFF, H_DELAY, H_FAILED_AT, H_DURATION, H_WORKER = 14, 15, 16, 17, 18
local H_PROGRESS_DATA, H_CREATED, H_PROMOTE, H_UPDATED = 19, 20, 21, 22
local H_HISTORY, H_DATA, H_ADDRESS, H_LAST = 23, 24, 25, 28

-- what a record has room for: bytes of a type, of a key; the delivery before the last
local MAX_TYPE, MAX_NAME, MAX_DELIVERY = 255, 1000, 4294967294

-- the highest whole number; arguments of one command (Lua's stack has room for twice as many)
local HIGHEST, MANY = 9007199254740991, 4000

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
