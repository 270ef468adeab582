-- 4_index.lua - what is derived from a job: its places in Kue's sets and in ours, tokens, its
-- unique key, its words, its log, the counters of its type.

-- ---- types: see layout.h for the record ----

local function type_of(name)
  local t = types[name]
  if t == nil then
    local r = call('HGET', TYPES, name)
    t = r and unpack_msg(r)
    types[name] = t
  end
  return t
end

function layout.new_type()
  return { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }
end

-- Kue's set of types has the types that had a job, ours also the configured types.
local function type_known(name)
  if known[name] then return end
  known[name] = true
  call('SADD', KNOWN, name)
end

local function type_names()
  local names, seen = call('SMEMBERS', KNOWN), {}
  for _, name in ipairs(names) do seen[name] = true end
  for _, name in ipairs(call('HKEYS', TYPES)) do
    if not seen[name] and name ~= '*' then names[#names + 1] = name end
  end
  table.sort(names)
  return names
end

local NO_SETTINGS = { 0, 0, 0, 0, 0, 0, 0 }

local function settings_of(name)
  local t = type_of(name)
  if t and t[T_HAS_SETTINGS] == 1 then return t end
  return type_of('*') or NO_SETTINGS
end

-- How long, and how many, of a type's jobs in a finished state are kept.
local function keep_of(name, state)
  local s = settings_of(name)
  if state == COMPLETE then return s[T_COMPLETE_AGE], s[T_COMPLETE_COUNT] end
  return s[T_FAILED_AGE], s[T_FAILED_COUNT]
end

local function read_keep()
  if keep_at then return end
  keep_at = tonumber(call('HGET', META, 'keep') or '') or huge
  first_keep = keep_at
end

local function want_retention(j)
  local age, count = keep_of(j[TYPE], j[STATE])
  if age == 0 and count == 0 then return end
  local at = age > 0 and j[FINISHED_AT] + age or huge
  if count > 0 and card(keys_of(j[TYPE])[j[STATE]]) > count then at = AT_ONCE end
  read_keep()
  if at < keep_at then keep_at = at end
  want(at)
end

-- ---- tokens: workers of Kue and of Vert.x Kue wait at a list for one per inactive job ----

-- Before the set of a type's inactive jobs changes. VERTX: how many there were.
local function touch(name)
  if touched[name] == nil then
    touched[name] = VERTX and card(keys_of(name)[INACTIVE]) or true
  end
end

local function set_tokens(list, tokens, wanted)
  if tokens > wanted then
    call('LTRIM', list, tokens - wanted, -1)
  elseif tokens < wanted then
    local ones = {}
    for k = 1, wanted - tokens do ones[k] = '1' end
    many('LPUSH', list, ones, 1)
  end
end

-- Kue's workers take an empty set in their stride: there are as many tokens as jobs. One of Vert.x
-- Kue's stops for good when it has a token and finds no job. Between its two steps its token is
-- gone and its job still there, so the list changes by what we have put in or taken out, no more.
local function level_tokens(name, before, only_up)
  local list, waiting = P .. name .. ':jobs', card(keys_of(name)[INACTIVE])
  local tokens = call('LLEN', list)
  if VERTX then
    set_tokens(list, tokens, max(0, min(tokens + waiting - before, waiting)))
  elseif not only_up or tokens < waiting then
    set_tokens(list, tokens, waiting)
  end
end

-- VERTX: the number of jobs of the type that have a token in the list. The others are about to be
-- taken.
local function free_tokens(name)
  local tokens, before = call('LLEN', P .. name .. ':jobs'), touched[name]
  return before and tokens + card(keys_of(name)[INACTIVE]) - before or tokens
end

-- VERTX: tokens of workers that died before they took their job are lost, and so is a list that
-- somebody deleted. Then jobs wait, there is no token, and for a while the first of them is not
-- taken: nobody is about to.
local function mend_tokens(name)
  local list, key, field = P .. name .. ':jobs', keys_of(name)[INACTIVE], 'stuck ' .. name
  local waiting, tokens = card(key), call('LLEN', list)
  if tokens > waiting then set_tokens(list, tokens, waiting) end
  if tokens > 0 or waiting == 0 then
    call('HDEL', META, field)
    return
  end
  local head, noted = digits(waiting) .. ' ' .. call('ZRANGE', key, 0, 0)[1],
                      call('HGET', META, field)
  local at, was = string.match(noted or '', '^(%d+) (.*)$')
  if was ~= head then
    call('HSET', META, field, now_text .. ' ' .. head)
  elseif math.abs(now - tonumber(at)) >= EVERY then
    set_tokens(list, 0, waiting)
    call('HDEL', META, field)
    for _, zid in ipairs(call('ZRANGE', key, 0, HEADS - 1)) do   -- they are announced again
      call('HDEL', JOB .. (id_of(zid) or ''), 'weir_announced')
    end
  end
end

-- ---- places ----

-- Kue's scores: when a delayed job is due; for an active one with a ttl when that is over (a little
-- later, so that Kue's own watcher steps in only when nobody else does), and without one a number
-- that is no time; else the priority.
local function score_of(j)
  if j[STATE] == DELAYED then return j[PROMOTE_AT] end
  if j[STATE] ~= ACTIVE then return j[PRIORITY] end
  if j[TTL_MS] > 0 then return now + j[TTL_MS] + KUE_TTL_GRACE end
  return -math.abs(j[PRIORITY])
end

-- All of these jobs, which are as this one.
local function place(j, zids)
  local state, keys, priority = j[STATE], keys_of(j[TYPE]), j[PRIORITY]
  if state == INACTIVE then touch(j[TYPE]) end
  put_in(ALL[state], zids, score_of(j))
  put_in(keys[state], zids, priority)
  if finished(state) then
    put_in(keys[state + 10], zids, j[FINISHED_AT])
    return
  end
  for k = 1, VERTX and state == INACTIVE and #zids or 0 do
    call('HSET', JOB .. id_of(zids[k]), 'weir_announced', digits(j[UPDATED_AT]))
  end
  if state == DELAYED then want(j[PROMOTE_AT]) end
  if j[DEADLINE_AT] > 0 and state ~= ACTIVE then
    put_in(DEADLINES, zids, j[DEADLINE_AT])
    want(j[DEADLINE_AT])
  end
end

local function unplace(j, zids)
  local state, keys = j[STATE], keys_of(j[TYPE])
  if state == INACTIVE then touch(j[TYPE]) end
  take_out(ALL[state], zids)
  take_out(keys[state], zids)
  if finished(state) then
    take_out(keys[state + 10], zids)
    return
  end
  if state == ACTIVE then
    take_out(LEASE, zids)
    if j[TTL_MS] > 0 then
      take_out(TTL, zids)
      take_out(ASKED, zids)
    end
  elseif j[DEADLINE_AT] > 0 then
    take_out(DEADLINES, zids)
  end
end

local function run_ttl(j, zids)
  if j[TTL_MS] > 0 then
    put_in(ALL[ACTIVE], zids, score_of(j))
    put_in(TTL, zids, now + j[TTL_MS])
    want(now + j[TTL_MS])
  end
end

local unique_name, holder_of, hold_key, let_go_of_key, time_field, add_line, forget

do

-- ---- unique keys: field TYPE \0 KEY. Kue does not use them, so a holder may have ended ----

function unique_name(j)
  return j[TYPE] .. '\0' .. j[UNIQUE_KEY]
end

-- The id and state of the job that holds this one's key.
function holder_of(j)
  if not j[UNIQUE_KEY] then return nil end
  local id = call('HGET', UNIQUE, unique_name(j))
  local holder = id and job(id)
  if holder and not finished(holder[STATE]) and holder[UNIQUE_KEY] and
     unique_name(holder) == unique_name(j) then
    return id, holder[STATE]
  end
end

function hold_key(j, id)
  if j[UNIQUE_KEY] then call('HSET', UNIQUE, unique_name(j), id) end
end

function let_go_of_key(j, id)
  if j[UNIQUE_KEY] and call('HGET', UNIQUE, unique_name(j)) == id then
    call('HDEL', UNIQUE, unique_name(j))
  end
end

-- ---- log: Kue's list has the texts. The number of a line is its place there plus the number of
-- those that were cut off; when it was written is in fields of the hash, 100 lines in each:
-- weir_log0 = "1:TIME 2:TIME ". Lines of Kue's have no time. ----

function time_field(n)
  return 'weir_log' .. floor((n - 1) / LINES_A_FIELD)
end

local function cut_log(id, length, cut)
  local over = length - MAX_LOG
  call('LTRIM', JOB .. id .. ':log', over, -1)
  call('HSET', JOB .. id, 'weir_cut', cut + over)
  for n = cut + 1, cut + over do
    if n % LINES_A_FIELD == 0 then call('HDEL', JOB .. id, time_field(n)) end
  end
end

function add_line(j, id, text, words)
  local length = call('RPUSH', JOB .. id .. ':log', text)
  local cut = int(call('HGET', JOB .. id, 'weir_cut'))
  local n = cut + length
  local field = time_field(n)
  local times = n % LINES_A_FIELD ~= 1 and call('HGET', JOB .. id, field) or ''
  call('HSET', JOB .. id, field, times .. n .. ':' .. now_text .. ' ')
  if length > MAX_LOG then cut_log(id, length, cut) end
  if words ~= '' and j[FLAGS] >= SEARCHED then note_words(id, 2, unpack_msg(words)) end
end

-- ---- gone ----

function forget(j, id)
  local zids = { zid_of(id) }
  unplace(j, zids)
  take_out(JOBS, zids)
  if not finished(j[STATE]) then let_go_of_key(j, id) end
  if j[FLAGS] >= SEARCHED then forget_words(id) end
  call('DEL', JOB .. id, JOB .. id .. ':log')
end

end

-- ---- writing back ----

local function flush_all()
  for name, before in pairs(touched) do level_tokens(name, before) end
  touched = {}
  flush_sets()
  for name in pairs(types_dirty) do call('HSET', TYPES, name, pack(types[name])) end
  types_dirty = {}
end
