-- 4_due.lua - what is due (K): leases, ttls, delays and deadlines, retention, old callers and tokens.

do

-- Jobs whose grant's lease is over get runs of their own: the step K finds them like all others.
local function end_late_grants()
  for _, entry in ipairs(call('ZRANGEBYSCORE', KEYS[GRANTED], '-inf', now, 'LIMIT', 0, SOME_GRANTS)) do
    local name = match(entry, '^[^%z]*')
    local first, count = jobs_of(entry, name)
    local any
    for id = first, first + (count - 1) * partitions, partitions do
      local h, place = grant_with(id)
      if h then end_grant_of(h, place, id_bytes(id)) end
      any = any or h
    end
    if not any then take_out(GRANTED, entry) end       -- damaged by hand
  end
end

-- Entries of a missing job are removed: else they would be due for ever.
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

-- Remove the first n jobs of a completion.
local function remove_of_completion(b, n)
  local name, ids = name_of(b), {}
  local attempts, delivery = sunpack('>I4I4', b.head, RUN_ATTEMPTS)
  for k = 1, n do ids[k] = id_bytes(b.first + (k - 1) * partitions) end
  drop_completion(b)
  put_completion(b, b.first + n * partitions, b.count - n)
  drop_specs(ids)
  count_block(name, block_of(b.first), -n)
  emit_run(EVENT_REMOVE, 0, b.first, n, name, attempts, 100, delivery)
end

local function remove_first(name, entry, n)
  local first, count = jobs_of(entry, name)
  if count > 1 then
    remove_of_completion(completion_with(first), n)
  else
    local id = id_bytes(first)
    remove(job(id), id)
  end
end

-- Remove up to `left` of a type's jobs in a state that retention does not keep. Returns how many, and
-- when the next one has to go.
function layout.sweep_some(name, state, left)
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

-- The last answers of callers that are gone: remove the old ones, if there are many.
local function drop_callers()
  if call('HLEN', KEYS[META]) < MANY_CALLERS then return end
  local all = call('HGETALL', KEYS[META])
  for k = 1, #all, 2 do
    local is_lane = match(all[k], ':%d$') and #all[k + 1] >= 16
    if is_lane and now - sunpack('>I8', all[k + 1], 9) > CALLER_MS then
      call('HDEL', KEYS[META], all[k])
    end
  end
end

local function first_score(key)
  local first = call('ZRANGE', KEYS[key], 0, 0, 'WITHSCORES')
  return first[2] and tonumber(first[2]) or huge
end

function layout.leases()
  return { LEASE, GRANTED, TTL }
end

function steps.K(i)
  local limit, from = tonumber(ARGV[i]), tonumber(ARGV[i + 1])
  local found = {}
  if from <= 1 then
    end_late_grants()
    found = over(LEASE, limit)
  end
  if #found > 0 then return records_of(1, found) end
  if from <= 2 then found = over(TTL, limit) end
  if #found > 0 then return records_of(2, found) end
  if from <= 3 then found = waiting_and_due(limit) end
  if #found > 0 then return records_of(3, found) end
  local removed = keep_at <= now and layout.sweep(call('HKEYS', KEYS[TYPES]), limit) or 0
  drop_callers()
  local at = min(first_score(LEASE), first_score(GRANTED), first_score(TTL), first_score(DUE), keep_at,
                 sweep_tokens(limit))
  local schedule = layout.first_schedule()
  if schedule > now then at = min(at, schedule) end
  return { 4, removed, at < huge and at or '', tonumber(call('HGET', KEYS[META], 'steps') or 0),
           schedule <= now and 1 or 0 }
end

end
