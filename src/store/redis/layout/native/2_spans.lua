-- 2_spans.lua - jobs that differ in nothing but their data and ids that follow each other are kept
-- together.
--
-- A span: jobs of one type and priority that wait, with the same flags, added together, to which
-- nothing has happened yet. They have one entry in the set of those that wait: what the first of
-- them alone would have, and behind it their number, 2 bytes, their flags, and the place of the
-- first in its piece.
--
-- A grant: such jobs, without a ttl, taken by one call. They have one entry in GRANTED, as in the set
-- of those that are active, and its score is when their lease is over; and a place in the record of
-- all grants whose jobs are in one block of ids, a field of RUNS. They need no runs of their own.
--
-- A completion: such jobs of one worker, completed by one call with the same result. They have one entry
-- in the set of those that are complete, made like that of a span, and one run for all, in a field
-- of RUNS that is named by the first of them. They are of one block, too.
--
-- A job to which anything else happens is set apart: it gets the entries and the run of its own
-- that all other jobs have. So one with a run of its own is in none of these.
--
-- A type's record counts what is not to be seen from the number of entries: T_SPANS and T_DONE, the
-- jobs of spans and completions but for one of each, and T_GRANTED, the jobs in grants.

local function block_of(id)
  return floor(id / ids_a_block)
end

local function count_block(name, block, by)
  local field = name .. '\0' .. spack('>I8', block)
  blocks[field] = (blocks[field] or 0) + by
end

-- ---- spans ----

-- `place`: of the first of a span in its piece; nil: it is none. Then one job has what one alone
-- has.
local function span_entry(name, rank8, first, count, flags, place)
  local entry = name .. '\0' .. rank8 .. spack('>I8', first)
  return (place or count > 1) and entry .. spack('>I2BB', count, flags, place or 0) or entry
end

-- The place of a job in its piece, `n` jobs behind the one at `place`: all were added together.
local function place_behind(place, n)
  return (place - 1 + n) % PIECE + 1
end

-- The first job of an entry, how many it has, their flags, and the place; of one alone nobody knows
-- the last two: 0, nil.
local function jobs_of(entry, name)
  local at = #name + 10
  if #entry < at + 8 then return sunpack('>I8', entry, at), 1, 0 end
  return sunpack('>I8I2BB', entry, at)
end

-- A type has an entry of `count` jobs instead of one of `before`; 0: none. `which`: T_SPANS or
-- T_DONE.
local function count_together(name, which, before, count)
  local by = max(count - 1, 0) - max(before - 1, 0)
  if by ~= 0 then
    local t = layout.make_type(name)
    t[which], types_dirty[name] = t[which] + by, true
  end
end

-- The entry of a state that has this job, and what jobs_of() says of it; nil: none has.
local function entry_with(state, name, rank8, id)
  local head = name .. '\0' .. rank8
  local entry = call('ZREVRANGEBYLEX', KEYS[STATE_KEY + state],
                     '[' .. head .. spack('>I8', id) .. '\255\255\255', '[' .. head,
                     'LIMIT', 0, 1)[1]
  if not entry then return nil end
  local first, count, flags, place = jobs_of(entry, name)
  if id < first + count * partitions then return entry, first, count, flags, place end
end

local function split_span(name, rank8, id)
  local entry, first, count, flags, place = entry_with(INACTIVE, name, rank8, id)
  if not place then return end
  local before = (id - first) / partitions
  local behind = count - before - 1
  take_out(STATE_KEY + INACTIVE, entry)
  put_in(STATE_KEY + INACTIVE, span_entry(name, rank8, id, 1, 0), 0)
  count_together(name, T_SPANS, count, 1)
  if before > 0 then
    put_in(STATE_KEY + INACTIVE, span_entry(name, rank8, first, before, flags, place), 0)
    count_together(name, T_SPANS, 0, before)
  end
  if behind > 0 then
    put_in(STATE_KEY + INACTIVE,
           span_entry(name, rank8, id + partitions, behind, flags, place_behind(place, before + 1)),
           0)
    count_together(name, T_SPANS, 0, behind)
  end
end

-- ---- grants ----

-- The record of a block: for each grant its first id, a byte for each job (1: it is still held), the
-- run of its jobs up to the worker, the workers, each behind how many of the jobs it has, and where
-- the specs are, 3 bytes for each piece: how many of the jobs, the place of the first, how many
-- places it has. A place of 0: they have specs of their own.
local function read_grants(text)
  local list, n = {}, 0
  local all = text and unpack_msg(text) or list
  for k = 1, #all, 5 do
    local live, left = { byte(all[k + 1], 1, -1) }, 0
    for m = 1, #live do left = left + live[m] end
    n = n + 1
    list[n] = { first = all[k], live = live, left = left, head = all[k + 2],
                workers = all[k + 3], where = { byte(all[k + 4], 1, -1) } }
  end
  return list
end

local function grants_field(block)
  return 'h' .. spack('>I8', block)
end

local function grants_in(block)
  local list = grants[block]
  if not list then
    list = read_grants(call('HGET', KEYS[RUNS], grants_field(block)))
    grants[block] = list
  end
  return list
end

-- The grant that has this job, and its place there; nil: none has.
local function grant_with(id)
  local list = grants_in(block_of(id))
  for k = 1, #list do
    local h = list[k]
    local place = (id - h.first) / partitions + 1
    if h.live[place] == 1 then return h, place end
  end
end

-- How many of up to n jobs of a grant, from that place on, are still in it.
local function live_in(h, place, n)
  local k = 1
  while k < n and h.live[place + k] == 1 do k = k + 1 end
  return k
end

-- The worker that has the job at a place, and how many from there on.
local function worker_in(h, place)
  local workers = h.workers
  for k = 1, #workers, 2 do
    place = place - workers[k]
    if place <= 0 then return workers[k + 1], 1 - place end
  end
end

local function name_of(h)
  return sub(h.head, RUN_TYPE, RUN_TYPE + byte(h.head, RUN_TYPE - 1) - 1)
end

local function started_in(run)
  return spack('>I8', sunpack('>I7', run, RUN_STARTED_AT) + ZERO_RANK)
end

local function grant_entry(h)
  return span_entry(name_of(h), started_in(h.head), h.first, #h.live, 0)
end

local function run_in(h, place)
  return h.head .. pack((worker_in(h, place)))
end

local function count_granted(name, by)
  local t = layout.make_type(name)
  t[T_GRANTED], types_dirty[name] = t[T_GRANTED] + by, true
end

-- These jobs are in their grant no more.
local function leave_grant(h, place, n)
  local live = h.live
  for k = place, place + n - 1 do live[k] = 0 end
  h.left, grants_dirty[block_of(h.first)] = h.left - n, true
end

do

local function flush_block(block)
  local kept, record, n = {}, {}, 0
  for _, h in ipairs(grants[block]) do
    if h.left > 0 then
      kept[#kept + 1] = h
      record[n + 1], record[n + 2] = h.first, char(unpack(h.live))
      record[n + 3], record[n + 4], record[n + 5] = h.head, h.workers, char(unpack(h.where))
      n = n + 5
      if h.till then to_add(GRANTED, h.till, grant_entry(h)) end
    elseif not h.till then
      to_remove(GRANTED, grant_entry(h))
    end
    h.till = nil                             -- it was new until now
  end
  grants[block] = kept
  if n > 0 then
    set_run(grants_field(block), pack(record))
  else
    gone_runs[n_gone_runs + 1], n_gone_runs = grants_field(block), n_gone_runs + 1
  end
end

function flush_grants()
  for block in pairs(grants_dirty) do flush_block(block) end
  grants_dirty = clear(grants_dirty)
end

end

-- ---- completions ----

local completion_field, completion_with, completion_entry
local put_completion, drop_completion, split_completion

do

function completion_field(first)
  return 'd' .. spack('>I8', first)
end

local function completions_in(block)
  local list = dones[block]
  if list then return list end
  local fields, first = {}, block * ids_a_block + partition
  for k = 1, BLOCK do fields[k] = completion_field(first + (k - 1) * partitions) end
  list = {}
  for k, text in ipairs(get_many(RUNS, fields)) do
    if text then
      local count, head, worker = unpack_msg(text)
      list[#list + 1] = { first = first + (k - 1) * partitions, count = count, head = head,
                          worker = worker }
    end
  end
  dones[block] = list
  return list
end

-- The completion that has this job; nil: none has.
function completion_with(id)
  for _, b in ipairs(completions_in(block_of(id))) do
    if id >= b.first and id < b.first + b.count * partitions then return b end
  end
end

local function finished_in(run)
  return spack('>I8', sunpack('>I7', run, RUN_FINISHED_AT) + ZERO_RANK)
end

function completion_entry(b)
  return span_entry(name_of(b), finished_in(b.head), b.first, b.count, 0)
end

-- Jobs from `first` on, of which there may be one or none, that have been in completion b.
function put_completion(b, first, count)
  local part = { first = first, count = count, head = b.head, worker = b.worker }
  if count == 0 then return end
  if count == 1 then
    local id = id_bytes(first)
    records[id] = b.head .. pack(b.worker)
    call('HSET', KEYS[RUNS], id, records[id])
  else
    call('HSET', KEYS[RUNS], completion_field(first), pack(count, b.head, b.worker))
  end
  put_in(STATE_KEY + COMPLETE, completion_entry(part), 0)
  count_together(name_of(b), T_DONE, 0, count)
end

function drop_completion(b)
  call('HDEL', KEYS[RUNS], completion_field(b.first))
  take_out(STATE_KEY + COMPLETE, completion_entry(b))
  count_together(name_of(b), T_DONE, b.count, 0)
  dones[block_of(b.first)] = nil
end

function split_completion(b, id)
  local before = (id - b.first) / partitions
  drop_completion(b)
  put_completion(b, b.first, before)
  put_completion(b, id, 1)
  put_completion(b, id + partitions, b.count - before - 1)
end

end

-- ---- runs ----

local function stored_run(id)
  local r = records[id]
  if r == nil then
    r = call('HGET', KEYS[RUNS], id)
    records[id] = r
  end
  return r
end

-- The run of a job in a grant or in a completion.
local function shared_run(id)
  local h, place = grant_with(id)
  if h then return run_in(h, place) end
  local b = completion_with(id)
  return b and b.head .. pack(b.worker)
end

local function run_of(id)
  local r = stored_run(id)
  if r then return r end
  return shared_run(id_number(id))
end

local function runs_of(ids)
  local runs = get_many(RUNS, ids)
  for k = 1, #ids do runs[k] = runs[k] or shared_run(id_number(ids[k])) end
  return runs
end

-- The run of a job that is active with this delivery.
local function active_run(id, delivery)
  local r = run_of(id)
  if r and byte(r) == ACTIVE and sunpack('>I4', r, RUN_DELIVERY) == tonumber(delivery) then
    return r
  end
end

local function type_in(spec)
  return sub(spec, SPEC_TYPE, SPEC_TYPE + byte(spec, SPEC_TYPE_LEN) - 1)
end

-- When the lease of an active job is over. All is settled.
local function lease_of(id)
  if stored_run(id) then return call('ZSCORE', KEYS[LEASE], id) end
  return call('ZSCORE', KEYS[GRANTED], grant_entry((grant_with(id_number(id)))))
end

local function end_grant_of(h, place, id)
  local name, run = name_of(h), run_in(h, place)
  local till = call('ZSCORE', KEYS[GRANTED], grant_entry(h)) or digits(now)
  put_in(LEASE, id, till)
  want(tonumber(till))
  put_in(STATE_KEY + ACTIVE, name .. '\0' .. started_in(run) .. id, 0)
  leave_grant(h, place, 1)
  count_granted(name, -1)
  call('HSET', KEYS[RUNS], id, run)
  records[id] = run
end

-- Set a job apart, if there is such a job. All is settled.
local function apart(id)
  local number_of_it = id_number(id)
  if stored_run(id) then return end
  local h, place = grant_with(number_of_it)
  local b = not h and completion_with(number_of_it)
  local spec = not h and not b and spec_of(id)
  if h then
    end_grant_of(h, place, id)
  elseif b then
    split_completion(b, number_of_it)
  elseif spec then
    split_span(type_in(spec), spack('>I8', sunpack('>i4', spec, SPEC_PRIORITY) + ZERO_RANK),
               number_of_it)
  end
end
