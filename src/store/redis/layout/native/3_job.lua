-- 3_job.lua - a job as a table, and what is derived from it: its place in the set of its state, when
-- it is due, its unique key, its words, its log, and what retention makes of it.

local decode, spec_from, store_run

do

-- The numbers of a spec and of a run: see layout.h.
local SPEC, RUN_NUMBERS = SPEC_FORMAT, RUN_NUMBERS_FORMAT

-- `r`: its run, if it has one.
function decode(spec, r)
  local j = { sunpack(SPEC, spec) }
  local texts, rest = SPEC_TYPE + j[TYPE_LEN], nil
  j[TYPE] = sub(spec, SPEC_TYPE, texts - 1)
  rest, SPEC_TEXTS_OF_J = unpack_some(spec, SPEC_TEXTS_OF_J_COUNT, texts - 1)
  j[SHORT_DATA] = rest >= 0 and sub(spec, rest + 1) or ''
  if not r or r == '' then
    local created = j[CREATED_AT]
    for k = STATE, RUN_END do j[k] = 0 end
    j[STATE], j[PROMOTE_AT], j[UPDATED_AT] = INACTIVE, created, created
    for k = FIRST_RUN_TEXT, HISTORY - 1 do j[k] = false end
    j[HISTORY] = ''
    return j
  end
  -- j[STATE], j[PROGRESS] and so on
  RUN_NUMBERS_OF_J = sunpack(RUN_NUMBERS, r)
  if j[PROMOTE_AT] == 0 then j[PROMOTE_AT] = j[CREATED_AT] end
  RUN_TEXTS_OF_J, j[HISTORY] = texts_of(r, RUN_TYPE + j[TYPE_LEN])
  return j
end

function spec_from(j)
  return spack(SPEC, unpack(j, 1, SPEC_END)) .. j[TYPE] ..
         pack(SPEC_TEXTS_OF_J) .. j[SHORT_DATA]
end

function store_run(id, j)
  local r = spack(RUN_NUMBERS, unpack(j, STATE, RUN_END)) .. char(j[FLAGS], #j[TYPE]) .. j[TYPE] ..
            pack(RUN_TEXTS_OF_J) .. j[HISTORY]
  records[id] = r
  call('HSET', KEYS[RUNS], id, r)
end

end

local function job(id)
  local spec = spec_of(id)
  return spec and decode(spec, run_of(id))
end

local function state_in(r)
  return r and byte(r) or INACTIVE
end

local function has(flags, flag)
  return flags % (2 * flag) >= flag
end

local function finished(state)
  return state >= COMPLETE
end

local function emit_of(kind, j, id, text)
  emit(event_of(kind, j[STATE], id_number(id), j[TYPE], j[ATTEMPTS], j[PROGRESS], j[DELIVERY],
                text))
end

-- Retention of a type's jobs in a finished state: the age in ms, and how many this partition keeps.
local function keep_of(name, state)
  local s = settings_of(name)
  if state == COMPLETE then return s[T_COMPLETE_AGE], ceil(s[T_COMPLETE_COUNT] / partitions) end
  return s[T_FAILED_AGE], ceil(s[T_FAILED_COUNT] / partitions)
end

local function count_of(state, name)
  flush(STATE_KEY + state)
  local from, to = of_type(name)
  local n, t = call('ZLEXCOUNT', KEYS[STATE_KEY + state], from, to), type_of(name)
  if not t then return n end
  return n + (state == INACTIVE and t[T_SPANS] or state == ACTIVE and t[T_GRANTED] or
              state == COMPLETE and t[T_DONE] or 0)
end

-- ---- places ----

local function rank_of(j)
  local s = j[STATE]
  if s == INACTIVE then return j[PRIORITY] end
  if s == DELAYED then return j[PROMOTE_AT] end
  if s == ACTIVE then return j[STARTED_AT] end
  return j[FINISHED_AT]
end

local function place_of(j, id)
  return j[TYPE] .. '\0' .. spack('>I8', rank_of(j) + ZERO_RANK) .. id
end

local function due_of(j)
  local deadline = j[DEADLINE_AT]
  if j[STATE] == DELAYED then
    if deadline > 0 and deadline < j[PROMOTE_AT] then return deadline end
    return j[PROMOTE_AT]
  end
  return j[STATE] == INACTIVE and deadline or 0
end

-- Add a job to the sets of its state and of due times, and remove it. Leases are set by the caller.
local function index(j, id)
  put_in(STATE_KEY + j[STATE], place_of(j, id), 0)
  local at = due_of(j)
  if at > 0 then
    put_in(DUE, id, at)
    want(at)
  end
end

local function unindex(j, id)
  take_out(STATE_KEY + j[STATE], place_of(j, id))
  if due_of(j) > 0 then take_out(DUE, id) end
  if j[STATE] == ACTIVE then
    take_out(LEASE, id)
    if j[TTL_MS] > 0 then take_out(TTL, id) end
  end
end

local function run_ttl(ttl, id)
  if ttl > 0 then
    put_in(TTL, id, now + ttl)
    want(now + ttl)
  end
end

local function unique_name(j)
  return j[TYPE] .. '\0' .. j[UNIQUE_KEY]
end

local function hold_key(j, id)
  if j[UNIQUE_KEY] then call('HSET', KEYS[UNIQUE], unique_name(j), id) end
end

local function let_go_of_key(j)
  if j[UNIQUE_KEY] then call('HDEL', KEYS[UNIQUE], unique_name(j)) end
end

function let_go(id)
  let_go_of_key(job(id))
end

-- A job of the type has ended: ask for a TICK when retention has to remove one.
function want_retention(name, state, ended)
  local age, count = keep_of(name, state)
  if age == 0 and count == 0 then return end
  local at = age > 0 and ended + age or huge
  if count > 0 and count_of(state, name) > count then at = AT_ONCE end
  if at < keep_at then keep_at = at end
  want(at)
end

local add_line, forget_job

do

-- ---- log: a field for each line, the id and its number ----

function add_line(n, flags, id, text, words)
  call('HSET', KEYS[LOG], id .. n, format('%d ', now) .. text)
  if n > MAX_LOG then call('HDEL', KEYS[LOG], id .. (n - MAX_LOG)) end
  if words ~= '' and has(flags, SEARCHED) then note_words(id, 2, unpack_msg(words)) end
end

local function log_fields(lines, id)
  local fields = {}
  for n = max(1, lines - MAX_LOG + 1), lines do fields[#fields + 1] = id .. n end
  return fields
end

-- ---- gone ----

function forget_job(j, id)
  unindex(j, id)
  if not finished(j[STATE]) then let_go_of_key(j) end
  if j[LINES] > 0 then many('HDEL', LOG, log_fields(j[LINES], id)) end
  if has(j[FLAGS], SEARCHED) then forget_words(id) end
  count_block(j[TYPE], block_of(id_number(id)), -1)
  if has(j[FLAGS], APART) then call('HDEL', KEYS[DATA], id) end
  drop_specs({ id })
  call('HDEL', KEYS[RUNS], id)
  records[id] = false
end

function forget(id)
  forget_job(job(id), id)
end

end
