-- constants.lua - numbers with names. scripts/embed-lua.sh puts the numbers in their places: a name
-- would cost time. One statement a line.

-- KEYS: a state's set is KEYS[STATE_KEY + state]
local JOBS, RUNS, DATA, LOG, STATE_KEY, LEASE, TTL, DUE, HELD = 1, 2, 3, 4, 4, 11, 12, 13, 14
local UNIQUE, TYPES, IDS, BLOCKS, WORDS, FOUND, META = 15, 16, 17, 18, 19, 20, 21
local FIRST_SET, LAST_SET, TOKENS, TOKENS_AT = 5, 14, 22, 23

-- states
local INACTIVE, DELAYED, ACTIVE, COMPLETE, FAILED, CANCELLED = 1, 2, 3, 4, 5, 6

-- where a spec and a run have what (layout.h)
local SPEC_FLAGS, SPEC_TYPE_LEN, SPEC_PRIORITY, SPEC_TTL, SPEC_TYPE = 8, 11, 12, 45, 59
local AT_ATTEMPTS, AT_DELIVERY, AT_LOST, AT_PROMOTE, AT_STARTED, AT_FAILED = 3, 7, 11, 19, 33, 40
local AT_FINISHED, AT_FLAGS, AT_TYPE = 47, 61, 63

-- where the table has it that decode() makes of both
local CREATED, FLAGS, TYPE_LEN, PRIORITY, TTL_MS, DEADLINE, SPEC_END = 1, 2, 5, 6, 12, 13, 13
local STATE, PROGRESS, ATTEMPTS, DELIVERY, LOST, LINES, PROMOTE = 14, 15, 16, 17, 18, 19, 20
local UPDATED, STARTED, FAILED_AT, FINISHED, DURATION, RUN_END = 21, 22, 23, 24, 25, 25
local TYPE, UNIQUE_KEY, SEARCH_KEYS, RESULT, ERROR = 26, 27, 28, 29, 30
local PROGRESS_DATA, WORKER, SHORT_DATA, HISTORY, VALUES = 31, 32, 33, 34, 35

-- flags of a job
local REMOVES, SEARCHED, HAS_KEY, HAS_TTL, HAS_DEADLINE, APART = 1, 2, 4, 8, 16, 32

-- a type's record: see layout.h
local PAUSED, OWN, SEARCH, T_COMPLETED, T_FAILED, T_WORK, T_TAKEN = 1, 2, 7, 8, 9, 10, 11
local T_TOLD, T_SPANS, T_HELD, T_DONE = 11, 12, 13, 14

-- events
local ENQUEUE, START, PROGRESS_EVENT, COMPLETED, REMOVE, PAUSE, RESUME = 0, 2, 3, 6, 10, 11, 12
local RUN, LIST = 32, 64

-- WEIR_TOKEN_MS, WEIR_TOKEN_LATE_MS, REDIS_STAMP_MS
local TOKEN_MS, TOKEN_LATE_MS, STAMP_MS = 86400000, 60000, 50

-- fields of META from which on those of lost callers are looked for
local MANY_CALLERS = 500

-- looking for a priority: places read at a time, and at least of each type
local PAGE, FEWEST = 500, 20

-- the bytes of an end in a step D: id, delivery, how many, has it a result
local END = 15

-- the first step in ARGV; arguments of one command (Lua's stack has room for twice as many); ids in
-- a block of IDS; WEIR_MAX_LOG; INT64_MIN as messages have it; what is added to ranks, 2^52
local FIRST, MANY, BLOCK, MAX_LOG, AT_ONCE, ZERO_RANK = 7, 4000, 64, 10000, -1, 4503599627370496

-- when Redis's clock is set: see steps.Y
local GRACE_MS, CLOCK_SLACK_MS = 15000, 2000

-- hands whose lease is over that are dealt out at a time
local SOME_HANDS = 500

-- specs in a piece: REDIS_PIECE; suspects that a take passes over: WEIR_MAX_PASSED
local PIECE, MAX_PASSED = 16, 100

-- jobs that are looked at in a step V or W, and some more
local SOME_JOBS, AT_A_TIME = 500, 5000

-- jobs of a type whose entries are still counted to check the counts of its record
local MOST_COUNTED = 200000
