-- 2_spans.lua - jobs that differ in nothing but their data and ids that follow each other are kept
-- together.
--
-- A span: jobs of one type and priority that wait, with the same flags, to which nothing has
-- happened yet. They have one entry in the set of those that wait: what the first of them alone
-- would have, and behind it their number, 2 bytes, and their flags.
--
-- A hand: such jobs, without a ttl, taken by one call. They have one entry in HELD, as in the set of those that
-- are active, and its score is when their lease is over; and a place in the record of all hands
-- whose jobs are in one block of ids, a field of RUNS. They need no runs of their own.
--
-- A job to which more happens than to be taken and to complete is set apart: it gets the entries
-- and the run of its own that all other jobs have. So one with a run of its own is in neither.
--
-- A type's record counts what is not to be seen from the number of entries: T_SPANS, the jobs of
-- spans but for one of each, and T_HELD, the jobs in hands.

local function id_bytes(number_or_text)
  return spack('>I8', tonumber(number_or_text))
end

local function id_number(id)
  return (sunpack('>I8', id))
end

local function block_of(id)
  return floor(id / ids_a_block)
end

local function count_block(name, block, by)
  local field = name .. '\0' .. spack('>I8', block)
  blocks[field] = (blocks[field] or 0) + by
end

-- ---- spans ----

local function span_entry(name, rank8, first, count, flags)
  local entry = name .. '\0' .. rank8 .. spack('>I8', first)
  return count > 1 and entry .. spack('>I2B', count, flags) or entry
end

-- The first job of an entry, how many it has, and their flags; of one alone nobody knows those.
local function jobs_of(entry, name)
  local at = #name + 10
  if #entry < at + 8 then return sunpack('>I8', entry, at), 1, 0 end
  return sunpack('>I8I2B', entry, at)
end

-- An entry of those that wait has now one of `count` jobs instead of one of `before`; 0: none.
local function count_spans(name, before, count)
  local by = max(count - 1, 0) - max(before - 1, 0)
  if by ~= 0 then
    local t = type_make(name)
    t[T_SPANS], types_dirty[name] = t[T_SPANS] + by, true
  end
end

-- The entry of those that wait that has this job, and what jobs_of() says of it; nil: none has.
local function span_with(name, rank8, id)
  local head = name .. '\0' .. rank8
  local entry = call('ZREVRANGEBYLEX', KEYS[STATE_KEY + INACTIVE],
                     '[' .. head .. spack('>I8', id) .. '\255\255\255', '[' .. head,
                     'LIMIT', 0, 1)[1]
  if not entry then return nil end
  local first, count, flags = jobs_of(entry, name)
  if id < first + count * partitions then return entry, first, count, flags end
end

local function split_span(name, rank8, id)
  local entry, first, count, flags = span_with(name, rank8, id)
  if not entry or count == 1 then return end
  local before = (id - first) / partitions
  local behind = count - before - 1
  take_out(STATE_KEY + INACTIVE, entry)
  put_in(STATE_KEY + INACTIVE, span_entry(name, rank8, id, 1), 0)
  count_spans(name, count, 1)
  if before > 0 then
    put_in(STATE_KEY + INACTIVE, span_entry(name, rank8, first, before, flags), 0)
    count_spans(name, 0, before)
  end
  if behind > 0 then
    put_in(STATE_KEY + INACTIVE, span_entry(name, rank8, id + partitions, behind, flags), 0)
    count_spans(name, 0, behind)
  end
end

-- ---- hands ----

-- The record of a block: for each hand its first id, a byte for each job (1: it is still held), the
-- run of its jobs up to the worker, and the workers, each behind how many of the jobs it has.
local function read_hands(text)
  local list, n = {}, 0
  local all = text and unpack_msg(text) or list
  for k = 1, #all, 4 do
    local live, left = { byte(all[k + 1], 1, -1) }, 0
    for m = 1, #live do left = left + live[m] end
    n = n + 1
    list[n] = { first = all[k], live = live, left = left, head = all[k + 2],
                workers = all[k + 3] }
  end
  return list
end

local function hands_field(block)
  return 'h' .. spack('>I8', block)
end

local function hands_in(block)
  local list = hands[block]
  if not list then
    list = read_hands(call('HGET', KEYS[RUNS], hands_field(block)))
    hands[block] = list
  end
  return list
end

-- The hand that has this job, and its place there; nil: none has.
local function hand_with(id)
  local list = hands_in(block_of(id))
  for k = 1, #list do
    local h = list[k]
    local place = (id - h.first) / partitions + 1
    if h.live[place] == 1 then return h, place end
  end
end

-- How many of up to n jobs of a hand, from that place on, are still in it.
local function live_in(h, place, n)
  local k = 1
  while k < n and h.live[place + k] == 1 do k = k + 1 end
  return k
end

-- Who has the job at a place, and how many from there on.
local function worker_in(h, place)
  local workers = h.workers
  for k = 1, #workers, 2 do
    place = place - workers[k]
    if place <= 0 then return workers[k + 1], 1 - place end
  end
end

local function name_of(h)
  return sub(h.head, AT_TYPE, AT_TYPE + byte(h.head, AT_TYPE - 1) - 1)
end

local function started_in(run)
  return spack('>I8', sunpack('>I7', run, AT_STARTED) + ZERO_RANK)
end

local function held_entry(h)
  return span_entry(name_of(h), started_in(h.head), h.first, #h.live, 0)
end

local function run_in(h, place)
  return h.head .. pack((worker_in(h, place)))
end

local function count_held(name, by)
  local t = type_make(name)
  t[T_HELD], types_dirty[name] = t[T_HELD] + by, true
end

-- These jobs are in their hand no more.
local function leave_hand(h, place, n)
  local live = h.live
  for k = place, place + n - 1 do live[k] = 0 end
  h.left, hands_dirty[block_of(h.first)] = h.left - n, true
end

local function flush_block(block)
  local kept, record, n = {}, {}, 0
  for _, h in ipairs(hands[block]) do
    if h.left > 0 then
      kept[#kept + 1] = h
      record[n + 1], record[n + 2] = h.first, char(unpack(h.live))
      record[n + 3], record[n + 4], n = h.head, h.workers, n + 4
      if h.till then to_add(HELD, h.till, held_entry(h)) end
    elseif not h.till then
      to_remove(HELD, held_entry(h))
    end
    h.till = nil                             -- it was new until now
  end
  hands[block] = kept
  if n > 0 then
    set_run(hands_field(block), pack(record))
  else
    gone_runs[n_gone_runs + 1], n_gone_runs = hands_field(block), n_gone_runs + 1
  end
end

function flush_hands()
  for block in pairs(hands_dirty) do flush_block(block) end
  hands_dirty = {}
end

-- ---- runs ----

local function own_run(id)
  local r = records[id]
  if r == nil then
    r = call('HGET', KEYS[RUNS], id)
    records[id] = r
  end
  return r
end

local function run_of(id)
  local r = own_run(id)
  if r then return r end
  local h, place = hand_with(id_number(id))
  return h and run_in(h, place)
end

local function runs_of(ids)
  local runs = get_many(RUNS, ids)
  for k = 1, #ids do
    if not runs[k] then
      local h, place = hand_with(id_number(ids[k]))
      runs[k] = h and run_in(h, place)
    end
  end
  return runs
end

-- The run of a job that is active with this delivery.
local function held(id, delivery)
  local r = run_of(id)
  if r and byte(r) == ACTIVE and sunpack('>I4', r, AT_DELIVERY) == tonumber(delivery) then
    return r
  end
end

local function type_in(spec)
  return sub(spec, SPEC_TYPE, SPEC_TYPE + byte(spec, SPEC_TYPE_LEN) - 1)
end

-- When the lease of an active job is over. All is settled.
local function lease_of(id)
  if own_run(id) then return call('ZSCORE', KEYS[LEASE], id) end
  return call('ZSCORE', KEYS[HELD], held_entry((hand_with(id_number(id)))))
end

local function deal_out(h, place, id)
  local name, run = name_of(h), run_in(h, place)
  put_in(LEASE, id, call('ZSCORE', KEYS[HELD], held_entry(h)))
  put_in(STATE_KEY + ACTIVE, name .. '\0' .. started_in(run) .. id, 0)
  leave_hand(h, place, 1)
  count_held(name, -1)
  call('HSET', KEYS[RUNS], id, run)
  records[id] = run
end

-- Set a job apart, if there is such a job. All is settled.
local function apart(id)
  if own_run(id) then return end
  local h, place = hand_with(id_number(id))
  if h then
    deal_out(h, place, id)
    return
  end
  local spec = call('HGET', KEYS[JOBS], id)
  if spec then
    split_span(type_in(spec), spack('>I8', sunpack('>i4', spec, SPEC_PRIORITY) + ZERO_RANK),
               id_number(id))
  end
end
