-- 7_run.lua - a call: carry out its steps; recognise one that was made before.

local READS = { G = true, I = true, F = true, O = true, Z = true, K = true, V = true, W = true }
local BUSY = { A = true, T = true, t = true, D = true }

-- What is kept of the answer of a take: how many each worker got, and the jobs: first id, how many,
-- delivery.
local function to_remember(letter, answer)
  if READS[letter] then return false end
  if letter ~= 'T' and letter ~= 't' then return answer end
  local given = { answer[1] }
  for k = 2, #answer, 3 do
    local specs = answer[k + 2]
    given[k], given[k + 1] = id_number(answer[k]), type(specs) == 'table' and jobs_given(specs) or 1
    given[k + 2] = sunpack('>I4', answer[k + 1], RUN_DELIVERY)
  end
  return given
end

-- That answer again, with the jobs as they are now.
local function taken_before(given)
  local left, kept, w, answer = { byte(given[1] or '', 1, -1) }, {}, 0, { '' }
  local passed = #left % 2 == 1
  for k = 1, #left / 2 do left[k], kept[k] = left[2 * k - 1] * 256 + left[2 * k], 0 end
  for k = 2, #given, 3 do
    for m = 0, given[k + 1] - 1 do
      local id, n = id_bytes(given[k] + m * partitions), #answer
      local r, spec = held(id, given[k + 2]), spec_of(id)
      while left[w] == nil or left[w] == 0 do w = w + 1 end
      left[w] = left[w] - 1
      if r and spec then
        answer[n + 1], answer[n + 2], answer[n + 3] = id, r, with_long_data(spec, id)
        kept[w] = kept[w] + 1
      end
    end
  end
  if #answer == 1 and not passed then return {} end
  answer[1] = spack('>' .. rep('I2', #kept), unpack(kept)) .. (passed and '1' or '')
  return answer
end

-- What is known of the jobs that will be ended: their hands, and the runs of those in none. Who ends
-- them may say any id, also one to which adding 1 changes nothing.
local function look_ahead()
  local i, total, fields, wanted, ends, own = FIRST_STEP, #ARGV, {}, {}, {}, {}
  while i <= total do
    local letter, n = ARGV[i], count_in(ARGV[i + 1])
    for at = 1, letter == 'D' and #ARGV[i + 2] or 0, END do
      local id, _, count = sunpack('>I8I4I2', ARGV[i + 2], at)
      local first = block_of(id)
      ends[#ends + 1], ends[#ends + 2] = id, count
      for k = 0, block_of(id + (count - 1) * partitions) - first do
        local block = first + k
        if hands[block] == nil then
          hands[block] = false
          fields[#fields + 1], wanted[#wanted + 1] = hands_field(block), block
        end
      end
    end
    i = i + 2 + n
  end
  local texts = get_many(RUNS, fields)
  for k = 1, #wanted do hands[wanted[k]] = read_hands(texts[k]) end
  for k = 1, #ends, 2 do
    local id, left = ends[k], ends[k + 1]
    while left > 0 do
      local h, place = hand_with(id)
      if not h then own[#own + 1] = spack('>I8', id) end
      local some = h and live_in(h, place, left) or 1
      id, left = id + some * partitions, left - some
    end
  end
  local runs = get_many(RUNS, own)
  for k = 1, #own do records[own[k]] = runs[k] end
end

local function carry_out(before)
  local answers, memory, total, i, n_args = { now, '' }, {}, 0, FIRST_STEP, #ARGV
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
  put_in(HELD, stone, '+inf')
end

-- What is new in META: where the ids are, when retention has to do, what this lane answered (the
-- number of the call, the time, the answers), and the count of messages.
local meta_set = {}

local function write_meta(lane, memory, messages)
  local n = 0
  if memory then
    meta_set[1], meta_set[2], n = lane, spack('>I8I8', number, now) .. pack(memory), 2
  end
  if messages then meta_set[n + 1], meta_set[n + 2], n = 'messages', digits(messages), n + 2 end
  if last ~= first_last or not meta[1] then
    meta_set[n + 1], meta_set[n + 2], n = 'last', digits(last), n + 2
  end
  if keep_at ~= first_keep then
    meta_set[n + 1], meta_set[n + 2], n = 'keep', keep_at < huge and digits(keep_at) or '', n + 2
  end
  many('HSET', META, meta_set, n)
end

local function run_steps(_, args)
  begin(args)
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
