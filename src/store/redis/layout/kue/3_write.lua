-- 3_write.lua - from a record to Kue's hash: see 2_record.lua.

local encode, write_job, identify

-- When a job ended, if its other fields do not say it: see finished_at().
local function ended_otherwise(j)
  local state, at = j[STATE], j[FINISHED_AT]
  if not finished(state) then return false end
  if state == COMPLETE and j[STARTED_AT] > 0 and at == j[STARTED_AT] + j[DURATION_MS] then return false end
  return not (state == FAILED and at == j[FAILED_AT])
end

-- Names and places of the fields that are in weir_more and nowhere else, under their own names.
local MORE, MORE_TEXT = { MORE_NUMBERS }, { MORE_TEXTS }

-- weir_more, or false: all is as usual. `with_delay`: see delay_fields().
local function more_text(j, with_delay)
  local parts = {}
  local function number_of(name, n)
    parts[#parts + 1] = format('"%s":%d', name, n)
  end
  local function text_of(name, text)
    if text then parts[#parts + 1] = '"' .. name .. '":' .. cjson.encode(text) end
  end
  if j[LOST] > 0 then number_of('lost', j[LOST]) end
  if j[MAX_LOST] ~= DEFAULT_MAX_LOST then number_of('max_lost', j[MAX_LOST]) end
  if j[DEADLINE_AT] > 0 then number_of('deadline', j[DEADLINE_AT]) end
  if with_delay then number_of('delay', j[DELAY_MS]) end
  if j[FLAGS] >= SEARCHED then number_of('search', 1) end
  text_of('unique', j[UNIQUE_KEY])
  text_of('search_keys', j[SEARCH_KEYS])
  if ended_otherwise(j) then
    parts[#parts + 1] = format('"finished":[%d,%d]', j[STARTED_AT], j[FINISHED_AT])
  end
  if j[BACKOFF_KIND] == IMMEDIATE and j[BACKOFF_DELAY_MS] + j[BACKOFF_MAX_MS] + j[BACKOFF_JITTER_PCT] > 0 then
    parts[#parts + 1] = format('"backoff":[%d,%d,%d]', j[BACKOFF_DELAY_MS], j[BACKOFF_MAX_MS], j[BACKOFF_JITTER_PCT])
  end
  for k = 1, #MORE, 2 do
    if j[MORE[k + 1]] > 0 then number_of(MORE[k], j[MORE[k + 1]]) end
  end
  for k = 1, #MORE_TEXT, 2 do text_of(MORE_TEXT[k], j[MORE_TEXT[k + 1]]) end
  if VERTX and j[STATE] == COMPLETE and j[ATTEMPTS] == 0 then number_of('attempts', 0) end
  if VERTX and j[STATE] == CANCELLED then number_of('cancelled', j[FAILED_AT]) end
  if VERTX and NAMED[name_of(j[PRIORITY])] ~= j[PRIORITY] then
    number_of('priority', j[PRIORITY])
  end
  return #parts > 0 and '{' .. table.concat(parts, ',') .. '}'
end

do

local ZERO = VERTX and '0' or false          -- how "none" is written where Vert.x Kue writes always

local function digits_or(n, none)
  return n > 0 and digits(n) or none
end

-- In the state delayed, Kue makes promote_at anew from the last failure (or the making) and the
-- delay whenever it saves the job: so that is what `delay` says then, and weir's own is kept beside
-- it. In other states nothing is written but a new delay.
local function delay_fields(j, h)
  if j[STATE] ~= DELAYED then
    local more = more_of(h)
    if int(more.delay or h[H_DELAY], MAX_MS) == j[DELAY_MS] then
      return h[H_DELAY] or ZERO, more.delay ~= nil
    end
    return digits_or(j[DELAY_MS], ZERO), false
  end
  local delay = j[PROMOTE_AT] - (j[FAILED_AT] > 0 and j[FAILED_AT] or j[CREATED_AT])
  if delay <= 0 or delay == j[DELAY_MS] then return digits_or(j[DELAY_MS], ZERO), false end
  return digits(delay), true
end

-- The text that is there stays if it says the same: whatever else it says is Kue's.
local function backoff_text(j, h)
  local kind, base, cap, jitter = backoff_of(h, more_of(h), j[DELAY_MS])
  if kind == j[BACKOFF_KIND] and (kind == IMMEDIATE or base == j[BACKOFF_DELAY_MS] and
                             cap == j[BACKOFF_MAX_MS] and jitter == j[BACKOFF_JITTER_PCT]) then
    return h[H_BACKOFF]
  end
  if j[BACKOFF_KIND] == IMMEDIATE then return false end
  local text = j[BACKOFF_KIND] == EXPONENTIAL and '{"type":"exponential"' or '{"type":"fixed"'
  if j[BACKOFF_KIND] == LINEAR then text = text .. ',"linear":true' end
  if j[BACKOFF_DELAY_MS] > 0 then text = text .. format(',"delay":%d', j[BACKOFF_DELAY_MS]) end
  if j[BACKOFF_MAX_MS] > 0 then
    local half = (j[BACKOFF_DELAY_MS] > 0 and j[BACKOFF_DELAY_MS] or j[DELAY_MS]) / 2
    text = text .. format(',"maxDelay":%.1f,"max":%d', j[BACKOFF_MAX_MS] + half, j[BACKOFF_MAX_MS])
  end
  if j[BACKOFF_JITTER_PCT] > 0 then text = text .. format(',"jitter":%d', j[BACKOFF_JITTER_PCT]) end
  return text .. '}'
end

-- Call put(field, text) for every field; false instead of a text: it is not to be there.
function encode(j, h, put)
  local state, attempts = j[STATE], j[ATTEMPTS]
  if VERTX then                    -- no word for cancelled, and no success among the attempts
    put(H_STATE, WORD[state == CANCELLED and FAILED or state])
    put(H_ATTEMPTS, digits_or(state == COMPLETE and attempts - 1 or attempts, ZERO))
    put(H_PRIORITY, name_of(j[PRIORITY]))
  else
    put(H_STATE, WORD[state])
    put(H_ATTEMPTS, digits_or(attempts, false))
    put(H_PRIORITY, digits(j[PRIORITY]))
  end
  local delay, with_delay = delay_fields(j, h)
  put(H_DELAY, delay)
  put(H_MORE, more_text(j, with_delay))
  put(H_BACKOFF, backoff_text(j, h))
  put(H_REMOVE, j[FLAGS] % 2 == 1 and 'true' or VERTX and 'false')
  put(H_TYPE, j[TYPE])
  put(H_MAX_ATTEMPTS, digits(j[MAX_ATTEMPTS]))
  put(H_CREATED, digits(j[CREATED_AT]))
  put(H_PROMOTE, digits(j[PROMOTE_AT]))
  put(H_UPDATED, digits(j[UPDATED_AT]))
  put(H_PROGRESS, digits_or(j[PROGRESS], ZERO))
  put(H_TTL, digits_or(j[TTL_MS], ZERO))
  put(H_STARTED, digits_or(j[STARTED_AT], ZERO))
  put(H_FAILED_AT, digits_or(j[FAILED_AT], ZERO))
  put(H_DURATION, digits_or(j[DURATION_MS], ZERO))
  put(H_WORKER, j[WORKER])
  put(H_ERROR, j[ERROR])
  put(H_RESULT, j[RESULT])
  put(H_PROGRESS_DATA, j[PROGRESS_DATA])
  put(H_HISTORY, j[HISTORY])
  local _, delivery = is_ours(h)
  if delivery ~= j[DELIVERY] then put(H_HELD, format('%d %d', j[DELIVERY], j[STARTED_AT])) end
end

-- The fields of new or changed values, and of removed ones. Vert.x Kue cannot do without an
-- address.
local function value_fields(j, h, set, clear)
  local old, new = {}, j[VALUES] or NOTHING
  local had = h.values or NOTHING
  for k = 1, #had, 2 do old[had[k]] = had[k + 1] end
  for k = 1, #new, 2 do
    if old[new[k]] ~= new[k + 1] then set[#set + 1], set[#set + 2] = new[k], new[k + 1] end
    old[new[k]] = nil
  end
  for name in pairs(old) do
    if not (VERTX and name == 'address_id') then clear[#clear + 1] = name end
  end
end

-- Make the hash say what the record says; what says it already is not written. `data` may be nil.
function write_job(id, j, h, data)
  local set, clear = {}, {}
  encode(j, h, function(field, value)
    local raw = h[field]
    if value then
      if value ~= raw then set[#set + 1], set[#set + 2] = FIELDS[field], value end
    elseif raw then
      clear[#clear + 1] = FIELDS[field]
    end
  end)
  value_fields(j, h, set, clear)
  if data then set[#set + 1], set[#set + 2] = 'data', data end
  if #set > 0 then call('HSET', JOB .. id, unpack(set)) end
  if #clear > 0 then call('HDEL', JOB .. id, unpack(clear)) end
end

local function value_in(j, name)
  local values = j[VALUES] or NOTHING
  for k = 1, #values, 2 do
    if values[k] == name then return values[k + 1] end
  end
end

-- Fields that Vert.x Kue needs besides. No random numbers are available here, so the address is
-- made from what is different for every job, unless the job has one.
function identify(id, j)
  if value_in(j, 'address_id') then
    call('HSET', JOB .. id, 'id', id, 'zid', zid_of(id))
    return
  end
  local x = redis.sha1hex(P .. origin .. ARGV[3] .. id .. now_text)
  local uuid = table.concat({ string.sub(x, 1, 8), string.sub(x, 9, 12),
                              '4' .. string.sub(x, 14, 16), 'a' .. string.sub(x, 18, 20),
                              string.sub(x, 21, 32) }, '-')
  call('HSET', JOB .. id, 'id', id, 'zid', zid_of(id), 'address_id', uuid)
end

end
