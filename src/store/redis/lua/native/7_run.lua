-- 7_run.lua - a call: carry out its steps; recognise one that was made before.

local READS = { G = true, I = true, F = true, O = true, Z = true, K = true, V = true, W = true }
local BUSY = { A = true, T = true, t = true, D = true }

-- Jobs that a take gave (id, delivery ...), as they are now.
local function taken_before(given)
  local answer = {}
  for k = 1, #given, 2 do
    local id, n = given[k], #answer
    local r, spec = held(id, given[k + 1]), call('HGET', KEYS[JOBS], id)
    if r and spec then
      answer[n + 1], answer[n + 2], answer[n + 3] = id, r, with_long_data(spec, id)
    end
  end
  return answer
end

-- What is kept of an answer, to give it again.
local function to_remember(letter, answer)
  if READS[letter] then return false end
  if letter ~= 'T' and letter ~= 't' then return answer end
  local given, g = {}, 0
  for k = 1, #answer, 3 do
    given[g + 1], given[g + 2] = answer[k], sunpack('>I4', answer[k + 1], AT_DELIVERY)
    g = g + 2
  end
  return given
end

-- The jobs that will be ended, and how many the takes want of one type alone.
local function look_ahead()
  local i, total, m = FIRST, #ARGV, 0
  while i <= total do
    local letter, n = ARGV[i], count_in(ARGV[i + 1])
    if letter == 'D' then
      for k = i + 2, i + 1 + n do
        m = m + 1
        named[m] = sub(ARGV[k], 1, 8)
      end
    elseif n == 4 and (letter == 't' or letter == 'T') then
      local name = ARGV[i + 5]
      lookahead[name] = (lookahead[name] or 0) + count_in(ARGV[i + 2])
    end
    i = i + 2 + n
  end
  local runs = get_many(RUNS, named)
  for k = 1, m do records[named[k]] = runs[k] end
end

local function carry_out(before)
  local answers, memory, total, i, n_args = { now, '' }, {}, 0, FIRST, #ARGV
  while i <= n_args do
    local letter, n = ARGV[i], count_in(ARGV[i + 1])
    local answer
    total = total + 1
    if before and not READS[letter] then
      answer = before[total]
      if letter == 'T' or letter == 't' then answer = taken_before(answer) end
    else
      if not BUSY[letter] then be_plain() end
      answer = steps[letter](i + 2, n)
      memory[total] = to_remember(letter, answer)
    end
    answers[total + 2] = answer
    if answer == 'words' then break end      -- the rest waits, so that the order is kept
    i = i + 2 + n
  end
  return answers, memory
end

-- The first call of a queue. Redis keeps a small sorted set or hash as a list that it walks; with a
-- member of more than 64 bytes it does not. These are small, and used for every job.
local function lay_stones()
  local stone = rep('\255', 65)
  call('HSET', KEYS[BLOCKS], stone, 0)
  put_in(STATE_KEY + INACTIVE, stone, 0)
  put_in(STATE_KEY + ACTIVE, stone, 0)
  put_in(LEASE, stone, '+inf')
end

-- What is new in META: where the ids are, when retention has to do, what this lane answered (the
-- number of the call, the time, the answers), and the count of messages.
local function write_meta(lane, memory, messages)
  local set, n = {}, 0
  local function put(field, value)
    set[n + 1], set[n + 2], n = field, value, n + 2
  end
  if last ~= first_last or not meta[1] then put('last', digits(last)) end
  if keep_at ~= first_keep then put('keep', keep_at < huge and digits(keep_at) or '') end
  if memory then put(lane, spack('>I8I8', number, now) .. pack(memory)) end
  if messages then put('messages', digits(messages)) end
  many('HSET', META, set, n)
end

local function run_steps(keys, args)
  begin(keys, args)
  local lane = origin .. (number and number % 2 == 1 and ':1' or ':0')
  meta = call('HMGET', KEYS[META], 'last', 'messages', 'keep', lane)
  last, keep_at = tonumber(meta[1] or 0), tonumber(meta[3] or '') or huge
  first_last, first_keep = last, keep_at
  local before, messages
  if number and meta[4] then
    local made = sunpack('>I8', meta[4])
    if made == number then before = unpack_msg(sub(meta[4], 17)) end
    if made > number then return { now, '' } end       -- nobody wants its answer any more
  end
  look_ahead()
  local answers, memory = carry_out(before)
  settle()
  settled = true
  if not number then return answers end
  if not meta[1] then lay_stones() end
  if n_events > 0 or due < huge then
    messages = tonumber(meta[2] or 0) + 1
    answers[2] = '\148' .. pack(messages, now, origin, due < huge and due or 0) ..
                 concat(events, '', 1, n_events)
    call('SPUBLISH', ARGV[4] .. ':events', answers[2])
    if n_events > MANY then events = {} end
  end
  write_meta(lane, not before and memory, messages)
  return answers
end

redis.register_function(NAME .. '_add', run_steps)
redis.register_function{ function_name = NAME .. '_rest', callback = run_steps,
                         flags = { 'allow-oom' } }
