-- schedules.lua - the steps H and h. IN_RECORDS has the version and record of each name, IN_DUE when
-- it is due, if ever, IN_NAMES all names in their order.

do

local IN_RECORDS, IN_DUE, IN_NAMES = 0, 1, 2

function layout.first_schedule()
  local first = call('ZRANGE', layout.schedule_key(IN_DUE), 0, 0, 'WITHSCORES')
  return first[2] and tonumber(first[2]) or huge
end

function steps.H(i)
  local name, seen, due, record = ARGV[i], ARGV[i + 1], ARGV[i + 2], ARGV[i + 3]
  local old = call('HGET', layout.schedule_key(IN_RECORDS), name)
  local version = old and unpack_msg(old) or 0
  if record == '' and not old then return -1 end
  if seen ~= '*' and tonumber(seen) ~= version then return 0 end
  if due == '' then
    call('ZREM', layout.schedule_key(IN_DUE), name)
  else
    call('ZADD', layout.schedule_key(IN_DUE), due, name)
    want(tonumber(due))
  end
  if record == '' then
    call('HDEL', layout.schedule_key(IN_RECORDS), name)
    call('ZREM', layout.schedule_key(IN_NAMES), name)
    return -2
  end
  version = call('HINCRBY', layout.key(META), 'schedules', 1)
  call('HSET', layout.schedule_key(IN_RECORDS), name, pack(version, record))
  call('ZADD', layout.schedule_key(IN_NAMES), 0, name)
  return version
end

function steps.h(i)
  local name, due, after, limit = ARGV[i], ARGV[i + 1], ARGV[i + 2], ARGV[i + 3]
  local names, answer = { name }, {}
  if due == '1' then
    names = call('ZRANGEBYSCORE', layout.schedule_key(IN_DUE), '-inf', now, 'LIMIT', 0, limit)
  elseif name == '' then
    names = call('ZRANGEBYLEX', layout.schedule_key(IN_NAMES), after == '' and '-' or '(' .. after, '+',
                 'LIMIT', 0, limit)
  end
  for _, each in ipairs(names) do
    local known = call('HGET', layout.schedule_key(IN_RECORDS), each)
    if known then
      local version, record = unpack_msg(known)
      local at = call('ZSCORE', layout.schedule_key(IN_DUE), each)
      answer[#answer + 1] = each
      answer[#answer + 1] = version
      answer[#answer + 1] = at and tonumber(at) or ''
      answer[#answer + 1] = record
    end
  end
  return answer
end

end
