-- 7_house.lua - living with Kue: what is noted of its doings (step X), tokens, and our lists of
-- what ended when against its sets.

local keep_house

do

-- Our list of what ended when, for a job that somebody else has changed.
local function note_end(j, zid)
  for state = COMPLETE, CANCELLED do
    local here = j[STATE] == state
    mark(keys_of(j[TYPE])[state + 10], zid, here and j[FINISHED_AT])
  end
  if j[STATE] ~= CANCELLED then              -- Kue's worker had it already when it was cancelled
    mark(ALL[CANCELLED], zid, false)
    mark(keys_of(j[TYPE])[CANCELLED], zid, false)
  end
  if finished(j[STATE]) then want_retention(j) end
end

function steps.X(i, n)
  for k = i, i + n - 1, 2 do
    local id, name = ARGV[k], ARGV[k + 1]
    local zid, j, h = zid_of(id), job(id)
    if j then
      note_end(j, zid)
    elseif name ~= '' then
      for state = COMPLETE, CANCELLED do mark(keys_of(name)[state + 10], zid, false) end
    end
    if not (j and is_ours(h)) then
      mark(LEASE, zid, false)
      mark(TTL, zid, false)
    end
    if not j then
      mark(DEADLINES, zid, false)
      forget_words(id)
    end
  end
  return 0
end

-- Compare a set of Kue's with our list, a piece at a time: first for what we lack, then for what we
-- have too much. META's "walk" says where we are, "even TYPE STATE" by how many entries they
-- differed at the end and when that was: entries of Kue's that no job accounts for stay.

local function walk_missing(keys, name, state, zids)
  local there = ask_many('ZMSCORE', keys[state + 10], zids)
  for k, zid in ipairs(zids) do
    local j = not there[k] and id_of(zid) and job(id_of(zid))
    if j and j[STATE] == state and j[TYPE] == name then
      mark(keys[state + 10], zid, j[FINISHED_AT])
      want_retention(j)
    end
  end
end

local function walk_surplus(keys, state, zids)
  local there = ask_many('ZMSCORE', keys[state], zids)
  for k, zid in ipairs(zids) do
    if not there[k] then mark(keys[state + 10], zid, false) end
  end
end

local function walk_on(walk)
  local name, state, phase, cursor = unpack(walk)
  local keys = keys_of(name)
  local got = call('ZSCAN', phase == 1 and keys[state] or keys[state + 10], cursor, 'COUNT', PIECE)
  local zids = {}
  for k = 1, #got[2], 2 do zids[#zids + 1] = got[2][k] end
  if phase == 1 then
    walk_missing(keys, name, state, zids)
  else
    walk_surplus(keys, state, zids)
  end
  if got[1] ~= '0' then return { name, state, phase, got[1] } end
  if phase == 1 then return { name, state, 2, '0' } end
  local differ = card(keys[state]) - card(keys[state + 10])
  call('HSET', META, 'even ' .. name .. ' ' .. state, pack({ differ, now }))
  return nil
end

local function find_walk(names)
  for _, name in ipairs(names) do
    for state = COMPLETE, CANCELLED do
      local keys = keys_of(name)
      local differ = card(keys[state]) - card(keys[state + 10])
      local even = differ ~= 0 and call('HGET', META, 'even ' .. name .. ' ' .. state)
      local was = even and unpack_msg(even) or { 0, 0 }
      if differ ~= 0 and differ ~= was[1] and math.abs(now - was[2]) >= BETWEEN_WALKS then
        return { name, state, 1, '0' }
      end
    end
  end
end

-- Vert.x Kue publishes nothing in Redis when it queues a job: emit the events of jobs at the head of a
-- list that have none yet. True: there were some.

local function announce(name)
  local found = false
  for _, zid in ipairs(call('ZRANGE', keys_of(name)[INACTIVE], 0, HEADS - 1)) do
    local id = id_of(zid) or ''
    local announced = call('HMGET', JOB .. id, 'weir_announced', 'updated_at')
    local j = announced[2] and announced[1] ~= announced[2] and job(id)
    if j and j[STATE] == INACTIVE then
      emit(EVENT_ENQUEUE, j, id, INACTIVE, false)
      call('HSET', JOB .. id, 'weir_announced', announced[2])
      found = true
    end
  end
  return found
end

-- ---- search: jobs that Kue adds get into our index, too, if their type is searched ----

-- META's "searched" is the last id that was looked at; "settled" and "settling" ("ID TIME") say up
-- to which id all jobs are as old as SETTLE_MS: a job that is not whole then never will be.
local function settled_id(last_id)
  local meta = call('HMGET', META, 'settled', 'settling')
  local settled, id, at = int(meta[1]), string.match(meta[2] or '', '^(%d+) (%d+)$')
  if not id or math.abs(now - tonumber(at)) >= SETTLE_MS then
    settled = id and tonumber(id) or settled
    call('HSET', META, 'settled', digits(settled), 'settling', digits(last_id) .. ' ' .. now_text)
  end
  return settled
end

-- New jobs that are to be searched and are not yet: { the last id that was looked at, id, data, id,
-- data ... }. A script cannot find their words: the step Q brings them. Nil: none.
local function unsearched()
  local searched, last_id = call('HGET', META, 'searched'), int(call('GET', IDS))
  if not searched or int(searched) >= last_id then return nil end
  local list, settled = { int(searched) }, settled_id(last_id)
  for n = list[1] + 1, min(list[1] + SEARCH_PIECE, last_id) do
    local id = digits(n)
    local j, h = job(id)
    if not j and n > settled then break end  -- Kue writes a job in several steps
    if j and settings_of(j[TYPE])[T_SEARCH] == 1 and j[FLAGS] < SEARCHED then
      list[#list + 1], list[#list + 2] = id, h[H_DATA] or '{}'
    end
    list[1] = n
  end
  return list[1] > int(searched) and list or nil
end

-- Every job from here on: the present jobs have been added without being searched.
function search_from_here()
  local last_id = last or int(call('GET', IDS))
  call('HSET', META, 'searched', digits(last_id))
end

function steps.Q(i, n)
  for k = i + 1, i + n - 1, 2 do
    local id = ARGV[k]
    local j, h = job(id)
    if j and j[FLAGS] < SEARCHED then
      local more = h[H_MORE] and ',' .. string.sub(h[H_MORE], 2) or '}'
      call('HSET', JOB .. id, 'weir_more', '{"search":1' .. more)
      note_words(id, 1, unpack_msg(ARGV[k + 1]))
    end
  end
  call('HSET', META, 'searched', ARGV[i])
  return 0
end

-- Once a second, whoever comes first: tokens, and does anything of ours want comparing? Answers
-- when there is more of that to do.

local function look_around(names)
  local again = false
  for _, name in ipairs(names) do
    if VERTX then mend_tokens(name) else level_tokens(name, nil, true) end
    again = VERTX and announce(name) or again
  end
  call('ZREMRANGEBYSCORE', ASKED, '-inf', now - 60 * EVERY)
  call('HSET', META, 'house', digits(again and now - EVERY + SOON or now))
end

-- Returns the time of the next call, and jobs for the index: see unsearched().
function keep_house()
  local meta = call('HMGET', META, 'house', 'walk')
  local walk = meta[2] and meta[2] ~= '' and unpack_msg(meta[2]) or nil
  if walk then
    walk = walk_on(walk)
    call('HSET', META, 'walk', walk and pack(walk) or '')
  end
  local since = math.abs(now - (tonumber(meta[1] or '') or -huge))
  if since >= EVERY then
    local names = type_names()
    look_around(names)
    since = 0
    if not walk then
      walk = find_walk(names)
      if walk then call('HSET', META, 'walk', pack(walk)) end
    end
  end
  local words = since == 0 and unsearched() or nil
  if words then call('HSET', META, 'house', '') end    -- there may be more
  return (walk or words) and now + SOON or now + EVERY - since, words
end

end
