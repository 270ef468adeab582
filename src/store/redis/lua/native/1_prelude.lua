-- 1_prelude.lua - the native layout: what the busy steps use. layout.h says what the steps do,
-- docs/redis.md what the keys hold. A job's record is read once into `records`, changed there, and
-- written back once at the end; changes of sorted sets gather in `changes`, the last one counts.
--
-- Redis runs this whole text at every call. So there is little here and in 2_work.lua; what is
-- rarely needed is inside more(), which is called when it is.

local call, pack, unpack_msg = redis.call, cmsgpack.pack, cmsgpack.unpack
local unpack_some = cmsgpack.unpack_limit
local spack, sunpack = struct.pack, struct.unpack
local format, sub, byte = string.format, string.sub, string.byte
local floor, huge, max = math.floor, math.huge, math.max
local KEYS, ARGV = KEYS, ARGV

local now = ARGV[1]
if now == '' then
  local t = call('TIME')
  now = t[1] * 1000 + floor(t[2] / 1000)
else
  now = tonumber(now)
end
local origin, number = ARGV[2], tonumber(ARGV[3])
local partitions, partition = tonumber(ARGV[5]), tonumber(ARGV[6])
local lane = origin .. ':' .. (number or 0) % 2

local meta = call('HMGET', KEYS[META], 'last', 'messages', 'keep', lane)
local last, keep_at = tonumber(meta[1] or 0), tonumber(meta[3] or '') or huge

-- Which steps there are in this call, which jobs they name, and how many the takes want of one type
-- alone.
local uses, named, lookahead = {}, {}, {}
do
  local i, total = FIRST, #ARGV
  while i <= total do
    local letter, n = ARGV[i], tonumber(ARGV[i + 1])
    uses[letter] = true
    if letter == 'D' or letter == 'R' or letter == 'S' or letter == 'L' or letter == 'P' or
       letter == 'E' then
      named[#named + 1] = ARGV[i + 2]
    elseif n == 4 and (letter == 't' or letter == 'T') then
      lookahead[ARGV[i + 5]] = (lookahead[ARGV[i + 5]] or 0) + tonumber(ARGV[i + 2])
    end
    i = i + 2 + n
  end
end

local steps = {}
local worked = true                          -- did the last step? For t
local events, n_events = {}, 0               -- in pieces, as MessagePack; how many there are
local due = huge
local ready = {}                             -- by type: jobs read ahead for the takes

-- ---- hashes ----

-- A command with any number of arguments, in pairs.
local function many(command, key, args)
  local n = #args
  for i = 1, n, MANY do
    call(command, KEYS[key], unpack(args, i, i + MANY - 1 < n and i + MANY - 1 or n))
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
local new_jobs, n_new = {}, 0                -- fields and values of jobs that were added

local function flush_jobs()
  if n_new > 0 then
    many('HSET', JOBS, new_jobs)
    new_jobs, n_new = {}, 0
  end
  local set, gone, s, g = {}, {}, 0, 0
  for id in pairs(dirty) do
    local r = records[id]
    if r then
      set[s + 1], set[s + 2] = id, r
      s = s + 2
    else
      g = g + 1
      gone[g] = id
    end
  end
  dirty = {}
  many('HSET', JOBS, set)
  many('HDEL', JOBS, gone)
end

local function load(ids)
  local missing, m = {}, 0
  for k = 1, #ids do
    local id = ids[k]
    if records[id] == nil then
      m = m + 1
      missing[m] = id
      records[id] = false
    end
  end
  if m == 0 then return end
  if n_new > 0 then flush_jobs() end
  local got = get_many(JOBS, missing)
  for k = 1, m do records[missing[k]] = got[k] end
end

local function record(id)
  local r = records[id]
  if r == nil then
    if n_new > 0 then flush_jobs() end
    r = call('HGET', KEYS[JOBS], id)
    records[id] = r
  end
  return r
end

-- The record of a job that is active with this delivery.
local function held(id, delivery)
  local r = record(id)
  if r and byte(r, AT_STATE) == ACTIVE and sunpack('>I4', r, AT_DELIVERY) == tonumber(delivery) then
    return r
  end
end

-- ---- sorted sets ----

local changes = {}                           -- [key][member] = score, or false: remove
for key = STATE_KEY + INACTIVE, DUE do changes[key] = {} end
changes[IDS], changes[WORDS] = {}, {}

local function flush(key)
  local c = changes[key]
  if next(c) == nil then return end
  changes[key] = {}
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
  many('ZREM', key, remove)
  many('ZADD', key, add)
end

-- ---- types: see layout.h for the record ----

local types, types_dirty = {}, {}

local function type_of(name)
  local t = types[name]
  if t == nil then
    local got = call('HMGET', KEYS[TYPES], name, '*')
    t = got[1] and unpack_msg(got[1])
    types[name] = t
    if types['*'] == nil then types['*'] = got[2] and unpack_msg(got[2]) end
  end
  return t
end

local function type_make(name)
  local t = type_of(name)
  if not t then
    t = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }
    types[name], types_dirty[name] = t, true
  end
  return t
end

-- The record whose settings hold for a type; false: there are none.
local function settings_of(name)
  local t = type_of(name)
  if t and t[OWN] == 1 then return t end
  return types['*']
end

-- ---- ids: a block of them is known as long as one of its jobs is there ----

local blocks = {}

local function flush_all()
  flush_jobs()
  for block, by in pairs(blocks) do
    local n = by ~= 0 and call('HINCRBY', KEYS[BLOCKS], block, by)
    if n == by then
      changes[IDS][block] = 0
    elseif n and n <= 0 then
      call('HDEL', KEYS[BLOCKS], block)
      changes[IDS][block] = false
    end
  end
  blocks = {}
  for key in pairs(changes) do flush(key) end
  for name in pairs(types_dirty) do call('HSET', KEYS[TYPES], name, pack(types[name])) end
  types_dirty = {}
end

-- ---- what will be told ----

-- An event as MessagePack, its numbers as wide as they may become: one string is made, not many.
-- The id is last because Lua looks only at some bytes of a long string to tell it from others, but
-- always at the last one.
local function event_of(kind, state, id, name, attempts, progress, delivery, text)
  if text then
    return spack('>BBBBc0BI4BBBI4BI4c0BI8', kind, state, 217, #name, name, 206, attempts, 204,
                 progress, 206, delivery, 219, #text, text, 207, id)
  end
  return spack('>BBBBc0BI4BBBI4BBI8', kind, state, 217, #name, name, 206, attempts, 204, progress,
               206, delivery, 194, 207, id)
end

-- Jobs whose ids follow each other, at the start of their lives (attempts 0), as one event.
local function run_of(kind, state, first, count, name, delivery, text)
  n_events = n_events + 1
  if count == 1 then return event_of(kind, state, first, name, 0, 0, delivery, text) end
  n_events = n_events + 1
  return event_of(kind + RUN, state, first, name, 0, 0, delivery, text) ..
         spack('>BI4BI4BBBBBB', 206, count, 206, partitions, 0, 0, 0, 0, 0, 0)
end

-- At which place among the jobs of its type and state something of this moment is.
local places_now = {}

local function place_now(name)
  local place = places_now[name]
  if not place then
    place = name .. '\0' .. spack('>I8', now + ZERO_RANK)
    places_now[name] = place
  end
  return place
end
