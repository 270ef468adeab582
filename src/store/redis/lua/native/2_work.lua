-- 2_work.lua - the steps that are called for every job: add, take, done, renew. A step gets the
-- place of its first argument in ARGV and how many it has; what it answers is its answer. They look
-- at the bytes of a record and put a new one together from pieces: making tables and strings is
-- what takes the time here.

local more                                   -- 3_more.lua
local now7 = spack('>I7', now)
local FALSE = '\194'                         -- MessagePack
local now_times = now7 .. now7 .. now7

-- ---- add ----

if uses.A or uses.a then

local function words_are_missing(i, n)
  local before, searched
  for k = i, i + n - 1, 5 do
    if ARGV[k] ~= before then
      before = ARGV[k]
      local s = settings_of(before)
      searched = s and s[SEARCH] == 1
    end
    if searched and (ARGV[k + 4] == '' or not unpack_msg(ARGV[k + 4])[5]) then return true end
  end
end

-- A new job, behind those of its type that were read ahead; unless it comes before one of them.
local function add_to_ready(name, rank, id, rec, place)
  local list, r = ready[name], sunpack('>I8', rank)
  if list.n > 0 and r < list.rank then
    ready[name] = nil
  elseif not list.more then
    local n = list.n + 1
    list.n, list.rank = n, r
    list.id[n], list.record[n], list.place[n] = id, rec, place
  end
end

function steps.A(i, n)
  if words_are_missing(i, n) then return 'words' end
  local answer, a, plain, k = {}, 0, true, n_new
  local waiting = changes[STATE_KEY + INACTIVE]
  local name_before, open, block_before, block
  local first, count = 0, 0                  -- of a run that has not been told
  local function told()
    if count > 0 then
      events[#events + 1] = run_of(ENQUEUE, INACTIVE, first, count, name_before, 0)
    end
    count = 0
  end
  for p = i, i + n - 1, 5 do
    local name, extra = ARGV[p], ARGV[p + 4]
    if name ~= name_before then
      told()
      type_make(name)
      name_before, open, block_before = name, name .. '\0', nil
    end
    local id, state, existed = (last + 1) * partitions + partition, INACTIVE, 0
    if extra == '' then
      last = last + 1
      local id_text, rec = format('%d', id), now_times .. ARGV[p + 2]
      new_jobs[k + 1], new_jobs[k + 2] = id_text, rec
      k = k + 2
      if ARGV[p + 3] ~= '' then call('HSET', KEYS[DATA], id_text, ARGV[p + 3]) end
      records[id_text] = nil       -- another step may have looked for it before
      local place = open .. ARGV[p + 1] .. spack('>I8', id)
      waiting[place] = 0
      if ready[name] then add_to_ready(name, ARGV[p + 1], id_text, rec, place) end
    else
      n_new = k
      id, state, existed = more().add(ARGV[p + 2], ARGV[p + 3], unpack_msg(extra))
      k = n_new
    end
    if existed == 0 then
      local b = floor(last / BLOCK)
      if b ~= block_before then block_before, block = b, open .. spack('>I8', b) end
      blocks[block] = (blocks[block] or 0) + 1
    end
    if existed == 0 and state == INACTIVE then
      if count > 0 and id ~= first + count * partitions then told() end
      if count == 0 then first = id end
      count = count + 1
    else
      plain = false
    end
    answer[a + 1], answer[a + 2], answer[a + 3] = id, state, existed
    a = a + 3
  end
  told()
  n_new = k
  return plain and a > 0 and { answer[1] } or answer
end

end

-- ---- take ----

local function by_rank(a, b)
  if a[1] ~= b[1] then return a[1] < b[1] end
  return a[2] < b[2]
end

if uses.T or uses.t then

-- The places of waiting jobs of these types, best first, at most n of each type. `full`: there may
-- be others behind them.
local function candidates(names, n)
  local all, full = {}, false
  flush(STATE_KEY + INACTIVE)
  for _, name in ipairs(names) do
    local got = call('ZRANGEBYLEX', KEYS[STATE_KEY + INACTIVE], '[' .. name .. '\0',
                     '(' .. name .. '\1', 'LIMIT', 0, n)
    full = full or #got == n
    if #names == 1 then return got, full end
    for k = 1, #got do
      local rank, id = sunpack('>I8I8', got[k], #name + 2)
      all[#all + 1] = { rank, id, got[k] }
    end
  end
  table.sort(all, by_rank)
  for k = 1, #all do all[k] = all[k][3] end
  return all, full
end

-- Read ahead: the records of up to n of these jobs.
local function read_ahead(names, n)
  local places, full = candidates(names, n)
  local ids, found = {}, 0
  local list = { id = {}, record = {}, place = {}, at = 1, more = full or #places > n }
  for k = 1, math.min(#places, n) do
    ids[k] = format('%d', (sunpack('>I8', places[k], #places[k] - 7)))
  end
  load(ids)
  for k = 1, #ids do
    local r = records[ids[k]]
    if r then
      found = found + 1
      list.id[found], list.record[found], list.place[found] = ids[k], r, places[k]
    end
  end
  list.n = found
  list.rank = found > 0 and sunpack('>I8', list.place[found], #list.place[found] - 15)
  return list
end

local function waiting_names(from, to)
  local names, seen = {}, {}
  for k = from, to do
    local name = ARGV[k]
    local t = not seen[name] and type_of(name)
    seen[name] = true
    if t and t[PAUSED] == 0 then names[#names + 1] = name end
  end
  local all = types['*']
  return all and all[PAUSED] == 1 and {} or names
end

function steps.T(i, n)
  local wanted, lease, worker = tonumber(ARGV[i]), tonumber(ARGV[i + 1]), ARGV[i + 2]
  local names, answer, a = waiting_names(i + 3, i + n - 1), {}, 0
  if #names == 0 then return answer end
  local single = #names == 1 and names[1]
  local ask = max(wanted, single and lookahead[single] or 0)
  local list = single and ready[single] or read_ahead(names, ask)
  local till, fresh = now + lease, FALSE .. FALSE .. FALSE .. pack(worker)
  local active, leases = changes[STATE_KEY + ACTIVE], changes[LEASE]
  local first, count, run_name = 0, 0, nil   -- of a run that has not been told
  local function told()
    if count > 0 then
      events[#events + 1] = run_of(START, ACTIVE, first, count, run_name, 1, worker)
    end
    count = 0
  end
  while a < 3 * wanted do
    local at = list.at
    if at > list.n then
      if not list.more then break end
      ask = ask * 2                -- all that came are taken, or past their deadline
      list = read_ahead(names, ask)
    else
      list.at = at + 1
      local r, place = list.record[at], list.place[at]
      local ttl, deadline = sunpack('>I7I7', r, AT_TTL)
      if deadline == 0 or deadline > now then
        local id_text, name, id8 = list.id[at], single or sub(place, 1, -18), sub(place, -8)
        local id = sunpack('>I8', id8)
        local attempts, delivery = sunpack('>I4I4', r, AT_ATTEMPTS)
        local texts = AT_TYPE + sunpack('>I2', r, AT_FIXED)   -- result, error, progress, worker
        local tail, data
        if sub(r, texts, texts + 3) == '\194\194\194\194' then
          tail, data = fresh, sub(r, texts + 4)
        else                       -- it has been taken before
          local rest, _, err = unpack_some(r, 4, texts - 1)
          tail, data = pack(false, err, false, worker), rest >= 0 and sub(r, rest + 1) or ''
        end
        local new = spack('>c14I7BBI4I4', r, now, ACTIVE, 0, attempts, delivery + 1) ..
                    sub(r, AT_LOST, AT_STARTED - 1) .. now7 .. sub(r, AT_FAILED, texts - 1) ..
                    tail .. data
        records[id_text], dirty[id_text] = new, true
        changes[STATE_KEY + INACTIVE][place] = false
        active[place_now(name) .. id8], leases[id8] = 0, till
        if deadline > 0 then changes[DUE][id8] = false end
        if ttl > 0 then
          changes[TTL][id8] = now + ttl
          if now + ttl < due then due = now + ttl end
        end
        if attempts > 0 or delivery > 0 then
          told()
          n_events = n_events + 1
          events[#events + 1] = event_of(START, ACTIVE, id, name, attempts, 0, delivery + 1, worker)
        else
          if count > 0 and (id ~= first + count * partitions or name ~= run_name) then told() end
          if count == 0 then first, run_name = id, name end
          count = count + 1
        end
        types[name][T_TAKEN], types_dirty[name] = now, true
        answer[a + 1], answer[a + 2] = id, new
        answer[a + 3] = data == '' and call('HGET', KEYS[DATA], id_text) or ''
        a = a + 3
      end
    end
  end
  told()
  for _, name in ipairs(names) do ready[name] = single and list or nil end
  if a > 0 and till < due then due = till end
  return answer
end

function steps.t(i, n)
  return worked and steps.T(i, n) or {}
end

end

-- ---- the end ----

if uses.D then
function steps.D(i)
  local id_text = ARGV[i]
  local r = held(id_text, ARGV[i + 1])
  worked = r
  if not r then return -1 end
  local id = tonumber(id_text)
  local id8 = spack('>I8', id)
  local result = ARGV[i + 3] == '1' and ARGV[i + 2]
  local flags, _, _, fixed, name_len = sunpack('>BBBI2B', r, AT_FLAGS)
  local name = sub(r, AT_TYPE, AT_TYPE + name_len - 1)
  local attempts, delivery = sunpack('>I4I4', r, AT_ATTEMPTS)
  local duration = max(0, now - sunpack('>I7', r, AT_STARTED))
  local t = type_make(name)
  t[T_COMPLETED], t[T_WORK], types_dirty[name] = t[T_COMPLETED] + 1, t[T_WORK] + duration, true
  local state = COMPLETE
  if flags % 2 == 1 then           -- REMOVES
    more().forget(id_text, id8)
    state = 0
  else
    if flags >= HAS_KEY then more().let_go(r) end
    local texts = AT_TYPE + fixed            -- result, error, progress data, worker
    local tail
    if byte(r, texts + 1) == 194 then        -- no error: the rest stays
      tail = (result and pack(result) or FALSE) .. sub(r, texts + 1)
    else
      local rest, _, _, progress, worker = unpack_some(r, 4, texts - 1)
      tail = pack(result, false, progress, worker) .. (rest >= 0 and sub(r, rest + 1) or '')
    end
    records[id_text] = spack('>c14I7BBI4', r, now, COMPLETE, 100, attempts + 1) ..
                       sub(r, AT_DELIVERY, AT_FAILED + 6) .. spack('>I7I7', now, duration) ..
                       sub(r, AT_FLAGS, texts - 1) .. tail
    dirty[id_text] = true
    -- As place_of() has it: started_at + 2^52 in 8 bytes.
    changes[STATE_KEY + ACTIVE][name .. '\0\0\16' .. sub(r, AT_STARTED + 1, AT_STARTED + 6) ..
                                id8] = false
    changes[LEASE][id8] = false
    if sunpack('>I7', r, AT_TTL) > 0 then changes[TTL][id8] = false end
    changes[STATE_KEY + COMPLETE][place_now(name) .. id8] = 0
  end
  n_events = n_events + 1
  events[#events + 1] = event_of(COMPLETED, state, id, name, attempts + 1, 100, delivery, result)
  local s = settings_of(name)
  if state == COMPLETE and s and (s[3] > 0 or s[4] > 0) then
    more().want_retention(name, COMPLETE, now)
  end
  return state
end

end

-- ---- renew ----

if uses.N then
function steps.N(i, n)
  local answer = {}
  for k = i, i + n - 1, 3 do
    local r = held(ARGV[k], ARGV[k + 1])
    if r then
      local till = now + tonumber(ARGV[k + 2])
      changes[LEASE][spack('>I8', tonumber(ARGV[k]))] = till
      if till < due then due = till end
    end
    answer[#answer + 1] = r and 1 or 0
  end
  return answer
end
end
