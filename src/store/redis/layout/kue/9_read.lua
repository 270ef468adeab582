-- 9_read.lua - the steps that only look. Changes of the steps before are written first.

do

-- The run and the spec; with data also that, and behind the run the lease, if weir's worker has it.
local function whole(id, j, h, with_data)
  local run, spec = bytes_of(j)
  if not with_data then return run, spec end
  if is_ours(h) then
    flush(LEASE)
    run = run .. pack(tonumber(call('ZSCORE', LEASE, zid_of(id)) or 0))
  end
  return run, spec .. (h[H_DATA] or '')
end

local function put_whole(answer, id, j, h, with_data)
  local n = #answer
  answer[n + 1] = spack('>I8', tonumber(id))
  answer[n + 2], answer[n + 3] = whole(id, j, h, with_data)
end

function steps.G(i, n)
  local answer = {}
  for k = i + 1, i + n - 1 do
    local j, h = job(ARGV[k])
    if j then
      answer[#answer + 1] = { whole(ARGV[k], j, h, ARGV[i] == '1') }
    else
      answer[#answer + 1] = { tonumber(call('HGET', META, 'messages') or 0) }
    end
  end
  return answer
end

-- ---- places in Kue's sets, which are ordered by (score, id) ----

-- How many members come before (score, number); `also`: or are just there.
local function rank_of(key, score, number, also)
  local low = call('ZCOUNT', key, '-inf', '(' .. format('%.17g', score))
  local high = low + call('ZCOUNT', key, format('%.17g', score), format('%.17g', score))
  while low < high do
    local middle = floor((low + high) / 2)
    local there = tonumber(id_of(call('ZRANGE', key, middle, middle)[1]) or 0)
    if there < number or also and there == number then
      low = middle + 1
    else
      high = middle
    end
  end
  return low
end

-- A walk over a set from behind (score, number) on, `n` members at a time; number 0: all of it.
local function walker(key, score, number, descending)
  local at
  if descending then
    at = number > 0 and rank_of(key, score, number, false) - 1 or call('ZCARD', key) - 1
  else
    at = number > 0 and rank_of(key, score, number, true) or 0
  end
  return function(n)
    local got
    if descending then
      if at < 0 then return {} end
      local low, list = max(0, at - n + 1), {}
      local some = call('ZRANGE', key, low, at, 'WITHSCORES')
      for k = #some - 1, 1, -2 do list[#list + 1], list[#list + 2] = some[k], some[k + 1] end
      got, at = list, low - 1
    else
      got = call('ZRANGE', key, at, at + n - 1, 'WITHSCORES')
      at = at + n
    end
    return got
  end
end

-- Add to the answer the jobs of these ids, in their order, that are there and fit.
local function answer_with(answer, ids, limit, with_data, fits)
  for _, id in ipairs(ids) do
    if #answer >= 3 * limit then return end
    local j, h = job(id)
    if j and fits(j) then put_whole(answer, id, j, h, with_data) end
  end
end

-- Several walks as one, by (score, id): at most `limit` of each is looked at, so the first `limit`
-- of all are right.
local function in_order(walks, n, descending)
  local all = {}
  for _, next_of in ipairs(walks) do
    local got = next_of(n)
    for k = 1, #got, 2 do
      local id = id_of(got[k])
      if id then all[#all + 1] = { tonumber(got[k + 1]), tonumber(id), id } end
    end
  end
  if #walks > 1 then
    table.sort(all, function(a, b)
      if descending then a, b = b, a end
      return by_rank(a, b)
    end)
  end
  return all
end

-- Those of the priority that is wanted: it is the score in Kue's set of all jobs.
local function of_priority(ids, priority)
  if not priority then return ids end
  local zids, some = {}, {}
  for k, id in ipairs(ids) do zids[k] = zid_of(id) end
  local scores = ask_many('ZMSCORE', JOBS, zids)
  for k, id in ipairs(ids) do
    if tonumber(scores[k] or nil) == priority then some[#some + 1] = id end
  end
  return some
end

-- Entries that no job accounts for are skipped: then there are more to ask for.
local function list_sets(keys, q, fits)
  local answer, score, number, seen = {}, q.rank, q.id, 0
  local n = q.look == 0 and q.limit or max(FEWEST, floor(PIECE / #keys))
  while true do
    local walks = {}
    for _, key in ipairs(keys) do walks[#walks + 1] = walker(key, score, number, q.descending) end
    local all, ids = in_order(walks, n, q.descending), {}
    for k = 1, min(n, #all) do ids[k] = all[k][3] end
    answer_with(answer, of_priority(ids, q.priority), q.limit, q.with_data, fits)
    if #answer >= 3 * q.limit or #ids < n then return answer end
    score, number, seen = all[#ids][1], all[#ids][2], seen + #all
    if q.look > 0 and seen >= q.look then return layout.stopped_at(answer, score, number) end
    if q.look == 0 and q.priority and score ~= q.priority then return answer end
  end
end

-- ---- few enough to be sorted ----

local function list_sorted(zids, rank, q, fits)
  local all, answer = {}, {}
  for _, zid in ipairs(zids) do
    local id = id_of(zid)
    local j, h
    if id then j, h = job(id) end
    if j and fits(j) then
      local e = { j[rank], tonumber(id), id, j, h }
      local before = q.id > 0 and (e[1] < q.rank or e[1] == q.rank and e[2] <= q.id)
      local behind = q.id > 0 and (e[1] > q.rank or e[1] == q.rank and e[2] >= q.id)
      if not (q.descending and behind or not q.descending and before) then all[#all + 1] = e end
    end
  end
  table.sort(all, function(a, b)
    if q.descending then a, b = b, a end
    return by_rank(a, b)
  end)
  for k = 1, min(q.limit, #all) do
    put_whole(answer, all[k][3], all[k][4], all[k][5], q.with_data)
  end
  return answer
end

-- Kue's set of jobs in a state, of a type or of all, has their priorities as scores (not that of
-- all delayed or active ones). The jobs asked for, if they are few.
local function few_of(key, q)
  local from, to = q.priority or '-inf', q.priority or '+inf'
  if call('ZCOUNT', key, from, to) > FEW then return end
  return call('ZRANGEBYSCORE', key, from, to)
end

-- ---- delayed ones of a type: Kue has their times only among the times of all types ----

local function list_delayed(q, fits)
  local own = keys_of(q.name)[DELAYED]
  local few = few_of(own, q)
  if few then return list_sorted(few, PROMOTE_AT, q, fits) end
  local walk, answer, seen = walker(ALL[DELAYED], q.rank, q.id, q.descending), {}, 0
  local score, number, far = q.rank, q.id, q.priority and q.look or FAR
  while #answer < 3 * q.limit and seen < far do
    local got, zids, ids = walk(PIECE), {}, {}
    for k = 1, #got, 2 do
      zids[#zids + 1] = got[k]
      if id_of(got[k]) then score, number = tonumber(got[k + 1]), tonumber(id_of(got[k])) end
    end
    if #zids == 0 then return answer end
    local here = ask_many('ZMSCORE', own, zids)
    for k, zid in ipairs(zids) do
      local there = tonumber(here[k] or nil)
      if there and id_of(zid) and (not q.priority or there == q.priority) then
        ids[#ids + 1] = id_of(zid)
      end
    end
    answer_with(answer, ids, q.limit, q.with_data, fits)
    seen = seen + #zids
  end
  if #answer >= 3 * q.limit then return answer end
  if q.priority then return layout.stopped_at(answer, score, number) end
  return list_sorted(call('ZRANGE', own, 0, -1), PROMOTE_AT, q, fits)
end

-- ---- finished ones: from our lists, unless Kue's set has others and is small ----

local function list_finished(q, fits)
  local keys, few = {}, q.priority and few_of((q.name ~= '' and keys_of(q.name) or ALL)[q.state], q)
  if few then return list_sorted(few, FINISHED_AT, q, fits) end
  for _, name in ipairs(q.name ~= '' and { q.name } or type_names()) do
    local k = keys_of(name)
    local kues = call('ZCARD', k[q.state])
    if kues ~= call('ZCARD', k[q.state + 10]) and q.name ~= '' and kues <= FEW then
      return list_sorted(call('ZRANGE', k[q.state], 0, -1), FINISHED_AT, q, fits)
    end
    keys[#keys + 1] = k[q.state + 10]
  end
  if q.name == '' then
    local kues, ours = call('ZCARD', ALL[q.state]), 0
    for _, key in ipairs(keys) do ours = ours + call('ZCARD', key) end
    if kues ~= ours and kues <= FEW then
      return list_sorted(call('ZRANGE', ALL[q.state], 0, -1), FINISHED_AT, q, fits)
    end
  end
  return list_sets(keys, q, fits)
end

-- ---- all of them, by id: within a priority Kue's sets are in that order ----

-- A walk for each priority in a set: { key, first rank, how many }.
local function groups_of(key)
  local groups, at = {}, 0
  while true do
    local first = call('ZRANGE', key, at, at, 'WITHSCORES')
    if not first[1] then return groups end
    local n = call('ZCOUNT', key, first[2], first[2])
    groups[#groups + 1] = { key, at, n, tonumber(first[2]) }
    at = at + n
  end
end

local function ids_of_group(g, number, descending, n)
  local key, first, count, score = unpack(g)
  local low, high = first, first + count - 1
  if number > 0 and descending then high = rank_of(key, score, number, false) - 1 end
  if number > 0 and not descending then low = rank_of(key, score, number, true) end
  if descending then low = max(low, high - n + 1) else high = min(high, low + n - 1) end
  return low <= high and call('ZRANGE', key, low, high) or {}
end

local function list_ids(q, fits)
  local groups, answer, number = {}, {}, q.id
  for _, key in ipairs(q.name ~= '' and { unpack(keys_of(q.name), 1, CANCELLED) } or { JOBS }) do
    for _, g in ipairs(groups_of(key)) do
      if not q.priority or g[4] == q.priority then groups[#groups + 1] = g end
    end
  end
  while true do
    local all, ids = {}, {}
    for _, g in ipairs(groups) do
      for _, zid in ipairs(ids_of_group(g, number, q.descending, q.limit)) do
        all[#all + 1] = tonumber(id_of(zid) or 0)
      end
    end
    table.sort(all, function(a, b)
      if q.descending then return a > b end
      return a < b
    end)
    for k = 1, min(q.limit, #all) do ids[k] = digits(all[k]) end
    answer_with(answer, ids, q.limit, q.with_data, fits)
    if #answer >= 3 * q.limit or #ids < q.limit then return answer end
    number = all[#ids]
  end
end

local function fits_of(q)
  return function(j)
    return (q.state == 0 or j[STATE] == q.state) and (q.name == '' or j[TYPE] == q.name) and
           (not q.priority or j[PRIORITY] == q.priority)
  end
end

local function list(q)
  local fits = fits_of(q)
  local key = q.state > 0 and (q.name ~= '' and keys_of(q.name) or ALL)[q.state]
  if q.state == 0 then return list_ids(q, fits) end
  if finished(q.state) then return list_finished(q, fits) end
  if q.state == ACTIVE then return list_sorted(call('ZRANGE', key, 0, -1), STARTED_AT, q, fits) end
  if q.state == DELAYED and q.name ~= '' then return list_delayed(q, fits) end
  return list_sets({ key }, q, fits)
end

function steps.I(i)
  flush_all()
  if ARGV[i + 9] == '1' and layout.is_paused(ARGV[i + 1]) then return {} end
  return list({ state = tonumber(ARGV[i]), name = ARGV[i + 1], descending = ARGV[i + 2] == '1',
                rank = tonumber(ARGV[i + 3]), id = tonumber(ARGV[i + 4]),
                limit = tonumber(ARGV[i + 5]), with_data = ARGV[i + 6] == '1',
                priority = tonumber(ARGV[i + 7]), look = tonumber(ARGV[i + 8]) })
end

-- ---- find ----

layout.id, layout.before_find = digits, flush_all

function layout.add_found(answer, ids, q)
  answer_with(answer, of_priority(ids, q.priority), q.limit, q.with_data, fits_of(q))
end

-- ---- log, statistics ----

-- When each of the lines from `first` to `last_one` was written, as far as it is known.
local function times_of(id, first, last_one)
  local times = {}
  for n = first, last_one + LINES_A_FIELD - 1, LINES_A_FIELD do
    local text = call('HGET', JOB .. id, time_field(min(n, last_one))) or ''
    for line, at in string.gmatch(text, '(%d+):(%-?%d+) ') do
      times[tonumber(line)] = tonumber(at)
    end
  end
  return times
end

function steps.O(i)
  local id, after, limit = ARGV[i], tonumber(ARGV[i + 1]), tonumber(ARGV[i + 2])
  local j = job(id)
  if not j then return -1 end
  local cut, answer = int(call('HGET', JOB .. id, 'weir_cut')), {}
  local first = max(after, cut)
  local texts = call('LRANGE', JOB .. id .. ':log', first - cut, first - cut + limit - 1)
  local times, at = times_of(id, first + 1, first + #texts), j[CREATED_AT]
  for k, text in ipairs(texts) do
    at = times[first + k] or at
    answer[3 * k - 2], answer[3 * k - 1], answer[3 * k] = first + k, at, text
  end
  return answer
end

local function stats_of(name)
  local known_as = type_of(name) or layout.new_type()
  local keys, row = keys_of(name), { name, pack(known_as) }
  for state = INACTIVE, CANCELLED do row[state + 2] = call('ZCARD', keys[state]) end
  local head = call('ZRANGE', keys[INACTIVE], 0, 0)[1]
  row[9] = head and int(call('HGET', JOB .. (id_of(head) or ''), 'created_at')) or 0
  return row
end

function steps.Z()
  flush_all()
  local answer = { tonumber(last or call('GET', IDS) or 0) }
  for _, name in ipairs(type_names()) do answer[#answer + 1] = stats_of(name) end
  if type_of('*') then
    answer[#answer + 1] = { '*', pack(type_of('*')), 0, 0, 0, 0, 0, 0, 0 }
  end
  return answer
end

end
