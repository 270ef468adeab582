-- 2_record.lua - between Kue's hash of a job and weir's record of it. Whoever wrote the hash, the
-- record is one that core/job.c allows: what cannot be is made what comes nearest to it. What is
-- kept of weir's own is in fields "weir_...", which Kue leaves alone.

-- In a raw answer of HMGET, what Kue and weir call the same is where the record has it.
local HELD, SEARCHED, OWN_DELAY, CUT = 12, 13, 14, 22
local CANCEL_MARK, OWN_PRIORITY, DATA, NO_BACKOFF = 32, 33, 34, 35
local FIELDS = {
  'state', 'type', 'priority', 'attempts', 'max_attempts', 'weir_delivery', 'weir_lost',
  'weir_max_lost', 'progress', 'removeOnComplete', 'backoff', 'weir_held', 'weir_search',
  'weir_delay', 'delay', 'ttl', 'weir_deadline', 'started_at', 'failed_at', 'weir_finished',
  'duration', 'weir_cut', 'weir_unique', 'weir_keys', VERTX and 'weir_worker' or 'workerId',
  'error', 'result', VERTX and 'weir_progress_data' or 'progress_data', 'created_at', 'promote_at',
  'updated_at', 'weir_cancelled', 'weir_priority', 'data', 'weir_no_backoff',
}
local ZERO = VERTX and '0' or false          -- how "none" is written where Vert.x Kue writes always
local MAX_MS = 100 * 366 * 86400 * 1000      -- WEIR_MAX_MS
local MAX_TIMES = 1000000                    -- WEIR_MAX_ATTEMPTS
local DEFAULT_MAX_LOST = 3
local REMOVE_FLAG, SEARCH_FLAG = 1, 2

-- ---- numbers ----

local function int(text, highest)
  local n = text and tonumber(text)
  if not n or not (n > 0) then return 0 end
  return floor(min(n, highest or HIGHEST))
end

local function digits(n)
  return format('%d', n)
end

local function digits_or(n, none)
  return n > 0 and format('%d', n) or none
end

local name_of, priority_of, backoff_of, backoff_text
local NAMED = { LOW = 10, NORMAL = 0, MEDIUM = -5, HIGH = -10, CRITICAL = -15 }

do

-- ---- priorities: Vert.x Kue knows five names, and deletes jobs with another ----

function name_of(priority)
  local best, distance = 'NORMAL', huge
  for name, value in pairs(NAMED) do
    local d = math.abs(value - priority)
    if d < distance or d == distance and value < NAMED[best] then best, distance = name, d end
  end
  return best
end

function priority_of(h)
  local text = h[PRIORITY]
  if VERTX then
    local own = tonumber(h[OWN_PRIORITY] or '')
    if own and name_of(own) == text then return own end
    if NAMED[text or ''] then return NAMED[text] end
  end
  local n = tonumber(text or 0)
  if not n or n ~= n or n > 2147483647 or n < -2147483648 then return 0 end
  return floor(n)
end

-- ---- backoff ----

-- What Kue would evaluate is only parsed: an object of type fixed or exponential, or true. Anything
-- else is no backoff. Kue's cap is short by half the delay; "max" is our own, exact one.
local function parse_backoff(text, delay)
  if text == 'true' then return 1, 0, 0, 0 end
  if #text > 1000 or string.sub(text, 1, 1) ~= '{' then return 0, 0, 0, 0 end
  local ok, b = pcall(cjson.decode, text)
  local kind = ok and type(b) == 'table' and
               (b.type == 'fixed' and 1 or b.type == 'exponential' and 2) or 0
  if kind == 0 then return 0, 0, 0, 0 end
  local function ms(v)
    if type(v) ~= 'number' and type(v) ~= 'string' then return 0 end
    return int(v, MAX_MS)
  end
  local base, cap = ms(b.delay), ms(b.max)
  if cap == 0 and ms(b.maxDelay) > 0 and kind == 2 then
    local half = (base > 0 and base or delay) / 2
    cap = max(1, floor(min(tonumber(b.maxDelay), MAX_MS) - half + 0.5))
  end
  return kind, base, cap, min(ms(b.jitter), 100)
end

local backoffs = {}

-- weir keeps the numbers of a backoff also when its kind is none: "DELAY MAX JITTER".
function backoff_of(h, delay)
  local text = h[BACKOFF]
  if not text or text == '' then
    local base, cap, jitter = string.match(h[NO_BACKOFF] or '', '^(%d+) (%d+) (%d+)$')
    return 0, int(base, MAX_MS), int(cap, MAX_MS), int(jitter, 100)
  end
  local key = delay .. ' ' .. text
  local b = backoffs[key]
  if not b then
    b = { parse_backoff(text, delay) }
    backoffs[key] = b
  end
  return b[1], b[2], b[3], b[4]
end

function backoff_text(j)
  local text = j[BACKOFF] == 2 and '{"type":"exponential"' or '{"type":"fixed"'
  if j[BACKOFF_MS] > 0 then text = text .. format(',"delay":%d', j[BACKOFF_MS]) end
  if j[BACKOFF_MAX] > 0 then
    local base = j[BACKOFF_MS] > 0 and j[BACKOFF_MS] or j[DELAY]
    text = text .. format(',"maxDelay":%.1f,"max":%d', j[BACKOFF_MAX] + base / 2, j[BACKOFF_MAX])
  end
  if j[JITTER] > 0 then text = text .. format(',"jitter":%d', j[JITTER]) end
  return text .. '}'
end

end

-- ---- from the hash ----

local is_ours, record_of

do

-- nil: not a state that we know, or none yet.
local function state_of(h)
  local state = NUMBER_OF[h[STATE] or '']
  if VERTX and state == FAILED and h[CANCEL_MARK] and h[CANCEL_MARK] == (h[FAILED_AT] or '0') then
    return CANCELLED
  end
  return state
end

-- Is it active in the hands of a worker of weir's? Kue writes started_at when it takes a job.
function is_ours(h)
  return h[STATE] == WORD[ACTIVE] and h[HELD] and h[HELD] == h[STARTED]
end

-- weir_finished is "STARTED FINISHED", and holds for the run that started then.
local function finished_at(h, state)
  local started, at = string.match(h[FINISHED] or '', '^(%d+) (%-?%d+)$')
  if started and started == (h[STARTED] or '0') then return tonumber(at) end
  if state == COMPLETE and int(h[STARTED]) > 0 then return int(h[STARTED]) + int(h[DURATION]) end
  if state == FAILED and int(h[FAILED_AT]) > 0 then return int(h[FAILED_AT]) end
  return int(h[UPDATED])
end

local function attempts_of(h, state, most)
  local n = min(int(h[ATTEMPTS]), most)
  if not finished(state) then return min(n, most - 1) end
  if state ~= COMPLETE then return n end
  return max(1, VERTX and min(n + 1, most) or n)
end

-- nil: not a job (yet).
function record_of(h)
  local state = state_of(h)
  if not h[TYPE] or h[TYPE] == '' or not state then return nil end
  local most, done = max(1, int(h[MAX_ATTEMPTS], MAX_TIMES)), state == COMPLETE
  local delay = int(h[OWN_DELAY] or h[DELAY], MAX_MS)
  local kind, base, cap, jitter = backoff_of(h, delay)
  local delivery, worker, err = int(h[DELIVERY]), h[WORKER], h[ERROR]
  if state == ACTIVE and not is_ours(h) then
    delivery, worker = delivery + 1, worker or '?'
  end
  if state == FAILED then err = err or '' end
  local lost_most = h[MAX_LOST] and max(1, int(h[MAX_LOST], MAX_TIMES)) or DEFAULT_MAX_LOST
  local remove = h[FLAGS]
  local flags = remove and remove ~= '' and remove ~= 'false' and remove ~= '0' and REMOVE_FLAG or 0
  if h[SEARCHED] then flags = flags + SEARCH_FLAG end
  return {
    state, h[TYPE], priority_of(h), attempts_of(h, state, most), most, delivery,
    min(int(h[LOST]), lost_most), lost_most, done and 100 or min(int(h[PROGRESS]), 100), flags,
    kind, base, cap, jitter, delay, int(h[TTL_MS], MAX_MS), int(h[DEADLINE]), int(h[STARTED]),
    int(h[FAILED_AT]), finished(state) and finished_at(h, state) or 0,
    done and int(h[DURATION], MAX_MS) or 0, 0, h[UNIQUE_KEY], h[KEYS_TEXT], worker,
    not done and err, done and h[RESULT], h[PROGRESS_DATA], int(h[CREATED]), int(h[PROMOTE]),
    int(h[UPDATED]),
  }
end

end

-- The job and its raw hash.
local function job(id)
  local h = call('HMGET', JOB .. id, unpack(FIELDS))
  return record_of(h), h
end

-- The job that a worker of ours holds with this delivery.
local function held(id, delivery)
  local j, h = job(id)
  if j and is_ours(h) and j[DELIVERY] == tonumber(delivery) then return j, h end
end

-- ---- to the hash ----

local finished_text, ENCODE, encode_rest

do

-- In the state delayed, Kue makes promote_at anew from the last failure (or the making) and the
-- delay whenever it saves the job: so that is what `delay` says then, and weir's own is beside it.
local function delay_fields(j)
  if j[STATE] ~= DELAYED then return nil end
  local since = j[FAILED_AT] > 0 and j[FAILED_AT] or j[CREATED]
  local delay = j[PROMOTE] - since
  if delay <= 0 or delay == j[DELAY] then return digits_or(j[DELAY], ZERO), false end
  return digits(delay), digits(j[DELAY])
end

function finished_text(j)
  if not finished(j[STATE]) then return false end
  local state, at = j[STATE], j[FINISHED]
  if state == COMPLETE and j[STARTED] > 0 and at == j[STARTED] + j[DURATION] then return false end
  if state == FAILED and at == j[FAILED_AT] then return false end
  return format('%d %d', j[STARTED], at)
end

local function state_word(state)
  return VERTX and state == CANCELLED and WORD[FAILED] or WORD[state]
end

-- How the values of a record are written: function(j, raw hash) -> text, or false: not there.
local function a_number(field, none)
  return function(j) return digits_or(j[field], none) end
end
local function a_text(field)
  return function(j) return j[field] end
end

ENCODE = {
  [STATE] = function(j) return state_word(j[STATE]) end,
  [TYPE] = a_text(TYPE),
  [PRIORITY] = function(j) return VERTX and name_of(j[PRIORITY]) or digits(j[PRIORITY]) end,
  [ATTEMPTS] = function(j)
    return digits_or(VERTX and j[STATE] == COMPLETE and j[ATTEMPTS] - 1 or j[ATTEMPTS], ZERO)
  end,
  [MAX_ATTEMPTS] = a_number(MAX_ATTEMPTS, '1'),
  [DELIVERY] = a_number(DELIVERY, false),
  [LOST] = a_number(LOST, false),
  [MAX_LOST] = function(j)
    return j[MAX_LOST] ~= DEFAULT_MAX_LOST and digits(j[MAX_LOST])
  end,
  [PROGRESS] = a_number(PROGRESS, ZERO),
  [FLAGS] = function(j) return j[FLAGS] % 2 == 1 and 'true' or VERTX and 'false' end,
  [SEARCHED] = function(j) return j[FLAGS] >= SEARCH_FLAG and '1' end,
  [TTL_MS] = a_number(TTL_MS, ZERO),
  [DEADLINE] = a_number(DEADLINE, false),
  [STARTED] = a_number(STARTED, ZERO),
  [FAILED_AT] = a_number(FAILED_AT, ZERO),
  [FINISHED] = finished_text,
  [DURATION] = a_number(DURATION, ZERO),
  [UNIQUE_KEY] = a_text(UNIQUE_KEY),
  [KEYS_TEXT] = a_text(KEYS_TEXT),
  [WORKER] = a_text(WORKER),
  [ERROR] = a_text(ERROR),
  [RESULT] = a_text(RESULT),
  [PROGRESS_DATA] = a_text(PROGRESS_DATA),
  [CREATED] = a_number(CREATED, '0'),
  [PROMOTE] = a_number(PROMOTE, '0'),
  [UPDATED] = a_number(UPDATED, '0'),
  [CANCEL_MARK] = function(j)
    return VERTX and j[STATE] == CANCELLED and digits(j[FAILED_AT])
  end,
  [OWN_PRIORITY] = function(j)
    return VERTX and NAMED[name_of(j[PRIORITY])] ~= j[PRIORITY] and digits(j[PRIORITY])
  end,
}

-- Fields that the record does not hold one by one: backoff and delay. A foreign text in backoff
-- stays as long as there is no backoff of ours to put there.
function encode_rest(j, h, put)
  local delay, own = delay_fields(j)
  if delay == nil and int(h[OWN_DELAY] or h[DELAY], MAX_MS) ~= j[DELAY] then
    delay, own = digits_or(j[DELAY], ZERO), false
  end
  if delay ~= nil then
    put(DELAY, delay)
    put(OWN_DELAY, own)
  end
  local kind, base, cap, jitter = backoff_of(h, j[DELAY])
  if kind ~= j[BACKOFF] or base ~= j[BACKOFF_MS] or cap ~= j[BACKOFF_MAX] or jitter ~= j[JITTER] then
    put(BACKOFF, j[BACKOFF] > 0 and backoff_text(j))
    put(NO_BACKOFF, j[BACKOFF] == 0 and format('%d %d %d', j[BACKOFF_MS], j[BACKOFF_MAX], j[JITTER]))
  end
end

end

local NOTHING = {}

-- Make the hash say what the record says; what says it already is not written. `data` may be nil.
local function write_job(id, j, h, data)
  local set, clear = {}, {}
  local function put(field, value)
    local raw = h[field]
    if value then
      if value ~= raw then set[#set + 1], set[#set + 2] = FIELDS[field], value end
    elseif raw then
      clear[#clear + 1] = FIELDS[field]
    end
  end
  for field, encode in pairs(ENCODE) do put(field, encode(j)) end
  encode_rest(j, h, put)
  if data then set[#set + 1], set[#set + 2] = 'data', data end
  if #set > 0 then call('HSET', JOB .. id, unpack(set)) end
  if #clear > 0 then call('HDEL', JOB .. id, unpack(clear)) end
end

-- What Vert.x Kue wants besides. Nothing random is to be had here, so the address is made from
-- what is different for every job.
local function identify(id)
  if not VERTX then return end
  local x = redis.sha1hex(P .. origin .. ARGV[3] .. id .. now_text)
  local uuid = table.concat({ string.sub(x, 1, 8), string.sub(x, 9, 12), '4' .. string.sub(x, 14, 16),
                              'a' .. string.sub(x, 18, 20), string.sub(x, 21, 32) }, '-')
  call('HSET', JOB .. id, 'id', id, 'zid', zid_of(id), 'address_id', uuid)
end
