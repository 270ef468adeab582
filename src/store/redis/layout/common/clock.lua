-- clock.lua - the time of a call; the step Y; the time from which messages are numbered.

-- `given`: what the caller says, or '': then it is Redis's clock.
function layout.time_of(given)
  if given ~= '' then return tonumber(given) end
  local t = call('TIME')
  return t[1] * 1000 + floor(t[2] / 1000)
end

-- When Redis is emptied their numbers begin anew, and must not be some that were used before.
function layout.first_message()
  local t = call('TIME')
  return t[1] * 1000000 + t[2]
end

do

-- The end of a lease that was to end at `at`, after Redis's clock was set. Leases that began
-- after that are right already; which ones did is known only roughly. So each has GRACE_MS, if
-- it had as much before: time for a worker that lives to renew it. A caller that was stopped for
-- long, with its clock, may be wrong about a step: what has just ended is not moved by all of it.
local function moved_by(at, by)
  local moved, old = at, by > 0 and at < now - by / 2
  if old or by < 0 and at >= now - by - CLOCK_SLACK_MS then moved = at + by end
  return max(moved, min(max(at, at + by), now + GRACE_MS))
end

-- Redis's clock was set: leases and ttls go on for about as long as they would have. Many callers
-- notice; the first one does it.
function steps.Y(i)
  local by, seen = tonumber(ARGV[i]), tonumber(ARGV[i + 1])
  if seen ~= tonumber(call('HGET', layout.key(META), 'steps') or 0) then return 0 end
  call('HSET', layout.key(META), 'steps', seen + 1)
  for _, key in ipairs(layout.leases()) do
    local all = call('ZRANGEBYSCORE', layout.key(key), '-inf', '(+inf', 'WITHSCORES')
    local moved = {}
    for k = 1, #all, 2 do
      moved[k], moved[k + 1] = format('%.0f', moved_by(tonumber(all[k + 1]), by)), all[k]
    end
    many('ZADD', key, moved)
  end
  return 0
end

end
