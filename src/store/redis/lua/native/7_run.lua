-- 7_run.lua - carry out the steps; recognise a call that was made before.

local READS = { G = true, I = true, F = true, O = true, Z = true, K = true, V = true, W = true }

-- What this lane answered last, if it was to this call: "NUMBER TIME " and the answers. After a
-- later call this one is not wanted any more.
local before
if number and meta[4] then
  local made, at = string.match(meta[4], '^(%d+) %d+ ()')
  made = tonumber(made)
  if made == number then before = unpack_msg(sub(meta[4], at)) end
  if made > number then return { now, '' } end
end

-- Jobs that a take gave (id, delivery ...), as they are now.
local function taken_before(given)
  local answer = {}
  for k = 1, #given, 2 do
    local id, n = format('%d', given[k]), #answer
    local r = held(id, given[k + 1])
    if r then
      answer[n + 1], answer[n + 2] = given[k], r
      answer[n + 3] = call('HGET', KEYS[DATA], id) or ''
    end
  end
  return answer
end

for letter in pairs(uses) do
  if not steps[letter] then more() end
end
load(named)

local answers, memory, total = { now, '' }, {}, 0
local i, n_args = FIRST, #ARGV
while i <= n_args do
  local letter, n = ARGV[i], tonumber(ARGV[i + 1])
  local takes = letter == 'T' or letter == 't'
  local answer
  total = total + 1
  if before and not READS[letter] then
    answer = takes and taken_before(before[total]) or before[total]
  else
    answer = steps[letter](i + 2, n)
    if takes then
      local given, g = {}, 0
      for k = 1, #answer, 3 do
        given[g + 1], given[g + 2] = answer[k], sunpack('>I4', answer[k + 1], AT_DELIVERY)
        g = g + 2
      end
      memory[total] = given
    else
      memory[total] = not READS[letter] and answer
    end
  end
  answers[total + 2] = answer
  if answer == 'words' then break end        -- the rest waits, so that the order is kept
  i = i + 2 + n
end

if number then
  flush_all()
  if not meta[1] then
    -- The first call of a queue. Redis keeps a small sorted set as a list that it walks; with a
    -- member of more than 64 bytes it does not. These two are small, and used for every job.
    local stone = string.rep('\255', 65)
    call('ZADD', KEYS[STATE_KEY + ACTIVE], 0, stone)
    call('ZADD', KEYS[LEASE], '+inf', stone)
  end
  local set = { 'last', last, 'keep', keep_at < huge and keep_at or '' }
  if not before then set[5], set[6] = lane, format('%d %d ', number, now) .. pack(memory) end
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
