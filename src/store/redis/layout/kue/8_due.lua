-- 8_due.lua - what time does: the step K.

do

local function records_of(sort, list)
  local answer = { sort }
  for _, e in ipairs(list) do put_record(answer, e.number, e.j, '') end
  return answer
end

local function by_number(a, b)
  return a.number < b.number
end

local function first_of(list, limit)
  local some = {}
  for k = 1, min(limit, #list) do some[k] = list[k] end
  return some
end

-- ---- 1, 2: active ones, by id ----

-- The entries of a set of ours whose time is over; entries of jobs that are no longer ours go.
local function over(key, limit)
  local list = {}
  for _, zid in ipairs(call('ZRANGEBYSCORE', key, '-inf', now)) do
    local id = id_of(zid) or ''
    local j, h = job(id)
    if j and is_ours(h) then
      list[#list + 1] = { number = tonumber(id), j = j }
    else
      mark(LEASE, zid, false)
      mark(TTL, zid, false)
    end
  end
  table.sort(list, by_number)
  return first_of(list, limit)
end

-- The ttl of a job that a worker of Kue's holds is the business of Kue's watcher, which any process
-- of Kue's with a worker runs each second. If nobody has done it for KUE_TTL_LATE, we do what the
-- watcher does: ask the worker, wait for its answer (it fails the job itself), then fail it.
local function kue_over(limit)
  local list = {}
  local late = call('ZRANGEBYSCORE', ALL[ACTIVE], LOWEST_TTL_SCORE, now - KUE_TTL_LATE,
                    'WITHSCORES', 'LIMIT', 0, limit)
  for k = 1, #late, 2 do
    local zid, id = late[k], id_of(late[k])
    local j, h
    if id then j, h = job(id) end
    local asked = tonumber(call('ZSCORE', ASKED, zid) or huge)
    if not j or j[STATE] ~= ACTIVE or is_ours(h) then
      mark(ASKED, zid, false)
    elseif asked == huge or asked < tonumber(late[k + 1]) then
      if not locked('activeJobsTTL') then
        call('SET', 'activeJobsTTL:lock', 'weir:' .. origin, 'PX', KUE_TTL_ANSWER)
        ask_about[#ask_about + 1] = id
        mark(ASKED, zid, now)
      end
    elseif asked + KUE_TTL_ANSWER <= now then
      list[#list + 1] = { number = tonumber(id), j = j }
    end
  end
  table.sort(list, by_number)
  return list
end

-- ---- 3: waiting ones, by time and id ----

local function due_in(list, key, limit)
  local got = call('ZRANGEBYSCORE', key, '-inf', now, 'WITHSCORES', 'LIMIT', 0, limit)
  for k = 1, #got, 2 do
    list[#list + 1] = { key = key, zid = got[k], number = tonumber(id_of(got[k]) or 0),
                        at = tonumber(got[k + 1]) }
  end
end

local function by_time(a, b)
  if a.at ~= b.at then return a.at < b.at end
  return a.number < b.number
end

-- Is it just being taken by a worker of Vert.x Kue's? Then it is left to that worker.
local function is_left(j)
  return VERTX and j[STATE] == INACTIVE and free_tokens(j[TYPE]) <= 0
end

local function next_deadline()
  local at = first_score(DEADLINES)
  if not VERTX or at > now then return at end
  local j = job(id_of(call('ZRANGE', DEADLINES, 0, 0)[1]) or '')
  return j and is_left(j) and now + SOON or at
end

-- Entries that no waiting job accounts for are taken out.
local function waiting_and_due(limit)
  local all, list, seen, stale = {}, {}, {}, false
  if not locked('promotion') then due_in(all, ALL[DELAYED], limit) end
  due_in(all, DEADLINES, limit)
  table.sort(all, by_time)
  for _, e in ipairs(all) do
    if not seen[e.zid] and #list < limit then
      local j = job(id_of(e.zid) or '')
      local waits = j and (j[STATE] == DELAYED or j[STATE] == INACTIVE and e.key == DEADLINES)
      if waits and is_left(j) then
        seen[e.zid] = true
      elseif waits then
        seen[e.zid] = true
        e.j = j
        list[#list + 1] = e
      else
        stale = true
        mark(e.key, e.zid, false)
        if j and e.key == ALL[DELAYED] then mark(keys_of(j[TYPE])[DELAYED], e.zid, false) end
      end
    end
  end
  if #list > 0 or not stale then return list end
  flush_all()
  return waiting_and_due(limit)
end

-- ---- 4: retention ----

-- Remove up to `left` of a type's jobs in a state; answers how many, and when the next has to go.
function layout.sweep_some(name, state, left)
  local age, count = keep_of(name, state)
  if age == 0 and count == 0 then return 0, huge end
  local keys, removed = keys_of(name), 0
  local n = card(keys[state])
  local oldest = call('ZRANGE', keys[state + 10], 0, left, 'WITHSCORES')
  for k = 1, #oldest, 2 do
    local zid, id = oldest[k], id_of(oldest[k])
    local at = age > 0 and tonumber(oldest[k + 1]) + age or huge
    if count > 0 and n > count then at = AT_ONCE end
    if at > now or removed == left then return removed, at end
    local j = job(id or '')
    if j and j[STATE] == state and j[TYPE] == name then
      forget(j, id)
      emit(EVENT_REMOVE, j, id, 0, false)
      n, removed = n - 1, removed + 1
    else
      mark(keys[state + 10], zid, false)
    end
  end
  return removed, huge
end

-- ---- K ----

function layout.leases()
  flush_all()
  return { LEASE, TTL }
end

function steps.K(i)
  local limit, sort = tonumber(ARGV[i]), tonumber(ARGV[i + 1])
  flush_all()
  local found = {}
  if sort <= 1 then found = over(LEASE, limit) end
  if #found > 0 then return records_of(1, found) end
  if sort <= 2 then
    found = over(TTL, limit)
    if #found < limit then
      for _, e in ipairs(kue_over(limit - #found)) do found[#found + 1] = e end
      table.sort(found, by_number)
    end
  end
  if #found > 0 then return records_of(2, found) end
  if sort <= 3 then found = waiting_and_due(limit) end
  if #found > 0 then return records_of(3, found) end
  read_keep()
  local removed = keep_at <= now and layout.sweep(type_names(), limit) or 0
  -- Kue says nothing when it adds a delayed job: as it does itself, look each second.
  local house_at, words = keep_house()
  local at = min(house_at, first_score(LEASE), first_score(TTL), next_deadline(), keep_at,
                 sweep_tokens(limit))
  local delayed = first_score(ALL[DELAYED])
  if delayed <= now then delayed = now + min(20, locked('promotion') or 0) end
  local known, schedule = tonumber(call('HGET', META, 'steps') or 0), layout.first_schedule()
  if schedule > now then at = min(at, schedule) end
  return { 4, removed, min(at, delayed), known, schedule <= now and 1 or 0, words }
end

end
