-- constants.lua - numbers with names. scripts/embed-lua.sh puts the numbers in their places: a name
-- would cost time at every call. One statement a line.

-- KEYS: a state's set is KEYS[STATE_KEY + state]
local JOBS, DATA, LOG, STATE_KEY, LEASE, TTL, DUE = 1, 2, 3, 3, 10, 11, 12
local UNIQUE, TYPES, IDS, BLOCKS, WORDS, FOUND, META = 13, 14, 15, 16, 17, 18, 19
local TOKENS, TOKENS_AT = 20, 21

-- states
local INACTIVE, DELAYED, ACTIVE, COMPLETE, FAILED, CANCELLED = 1, 2, 3, 4, 5, 6

-- where a record has what (layout.h), and where the table has it that decode() makes of one
local AT_STATE, AT_ATTEMPTS, AT_DELIVERY, AT_LOST, AT_STARTED, AT_FAILED = 22, 24, 28, 32, 40, 47
local AT_FLAGS, AT_FIXED, AT_TYPE_LEN, AT_TTL, AT_TYPE = 68, 71, 73, 107, 121
local CREATED, PROMOTE, UPDATED, STATE, PROGRESS, ATTEMPTS, DELIVERY = 1, 2, 3, 4, 5, 6, 7
local LINES, STARTED, FINISHED, FLAGS, FIXED_LEN, TYPE_LEN, PRIORITY = 9, 10, 12, 14, 17, 18, 19
local TTL_MS, DEADLINE, NUMBERS_END, TYPE, UNIQUE_KEY, SEARCH_KEYS = 25, 26, 26, 27, 28, 29
local WORKER, ERROR, RESULT, PROGRESS_DATA, SHORT_DATA = 30, 31, 32, 33, 34

-- flags of a job
local REMOVES, SEARCHED, HAS_KEY = 1, 2, 4

-- a type's record: see layout.h
local PAUSED, OWN, SEARCH, T_COMPLETED, T_FAILED, T_WORK, T_TAKEN = 1, 2, 7, 8, 9, 10, 11

-- events
local ENQUEUE, START, PROGRESS_EVENT, COMPLETED, REMOVE, PAUSE, RESUME = 0, 2, 3, 6, 10, 11, 12
local RUN = 32

-- WEIR_TOKEN_MS, WEIR_TOKEN_LATE_MS
local TOKEN_MS, TOKEN_LATE_MS = 86400000, 60000

-- fields of META from which on those of lost callers are looked for
local MANY_CALLERS = 500

-- the first step in ARGV; arguments of one command (Lua's stack has room for twice as many); ids in
-- a block of IDS; WEIR_MAX_LOG; INT64_MIN as messages have it; what is added to ranks, 2^52
local FIRST, MANY, BLOCK, MAX_LOG, AT_ONCE, ZERO_RANK = 7, 4000, 64, 10000, -1, 4503599627370496
