-- trend.lua - the steps U and u: records of trends as text, which core/trend.h describes. IN_RECORDS
-- has each by "STEP SLOT TYPE", IN_TIMES when it is removed.

do

local IN_RECORDS, IN_TIMES, SWEEP = 0, 1, 500

-- The higher of each number.
local function joined(a, b)
  local most, names, text = {}, {}, a .. ' ' .. b
  for name, digit in string.gmatch(text, '(%w+)=(%d+)') do
    local value = tonumber(digit)
    if not most[name] then
      names[#names + 1], most[name] = name, value
    elseif value > most[name] then
      most[name] = value
    end
  end
  for k = 1, #names do names[k] = names[k] .. '=' .. format('%.0f', most[names[k]]) end
  return table.concat(names, ' ')
end

-- Some of the old ones: the next call returns more.
local function sweep()
  local old = call('ZRANGEBYSCORE', layout.trend_key(IN_TIMES), '-inf', now, 'LIMIT', 0, SWEEP)
  if #old == 0 then return end
  call('ZREM', layout.trend_key(IN_TIMES), unpack(old))
  call('HDEL', layout.trend_key(IN_RECORDS), unpack(old))
end

function steps.U(i, n)
  local most = tonumber(ARGV[i])
  sweep()
  for k = i + 1, i + n - 1, 4 do
    local until_then, name, record = ARGV[k + 1], ARGV[k] .. ARGV[k + 2], ARGV[k + 3]
    local old = call('HGET', layout.trend_key(IN_RECORDS), name)
    if old or call('ZCOUNT', layout.trend_key(IN_TIMES), until_then, until_then) < most then
      call('HSET', layout.trend_key(IN_RECORDS), name, joined(old or '', record))
      call('ZADD', layout.trend_key(IN_TIMES), until_then, name)
    end
  end
  return 1
end

function steps.u(i, n)
  local one, answer, slot = ARGV[i] == '1' and ARGV[i + 1], {}, 0
  for k = i + 2, i + n - 1, 2 do
    local place, until_then = ARGV[k], ARGV[k + 1]
    local names = one and { place .. one } or
                  call('ZRANGEBYSCORE', layout.trend_key(IN_TIMES), until_then, until_then)
    slot = slot + 1
    for _, name in ipairs(names) do
      local record = call('HGET', layout.trend_key(IN_RECORDS), name)
      if record then
        local m = #answer
        answer[m + 1], answer[m + 2], answer[m + 3] = slot, name:sub(#place + 1), record
      end
    end
  end
  return answer
end

end
