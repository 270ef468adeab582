-- 2_index.lua - what is derived from a job: its place in the set of its state, when it is due, its
-- lease and ttl, its unique key, its block of ids, its words, the counters of its type.

-- ---- types: see layout.h for the record ----

local PAUSED, OWN, SEARCH, T_COMPLETED, T_FAILED, T_WORK, T_TAKEN = 1, 2, 7, 8, 9, 10, 11
local types, types_dirty = {}, {}

local function type_of(name)
  local t = types[name]
  if t == nil then
    local r = call('HGET', KEYS[TYPES], name)
    t = r and unpack_msg(r)
    types[name] = t
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

local NO_SETTINGS = { 0, 0, 0, 0, 0, 0, 0 }

local function settings_of(name)
  local t = type_of(name)
  if t and t[OWN] == 1 then return t end
  return type_of('*') or NO_SETTINGS
end

-- How long, and how many, of a type's jobs in a finished state are kept.
local function keep_of(name, state)
  local s = settings_of(name)
  if state == COMPLETE then return s[3], s[4] end
  return s[5], s[6]
end

local function of_type(name)
  return '[' .. name .. '\0', '(' .. name .. '\1'
end

local function count_of(state, name)
  flush(STATE_KEY + state)
  local from, to = of_type(name)
  return call('ZLEXCOUNT', KEYS[STATE_KEY + state], from, to)
end

-- ---- places ----

local function rank_of(j)
  local s = j[STATE]
  if s == INACTIVE then return j[PRIORITY] end
  if s == DELAYED then return j[PROMOTE] end
  if s == ACTIVE then return j[STARTED] end
  return j[FINISHED]
end

local function place_of(j, id8)
  return j[TYPE] .. '\0' .. spack('>I8', rank_of(j) + ZERO_RANK) .. id8
end

local function due_of(j)
  local deadline = j[DEADLINE]
  if j[STATE] == DELAYED then
    if deadline > 0 and deadline < j[PROMOTE] then return deadline end
    return j[PROMOTE]
  end
  return j[STATE] == INACTIVE and deadline or 0
end

local function id_bytes(id)
  return spack('>I8', tonumber(id))
end

local ready = {}                             -- by type: jobs read ahead for the takes; 3_work.lua

-- Put a job where its numbers say it belongs, and take it out. Leases are their makers'.
local function index(j, id8)
  ready[j[TYPE]] = nil
  mark(STATE_KEY + j[STATE], place_of(j, id8), 0)
  local at = due_of(j)
  if at > 0 then
    mark(DUE, id8, at)
    want(at)
  end
end

local function unindex(j, id8)
  ready[j[TYPE]] = nil
  mark(STATE_KEY + j[STATE], place_of(j, id8), false)
  if due_of(j) > 0 then mark(DUE, id8, false) end
  if j[STATE] == ACTIVE then
    mark(LEASE, id8, false)
    if j[TTL_MS] > 0 then mark(TTL, id8, false) end
  end
end

local function run_ttl(ttl, id8)
  if ttl > 0 then
    mark(TTL, id8, now + ttl)
    want(now + ttl)
  end
end

local function ttl_of(r)
  return (sunpack('>I7', r, AT_TTL))
end

local function unique_name(j)
  return j[TYPE] .. '\0' .. j[UNIQUE_KEY]
end

local function hold_key(j, id)
  if j[UNIQUE_KEY] then call('HSET', KEYS[UNIQUE], unique_name(j), id) end
end

local function let_go_of_key(j)
  if j[UNIQUE_KEY] then call('HDEL', KEYS[UNIQUE], unique_name(j)) end
end

-- What is over what its type keeps is due now, or once it is old enough.
local function want_retention(name, state, ended)
  local age, count = keep_of(name, state)
  if age == 0 and count == 0 then return end
  local at = age > 0 and ended + age or huge
  if count > 0 and count_of(state, name) > count then at = AT_ONCE end
  if at < keep_at then keep_at = at end
  want(at)
end

-- ---- ids: a block is there as long as one of its jobs is ----

local blocks = {}

local function count_block(name, id, by)
  local block = name .. '\0' .. spack('>I8', floor(floor(id / partitions) / BLOCK))
  blocks[block] = (blocks[block] or 0) + by
end

local function flush_blocks()
  for block, by in pairs(blocks) do
    if by ~= 0 then
      local n = call('HINCRBY', KEYS[BLOCKS], block, by)
      if n == by then
        mark(IDS, block, 0)
      elseif n <= 0 then
        call('HDEL', KEYS[BLOCKS], block)
        mark(IDS, block, false)
      end
    end
  end
  blocks = {}
end

-- ---- words: FOUND has, for a job that is searched, those of its data and those of its log ----

local function note_words(id, id8, which, words)
  local r = call('HGET', KEYS[FOUND], id)
  local found = r and unpack_msg(r) or { {}, {} }
  if which == 1 then
    local stays = {}
    for _, w in ipairs(found[2]) do stays[w] = true end
    for _, w in ipairs(found[1]) do
      if not stays[w] then mark(WORDS, w .. '\0' .. id8, false) end
    end
    found[1] = words
  else
    local there = {}
    for _, w in ipairs(found[2]) do there[w] = true end
    for _, w in ipairs(words) do
      if not there[w] then
        there[w] = true
        found[2][#found[2] + 1] = w
      end
    end
  end
  for _, w in ipairs(words) do mark(WORDS, w .. '\0' .. id8, 0) end
  call('HSET', KEYS[FOUND], id, pack(found))
end

local function forget_words(id, id8)
  local r = call('HGET', KEYS[FOUND], id)
  if not r then return end
  local found = unpack_msg(r)
  for which = 1, 2 do
    for _, w in ipairs(found[which]) do mark(WORDS, w .. '\0' .. id8, false) end
  end
  call('HDEL', KEYS[FOUND], id)
end

-- ---- log ----

-- Append a line; answers how many there are then. `n`: how many there were.
local function add_line(n, flags, id, id8, text, words)
  n = n + 1
  call('HSET', KEYS[LOG], id .. ':' .. n, format('%d ', now) .. text)
  if n > MAX_LOG then call('HDEL', KEYS[LOG], id .. ':' .. (n - MAX_LOG)) end
  if words ~= '' and has(flags, SEARCHED) then note_words(id, id8, 2, unpack_msg(words)) end
  return n
end

local function log_fields(lines, id)
  local fields = {}
  for n = math.max(1, lines - MAX_LOG + 1), lines do
    fields[#fields + 1] = id .. ':' .. n
  end
  return fields
end

-- ---- gone ----

local function forget(j, id, id8)
  unindex(j, id8)
  if not finished(j[STATE]) then let_go_of_key(j) end
  if j[LINES] > 0 then many('HDEL', LOG, log_fields(j[LINES], id), 1) end
  if has(j[FLAGS], SEARCHED) then forget_words(id, id8) end
  count_block(j[TYPE], tonumber(id), -1)
  call('HDEL', KEYS[DATA], id)
  store(id, false)
end

-- ---- writing back ----

local new_jobs, new_data, n_new = {}, {}, 0  -- fields and values of jobs that were added

local function flush_jobs()
  if n_new > 0 then
    many('HSET', JOBS, new_jobs, 2)
    many('HSET', DATA, new_data, 2)
    new_jobs, new_data, n_new = {}, {}, 0
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
  many('HSET', JOBS, set, 2)
  many('HDEL', JOBS, gone, 1)
end

local function flush_all()
  flush_jobs()
  flush_blocks()
  for key in pairs(changes) do flush(key) end
  for name in pairs(types_dirty) do call('HSET', KEYS[TYPES], name, pack(types[name])) end
  types_dirty = {}
end
