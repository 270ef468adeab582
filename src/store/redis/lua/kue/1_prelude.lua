-- 1_prelude.lua - the layouts of Kue and of Vert.x Kue: what every step uses. layout.h says what
-- the steps do, docs/kue.md what the keys hold. The line before this file says which of the two it
-- is: VERTX. Changes of sorted sets gather in `changes`, the last one counts; hashes are written at
-- once.
--
-- Redis runs all of this text at every call, and making a function costs time: what only some steps
-- need is made when one of them is there.

local function run_steps(KEYS, ARGV)

local call, pack, unpack_msg = redis.call, cmsgpack.pack, cmsgpack.unpack
local spack, sunpack = struct.pack, struct.unpack
local format, floor, huge, min, max = string.format, math.floor, math.huge, math.min, math.max

-- Which steps are there?
local steps, uses = {}, {}
do
  local i = FIRST
  while ARGV[i] do
    uses[ARGV[i]] = true
    i = i + 2 + ARGV[i + 1]
  end
end
uses.A = uses.A or uses.a          -- which is A and more
local uses_house = uses.K or uses.X
local uses_hand = uses.P or uses.E or uses.C or uses.M
local uses_reads = uses.G or uses.I or uses.F or uses.O or uses.Z
local uses_verify = uses.V or uses.W
local uses_rest = uses_house or uses_hand or uses_reads or uses_verify

-- Kue's keys, and ours. No key of ours ends in ":jobs": that is the wake-up list of a type.
local P = ARGV[4] .. ':'
local W = P .. 'weir:'
local JOB, JOBS, IDS, KNOWN, WORK_TIME = P .. 'job:', P .. 'jobs', P .. 'ids', P .. 'job:types',
                                         P .. 'stats:work-time'
local LEASE, TTL, DEADLINES, ASKED = W .. 'lease', W .. 'ttl', W .. 'deadline', W .. 'asked'
local UNIQUE, TYPES, META = W .. 'unique', W .. 'types', W .. 'meta'
local WORDS, FOUND = W .. 'words', W .. 'found'
local TOKENS, TOKENS_AT = W .. 'tokens', W .. 'tokens:at'

local WORD = { 'inactive', 'delayed', 'active', 'complete', 'failed', 'cancelled' }
local NUMBER_OF = {}
for state, word in ipairs(WORD) do
  if VERTX then WORD[state] = string.upper(word) end
  NUMBER_OF[WORD[state]] = state
end

local now = ARGV[1]
if now == '' then
  local t = call('TIME')
  now = t[1] * 1000 + floor(t[2] / 1000)
else
  now = tonumber(now)
end
local origin, number = ARGV[2], tonumber(ARGV[3])
local now_text = format('%d', now)

-- Numbers as text. Left to redis.call() they cost twice as much, and the same ones come often.
local texts = {}

local function digits(n)
  local text = texts[n]
  if not text then
    text = format('%d', n)
    texts[n] = text
  end
  return text
end

-- "02|10": orders as the ids do, among members with the same score
local function zid_of(id)
  return (#id < 10 and '0' or '') .. digits(#id) .. '|' .. id
end

-- nil: that is none.
local function id_of(zid)
  local id = string.sub(zid, 4)
  return string.byte(zid, 3) == 124 and tonumber(id) and id or nil
end

local function finished(state)
  return state >= COMPLETE
end

-- The keys of a type: by state those of its jobs, by state + 10 those of what ended when.
local keys_by_type = {}

local function keys_of(name)
  local k = keys_by_type[name]
  if not k then
    k = {}
    for state, word in ipairs(WORD) do
      k[state] = JOBS .. ':' .. name .. ':' .. word
      if finished(state) then k[state + 10] = W .. 'done:' .. name .. ':' .. word end
    end
    keys_by_type[name] = k
  end
  return k
end

local ALL = {}                -- the same for jobs of all types
for state, word in ipairs(WORD) do ALL[state] = JOBS .. ':' .. word end

-- ---- records: see layout.h; here a job is a table, with fields as in constants.lua ----

local SPEC, RUN = '>I7BBBBi4I4I4I7I7I7I7I7', '>BBI4I4I4I4I7I7I7I7I7I7BB'

-- The run and the spec, without data: that is apart.
local function bytes_of(j)
  local key, name = j[UNIQUE_KEY], j[TYPE]
  local flags = j[FLAGS] + APART + (key and HAS_KEY or 0)
  return spack(RUN, j[STATE], j[PROGRESS], j[ATTEMPTS], j[DELIVERY], j[LOST], j[LINES],
               j[PROMOTE], j[UPDATED], j[STARTED], j[FAILED_AT], j[FINISHED], j[DURATION], flags,
               #name) .. name .. pack(j[RESULT], j[ERROR], j[PROGRESS_DATA], j[WORKER]) ..
         (j[HISTORY] and pack(j[HISTORY]) or ''),
         spack(SPEC, j[CREATED], flags, j[BACKOFF], j[JITTER], #name, j[PRIORITY],
               j[MAX_ATTEMPTS], j[MAX_LOST], j[BACKOFF_MS], j[BACKOFF_MAX], j[DELAY], j[TTL_MS],
               j[DEADLINE]) .. name .. pack(key, j[KEYS_TEXT])
end

-- Of an answer: id, run, spec with data.
local function put_record(answer, id, j, data)
  local n = #answer
  local run, spec = bytes_of(j)
  answer[n + 1], answer[n + 2], answer[n + 3] = spack('>I8', tonumber(id)), run, spec .. data
end

-- `run` may be "": nothing has happened to it yet.
local function fields_of(run, spec)
  local j, name_len, _ = {}, nil, nil
  j[CREATED], j[FLAGS], j[BACKOFF], j[JITTER], name_len, j[PRIORITY], j[MAX_ATTEMPTS], j[MAX_LOST],
    j[BACKOFF_MS], j[BACKOFF_MAX], j[DELAY], j[TTL_MS], j[DEADLINE] = sunpack(SPEC, spec)
  j[FLAGS], j[TYPE] = j[FLAGS] % HAS_KEY, string.sub(spec, SPEC_END + 1, SPEC_END + name_len)
  j[UNIQUE_KEY], j[KEYS_TEXT] = unpack_msg(string.sub(spec, SPEC_END + 1 + name_len))
  if run == '' then
    j[STATE], j[PROGRESS], j[ATTEMPTS], j[DELIVERY], j[LOST], j[LINES] = INACTIVE, 0, 0, 0, 0, 0
    j[PROMOTE], j[UPDATED], j[STARTED], j[FAILED_AT] = j[CREATED], j[CREATED], 0, 0
    j[FINISHED], j[DURATION], j[RESULT], j[ERROR] = 0, 0, false, false
    j[PROGRESS_DATA], j[WORKER], j[HISTORY] = false, false, false
    return j
  end
  j[STATE], j[PROGRESS], j[ATTEMPTS], j[DELIVERY], j[LOST], j[LINES], j[PROMOTE], j[UPDATED],
    j[STARTED], j[FAILED_AT], j[FINISHED], j[DURATION], _, name_len = sunpack(RUN, run)
  j[RESULT], j[ERROR], j[PROGRESS_DATA], j[WORKER], j[HISTORY] =
    unpack_msg(string.sub(run, RUN_END + 1 + name_len))
  return j
end

-- ---- what will be told ----

local message = { 0, now, origin, 0 }        -- and the events, 8 elements each
local due = huge

local function want(at)
  if at < due then due = at end
end

local told = 4                               -- elements of the message

local function tell(kind, j, id, state, text)
  local n = told
  told = n + 8
  message[n + 1], message[n + 2], message[n + 3], message[n + 4] = kind, state, j[TYPE], j[ATTEMPTS]
  message[n + 5], message[n + 6], message[n + 7] = j[PROGRESS], j[DELIVERY], text
  message[n + 8] = tonumber(id)
end

-- ---- commands with many arguments, `step` of which belong together ----

local function many(command, key, args, step)
  local n = #args
  if n <= MANY then
    if n > 0 then call(command, key, unpack(args)) end
    return
  end
  local size = MANY - MANY % step
  for i = 1, n, size do call(command, key, unpack(args, i, min(i + size - 1, n))) end
end

local function ask_many(command, key, args)
  if #args == 0 then return {} end
  if #args <= MANY then return call(command, key, unpack(args)) end
  local all = {}
  for i = 1, #args, MANY do
    local last = min(i + MANY - 1, #args)
    local some = call(command, key, unpack(args, i, last))
    for k = i, last do all[k] = some[k - i + 1] end
  end
  return all
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
      add[a + 1], add[a + 2] = digits(score), member
      a = a + 2
    else
      r = r + 1
      remove[r] = member
    end
  end
  -- In this order: a set that was empty in between would be kept as a list again, which is walked.
  many('ZADD', key, add, 2)
  many('ZREM', key, remove, 1)
end

local function card(key)
  flush(key)
  return call('ZCARD', key)
end

local function first_score(key)
  flush(key)
  return tonumber(call('ZRANGE', key, 0, 0, 'WITHSCORES')[2] or huge)
end
