-- 1_prelude.lua - the native layout: what every step uses. layout.h says what the steps do,
-- docs/redis.md what the keys hold.
--
-- Redis runs this text once, when the library is loaded, and run_steps() (7_run.lua) at every call.
-- The state of a call is in the locals here, and made anew by begin().
--
-- Lua looks at every byte of a string that is made, what it makes it has to clear away, and each
-- command costs as much as fifty lines of Lua: so the busy steps (2_work.lua) make few strings and
-- tables. They gather what they change in arrays, and one command writes what has gathered for a
-- key. All other steps begin with settle(), which writes it, and then write at once.

local steps = {}                             -- by letter
local layout = {}                            -- what the files in layout/common call
local TYPE_RECORD = TYPE_FORMAT       -- numbers of a type: layout.h
local BYTE = {}                              -- strings of one byte

-- Functions of Lua are not available while a library is loaded: see prepare().
local call, pack, unpack_msg, unpack_some, spack, sunpack, tonumber, type, unpack, pairs, ipairs
local next
local format, sub, byte, char, match, rep, concat, sort, floor, ceil, max, min, huge

-- ---- keys: all have the prefix of the partition, so they are in one slot ----

-- The text has room for 200 locals: locals of a few functions are in blocks.
local keys_of

do

-- REDIS_NATIVE_KEYS in layout.h
local SUFFIXES = { KEY_SUFFIXES }
local keys_with = {}                         -- by prefix: never many

function keys_of(prefix)
  local keys = keys_with[prefix]
  if not keys then
    keys = {}
    for k = 1, #SUFFIXES do keys[k] = prefix .. SUFFIXES[k] end
    keys_with[prefix] = keys
  end
  return keys
end

end

-- ---- of the call ----

local KEYS, ARGV
local now, now7, now8                        -- and as bytes: of a record, of a place
local origin, number, partitions, partition, ids_a_block
local meta, last, keep_at
local worked                                 -- did the ends of the last step? Or by place. For t
local due
local records                                -- by id: the run of a job's own; false: it has none
local grants, grants_dirty, dones            -- by block of ids: see 2_spans.lua
local types, types_dirty
local blocks                                 -- of ids: how many jobs more, or less
local endings                                -- by the head of a run: see ending_of()
local begun                                  -- runs that were begun in this call
local firsts                                 -- see first_of()
local events, n_events                       -- pieces of the message

-- ---- what has gathered: see flush() ----

local adds, n_adds, rems, n_rems = {}, {}, {}, {}
local new_jobs, n_jobs, new_runs, n_runs
local gone_jobs, n_gone_jobs, gone_runs, n_gone_runs
local gone_bits, all_bits                    -- by the first id of a piece: see leave_piece()
local settled                                -- all was written, so nothing is left of the last call

-- Before the first call.
local function prepare()
  pack, unpack_msg, unpack_some = cmsgpack.pack, cmsgpack.unpack, cmsgpack.unpack_limit
  spack, sunpack, concat, sort = struct.pack, struct.unpack, table.concat, table.sort
  tonumber, type, unpack = _G.tonumber, _G.type, _G.unpack
  pairs, ipairs, next = _G.pairs, _G.ipairs, _G.next
  format, sub, byte, char = string.format, string.sub, string.byte, string.char
  match, rep = string.match, string.rep
  floor, ceil, max, min, huge = math.floor, math.ceil, math.max, math.min, math.huge
  for k = 0, 255 do BYTE[k] = char(k) end
  call = redis.call
end

-- Numbers that come often. Few of them are kept.
local count_in

do

local COUNTS = {}

function count_in(text)
  local n = COUNTS[text]
  if not n then
    n = tonumber(text)
    if n < 1000 then COUNTS[text] = n end
  end
  return n
end

end

-- A table for this call. That of the last one, if little was put into it: to empty it costs less
-- than to make a new one.
local function clear(t)
  for _ = 1, 4 do
    local k = next(t)
    if k == nil then return t end
    t[k] = nil
  end
  return {}
end

local function begin(args)
  if not call then prepare() end
  ARGV, KEYS, now = args, keys_of(args[4]), layout.time_of(args[1])
  now7, now8 = spack('>I7', now), spack('>I8', now + ZERO_RANK)
  origin, number = args[2], tonumber(args[3])
  partitions, partition = count_in(args[5]), count_in(args[6])
  ids_a_block = partitions * BLOCK
  due, n_events, worked = huge, 0, false
  if settled then
    records, types, grants, dones = clear(records), clear(types), clear(grants), clear(dones)
    endings, begun, firsts = clear(endings), clear(begun), clear(firsts)
  else
    records, types, blocks, types_dirty = {}, {}, {}, {}
    grants, grants_dirty, dones, endings, begun, firsts, events = {}, {}, {}, {}, {}, {}, {}
    for key = FIRST_SET, LAST_SET do
      adds[key], rems[key], n_adds[key], n_rems[key] = {}, {}, 0, 0
    end
    new_jobs, n_jobs, new_runs, n_runs = {}, 0, {}, 0
    gone_jobs, n_gone_jobs, gone_runs, n_gone_runs = {}, 0, {}, 0
    gone_bits, all_bits = {}, {}
  end
  settled = false
end

-- ---- commands with many arguments ----

local function many(command, key, args, n)
  n = n or #args
  if n == 0 then return end
  if n <= MANY then return call(command, KEYS[key], unpack(args, 1, n)) end
  for i = 1, n, MANY do call(command, KEYS[key], unpack(args, i, min(i + MANY - 1, n))) end
end

local function get_many(key, fields)
  local n = #fields
  if n == 0 then return {} end
  if n <= MANY then return call('HMGET', KEYS[key], unpack(fields)) end
  local all = {}
  for i = 1, n, MANY do
    local some = call('HMGET', KEYS[key], unpack(fields, i, min(i + MANY - 1, n)))
    for k = 1, #some do all[i + k - 1] = some[k] end
  end
  return all
end

-- ---- writing what has gathered ----

local drop_specs, flush_pieces               -- 2_pieces.lua

local function flush_jobs()
  if n_jobs > 0 then
    many('HSET', JOBS, new_jobs, n_jobs)
    if n_jobs > MANY then new_jobs = {} end
    n_jobs = 0
  end
  if n_runs > 0 then
    many('HSET', RUNS, new_runs, n_runs)
    if n_runs > MANY then new_runs = {} end
    n_runs = 0
  end
  if n_gone_jobs > 0 then
    drop_specs(gone_jobs)
    gone_jobs, n_gone_jobs = {}, 0
  end
  if next(gone_bits) then flush_pieces() end
  if n_gone_runs > 0 then
    many('HDEL', RUNS, gone_runs, n_gone_runs)
    n_gone_runs = 0
  end
end

local function set_run(id, run)
  new_runs[n_runs + 1], new_runs[n_runs + 2] = id, run
  n_runs = n_runs + 2
end

local function to_add(key, score, member)
  local n = n_adds[key]
  adds[key][n + 1], adds[key][n + 2], n_adds[key] = score, member, n + 2
end

local function to_remove(key, member)
  local n = n_rems[key] + 1
  rems[key][n], n_rems[key] = member, n
end

-- In the busy steps nothing is put into a set and then taken out again, but see steps.D.
local function flush(key)
  if n_rems[key] > 0 then
    many('ZREM', key, rems[key], n_rems[key])
    if n_rems[key] > MANY then rems[key] = {} end
    n_rems[key] = 0
  end
  if n_adds[key] > 0 then
    many('ZADD', key, adds[key], n_adds[key])
    if n_adds[key] > MANY then adds[key] = {} end
    n_adds[key] = 0
  end
end

local flush_grants                           -- 2_spans.lua
local settle

do

-- A block of ids is known as long as one of its jobs is there.
local function flush_blocks()
  for block, by in pairs(blocks) do
    local n = by ~= 0 and call('HINCRBY', KEYS[BLOCKS], block, by)
    if n == by then
      call('ZADD', KEYS[IDS], 0, block)
    elseif n and n <= 0 then
      call('HDEL', KEYS[BLOCKS], block)
      call('ZREM', KEYS[IDS], block)
    end
  end
  blocks = clear(blocks)
end

function settle()
  if next(grants_dirty) then flush_grants() end
  flush_jobs()
  for key = FIRST_SET, LAST_SET do
    if n_rems[key] > 0 or n_adds[key] > 0 then flush(key) end
  end
  if next(blocks) then flush_blocks() end
  if next(types_dirty) then
    for name in pairs(types_dirty) do
      call('HSET', KEYS[TYPES], name, spack(TYPE_RECORD, unpack(types[name], 1, T_DONE)))
    end
    types_dirty = clear(types_dirty)
  end
end

end

-- Before a step that reads and writes at once.
local function be_plain()
  settle()
  endings, begun, records = {}, {}, {}
end

local function put_in(key, member, score)
  call('ZADD', KEYS[key], score, member)
end

local function take_out(key, member)
  call('ZREM', KEYS[key], member)
end

-- The keys of schedules: their records, when they are due, their names.
function layout.schedule_key(k)
  return KEYS[SCHEDULES + k]
end

-- The keys of trends, which are behind the keys of schedules: their records, when they are removed.
function layout.trend_key(k)
  return KEYS[SCHEDULES + 3 + k]
end

function layout.key(key)
  return KEYS[key]
end

-- `score` false: out with it.
function layout.mark(key, member, score)
  if score then put_in(key, member, score) else take_out(key, member) end
end

function layout.word(word, id)
  return word .. '\0' .. id
end

local function of_type(name)
  return '[' .. name .. '\0', '(' .. name .. '\1'
end

-- Numbers as text: left to redis.call() they cost more.
local function digits(n)
  return format('%d', n)
end

-- ---- types: see layout.h for the record ----

local function type_of(name)
  local t = types[name]
  if t == nil then
    local got = call('HMGET', KEYS[TYPES], name, '*')
    t = got[1] and { sunpack(TYPE_RECORD, got[1]) }
    types[name] = t
    if types['*'] == nil then types['*'] = got[2] and { sunpack(TYPE_RECORD, got[2]) } end
  end
  return t
end

function layout.new_type()
  return { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }
end

-- The record whose settings hold for a type.
local settings_of
do
  local default = { [T_COMPLETE_AGE] = DEFAULT_KEEP_COMPLETE_MS,
                    [T_COMPLETE_COUNT] = DEFAULT_KEEP_COMPLETE,
                    [T_FAILED_AGE] = DEFAULT_KEEP_FAILED_MS, [T_FAILED_COUNT] = 0,
                    [T_SEARCH] = 0 }
  function settings_of(name)
    local t = type_of(name)
    if t and t[T_HAS_SETTINGS] == 1 then return t end
    local all = types['*']
    return all and all[T_HAS_SETTINGS] == 1 and all or default
  end
end

-- ---- events ----

local function want(at)
  if at < due then due = at end
end

local function emit(event)
  n_events = n_events + 1
  events[n_events] = event
end

-- An event as MessagePack, its numbers as wide as they may become: one string is made, not many.
local function event_of(kind, state, id, name, attempts, progress, delivery, text)
  if text then
    return spack('>BBBBc0BI4BBBI4BI4c0BI8', kind, state, 217, #name, name, 206, attempts, 204,
                 progress, 206, delivery, 219, #text, text, 207, id)
  end
  return spack('>BBBBc0BI4BBBI4BBI8', kind, state, 217, #name, name, 206, attempts, 204, progress,
               206, delivery, 194, 207, id)
end

-- Jobs whose ids follow each other, as one event.
local function emit_run(kind, state, first, count, name, attempts, progress, delivery, text)
  if count == 1 then
    emit(event_of(kind, state, first, name, attempts, progress, delivery, text))
  else
    emit(event_of(kind + RUN_OF, state, first, name, attempts, progress, delivery, text))
    emit(spack('>BI4BI4', 206, count, 206, partitions))
  end
end

-- The first bytes of a text in MessagePack.
local text_head

do

local text_heads = {}

function text_head(length)
  local head = text_heads[length]
  if not head then
    head = length < 32 and char(160 + length) or length < 256 and char(217, length) or
           spack('>BI4', 219, length)
    if length < 256 then text_heads[length] = head end
  end
  return head
end

end
