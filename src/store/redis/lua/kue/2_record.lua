-- 2_record.lua - between Kue's hash of a job and weir's record of it. Whoever wrote the hash, the
-- record is one that core/job.c allows: what cannot be is made what comes nearest to it. What is
-- kept of weir's own is in fields "weir_...", which Kue leaves alone.

-- In a raw answer of HMGET, what Kue and weir call the same is where the record has it.
local FIELDS = {
  'state', 'type', 'priority', 'attempts', 'max_attempts', 'weir_delivery', 'weir_lost',
  'weir_max_lost', 'progress', 'removeOnComplete', 'backoff', 'weir_held', 'weir_search',
  'weir_delay', 'delay', 'ttl', 'weir_deadline', 'started_at', 'failed_at', 'weir_finished',
  'duration', 'weir_cut', 'weir_unique', 'weir_keys', VERTX and 'weir_worker' or 'workerId',
  'error', 'result', VERTX and 'weir_progress_data' or 'progress_data', 'created_at', 'promote_at',
  'updated_at', 'weir_cancelled', 'weir_priority', 'data', 'weir_no_backoff',
}
local ZERO = VERTX and '0' or false          -- how "none" is written where Vert.x Kue writes always

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

local NAMED = { LOW = 10, NORMAL = 0, MEDIUM = -5, HIGH = -10, CRITICAL = -15 }

-- ---- priorities: Vert.x Kue knows five names, and deletes jobs with another ----

local function name_of(priority)
  local best, distance = 'NORMAL', huge
  for name, value in pairs(NAMED) do
    local d = math.abs(value - priority)
    if d < distance or d == distance and value < NAMED[best] then best, distance = name, d end
  end
  return best
end

local function priority_of(h)
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
local function backoff_of(h, delay)
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

-- ---- from the hash ----

-- nil: not a state that we know, or none yet.
local function state_of(h)
  local state = NUMBER_OF[h[STATE] or '']
  if VERTX and state == FAILED and h[CANCEL_MARK] and h[CANCEL_MARK] == (h[FAILED_AT] or '0') then
    return CANCELLED
  end
  return state
end

-- Is it active in the hands of a worker of weir's? Kue writes started_at when it takes a job.
local function is_ours(h)
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
local function record_of(h)
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

local NOTHING = {}                 -- the raw hash of a job that is new
