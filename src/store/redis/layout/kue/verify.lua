-- verify.lua - is what is derived from jobs as it should be? V asks it of jobs (by zid), W of what
-- points at jobs. With `mend` it is made so. Other processes may be at work, Kue's too: what they
-- are in the middle of is not wrong.

do

local function score(key, member)
  return tonumber(call('ZSCORE', key, member) or huge)
end

-- Lines about one job; `repair` is called with `mend`.
local function reporter(id, mend, lines)
  return function(is, what, repair)
    if not is then return end
    lines[#lines + 1] = 'job ' .. id .. ': ' .. what
    if mend then repair() end
  end
end

-- Was its last worker one of weir's?
local function last_was_ours(h)
  local _, started = string.match(h[H_HELD] or '', HELD)
  return started and started == h[H_STARTED]
end

local function verify_place(j, h, zid, wrong, mend)
  local state, keys = j[STATE], keys_of(j[TYPE])
  wrong(score(JOBS, zid) ~= j[PRIORITY], 'not in its place in the list of all',
        function() mark(JOBS, zid, j[PRIORITY]) end)
  wrong(score(ALL[state], zid) == huge or state == DELAYED and score(ALL[state], zid) ~= j[PROMOTE_AT],
        'not in its place in the list of its state', function() place(j, { zid }) end)
  local taking = state == INACTIVE and math.abs(now - j[UPDATED_AT]) < TAKING_MS
  wrong(score(keys[state], zid) ~= j[PRIORITY] and not taking,
        'not in its place in the list of its type and state', function() place(j, { zid }) end)
  local listed = finished(state) and score(keys[state + 10], zid)
  if listed == huge and not last_was_ours(h) then
    if mend then place(j, { zid }) end           -- Kue has ended it: it will be found
  else
    wrong(listed and listed ~= j[FINISHED_AT], 'not in its place in the list of what ended',
          function() place(j, { zid }) end)
  end
  for other = INACTIVE, CANCELLED do
    wrong(other ~= state and (score(ALL[other], zid) < huge or score(keys[other], zid) < huge),
          'also in the list of another state', function()
            if other == INACTIVE then touch(j[TYPE]) end
            mark(ALL[other], zid, false)
            mark(keys[other], zid, false)
          end)
  end
end

local function verify_ours(j, h, id, zid, wrong)
  local state, ours = j[STATE], is_ours(h)
  wrong(ours and score(LEASE, zid) == huge, 'active, but nobody has a lease on it', function()
    mark(LEASE, zid, now)
    want(now)
  end)
  wrong(ours and j[TTL_MS] > 0 and score(TTL, zid) == huge, 'active, but its ttl is not running',
        function() run_ttl(j, { zid }) end)
  wrong(j[DEADLINE_AT] > 0 and state <= DELAYED and score(DEADLINES, zid) ~= j[DEADLINE_AT],
        'not in its place among those with a deadline', function() place(j, { zid }) end)
  wrong(j[UNIQUE_KEY] and not finished(state) and not holder_of(j), 'does not hold its unique key',
        function() hold_key(j, id) end)
end

-- An entry without a hash is nobody's; a hash without a type is Kue's business. A job that was
-- removed since it was listed has no entry either.
local function verify_gone(id, zid, wrong)
  local listed = score(JOBS, zid) < huge
  local gone = listed and call('EXISTS', JOB .. id) == 0
  wrong(gone, 'it is missing, but in the list of all', function()
    mark(JOBS, zid, false)
    for state = INACTIVE, CANCELLED do mark(ALL[state], zid, false) end
  end)
end

function steps.V(i, n)
  local mend, lines = ARGV[i] == '1', { n - 1 }
  flush_all()
  for k = i + 1, i + n - 1 do
    local zid, id = ARGV[k], id_of(ARGV[k])
    if id then
      local wrong, j, h = reporter(id, mend, lines), job(id)
      if j then
        verify_place(j, h, zid, wrong, mend)
        verify_ours(j, h, id, zid, wrong)
        wrong(tonumber(id) > tonumber(call('GET', IDS) or 0), 'beyond the last id',
              function() call('SET', IDS, id) end)
        wrong(call('SISMEMBER', KNOWN, j[TYPE]) == 0, 'of a type that is not known',
              function() type_known(j[TYPE]) end)
      else
        verify_gone(id, zid, wrong)
      end
    end
  end
  return lines
end

-- ---- what points at jobs: in the order of the numbers that layout_kue.c gives them ----

local function state_is(state)
  return function(zid)
    local j = id_of(zid) and job(id_of(zid))
    return j and j[STATE] == state
  end
end

local function ours_by_zid(zid)
  local j, h = job(id_of(zid) or '')
  return j and is_ours(h) and j
end

-- Jobs that Kue has taken or removed since stay in these two until it is over.
local function not_over(key, zid)
  return score(key, zid) > now - LEFTOVER_MS
end

local function walks()
  return {
    { 'inactive', ALL[INACTIVE], state_is(INACTIVE) },
    { 'delayed', ALL[DELAYED], state_is(DELAYED) },
    { 'active', ALL[ACTIVE], state_is(ACTIVE) },
    { 'complete', ALL[COMPLETE], state_is(COMPLETE) },
    { 'failed', ALL[FAILED], state_is(FAILED) },
    { 'cancelled', ALL[CANCELLED], state_is(CANCELLED) },
    { 'lease', LEASE, function(zid) return ours_by_zid(zid) or not_over(LEASE, zid) end },
    { 'ttl', TTL, function(zid)
      local j = ours_by_zid(zid)
      return j and j[TTL_MS] > 0 or not_over(TTL, zid)
    end },
    { 'deadline', DEADLINES, function(zid)
      local j = job(id_of(zid) or '')
      return j and j[STATE] <= DELAYED and j[DEADLINE_AT] > 0
    end },
    { 'unique', UNIQUE, function(field)
      local j = job(call('HGET', UNIQUE, field) or '')
      return j and j[UNIQUE_KEY] and not finished(j[STATE]) and unique_name(j) == field
    end },
    { 'words', WORDS, function(member)
      return job(digits(sunpack('>I8', member, #member - 7)))
    end },
    { 'found', FOUND, function(id) return job(id) end },
  }
end

-- The sets of a type have no walk of their own: some thousands of each are looked at here.
local function stale_of_type(name)
  local stale = {}
  for state, key in ipairs({ unpack(keys_of(name), 1, CANCELLED) }) do
    for _, set in ipairs({ key, keys_of(name)[state + 10] }) do
      for _, zid in ipairs(call('ZRANGE', set, 0, MANY)) do
        local j = id_of(zid) and job(id_of(zid))
        if not j or j[TYPE] ~= name or j[STATE] ~= state then
          stale[#stale + 1] = { set, zid }
          touch(name)
        end
      end
    end
  end
  return stale
end

local function verify_type(name, mend, lines)
  if name == '*' then return end
  for _, e in ipairs(stale_of_type(name)) do
    lines[#lines + 1] = 'type ' .. name .. ': an entry in its lists that no job accounts for'
    if mend then mark(e[1], e[2], false) end
  end
  if not mend then touched[name] = nil end
end

-- It was there when the key was walked; by now it may have gone its way with its job.
local function still_there(key, member)
  if key == UNIQUE or key == FOUND then return call('HEXISTS', key, member) == 1 end
  return score(key, member) < huge
end

function steps.W(i, n)
  local mend, number_of_key, lines = ARGV[i] == '1', tonumber(ARGV[i + 1]), {}
  local walk = walks()[number_of_key]
  flush_all()
  for k = i + 2, i + n - 1 do
    local member = ARGV[k]
    if number_of_key == TYPES_WALK then
      verify_type(member, mend, lines)
    elseif not walk[3](member) and still_there(walk[2], member) then
      lines[#lines + 1] = 'in ' .. walk[1] .. ': an entry that no job accounts for'
      if mend and (walk[2] == UNIQUE or walk[2] == FOUND) then
        call('HDEL', walk[2], member)
      elseif mend then
        mark(walk[2], member, false)
      end
    end
  end
  return lines
end

end
