-- 1_prelude.lua - the native layout: what every step uses. layout.h says what the steps do,
-- docs/redis.md what the keys hold. A job's record is read once into `records`, changed there, and
-- written back once at the end; changes of sorted sets gather in `changes`, the last one counts.
-- The whole text runs anew with every call, so what is rarely needed is made only when it is.

local call, pack, unpack_msg = redis.call, cmsgpack.pack, cmsgpack.unpack
local spack, sunpack = struct.pack, struct.unpack
local format, sub, byte = string.format, string.sub, string.byte
local floor, huge = math.floor, math.huge

-- KEYS: a state's set is KEYS[STATE_KEY + state]
local JOBS, DATA, LOG, STATE_KEY, LEASE, TTL, DUE = 1, 2, 3, 3, 10, 11, 12
local UNIQUE, TYPES, IDS, BLOCKS, WORDS, FOUND, META, CALLERS = 13, 14, 15, 16, 17, 18, 19, 20

-- states
local INACTIVE, DELAYED, ACTIVE, COMPLETE, FAILED, CANCELLED = 1, 2, 3, 4, 5, 6

-- A record: numbers at fixed places, then texts; see layout.h. decode() makes a table of it, the
-- steps that are called most look at the bytes instead.
local NUMBERS = '>I7I7I7BBI4I4I4I4I7I7I7I7BBBI2Bi4I4I4I7I7I7I7I7'
local AT_STATE, AT_ATTEMPTS, AT_DELIVERY, AT_LOST, AT_STARTED, AT_FAILED = 22, 24, 28, 32, 40, 47
local AT_FLAGS, AT_FIXED, AT_TTL, AT_TYPE = 68, 71, 107, 121
local CREATED, PROMOTE, UPDATED, STATE, PROGRESS, ATTEMPTS, DELIVERY = 1, 2, 3, 4, 5, 6, 7
local LINES, STARTED, FINISHED, FLAGS, PRIORITY, TTL_MS, DEADLINE = 9, 10, 12, 14, 19, 25, 26
local TYPE, UNIQUE_KEY, PROGRESS_DATA = 27, 28, 33
local REMOVES, SEARCHED, HAS_KEY = 1, 2, 4   -- flags

-- events
local ENQUEUE, START, PROGRESS_EVENT, COMPLETED, REMOVE, PAUSE, RESUME = 0, 2, 3, 6, 10, 11, 12

local MANY = 4000             -- arguments of one command; Lua's stack has room for twice as many
local BLOCK = 64              -- ids in a block of IDS
local MAX_LOG = 10000         -- WEIR_MAX_LOG
local AT_ONCE = -1            -- INT64_MIN
local ZERO_RANK = 4503599627370496

local now = ARGV[1]
if now == '' then
  local t = call('TIME')
  now = t[1] * 1000 + floor(t[2] / 1000)
else
  now = tonumber(now)
end
local origin, partitions, partition = ARGV[2], tonumber(ARGV[5]), tonumber(ARGV[6])

local events, n_events = {}, 0               -- in pieces, as MessagePack; how many there are
local due = huge
local meta = call('HMGET', KEYS[META], 'last', 'messages', 'keep')
local uses = {}                              -- letters of the steps in this call
local FIRST = 7                              -- the first step in ARGV
do
  local i = FIRST
  while i <= #ARGV do
    uses[ARGV[i]] = true
    i = i + 2 + ARGV[i + 1]
  end
end
local last, messages = tonumber(meta[1] or 0), tonumber(meta[2] or 0)
local keep_at = tonumber(meta[3] or '') or huge
local first_last, first_keep = last, keep_at

local function want(at)
  if at < due then due = at end
end

local function tell(event)
  n_events = n_events + 1
  events[#events + 1] = event
end

-- A command with any number of arguments, `step` of which belong together.
local function many(command, key, args, step)
  local n = #args
  if n <= MANY then
    if n > 0 then call(command, KEYS[key], unpack(args)) end
    return
  end
  local size = MANY - MANY % step
  for i = 1, n, size do
    call(command, KEYS[key], unpack(args, i, math.min(i + size - 1, n)))
  end
end

local function get_many(key, fields)
  local n = #fields
  if n == 0 then return {} end
  if n <= MANY then return call('HMGET', KEYS[key], unpack(fields)) end
  local all = {}
  for i = 1, n, MANY do
    local some = call('HMGET', KEYS[key], unpack(fields, i, math.min(i + MANY - 1, n)))
    for k = 1, #some do all[i + k - 1] = some[k] end
  end
  return all
end

-- ---- records ----

local records, dirty = {}, {}                -- by id as text; false: not there

local function load(ids)
  local missing = {}
  for k = 1, #ids do
    local id = ids[k]
    if records[id] == nil then
      missing[#missing + 1] = id
      records[id] = false
    end
  end
  local got = get_many(JOBS, missing)
  for k = 1, #missing do records[missing[k]] = got[k] end
end

local function record(id)
  local r = records[id]
  if r == nil then
    r = call('HGET', KEYS[JOBS], id)
    records[id] = r
  end
  return r
end

local function store(id, r)
  records[id], dirty[id] = r, true
end

local function decode(r)
  local j = { sunpack(NUMBERS, r) }
  j[TYPE] = sub(r, AT_TYPE, AT_TYPE + j[18] - 1)
  j[28], j[29], j[30], j[31], j[32], j[33] = unpack_msg(sub(r, AT_TYPE + j[18]))
  return j
end

local function encode(j)
  local fixed = j[TYPE] .. pack(j[28], j[29])
  j[17], j[18] = #fixed, #j[TYPE]
  return spack(NUMBERS, unpack(j, 1, 26)) .. fixed .. pack(j[30], j[31], j[32], j[33])
end

local function job(id)
  local r = record(id)
  return r and decode(r)
end

-- The record of a job that is active with this delivery.
local function held(id, delivery)
  local r = record(id)
  if r and byte(r, AT_STATE) == ACTIVE and sunpack('>I4', r, AT_DELIVERY) == tonumber(delivery) then
    return r
  end
end

-- What a record holds: flags, length of type and fixed texts, type.
local function kind_of(r)
  local flags, _, _, fixed, n = sunpack('>BBBI2B', r, AT_FLAGS)
  return flags, fixed, sub(r, AT_TYPE, AT_TYPE + n - 1)
end

local function has(flags, flag)
  return flags % (2 * flag) >= flag
end

local function finished(state)
  return state >= COMPLETE
end

-- ---- sorted sets ----

local changes = {}                           -- [key][member] = score, or false: remove

local function mark(key, member, score)
  local c = changes[key]
  if not c then
    c = {}
    changes[key] = c
  end
  c[member] = score
end

local function flush(key)
  local c = changes[key]
  if not c then return end
  changes[key] = nil
  local add, remove, a, r = {}, {}, 0, 0
  for member, score in pairs(c) do
    if score then
      add[a + 1], add[a + 2] = score, member
      a = a + 2
    else
      r = r + 1
      remove[r] = member
    end
  end
  many('ZREM', key, remove, 1)
  many('ZADD', key, add, 2)
end
