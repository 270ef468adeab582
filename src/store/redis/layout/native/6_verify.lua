-- 6_verify.lua - is what is derived from jobs as it should be? V asks it of jobs, W of what points
-- at jobs. With `mend` it is made so.

-- Is it so of each of these jobs? Asks is_so(id, spec or false, place among them), until one says no:
-- what they have is read for a block of them at a time.
local function is_so_of_all(ids, is_so)
  for from = 1, #ids, BLOCK do
    local some = { unpack(ids, from, min(from + BLOCK - 1, #ids)) }
    local specs, runs = specs_of(some), get_many(RUNS, some)
    for k = 1, #some do records[some[k]] = runs[k] end
    for k = 1, #some do
      if not is_so(some[k], specs[k], from + k - 1) then return false end
    end
  end
  return true
end

local function ids_from(first, count)
  local ids = {}
  for k = 1, count do ids[k] = id_bytes(first + (k - 1) * partitions) end
  return ids
end

do

local function verify(id, spec, mend, lines)
  local j = decode(spec, run_of(id))
  local state = j[STATE]
  local function wrong(is, what, repair)
    if not is then return end
    lines[#lines + 1] = format('job %d: ', id_number(id)) .. what
    if mend then repair() end
  end
  local function score(key, member)
    return tonumber(call('ZSCORE', KEYS[key], member) or huge)
  end
  local h = not stored_run(id) and grant_with(id_number(id))
  local in_entry = not stored_run(id) and
                   entry_with(state, j[TYPE], spack('>I8', rank_of(j) + ZERO_RANK), id_number(id))
  local b = not stored_run(id) and completion_with(id_number(id))
  wrong(not h and not in_entry and score(STATE_KEY + state, place_of(j, id)) ~= 0,
        'not in its place in the list of its state',
        function()
          if b then
            put_in(STATE_KEY + COMPLETE, completion_entry(b), 0)
          else
            index(j, id)
          end
        end)
  wrong(h and score(GRANTED, grant_entry(h)) == huge, 'active, but nobody has a lease on it',
        function() put_in(GRANTED, grant_entry(h), now) want(now) end)
  local at = due_of(j)
  wrong(at > 0 and score(DUE, id) ~= at, 'not in its place among those that will be due',
        function() put_in(DUE, id, at) want(at) end)
  wrong(state == ACTIVE and not h and score(LEASE, id) == huge,
        'active, but nobody has a lease on it', function() put_in(LEASE, id, now) want(now) end)
  wrong(state == ACTIVE and j[TTL_MS] > 0 and score(TTL, id) == huge,
        'active, but its ttl is not running', function() run_ttl(j[TTL_MS], id) end)
  wrong(j[UNIQUE_KEY] and not finished(state) and
        call('HGET', KEYS[UNIQUE], unique_name(j)) ~= id, 'does not hold its unique key',
        function() hold_key(j, id) end)
  local seq = floor(id_number(id) / partitions)
  local block = j[TYPE] .. '\0' .. spack('>I8', floor(seq / BLOCK))
  wrong(score(IDS, block) ~= 0, 'not in the list of ids', function() put_in(IDS, block, 0) end)
  wrong(seq > last, 'beyond the last id', function() last = seq end)
  wrong(not type_of(j[TYPE]), 'of a type that is not known',
        function() layout.make_type(j[TYPE]) end)
  if has(j[FLAGS], APART) and call('HEXISTS', KEYS[DATA], id) == 0 then
    lines[#lines + 1] = format('job %d: its data is missing', id_number(id))
  end
end

-- The jobs of a field; answers how many.
local function verify_field(field, mend, lines)
  local ids = jobs_in_field(field)
  if ids == nil then                         -- it stays: somebody may want to see what was there
    lines[#lines + 1] = 'in jobs: a field that cannot be read'
    return 0
  end
  if not ids then
    lines[#lines + 1] = 'in jobs: an entry that no job accounts for'
    if mend then call('HDEL', KEYS[JOBS], field) end
    return 0
  end
  is_so_of_all(ids, function(id, spec)
    if spec then verify(id, spec, mend, lines) end
    return true
  end)
  return #ids
end

function steps.V(i, n)
  local mend, lines, jobs = ARGV[i] == '1', { 0 }, 0
  for k = i + 1, i + n - 1 do
    if jobs > SOME_JOBS then
      lines[#lines + 1] = k - i - 1
      break
    end
    jobs = jobs + verify_field(ARGV[k], mend, lines)
  end
  lines[1] = jobs
  return lines
end

end

-- ---- what points at jobs ----

do

local function jobs_in_block(block)
  local name, b = sub(block, 1, -10), sunpack('>I8', block, #block - 7)
  local n = 0
  for _, spec in ipairs(specs_of(ids_from(b * BLOCK * partitions + partition, BLOCK))) do
    if spec and type_in(spec) == name then n = n + 1 end
  end
  return n
end

local looked_at                              -- jobs, in this step

local function name_in(entry)
  return match(entry, '^[^%z]*')
end

local function belongs_in(entry, state)
  local name = name_in(entry)
  return function(id, spec)
    local j = spec and not stored_run(id) and decode(spec, run_of(id))
    return j and j[STATE] == state and place_of(j, id) == sub(entry, 1, #name + 9) .. id
  end
end

local function live_grant(entry)
  local first = jobs_of(entry, name_in(entry))
  for _, h in ipairs(grants_in(block_of(first))) do
    if h.left > 0 and grant_entry(h) == entry then return h end
  end
end

-- The jobs in the grants of a block that are missing, or have a run of their own.
local function lost_in(field)
  local lost = {}
  for _, h in ipairs(grants_in(sunpack('>I8', field, 2))) do
    is_so_of_all(ids_from(h.first, #h.live), function(id, spec, place)
      if h.live[place] == 1 and (stored_run(id) or not spec) then lost[#lost + 1] = { h, place } end
      return true
    end)
  end
  return lost
end

-- And in a completion?
local function lost_in_completion(b)
  looked_at = looked_at + b.count
  return not is_so_of_all(ids_from(b.first, b.count), function(id, spec)
    return spec and not stored_run(id)
  end)
end

local function completion_of_entry(entry)
  local b = completion_with((jobs_of(entry, name_in(entry))))
  return b and completion_entry(b) == entry and b
end

local counts_of

do

-- Jobs of a type in a state beyond one for each entry.
local function together_in(state, name)
  local from, to = of_type(name)
  local n = 0
  for _, entry in ipairs(call('ZRANGEBYLEX', KEYS[STATE_KEY + state], from, to)) do
    local _, count = jobs_of(entry, name)
    n = n + count - 1
  end
  return n
end

-- The counts that a type's record should have of its spans, grants and completions. To count takes
-- a while, in which Redis does nothing else: of a type with very many jobs it is not done.
function counts_of(name)
  local n = 0
  if count_of(INACTIVE, name) + count_of(COMPLETE, name) > MOST_COUNTED then
    local t = type_of(name)
    return t[T_SPANS], t[T_GRANTED], t[T_DONE]
  end
  for _, entry in ipairs(call('ZRANGEBYSCORE', KEYS[GRANTED], '-inf', '(+inf')) do
    local h = name_in(entry) == name and live_grant(entry)
    n = n + (h and h.left or 0)
  end
  return together_in(INACTIVE, name), n, together_in(COMPLETE, name)
end

end

local belongs

do

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

belongs = {
  [RUNS] = function(field)
    if #field == 8 then return there(field) end
    if byte(field) == 100 then     -- d
      local b = completion_with(sunpack('>I8', field, 2))
      return b and not lost_in_completion(b)
    end
    return #lost_in(field) == 0
  end,
  [GRANTED] = live_grant,
  [TYPES] = function(name)
    local t, spans, n, done = type_of(name), counts_of(name)
    return t[T_SPANS] == spans and t[T_GRANTED] == n and t[T_DONE] == done
  end,
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
belongs[STATE_KEY + INACTIVE] = function(entry)
  local first, count, _, place = jobs_of(entry, name_in(entry))
  if not place then return in_state(INACTIVE)(entry) end
  looked_at = looked_at + count
  return is_so_of_all(ids_from(first, count), belongs_in(entry, INACTIVE))
end
belongs[STATE_KEY + COMPLETE] = function(entry)
  local _, count = jobs_of(entry, name_in(entry))
  if count > 1 then return completion_of_entry(entry) end
  return stored_run(sub(entry, -8)) and in_state(COMPLETE)(entry)
end

end

local HASHES = { [RUNS] = true, [DATA] = true, [FOUND] = true, [LOG] = true, [UNIQUE] = true,
                 [TYPES] = true, [BLOCKS] = true }

-- It was there when the key was walked; by now it may have gone its way with its job.
local function still_there(key, member)
  if HASHES[key] then return call('HEXISTS', KEYS[key], member) == 1 end
  return call('ZSCORE', KEYS[key], member)
end

-- A span with a job that does not belong there: the others stay, each by itself.
local function drop_span(entry)
  local name = name_in(entry)
  local first, count, _, place = jobs_of(entry, name)
  local belongs_there = belongs_in(entry, INACTIVE)
  take_out(STATE_KEY + INACTIVE, entry)
  count_together(name, T_SPANS, count, 0)
  if not place then return end
  is_so_of_all(ids_from(first, count), function(id, spec)
    if belongs_there(id, spec) then
      put_in(STATE_KEY + INACTIVE, sub(entry, 1, #name + 9) .. id, 0)
    end
    return true
  end)
end

-- A completion with a missing job: likewise.
local function mend_completion(b)
  drop_completion(b)
  for id = b.first, b.first + (b.count - 1) * partitions, partitions do
    local id8 = id_bytes(id)
    if not stored_run(id8) and spec_of(id8) then put_completion(b, id, 1) end
  end
end

local drop_from = {
  [STATE_KEY + INACTIVE] = drop_span,
  [STATE_KEY + COMPLETE] = function(entry)
    local name = name_in(entry)
    local _, count = jobs_of(entry, name)
    take_out(STATE_KEY + COMPLETE, entry)
    count_together(name, T_DONE, count, 0)
  end,
  [BLOCKS] = function(block)
    local n = jobs_in_block(block)
    if n > 0 then
      call('HSET', KEYS[BLOCKS], block, n)
    else
      call('HDEL', KEYS[BLOCKS], block)
    end
  end,
  [RUNS] = function(field)
    if #field == 8 then
      call('HDEL', KEYS[RUNS], field)
      return
    end
    if byte(field) == 100 then
      mend_completion(completion_with(sunpack('>I8', field, 2)))
      return
    end
    for _, l in ipairs(lost_in(field)) do
      leave_grant(l[1], l[2], 1)
      count_granted(name_of(l[1]), -1)
    end
  end,
  [TYPES] = function(name)
    local t = type_of(name)
    t[T_SPANS], t[T_GRANTED], t[T_DONE] = counts_of(name)
    types_dirty[name] = true
  end,
}

local function drop(key, member)
  if drop_from[key] then
    drop_from[key](member)
  elseif HASHES[key] then
    call('HDEL', KEYS[key], member)
  else
    take_out(key, member)
  end
end

local NAMES = { 'jobs', 'runs', 'data', 'log', 'inactive', 'delayed', 'active', 'complete',
                'failed', 'cancelled', 'lease', 'ttl', 'due', 'held', 'unique', 'types', 'ids',
                'blocks', 'words', 'found' }

-- It stops when it has looked at enough: the answer then ends with how many members that were.
function steps.W(i, n)
  local mend, key, lines = ARGV[i] == '1', tonumber(ARGV[i + 1]), {}
  looked_at = 0
  for k = i + 2, i + n - 1 do
    local member = ARGV[k]
    if looked_at > AT_A_TIME then
      lines[#lines + 1] = k - i - 2
      break
    end
    looked_at = looked_at + 1
    if byte(member) ~= 255 and            -- the sentinel of 7_run.lua
       not belongs[key](member) and still_there(key, member) then
      lines[#lines + 1] = 'in ' .. NAMES[key] .. (key == TYPES and ': counts that are not right' or
                                                  ': an entry that no job accounts for')
      if mend then drop(key, member) end
    end
  end
  return lines
end

end
