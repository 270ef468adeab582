-- 3_more.lua - all that the busy steps do not need: records as tables, what is derived from a job
-- (its place in the set of its state, when it is due, its unique key, its words, its log), and the
-- other steps. more() ends in 6_verify.lua; it answers with what the busy steps may want after all.

local more_made

more = function()
if more_made then return more_made end
more_made = {}

-- The numbers of a record: see layout.h.
local NUMBERS = '>I7I7I7BBI4I4I4I4I7I7I7I7BBBI2Bi4I4I4I7I7I7I7I7'

local function decode(r)
  local j = { sunpack(NUMBERS, r) }
  local texts = AT_TYPE + j[TYPE_LEN]
  j[TYPE] = sub(r, AT_TYPE, texts - 1)
  local rest
  rest, j[UNIQUE_KEY], j[SEARCH_KEYS], j[RESULT], j[ERROR], j[PROGRESS_DATA], j[WORKER] =
    unpack_some(r, 6, texts - 1)
  j[SHORT_DATA] = rest >= 0 and sub(r, rest + 1) or ''
  return j
end

local function encode(j)
  local fixed = j[TYPE] .. pack(j[UNIQUE_KEY], j[SEARCH_KEYS])
  j[FIXED_LEN], j[TYPE_LEN] = #fixed, #j[TYPE]
  return spack(NUMBERS, unpack(j, 1, NUMBERS_END)) .. fixed ..
         pack(j[RESULT], j[ERROR], j[PROGRESS_DATA], j[WORKER]) .. j[SHORT_DATA]
end

local function store(id, r)
  records[id], dirty[id] = r, true
end

local function job(id)
  local r = record(id)
  return r and decode(r)
end

local function type_in(r)
  return sub(r, AT_TYPE, AT_TYPE + byte(r, AT_TYPE_LEN) - 1)
end

local function has(flags, flag)
  return flags % (2 * flag) >= flag
end

local function finished(state)
  return state >= COMPLETE
end

local function mark(key, member, score)
  changes[key][member] = score
end

local function want(at)
  if at < due then due = at end
end

local function tell(event)
  n_events = n_events + 1
  events[#events + 1] = event
end

local function tell_of(kind, j, id, text)
  tell(event_of(kind, j[STATE], id, j[TYPE], j[ATTEMPTS], j[PROGRESS], j[DELIVERY], text))
end

-- How long, and how many, of a type's jobs in a finished state are kept: of those, its share.
local function keep_of(name, state)
  local s = settings_of(name)
  if not s then return 0, 0 end
  if state == COMPLETE then return s[3], math.ceil(s[4] / partitions) end
  return s[5], math.ceil(s[6] / partitions)
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

-- ---- ids ----

local function count_block(name, id, by)
  local block = name .. '\0' .. spack('>I8', floor(floor(id / partitions) / BLOCK))
  blocks[block] = (blocks[block] or 0) + by
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
  if j[LINES] > 0 then many('HDEL', LOG, log_fields(j[LINES], id)) end
  if has(j[FLAGS], SEARCHED) then forget_words(id, id8) end
  count_block(j[TYPE], tonumber(id), -1)
  if j[SHORT_DATA] == '' then call('HDEL', KEYS[DATA], id) end
  store(id, false)
end

-- ---- for the busy steps ----

function more_made.forget(id, id8)
  forget(job(id), id, id8)
end

function more_made.let_go(r)
  let_go_of_key(decode(r))
end

more_made.want_retention = want_retention

-- A job with more to it: a delay, a deadline, a unique key, words.
function more_made.add(rec, data, extra)
  local j = decode(now_times .. rec)
  local delay, run_at, _, unique, words = unpack(extra)
  if unique then
    local holder = call('HGET', KEYS[UNIQUE], unique_name(j))
    if holder then return tonumber(holder), byte(record(holder), AT_STATE), 1 end
  end
  local at = now + delay
  if run_at > at then at = run_at end
  j[STATE], j[PROMOTE] = at > now and DELAYED or INACTIVE, at
  local s = settings_of(j[TYPE])
  if s and s[SEARCH] == 1 and not has(j[FLAGS], SEARCHED) then
    j[FLAGS] = j[FLAGS] + SEARCHED
  end
  last = last + 1
  local n = last * partitions + partition
  local id, id8 = format('%d', n), spack('>I8', n)
  store(id, encode(j))
  index(j, id8)
  hold_key(j, id)
  if words and has(j[FLAGS], SEARCHED) then note_words(id, id8, 1, words) end
  if data ~= '' then call('HSET', KEYS[DATA], id, data) end
  return n, j[STATE], 0
end

-- ---- the other steps of workers ----

function steps.R(i)
  local id = ARGV[i]
  local r = held(id, ARGV[i + 1])
  worked = r
  if not r then return -1 end
  local j, id8 = decode(r), id_bytes(id)
  unindex(j, id8)
  j[STATE], j[UPDATED] = INACTIVE, now
  index(j, id8)
  store(id, encode(j))
  tell_of(ENQUEUE, j, tonumber(id))
  return INACTIVE
end

function steps.S(i)
  local id = ARGV[i]
  local r = held(id, ARGV[i + 1])
  if not r then return 0 end
  local j = decode(r)
  j[PROGRESS], j[UPDATED] = tonumber(ARGV[i + 2]), now
  if ARGV[i + 4] == '1' then j[PROGRESS_DATA] = ARGV[i + 3] end
  store(id, encode(j))
  run_ttl(j[TTL_MS], id_bytes(id))
  tell_of(PROGRESS_EVENT, j, tonumber(id), j[PROGRESS_DATA])
  return 1
end

function steps.L(i)
  local id, delivery = ARGV[i], ARGV[i + 1]
  local j, id8 = nil, id_bytes(id)
  if delivery == '0' then
    j = job(id)
    if not j then return -1 end
  else
    local r = held(id, delivery)
    if not r then return 0 end
    j = decode(r)
    run_ttl(j[TTL_MS], id8)
  end
  j[LINES] = add_line(j[LINES], j[FLAGS], id, id8, ARGV[i + 2], ARGV[i + 3])
  store(id, encode(j))
  return 1
end
