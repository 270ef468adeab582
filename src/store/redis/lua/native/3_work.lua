-- 3_work.lua - the steps of producers and workers. A step gets the place of its first argument in
-- ARGV and how many it has; what it answers is its answer.

local steps = {}
local worked = true                          -- did the last step? For t
local now7 = spack('>I7', now)
local FALSE = '\194'                         -- MessagePack

local function event_of(kind, state, id, name, attempts, progress, delivery, text)
  return pack(kind, state, id, name, attempts, progress, delivery, text)
end

-- ---- add ----

local function add_special(rec, data, extra)
  local j = decode(now7 .. now7 .. now7 .. rec)
  local delay, run_at, _, unique, words = unpack(extra)
  if unique then
    local holder = call('HGET', KEYS[UNIQUE], unique_name(j))
    if holder then return tonumber(holder), byte(record(holder), AT_STATE), 1 end
  end
  local at = now + delay
  if run_at > at then at = run_at end
  j[STATE], j[PROMOTE] = at > now and DELAYED or INACTIVE, at
  if settings_of(j[TYPE])[SEARCH] == 1 and not has(j[FLAGS], SEARCHED) then
    j[FLAGS] = j[FLAGS] + SEARCHED
  end
  last = last + 1
  local n = last * partitions + partition
  local id, id8 = format('%d', n), spack('>I8', n)
  store(id, encode(j))
  index(j, id8)
  hold_key(j, id)
  if words and has(j[FLAGS], SEARCHED) then note_words(id, id8, 1, words) end
  call('HSET', KEYS[DATA], id, data)
  return n, j[STATE], 0
end

local function words_are_missing(i, n)
  local before
  for k = i, i + n - 1, 5 do
    if ARGV[k] ~= before or ARGV[k + 4] ~= '' then
      before = ARGV[k]
      if settings_of(before)[SEARCH] == 1 and
         (ARGV[k + 4] == '' or not unpack_msg(ARGV[k + 4])[5]) then
        return true
      end
    end
  end
end

-- A new job, behind those of its type that were read ahead; unless it comes before one of them.
local function add_to_ready(name, list, rank, number, id, rec, data, place)
  local r = sunpack('>I8', rank)
  if list.n > 0 and r < list.rank then
    ready[name] = nil
  elseif not list.more then
    local n = list.n + 1
    list.n, list.rank = n, r
    list[n] = { id, number, rec, data, place }
  end
end

function steps.A(i, n)
  if words_are_missing(i, n) then return 'words' end
  local answer, a, plain, k = {}, 0, true, n_new
  local name_before, open, name_msg
  local times = now7 .. now7 .. now7
  for p = i, i + n - 1, 5 do
    local name, rank, extra = ARGV[p], ARGV[p + 1], ARGV[p + 4]
    if name ~= name_before then
      type_make(name)
      name_before, open, name_msg = name, name .. '\0', pack(name)
    end
    local number, state, existed = 0, INACTIVE, 0
    if extra == '' then
      last = last + 1
      number = last * partitions + partition
      local id, rec, data = format('%d', number), times .. ARGV[p + 2], ARGV[p + 3]
      new_jobs[k + 1], new_jobs[k + 2] = id, rec
      new_data[k + 1], new_data[k + 2] = id, data
      k = k + 2
      records[id] = nil            -- another step may have looked for it before
      local place = open .. rank .. spack('>I8', number)
      mark(STATE_KEY + INACTIVE, place, 0)
      if ready[name] then add_to_ready(name, ready[name], rank, number, id, rec, data, place) end
    else
      number, state, existed = add_special(ARGV[p + 2], ARGV[p + 3], unpack_msg(extra))
    end
    if existed == 0 then
      count_block(name, number, 1)
      if state == INACTIVE then tell('\0\1' .. pack(number) .. name_msg .. '\0\0\0' .. FALSE) end
    end
    if existed == 1 or state ~= INACTIVE then plain = false end
    answer[a + 1], answer[a + 2], answer[a + 3] = number, state, existed
    a = a + 3
  end
  n_new = k
  return plain and a > 0 and { answer[1] } or answer
end

-- ---- take ----

local function by_rank(a, b)
  if a[1] ~= b[1] then return a[1] < b[1] end
  return a[2] < b[2]
end

-- Waiting jobs of these types, best first, as { rank, id, place }, at most n of each type. `more`:
-- there may be others behind them.
local function candidates(names, n)
  local all, more = {}, false
  flush(STATE_KEY + INACTIVE)
  for _, name in ipairs(names) do
    local from, to = of_type(name)
    local got = call('ZRANGEBYLEX', KEYS[STATE_KEY + INACTIVE], from, to, 'LIMIT', 0, n)
    for k = 1, #got do
      local rank, id = sunpack('>I8I8', got[k], #name + 2)
      all[#all + 1] = { rank, id, got[k] }
    end
    more = more or #got == n
  end
  if #names > 1 then table.sort(all, by_rank) end
  return all, more
end

-- Read ahead: the records and data of up to n of these jobs, as { id, number, record, data, place }.
local function read_ahead(names, n)
  local all, more = candidates(names, n)
  local list, ids = { n = 0, at = 1, more = more or #all > n }, {}
  flush_jobs()
  for k = 1, math.min(#all, n) do ids[k] = format('%d', all[k][2]) end
  load(ids)
  local data = get_many(DATA, ids)
  for k = 1, #ids do
    if records[ids[k]] then
      list.n, list.rank = list.n + 1, all[k][1]
      list[list.n] = { ids[k], all[k][2], records[ids[k]], data[k] or '{}', all[k][3] }
    end
  end
  return list
end

local lookahead = {}               -- by type: how many the takes of this call want of it alone

local function note_take(i, n)
  if n == 4 then lookahead[ARGV[i + 3]] = (lookahead[ARGV[i + 3]] or 0) + tonumber(ARGV[i]) end
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

-- The job of an entry begins: its record as it is then, and its type.
local function start(entry, worker, worker_msg)
  local id, number, r, place = entry[1], entry[2], entry[3], entry[5]
  local id8 = sub(place, -8)
  local flags, fixed, name = kind_of(r)
  local attempts, delivery = sunpack('>I4I4', r, AT_ATTEMPTS)
  local ttl, deadline = sunpack('>I7I7', r, AT_TTL)
  local texts = AT_TYPE + fixed              -- worker, error, result, progress data
  local rest = FALSE .. FALSE .. FALSE
  if #r > texts + 3 then
    local _, err, result = unpack_msg(sub(r, texts))
    rest = pack(err, result, false)
  end
  local new = sub(r, 1, 14) .. spack('>I7BBI4I4', now, ACTIVE, 0, attempts, delivery + 1) ..
              sub(r, AT_LOST, AT_STARTED - 1) .. now7 .. sub(r, AT_FAILED, texts - 1) ..
              worker_msg .. rest
  store(id, new)
  mark(STATE_KEY + INACTIVE, place, false)
  mark(STATE_KEY + ACTIVE, name .. '\0' .. spack('>I8', now + ZERO_RANK) .. id8, 0)
  if deadline > 0 then mark(DUE, id8, false) end
  run_ttl(ttl, id8)
  tell(event_of(START, ACTIVE, number, name, attempts, 0, delivery + 1, worker))
  return new, id8, name
end

-- The next of a list that may begin: not past its deadline.
local function next_of(list)
  while list.at <= list.n do
    local entry = list[list.at]
    list.at = list.at + 1
    local _, deadline = sunpack('>I7I7', entry[3], AT_TTL)
    if deadline == 0 or deadline > now then return entry end
  end
end

function steps.T(i, n)
  local wanted, lease, worker = tonumber(ARGV[i]), tonumber(ARGV[i + 1]), ARGV[i + 2]
  local names, answer, a = waiting_names(i + 3, i + n - 1), {}, 0
  if #names == 0 then return answer end
  local single = #names == 1 and names[1]
  local ask = math.max(wanted, single and lookahead[single] or 0)
  local list = single and ready[single] or read_ahead(names, ask)
  local worker_msg = pack(worker)
  while a < 3 * wanted do
    local entry = next_of(list)
    if entry then
      local r, id8, name = start(entry, worker, worker_msg)
      mark(LEASE, id8, now + lease)
      local t = type_of(name)
      t[T_TAKEN], types_dirty[name] = now, true
      answer[a + 1], answer[a + 2], answer[a + 3] = entry[2], r, entry[4]
      a = a + 3
    elseif list.more then          -- all that came are taken, or past their deadline
      ask = ask * 2
      list = read_ahead(names, ask)
    else
      break
    end
  end
  for _, name in ipairs(names) do ready[name] = single and list or nil end
  if a > 0 then want(now + lease) end
  return answer
end

function steps.t(i, n)
  return worked and steps.T(i, n) or {}
end

-- ---- the end ----

-- Complete, and to be removed: by way of a table, as there is more to forget.
local function remove_done(r, id, id8, result)
  local j = decode(r)
  forget(j, id, id8)
  tell(event_of(COMPLETED, 0, tonumber(id), j[TYPE], j[ATTEMPTS] + 1, 100, j[DELIVERY], result))
end

function steps.D(i)
  local id = ARGV[i]
  local r = held(id, ARGV[i + 1])
  worked = r
  if not r then return -1 end
  local number = tonumber(id)
  local id8 = spack('>I8', number)
  local result = ARGV[i + 3] == '1' and ARGV[i + 2]
  local flags, fixed, name = kind_of(r)
  local attempts, delivery = sunpack('>I4I4', r, AT_ATTEMPTS)
  local started = sunpack('>I7', r, AT_STARTED)
  local duration = math.max(0, now - started)
  local t = type_make(name)
  t[T_COMPLETED], t[T_WORK], types_dirty[name] = t[T_COMPLETED] + 1, t[T_WORK] + duration, true
  if has(flags, REMOVES) then
    remove_done(r, id, id8, result)
    return 0
  end
  if has(flags, HAS_KEY) then let_go_of_key(decode(r)) end
  local texts = AT_TYPE + fixed
  local worker, _, _, progress_data = unpack_msg(sub(r, texts))
  store(id, sub(r, 1, 14) .. spack('>I7BBI4', now, COMPLETE, 100, attempts + 1) ..
            sub(r, AT_DELIVERY, AT_FAILED + 6) .. now7 .. spack('>I7', duration) ..
            sub(r, AT_FLAGS, texts - 1) .. pack(worker, false, result, progress_data))
  mark(STATE_KEY + ACTIVE, name .. '\0' .. spack('>I8', started + ZERO_RANK) .. id8, false)
  mark(LEASE, id8, false)
  if ttl_of(r) > 0 then mark(TTL, id8, false) end
  mark(STATE_KEY + COMPLETE, name .. '\0' .. spack('>I8', now + ZERO_RANK) .. id8, 0)
  tell(event_of(COMPLETED, COMPLETE, number, name, attempts + 1, 100, delivery, result))
  want_retention(name, COMPLETE, now)
  return COMPLETE
end

function steps.R(i)
  local id = ARGV[i]
  local r = held(id, ARGV[i + 1])
  worked = r
  if not r then return -1 end
  local j, id8 = decode(r), id_bytes(id)
  unindex(j, id8)
  j[STATE], j[UPDATED] = INACTIVE, now
  index(j, id8)
  store(id, encode(j))
  tell(event_of(ENQUEUE, INACTIVE, tonumber(id), j[TYPE], j[ATTEMPTS], j[PROGRESS], j[DELIVERY],
                false))
  return INACTIVE
end

-- ---- while it runs ----

function steps.N(i, n)
  local answer = {}
  for k = i, i + n - 1, 3 do
    local r = held(ARGV[k], ARGV[k + 1])
    if r then
      local till = now + tonumber(ARGV[k + 2])
      mark(LEASE, id_bytes(ARGV[k]), till)
      want(till)
    end
    answer[#answer + 1] = r and 1 or 0
  end
  return answer
end

function steps.S(i)
  local id = ARGV[i]
  local r = held(id, ARGV[i + 1])
  if not r then return 0 end
  local j = decode(r)
  j[PROGRESS], j[UPDATED] = tonumber(ARGV[i + 2]), now
  if ARGV[i + 4] == '1' then j[PROGRESS_DATA] = ARGV[i + 3] end
  store(id, encode(j))
  run_ttl(j[TTL_MS], id_bytes(id))
  tell(event_of(PROGRESS_EVENT, ACTIVE, tonumber(id), j[TYPE], j[ATTEMPTS], j[PROGRESS],
                j[DELIVERY], j[PROGRESS_DATA]))
  return 1
end

function steps.L(i)
  local id, delivery = ARGV[i], ARGV[i + 1]
  local j, id8 = nil, id_bytes(id)
  if delivery == '0' then
    j = job(id)
    if not j then return -1 end
  else
    local r = held(id, delivery)
    if not r then return 0 end
    j = decode(r)
    run_ttl(j[TTL_MS], id8)
  end
  j[LINES] = add_line(j[LINES], j[FLAGS], id, id8, ARGV[i + 2], ARGV[i + 3])
  store(id, encode(j))
  return 1
end
