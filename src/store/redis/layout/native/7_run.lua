-- 7_run.lua - a call: carry out its steps; recognise a repeated call.

do

local BUSY = { A = true, T = true, t = true, D = true }

function layout.before_step(letter)
  if not BUSY[letter] then be_plain() end
end

-- The answer of a take that is remembered, with the jobs as they are now.
function layout.taken_before(given)
  local left, kept, passed, w, answer = {}, {}, false, 1, { '' }
  for at = 1, #(given[1] or ''), 2 do
    local n = sunpack('>I2', given[1], at)
    left[#left + 1], kept[#kept + 1] = n % PASSED, n - n % PASSED
    passed = passed or n >= PASSED
  end
  for k = 2, #given, 3 do
    for m = 0, given[k + 1] - 1 do
      local id, n = id_bytes(given[k] + m * partitions), #answer
      local r, spec = active_run(id, given[k + 2]), spec_of(id)
      while left[w] == 0 do w = w + 1 end
      left[w] = left[w] - 1
      if r and spec then
        answer[n + 1], answer[n + 2], answer[n + 3] = id, r, with_long_data(spec, id)
        kept[w] = kept[w] + 1
      end
    end
  end
  if #answer == 1 and not passed then return {} end
  answer[1] = spack('>' .. rep('I2', #kept), unpack(kept))
  return answer
end

end

local run_steps

do

-- Read, with two commands, what the ends (D) of this call need: grants, and the runs of jobs in none.
-- A caller may send any id, also one so large that adding 1 changes nothing.
local function prefetch_ends()
  local i, total, fields, wanted, ends, own = FIRST_STEP, #ARGV, {}, {}, {}, {}
  while i <= total do
    local letter, n = ARGV[i], count_in(ARGV[i + 1])
    for at = 1, letter == 'D' and #ARGV[i + 2] or 0, END do
      local id, _, count = sunpack('>I8I4I2', ARGV[i + 2], at)
      local first = block_of(id)
      ends[#ends + 1], ends[#ends + 2] = id, count
      for k = 0, block_of(id + (count - 1) * partitions) - first do
        local block = first + k
        if grants[block] == nil then
          grants[block] = false
          fields[#fields + 1], wanted[#wanted + 1] = grants_field(block), block
        end
      end
    end
    i = i + 2 + n
  end
  local texts = get_many(RUNS, fields)
  for k = 1, #wanted do grants[wanted[k]] = read_grants(texts[k]) end
  for k = 1, #ends, 2 do
    local id, left = ends[k], ends[k + 1]
    while left > 0 do
      local h, place = grant_with(id)
      if not h then own[#own + 1] = spack('>I8', id) end
      local some = h and live_in(h, place, left) or 1
      id, left = id + some * partitions, left - some
    end
  end
  local runs = get_many(RUNS, own)
  for k = 1, #own do records[own[k]] = runs[k] end
end

-- The first call of a queue. The store that opens it writes its version and partitions, but Redis
-- may have been emptied since. Redis keeps a small sorted set or hash as a list, which it walks; a
-- member of more than 64 bytes makes it a skip list or table. These are small, and used for every
-- job.
local function begin_queue()
  if partition == 0 then
    call('HSETNX', KEYS[META], 'version', VERSION)
    call('HSETNX', KEYS[META], 'partitions', partitions)
  end
  local sentinel = rep('\255', 65)
  call('HSET', KEYS[BLOCKS], sentinel, 0)
  put_in(STATE_KEY + INACTIVE, sentinel, 0)
  put_in(STATE_KEY + ACTIVE, sentinel, 0)
  put_in(LEASE, sentinel, '+inf')
  put_in(GRANTED, sentinel, '+inf')
end

-- Write what has changed in META: the last id, when retention is due, the last answer of this lane
-- (number of the call, time, answers), and the number of messages.
local meta_set = {}
local first_last, first_keep                 -- when the call began

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

function run_steps(_, args)
  begin(args)
  local lane = origin .. (number and number % 2 == 1 and ':1' or ':0')
  meta = call('HMGET', KEYS[META], 'last', 'messages', 'keep', lane)
  first_last, keep_at = tonumber(meta[1] or 0), tonumber(meta[3] or '') or huge
  last, first_keep = max(first_last, floor(ARGV[7] / partitions)), keep_at
  local before, messages
  if number and meta[4] then
    local made = sunpack('>I8', meta[4])
    if made == number then before = unpack_msg(sub(meta[4], 17)) end
    if made > number then return { now, '' } end       -- nobody wants its answer any more
  end
  prefetch_ends()
  local answers, memory = carry_out(before)
  settle()
  settled = true
  if not number then return answers end
  if not meta[1] then begin_queue() end
  if n_events > 0 or due < huge then
    messages = tonumber(meta[2] or layout.first_message()) + 1
    answers[2] = '\148' .. pack(messages, now, origin, due < huge and due or 0) ..
                 concat(events, '', 1, n_events)
    call('SPUBLISH', ARGV[4] .. ':events', answers[2])
    if n_events > MANY then events = {} end
  end
  write_meta(lane, not before and memory, messages)
  return answers
end

end
