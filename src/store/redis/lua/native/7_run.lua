-- 7_run.lua - carry out the steps; recognise a call that was made before.

local READS = { G = true, I = true, F = true, O = true, Z = true, K = true, V = true, W = true }
local STEPS_WITH_ID = { D = true, R = true, S = true, L = true, P = true, E = true }

-- What this lane answered last, if it was this call.
local before = number and meta[4] and unpack_msg(meta[4])
if before and before[1] ~= number then before = nil end

-- Jobs that a take gave, as they are now.
local function taken_before(given)
  local ids, answer = {}, {}
  for k = 1, #given, 2 do ids[#ids + 1] = format('%d', given[k]) end
  load(ids)
  for k = 1, #ids do
    local r = held(ids[k], given[2 * k])
    if r then
      local n = #answer
      answer[n + 1], answer[n + 2] = given[2 * k - 1], r
      answer[n + 3] = call('HGET', KEYS[DATA], ids[k]) or '{}'
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
    given[#given + 1] = sunpack('>I4', answer[k + 1], AT_DELIVERY)
  end
  return given
end

local function load_all()
  local ids, i = {}, FIRST
  while i <= #ARGV do
    local letter, n = ARGV[i], tonumber(ARGV[i + 1])
    if STEPS_WITH_ID[letter] then ids[#ids + 1] = ARGV[i + 2] end
    if (letter == 'T' or letter == 't') and n == 4 then      -- of one type alone
      lookahead[ARGV[i + 5]] = (lookahead[ARGV[i + 5]] or 0) + tonumber(ARGV[i + 2])
    end
    if not steps[letter] then more() end
    i = i + 2 + n
  end
  load(ids)
end

local function run()
  local answers, memory, i, at = { now, '' }, { number }, FIRST, 2
  load_all()
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
  return answers, memory
end

local answers, memory = run()
if number then
  flush_all()
  local set = { 'last', last, 'keep', keep_at < huge and keep_at or '' }
  if not before then set[5], set[6] = lane, pack(memory) end
  if n_events > 0 or due < huge then
    local messages = tonumber(meta[2] or 0) + 1
    answers[2] = spack('>BI4', 221, 4 + 8 * n_events) ..       -- 0xdd: an array
                 pack(messages, now, origin, due < huge and due or 0) .. table.concat(events)
    set[#set + 1], set[#set + 2] = 'messages', messages
    call('SPUBLISH', ARGV[4] .. ':events', answers[2])
  end
  call('HSET', KEYS[META], unpack(set))
end
return answers
