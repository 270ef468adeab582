-- 5_read.lua - the steps that only look.

local function with_long_data(spec, id)
  if byte(spec, SPEC_FLAGS) < APART then return spec end
  return spec .. (call('HGET', KEYS[DATA], id) or '')
end

-- The run of an active job has its lease behind it.
local function with_lease(run, id)
  if byte(run) ~= ACTIVE then return run end
  return run .. pack(tonumber(lease_of(id) or 0))
end

function steps.G(i, n)
  local answer, with_data = {}, ARGV[i] == '1'
  for k = i + 1, i + n - 1 do
    local id = id_bytes(ARGV[k])
    local spec, run = spec_of(id), run_of(id) or ''
    if spec and with_data then spec, run = with_long_data(spec, id), with_lease(run, id) end
    answer[k - i] = spec and { run, spec } or { tonumber(meta[2] or 0) }
  end
  return answer
end

-- ---- lists ----

do

local function by_rank(a, b)
  if a[1] ~= b[1] then return a[1] < b[1] end
  return a[2] < b[2]
end

-- [id, run, spec ...] of ids that are there and fit, at most `limit`, behind what `answer` has.
-- Most may not fit, so their runs are not read. state 0: any.
local function answer_with(answer, ids, limit, with_data, fits, state)
  local all, kept, specs = specs_of(ids), {}, {}
  for k = 1, #ids do
    if all[k] and fits(all[k]) then
      kept[#kept + 1], specs[#specs + 1] = ids[k], all[k]
    end
  end
  local runs = runs_of(kept)
  for k = 1, #kept do
    local n, spec, run = #answer, specs[k], runs[k] or ''
    if n / 3 < limit and (state == 0 or state_in(runs[k]) == state) then
      if with_data then spec, run = with_long_data(spec, kept[k]), with_lease(run, kept[k]) end
      answer[n + 1], answer[n + 2], answer[n + 3] = kept[k], run, spec
    end
  end
end

-- The priority is the given one (nil: any).
local function is_of(priority, spec)
  return not priority or sunpack('>i4', spec, SPEC_PRIORITY) == priority
end

local function type_names(name)
  if name ~= '' then return { name } end
  local names = {}
  for _, known in ipairs(call('HKEYS', KEYS[TYPES])) do
    if known ~= '*' then names[#names + 1] = known end
  end
  return names
end

-- Members of a type behind `place` (the bytes after the type's name; "" is the start).
local function beyond(key, name, place, descending, n)
  local from, to = of_type(name)
  if descending then
    if place ~= '' then to = '(' .. name .. '\0' .. place end
    return call('ZREVRANGEBYLEX', KEYS[key], to, from, 'LIMIT', 0, n)
  end
  if place ~= '' then from = '(' .. name .. '\0' .. place end
  return call('ZRANGEBYLEX', KEYS[key], from, to, 'LIMIT', 0, n)
end

-- The jobs of an entry as { rank, id }, at most n, as far as they are behind the cursor. Answers
-- how many are still wanted.
local function jobs_behind(all, entry, name, c, n)
  local rank = sunpack('>I8', entry, #name + 2) - ZERO_RANK
  local first, count = jobs_of(entry, name)
  local from, to, step = first, first + (count - 1) * partitions, partitions
  if c.descending then from, to, step = to, from, -step end
  local at_cursor = c.id > 0 and rank == c.rank
  for id = from, to, step do
    if n == 0 then break end
    if not at_cursor or (c.descending and id < c.id) or (not c.descending and id > c.id) then
      all[#all + 1] = { rank, id }
      n = n - 1
    end
  end
  return n
end

-- At most n jobs of a type. True: there may be more.
local function entries_behind(all, state, name, c, n)
  local place = c.id > 0 and spack('>I8I8', c.rank + ZERO_RANK, c.id) or ''
  if place ~= '' and not c.descending then
    local entry = entry_with(state, name, sub(place, 1, 8), c.id)
    if entry then n = jobs_behind(all, entry, name, c, n) end
    place = place .. '\255\255\255'         -- behind that entry, also if it begins at the cursor
  end
  for _, entry in ipairs(beyond(STATE_KEY + state, name, place, c.descending, n)) do
    n = jobs_behind(all, entry, name, c, n)
  end
  return n == 0
end

-- Jobs in grants are in no order, but never very many: as many as workers have.
local function held_behind(all, name, c)
  for _, entry in ipairs(call('ZRANGEBYSCORE', KEYS[GRANTED], '-inf', '(+inf')) do
    local its_name, some = match(entry, '^[^%z]*'), {}
    local rank = sunpack('>I8', entry, #its_name + 2) - ZERO_RANK
    local behind = c.id == 0 or rank == c.rank or (rank < c.rank) == c.descending
    if behind and (name == '' or name == its_name) then
      jobs_behind(some, entry, its_name, c, huge)
      for _, its in ipairs(some) do
        if grant_with(its[2]) then all[#all + 1] = its end
      end
    end
  end
end

-- As many are read of each type: those up to the first place behind which one may have more are all
-- that there are. look 0: that is enough.
local function list_state(state, name, c, limit, with_data, priority, look)
  local names, answer, seen = type_names(name), {}, 0
  local before = c.descending and function(a, b) return by_rank(b, a) end or by_rank
  local function fits(spec) return is_of(priority, spec) end
  while true do
    local n = look == 0 and limit or max(FEWEST, floor(min(PAGE, look - seen) / #names))
    local all, ids, known = {}, {}, nil
    for _, t in ipairs(names) do
      local full = entries_behind(all, state, t, c, n)
      if full and (not known or before(all[#all], known)) then known = all[#all] end
    end
    if state == ACTIVE then held_behind(all, name, c) end
    if #names > 1 or state == ACTIVE then sort(all, before) end
    for k = 1, look == 0 and min(limit, #all) or #all do
      if known and before(known, all[k]) then break end
      ids[k] = id_bytes(all[k][2])
    end
    answer_with(answer, ids, limit, with_data, fits, 0)
    seen = seen + #all
    if look == 0 or not known or #answer >= 3 * limit then return answer end
    if seen >= look then return layout.stopped_at(answer, known[1], known[2]) end
    c = { descending = c.descending, rank = known[1], id = known[2] }
  end
end

-- The next block of ids of these types behind `block` (nil: the first).
local function next_block(names, block, descending)
  local best
  for _, t in ipairs(names) do
    local member = beyond(IDS, t, block and spack('>I8', block) or '', descending, 1)[1]
    local number = member and sunpack('>I8', member, #t + 2)
    if number and (not best or (number < best) ~= descending) then best = number end
  end
  return best
end

local function list_ids(name, descending, id, limit, with_data, priority, look)
  local names, answer, seen = type_names(name), {}, 0
  local function fits(spec)
    return (name == '' or type_in(spec) == name) and is_of(priority, spec)
  end
  -- The block of the cursor itself comes first: begin just before it.
  local block
  if id > 0 then
    block = floor(floor(id / partitions) / BLOCK) + (descending and 1 or -1)
    if block < 0 then block = nil end
  end
  while #answer / 3 < limit do
    block = next_block(names, block, descending)
    if not block then break end
    local ids, n = {}, nil
    for k = 0, BLOCK - 1 do
      local seq = block * BLOCK + (descending and BLOCK - 1 - k or k)
      n = seq * partitions + partition
      if n > 0 and (id == 0 or (descending and n < id) or (not descending and n > id)) then
        ids[#ids + 1] = id_bytes(n)
      end
    end
    answer_with(answer, ids, limit, with_data, fits, 0)
    seen = seen + #ids
    if look > 0 and seen >= look and #answer < 3 * limit then return layout.stopped_at(answer, 0, n) end
  end
  return answer
end

function steps.I(i)
  local state, name, descending = tonumber(ARGV[i]), ARGV[i + 1], ARGV[i + 2] == '1'
  local rank, id, limit = tonumber(ARGV[i + 3]), tonumber(ARGV[i + 4]), tonumber(ARGV[i + 5])
  local with_data, priority, look = ARGV[i + 6] == '1', tonumber(ARGV[i + 7]), tonumber(ARGV[i + 8])
  if ARGV[i + 9] == '1' and layout.is_paused(name) then return {} end
  if state > 0 then
    local cursor = { descending = descending, rank = rank, id = id }
    return list_state(state, name, cursor, limit, with_data, priority, look)
  end
  return list_ids(name, descending, id, limit, with_data, priority, look)
end

-- ---- find ----

layout.id = id_bytes
function layout.before_find() end

function layout.add_found(answer, ids, q)
  local function fits(spec)
    return (q.name == '' or type_in(spec) == q.name) and is_of(q.priority, spec)
  end
  answer_with(answer, ids, q.limit, q.with_data, fits, q.state)
end

-- ---- log, statistics ----

-- Lines that came from elsewhere may have gaps between their numbers.
function steps.O(i)
  local id, after, limit = id_bytes(ARGV[i]), tonumber(ARGV[i + 1]), tonumber(ARGV[i + 2])
  local j = job(id)
  if not j then return -1 end
  local answer, n = {}, max(after + 1, j[LINES] - MAX_LOG + 1, 1)
  while n <= j[LINES] and #answer < 3 * limit do
    local fields = {}
    for k = n, min(n + LOG_PAGE - 1, j[LINES]) do fields[#fields + 1] = id .. k end
    local lines = get_many(LOG, fields)
    for k = 1, #fields do
      local at, text = match(lines[k] or '', '^(%-?%d+) (.*)$')
      local a = #answer
      if at and a < 3 * limit then
        answer[a + 1], answer[a + 2], answer[a + 3] = n + k - 1, tonumber(at), text
      end
    end
    n = n + #fields
  end
  return answer
end

function steps.Z()
  local answer = { last > 0 and last * partitions + partition or 0 }
  for _, name in ipairs(call('HKEYS', KEYS[TYPES])) do
    local row = { name, pack({ unpack(type_of(name), 1, T_ANSWERED) }) }
    for state = INACTIVE, CANCELLED do row[state + 2] = count_of(state, name) end
    local first = beyond(STATE_KEY + INACTIVE, name, '', false, 1)[1]
    local j = first and job(sub(first, #name + 10, #name + 17))
    row[9] = j and j[CREATED_AT] or 0
    answer[#answer + 1] = row
  end
  return answer
end

end
