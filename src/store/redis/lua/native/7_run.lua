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

-- What this lane answered last, if it was to this call: "NUMBER TIME " and the answers. After a
-- later call this one is not wanted any more.
local function run_steps(keys, args)
  begin(keys, args)
  local lane = origin .. ':' .. (number or 0) % 2
  meta = call('HMGET', KEYS[META], 'last', 'messages', 'keep', lane)
  last, keep_at = tonumber(meta[1] or 0), tonumber(meta[3] or '') or huge
  local before
  if number and meta[4] then
    local made, at = match(meta[4], '^(%d+) %d+ ()')
    made = tonumber(made)
    if made == number then before = unpack_msg(sub(meta[4], at)) end
    if made > number then return { now, '' } end
  end
  look_ahead()
  local answers, memory = carry_out(before)
  settle()
  settled = true
  if not number then return answers end
  if not meta[1] then lay_stones() end
  local set = { 'last', digits(last), 'keep', keep_at < huge and digits(keep_at) or '' }
  if not before then set[5], set[6] = lane, format('%d %d ', number, now) .. pack(memory) end
  if n_events > 0 or due < huge then
    local messages = tonumber(meta[2] or 0) + 1
    answers[2] = '\148' .. pack(messages, now, origin, due < huge and due or 0) ..
                 concat(events, '', 1, n_events)
    set[#set + 1], set[#set + 2] = 'messages', digits(messages)
    call('SPUBLISH', ARGV[4] .. ':events', answers[2])
  end
  call('HSET', KEYS[META], unpack(set))
  return answers
end

redis.register_function(NAME .. '_add', run_steps)
redis.register_function{ function_name = NAME .. '_rest', callback = run_steps,
                         flags = { 'allow-oom' } }
