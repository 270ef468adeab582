-- run.lua - carry out the steps; recognise a call that was made before; publish what happened.

-- Steps in which a job goes from waiting to active to ended, and never back: see `careful`.
local BUSY = { A = true, a = true, T = true, t = true, D = true }

function layout.before_step(letter)
  if careful and BUSY[letter] then flush_sets() end
  careful = not BUSY[letter]
end

-- The answer of a take that is remembered, with the jobs as they are now.
function layout.taken_before(given)
  local answer, counts, passed, k, m = { '' }, {}, false, 2, 0
  for at = 1, #(given[1] or ''), 2 do
    local n = sunpack('>I2', given[1], at)
    local kept = n - n % PASSED
    for _ = 1, n % PASSED do
      if m == given[k + 1] then k, m = k + 3, 0 end
      local id = digits(given[k] + m)
      if held(id, given[k + 2], true) then
        local j, h = job(id)
        put_record(answer, id, j, h[H_DATA] or '{}')
        kept = kept + 1
      end
      m = m + 1
    end
    counts[#counts + 1] = spack('>I2', kept)
    passed = passed or n >= PASSED
  end
  if #answer == 1 and not passed then return {} end
  answer[1] = table.concat(counts)
  return answer
end

-- ---- Kue's messages: id, event, and its arguments, of which the first is the event again ----

local function publish(id, event, args)
  call('PUBLISH', P .. 'events', '{"id":' .. digits(id) .. ',"event":"' .. event .. '","args":["' ..
       event .. '"' .. (args and ',' .. args or '') .. '],"weir":1}')
end

-- Kue publishes the error before the failure, and the removal after the success.
local function publish_event(kind, state, id, name, attempts, progress, text)
  local quote = cjson.encode
  if kind == EVENT_ENQUEUE then
    publish(id, 'enqueue', quote(name))
  elseif kind == EVENT_START then
    publish(id, 'start', quote(name) .. ',null')
  elseif kind == EVENT_COMPLETE then
    publish(id, 'complete', (text or 'null') .. ',null')
    if state == 0 then publish(id, 'remove', quote(name)) end
  elseif kind == EVENT_PROGRESS then
    publish(id, 'progress', progress .. ',' .. (text or 'null'))
  elseif kind == EVENT_FAILED_ATTEMPT then
    publish(id, 'error', quote(text or ''))
    publish(id, 'failed attempt', quote(text or '') .. ',' .. attempts)
  elseif kind == EVENT_FAILED then
    publish(id, 'error', quote(text or ''))
    publish(id, 'failed', quote(text or '') .. ',null')
  elseif kind == EVENT_REMOVE then
    publish(id, 'remove', quote(name))
  elseif kind == EVENT_PROMOTION then
    publish(id, 'promotion')
  elseif kind == EVENT_CANCELLED then
    publish(id, 'cancelled')
  elseif kind == EVENT_STALLED then
    publish(id, 'stalled')
  elseif kind == EVENT_TTL_EXCEEDED and not quiet[id] then
    publish(id, 'ttl exceeded')
  end
end

-- Processes of weir listen to both of these channels, and begin with Kue's. Does anybody else?
local function kue_listens()
  local there = redis.pcall('PUBSUB', 'NUMSUB', P .. 'events', W .. 'presence')
  return there.err or there[2] > there[4] or redis.pcall('PUBSUB', 'NUMPAT') ~= 0
end

local function publish_to_kue()
  if n_message == 4 and #ask_about == 0 or not kue_listens() then return end
  local i = 5
  while i <= n_message do
    local kind, first, count, size = message[i], message[i + 7], 1, 8
    if kind >= RUN_OF then kind, count, size = kind - RUN_OF, message[i + 8], 10 end
    for id = first, first + count - 1 do
      publish_event(kind, message[i + 1], id, message[i + 2], message[i + 3], message[i + 4],
                    message[i + 6])
    end
    i = i + size
  end
  for _, id in ipairs(ask_about) do publish(id, 'ttl exceeded') end
end

local function publish()
  message[1], message[4] = call('HINCRBY', META, 'messages', 1), due < huge and due or 0
  if message[1] == 1 then
    message[1] = call('HINCRBY', META, 'messages', digits(layout.first_message()))
  end
  local pieces = { '\148' .. pack(unpack(message, 1, 4)) }
  for i = 5, n_message, MANY do
    pieces[#pieces + 1] = pack(unpack(message, i, min(i + MANY - 1, n_message)))
  end
  local text = table.concat(pieces)
  call('PUBLISH', W .. 'events', text)
  return text
end

local function run_steps(_, args)
  begin(args)
  if not number then return (carry_out()) end
  local lane = W .. 'call:' .. origin .. ':' .. number % 2
  local before = call('GET', lane)
  before = before and unpack_msg(before)
  if before and before[1] > number then return { now, '' } end         -- nobody wants this one
  if before and table.remove(before, 1) ~= number then before = nil end
  local answers, memory = carry_out(before)
  if not before then
    table.insert(memory, 1, number)
    call('SET', lane, pack(memory), 'PX', REMEMBER_MS)
  end
  flush_all()
  if last and last ~= first_last then call('INCRBY', IDS, last - first_last) end
  if work_time > 0 then call('INCRBY', WORK_TIME, work_time) end
  if keep_at ~= first_keep then call('HSET', META, 'keep', keep_at < huge and keep_at or '') end
  if n_message > 4 or due < huge then answers[2] = publish() end
  if not VERTX then publish_to_kue() end
  return answers
end
