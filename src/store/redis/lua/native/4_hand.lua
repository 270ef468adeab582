-- 4_hand.lua - the steps that put, remove and import, and what comes due.

function layout.new_settings() end

-- Partition 0 is the last to have it: see weir__redis_configure_act().
function layout.tell_of_type(kind, name)
  if partition == 0 then tell(event_of(kind, 0, 0, name, 0, 0, 0)) end
end

do

-- By hand: somebody has it from now on.
local function begin_run(j, id, lease)
  local till = j[STARTED_AT] + lease
  put_in(LEASE, id, till)
  want(till)
  run_ttl(j[TTL_MS], id)
  type_make(j[TYPE])[T_TAKEN], types_dirty[j[TYPE]] = now, true
end

function steps.P(i)
  local id, old_run, old_spec = id_bytes(ARGV[i]), ARGV[i + 1], ARGV[i + 2]
  local run, spec, data, has_data = ARGV[i + 3], ARGV[i + 4], ARGV[i + 5], ARGV[i + 6]
  local failed, line, words, told = ARGV[i + 7], ARGV[i + 8], ARGV[i + 9], ARGV[i + 10]
  worked = false
  if spec_of(id) ~= old_spec or (run_of(id) or '') ~= old_run then return 0 end
  local j, n = decode(old_spec, old_run), decode(spec, run)
  local was_done, is_done = finished(j[STATE]), finished(n[STATE])
  if was_done and not is_done and n[UNIQUE_KEY] then
    local holder = call('HGET', KEYS[UNIQUE], unique_name(n))
    if holder then return -id_number(holder) end
    hold_key(n, id)
  elseif is_done and not was_done then
    let_go_of_key(j)
  end
  worked = true
  apart(id)
  if n[STATE] ~= ACTIVE or j[STATE] ~= ACTIVE then   -- else it keeps its place and its lease
    unindex(j, id)
    index(n, id)
    if n[STATE] == ACTIVE then begin_run(n, id, tonumber(ARGV[i + 11])) end
  end
  if has_data == '1' then
    if data ~= '' then
      call('HSET', KEYS[DATA], id, data)
    elseif has(j[FLAGS], APART) then
      call('HDEL', KEYS[DATA], id)
    end
    if words ~= '' and has(n[FLAGS], SEARCHED) then note_words(id, 1, unpack_msg(words)) end
  end
  if line ~= '' then add_line(n[LINES], n[FLAGS], id, line, words) end
  call('HSET', KEYS[RUNS], id, run)
  records[id] = run
  set_spec(id, spec)
  if failed ~= '0' then
    local t = type_make(n[TYPE])
    t[T_FAILED], types_dirty[n[TYPE]] = t[T_FAILED] + tonumber(failed), true
  end
  if told ~= '' then tell(told) end
  if is_done then want_retention(n[TYPE], n[STATE], n[FINISHED_AT]) end
  return 1
end

local function remove(j, id)
  forget_job(j, id)
  tell(event_of(EVENT_REMOVE, 0, id_number(id), j[TYPE], j[ATTEMPTS], j[PROGRESS], j[DELIVERY]))
end

function steps.E(i)
  local id = id_bytes(ARGV[i])
  local j = job(id)
  if not j then return 0 end
  apart(id)
  remove(j, id)
  return 1
end

-- ---- import ----

function steps.M(i, n)
  local keep, id = ARGV[i] == '1', id_bytes(ARGV[i + 1])
  local run, spec, data, words = ARGV[i + 2], ARGV[i + 3], ARGV[i + 4], ARGV[i + 5]
  local j = decode(spec, run)
  if keep then
    local there = job(id)
    if there then
      local same = there[TYPE] == j[TYPE] and there[CREATED_AT] == j[CREATED_AT]
      return { same and 1 or 2, id_number(id), there[STATE] }
    end
  end
  if j[UNIQUE_KEY] and not finished(j[STATE]) then
    local holder = call('HGET', KEYS[UNIQUE], unique_name(j))
    if holder then return { 3, id_number(holder), 0 } end
  end
  if keep then
    last = max(last, floor(id_number(id) / partitions))
  else
    last = last + 1
    id = id_bytes(last * partitions + partition)
  end
  type_make(j[TYPE])
  set_spec(id, spec)
  call('HSET', KEYS[RUNS], id, run)
  records[id] = run
  index(j, id)
  if not finished(j[STATE]) then hold_key(j, id) end
  count_block(j[TYPE], block_of(id_number(id)), 1)
  if data ~= '' then call('HSET', KEYS[DATA], id, data) end
  if words ~= '' and has(j[FLAGS], SEARCHED) then
    local w = unpack_msg(words)
    note_words(id, 1, w[1])
    note_words(id, 2, w[2])
  end
  local lines = {}
  for k = i + 6, i + n - 1 do                -- "NUMBER AT TEXT"
    local n_line, rest = match(ARGV[k], '^(%d+) (.*)$')
    lines[#lines + 1] = id .. n_line
    lines[#lines + 1] = rest
  end
  many('HSET', LOG, lines)
  if j[STATE] == INACTIVE then
    tell_of(EVENT_ENQUEUE, j, id)
  end
  if finished(j[STATE]) then want_retention(j[TYPE], j[STATE], j[FINISHED_AT]) end
  return { 0, id_number(id), j[STATE] }
end

-- ---- due ----

-- Jobs in a hand whose lease is over are active ones like all others.
local function deal_out_late()
  for _, entry in ipairs(call('ZRANGEBYSCORE', KEYS[HELD], '-inf', now, 'LIMIT', 0, SOME_HANDS)) do
    local name = match(entry, '^[^%z]*')
    local first, count = jobs_of(entry, name)
    local any
    for id = first, first + (count - 1) * partitions, partitions do
      local h, place = hand_with(id)
      if h then deal_out(h, place, id_bytes(id)) end
      any = any or h
    end
    if not any then take_out(HELD, entry) end          -- somebody meddled
  end
end

-- Of one that is not there the entries go: else it would be due for ever.
local function records_of(sort, ids)
  local specs, runs, answer = specs_of(ids), get_many(RUNS, ids), { sort }
  for k = 1, #ids do
    local n = #answer
    if specs[k] then
      answer[n + 1], answer[n + 2], answer[n + 3] = ids[k], runs[k] or '', specs[k]
    else
      for key = LEASE, DUE do take_out(key, ids[k]) end
    end
  end
  return answer
end

-- Ids as bytes are in order as the numbers are.
local function over(key, limit)
  local ids = call('ZRANGEBYSCORE', KEYS[key], '-inf', now)
  sort(ids)
  for k = #ids, limit + 1, -1 do ids[k] = nil end
  return ids
end

local function waiting_and_due(limit)
  return call('ZRANGEBYSCORE', KEYS[DUE], '-inf', now, 'LIMIT', 0, limit)
end

-- The first n jobs of a batch are gone.
local function remove_of_batch(b, n)
  local name, ids = name_of(b), {}
  local attempts, delivery = sunpack('>I4I4', b.head, RUN_ATTEMPTS)
  for k = 1, n do ids[k] = id_bytes(b.first + (k - 1) * partitions) end
  drop_batch(b)
  put_batch(b, b.first + n * partitions, b.count - n)
  drop_specs(ids)
  count_block(name, block_of(b.first), -n)
  tell_run(EVENT_REMOVE, 0, b.first, n, name, attempts, 100, delivery)
end

local function remove_first(name, entry, n)
  local first, count = jobs_of(entry, name)
  if count > 1 then
    remove_of_batch(batch_with(first), n)
  else
    local id = id_bytes(first)
    remove(job(id), id)
  end
end

-- Remove up to `left` of a type's jobs in a state; answers how many, and when the next has to go.
local function sweep_some(name, state, left)
  local age, keep = keep_of(name, state)
  if age == 0 and keep == 0 then return 0, huge end
  local from, to = of_type(name)
  local n, removed = count_of(state, name), 0
  local oldest = call('ZRANGEBYLEX', KEYS[STATE_KEY + state], from, to, 'LIMIT', 0, left + 1)
  for k = 1, #oldest do
    local _, count = jobs_of(oldest[k], name)
    local at = age > 0 and sunpack('>I8', oldest[k], #name + 2) - ZERO_RANK + age or huge
    local surplus = keep > 0 and max(n - keep, 0) or 0
    local go = at <= now and count or min(count, surplus)
    local some = min(go, left - removed)
    if some > 0 then remove_first(name, oldest[k], some) end
    n, removed = n - some, removed + some
    if some < go then return removed, AT_ONCE end
    if go < count then return removed, at end
  end
  return removed, huge
end

local function sweep(limit)
  local removed, next_at = 0, huge
  local names = call('HKEYS', KEYS[TYPES])
  sort(names)
  for _, name in ipairs(names) do
    for state = COMPLETE, CANCELLED do
      local n, at = 0, huge
      if name ~= '*' then n, at = sweep_some(name, state, limit - removed) end
      removed = removed + n
      if at < next_at then next_at = at end
    end
  end
  keep_at = next_at
  return removed
end

-- Callers that ended without a word have left their last answers behind: drop what is older than
-- an hour, when there are many.
local function drop_callers()
  if call('HLEN', KEYS[META]) < MANY_CALLERS then return end
  local all = call('HGETALL', KEYS[META])
  for k = 1, #all, 2 do
    local is_lane = match(all[k], ':%d$') and #all[k + 1] >= 16
    if is_lane and now - sunpack('>I8', all[k + 1], 9) > 3600000 then
      call('HDEL', KEYS[META], all[k])
    end
  end
end

local function first_score(key)
  local first = call('ZRANGE', KEYS[key], 0, 0, 'WITHSCORES')
  return first[2] and tonumber(first[2]) or huge
end

function steps.K(i)
  local limit, from = tonumber(ARGV[i]), tonumber(ARGV[i + 1])
  local found = {}
  if from <= 1 then
    deal_out_late()
    found = over(LEASE, limit)
  end
  if #found > 0 then return records_of(1, found) end
  if from <= 2 then found = over(TTL, limit) end
  if #found > 0 then return records_of(2, found) end
  if from <= 3 then found = waiting_and_due(limit) end
  if #found > 0 then return records_of(3, found) end
  local removed = keep_at <= now and sweep(limit) or 0
  drop_callers()
  local at = min(first_score(LEASE), first_score(HELD), first_score(TTL), first_score(DUE), keep_at,
                 sweep_tokens(limit))
  return { 4, removed, at < huge and at or '', tonumber(call('HGET', KEYS[META], 'steps') or 0) }
end

-- When a lease is over that said `at`, after Redis's clock was set by so much. Leases that began
-- after that are right already; which ones did can be told only roughly. So each has GRACE_MS, if
-- it had as much before: time for a worker that lives to renew it. A caller that was stopped for
-- long, with its clock, may be wrong about a step: what has just ended is not moved by all of it.
local function moved_by(at, by)
  local moved, old = at, by > 0 and at < now - by / 2
  if old or by < 0 and at >= now - by - CLOCK_SLACK_MS then moved = at + by end
  return max(moved, min(max(at, at + by), now + GRACE_MS))
end

-- Redis's clock was set: leases and ttls go on for about as long as they would have. Many callers
-- notice; the first one does it.
function steps.Y(i)
  local by, seen = tonumber(ARGV[i]), tonumber(ARGV[i + 1])
  if seen ~= tonumber(call('HGET', KEYS[META], 'steps') or 0) then return 0 end
  call('HSET', KEYS[META], 'steps', seen + 1)
  for _, key in ipairs({ LEASE, HELD, TTL }) do
    local all = call('ZRANGEBYSCORE', KEYS[key], '-inf', '(+inf', 'WITHSCORES')
    local moved = {}
    for k = 1, #all, 2 do
      moved[k], moved[k + 1] = format('%.0f', moved_by(tonumber(all[k + 1]), by)), all[k]
    end
    many('ZADD', key, moved)
  end
  return 0
end

end
