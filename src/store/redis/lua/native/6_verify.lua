-- 6_verify.lua - is what is derived from jobs as it should be? V asks it of jobs, W of what points
-- at jobs. With `mend` it is made so.

local NAMES = { 'jobs', 'runs', 'data', 'log', 'inactive', 'delayed', 'active', 'complete',
                'failed', 'cancelled', 'lease', 'ttl', 'due', 'unique', 'types', 'ids', 'blocks',
                'words', 'found' }

local function verify(id, mend, lines)
  local j = job(id)
  if not j then return end
  local state = j[STATE]
  local function wrong(is, what, repair)
    if not is then return end
    lines[#lines + 1] = format('job %d: ', id_number(id)) .. what
    if mend then repair() end
  end
  local function score(key, member)
    return tonumber(call('ZSCORE', KEYS[key], member) or huge)
  end
  wrong(score(STATE_KEY + state, place_of(j, id)) ~= 0,
        'not in its place in the list of its state', function() index(j, id) end)
  local at = due_of(j)
  wrong(at > 0 and score(DUE, id) ~= at, 'not in its place among those that will be due',
        function() put_in(DUE, id, at) want(at) end)
  wrong(state == ACTIVE and score(LEASE, id) == huge, 'active, but nobody has a lease on it',
        function() put_in(LEASE, id, now) want(now) end)
  wrong(state == ACTIVE and j[TTL_MS] > 0 and score(TTL, id) == huge,
        'active, but its ttl is not running', function() run_ttl(j[TTL_MS], id) end)
  wrong(j[UNIQUE_KEY] and not finished(state) and
        call('HGET', KEYS[UNIQUE], unique_name(j)) ~= id, 'does not hold its unique key',
        function() hold_key(j, id) end)
  local seq = floor(id_number(id) / partitions)
  local block = j[TYPE] .. '\0' .. spack('>I8', floor(seq / BLOCK))
  wrong(score(IDS, block) ~= 0, 'not in the list of ids', function() put_in(IDS, block, 0) end)
  wrong(seq > last, 'beyond the last id', function() last = seq end)
  wrong(not type_of(j[TYPE]), 'of a type that is not known', function() type_make(j[TYPE]) end)
  if has(j[FLAGS], APART) and call('HEXISTS', KEYS[DATA], id) == 0 then
    lines[#lines + 1] = format('job %d: its data is missing', id_number(id))
  end
end

function steps.V(i, n)
  local mend, lines = ARGV[i] == '1', {}
  for k = i + 1, i + n - 1 do verify(ARGV[k], mend, lines) end
  return lines
end

-- ---- what points at jobs ----

local function jobs_in_block(block)
  local name, b = sub(block, 1, -10), sunpack('>I8', block, #block - 7)
  local ids, n = {}, 0
  for k = 0, BLOCK - 1 do ids[k + 1] = id_bytes((b * BLOCK + k) * partitions + partition) end
  for _, spec in ipairs(get_many(JOBS, ids)) do
    if spec and type_in(spec) == name then n = n + 1 end
  end
  return n
end

-- By key: does this member (or field) belong there?
local function in_state(state)
  return function(member)
    local id = sub(member, -8)
    local j = job(id)
    return j and j[STATE] == state and place_of(j, id) == member
  end
end
local function active_one(id)
  local j = #id == 8 and job(id)
  return j and j[STATE] == ACTIVE and j
end
local function there(id) return #id == 8 and job(id) end

local belongs = {
  [RUNS] = there,
  [DATA] = there,
  [FOUND] = there,
  [LOG] = function(field) return there(sub(field, 1, 8)) end,
  [LEASE] = active_one,
  [TTL] = function(id)
    local j = active_one(id)
    return j and j[TTL_MS] > 0
  end,
  [DUE] = function(id)
    local j = there(id)
    return j and due_of(j) > 0
  end,
  [UNIQUE] = function(field)
    local j = there(call('HGET', KEYS[UNIQUE], field) or '')
    return j and j[UNIQUE_KEY] and not finished(j[STATE]) and unique_name(j) == field
  end,
  [IDS] = function(block) return jobs_in_block(block) > 0 end,
  [BLOCKS] = function(block)
    return jobs_in_block(block) == tonumber(call('HGET', KEYS[BLOCKS], block) or 0)
  end,
  [WORDS] = function(member) return there(sub(member, -8)) end,
}
for state = INACTIVE, CANCELLED do belongs[STATE_KEY + state] = in_state(state) end

local HASHES = { [RUNS] = true, [DATA] = true, [FOUND] = true, [LOG] = true, [UNIQUE] = true,
                 [BLOCKS] = true }

-- It was there when the key was walked; by now it may have gone its way with its job.
local function still_there(key, member)
  if HASHES[key] then return call('HEXISTS', KEYS[key], member) == 1 end
  return call('ZSCORE', KEYS[key], member)
end

local function drop(key, member)
  if key == BLOCKS then
    local n = jobs_in_block(member)
    if n > 0 then
      call('HSET', KEYS[BLOCKS], member, n)
    else
      call('HDEL', KEYS[BLOCKS], member)
    end
  elseif HASHES[key] then
    call('HDEL', KEYS[key], member)
  else
    take_out(key, member)
  end
end

function steps.W(i, n)
  local mend, key, lines = ARGV[i] == '1', tonumber(ARGV[i + 1]), {}
  for k = i + 2, i + n - 1 do
    local member = ARGV[k]
    if byte(member) ~= 255 and            -- the stone of 7_run.lua
       not belongs[key](member) and still_there(key, member) then
      lines[#lines + 1] = 'in ' .. NAMES[key] .. ': an entry that no job accounts for'
      if mend then drop(key, member) end
    end
  end
  return lines
end
