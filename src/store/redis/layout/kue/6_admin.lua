-- 6_admin.lua - the steps that put (P), remove (E) and import (M) a job.

-- Kue's promoter and its ttl watcher look for what is due, and some milliseconds later write what
-- they make of it, whatever has happened meanwhile. Each holds a lock for that long: what it may be
-- at is left to it. A lock that never ends is not Kue's.
local function locked(name)
  if VERTX then return false end
  local left = call('PTTL', name .. ':lock')
  return left > 0 and left
end

local search_from_here             -- see 7_house.lua

function layout.new_settings(t)
  if t[T_SEARCH] == 1 then search_from_here() end
  read_keep()
end

function layout.emit_of_type(kind, name)
  emit(kind, { [TYPE] = name, [ATTEMPTS] = 0, [PROGRESS] = 0, [DELIVERY] = 0 }, 0, 0, false)
end

do

local function put_words(j, id, which, words)
  if words ~= '' and j[FLAGS] >= SEARCHED then note_words(id, which, unpack_msg(words)) end
end

local function emit_all(events)
  for _, v in ipairs({ unpack_msg(events) }) do
    n_message = n_message + 1
    message[n_message] = v
  end
end

local function kue_is_at(j, h, id)
  if j[STATE] == DELAYED and j[PROMOTE_AT] <= now then return locked('promotion') end
  if j[STATE] == ACTIVE and j[TTL_MS] > 0 and not is_ours(h) then
    local zid = zid_of(id)
    local over = tonumber(call('ZSCORE', ALL[ACTIVE], zid) or huge)
    return over <= now and not call('ZSCORE', ASKED, zid) and locked('activeJobsTTL')
  end
end

-- A worker of Kue's pops a job from the set of its type first, and changes its state later.
local function is_popped(j, id)
  local key = keys_of(j[TYPE])[INACTIVE]
  flush(key)
  return not call('ZSCORE', key, zid_of(id))
end

local function replace(id, j, n, lease)
  local zids = { zid_of(id) }
  if n[PRIORITY] ~= j[PRIORITY] then put_in(JOBS, zids, n[PRIORITY]) end
  if n[STATE] == ACTIVE and j[STATE] == ACTIVE then return end   -- with its place and its lease
  unplace(j, zids)
  place(n, zids)
  if n[STATE] ~= ACTIVE then return end
  run_ttl(n, zids)                           -- an update made it active: its lease begins
  put_in(LEASE, zids, n[STARTED_AT] + lease)
  want(n[STARTED_AT] + lease)
  layout.make_type(n[TYPE])[T_TAKEN], types_dirty[n[TYPE]] = now, true
end

-- Is it just being taken by a worker of Kue's? If it is cancelled then, Kue's worker runs it to its
-- end; and what is past its deadline is not asked for here.
local function is_being_taken(j, n, id)
  if j[STATE] ~= INACTIVE or n[STATE] == INACTIVE then return false end
  if VERTX and free_tokens(j[TYPE]) <= 0 and not is_popped(j, id) then return true end
  if n[STATE] == FAILED and n[DEADLINE_AT] > 0 and n[DEADLINE_AT] <= now then return false end
  return n[STATE] ~= CANCELLED and is_popped(j, id)
end

function steps.P(i)
  local id, data, has_data = ARGV[i], ARGV[i + 5], ARGV[i + 6]
  local failed, line, words, events = ARGV[i + 7], ARGV[i + 8], ARGV[i + 9], ARGV[i + 10]
  local j, h = job(id)
  worked = false
  if not j then return 0 end
  local run, spec = bytes_of(j)
  if run ~= ARGV[i + 1] or spec ~= ARGV[i + 2] or kue_is_at(j, h, id) then return 0 end
  if j[STATE] == ACTIVE and not is_ours(h) then quiet[tonumber(id)] = true end
  if ARGV[i + 12] == '1' and layout.is_paused(j[TYPE]) then return 3 end
  local n = fields_of(ARGV[i + 3], ARGV[i + 4])
  if is_being_taken(j, n, id) then return 2 end
  local was_done, is_done = finished(j[STATE]), finished(n[STATE])
  if was_done and not is_done and n[UNIQUE_KEY] then
    local holder = holder_of(n)
    if holder then return -tonumber(holder) end
    hold_key(n, id)
  elseif is_done and not was_done then
    let_go_of_key(j, id)
  end
  worked = true
  replace(id, j, n, tonumber(ARGV[i + 11]))
  write_job(id, n, h, has_data == '1' and data)
  if has_data == '1' then put_words(n, id, 1, words) end
  if line ~= '' then add_line(n, id, line, words) end
  if failed ~= '0' then
    local t = layout.make_type(n[TYPE])
    t[T_FAILED], types_dirty[n[TYPE]] = t[T_FAILED] + tonumber(failed), true
  end
  emit_all(events)
  if is_done then want_retention(n) end
  return 1
end

function steps.E(i)
  local id = ARGV[i]
  local j = job(id)
  if not j then return 0 end
  if VERTX and j[STATE] == INACTIVE and free_tokens(j[TYPE]) <= 0 and not is_popped(j, id) then
    return 2
  end
  forget(j, id)
  emit(EVENT_REMOVE, j, id, 0, false)
  return 1
end

-- ---- import ----

local function import_log(id, from, to)
  local texts, times, first = {}, {}, nil
  for k = from, to do                        -- "NUMBER AT TEXT"
    local n, at, text = string.match(ARGV[k], '^(%d+) (%-?%d+) (.*)$')
    n = tonumber(n)
    first = first or n
    texts[#texts + 1] = text
    local field = time_field(n)
    times[field] = (times[field] or '') .. n .. ':' .. at .. ' '
  end
  many('RPUSH', JOB .. id .. ':log', texts, 1)
  for field, text in pairs(times) do call('HSET', JOB .. id, field, text) end
  if first and first > 1 then call('HSET', JOB .. id, 'weir_cut', first - 1) end
end

function steps.M(i, n)
  local keep, id, data, words = ARGV[i] == '1', ARGV[i + 1], ARGV[i + 4], ARGV[i + 5]
  local j = fields_of(ARGV[i + 2], ARGV[i + 3])
  if keep and call('EXISTS', JOB .. id) == 1 then
    local there = job(id)
    local same = there and there[TYPE] == j[TYPE] and there[CREATED_AT] == j[CREATED_AT]
    return { same and 1 or 2, tonumber(id), there and there[STATE] or 0 }
  end
  if j[UNIQUE_KEY] and not finished(j[STATE]) then
    local holder = holder_of(j)
    if holder then return { 3, tonumber(holder), 0 } end
  end
  local next_one = next_id()
  if keep then
    last = max(next_one - 1, tonumber(id))
  else
    id = digits(next_one)
  end
  local zids = { zid_of(id) }
  type_known(j[TYPE])
  write_job(id, j, NOTHING, data)
  if VERTX then identify(id, j) end
  put_in(JOBS, zids, j[PRIORITY])
  place(j, zids)
  if not finished(j[STATE]) then hold_key(j, id) end
  if words ~= '' and j[FLAGS] >= SEARCHED then
    local w = unpack_msg(words)
    note_words(id, 1, w[1])
    note_words(id, 2, w[2])
  end
  import_log(id, i + 6, i + n - 1)
  if call('HEXISTS', META, 'searched') == 1 then search_from_here() end
  if j[STATE] == INACTIVE then emit(EVENT_ENQUEUE, j, id, INACTIVE, false) end
  if finished(j[STATE]) then want_retention(j) end
  return { 0, tonumber(id), j[STATE] }
end

end
