-- 5_work.lua - the steps of producers and workers. A step gets the place of its first argument in
-- ARGV and how many it has; what it answers is its answer.

local function next_id()
  if not last then
    last = tonumber(call('GET', IDS) or 0)
    first_last = last
  end
  last = last + 1
  return last
end

local function by_rank(a, b)
  if a[1] ~= b[1] then return a[1] < b[1] end
  return a[2] < b[2]
end

-- ---- add ----

do

-- The spec comes without its first field, which is now.
local function new_job(rec)
  return fields_of('', spack('>I7', now) .. rec)
end

-- The fields to write for a spec; the next one is often the same, but for the time.
local template                     -- `set`: fields and values, data is at `at`; `times`: where

local function template_of(rec)
  local t = template
  if t and t.rec == rec then
    t.j[CREATED_AT], t.j[PROMOTE_AT], t.j[UPDATED_AT] = now, now, now
    for _, at in ipairs(t.times) do t.set[at] = now_text end
    return t
  end
  local set, times = {}, {}
  t = { rec = rec, j = new_job(rec), set = set, times = times }
  encode(t.j, NOTHING, function(field, value)
    if not value then return end
    set[#set + 1], set[#set + 2] = FIELDS[field], value
    if field >= H_CREATED and field <= H_UPDATED then times[#times + 1] = #set end
  end)
  local values = t.j[VALUES] or NOTHING
  for k = 1, #values do set[#set + 1] = values[k] end
  t.at = #set + 2
  set[t.at - 1], template = 'data', t
  return t
end

-- Jobs that differ in nothing but their data, which are ARGV from p on. Answers the first id.
local function add_alike(rec, p, count)
  local t, first, zids = template_of(rec), next_id(), {}
  local j, set, at = t.j, t.set, t.at
  last = first + count - 1
  for k = 1, count do
    local key, zid = names_of(first + k - 1)
    set[at], zids[k] = ARGV[p + k - 1], zid
    call('HSET', key, unpack(set, 1, at))
    if VERTX then identify(id_of(zid), j) end
  end
  set[at] = nil                    -- it may be long
  put_in(JOBS, zids, j[PRIORITY])
  place(j, zids)
  emit(EVENT_ENQUEUE, j, first, INACTIVE, false, count)
  return first
end

local function add_special(rec, data, extra)
  local j = new_job(rec)
  local delay, run_at, _, unique, words = unpack(extra)
  if unique then
    local holder, state = holder_of(j)
    if holder then return tonumber(holder), state, 1 end
  end
  local at = now + delay
  if run_at > at then at = run_at end
  j[STATE], j[PROMOTE_AT] = at > now and DELAYED or INACTIVE, at
  if settings_of(j[TYPE])[T_SEARCH] == 1 and j[FLAGS] < SEARCHED then
    j[FLAGS] = j[FLAGS] + SEARCHED
  end
  local n = next_id()
  local id = digits(n)
  local zids = { zid_of(id) }
  write_job(id, j, NOTHING, data)
  if VERTX then identify(id, j) end
  put_in(JOBS, zids, j[PRIORITY])
  place(j, zids)
  hold_key(j, id)
  if words and j[FLAGS] >= SEARCHED then note_words(id, 1, words) end
  if j[STATE] == INACTIVE then emit(EVENT_ENQUEUE, j, n, INACTIVE, false) end
  return n, j[STATE], 0
end

-- How many arguments a group of jobs has: see layout.h.
local function size_of_group(p)
  local count = tonumber(ARGV[p + 2])
  return count > 0 and 5 + count or 7, count
end

local function words_are_missing(i, n)
  local name, search
  while n > 0 do
    local size, count = size_of_group(i)
    if ARGV[i] ~= name then
      name = ARGV[i]
      search = settings_of(name)[T_SEARCH] == 1
    end
    if search and (count > 0 or ARGV[i + 6] == '' or not unpack_msg(ARGV[i + 6])[5]) then
      return true
    end
    i, n = i + size, n - size
  end
end

-- All data is apart, so the specs of a group are one spec and then data.
function steps.A(i, n)
  if words_are_missing(i, n) then return 'words' end
  local answer, plain, a, stop = {}, true, 0, i + n
  while i < stop do
    local name, rec, size, count = ARGV[i], ARGV[i + 4], size_of_group(i)
    local id, state, existed = nil, INACTIVE, 0
    if count > 0 then
      id = add_alike(rec, i + 5, count)
    else
      count = 1
      id, state, existed = add_special(rec, ARGV[i + 5], unpack_msg(ARGV[i + 6]))
    end
    if existed == 0 then type_known(name) end
    plain = plain and existed == 0 and state == INACTIVE
    for k = 0, count - 1 do
      answer[a + 1], answer[a + 2], answer[a + 3], a = id + k, state, existed, a + 3
    end
    i = i + size
  end
  return plain and a > 0 and { answer[1] } or answer
end

end

-- ---- take ----

do

-- Up to n waiting jobs of these types, best first: zids, and if there are several types, the type
-- of each. `more`: there may be others behind them. VERTX: not more than have a token.
local function candidates(names, n)
  local all, more = {}, false
  for _, name in ipairs(names) do
    local key, last = keys_of(name)[INACTIVE], n - 1
    flush(key)
    if VERTX then last = min(last, free_tokens(name) - 1) end
    if #names == 1 then
      local zids = last >= 0 and call('ZRANGE', key, 0, last) or NOTHING
      return zids, nil, #zids == n
    end
    local got = last >= 0 and call('ZRANGE', key, 0, last, 'WITHSCORES') or NOTHING
    for k = 1, #got, 2 do
      all[#all + 1] = { tonumber(got[k + 1]), tonumber(id_of(got[k]) or 0), got[k], name }
    end
    more = more or #got == 2 * n
  end
  table.sort(all, by_rank)
  local zids, types_there = {}, {}
  for k = 1, min(n, #all) do zids[k], types_there[k] = all[k][3], all[k][4] end
  return zids, types_there, more or #all > n
end

-- An entry of a type's inactive set that no inactive job accounts for is taken out, as Kue's pop
-- would. The hash, whatever is in it, stays.
local function drop_stale(name, zid)
  local key = keys_of(name)[INACTIVE]
  touch(name)
  take_out(key, { zid })
  flush(key)
end

-- ---- jobs that are alike ----

-- Jobs added in bulk differ in their data alone. So only those fields of a job are read that the last
-- one had; if it has as many fields, it has no others.
local shape                        -- names of fields, the last is `data`; `at`: places in FIELDS

local function shape_of(h)
  if VERTX or not h[H_DATA] then return nil end        -- there are always others
  local names, at, n = {}, {}, 0
  for k = 1, H_DATA do
    if h[k] then
      n = n + 1
      names[n], at[n] = FIELDS[k], k
    end
  end
  if h.fields ~= n then return nil end
  return { names = names, at = at, n = n }
end

-- Has the job the fields of the shape, and no others?
local function has_shape(key, values)
  for k = 1, shape.n do
    if not values[k] then return false end
  end
  return call('HLEN', key) == shape.n
end

local function values_of(h)
  local values = {}
  for k = 1, shape.n do values[k] = h[shape.at[k]] end
  return values
end

local function raw_of(values)
  local h = {}
  for k = 1, H_DATA do h[k] = false end
  for k = 1, shape.n do h[shape.at[k]] = values[k] end
  return h
end

-- ---- giving: `d` is what is wanted and what was given, see take() ----

local function started(j, worker)
  j[STATE], j[DELIVERY], j[WORKER] = ACTIVE, j[DELIVERY] + 1, worker
  j[STARTED_AT], j[UPDATED_AT], j[PROGRESS], j[PROGRESS_DATA] = now, now, 0, false
  return j
end

local function note_taken(name)
  layout.make_type(name)[T_TAKEN], types_dirty[name] = now, true
end

-- See 2_record.lua.
local function held_text(j, h)
  local text = digits(j[DELIVERY]) .. ' ' .. now_text
  if VERTX or h[H_MORE] or h[H_ERROR] or h[H_RESULT] or h[H_REMOVE] then return text end
  return text .. ' ' .. digits(j[ATTEMPTS]) .. ' ' .. digits(j[TTL_MS])
end

local function start(d, key, zid, j, h)
  local zids, id = { zid }, id_of(zid)
  unplace(j, zids)
  if j[PROGRESS] > 0 then call('HSET', key, 'progress', '0') end
  if h[H_PROGRESS_DATA] then call('HDEL', key, FIELDS[H_PROGRESS_DATA]) end
  started(j, d.worker)
  call('HSET', key, 'state', WORD[ACTIVE], 'started_at', now_text, 'updated_at', now_text,
       FIELDS[H_WORKER], d.worker, 'weir_held', held_text(j, h))
  place(j, zids)
  run_ttl(j, zids)
  put_in(LEASE, zids, d.till)
  note_taken(j[TYPE])
  emit(EVENT_START, j, id, ACTIVE, d.worker)
  put_record(d.answer, id, j, h[H_DATA] or '{}')
end

-- The last jobs that were given, if they are alike: as they were, as they are now, their record.
local like

-- Those of them whose ids follow each other and that one worker got are one part of the answer, and
-- one event.
local function end_run(d)
  local n, a = like.n, #d.answer
  if n == 0 then return end
  local first = like.next - n
  d.answer[a + 1], d.answer[a + 2], d.answer[a + 3] = spack('>I8', first), like.run, like.specs
  emit(EVENT_START, like.active, first, ACTIVE, d.worker, n)
  like.n, like.specs = 0, {}
end

local function end_like(d)
  if not like then return end
  end_run(d)
  unplace(like.waiting, like.zids)
  place(like.active, like.zids)
  run_ttl(like.active, like.zids)
  put_in(LEASE, like.zids, d.till)
  note_taken(like.active[TYPE])
  like = nil
end

-- Nil if there is more to do for such a job than start_like() does.
local function begin_like(d, j, h, values)
  if not values or j[LOST] > 0 or j[PROGRESS] > 0 or h[H_PROGRESS_DATA] or h[H_HISTORY] then return end
  local active = {}
  for k = 1, LAST_FIELD do active[k] = j[k] end
  local run, spec = bytes_of(started(active, d.worker))
  like = { waiting = j, active = active, values = values, zids = {}, specs = {}, n = 0, next = 0,
           spec = spec, run = string.sub(run, 1, -1 - #pack(d.worker)),    -- up to the worker
           held = held_text(active, h) }
end

local function is_like(name, values)
  local others, n = like.values, shape.n
  for k = 1, n - 1 do
    if values[k] ~= others[k] then return false end
  end
  return values[n] and like.waiting[TYPE] == name
end

local function start_like(d, key, zid, id, data)
  if id ~= like.next then end_run(d) end
  local n, zids = like.n + 1, like.zids
  like.specs[n], zids[#zids + 1], like.n, like.next = like.spec .. data, zid, n, id + 1
  call('HSET', key, 'state', WORD[ACTIVE], 'started_at', now_text, 'updated_at', now_text,
       FIELDS[H_WORKER], d.worker, 'weir_held', like.held)
end

-- The key of a job and its number; nil: it is none. Mostly it is the one behind the last.
local function look_up(zid)
  if like then
    local key, next_zid = names_of(like.next)
    if zid == next_zid then return key, like.next end
  end
  local id = id_of(zid)
  if id then return JOB .. id, tonumber(id) end
end

-- May the worker have a suspect? Then it gets nothing else. If not, it is passed over.
local function gets_suspect(d)
  if d.got[d.w] == 0 and not d.busy[d.w] then
    d.wants[d.w] = 1
    return true
  end
  d.passed, d.passer = d.passed + 1, d.passer or d.w
  return false
end

-- A worker that has much data gets no more.
local function count_given(d)
  d.got[d.w] = d.got[d.w] + 1
  if d.bytes >= MAX_TAKE_BYTES then d.wants[d.w] = d.got[d.w] end
end

-- Give it to a worker. False: it is none that can be given.
local function give_one(d, name, zid)
  local key, id = look_up(zid)
  local values = key and shape and call('HMGET', key, unpack(shape.names))
  if values and like and is_like(name, values) and call('HLEN', key) == shape.n then
    start_like(d, key, zid, id, values[shape.n])
    d.bytes = d.bytes + #values[shape.n]
    return true
  end
  values = values and has_shape(key, values) and values
  local h = values and raw_of(values) or key and call('HMGET', key, unpack(FIELDS))
  if h and not values then read_values(key, h) end
  local j = h and record_of(h)
  end_like(d)
  if not j or j[STATE] ~= INACTIVE or j[TYPE] ~= name then
    drop_stale(name, zid)
    return false
  end
  if j[DEADLINE_AT] > 0 and j[DEADLINE_AT] <= now then return false end
  if j[LOST] > 0 and not gets_suspect(d) then return false end
  if not values then
    shape = shape_of(h)
    values = shape and values_of(h)
  end
  begin_like(d, j, h, values)
  if like then
    start_like(d, key, zid, id, h[H_DATA])
  else
    start(d, key, zid, j, h)
  end
  d.bytes = d.bytes + #(h[H_DATA] or '')
  return true
end

-- The next worker that still gets jobs; false: nobody.
local function next_worker(d)
  while d.got[d.w] == d.wants[d.w] do
    if like then end_run(d) end
    d.w = d.w + 1
    d.worker, d.bytes = d.workers[d.w], 0
    if not d.worker then return false end
  end
  return true
end

local function give(d, names)
  local ask = d.wanted
  while true do
    local zids, types_there, more = candidates(names, ask)
    d.passed = 0                   -- the jobs of the last time are repeated
    for k = 1, #zids do
      if d.passed == MAX_PASSED or not next_worker(d) then break end
      if give_one(d, types_there and types_there[k] or names[1], zids[k]) then
        count_given(d)
      end
    end
    end_like(d)
    if not more or d.passed == MAX_PASSED or not next_worker(d) then return end
    ask = 2 * ask
  end
end

local function waiting_names(from, to)
  local names, seen = {}, {}
  local all = type_of('*')
  if all and all[T_PAUSED] == 1 then return names end
  for k = from, to do
    local name = ARGV[k]
    local t = not seen[name] and type_of(name)
    if not seen[name] and not (t and t[T_PAUSED] == 1) then names[#names + 1] = name end
    seen[name] = true
  end
  return names
end

function layout.take(i, n, ends)
  local lease, types_there = tonumber(ARGV[i]), tonumber(ARGV[i + 1])
  local d = { answer = { '' }, till = now + lease, workers = {}, wants = {}, got = {}, busy = {},
              wanted = 0, w = 1, bytes = 0, passed = 0 }
  for p = i + 2 + types_there, i + n - 1, 3 do
    local k, is_due = #d.workers + 1, ends == true or ends and ends[tonumber(ARGV[p + 2])]
    local wants = is_due and tonumber(ARGV[p + 1]) or 0
    d.workers[k], d.wants[k], d.got[k], d.busy[k] = ARGV[p], math.abs(wants), 0, wants < 0
    d.wanted = d.wanted + d.wants[k]
  end
  d.worker, like = d.workers[1], nil
  local names = d.wanted > 0 and waiting_names(i + 2, i + 1 + types_there) or NOTHING
  if #names > 0 then give(d, names) end
  if #d.answer == 1 and not d.passer then return {} end
  if d.passer then layout.mark_passed(d) end
  for k, got in ipairs(d.got) do d.got[k] = spack('>I2', got) end
  d.answer[1] = table.concat(d.got)
  if #d.answer > 1 then want(d.till) end
  return d.answer
end

end

-- ---- the end ----

do

-- Kue counts the successful attempt too, Vert.x Kue does not.
local function write_done(id, j, h)
  local set = { 'state', WORD[COMPLETE], 'progress', '100', 'duration', digits(j[DURATION_MS]),
                'updated_at', now_text, VERTX and 'progress' or 'attempts',
                VERTX and '100' or digits(j[ATTEMPTS]) }
  if j[RESULT] then set[11], set[12] = 'result', j[RESULT] end
  if h[H_MORE] or ended_otherwise(j) then
    local more = more_text(j, more_of(h).delay)
    if more then
      set[#set + 1], set[#set + 2] = 'weir_more', more
    elseif h[H_MORE] then
      call('HDEL', JOB .. id, 'weir_more')
    end
  end
  call('HSET', JOB .. id, unpack(set))
  if h[H_ERROR] then call('HDEL', JOB .. id, 'error') end
  if h[H_RESULT] and not j[RESULT] then call('HDEL', JOB .. id, 'result') end
end

local function completed(j, result)
  j[STATE], j[ATTEMPTS], j[PROGRESS] = COMPLETE, j[ATTEMPTS] + 1, 100
  j[RESULT], j[ERROR], j[DURATION_MS] = result, false, max(0, now - j[STARTED_AT])
  j[FINISHED_AT], j[UPDATED_AT] = now, now
  return j
end

local function count_completed(j, n)
  local t, time = layout.make_type(j[TYPE]), n * j[DURATION_MS]
  types_dirty[j[TYPE]] = true
  t[T_COMPLETED], t[T_WORK] = t[T_COMPLETED] + n, t[T_WORK] + time
  work_time = work_time + time
end

local function complete(id, delivery, result)
  local j, h = held(id, delivery, true)
  if not j then return -1 end
  local zids = { zid_of(id) }
  unplace(j, zids)
  count_completed(completed(j, result), 1)
  let_go_of_key(j, id)
  if j[FLAGS] % 2 == 1 then
    forget(j, id)
    emit(EVENT_COMPLETE, j, id, 0, result)
    return 0
  end
  write_done(id, j, h)
  place(j, zids)
  emit(EVENT_COMPLETE, j, id, COMPLETE, result)
  want_retention(j)
  return COMPLETE
end

-- Jobs that were taken together mostly end together, and have the same in their hashes: what to do
-- then is found out once.
local like                         -- what was in the last one, the job before and after; or nil

local function end_like()
  if not like then return end
  local zids = like.zids
  unplace(like.active, zids)
  count_completed(like.done, #zids)
  place(like.done, zids)
  want_retention(like.done)
  like = nil
end

-- Nil if there is more to do for such a job than complete_like() does: see held_text().
local function begin_like(h, delivery)
  local last_delivery, started, attempts, ttl =
    string.match(h[H_HELD] or '', '^(%d+) (%-?%d+) (%d+) (%d+)$')
  if not started or last_delivery ~= delivery or started ~= h[H_STARTED] or
     h[H_STATE] ~= WORD[ACTIVE] or not h[H_TYPE] then
    return
  end
  local j, done = held_job(h, tonumber(delivery), tonumber(attempts), int(ttl, MAX_MS)), {}
  for k = 1, LAST_FIELD do done[k] = j[k] end
  if ended_otherwise(completed(done, false)) then return end
  like = { h = h, delivery = delivery, active = j, done = done, zids = {},
           duration = digits(done[DURATION_MS]), attempts = digits(done[ATTEMPTS]) }
end

local function is_like(h, delivery)
  local others = like.h
  return h[H_HELD] == others[H_HELD] and h[H_STARTED] == others[H_STARTED] and
         h[H_STATE] == others[H_STATE] and h[H_TYPE] == others[H_TYPE] and
         h[H_PRIORITY] == others[H_PRIORITY] and delivery == like.delivery
end

local function complete_like(key, zid, result)
  local zids = like.zids
  zids[#zids + 1] = zid
  if result then
    call('HSET', key, 'state', WORD[COMPLETE], 'progress', '100', 'duration', like.duration,
         'updated_at', now_text, 'attempts', like.attempts, 'result', result)
  else
    call('HSET', key, 'state', WORD[COMPLETE], 'progress', '100', 'duration', like.duration,
         'updated_at', now_text, 'attempts', like.attempts)
  end
end

-- End these jobs; answers of how many the answer is the same, and that.
local function end_some(first, n, delivery, result)
  local id, count = first, 0
  while count < n do
    local key, zid = names_of(id)
    local h = call('HMGET', key, unpack(FIELDS, 1, H_FEWEST))
    if not like or not is_like(h, delivery) then
      if count > 0 then break end
      end_like()
      begin_like(h, delivery)
      if not like then return 1, complete(id_of(zid), delivery, result) end
    end
    complete_like(key, zid, result)
    id, count = id + 1, count + 1
  end
  emit(EVENT_COMPLETE, like.done, first, COMPLETE, result, count)
  return count, COMPLETE
end

-- The first argument has END bytes for each run of jobs that end alike: id of the first, delivery,
-- how many, "1" or "0" for a result. The results follow.
function steps.D(i)
  local ends, runs, m = ARGV[i], {}, 0                 -- runs: of jobs with the same answer
  like = nil
  for at = 1, #ends, END do
    local id, delivery, left, has_result = sunpack('>I8I4I2B', ends, at)
    local result = false
    if has_result == 49 then
      i = i + 1
      result = ARGV[i]
    end
    while left > 0 do
      local n, state = end_some(id, left, digits(delivery), result)
      id, left = id + n, left - n
      if runs[m] == state then n, m = n + runs[m - 1], m - 2 end
      runs[m + 1], runs[m + 2], m = n, state, m + 2
    end
  end
  end_like()
  return answer_of_ends(runs, m)
end

end

-- ---- while it runs ----

function layout.renew(id, delivery, till)
  local j = held(id, delivery, true)
  if j then mark(LEASE, zid_of(id), till) end
  return j
end

function steps.S(i)
  local id = ARGV[i]
  local j = held(id, ARGV[i + 1])
  if not j then return 0 end
  j[PROGRESS], j[UPDATED_AT] = tonumber(ARGV[i + 2]), now
  call('HSET', JOB .. id, 'progress', ARGV[i + 2], 'updated_at', now_text)
  if ARGV[i + 4] == '1' then
    j[PROGRESS_DATA] = ARGV[i + 3]
    call('HSET', JOB .. id, FIELDS[H_PROGRESS_DATA], ARGV[i + 3])
  end
  run_ttl(j, { zid_of(id) })
  emit(EVENT_PROGRESS, j, id, ACTIVE, j[PROGRESS_DATA])
  return 1
end

function steps.L(i)
  local id, delivery = ARGV[i], ARGV[i + 1]
  local j
  if delivery == '0' then
    j = job(id)
    if not j then return -1 end
  else
    j = held(id, delivery, true)
    if not j then return 0 end
    run_ttl(j, { zid_of(id) })
  end
  add_line(j, id, ARGV[i + 2], ARGV[i + 3])
  return 1
end
