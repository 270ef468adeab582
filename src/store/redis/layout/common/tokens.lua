-- tokens.lua - adds with a token. TOKENS has when, number, "JOBS DIGEST" and answer of the last one
-- of a key; TOKENS_AT has when, too.

local sweep_tokens

do

function steps.a(i, n)
  local key, nth, jobs = ARGV[i], ARGV[i + 1], ARGV[i + 2]
  local known = call('HGET', layout.key(TOKENS), key)
  if known then
    local at, last_nth, last_jobs, answer = unpack_msg(known)
    if at + TOKEN_MS > now and last_nth >= nth then
      if last_nth == nth and last_jobs == jobs then return answer end
      return last_nth .. ' ' .. last_jobs
    end
  end
  local answer = steps.A(i + 3, n - 3)
  if answer ~= 'words' then
    call('HSET', layout.key(TOKENS), key, pack(now, nth, jobs, answer))
    call('ZADD', layout.key(TOKENS_AT), now, key)
    want(now + TOKEN_MS + TOKEN_LATE_MS)
  end
  return answer
end

local function oldest_token_goes()
  local first = call('ZRANGE', layout.key(TOKENS_AT), 0, 0, 'WITHSCORES')
  return first[2] and first[2] + TOKEN_MS + TOKEN_LATE_MS or huge
end

-- Forget up to `limit` of the old ones, if it is time; returns the time of the next call.
function sweep_tokens(limit)
  if oldest_token_goes() <= now then
    local old = call('ZRANGEBYSCORE', layout.key(TOKENS_AT), '-inf', now - TOKEN_MS, 'LIMIT', 0,
                     limit)
    many('HDEL', TOKENS, old)
    many('ZREM', TOKENS_AT, old)
    if #old == limit then return AT_ONCE end
  end
  return oldest_token_goes()
end

end
