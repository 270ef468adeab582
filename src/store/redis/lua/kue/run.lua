-- run.lua - carry out the steps; recognise a call that was made before; tell what happened.

local run, tell_kue

do

local READS = { G = true, I = true, F = true, O = true, Z = true, K = true, V = true, W = true }
local FIRST = 7                              -- the first step in ARGV
local REMEMBER_MS = 600000

local lane = number and W .. 'call:' .. origin .. ':' .. number % 2
local before = lane and call('GET', lane)
before = before and unpack_msg(before)
if before and before[1] ~= number then before = nil end

-- Jobs that a take gave, as they are now.
local function taken_before(given)
  local answer = {}
  for k = 1, #given, 2 do
    local id = digits(given[k])
    local j, h = held(id, given[k + 1])
    if j then
      local n = #answer
      answer[n + 1], answer[n + 2], answer[n + 3] = given[k], pack(j), h[DATA] or '{}'
    end
  end
  return answer
end

-- What is kept of an answer, to give it again.
local function to_remember(letter, answer)
  if READS[letter] then return false end
  if letter ~= 'T' and letter ~= 't' then return answer end
  local given = {}
  for k = 1, #answer, 3 do
    given[#given + 1] = answer[k]
    given[#given + 1] = delivered[digits(answer[k])]
  end
  return given
end

function run()
  local answers, memory, i, at = { now, '' }, { number }, FIRST, 2
  while i <= #ARGV do
    local letter, n = ARGV[i], tonumber(ARGV[i + 1])
    local answer
    if before and not READS[letter] then
      answer = before[at]
      if letter == 'T' or letter == 't' then answer = taken_before(answer) end
    else
      answer = steps[letter](i + 2, n)
      if number then memory[at] = to_remember(letter, answer) end
    end
    at = at + 1
    answers[at] = answer
    if answer == 'words' then break end      -- the rest waits, so that the order is kept
    i = i + 2 + n
  end
  if lane and not before then call('SET', lane, pack(memory), 'PX', REMEMBER_MS) end
  return answers
end

end

do

local PROMOTION, FAILED_ATTEMPT, FAILED_EVENT, CANCELLED_EVENT, STALLED, TTL_EXCEEDED =
      1, 4, 5, 7, 8, 9

-- ---- Kue's messages: id, event, and its arguments, of which the first is the event again ----

local quote = cjson.encode
local function or_null(text) return text or 'null' end

-- By kind: function(type, text, attempts, progress) -> name, the other arguments
local KUE_EVENTS = {
  [ENQUEUE] = function(name) return 'enqueue', quote(name) end,
  [PROMOTION] = function() return 'promotion' end,
  [START] = function(name) return 'start', quote(name) .. ',null' end,
  [PROGRESS_EVENT] = function(_, text, _, progress)
    return 'progress', progress .. ',' .. or_null(text)
  end,
  [FAILED_ATTEMPT] = function(_, text, attempts)
    return 'failed attempt', quote(text or '') .. ',' .. attempts
  end,
  [FAILED_EVENT] = function(_, text) return 'failed', quote(text or '') .. ',null' end,
  [COMPLETED] = function(_, text) return 'complete', or_null(text) .. ',null' end,
  [CANCELLED_EVENT] = function() return 'cancelled' end,
  [STALLED] = function() return 'stalled' end,
  [TTL_EXCEEDED] = function() return 'ttl exceeded' end,
  [REMOVE] = function(name) return 'remove', quote(name) end,
}

local function publish(id, event, args)
  call('PUBLISH', P .. 'events', '{"id":' .. digits(id) .. ',"event":"' .. event .. '","args":["' ..
       event .. '"' .. (args and ',' .. args or '') .. '],"weir":1}')
end

-- Kue tells of the error before it tells of the failure, and of the removal after the success.
local function publish_event(kind, state, id, name, attempts, progress, text)
  local event = KUE_EVENTS[kind]
  if not event or kind == TTL_EXCEEDED and quiet[id] then return end
  if kind == FAILED_ATTEMPT or kind == FAILED_EVENT then publish(id, 'error', quote(text or '')) end
  publish(id, event(name, text, attempts, progress))
  if kind == COMPLETED and state == 0 then publish(id, 'remove', quote(name)) end
end

function tell_kue()
  for i = 5, #message, 8 do
    publish_event(message[i], message[i + 1], message[i + 2], message[i + 3], message[i + 4],
                  message[i + 5], message[i + 7])
  end
  for _, id in ipairs(ask_about) do publish(id, 'ttl exceeded') end
end

end

local answers = run()
if number then
  flush_all()
  if last and last ~= first_last then call('INCRBY', IDS, last - first_last) end
  if work_time > 0 then call('INCRBY', WORK_TIME, work_time) end
  if keep_at ~= first_keep then call('HSET', META, 'keep', keep_at < huge and keep_at or '') end
  if #message > 4 or due < huge then
    message[1], message[4] = call('HINCRBY', META, 'messages', 1), due < huge and due or 0
    answers[2] = pack(message)
    call('PUBLISH', W .. 'events', answers[2])
  end
  if not VERTX then tell_kue() end
end
return answers
