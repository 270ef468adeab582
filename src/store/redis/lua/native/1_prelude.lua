-- 1_prelude.lua - the native layout: what every step uses. layout.h says what the steps do,
-- docs/redis.md what the keys hold. A job's record is read once into `jobs`, changed there, and
-- written back once at the end; changes of sorted sets gather in `changes`, the last one counts.

local call, pack, unpack_msg = redis.call, cmsgpack.pack, cmsgpack.unpack
local spack, sunpack = struct.pack, struct.unpack
local format, floor, huge = string.format, math.floor, math.huge

-- KEYS: a state's set is KEYS[STATE_KEY + state]
local JOBS, DATA, LOG, STATE_KEY, LEASE, TTL, DUE = 1, 2, 3, 3, 10, 11, 12
local UNIQUE, TYPES, IDS, BLOCKS, WORDS, FOUND, META, CALLERS = 13, 14, 15, 16, 17, 18, 19, 20

-- states, and the fields of a record: REDIS_FIELDS
local INACTIVE, DELAYED, ACTIVE, COMPLETE, FAILED, CANCELLED = 1, 2, 3, 4, 5, 6
local STATE, TYPE, PRIORITY, ATTEMPTS, DELIVERY, PROGRESS, FLAGS = 1, 2, 3, 4, 6, 9, 10
local TTL_MS, DEADLINE, STARTED, FINISHED, DURATION, LINES = 16, 17, 18, 20, 21, 22
local UNIQUE_KEY, WORKER, ERROR, RESULT, PROGRESS_DATA = 23, 25, 26, 27, 28
local CREATED, PROMOTE, UPDATED = 29, 30, 31

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

local message = { 0, now, origin, 0 }        -- and the events, 8 elements each
local due = huge
local meta = call('HMGET', KEYS[META], 'last', 'messages', 'keep')
local last, messages = tonumber(meta[1] or 0), tonumber(meta[2] or 0)
local keep_at = tonumber(meta[3] or '') or huge
local first_last, first_keep = last, keep_at

local function want(at)
  if at < due then due = at end
end

local function tell(kind, j, id, state, text)
  local n = #message
  message[n + 1], message[n + 2], message[n + 3], message[n + 4] = kind, state, id, j[TYPE]
  message[n + 5], message[n + 6], message[n + 7] = j[ATTEMPTS], j[PROGRESS], j[DELIVERY]
  message[n + 8] = text
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

local jobs, dirty = {}, {}                   -- by id as text; false: not there

local function load(ids)
  local missing = {}
  for k = 1, #ids do
    local id = ids[k]
    if jobs[id] == nil then
      missing[#missing + 1] = id
      jobs[id] = false
    end
  end
  local got = get_many(JOBS, missing)
  for k = 1, #missing do
    if got[k] then jobs[missing[k]] = unpack_msg(got[k]) end
  end
end

local function job(id)
  local j = jobs[id]
  if j == nil then
    local r = call('HGET', KEYS[JOBS], id)
    j = r and unpack_msg(r)
    jobs[id] = j
  end
  return j
end

-- The job that is active with this delivery.
local function held(id, delivery)
  local j = job(id)
  return j and j[STATE] == ACTIVE and j[DELIVERY] == tonumber(delivery) and j
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
