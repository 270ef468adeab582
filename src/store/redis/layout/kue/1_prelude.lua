-- 1_prelude.lua - the layouts of Kue and of Vert.x Kue: what every step uses. layout.h says what
-- the steps do, docs/kue.md what the keys hold. The line before this file says which of the two it
-- is: VERTX. Changes of sorted sets gather, so that one command writes those of a key; hashes are
-- written at once.
--
-- Redis runs this text once, when the library is loaded, and run_steps() (run.lua) at every call.
-- The state of a call is in the locals here, and made anew by begin().

local steps = {}                   -- by letter
local layout = {}                  -- what the files in layout/common call
local WORD = VERTX and { 'INACTIVE', 'DELAYED', 'ACTIVE', 'COMPLETE', 'FAILED', 'CANCELLED' } or
             { 'inactive', 'delayed', 'active', 'complete', 'failed', 'cancelled' }
local NUMBER_OF = {}
for state = INACTIVE, CANCELLED do NUMBER_OF[WORD[state]] = state end

-- Functions of Lua are not available while a library is loaded: see prepare().
local call, pack, unpack_msg, spack, sunpack, tonumber, unpack, pairs, ipairs
local format, floor, huge, min, max

-- ---- keys, Kue's and ours. None of ours ends in ":jobs": that is the wake-up list of a type ----

local prefix                       -- the last one: its keys are kept
local P, JOB, JOBS, IDS, KNOWN, WORK_TIME
local W, LEASE, TTL, DEADLINES, ASKED, UNIQUE, TYPES, META, WORDS, FOUND, TOKENS, TOKENS_AT
local SCHEDULES
local ALL = {}                     -- by state: those of its jobs
local keys_by_type, n_types
local thousand, key_head, zid_head -- see names_of()

-- ---- kept from call to call ----

local LOW = {}                     -- the last three digits of ids, as text: see names_of()
local LONG_MEMBER                  -- see grows()
local spare = {}                   -- lists: to use one again costs less than to let a new one grow

-- ---- of the call ----

local ARGV, now, now_text, origin, number
local texts                        -- see digits()
local mores, backoffs              -- what was read of texts in hashes
local message, n_message, due      -- the message to be published: see emit()
local ins, outs, careful           -- sorted sets: see put_in()
local types, types_dirty, known    -- by name: their records; and Kue's set of types has it
local keep_at, first_keep          -- when something finished has to go: known to all processes
local touched                      -- types whose set of inactive jobs has changed: see touch()
local worked                       -- did the ends of the last step? Or by place. For t
local work_time                    -- of what was completed here
local last, first_last             -- ids: of the last job, now and at first
local quiet                        -- by number: jobs of whose ttl Kue knows already
local ask_about                    -- jobs whose workers are to answer for their ttl: see kue_over()

-- Before the first call.
local function prepare()
  pack, unpack_msg, spack, sunpack = cmsgpack.pack, cmsgpack.unpack, struct.pack, struct.unpack
  tonumber, unpack, pairs, ipairs = _G.tonumber, _G.unpack, _G.pairs, _G.ipairs
  format, floor, huge, min, max = string.format, math.floor, math.huge, math.min, math.max
  LONG_MEMBER = string.rep('\255', 65)
  call = redis.call
end

local function enter(name)
  prefix, P = name, name .. ':'
  W = P .. 'weir:'
  JOB, JOBS, IDS, KNOWN = P .. 'job:', P .. 'jobs', P .. 'ids', P .. 'job:types'
  WORK_TIME = P .. 'stats:work-time'
  LEASE, TTL, DEADLINES, ASKED = W .. 'lease', W .. 'ttl', W .. 'deadline', W .. 'asked'
  UNIQUE, TYPES, META, WORDS, FOUND = W .. 'unique', W .. 'types', W .. 'meta', W .. 'words',
                                      W .. 'found'
  TOKENS, TOKENS_AT = W .. 'tokens', W .. 'tokens:at'
  SCHEDULES = W .. 'schedules'
  for state = INACTIVE, CANCELLED do ALL[state] = JOBS .. ':' .. WORD[state] end
  keys_by_type, n_types, thousand = {}, 0, nil
end

local function begin(args)
  if not call then prepare() end
  if args[4] ~= prefix then enter(args[4]) end
  ARGV, now, origin, number = args, layout.time_of(args[1]), args[2], tonumber(args[3])
  now_text = format('%d', now)
  texts, mores, backoffs, quiet, ask_about = {}, {}, {}, {}, {}
  message, n_message, due = { 0, now, origin, 0 }, 4, huge
  ins, outs, careful = {}, {}, true
  types, types_dirty, known, touched = {}, {}, {}, {}
  keep_at, first_keep, last, first_last = nil, nil, nil, nil
  worked, work_time = false, 0
end

-- Numbers as text. Left to redis.call() they cost twice as much, and the same ones come often.
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

-- The key and the zid of a job. Those of a thousand begin alike, and how is made once.
local function names_of(id)
  local low = id % 1000
  if id == low then return JOB .. digits(id), zid_of(digits(id)) end
  if id - low ~= thousand then
    thousand = id - low
    local head = format('%d', thousand / 1000)
    key_head, zid_head = JOB .. head, format('%02d|', #head + 3) .. head
  end
  local text = LOW[low]
  if not text then
    text = format('%03d', low)
    LOW[low] = text
  end
  return key_head .. text, zid_head .. text
end

-- nil: that is none.
local function id_of(zid)
  local id = string.sub(zid, 4)
  return string.byte(zid, 3) == 124 and tonumber(id) and id or nil
end

local function finished(state)
  return state >= COMPLETE
end

-- The keys of a type: by state the keys of its jobs, by state + 10 the keys of the times at which
-- they ended.
local function keys_of(name)
  local k = keys_by_type[name]
  if not k then
    k = {}
    for state = INACTIVE, CANCELLED do
      k[state] = JOBS .. ':' .. name .. ':' .. WORD[state]
      if finished(state) then k[state + 10] = W .. 'done:' .. name .. ':' .. WORD[state] end
    end
    if n_types == KEPT_TYPES then keys_by_type, n_types = {}, 0 end
    keys_by_type[name], n_types = k, n_types + 1
  end
  return k
end

-- ---- records: see layout.h; here a job is a table: see ../constants.c ----

local SPEC, RUN = SPEC_FORMAT, RUN_FORMAT

-- The run and the spec, without data: that is apart.
local function bytes_of(j)
  local name = j[TYPE]
  local type_len, flags = #name, j[FLAGS] + APART + (j[UNIQUE_KEY] and HAS_KEY or 0)
  return spack(RUN, RUN_NUMBERS_OF_J) .. name .. pack(RUN_TEXTS_OF_J) ..
         (j[HISTORY] and pack(j[HISTORY]) or ''),
         spack(SPEC, SPEC_NUMBERS_OF_J) .. name .. pack(SPEC_TEXTS_OF_J)
end

-- Append to an answer: id, run, spec with data.
local function put_record(answer, id, j, data)
  local n = #answer
  local run, spec = bytes_of(j)
  answer[n + 1], answer[n + 2], answer[n + 3] = spack('>I8', tonumber(id)), run, spec .. data
end

-- `run` may be "": nothing has happened to it yet.
local function fields_of(run, spec)
  local j, flags, type_len = {}, nil, nil
  SPEC_NUMBERS_OF_J = sunpack(SPEC, spec)
  j[FLAGS], j[TYPE] = flags % HAS_KEY, string.sub(spec, SPEC_HEAD + 1, SPEC_HEAD + type_len)
  SPEC_TEXTS_OF_J = unpack_msg(string.sub(spec, SPEC_HEAD + 1 + type_len))
  if run == '' then
    for k = FIRST_RUN_NUMBER, LAST_RUN_NUMBER do j[k] = 0 end
    for k = FIRST_RUN_TEXT, LAST_FIELD do j[k] = false end
    j[STATE], j[PROMOTE_AT], j[UPDATED_AT] = INACTIVE, j[CREATED_AT], j[CREATED_AT]
    return j
  end
  RUN_NUMBERS_OF_J = sunpack(RUN, run)
  RUN_TEXTS_OF_J, j[HISTORY] = unpack_msg(string.sub(run, RUN_HEAD + 1 + type_len))
  return j
end

-- ---- events ----

local function want(at)
  if at < due then due = at end
end

-- `message` has n_message elements, the events from the fifth on: see layout.h. `count`: the number
-- of jobs with consecutive ids that the event is for, or nil.
local function emit(kind, j, id, state, text, count)
  local n = n_message
  message[n + 1], message[n + 2], message[n + 3], message[n + 4] = kind, state, j[TYPE], j[ATTEMPTS]
  message[n + 5], message[n + 6], message[n + 7] = j[PROGRESS], j[DELIVERY], text
  message[n + 8], n_message = tonumber(id), n + 8
  if count and count > 1 then
    message[n + 1], message[n + 9], message[n + 10], n_message = kind + RUN_OF, count, 1, n + 10
  end
end

-- ---- commands with many arguments, `step` of which belong together ----

local function many(command, key, args, step)
  local n = args.n or #args
  step = step or 1
  if n <= MANY then
    if n > 0 then call(command, key, unpack(args, 1, n)) end
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

-- `ins` and `outs` have by key what is to go in, each member behind its score, and what is to come
-- out; `n` elements.
local function list_in(lists, key)
  local list = lists[key]
  if not list then
    list = table.remove(spare) or {}
    list.n = 0
    lists[key] = list
  end
  return list
end

local function is_spare(list)
  if list.n <= MANY and #spare < SPARE then spare[#spare + 1] = list end
end

-- Redis keeps a small set as a list, which it walks for each member; but not a set that has a
-- member of more than 64 bytes. So a set that is about to get many members has such a member for
-- the moment.
local function grows(key, n)
  if n < GROWS or call('ZCARD', key) > SMALL then return false end
  call('ZADD', key, 0, LONG_MEMBER)
  return true
end

-- In this order: a set that was empty in between would be kept as a list again.
local function flush(key)
  local add, remove, grew = ins[key], outs[key], false
  ins[key], outs[key] = nil, nil
  if add then
    grew = grows(key, add.n)
    many('ZADD', key, add, 2)
    is_spare(add)
  end
  if remove then
    many('ZREM', key, remove, 1)
    is_spare(remove)
  end
  if grew then call('ZREM', key, LONG_MEMBER) end
end

local function flush_sets()
  for key in pairs(ins) do flush(key) end
  for key in pairs(outs) do flush(key) end
end

-- A step that may put back what it took out is `careful`: the others (BUSY in run.lua) are not.
local function put_in(key, members, score)
  if careful and outs[key] then flush(key) end
  local list, text = list_in(ins, key), digits(score)
  local n = list.n
  for k = 1, #members do
    list[n + 1], list[n + 2] = text, members[k]
    n = n + 2
  end
  list.n = n
end

local function take_out(key, members)
  local list = list_in(outs, key)
  local n = list.n
  for k = 1, #members do list[n + k] = members[k] end
  list.n = n + #members
end

-- `score` false: out with it.
local function mark(key, member, score)
  if score then put_in(key, { member }, score) else take_out(key, { member }) end
end

local function card(key)
  flush(key)
  return call('ZCARD', key)
end

layout.mark = mark

-- The keys of schedules: their records, when they are due, their names.
function layout.schedule_key(k)
  return SCHEDULES .. (k == 0 and '' or k == 1 and ':due' or ':names')
end

-- The keys of trends: their records, when they are removed.
function layout.trend_key(k)
  return W .. (k == 0 and 'trends' or 'trends:at')
end

function layout.key(key)
  return key
end

function layout.word(word, id)
  return word .. '\0' .. spack('>I8', tonumber(id))
end

function layout.jobs_given(specs)
  return #specs
end

local function first_score(key)
  flush(key)
  return tonumber(call('ZRANGE', key, 0, 0, 'WITHSCORES')[2] or huge)
end
