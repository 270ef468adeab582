-- 4_admin.lua - the steps that put (P), remove (E) and import (M) a job.

function layout.new_settings() end

-- Partition 0 is the last to have it: see weir__redis_configure_act().
function layout.emit_of_type(kind, name)
  if partition == 0 then emit(event_of(kind, 0, 0, name, 0, 0, 0)) end
end

local remove

do

-- A job that was made active by an update: its lease begins now.
local function begin_run(j, id, lease)
  local till = j[STARTED_AT] + lease
  put_in(LEASE, id, till)
  want(till)
  run_ttl(j[TTL_MS], id)
  layout.make_type(j[TYPE])[T_TAKEN], types_dirty[j[TYPE]] = now, true
end

function steps.P(i)
  local id, old_run, old_spec = id_bytes(ARGV[i]), ARGV[i + 1], ARGV[i + 2]
  local run, spec, data, has_data = ARGV[i + 3], ARGV[i + 4], ARGV[i + 5], ARGV[i + 6]
  local failed, line, words, event = ARGV[i + 7], ARGV[i + 8], ARGV[i + 9], ARGV[i + 10]
  worked = false
  if spec_of(id) ~= old_spec or (run_of(id) or '') ~= old_run then return 0 end
  local j, n = decode(old_spec, old_run), decode(spec, run)
  if ARGV[i + 12] == '1' and layout.is_paused(j[TYPE]) then return 3 end
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
    local t = layout.make_type(n[TYPE])
    t[T_FAILED], types_dirty[n[TYPE]] = t[T_FAILED] + tonumber(failed), true
  end
  if event ~= '' then emit(event) end
  if is_done then want_retention(n[TYPE], n[STATE], n[FINISHED_AT]) end
  return 1
end

function remove(j, id)
  forget_job(j, id)
  emit(event_of(EVENT_REMOVE, 0, id_number(id), j[TYPE], j[ATTEMPTS], j[PROGRESS], j[DELIVERY]))
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
  layout.make_type(j[TYPE])
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
    emit_of(EVENT_ENQUEUE, j, id)
  end
  if finished(j[STATE]) then want_retention(j[TYPE], j[STATE], j[FINISHED_AT]) end
  return { 0, id_number(id), j[STATE] }
end

end
