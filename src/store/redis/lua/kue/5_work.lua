-- 5_work.lua - the steps of producers and workers. A step gets the place of its first argument in
-- ARGV and how many it has; what it answers is its answer.

local worked = {}                  -- by place: did the ends of the last step? For t
local delivered = {}               -- by id: the delivery that a take gave
local work_time = 0                -- of what was completed here

local last, first_last             -- ids: of the last job, now and at first

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

if uses.A then

-- The spec comes without its first field, which is now.
local now7 = spack('>I7', now)

-- A lot of jobs often has the same spec: what to write for it is made once.
local templates = {}

local function template_of(rec)
  local t = templates[rec]
  if not t then
    local j, set = fields_of('', now7 .. rec), {}
    encode(j, NOTHING, function(field, value)
      if value then set[#set + 1], set[#set + 2] = FIELDS[field], value end
    end)
    t = { j = j, set = set, at = #set + 2 }
    set[#set + 1] = 'data'
    templates[rec] = t
  end
  return t
end

local function add_plain(rec, data)
  local t, n = template_of(rec), next_id()
  local id = digits(n)
  local zid = zid_of(id)
  t.set[t.at] = data
  call('HSET', JOB .. id, unpack(t.set))
  identify(id)
  mark(JOBS, zid, t.j[PRIORITY])
  place(t.j, zid)
  return n, INACTIVE, 0
end

local function add_special(rec, data, extra)
  local j = fields_of('', now7 .. rec)
  local delay, run_at, _, unique, words = unpack(extra)
  if unique then
    local holder, state = holder_of(j)
    if holder then return tonumber(holder), state, 1 end
  end
  local at = now + delay
  if run_at > at then at = run_at end
  j[STATE], j[PROMOTE] = at > now and DELAYED or INACTIVE, at
  if settings_of(j[TYPE])[SEARCH] == 1 and j[FLAGS] < SEARCH_FLAG then
    j[FLAGS] = j[FLAGS] + SEARCH_FLAG
  end
  local n = next_id()
  local id = digits(n)
  local zid = zid_of(id)
  write_job(id, j, NOTHING, data)
  identify(id)
  mark(JOBS, zid, j[PRIORITY])
  place(j, zid)
  hold_key(j, id)
  if words and j[FLAGS] >= SEARCH_FLAG then note_words(id, 1, words) end
  return n, j[STATE], 0
end

local function words_are_missing(i, n)
  local name, search
  for k = i, i + n - 1, 7 do
    if ARGV[k] ~= name then
      name = ARGV[k]
      search = settings_of(name)[SEARCH] == 1
    end
    if search and (ARGV[k + 6] == '' or not unpack_msg(ARGV[k + 6])[5]) then return true end
  end
end

-- All data is apart: so every job is a group of its own.
function steps.A(i, n)
  if words_are_missing(i, n) then return 'words' end
  local answer, plain, a = {}, true, 0
  for p = i, i + n - 1, 7 do
    local name, rec, data, extra = ARGV[p], ARGV[p + 4], ARGV[p + 5], ARGV[p + 6]
    local id, state, existed
    if extra == '' then
      id, state, existed = add_plain(rec, data)
    else
      id, state, existed = add_special(rec, data, unpack_msg(extra))
    end
    if existed == 0 then type_known(name) end
    if existed == 0 and state == INACTIVE then
      local m = told
      told = m + 8
      message[m + 1], message[m + 2], message[m + 3], message[m + 4] = ENQUEUE, state, name, 0
      message[m + 5], message[m + 6], message[m + 7], message[m + 8] = 0, 0, false, id
    else
      plain = false
    end
    answer[a + 1], answer[a + 2], answer[a + 3] = id, state, existed
    a = a + 3
  end
  return plain and a > 0 and { answer[1] } or answer
end

-- With a token: TOKENS has when, number, jobs and answer of the last one of a key.
function steps.a(i, n)
  local key, number, jobs = ARGV[i], ARGV[i + 1], tonumber(ARGV[i + 2])
  local known = call('HGET', TOKENS, key)
  if known then
    local at, last_number, last_jobs, answer = unpack_msg(known)
    if at + TOKEN_MS > now and last_number >= number then
      if last_number == number and last_jobs == jobs then return answer end
      return last_number .. ' ' .. last_jobs
    end
  end
  local answer = steps.A(i + 3, n - 3)
  if answer ~= 'words' then
    call('HSET', TOKENS, key, pack(now, number, jobs, answer))
    call('ZADD', TOKENS_AT, now, key)
    want(now + TOKEN_MS + TOKEN_LATE_MS)
  end
  return answer
end

end

-- ---- take ----

if uses.T or uses.t then

-- Waiting jobs of these types, best first, as { priority, number, zid, type }, at most n of each;
-- of one type alone just zid and type. `more`: there may be others behind them.
local function candidates(names, n)
  local all, more = {}, false
  if #names == 1 then
    local key = keys_of(names[1])[INACTIVE]
    flush(key)
    local got = call('ZRANGE', key, 0, n - 1)
    for k = 1, #got do all[k] = { 0, 0, got[k], names[1] } end
    return all, #got == n
  end
  for _, name in ipairs(names) do
    local key = keys_of(name)[INACTIVE]
    flush(key)
    local got = call('ZRANGE', key, 0, n - 1, 'WITHSCORES')
    for k = 1, #got, 2 do
      all[#all + 1] = { tonumber(got[k + 1]), tonumber(id_of(got[k]) or 0), got[k], name }
    end
    more = more or #got == 2 * n
  end
  table.sort(all, by_rank)
  return all, more
end

-- An entry of a type's inactive set that no inactive job accounts for is taken out, as Kue's pop
-- would. The hash, whatever is in it, stays.
local function drop_stale(c)
  mark(keys_of(c[4])[INACTIVE], c[3], false)
  touched[c[4]] = true
end

-- Most jobs that wait have never been taken, and those of a lot differ in nothing but their data:
-- what such a hash says is worked out once. Nil: there is more to it.
local usual = {}                   -- by what is in the hash: { job, and see start_usual() }

local function usual_job(h)
  if VERTX or h[H_STATE] ~= WORD[INACTIVE] or h[H_HELD] or h[H_MORE] or h[H_ATTEMPTS] or
     h[H_PROGRESS] or h[H_REMOVE] or h[H_STARTED] or h[H_ERROR] or h[H_RESULT] or h[H_BACKOFF] or
     h[H_FAILED_AT] or h[H_DURATION] or h[H_WORKER] or h[H_PROGRESS_DATA] or h[H_HISTORY] then
    return nil
  end
  local key = (h[H_TYPE] or '') .. '\0' .. (h[H_PRIORITY] or '') .. '\0' ..
              (h[H_MAX_ATTEMPTS] or '') .. '\0' .. (h[H_TTL] or '') .. '\0' ..
              (h[H_DELAY] or '') .. '\0' .. (h[H_CREATED] or '') .. '\0' ..
              (h[H_PROMOTE] or '') .. '\0' .. (h[H_UPDATED] or '')
  local u = usual[key]
  if u == nil then
    local j = record_of(h)
    u = j and { j = j } or false
    usual[key] = u
  end
  return u or nil
end

-- Up to n jobs to take, as { id, job, raw, zid, usual }: not past their deadline. With n of each
-- type, the first n are the best n, unless some are past it: then ask for more of each.
local function choose(names, n)
  local ask, seen = n, {}
  while true do
    local all, more = candidates(names, ask)
    local chosen = {}
    for k = 1, min(#all, ask) do
      local c = all[k]
      local id = id_of(c[3])
      local got = seen[c[3]]
      if not got then
        local j, h, u
        if id then
          h = call('HMGET', JOB .. id, unpack(FIELDS))
          u = usual_job(h)
          if u then j = u.j else j = record_of(h) end
        end
        got = { id, j, h, c[3], u }
        seen[c[3]] = got
        if not j or j[STATE] ~= INACTIVE or j[TYPE] ~= c[4] then
          drop_stale(c)
          got[2] = nil
        end
      end
      local j = got[2]
      if j and (j[DEADLINE] == 0 or j[DEADLINE] > now) then
        chosen[#chosen + 1] = got
        if #chosen == n then return chosen end
      end
    end
    if not more and #all <= ask then return chosen end
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
    if not seen[name] and not (t and t[PAUSED] == 1) then names[#names + 1] = name end
    seen[name] = true
  end
  return names
end

local function started(j, worker)
  j[STATE], j[DELIVERY], j[WORKER] = ACTIVE, j[DELIVERY] + 1, worker
  j[STARTED], j[UPDATED], j[PROGRESS], j[PROGRESS_DATA] = now, now, 0, false
  return j
end

local function start(id, zid, j, h, worker)
  unplace(j, zid)
  if j[PROGRESS] > 0 then call('HSET', JOB .. id, 'progress', '0') end
  if h[H_PROGRESS_DATA] then call('HDEL', JOB .. id, FIELDS[H_PROGRESS_DATA]) end
  started(j, worker)
  call('HSET', JOB .. id, 'state', WORD[ACTIVE], 'started_at', now_text, 'updated_at', now_text,
       FIELDS[H_WORKER], worker, 'weir_held', digits(j[DELIVERY]) .. ' ' .. now_text)
  place(j, zid)
  run_ttl(j, zid)
  tell(START, j, id, ACTIVE, worker)
end

-- As start(), but what it comes to is worked out once for all that are alike.
local function start_usual(id, zid, u, worker)
  if u.worker ~= worker then
    local j = {}
    for k = 1, LAST_FIELD do j[k] = u.j[k] end
    u.active, u.worker = started(j, worker), worker
    u.run, u.spec = bytes_of(j)
  end
  local j = u.active
  unplace(u.j, zid)
  call('HSET', JOB .. id, 'state', WORD[ACTIVE], 'started_at', now_text, 'updated_at', now_text,
       FIELDS[H_WORKER], worker, 'weir_held', '1 ' .. now_text)
  place(j, zid)
  run_ttl(j, zid)
  tell(START, j, id, ACTIVE, worker)
  return j
end

-- Give up to `wanted` jobs to a worker, behind what `answer` has. Answers how many.
local function give(answer, names, wanted, lease, worker)
  local chosen = choose(names, wanted)
  for _, got in ipairs(chosen) do
    local id, j, h, zid, u = got[1], got[2], got[3], got[4], got[5]
    local data, m = h[H_DATA] or '{}', #answer
    if u then
      j = start_usual(id, zid, u, worker)
      answer[m + 1], answer[m + 2] = spack('>I8', tonumber(id)), u.run
      answer[m + 3] = u.spec .. data
    else
      start(id, zid, j, h, worker)
      put_record(answer, id, j, data)
    end
    mark(LEASE, zid, now + lease)
    local t = type_make(j[TYPE])
    t[T_TAKEN], types_dirty[j[TYPE]] = now, true
    delivered[id] = j[DELIVERY]
  end
  return #chosen
end

local function take(i, n, ends)
  local lease, n_types = tonumber(ARGV[i]), tonumber(ARGV[i + 1])
  local names = waiting_names(i + 2, i + 1 + n_types)
  local answer, counts = { '' }, {}
  for p = i + 2 + n_types, i + n - 1, 3 do
    local wanted = (not ends or ends[tonumber(ARGV[p + 2])]) and tonumber(ARGV[p + 1]) or 0
    counts[#counts + 1] = spack('>I2', wanted > 0 and #names > 0 and
                          give(answer, names, wanted, lease, ARGV[p]) or 0)
  end
  if #answer == 1 then return {} end
  answer[1] = table.concat(counts)
  want(now + lease)
  return answer
end

function steps.T(i, n)
  return take(i, n)
end

function steps.t(i, n)
  return take(i, n, worked)
end

end

-- ---- the end ----

if uses.D then

-- Kue counts the successful attempt too, Vert.x Kue does not.
local function write_done(id, j, h)
  local set = { 'state', WORD[COMPLETE], 'progress', '100', 'duration', digits(j[DURATION]),
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
  j[RESULT], j[ERROR], j[DURATION] = result, false, max(0, now - j[STARTED])
  j[FINISHED], j[UPDATED] = now, now
  return j
end

local function count_completed(j)
  local t = type_make(j[TYPE])
  types_dirty[j[TYPE]] = true
  t[T_COMPLETED], t[T_WORK] = t[T_COMPLETED] + 1, t[T_WORK] + j[DURATION]
  work_time = work_time + j[DURATION]
end

-- As with usual_job(): jobs that were taken together and end as most do. Nil: there is more to it.
local usual_ends = {}              -- by what is in the hash: the job before and after

local function usual_end(h, id, delivery)
  if VERTX or h[H_MORE] or h[H_ERROR] or h[H_RESULT] or h[H_REMOVE] or not h[H_TYPE] then
    return nil
  end
  local key = h[H_TYPE] .. '\0' .. (h[H_STATE] or '') .. '\0' .. (h[H_PRIORITY] or '') .. '\0' ..
              (h[H_ATTEMPTS] or '') .. '\0' .. (h[H_MAX_ATTEMPTS] or '') .. '\0' ..
              (h[H_HELD] or '') .. '\0' .. (h[H_PROGRESS] or '') .. '\0' .. (h[H_TTL] or '') ..
              '\0' .. (h[H_STARTED] or '') .. '\0' .. delivery
  local u = usual_ends[key]
  if u == nil then
    local j, done = held(id, delivery, true, h), {}
    for k = 1, j and LAST_FIELD or 0 do done[k] = j[k] end
    u = j and { active = j, done = completed(done, false) } or false
    if u and ended_otherwise(done) then u = false end
    usual_ends[key] = u
  end
  return u or nil
end

local function complete_usual(id, u, result)
  local zid, j = zid_of(id), u.done
  unplace(u.active, zid)
  count_completed(j)
  if result then
    call('HSET', JOB .. id, 'state', WORD[COMPLETE], 'progress', '100', 'duration',
         digits(j[DURATION]), 'updated_at', now_text, 'attempts', digits(j[ATTEMPTS]), 'result',
         result)
  else
    call('HSET', JOB .. id, 'state', WORD[COMPLETE], 'progress', '100', 'duration',
         digits(j[DURATION]), 'updated_at', now_text, 'attempts', digits(j[ATTEMPTS]))
  end
  place(j, zid)
  tell(COMPLETED, j, id, COMPLETE, result)
  want_retention(j)
  return COMPLETE
end

local function complete(id, delivery, result)
  local h = call('HMGET', JOB .. id, unpack(FIELDS, 1, H_FEW))
  local u = usual_end(h, id, delivery)
  if u then return complete_usual(id, u, result) end
  local j = held(id, delivery, true, h)
  if not j then return -1 end
  local zid = zid_of(id)
  unplace(j, zid)
  count_completed(completed(j, result))
  let_go_of_key(j, id)
  if j[FLAGS] % 2 == 1 then
    forget(j, id)
    tell(COMPLETED, j, id, 0, result)
    return 0
  end
  write_done(id, j, h)
  place(j, zid)
  tell(COMPLETED, j, id, COMPLETE, result)
  want_retention(j)
  return COMPLETE
end

-- The first argument has END bytes for each run of jobs that end alike: id of the first, delivery,
-- how many, "1" or "0" for a result. The results follow.
function steps.D(i)
  local ends, answer = ARGV[i], {}
  worked = {}
  for at = 1, #ends, END do
    local first, delivery, n, has_result = sunpack('>I8I4I2B', ends, at)
    local result = false
    if has_result == 49 then
      i = i + 1
      result = ARGV[i]
    end
    for id = first, first + n - 1 do
      local k = #answer + 1
      answer[k] = complete(digits(id), digits(delivery), result)
      worked[k] = answer[k] >= 0
    end
  end
  return answer
end

end

-- ---- while it runs ----

if uses.N or uses.S or uses.L then

function steps.N(i, n)
  local answer = {}
  for k = i, i + n - 1, 3 do
    local j = held(ARGV[k], ARGV[k + 1], true)
    if j then
      local till = now + tonumber(ARGV[k + 2])
      mark(LEASE, zid_of(ARGV[k]), till)
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
  call('HSET', JOB .. id, 'progress', ARGV[i + 2], 'updated_at', now_text)
  if ARGV[i + 4] == '1' then
    j[PROGRESS_DATA] = ARGV[i + 3]
    call('HSET', JOB .. id, FIELDS[H_PROGRESS_DATA], ARGV[i + 3])
  end
  run_ttl(j, zid_of(id))
  tell(PROGRESS_EVENT, j, id, ACTIVE, j[PROGRESS_DATA])
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
    run_ttl(j, zid_of(id))
  end
  add_line(j, id, ARGV[i + 2], ARGV[i + 3])
  return 1
end

end
