-- 3_worker.lua - adding a job that is not plain, and the steps of workers that are not busy: renew (N),
-- progress (S), log (L).

-- A job with a delay, a deadline, a unique key, words or much data.
function add_special(name, spec, data, extra)
  spec = now7 .. spec
  local j, delay, run_at, unique, words = decode(spec), 0, 0, nil, nil
  if extra ~= '' then
    local e = unpack_msg(extra)
    delay, run_at, unique, words = e[1], e[2], e[4], e[5]
  end
  if unique then
    local holder = call('HGET', KEYS[UNIQUE], unique_name(j))
    if holder then
      flush_jobs()                           -- takes note in `records` of what they know there only
      return id_number(holder), state_in(run_of(holder)), 1
    end
  end
  local at, s = max(now + delay, run_at), settings_of(name)
  if s[T_SEARCH] == 1 and not has(j[FLAGS], SEARCHED) then
    j[FLAGS] = j[FLAGS] + SEARCHED
    spec = spec_from(j)
  end
  last = last + 1
  local n = last * partitions + partition
  local id = id_bytes(n)
  call('HSET', KEYS[JOBS], id, spec)
  if at > now then
    j[STATE], j[PROMOTE_AT] = DELAYED, at
    store_run(id, j)
  else
    records[id] = false
    emit_of(EVENT_ENQUEUE, j, id)
  end
  index(j, id)
  hold_key(j, id)
  count_block(name, block_of(id_number(id)), 1)
  if words and has(j[FLAGS], SEARCHED) then note_words(id, 1, words) end
  if data ~= '' then call('HSET', KEYS[DATA], id, data) end
  return n, j[STATE], 0
end

function layout.renew(number, delivery, till)
  local id = id_bytes(number)
  local r = active_run(id, delivery)
  if r then
    apart(id)
    put_in(LEASE, id, till)
  end
  return r
end

function steps.S(i)
  local id = id_bytes(ARGV[i])
  if not active_run(id, ARGV[i + 1]) then return 0 end
  apart(id)
  local j = job(id)
  j[PROGRESS], j[UPDATED_AT] = tonumber(ARGV[i + 2]), now
  if ARGV[i + 4] == '1' then j[PROGRESS_DATA] = ARGV[i + 3] end
  store_run(id, j)
  run_ttl(j[TTL_MS], id)
  emit_of(EVENT_PROGRESS, j, id, j[PROGRESS_DATA])
  return 1
end

function steps.L(i)
  local id, delivery = id_bytes(ARGV[i]), ARGV[i + 1]
  if delivery ~= '0' and not active_run(id, delivery) then return 0 end
  local j = job(id)
  if not j then return -1 end
  apart(id)
  if delivery ~= '0' then run_ttl(j[TTL_MS], id) end
  j[LINES] = j[LINES] + 1
  add_line(j[LINES], j[FLAGS], id, ARGV[i + 2], ARGV[i + 3])
  store_run(id, j)
  return 1
end
