-- 6_verify.lua - is what is derived from jobs as it should be? V asks it of jobs, W of what points
-- at jobs. With `mend` it is made so.

local NAMES = { 'jobs', 'data', 'log', 'inactive', 'delayed', 'active', 'complete', 'failed',
                'cancelled', 'lease', 'ttl', 'due', 'unique', 'types', 'ids', 'blocks', 'words',
                'found' }

local function verify(id, mend, lines)
  local j = job(id)
  if not j then return end
  local id8, state = id_bytes(id), j[STATE]
  local function wrong(is, what, repair)
    if not is then return end
    lines[#lines + 1] = 'job ' .. id .. ': ' .. what
    if mend then repair() end
  end
  local function score(key, member)
    return tonumber(call('ZSCORE', KEYS[key], member) or huge)
  end
  wrong(score(STATE_KEY + state, place_of(j, id8)) ~= 0,
        'not in its place in the list of its state', function() index(j, id8) end)
  local at = due_of(j)
  wrong(at > 0 and score(DUE, id8) ~= at, 'not in its place among those that will be due',
        function() mark(DUE, id8, at) want(at) end)
  wrong(state == ACTIVE and score(LEASE, id8) == huge, 'active, but nobody has a lease on it',
        function() mark(LEASE, id8, now) want(now) end)
  wrong(state == ACTIVE and j[TTL_MS] > 0 and score(TTL, id8) == huge,
        'active, but its ttl is not running', function() run_ttl(j[TTL_MS], id8) end)
  wrong(j[UNIQUE_KEY] and not finished(state) and
        call('HGET', KEYS[UNIQUE], unique_name(j)) ~= id, 'does not hold its unique key',
        function() hold_key(j, id) end)
  local seq = floor(tonumber(id) / partitions)
  wrong(score(IDS, j[TYPE] .. '\0' .. spack('>I8', floor(seq / BLOCK))) ~= 0,
        'not in the list of ids', function()
          mark(IDS, j[TYPE] .. '\0' .. spack('>I8', floor(seq / BLOCK)), 0)
        end)
  wrong(seq > last, 'beyond the last id', function() last = seq end)
  wrong(not type_of(j[TYPE]), 'of a type that is not known', function() type_make(j[TYPE]) end)
  if j[SHORT_DATA] == '' and call('HEXISTS', KEYS[DATA], id) == 0 then
    lines[#lines + 1] = 'job ' .. id .. ': its data is missing'
  end
end

function steps.V(i, n)
  local mend, lines = ARGV[i] == '1', {}
  flush_all()
  for k = i + 1, i + n - 1 do verify(ARGV[k], mend, lines) end
  return lines
end

-- ---- what points at jobs ----

local function jobs_in_block(block)
  local name, number = string.sub(block, 1, -10), sunpack('>I8', block, #block - 7)
  local ids, n = {}, 0
  for k = 0, BLOCK - 1 do
    ids[k + 1] = format('%d', (number * BLOCK + k) * partitions + partition)
  end
  load(ids)
  for _, id in ipairs(ids) do
    if records[id] and type_in(records[id]) == name then n = n + 1 end
  end
  return n
end

-- By key: does this member (or field) belong there?
local function in_state(state)
  return function(member)
    local j = job(format('%d', (sunpack('>I8', member, #member - 7))))
    return j and j[STATE] == state and place_of(j, string.sub(member, -8)) == member
  end
end
local function active_one(id8)
  local j = job(format('%d', (sunpack('>I8', id8))))
  return j and j[STATE] == ACTIVE and j
end
local function there(id) return job(id) end

local belongs = {
  [DATA] = there,
  [FOUND] = there,
  [LOG] = function(field) return job(string.match(field, '^%d+')) end,
  [LEASE] = active_one,
  [TTL] = function(id8)
    local j = active_one(id8)
    return j and j[TTL_MS] > 0
  end,
  [DUE] = function(id8)
    local j = job(format('%d', (sunpack('>I8', id8))))
    return j and due_of(j) > 0
  end,
  [UNIQUE] = function(field)
    local j = job(call('HGET', KEYS[UNIQUE], field) or '0')
    return j and j[UNIQUE_KEY] and not finished(j[STATE]) and unique_name(j) == field
  end,
  [IDS] = function(block) return jobs_in_block(block) > 0 end,
  [BLOCKS] = function(block)
    return jobs_in_block(block) == tonumber(call('HGET', KEYS[BLOCKS], block) or 0)
  end,
  [WORDS] = function(member)
    return job(format('%d', (sunpack('>I8', member, #member - 7))))
  end,
}
for state = INACTIVE, CANCELLED do belongs[STATE_KEY + state] = in_state(state) end

local HASHES = { [DATA] = true, [FOUND] = true, [LOG] = true, [UNIQUE] = true, [BLOCKS] = true }

-- It was there when the key was walked; by now it may have gone its way with its job.
local function still_there(key, member)
  if HASHES[key] then return call('HEXISTS', KEYS[key], member) == 1 end
  return call('ZSCORE', KEYS[key], member)
end

local function take_out(key, member)
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
    mark(key, member, false)
  end
end

function steps.W(i, n)
  local mend, key, lines = ARGV[i] == '1', tonumber(ARGV[i + 1]), {}
  flush_all()
  for k = i + 2, i + n - 1 do
    local member = ARGV[k]
    if byte(member) ~= 255 and            -- the stone of 7_run.lua
       not belongs[key](member) and still_there(key, member) then
      lines[#lines + 1] = 'in ' .. NAMES[key] .. ': an entry that no job accounts for'
      if mend then take_out(key, member) end
    end
  end
  return lines
end

return more_made
end                                          -- of more()
