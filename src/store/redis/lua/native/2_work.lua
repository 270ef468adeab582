-- 2_work.lua - the busy steps, those of every job's life: add, take, done. A step gets the place of
-- its first argument in ARGV and how many it has; what it answers is its answer.

local FALSE = '\194'                         -- MessagePack
local add_special, forget, let_go, want_retention       -- 3_more.lua

-- ---- add ----

-- The arguments come in groups: type, rank, count and as many specs; or with a count of 0 one job
-- with more to it: spec, data, extra.
local function words_are_missing(i, n)
  local p, stop = i, i + n - 1
  while p <= stop do
    local count, s = tonumber(ARGV[p + 2]), settings_of(ARGV[p])
    if s and s[SEARCH] == 1 and
       (count > 0 or ARGV[p + 5] == '' or not unpack_msg(ARGV[p + 5])[5]) then
      return true
    end
    p = p + 3 + (count > 0 and count or 3)
  end
end

-- Jobs of one type and priority with nothing special about them: specs from ARGV[p] on.
local function add_run(name, rank, p, count)
  local id = (last + 1) * partitions + partition
  local place, sets, waiting = name .. '\0' .. rank, new_jobs, adds[STATE_KEY + INACTIVE]
  local k, a = n_jobs, n_adds[STATE_KEY + INACTIVE]
  local high = sub(spack('>I8', id), 1, 7)   -- the first bytes of an id: the same for a while
  tell_run(ENQUEUE, INACTIVE, id, count, name, 0)
  for q = p, p + count - 1 do
    local low = id % 256
    if low < partitions then high = sub(spack('>I8', id), 1, 7) end
    low = BYTE[low]
    sets[k + 1], sets[k + 2] = high .. low, now7 .. ARGV[q]
    waiting[a + 1], waiting[a + 2] = '0', place .. high .. low
    k, a, id = k + 2, a + 2, id + partitions
  end
  n_jobs, n_adds[STATE_KEY + INACTIVE] = k, a
  local seq, left = last + 1, count
  last = last + count
  while left > 0 do
    local b = floor(seq / BLOCK)
    local block, some = name .. '\0' .. spack('>I8', b), min(left, (b + 1) * BLOCK - seq)
    blocks[block] = (blocks[block] or 0) + some
    seq, left = seq + some, left - some
  end
end

-- [id, state, existed] of each job.
local function each_of(made)
  local answer, a = {}, 0
  for _, m in ipairs(made) do
    for k = 0, m[4] - 1 do
      answer[a + 1], answer[a + 2], answer[a + 3] = m[1] + k * partitions, m[2], m[3]
      a = a + 3
    end
  end
  return answer
end

function steps.A(i, n)
  if words_are_missing(i, n) then return 'words' end
  flush_ready()
  local first, plain, made = (last + 1) * partitions + partition, true, {}
  local p, stop = i, i + n - 1
  while p <= stop do
    local name, count = ARGV[p], tonumber(ARGV[p + 2])
    type_make(name)
    if count > 0 then
      made[#made + 1] = { (last + 1) * partitions + partition, INACTIVE, 0, count }
      add_run(name, ARGV[p + 1], p + 3, count)
      p = p + 3 + count
    else
      local id, state, existed = add_special(name, ARGV[p + 3], ARGV[p + 4], ARGV[p + 5])
      made[#made + 1] = { id, state, existed, 1 }
      plain = plain and existed == 0 and state == INACTIVE
      p = p + 6
    end
  end
  return plain and #made > 0 and { first } or each_of(made)
end

-- ---- take ----

local function by_rank(a, b)
  if a[1] ~= b[1] then return a[1] < b[1] end
  return a[2] < b[2]
end

-- The places of waiting jobs of these types, best first, at most n of each type. `full`: there may
-- be others behind them.
local function candidates(names, n)
  local all, full = {}, false
  for k = 1, #names do
    local name = names[k]
    local got = call('ZRANGEBYLEX', KEYS[STATE_KEY + INACTIVE], '[' .. name .. '\0',
                     '(' .. name .. '\1', 'LIMIT', 0, n)
    full = full or #got == n
    if #names == 1 then return got, full end
    for m = 1, #got do
      local rank, id = sunpack('>I8I8', got[m], #name + 2)
      all[#all + 1] = { rank, id, got[m] }
    end
  end
  sort(all, by_rank)
  for k = 1, #all do all[k] = all[k][3] end
  return all, full
end

-- Up to n of these jobs. What is between `from` and `at` was taken.
local function read_ahead(names, n)
  flush_jobs()
  flush_ready()
  flush(STATE_KEY + INACTIVE)
  local places, full = candidates(names, n)
  local ids = {}
  for k = 1, min(#places, n) do ids[k] = sub(places[k], -8) end
  return { place = places, id = ids, spec = get_many(JOBS, ids), run = get_many(RUNS, ids),
           n = #ids, at = 1, from = 1, more = full or #places > n }
end

local function waits(name)
  local t, all = type_of(name), types['*']
  return t and t[PAUSED] == 0 and not (all and all[PAUSED] == 1)
end

local function waiting_names(from, to)
  local names, seen = {}, {}
  for k = from, to do
    local name = ARGV[k]
    if not seen[name] and waits(name) then names[#names + 1] = name end
    seen[name] = true
  end
  return names
end

-- A job that is taken for the first time: what its run begins with, up to its worker, and what its
-- event begins with, up to its id. The same for all of a type that have the same flags.
local function first_of(name, flags)
  local by_flags = firsts[name]
  if not by_flags then
    by_flags = {}
    firsts[name] = by_flags
  end
  local first = by_flags[flags]
  if not first then
    first = {
      name = name,
      run = spack('>BBI4I4I4I4I7I7I7I7I7I7BBc0', ACTIVE, 0, 0, 1, 0, 0, 0, now, now, 0, 0, 0, flags,
                  #name, name) .. FALSE .. FALSE .. FALSE,
      event = spack('>BBBBc0BI4BBBI4BBI4B', START + LIST, ACTIVE, 217, #name, name, 206, 0, 204, 0,
                    206, 1, 194, 206, 1, 207),
    }
    by_flags[flags] = first
  end
  return first
end

-- The texts of a run, and its history: what follows them, as it is there, or "".
local function texts_of(r, at)
  local rest, result, err, progress, worker = unpack_some(r, 4, at - 1)
  return result, err, progress, worker, rest >= 0 and sub(r, rest + 1) or ''
end

-- And of one that has a past: its error and its history are kept.
local function next_run(r, delivery, worker)
  local texts = AT_TYPE + byte(r, AT_TYPE - 1)
  local _, err, _, _, history = texts_of(r, texts)
  return spack('>BB', ACTIVE, 0) .. sub(r, AT_ATTEMPTS, AT_DELIVERY - 1) ..
         spack('>I4', delivery) .. sub(r, AT_LOST, AT_PROMOTE + 6) .. now7 .. now7 ..
         sub(r, AT_FAILED, texts - 1) .. pack(false, err, false, worker) .. history
end

local function set_clocks(spec, id8)
  local ttl, deadline = sunpack('>I7I7', spec, SPEC_TTL)
  if ttl > 0 then
    local n = n_adds[TTL]
    adds[TTL][n + 1], adds[TTL][n + 2] = format('%d', now + ttl), id8
    n_adds[TTL] = n + 2
    want(now + ttl)
  end
  if deadline > 0 then
    n_rems[DUE] = n_rems[DUE] + 1
    rems[DUE][n_rems[DUE]] = id8
  end
end

local function is_late(flags, spec)
  if flags % (2 * HAS_DEADLINE) < HAS_DEADLINE then return false end
  local _, deadline = sunpack('>I7I7', spec, SPEC_TTL)
  return deadline <= now
end

-- Jobs that are taken for the first time, and whose ids follow each other.
local function tell_starts(f, id, count, worker)
  if count == 1 then
    local m = n_events
    events[m + 1], events[m + 2], events[m + 3] = f.event, spack('>I8', id), text_head(#worker)
    events[m + 4], n_events = worker, m + 4
  elseif count > 1 then
    tell_run(START, ACTIVE, id, count, f.name, 1, worker)
  end
end

function steps.T(i, n)
  local wanted, lease, worker = count_in(ARGV[i]), ARGV[i + 1], ARGV[i + 2]
  local answer, a, name = {}, 0, n == 4 and ARGV[i + 3]
  local list, names = name and ready[name], nil
  local ask = max(wanted, lookahead[name] or 0)
  if not list then
    names = waiting_names(i + 3, i + n - 1)
    if #names == 0 then return answer end
    name = #names == 1 and names[1]
    list = read_ahead(names, ask)
    if name then ready[name] = list end
  end
  local till, place = tills[lease], name and name .. '\0' .. now8
  if not till then
    till = digits(now + tonumber(lease))
    tills[lease] = till
  end
  local worker_text = text_head(#worker) .. worker
  local active, leases, sets = adds[STATE_KEY + ACTIVE], adds[LEASE], new_runs
  local z, l, s = n_adds[STATE_KEY + ACTIVE], n_adds[LEASE], n_runs
  local first, count, before, next_id = 0, 0, nil, 0     -- of a run that has not been told
  local run, f_flags                         -- of its jobs
  while a < 3 * wanted do
    local at = list.at
    local spec = list.spec[at]
    local flags = spec and byte(spec, SPEC_FLAGS)
    if at > list.n then
      if not list.more then break end
      ask = ask * 2                -- all that came are taken, or past their deadline
      n_runs = s
      list = read_ahead(names or { name }, ask)
      sets, s = new_runs, n_runs
      if name then ready[name] = list end
    elseif not spec or flags >= HAS_DEADLINE and is_late(flags, spec) then
      if name then flush_taken(list) end
      list.at, list.from = at + 1, at + 1
    else
      list.at = at + 1
      local id8, r, its_name = list.id[at], list.run[at], name
      local id, new = sunpack('>I8', id8), nil
      if not name then
        local waits = list.place[at]
        its_name = sub(waits, 1, -18)
        place = its_name .. '\0' .. now8
        n_rems[STATE_KEY + INACTIVE] = n_rems[STATE_KEY + INACTIVE] + 1
        rems[STATE_KEY + INACTIVE][n_rems[STATE_KEY + INACTIVE]] = waits
        types[its_name][T_TAKEN], types_dirty[its_name] = now, true
      end
      local f = not r and (flags == f_flags and name and before or first_of(its_name, flags))
      if count > 0 and (id ~= next_id or f ~= before) then
        tell_starts(before, first, count, worker)
        count = 0
      end
      if f then
        if count == 0 then
          first, before, f_flags, run = id, f, flags, f.run .. worker_text
          begun[run] = true
        end
        count, next_id, new = count + 1, id + partitions, run
      else
        local attempts, delivery = sunpack('>I4I4', r, AT_ATTEMPTS)
        new = next_run(r, delivery + 1, worker)
        tell(event_of(START, ACTIVE, id, its_name, attempts, 0, delivery + 1, worker))
        begun[new] = true
      end
      if records[id8] ~= nil then records[id8] = new end
      sets[s + 1], sets[s + 2] = id8, new
      active[z + 1], active[z + 2] = '0', place .. id8
      leases[l + 1], leases[l + 2] = till, id8
      s, z, l = s + 2, z + 2, l + 2
      if flags >= HAS_TTL then
        set_clocks(spec, id8)
        if flags >= APART then spec = spec .. (call('HGET', KEYS[DATA], id8) or '') end
      end
      answer[a + 1], answer[a + 2], answer[a + 3] = id8, new, spec
      a = a + 3
    end
  end
  tell_starts(before, first, count, worker)
  n_adds[STATE_KEY + ACTIVE], n_adds[LEASE], n_runs = z, l, s
  if a > 0 then
    want(tonumber(till))
    if name then types[name][T_TAKEN], types_dirty[name] = now, true end
  end
  return answer
end

function steps.t(i, n)
  return worked and steps.T(i, n) or {}
end

-- ---- the end ----

-- What ending a job needs to know of its run, the same for all jobs that were taken together: all
-- but its texts, which begin at `texts`.
local function ending_of(r, texts)
  local attempts, delivery, _, lines = sunpack('>I4I4I4I4', r, AT_ATTEMPTS)
  local started = sunpack('>I7', r, AT_STARTED)
  local flags, name = byte(r, AT_FLAGS), sub(r, AT_TYPE, texts - 1)
  local duration = max(0, now - started)
  local removes, settings, t = flags % 2 == REMOVES, settings_of(name), type_make(name)
  types_dirty[name] = true
  return {
    name = name, type = t, duration = duration,
    with_result = sub(r, AT_DELIVERY, AT_DELIVERY + 3) .. '1',
    without_result = sub(r, AT_DELIVERY, AT_DELIVERY + 3) .. '0',
    special = removes or flags % (2 * HAS_TTL) >= HAS_KEY, ttl = flags % (2 * HAS_TTL) >= HAS_TTL,
    key = flags % (2 * HAS_KEY) >= HAS_KEY, removes = removes,
    bare = lines == 0 and flags < APART and flags % HAS_TTL == REMOVES,
    kept = not removes and settings and (settings[3] > 0 or settings[4] > 0),
    state = removes and 0 or COMPLETE,
    from = name .. '\0' .. spack('>I8', started + ZERO_RANK), to = name .. '\0' .. now8,
    head = spack('>BBI4', COMPLETE, 100, attempts + 1) .. sub(r, AT_DELIVERY, AT_PROMOTE + 6) ..
           now7 .. sub(r, AT_STARTED, AT_FAILED + 6) .. now7 .. spack('>I7', duration) ..
           sub(r, AT_FLAGS, texts - 1),
    -- of the event: all but how many jobs follow it
    event = spack('>BBBBc0BI4BBBI4BB', COMPLETED + LIST, removes and 0 or COMPLETE, 217, #name,
                  name, 206, attempts + 1, 204, 100, 206, delivery, 194, 206),
  }
end

local function event_for(e, count)
  if count > 1 then return e.event .. spack('>I4', count) end
  e.event_of_one = e.event_of_one or e.event .. '\0\0\0\1'
  return e.event_of_one
end

-- What follows the result: no error, and the rest as it was.
local function tail_of(r, texts)
  if byte(r, texts + 1) == 194 then return sub(r, texts + 1) end
  local _, _, progress, worker, history = texts_of(r, texts)
  return pack(false, progress, worker) .. history
end

-- An end with more to it than usual. False: it is an end as usual after all.
local function end_specially(e, id8)
  if begun[run_of(id8)] then                 -- in this very call
    for key = FIRST_SET, LAST_SET do flush(key) end
  end
  if e.removes and not e.bare then           -- gone, with all that was noted of it
    be_plain()
    types_dirty[e.name] = true
    forget(id8)
    return true
  end
  if e.ttl then
    n_rems[TTL] = n_rems[TTL] + 1
    rems[TTL][n_rems[TTL]] = id8
  end
  if e.key then
    flush_jobs()
    let_go(id8)
  end
  if not e.removes then return false end
  local z, l = n_rems[STATE_KEY + ACTIVE] + 1, n_rems[LEASE] + 1
  rems[STATE_KEY + ACTIVE][z], n_rems[STATE_KEY + ACTIVE] = e.from .. id8, z
  rems[LEASE][l], n_rems[LEASE] = id8, l
  n_gone = n_gone + 1
  gone[n_gone], records[id8] = id8, false
  count_block(e.name, id8, -1)
  return true
end

-- Each argument: id and delivery, 8 and 4 bytes, "1" or "0" for a result, the result.
function steps.D(i, n)
  local answer, retained, same, told, head, count = {}, nil, nil, nil, 0, 0
  local e, r_before, texts, tail, from
  for k = i, i + n - 1 do
    local arg, state, id8 = ARGV[k], -1, nil
    id8, ended = named[ended + 1], ended + 1
    local r = run_of(id8)
    if r ~= r_before then          -- jobs that were taken together have the same
      r_before, e = r, nil
      if r and byte(r) == ACTIVE then
        texts = AT_TYPE + byte(r, AT_TYPE - 1)
        local common = sub(r, 1, texts - 1)
        e = endings[common]
        if not e then
          e = ending_of(r, texts)
          endings[common] = e
        end
        tail, from = tail_of(r, texts), e.from
      end
    end
    local how = sub(arg, 9, 13)
    local has_result = e and how == e.with_result
    worked = has_result or e and how == e.without_result
    if worked then
      local result, t, m = sub(arg, 14), e.type, n_events
      if not (e.special or begun[r]) or not end_specially(e, id8) then
        local s, c = n_runs, n_adds[STATE_KEY + COMPLETE]
        local z, l = n_rems[STATE_KEY + ACTIVE] + 1, n_rems[LEASE] + 1
        local new = has_result and e.head .. text_head(#result) .. result .. tail or
                    e.head .. FALSE .. tail
        new_runs[s + 1], new_runs[s + 2], records[id8], n_runs = id8, new, new, s + 2
        rems[STATE_KEY + ACTIVE][z], n_rems[STATE_KEY + ACTIVE] = from .. id8, z
        rems[LEASE][l], n_rems[LEASE] = id8, l
        local complete = adds[STATE_KEY + COMPLETE]
        complete[c + 1], complete[c + 2], n_adds[STATE_KEY + COMPLETE] = '0', e.to .. id8, c + 2
      end
      t[T_COMPLETED], t[T_WORK] = t[T_COMPLETED] + 1, t[T_WORK] + e.duration
      if e.kept then
        retained = retained or {}
        retained[e.name] = true
      end
      if e ~= told then
        if told then events[head] = event_for(told, count) end
        m = m + 1
        told, head, count = e, m, 0
      end
      events[m + 1], events[m + 2] = '\207', id8
      if has_result then
        events[m + 3], events[m + 4] = text_head(#result), result
        n_events = m + 4
      else
        events[m + 3] = FALSE
        n_events = m + 3
      end
      count, state = count + 1, e.state
    end
    answer[k - i + 1] = state
    if k == i then same = state elseif same ~= state then same = nil end
  end
  if told then events[head] = event_for(told, count) end
  if retained then
    for name in pairs(retained) do want_retention(name, COMPLETE, now) end
  end
  return same or answer
end
