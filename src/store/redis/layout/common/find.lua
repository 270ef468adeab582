-- find.lua - the step F. It walks through the ids with the rarest of the words, and looks at the jobs
-- that have the others, too.

do

local function of_word(word)
  return '[' .. word .. '\0', '(' .. word .. '\1'
end

-- The ids with a word that starts so: a set, and a list in order.
local function with_start(start)
  local set, ids = {}, {}
  local all = call('ZRANGEBYLEX', layout.key(WORDS), '[' .. start, '(' .. start .. '\255')
  for _, member in ipairs(all) do
    local id = sunpack('>I8', member, #member - 7)
    if not set[id] then
      set[id] = true
      ids[#ids + 1] = id
    end
  end
  table.sort(ids)
  return set, ids
end

-- Ids behind `id` of jobs with the word, a page of them.
local function with_word(word, descending, id)
  local from, to = of_word(word)
  local got, ids = nil, {}
  local behind = '(' .. word .. '\0' .. spack('>I8', id)
  if descending then
    got = call('ZREVRANGEBYLEX', layout.key(WORDS), id > 0 and behind or to, from, 'LIMIT', 0,
               FIND_PAGE)
  else
    got = call('ZRANGEBYLEX', layout.key(WORDS), id > 0 and behind or from, to, 'LIMIT', 0,
               FIND_PAGE)
  end
  for k, member in ipairs(got) do ids[k] = sunpack('>I8', member, #member - 7) end
  return ids
end

-- The words of a query, ARGV from `from` to `to`: which to walk through (the rarest), and whether a
-- job has all of them.
local function plan_of(from, to)
  local words, sets, plan, fewest = {}, {}, {}, huge
  for k = from, to do
    local word, count = ARGV[k], 0
    if string.sub(word, -1) == '*' then
      local set, ids = with_start(string.sub(word, 1, -2))
      sets[#sets + 1] = set
      count = #ids
      if count < fewest then plan.list, plan.word = ids, nil end
    else
      count = call('ZLEXCOUNT', layout.key(WORDS), of_word(word))
      words[#words + 1] = word
      if count < fewest then plan.list, plan.word = nil, word end
    end
    fewest = min(fewest, count)
  end
  function plan.has_all(number, id)
    for _, set in ipairs(sets) do
      if not set[number] then return false end
    end
    for _, word in ipairs(words) do
      if word ~= plan.word and not call('ZSCORE', layout.key(WORDS), layout.word(word, id)) then
        return false
      end
    end
    return true
  end
  return plan
end

local function page_of(plan, descending, id)
  if plan.word then return with_word(plan.word, descending, id) end
  local some, all = {}, plan.list or {}
  for k = 1, #all do
    local number = all[descending and #all + 1 - k or k]
    if id == 0 or number ~= id and (number < id) == descending then some[#some + 1] = number end
    if #some == FIND_PAGE then break end
  end
  return some
end

function steps.F(i, n)
  local q = { state = tonumber(ARGV[i]), name = ARGV[i + 1], descending = ARGV[i + 2] == '1',
              limit = tonumber(ARGV[i + 4]), with_data = ARGV[i + 5] == '1',
              priority = tonumber(ARGV[i + 6]) }
  local last_id, look, seen, answer = tonumber(ARGV[i + 3]), tonumber(ARGV[i + 7]), 0, {}
  layout.before_find()
  local plan = plan_of(i + 8, i + n - 1)
  while #answer < 3 * q.limit do
    local page, ids = page_of(plan, q.descending, last_id), {}
    for _, number in ipairs(page) do
      local id = layout.id(number)
      if plan.has_all(number, id) then ids[#ids + 1] = id end
    end
    layout.add_found(answer, ids, q)
    if #page < FIND_PAGE then break end
    last_id, seen = page[#page], seen + #ids
    if look > 0 and seen >= look and #answer < 3 * q.limit then
      return layout.stopped_at(answer, 0, last_id)
    end
  end
  return answer
end

end
