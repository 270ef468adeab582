-- 2_work.lua - the busy steps, which every job goes through: add, take, done. A step gets the place
-- of its first argument in ARGV and how many it has; what it answers is its answer.

local FALSE = '\194'                         -- MessagePack
local add_special, forget, let_go, want_retention       -- 3_job.lua, 3_worker.lua

-- ---- add ----

do

-- The arguments come in groups: type, rank, count, flags and the pieces of as many jobs (one has a
-- spec of its own); or with a count of 0 one job with more to it: flags, spec, data, extra.
local function words_are_missing(i, n)
  local p, stop = i, i + n - 1
  while p <= stop do
    local count, s = tonumber(ARGV[p + 2]), settings_of(ARGV[p])
    if s[T_SEARCH] == 1 and
       (count > 0 or ARGV[p + 6] == '' or not unpack_msg(ARGV[p + 6])[5]) then
      return true
    end
    p = p + 4 + (count > 0 and ceil(count / PIECE) or 3)
  end
end

-- May what the caller has written as created_at stay? It is at this place of an argument.
local function is_now(p, at)
  local stamp = sunpack('>I7', ARGV[p], at)
  return stamp <= now and stamp + STAMP_MS >= now
end

-- Jobs of one type and priority with nothing special about them, a span: pieces from ARGV[p] on.
local function add_run(name, rank, flags, p, count)
  local first = (last + 1) * partitions + partition
  local sets, k = new_jobs, n_jobs
  emit_run(EVENT_ENQUEUE, INACTIVE, first, count, name, 0, 0, 0)
  if count == 1 then
    sets[k + 1] = spack('>I8', first)
    sets[k + 2], n_jobs = is_now(p, 1) and ARGV[p] or now7 .. sub(ARGV[p], 8), k + 2
    to_add(STATE_KEY + INACTIVE, '0', span_entry(name, rank, first, 1, flags))
  else
    local as_it_is = is_now(p, 2 + 2 * byte(ARGV[p]))
    for q = 0, ceil(count / PIECE) - 1 do
      local piece = ARGV[p + q]
      sets[k + 1] = piece_field(first + q * PIECE * partitions)
      sets[k + 2], k = as_it_is and piece or created_now(piece), k + 2
    end
    n_jobs = k
    to_add(STATE_KEY + INACTIVE, '0', span_entry(name, rank, first, count, flags, 1))
  end
  count_together(name, T_SPANS, 0, count)
  local seq, left = last + 1, count
  last = last + count
  while left > 0 do
    local b = floor(seq / BLOCK)
    local some = min(left, (b + 1) * BLOCK - seq)
    count_block(name, b, some)
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
  local first, plain, made = (last + 1) * partitions + partition, true, {}
  local p, stop = i, i + n - 1
  while p <= stop do
    local name, count = ARGV[p], tonumber(ARGV[p + 2])
    layout.make_type(name)
    if count > 0 then
      made[#made + 1] = { (last + 1) * partitions + partition, INACTIVE, 0, count }
      add_run(name, ARGV[p + 1], count_in(ARGV[p + 3]), p + 4, count)
      p = p + 4 + ceil(count / PIECE)
    else
      local id, state, existed = add_special(name, ARGV[p + 4], ARGV[p + 5], ARGV[p + 6])
      made[#made + 1] = { id, state, existed, 1 }
      plain = plain and existed == 0 and state == INACTIVE
      p = p + 7
    end
  end
  return plain and #made > 0 and { first } or each_of(made)
end

end

-- ---- take ----

-- The texts of a run, and its history: what follows them, as it is there, or "".
local function texts_of(r, at)
  local rest, RUN_TEXTS = unpack_some(r, RUN_TEXTS_OF_J_COUNT, at - 1)
  return RUN_TEXTS, rest >= 0 and sub(r, rest + 1) or ''
end

do

-- A reader of the jobs of a type that wait, best first: a page of entries, and where it is. Where
-- there are spans, few entries may be enough.
local function reader_of(name, n)
  local from, to = of_type(name)
  return { name = name, from = from, to = to, entry = {}, at = 1,
           limit = type_of(name)[T_SPANS] > 0 and ceil(n / 8) + 1 or n }
end

local function read_page(r)
  local got = call('ZRANGEBYLEX', KEYS[STATE_KEY + INACTIVE], r.from, r.to, 'LIMIT', 0, r.limit)
  local page, ids, alone = {}, {}, {}
  for k = 1, #got do
    local e = { member = got[k], rank = sunpack('>I8', got[k], #r.name + 2), given = 0 }
    e.first, e.count, e.flags, e.place = jobs_of(got[k], r.name)
    e.next, page[k] = e.first, e
    if not e.place then ids[#ids + 1], alone[#alone + 1] = spack('>I8', e.first), e end
  end
  local specs, runs = specs_of(ids), get_many(RUNS, ids)
  for k = 1, #alone do alone[k].spec, alone[k].run, alone[k].id8 = specs[k], runs[k], ids[k] end
  r.entry, r.at, r.over = page, 1, #got < r.limit
  if #got > 0 then r.from = '(' .. got[#got] end
end

local function next_entry(r)
  if not r.entry[r.at] and not r.over then read_page(r) end
  return r.entry[r.at]
end

local function comes_before(a, b)
  if a.rank ~= b.rank then return a.rank < b.rank end
  return a.next < b.next
end

-- Among several readers the one whose next job comes first, and the entry that comes behind it.
local function best_of(readers)
  local best, behind = nil, nil
  for k = 1, #readers do
    local e = next_entry(readers[k])
    if e then
      local now_best = best and best.entry[best.at]
      if not best or comes_before(e, now_best) then
        best, behind = readers[k], now_best
      elseif not behind or comes_before(e, behind) then
        behind = e
      end
    end
  end
  return best, behind
end

local function waits(name)
  local t, all = type_of(name), types['*']
  return t and t[T_PAUSED] == 0 and not (all and all[T_PAUSED] == 1)
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
      run = spack(RUN_AND_TYPE_FORMAT, ACTIVE, 0, 0, 1, 0, 0, 0, now, now, 0, 0,
                  NO_DURATION_NOR_REST, flags, #name, name) .. NO_TEXTS_BEFORE_WORKER,
      event = spack('>BBBBc0BI4BBBI4BBI4B', EVENT_START + LIST_OF, ACTIVE, 217, #name, name, 206, 0,
                    204, 0, 206, 1, 194, 206, 1, 207),
    }
    by_flags[flags] = first
  end
  return first
end

-- And a job with a past: its error and its history are kept.
local function next_run(r, delivery, taker)
  local texts = RUN_TYPE + byte(r, RUN_TYPE - 1)
  local RUN_TEXTS, history = texts_of(r, texts)
  result, progress_data, worker = false, false, taker
  return spack('>BB', ACTIVE, 0) .. sub(r, RUN_ATTEMPTS, RUN_DELIVERY - 1) ..
         spack('>I4', delivery) .. sub(r, RUN_LOST, RUN_PROMOTE_AT + 6) .. now7 .. now7 ..
         sub(r, RUN_FAILED_AT, texts - 1) .. pack(RUN_TEXTS) .. history
end

local function set_clocks(spec, id8)
  local ttl, deadline = sunpack('>I7I7', spec, SPEC_TTL_MS)
  if ttl > 0 then
    to_add(TTL, digits(now + ttl), id8)
    want(now + ttl)
  end
  if deadline > 0 then to_remove(DUE, id8) end
end

local function is_late(flags, spec)
  if flags % (2 * HAS_DEADLINE) < HAS_DEADLINE then return false end
  local _, deadline = sunpack('>I7I7', spec, SPEC_TTL_MS)
  return deadline <= now
end

-- To whom does the next job go?
local function next_worker(d)
  repeat
    d.w = d.w + 1
    d.left = d.wants[d.w]
  until d.left ~= 0
  d.worker, d.bytes = d.workers[d.w], 0
end

local function count_given(d, n)
  d.got[d.w] = d.got[d.w] + n
  d.left, d.wanted = d.left - n, d.wanted - n
end

-- Data that is apart: a worker that has much of it gets no more.
local function count_bytes(d, n)
  d.bytes = d.bytes + n
  if d.bytes >= MAX_TAKE_BYTES then d.left, d.wanted = 0, d.wanted - d.left end
end

local function emit_starts(f, id, n, worker)
  if n > 1 then
    emit_run(EVENT_START, ACTIVE, id, n, f.name, 0, 0, 1, worker)
    return
  end
  local m = n_events
  events[m + 1], events[m + 2], events[m + 3] = f.event, spack('>I8', id), text_head(#worker)
  events[m + 4], n_events = worker, m + 4
end

local function grant_for(d, f, id, block)
  local h = d.grant
  if h and d.f == f and d.next_id == id and d.block == block then return h end
  h = { first = id, live = {}, left = 0, head = f.run, workers = {}, where = {}, till = d.till }
  local list = grants_in(block)
  list[#list + 1], grants_dirty[block] = h, true
  d.grant, d.f, d.block = h, f, block
  return h
end

-- How many jobs from this id on, at most n, are in one block.
local function some_in(block, id, n)
  return min(n, ceil(((block + 1) * ids_a_block - id) / partitions))
end

-- n jobs whose ids follow each other go into grants, none of which is of more than one block.
local function put_in_grants(d, f, id, n)
  while n > 0 do
    local block = block_of(id)
    local some, h = some_in(block, id, n), grant_for(d, f, id, block)
    local live, w = h.live, h.workers
    for k = h.left + 1, h.left + some do live[k] = 1 end
    if w[#w] == d.worker then
      w[#w - 1] = w[#w - 1] + some
    else
      w[#w + 1], w[#w + 2] = some, d.worker
    end
    h.left, n, id = h.left + some, n - some, id + some * partitions
    d.next_id = id
  end
end

-- Jobs from this id on went into grants, each the last one of its block: note where their specs are.
local function note_where(id, where)
  for p = 1, #where, 3 do
    local n, place, places = where[p], where[p + 1], where[p + 2]
    while n > 0 do
      local block = block_of(id)
      local some, its = some_in(block, id, n), grants[block][#grants[block]].where
      local k = #its
      if k > 0 and (place == 0 and its[k - 1] == 0 or place > 1 and its[k] == places) then
        its[k - 2] = its[k - 2] + some
      else
        its[k + 1], its[k + 2], its[k + 3] = some, place, places
      end
      n, id, place = n - some, id + some * partitions, place > 0 and place + some or 0
    end
  end
end

-- Jobs that are taken for the first time, and of which nothing more is to be noted. `specs` is as the
-- answer has it, and `where` as a grant.
local function give_new(d, name, flags, id, specs, where)
  local f, left, a = first_of(name, flags), jobs_given(specs), d.a
  d.answer[a + 1], d.answer[a + 2], d.answer[a + 3] = spack('>I8', id), f.run, specs
  d.a = a + 3
  count_granted(name, left)
  local first = id
  while left > 0 do
    if d.left == 0 then next_worker(d) end
    local n = min(left, d.left)
    emit_starts(f, id, n, d.worker)
    put_in_grants(d, f, id, n)
    count_given(d, n)
    left, id = left - n, id + n * partitions
  end
  note_where(first, where)
end

-- Another one: it gets a run of its own.
local function give_apart(d, name, e, flags)
  local id8, spec, r, attempts, delivery, run = e.id8, e.spec, e.run, 0, 1, nil
  local data = flags >= APART and call('HGET', KEYS[DATA], id8) or ''
  if d.left == 0 then next_worker(d) end
  if r then
    attempts, delivery = sunpack('>I4I4', r, RUN_ATTEMPTS)
    delivery = delivery + 1
    run = next_run(r, delivery, d.worker)
  else
    run = first_of(name, flags).run .. text_head(#d.worker) .. d.worker
  end
  emit(event_of(EVENT_START, ACTIVE, e.first, name, attempts, 0, delivery, d.worker))
  begun[run], records[id8] = true, run
  set_run(id8, run)
  to_add(STATE_KEY + ACTIVE, '0', name .. '\0' .. now8 .. id8)
  to_add(LEASE, d.till, id8)
  if flags >= HAS_TTL then set_clocks(spec, id8) end
  local a = d.a
  d.answer[a + 1], d.answer[a + 2], d.answer[a + 3], d.a = id8, run, spec .. data, a + 3
  count_given(d, 1)
  count_bytes(d, #data)
end

-- May the next worker have a suspect? Then it gets nothing else. If not, it is passed over.
local function gets_suspect(d)
  if d.left == 0 then next_worker(d) end
  if d.got[d.w] > 0 or d.busy[d.w] then
    d.passed, d.passer = d.passed + 1, d.passer or d.w
    if d.passed == MAX_PASSED then d.wanted = 0 end
    return false
  end
  d.left, d.wanted = 1, d.wanted - d.left + 1
  return true
end

local function is_suspect(run)
  return run and sunpack('>I4', run, RUN_LOST) > 0
end

-- A job that waits by itself. False: it is not to be given.
local function give_one(d, name, e)
  local spec = e.spec
  local flags = spec and byte(spec, SPEC_FLAGS)
  if not spec or flags >= HAS_DEADLINE and is_late(flags, spec) then return false end
  if is_suspect(e.run) and not gets_suspect(d) then return false end
  if e.run or flags > REMOVES then
    give_apart(d, name, e, flags)
  else
    give_new(d, name, flags, e.first, { spec }, { 1, 0, 0 })
  end
  return true
end

-- n jobs of a span.
local function give_some(d, name, e, n)
  if e.flags <= REMOVES then
    local pieces, where = pieces_from(e.next, e.place, n)
    if pieces then
      give_new(d, name, e.flags, e.next, pieces, where)
      return
    end
  end
  local ids = {}
  for k = 1, n do ids[k] = spack('>I8', e.next + (k - 1) * partitions) end
  local specs = specs_of(ids)
  for k = 1, n do                            -- without a spec: damaged by hand
    local id, spec = e.next + (k - 1) * partitions, specs[k]
    if spec and e.flags > REMOVES then
      give_apart(d, name, { first = id, id8 = ids[k], spec = spec }, e.flags)
    elseif spec then
      set_spec(ids[k], spec)
      give_new(d, name, e.flags, id, { spec }, { 1, 0, 0 })
    end
  end
end

-- Jobs that were given wait no more.
local function write_waiting(name, e)
  local left = e.count - e.given
  to_remove(STATE_KEY + INACTIVE, e.member)
  if left > 0 then
    to_add(STATE_KEY + INACTIVE, '0',
           span_entry(name, sub(e.member, #name + 2, #name + 9), e.next, left, e.flags, e.place))
  end
  count_together(name, T_SPANS, e.count, left)
  types[name][T_TAKEN], types_dirty[name] = now, true
end

-- How many jobs of a span come before the jobs of `behind`, an entry of another type.
local function until_behind(e, behind)
  local left = e.count - e.given
  if not behind or behind.rank > e.rank then return left end
  return min(left, max(1, ceil((behind.next - e.next) / partitions)))
end

-- From the next entry of a reader, give the jobs that come before the jobs of other readers.
local function give_next(d, r, behind)
  local e, n = r.entry[r.at], 1
  if e.place then
    n = min(until_behind(e, behind), d.wanted)
    give_some(d, r.name, e, n)
  elseif not give_one(d, r.name, e) then
    r.at = r.at + 1
    if d.passed > 0 then r.limit = MAX_PASSED end        -- there may be many
    return
  end
  e.given, e.next = e.given + n, e.next + n * partitions
  if e.place then e.place = place_behind(e.place, n) end
  if e.given == e.count then
    write_waiting(r.name, e)
    r.at = r.at + 1
  end
end

-- Give of these types as many jobs as are wanted.
local function give(d, names)
  local readers = {}
  for k = 1, #names do readers[k] = reader_of(names[k], d.wanted) end
  while d.wanted > 0 do
    local r, behind = best_of(readers)
    if not r then break end
    give_next(d, r, behind)
  end
  for k = 1, #readers do
    local r = readers[k]
    local e = r.entry[r.at]
    if e and e.given > 0 then write_waiting(r.name, e) end
  end
end

-- The workers that take jobs, how many, and after which end: ARGV from p to stop. `ends`: see
-- `worked`.
local function wants_of(p, stop, ends)
  local d = { answer = { '' }, a = 1, workers = {}, wants = {}, got = {}, busy = {}, wanted = 0,
              w = 0, left = 0, passed = 0 }
  for at = p, stop, 3 do
    local is_due = ends == true or ends and ends[count_in(ARGV[at + 2])]
    local n = is_due and count_in(ARGV[at + 1]) or 0
    local k = #d.workers + 1
    if n < 0 then d.busy[k], n = true, -n end
    d.workers[k], d.wants[k], d.got[k], d.wanted = ARGV[at], n, 0, d.wanted + n
  end
  return d
end

function layout.take(i, n, ends)
  local lease, n_types = tonumber(ARGV[i]), count_in(ARGV[i + 1])
  local p = i + 2 + n_types
  local d = wants_of(p, i + n - 1, ends)
  local names = d.wanted > 0 and waiting_names(i + 2, p - 1) or {}
  if #names == 0 then return {} end
  d.till = digits(now + lease)
  flush_jobs()
  flush(STATE_KEY + INACTIVE)
  give(d, names)
  if d.a == 1 and not d.passer then return {} end
  if d.a > 1 then want(now + lease) end
  if d.passer then layout.mark_passed(d) end
  d.answer[1] = spack('>' .. rep('I2', #d.got), unpack(d.got))
  return d.answer
end

end

-- ---- the end ----

do

-- The facts of a run that its end needs, the same for all that were taken together: all but
-- its texts, which begin at `texts`.
local function ending_of(r, texts)
  local attempts, delivery, _, lines = sunpack('>I4I4I4I4', r, RUN_ATTEMPTS)
  local started = sunpack('>I7', r, RUN_STARTED_AT)
  local flags, name = byte(r, RUN_FLAGS), sub(r, RUN_TYPE, texts - 1)
  local duration = max(0, now - started)
  local removes, settings, t = flags % 2 == REMOVES, settings_of(name), layout.make_type(name)
  types_dirty[name] = true
  return {
    name = name, type = t, duration = duration,
    attempts = attempts + 1, delivery = delivery,
    special = removes or flags % (2 * HAS_TTL) >= HAS_KEY, ttl = flags % (2 * HAS_TTL) >= HAS_TTL,
    key = flags % (2 * HAS_KEY) >= HAS_KEY, removes = removes,
    bare = lines == 0 and flags < APART and flags % HAS_TTL == REMOVES,
    kept = not removes and
           (settings[T_COMPLETE_AGE] > 0 or settings[T_COMPLETE_COUNT] > 0),
    state = removes and 0 or COMPLETE,
    from = name .. '\0' .. spack('>I8', started + ZERO_RANK), to = name .. '\0' .. now8,
    head = spack('>BBI4', COMPLETE, 100, attempts + 1) ..
           sub(r, RUN_DELIVERY, RUN_PROMOTE_AT + 6) .. now7 ..
           sub(r, RUN_STARTED_AT, RUN_FAILED_AT + 6) .. now7 .. spack('>I7', duration) ..
           sub(r, RUN_AFTER_DURATION, texts - 1),
  }
end

-- The texts behind the result: no error, and the others as they were.
local function tail_of(r, texts)
  if byte(r, texts + 1) == 194 then return sub(r, texts + 1) end
  local RUN_TEXTS, history = texts_of(r, texts)
  error = false
  return pack(RUN_TEXTS_BEHIND_RESULT) .. history
end

-- The ending of a run, and its tail. Jobs that were taken together have the same.
local function ending(r)
  local texts = RUN_TYPE + byte(r, RUN_TYPE - 1)
  local common = sub(r, 1, texts - 1)
  local e = endings[common]
  if not e then
    e = ending_of(r, texts)
    endings[common] = e
  end
  return e, tail_of(r, texts)
end

-- An end with more to it than usual. False: it is an end as usual after all.
local function end_specially(e, id8)
  if begun[stored_run(id8)] then                -- in this very call
    for key = FIRST_SET, LAST_SET do flush(key) end
  end
  if e.removes and not e.bare then           -- gone, with all that was noted of it
    be_plain()
    types_dirty[e.name] = true
    forget(id8)
    return true
  end
  if e.ttl then to_remove(TTL, id8) end
  if e.key then
    flush_jobs()
    let_go(id8)
  end
  if not e.removes then return false end
  to_remove(STATE_KEY + ACTIVE, e.from .. id8)
  to_remove(LEASE, id8)
  n_gone_jobs, n_gone_runs, records[id8] = n_gone_jobs + 1, n_gone_runs + 1, false
  gone_jobs[n_gone_jobs], gone_runs[n_gone_runs] = id8, id8
  count_block(e.name, block_of(id_number(id8)), -1)
  return true
end

-- It has a run of its own.
local function end_own(e, id8, r, tail, result)
  if (e.special or begun[r]) and end_specially(e, id8) then return end
  local new = e.head .. (result and text_head(#result) .. result or FALSE) .. tail
  set_run(id8, new)
  records[id8] = new
  to_remove(STATE_KEY + ACTIVE, e.from .. id8)
  to_remove(LEASE, id8)
  to_add(STATE_KEY + COMPLETE, '0', e.to .. id8)
end

-- Or complete: those of each worker are a completion.
local function complete_held(e, h, place, n, result)
  local id, stop = h.first + (place - 1) * partitions, place + n
  local head = e.head .. (result and text_head(#result) .. result or FALSE) ..
               NO_TEXTS_FROM_RESULT_TO_WORKER
  while place < stop do
    local worker, count = worker_in(h, place)
    count = min(count, stop - place)
    if count > 1 then
      set_run(completion_field(id), pack(count, head, worker))
      e.type[T_DONE] = e.type[T_DONE] + count - 1
    else
      set_run(spack('>I8', id), head .. text_head(#worker) .. worker)
    end
    to_add(STATE_KEY + COMPLETE, '0', span_entry(e.name, now8, id, count, 0))
    place, id = place + count, id + count * partitions
  end
  dones[block_of(h.first)] = nil
end

local function end_held(e, h, place, n, result)
  leave_grant(h, place, n)
  e.type[T_GRANTED] = e.type[T_GRANTED] - n
  if e.removes then
    leave_where(h.where, h.first, place, n)
    count_block(e.name, block_of(h.first), -n)
  else
    complete_held(e, h, place, n, result)
  end
end

-- Up to n jobs from this id on, which were given with this delivery: answers of how many it says
-- what, and the state they have now; -1: they are not to be ended so.
local function end_some(id, delivery, n, result)
  local h, place = grant_with(id)
  local e, tail
  if h then
    if delivery ~= 1 then return 1, -1 end
    n, e = live_in(h, place, n), ending(h.head)
    end_held(e, h, place, n, result)
  else
    local id8 = spack('>I8', id)
    local r = stored_run(id8)
    if r and byte(r) == ACTIVE then e, tail = ending(r) end
    if not e or e.delivery ~= delivery then return 1, -1 end
    n = 1
    end_own(e, id8, r, tail, result)
  end
  local t = e.type
  t[T_COMPLETED], t[T_WORK] = t[T_COMPLETED] + n, t[T_WORK] + n * e.duration
  emit_run(EVENT_COMPLETE, e.state, id, n, e.name, e.attempts, 100, delivery, result)
  return n, e.state, e
end

-- The first argument has END bytes for each run of jobs that end alike: id of the first, delivery,
-- how many, "1" or "0" for a result. The results follow.
function steps.D(i)
  local ends, runs, m, retained = ARGV[i], {}, 0, {}     -- runs: of jobs with the same answer
  for at = 1, #ends, END do
    local id, delivery, left, has_result = sunpack('>I8I4I2B', ends, at)
    local result
    if has_result == 49 then
      i = i + 1
      result = ARGV[i]
    end
    while left > 0 do
      local n, state, e = end_some(id, delivery, left, result)
      if e and e.kept then retained[e.name] = true end
      if runs[m] == state then
        runs[m - 1] = runs[m - 1] + n
      else
        runs[m + 1], runs[m + 2], m = n, state, m + 2
      end
      left, id = left - n, id + n * partitions
    end
  end
  for name in pairs(retained) do want_retention(name, COMPLETE, now) end
  return answer_of_ends(runs, m)
end

end
