-- 3_write.lua - from a record to Kue's hash: see 2_record.lua.

-- When a job ended, if its other fields do not say it: see finished_at().
local function finished_text(j)
  if not finished(j[STATE]) then return false end
  local state, at = j[STATE], j[FINISHED]
  if state == COMPLETE and j[STARTED] > 0 and at == j[STARTED] + j[DURATION] then return false end
  if state == FAILED and at == j[FAILED_AT] then return false end
  return format('%d %d', j[STARTED], at)
end

local encode, write_job, identify

local function writing()

local function backoff_text(j)
  local text = j[BACKOFF] == 2 and '{"type":"exponential"' or '{"type":"fixed"'
  if j[BACKOFF_MS] > 0 then text = text .. format(',"delay":%d', j[BACKOFF_MS]) end
  if j[BACKOFF_MAX] > 0 then
    local base = j[BACKOFF_MS] > 0 and j[BACKOFF_MS] or j[DELAY]
    text = text .. format(',"maxDelay":%.1f,"max":%d', j[BACKOFF_MAX] + base / 2, j[BACKOFF_MAX])
  end
  if j[JITTER] > 0 then text = text .. format(',"jitter":%d', j[JITTER]) end
  return text .. '}'
end

-- In the state delayed, Kue makes promote_at anew from the last failure (or the making) and the
-- delay whenever it saves the job: so that is what `delay` says then, and weir's own is beside it.
-- nil: as they are.
local function delay_fields(j, h)
  if j[STATE] ~= DELAYED then
    if int(h[OWN_DELAY] or h[DELAY], MAX_MS) == j[DELAY] then return nil end
    return digits_or(j[DELAY], ZERO), false
  end
  local delay = j[PROMOTE] - (j[FAILED_AT] > 0 and j[FAILED_AT] or j[CREATED])
  if delay <= 0 or delay == j[DELAY] then return digits_or(j[DELAY], ZERO), false end
  return digits(delay), digits(j[DELAY])
end

-- A foreign text in backoff stays as long as there is no backoff of ours to put there.
local function encode_backoff(j, h, put)
  local kind, base, cap, jitter = backoff_of(h, j[DELAY])
  if kind == j[BACKOFF] and base == j[BACKOFF_MS] and cap == j[BACKOFF_MAX] and
     jitter == j[JITTER] then
    return
  end
  put(BACKOFF, j[BACKOFF] > 0 and backoff_text(j))
  put(NO_BACKOFF, j[BACKOFF] == 0 and format('%d %d %d', j[BACKOFF_MS], j[BACKOFF_MAX], j[JITTER]))
end

local function encode_vertx(j, put)
  local state, priority = j[STATE], j[PRIORITY]
  put(STATE, WORD[state == CANCELLED and FAILED or state])
  put(CANCEL_MARK, state == CANCELLED and digits(j[FAILED_AT]))
  put(ATTEMPTS, digits_or(state == COMPLETE and j[ATTEMPTS] - 1 or j[ATTEMPTS], ZERO))
  put(PRIORITY, name_of(priority))
  put(OWN_PRIORITY, NAMED[name_of(priority)] ~= priority and digits(priority))
end

-- Call put(field, text) for every field; false instead of a text: it is not to be there.
function encode(j, h, put)
  if VERTX then
    encode_vertx(j, put)
  else
    put(STATE, WORD[j[STATE]])
    put(ATTEMPTS, digits_or(j[ATTEMPTS], false))
    put(PRIORITY, digits(j[PRIORITY]))
  end
  local delay, own = delay_fields(j, h)
  if delay ~= nil then
    put(DELAY, delay)
    put(OWN_DELAY, own)
  end
  encode_backoff(j, h, put)
  put(FLAGS, j[FLAGS] % 2 == 1 and 'true' or VERTX and 'false')
  put(SEARCHED, j[FLAGS] >= SEARCH_FLAG and '1')
  put(MAX_LOST, j[MAX_LOST] ~= DEFAULT_MAX_LOST and digits(j[MAX_LOST]))
  put(FINISHED, finished_text(j))
  for _, field in ipairs({ MAX_ATTEMPTS, CREATED, PROMOTE, UPDATED }) do
    put(field, digits(j[field]))
  end
  for _, field in ipairs({ PROGRESS, TTL_MS, STARTED, FAILED_AT, DURATION }) do
    put(field, digits_or(j[field], ZERO))
  end
  for _, field in ipairs({ DELIVERY, LOST, DEADLINE }) do put(field, digits_or(j[field], false)) end
  for _, field in ipairs({ TYPE, UNIQUE_KEY, KEYS_TEXT, WORKER, ERROR, RESULT, PROGRESS_DATA }) do
    put(field, j[field])
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
  if data then set[#set + 1], set[#set + 2] = 'data', data end
  if #set > 0 then call('HSET', JOB .. id, unpack(set)) end
  if #clear > 0 then call('HDEL', JOB .. id, unpack(clear)) end
end

-- What Vert.x Kue wants besides. Nothing random is to be had here, so the address is made from
-- what is different for every job.
function identify(id)
  if not VERTX then return end
  local x = redis.sha1hex(P .. origin .. ARGV[3] .. id .. now_text)
  local uuid = table.concat({ string.sub(x, 1, 8), string.sub(x, 9, 12), '4' .. string.sub(x, 14, 16),
                              'a' .. string.sub(x, 18, 20), string.sub(x, 21, 32) }, '-')
  call('HSET', JOB .. id, 'id', id, 'zid', zid_of(id), 'address_id', uuid)
end

end
