-- 3_work.lua - the steps of producers and workers. A step gets the place of its first argument in
-- ARGV and how many it has; what it answers is its answer.

local steps = {}
local worked = true                -- did the last step? For t

-- ---- add ----

-- The record as C sent it, to be changed: without its three last fields, which are times.
local three_times = string.rep(pack(now), 3)

local function add_special(rec, data, extra)
  local j = unpack_msg(rec .. three_times)
  local delay, run_at, _, unique, words = unpack(extra)
  if unique then
    local holder = call('HGET', KEYS[UNIQUE], unique_name(j))
    if holder then return tonumber(holder), job(holder)[STATE], 1 end
  end
  local at = now + delay
  if run_at > at then at = run_at end
  j[STATE], j[PROMOTE] = at > now and DELAYED or INACTIVE, at
  if settings_of(j[TYPE])[SEARCH] == 1 and j[FLAGS] < 2 then j[FLAGS] = j[FLAGS] + 2 end
  last = last + 1
  local n = last * partitions + partition
  local id, id8 = format('%d', n), spack('>I8', n)
  jobs[id], dirty[id] = j, true
  index(j, id8)
  hold_key(j, id)
  if words and j[FLAGS] >= 2 then note_words(id, id8, 1, words) end
  call('HSET', KEYS[DATA], id, data)
  return n, j[STATE], 0
end

local function words_are_missing(i, count)
  for k = i, i + count * 5 - 1, 5 do
    if settings_of(ARGV[k])[SEARCH] == 1 and
       (ARGV[k + 4] == '' or not unpack_msg(ARGV[k + 4])[5]) then
      return true
    end
  end
end

function steps.A(i, n)
  local count, answer, plain = n / 5, {}, true
  if words_are_missing(i, count) then return 'words' end
  local set, data, k, a = {}, {}, 0, 0
  local name_before, open
  for p = i, i + n - 1, 5 do
    local name, rank, rec, extra = ARGV[p], ARGV[p + 1], ARGV[p + 2], ARGV[p + 4]
    if name ~= name_before then
      type_make(name)
      name_before, open = name, name .. '\0'
    end
    local number, state, existed = 0, INACTIVE, 0
    if extra == '' then
      last = last + 1
      number = last * partitions + partition
      local id = format('%d', number)
      jobs[id] = nil               -- another step may have looked for it before
      set[k + 1], set[k + 2] = id, rec .. three_times
      data[k + 1], data[k + 2] = id, ARGV[p + 3]
      k = k + 2
      mark(STATE_KEY + INACTIVE, open .. rank .. spack('>I8', number), 0)
    else
      number, state, existed = add_special(rec, ARGV[p + 3], unpack_msg(extra))
    end
    if existed == 1 then
      plain = false
    else
      count_block(name, number, 1)
      if state == INACTIVE then
        local m = #message
        message[m + 1], message[m + 2], message[m + 3], message[m + 4] = ENQUEUE, state, number, name
        message[m + 5], message[m + 6], message[m + 7], message[m + 8] = 0, 0, 0, false
      else
        plain = false
      end
    end
    answer[a + 1], answer[a + 2], answer[a + 3] = number, state, existed
    a = a + 3
  end
  many('HSET', JOBS, set, 2)
  many('HSET', DATA, data, 2)
  return plain and a > 0 and { answer[1] } or answer
end

-- ---- take ----

local function by_rank(a, b)
  if a[1] ~= b[1] then return a[1] < b[1] end
  return a[2] < b[2]
end

-- Waiting jobs of these types, best first, as { rank, id }, at most n of each type. `more`: there
-- may be others behind them.
local function candidates(names, n)
  local all, more = {}, false
  for _, name in ipairs(names) do
    local from, to = of_type(name)
    local got = call('ZRANGEBYLEX', KEYS[STATE_KEY + INACTIVE], from, to, 'LIMIT', 0, n)
    for k = 1, #got do
      local rank, id = sunpack('>I8I8', got[k], #name + 2)
      all[#all + 1] = { rank, id }
    end
    more = more or #got == n
  end
  if #names > 1 then table.sort(all, by_rank) end
  return all, more
end

-- The ids (as text) of up to n jobs to take: not past their deadline. With n of each type, the
-- first n are the best n, unless some are past it: then ask for more of each.
local function choose(names, n)
  local ask = n
  while true do
    local all, more = candidates(names, ask)
    local ids, chosen = {}, {}
    for k = 1, math.min(#all, ask) do ids[k] = format('%d', all[k][2]) end
    load(ids)
    for k = 1, #ids do
      local j = jobs[ids[k]]
      if j and (j[DEADLINE] == 0 or j[DEADLINE] > now) then
        chosen[#chosen + 1] = ids[k]
        if #chosen == n then return chosen end
      end
    end
    if not more and #ids == #all then return chosen end
    ask = ask * 2
  end
end

local function waiting_names(from, to)
  local names, seen = {}, {}
  local all = type_of('*')
  if all and all[PAUSED] == 1 then return names end
  for k = from, to do
    local name = ARGV[k]
    local t = not seen[name] and type_of(name)
    seen[name] = true
    if t and t[PAUSED] == 0 then names[#names + 1] = name end
  end
  return names
end

local function start(id, worker)
  local j, id8 = jobs[id], id_bytes(id)
  unindex(j, id8)
  j[STATE], j[DELIVERY], j[WORKER] = ACTIVE, j[DELIVERY] + 1, worker
  j[STARTED], j[UPDATED], j[PROGRESS], j[PROGRESS_DATA] = now, now, 0, false
  index(j, id8)
  run_ttl(j, id8)
  tell(START, j, tonumber(id), ACTIVE, worker)
  return j, id8
end

function steps.T(i, n)
  local wanted, lease, worker = tonumber(ARGV[i]), tonumber(ARGV[i + 1]), ARGV[i + 2]
  local names = waiting_names(i + 3, i + n - 1)
  if #names == 0 then return {} end
  flush(STATE_KEY + INACTIVE)
  local ids = choose(names, wanted)
  if #ids == 0 then return {} end
  local data, answer = get_many(DATA, ids), {}
  for k = 1, #ids do
    local id = ids[k]
    local j, id8 = start(id, worker)
    mark(LEASE, id8, now + lease)
    local t = type_of(j[TYPE])
    t[T_TAKEN], types_dirty[j[TYPE]] = now, true
    local record = pack(j)
    dirty[id] = record
    answer[3 * k - 2], answer[3 * k - 1], answer[3 * k] = tonumber(id), record, data[k] or '{}'
  end
  want(now + lease)
  return answer
end

function steps.t(i, n)
  return worked and steps.T(i, n) or {}
end

-- ---- the end ----

function steps.D(i)
  local id = ARGV[i]
  local j = held(id, ARGV[i + 1])
  worked = j
  if not j then return -1 end
  local id8 = id_bytes(id)
  local result = ARGV[i + 3] == '1' and ARGV[i + 2]
  local t = type_make(j[TYPE])
  types_dirty[j[TYPE]] = true
  unindex(j, id8)
  j[STATE], j[ATTEMPTS], j[PROGRESS] = COMPLETE, j[ATTEMPTS] + 1, 100
  j[RESULT], j[ERROR], j[DURATION] = result, false, math.max(0, now - j[STARTED])
  j[FINISHED], j[UPDATED] = now, now
  t[T_COMPLETED], t[T_WORK] = t[T_COMPLETED] + 1, t[T_WORK] + j[DURATION]
  let_go_of_key(j)
  if j[FLAGS] % 2 == 1 then
    forget(j, id, id8)
    tell(COMPLETED, j, tonumber(id), 0, result)
    return 0
  end
  index(j, id8)
  dirty[id] = true
  tell(COMPLETED, j, tonumber(id), COMPLETE, result)
  want_retention(j)
  return COMPLETE
end

function steps.R(i)
  local id = ARGV[i]
  local j = held(id, ARGV[i + 1])
  worked = j
  if not j then return -1 end
  local id8 = id_bytes(id)
  unindex(j, id8)
  j[STATE], j[UPDATED] = INACTIVE, now
  index(j, id8)
  dirty[id] = true
  tell(ENQUEUE, j, tonumber(id), INACTIVE, false)
  return INACTIVE
end

-- ---- while it runs ----

function steps.N(i, n)
  local answer = {}
  for k = i, i + n - 1, 3 do
    local j = held(ARGV[k], ARGV[k + 1])
    if j then
      local till = now + tonumber(ARGV[k + 2])
      mark(LEASE, id_bytes(ARGV[k]), till)
      want(till)
    end
    answer[#answer + 1] = j and 1 or 0
  end
  return answer
end

function steps.S(i)
  local id = ARGV[i]
  local j = held(id, ARGV[i + 1])
  if not j then return 0 end
  j[PROGRESS], j[UPDATED] = tonumber(ARGV[i + 2]), now
  if ARGV[i + 4] == '1' then j[PROGRESS_DATA] = ARGV[i + 3] end
  dirty[id] = true
  run_ttl(j, id_bytes(id))
  tell(PROGRESS_EVENT, j, tonumber(id), ACTIVE, j[PROGRESS_DATA])
  return 1
end

function steps.L(i)
  local id, delivery = ARGV[i], ARGV[i + 1]
  local j
  if delivery == '0' then
    j = job(id)
    if not j then return -1 end
  else
    j = held(id, delivery)
    if not j then return 0 end
    run_ttl(j, id_bytes(id))
  end
  add_line(j, id, id_bytes(id), ARGV[i + 2], ARGV[i + 3])
  return 1
end
