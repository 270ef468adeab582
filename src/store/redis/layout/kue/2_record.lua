-- 2_record.lua - from Kue's hash of a job to weir's record of it. Any program may have written the
-- hash; the record is one that core/job.c allows: what cannot be is made what comes nearest to it.
--
-- Facts that Kue has no field for are in fields which Kue leaves alone: weir_held is "DELIVERY
-- STARTED_AT", the last delivery to a worker of weir's and when that was, and for a job whose end
-- needs to know no more " ATTEMPTS TTL" of it behind that (no step changes these while it is held,
-- and to Kue's workers, too, a job is what it was when they took it); weir_more a JSON object with
-- what is not as usual, see 3_write.lua; weir_history what weir did with it (core/history.h).

-- The fields that HMGET asks for, H_... names their places: hash.h.
local FIELDS = VERTX and { VERTX_HASH } or { KUE_HASH }
local NOTHING = {}                 -- the raw hash of a job that is new, and other empty things

local function int(text, highest)
  local n = text and tonumber(text)
  if not n or not (n > 0) then return 0 end
  return floor(min(n, highest or HIGHEST))
end

-- ---- what is not as usual ----

local function more_of(h)
  local text = h[H_MORE]
  if not text then return NOTHING end
  local more = mores[text]
  if not more then
    local ok, value = pcall(cjson.decode, text)
    more = ok and type(value) == 'table' and value or NOTHING
    mores[text] = more
  end
  return more
end

local function text_in(value)
  return type(value) == 'string' and #value <= MAX_NAME and value or false
end

-- ---- priorities: Vert.x Kue has five names, and deletes jobs with another ----

local NAMED = VERTX and { LOW = 10, NORMAL = 0, MEDIUM = -5, HIGH = -10, CRITICAL = -15 }

local function name_of(priority)
  local best, distance = 'NORMAL', huge
  for name, value in pairs(NAMED) do
    local d = math.abs(value - priority)
    if d < distance or d == distance and value < NAMED[best] then best, distance = name, d end
  end
  return best
end

local function priority_of(h, more)
  local text = h[H_PRIORITY]
  if VERTX and NAMED[text or ''] then
    local own = tonumber(more.priority)
    return own and name_of(own) == text and floor(own) or NAMED[text]
  end
  local n = tonumber(text or 0)
  if not n or n ~= n or n > MAX_PRIORITY or n < MIN_PRIORITY then return 0 end
  return floor(n)
end

-- ---- backoff ----

-- Text that Kue would evaluate is only parsed: true, or an object of type fixed (also when it has
-- no type, as in Vert.x Kue) or exponential. Anything else is no backoff. Kue's cap is short by
-- half the delay; "max" is our own, exact one. Kue has no linear backoff and stops at an unknown
-- type: to Kue it is fixed, and "linear" is our own member.
local function parse_backoff(text, delay)
  if text == 'true' then return FIXED, 0, 0, 0 end
  if #text > MAX_BACKOFF_TEXT or string.sub(text, 1, 1) ~= '{' then return IMMEDIATE, 0, 0, 0 end
  local ok, b = pcall(cjson.decode, text)
  local kind = ok and type(b) == 'table' and
               ((b.type or 'fixed') == 'fixed' and FIXED or
                b.type == 'exponential' and EXPONENTIAL) or IMMEDIATE
  if kind == IMMEDIATE then return IMMEDIATE, 0, 0, 0 end
  if kind == FIXED and b.linear == true then kind = LINEAR end
  local base, cap = int(b.delay, MAX_MS), int(b.max, MAX_MS)
  if cap == 0 and int(b.maxDelay) > 0 and kind == EXPONENTIAL then
    local half = (base > 0 and base or delay) / 2
    cap = max(1, floor(min(tonumber(b.maxDelay), MAX_MS) - half + 0.5))
  end
  return kind, base, cap, int(b.jitter, 100)
end

-- weir keeps the numbers of a backoff also when its kind is none.
local function backoff_of(h, more, delay)
  local text = h[H_BACKOFF]
  if not text and more == NOTHING then return IMMEDIATE, 0, 0, 0 end
  if not text or text == '' then
    local b = type(more.backoff) == 'table' and more.backoff or NOTHING
    return IMMEDIATE, int(b[1], MAX_MS), int(b[2], MAX_MS), int(b[3], 100)
  end
  local key = delay .. ' ' .. text
  local b = backoffs[key]
  if not b then
    b = { parse_backoff(text, delay) }
    backoffs[key] = b
  end
  return b[1], b[2], b[3], b[4]
end

-- ---- values: fields of the hash that are neither Kue's nor ours ----

local read_values

do

local TAKEN = {                    -- see core/values.c
  attempts = true, backoff = true, created_at = true, data = true, delay = true, duration = true,
  error = true, failed_at = true, id = true, max_attempts = true, priority = true,
  progress = true, progress_data = true, promote_at = true, removeOnComplete = true,
  result = true, started_at = true, state = true, ttl = true, type = true, updated_at = true,
  workerId = true, zid = true,
}

local function is_value(name)
  return #name <= MAX_VALUE_NAME and not TAKEN[name] and string.find(name, '^[%w_%-%.:]+$') and
         string.sub(name, 1, 5) ~= 'weir_'
end

-- The names of values in a hash, at most MAX_VALUES, and the address.
local function value_names(key)
  local names, address = {}, false
  for _, name in ipairs(call('HKEYS', key)) do
    if name == 'address_id' then address = true
    elseif is_value(name) then names[#names + 1] = name end
  end
  table.sort(names)
  for k = #names, MAX_VALUES + 1, -1 do names[k] = nil end
  if address then names[#names + 1] = 'address_id' end
  return names
end

-- Note in `h` how many fields the hash has, and the values: names and texts, or false for none.
-- Values over the limits are Kue's alone.
function read_values(key, h)
  local asked = 0
  for k = 1, H_LAST do
    if h[k] then asked = asked + 1 end
  end
  h.fields = call('HLEN', key)
  if h.fields == asked then
    h.values = h[H_ADDRESS] and { 'address_id', h[H_ADDRESS] } or false
    return
  end
  local names, list, bytes = value_names(key), {}, 0
  local texts_there = #names > 0 and call('HMGET', key, unpack(names)) or NOTHING
  for k, name in ipairs(names) do
    local text = texts_there[k]
    local size = name == 'address_id' and 0 or #name + #text
    if bytes + size <= MAX_VALUES_BYTES then
      list[#list + 1], list[#list + 2], bytes = name, text, bytes + size
    end
  end
  h.values = #list > 0 and list
end

end

-- ---- the rest ----

-- nil: an unknown state, or none yet.
local function state_of(h, more)
  local state = NUMBER_OF[h[H_STATE] or '']
  if VERTX and state == FAILED and more.cancelled and
     more.cancelled == int(h[H_FAILED_AT]) then
    return CANCELLED
  end
  return state
end

local HELD = '^(%d+) (%-?%d+)%f[ %z]'

-- Is it active in the hands of a worker of weir's, and which delivery was the last one? Kue writes
-- started_at when it takes a job.
local function is_ours(h)
  local delivery, started = string.match(h[H_HELD] or '', HELD)
  return h[H_STATE] == WORD[ACTIVE] and started == h[H_STARTED] and started ~= nil,
         int(delivery, MAX_DELIVERY)
end

-- Notes of weir hold for the run that started then.
local function finished_at(h, more, state)
  local f = more.finished
  if type(f) == 'table' and f[1] == int(h[H_STARTED]) and tonumber(f[2]) then
    return int(f[2])
  end
  if state == COMPLETE and int(h[H_STARTED]) > 0 then
    return int(h[H_STARTED]) + int(h[H_DURATION])
  end
  if state == FAILED and int(h[H_FAILED_AT]) > 0 then return int(h[H_FAILED_AT]) end
  return int(h[H_UPDATED])
end

-- Vert.x Kue does not count a success; a job that was set to complete by hand may have none.
local function attempts_of(h, state, most, more)
  local n = min(int(h[H_ATTEMPTS]), most)
  if not finished(state) then return min(n, most - 1) end
  if VERTX and state == COMPLETE then return more.attempts == 0 and 0 or min(n + 1, most) end
  return n
end

local function removes(h)
  local text = h[H_REMOVE]
  return text and text ~= '' and text ~= 'false' and text ~= '0' and REMOVES or 0
end

-- nil: not a job (yet). A field that ALL_FIELDS names must be a local here.
local function record_of(h)
  local more = more_of(h)
  local state, type_name = state_of(h, more), h[H_TYPE]
  if not type_name or type_name == '' or #type_name > MAX_TYPE or not state then return nil end
  local done, over = state == COMPLETE, finished(state)
  local max_attempts = max(1, int(h[H_MAX_ATTEMPTS], MAX_TIMES))
  local attempts = attempts_of(h, state, max_attempts, more)
  local delay_ms = int(more.delay or h[H_DELAY], MAX_MS)
  local backoff_kind, backoff_delay_ms, backoff_max_ms, backoff_jitter_pct =
    backoff_of(h, more, delay_ms)
  local ours, delivery = false, 0
  if h[H_HELD] then ours, delivery = is_ours(h) end
  local worker, error = h[H_WORKER], h[H_ERROR]
  if state == ACTIVE and not ours then
    delivery, worker = delivery + 1, worker or '?'
  end
  if state == FAILED then error = error or '' end
  error = not done and error
  local max_lost = more.max_lost and max(1, int(more.max_lost, MAX_TIMES)) or DEFAULT_MAX_LOST
  local lost = min(int(more.lost), max_lost + (state == FAILED and 1 or 0))
  local flags, lines = removes(h) + (more.search and SEARCHED or 0), 0
  local priority, progress = priority_of(h, more), done and 100 or int(h[H_PROGRESS], 100)
  local progress_data, result = h[H_PROGRESS_DATA], done and h[H_RESULT]
  local ttl_ms, deadline_at = int(h[H_TTL], MAX_MS), int(more.deadline)
  local created_at, promote_at = int(h[H_CREATED]), int(h[H_PROMOTE])
  local updated_at, started_at = int(h[H_UPDATED]), int(h[H_STARTED])
  local failed_at, duration_ms = int(h[H_FAILED_AT]), done and int(h[H_DURATION], MAX_MS) or 0
  local finished_at = over and finished_at(h, more, state) or 0
  local unique_key, search_keys = text_in(more.unique), text_in(more.search_keys)
  local history, values = h[H_HISTORY], h.values or false
  return { ALL_FIELDS }
end

-- The job and its raw hash.
local function job(id)
  local h = call('HMGET', JOB .. id, unpack(FIELDS))
  read_values(JOB .. id, h)
  return record_of(h), h
end

-- A job that a worker of ours has, with the values that its end needs.
local function held_job(h, last_delivery, attempts_so_far, ttl)
  local FIELDS_IN_HASH = NO_FIELDS_IN_HASH
  local more = NOTHING
  state, type_name, priority, attempts = ACTIVE, h[H_TYPE], priority_of(h, more), attempts_so_far
  max_attempts, delivery = max(1, int(h[H_MAX_ATTEMPTS], MAX_TIMES)), last_delivery
  max_lost, progress, flags = DEFAULT_MAX_LOST, int(h[H_PROGRESS], 100), removes(h)
  ttl_ms, started_at = ttl, int(h[H_STARTED])
  return { ALL_FIELDS }
end

-- The job that a worker of ours holds with this delivery, and its raw hash. `few`: with what its
-- end needs.
local function held(id, delivery, few)
  local h = call('HMGET', JOB .. id, unpack(FIELDS, 1, few and H_FEW or H_DATA))
  local ours, last_delivery = is_ours(h)
  if not ours or last_delivery ~= tonumber(delivery) then return end
  if not few or VERTX or h[H_MORE] or not h[H_TYPE] then return record_of(h), h end
  local attempts = attempts_of(h, ACTIVE, max(1, int(h[H_MAX_ATTEMPTS], MAX_TIMES)))
  return held_job(h, last_delivery, attempts, int(h[H_TTL], MAX_MS)), h
end
